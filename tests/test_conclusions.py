"""Sentences that conclude something from a study say what its table shows.

If a number changes, the test names the page and the sentence to write anew.
"""

import re
from itertools import product
from pathlib import Path

import pytest
import torch

from lightning_dpg.privacy.reports import unbiased
from results import tables

ROOT = Path(__file__).parent.parent
FIVE = ["LCC", "TC", "CPL", "GINI", "REDE"]
TASKS = ("classes", "links")


def column(table, name):
    """Numbers of one column, ``study/table``, by row."""
    study, _, table = table.partition("/")
    cells = tables.read_study(tables.FOLDER / study).table_cells(table)
    return {row: float(cell.value) for (row, at), cell in cells.items() if at == name}


def nearer(table, method, epsilon):
    """Statistics in which a method is nearer to the originals than uniform graphs."""
    numbers = [column(f"sets/{table}", name) for name in FIVE]
    return sum(n[f"{method} {epsilon}"] < n[f"ErdosRenyiSet {epsilon}"] for n in numbers)


def farther(table, method, epsilon):
    numbers = [column(f"sets/{table}", name) for name in FIVE]
    return sum(n[f"{method} {epsilon}"] > n[f"ErdosRenyiSet {epsilon}"] for n in numbers)


def sets():
    counts = {
        (table, method): [nearer(table, method, epsilon) for epsilon in ("10", "1", ".1")]
        for table in ("imdb_multi", "dblp")
        for method in ("DPGVAE", "DPGGAN")
    }
    uniform = [farther("imdb_multi", m, e) for m in ("DPGVAE", "DPGGAN") for e in ("1", ".1")]
    return uniform == [5] * 4 and counts == {
        ("imdb_multi", "DPGVAE"): [3, 0, 0],
        ("imdb_multi", "DPGGAN"): [3, 0, 0],
        ("dblp", "DPGVAE"): [3, 0, 3],
        ("dblp", "DPGGAN"): [2, 0, 2],
    }


def another_original():
    def reached(table, row, paper):
        return [
            name
            for name in FIVE
            if column(f"sets/{table}", name)[row]
            <= column(f"sets/{table}", name)[f"{paper} in the paper"]
        ]

    same, nearest = (
        "another original of as many nodes and edges",
        "the original nearest in nodes and edges",
    )
    papers = ["GVAE", "DPGVAE", "DPGGAN"]
    unreached = [set(FIVE) - set(reached("imdb_multi", same, paper)) for paper in papers]
    dblp = [reached("dblp", nearest, paper) for paper in papers]
    return set.intersection(*unreached) == {"LCC", "GINI"} and dblp == [
        ["TC"],
        ["LCC", "TC"],
        ["TC"],
    ]


def shortcuts():
    """Whatever of the paper is switched back, CPL and GINI are not half as good as printed."""
    for name in ("CPL", "GINI"):
        printed = column("sets/dblp", name)["DPGVAE in the paper .1"]
        if min(column("sets/dblp_shortcuts", name).values()) < 2 * printed:
            return False
    return True


def orders(graph, task):
    """Tau of each row, and the largest one of a release."""
    taus = column(f"ranking/{graph} {task}", "tau")
    return taus, max(tau for row, tau in taus.items() if " at " in row)


def intervals(graph, task):
    """Ends of the interval of tau of each row."""
    cells = tables.read_study(tables.FOLDER / "ranking").table_cells(f"{graph} {task}")
    ends = re.compile(r"interval (\S+) to (\S+)")
    return {
        row: [*map(float, ends.search(cell.note).groups())]
        for (row, at), cell in cells.items()
        if at == "tau" and cell.note
    }


def explained_orders():
    found = [intervals(g, t) for g in ("cora_ml", "citeseer", "facebook_pages") for t in TASKS]
    return all(
        max(low for row, (low, _) in ends.items() if " at " in row) < ends["similarity graph"][1]
        for ends in found
    )


def orders_of_hopkins():
    return all(
        best > taus["similarity graph"] + 0.5
        for taus, best in (orders("hopkins", t) for t in TASKS)
    )


def orders_of_classes():
    graphs = ("cora_ml", "citeseer", "hopkins", "facebook_pages")
    taus = [item for graph in graphs for item in orders(graph, "classes")[0].items()]
    return max(tau for row, tau in taus if re.match("ChungLu|BTER|PrivGraph", row)) < 0.25


def shape():
    queries = [
        *("triangles", "global clustering", "average clustering"),
        *("average path length", "distance distribution KL", "diameter"),
    ]
    private = ("BTER", "PrivGraph", "RandomizedResponse spectral", "ChungLu", "ErdosRenyi")
    by_method = {name: column("shape/facebook", name) for name in private}
    best = {q: min(by_method, key=lambda m: by_method[m][q]) for q in by_method["BTER"]}
    others = best["modularity"], best["assortativity"]
    return {best[q] for q in queries} == {"BTER"} and set(others) == {"PrivGraph"}


def peers():
    distances = ("distance distribution KL", "average path length", "diameter")
    worse = (
        column("shape/peers_queries", "worse, seen"),
        column("shape/peers_queries", "worse, unseen"),
    )
    lost = {query: sum(counts[query] for counts in worse) for query in worse[0]}
    del lost["all queries"]
    return set(sorted(lost, key=lambda query: lost[query])[-3:]) == set(distances)


def published():
    methods = ("BTER", "PrivGraph", "RandomizedResponse spectral", "ChungLu", "ErdosRenyi")
    ours = [column("shape/facebook", name) for name in methods]
    others = column("shape/facebook", "published")
    better = [
        max(m[query] for m in ours) >= value
        if query == "community NMI"
        else min(m[query] for m in ours) <= value
        for query, value in others.items()
    ]
    return (sum(better), len(better)) == (9, 13)


def communities():
    epsilons = (".1", ".5", "1", "1.5")

    def above(table):
        numbers = [column(f"communities/{table}", f"NMI {epsilon}") for epsilon in epsilons]
        rows = [row for row in numbers[0] if all(n[row] > n["ChungLu"] for n in numbers)]
        return rows, [max(n, key=lambda row: n[row]) for n in numbers[1:]]

    both = ["PrivCom", "RandomizedResponsePrivCom"]
    polblogs, best = above("polblogs")
    return (
        polblogs == [*both, "PrivGraph"]
        and best == ["PrivGraph"] * 3
        and above("ca_grqc")[0] == [*both, "BTER"]
    )


def sizes_of_dd():
    epsilons = (".1", ".5", "1", "2", "5", "10")
    private = [column("labels/dd", name) for name in epsilons]
    exact = [column("labels/dd", name) for name in ("raw", "truncated")]
    raw = exact[0]["node_kernel"]
    return all(max(n.values()) <= n["node_kernel"] + 1 for n in private) and all(
        max(n.values()) <= raw + 1 for n in exact
    )


def local():
    study = tables.read_study(tables.FOLDER / "local").table_cells("accuracy")
    gains = []
    for (row, name), cell in study.items():
        if row.startswith("ldp"):
            size = study["numbers of nodes", name]
            deviations = [float(x.deviation) for x in (cell, size) if x.deviation]
            gains.append(float(cell.value) - float(size.value) > min(deviations))
    return gains and not any(gains)


def gan():
    cells = column("edge_list_gan/cora_ml", "matched AUC")
    private = [value for row, value in cells.items() if re.match(r"DPNetGAN\w* \d", row)]
    return len(private) == 9 and all(-3 < value - 50 < 2 for value in private)


def blocks_need_more_than_degrees():
    cells = tables.read_study(tables.FOLDER / "advice").table_cells("families_fixed")
    found = [
        float(c.value)
        for (row, name), c in cells.items()
        if name == "ChungLu" and "blocks:" in row and "uneven" not in row
    ]
    return found and max(found) < 55


def road_map():
    """All methods are near chance or below, and degrees are last."""
    found = [column("advice/tested", name) for name in ("ChungLu", "PrivGraph", "spectral")]
    roads = [row for row in found[0] if row.startswith("road")]
    lowest = all(found[0][row] < min(other[row] for other in found[1:]) for row in roads)
    return lowest and max(values[row] for values in found for row in roads) < 52


def squirrel():
    found = [
        column("advice/matched_fixed", name)["squirrel 1"] for name in ("spectral", "PrivGraph")
    ]
    return found[0] > found[1] + 10  # what reports find at 1, where the mean degree alone says no


def encoder():
    graphs = ("Cora-ML", "Citeseer", "Texas", "Wisconsin")
    return all(
        max(found := column(f"attributes/{graph} AUC", epsilon), key=lambda row: found[row])
        == "AttributeEncoder"
        for graph, epsilon in product(graphs, ("0.5", "1", "2.9", "5"))
    )


def deviation_of_reports():
    """One coin per row of 18 nodes decides one of 8 signs; at a value of .5 it is fair."""
    reports = torch.zeros(18, 8, dtype=torch.int8)
    reports[:, 0] = 1 - 2 * (torch.arange(18) % 2).to(torch.int8)
    arguments = {"epsilon": torch.ones(1), "reports_per_row": 1, "bounds": (0.0, 1.0)}
    estimates = unbiased(reports, torch.tensor([18]), **arguments)
    return round(float(estimates.std(correction=0))) == 51


def attributes_of_citeseer():
    """At .5 the encoder's gain in AUC is below a deviation, and in matched AUC it has none."""
    cells = tables.read_study(tables.FOLDER / "attributes").table_cells("Citeseer AUC")
    encoder, alone = cells["AttributeEncoder", "0.5"], cells["attributes alone", "0"]
    gain = float(encoder.value) - float(alone.value)
    matched = column("attributes/Citeseer matched AUC", "0.5")["AttributeEncoder"]
    without = column("attributes/Citeseer matched AUC", "0")["attributes alone"]
    return gain < float(encoder.deviation) and matched <= without


def averaged_rows():
    """Attributes alone gain more than the encoder on Citeseer; on two graphs they lose 8 points."""

    def gain(row, epsilon):
        graph, _, method = row.partition(", ")
        averaged = column("attributes/averaged rows", epsilon)[row]
        return averaged - column(f"attributes/{graph} AUC", epsilon)[method]

    def matched(method, epsilon):
        return column("attributes/averaged rows", epsilon)[f"Citeseer, {method}, matched"]

    of_alone, alone = gain("Citeseer, attributes alone", "0"), matched("attributes alone", "0")
    return all(
        0 < gain("Citeseer, AttributeEncoder", epsilon) < of_alone
        and matched("AttributeEncoder", epsilon) < alone
        for epsilon in ("0.5", "1", "2.9")
    ) and all(gain(f"{graph}, attributes alone", "0") < -8 for graph in ("Texas", "Wisconsin"))


def gains_at_half():
    """Whether the encoder gains a deviation on the attributes alone at .5 on Cora-ML only."""
    found = []
    for graph in ("Cora-ML", "Citeseer", "Texas", "Wisconsin"):
        cells = tables.read_study(tables.FOLDER / "attributes").table_cells(f"{graph} AUC")
        encoder, alone = cells["AttributeEncoder", "0.5"], cells["attributes alone", "0"]
        if float(encoder.value) - float(alone.value) > float(encoder.deviation):
            found.append(graph)
    return found == ["Cora-ML"]


def moments_of_cora():
    numbers = [column("attributes/Cora-ML matched AUC", epsilon) for epsilon in ("1", "2.9", "5")]
    return all(n["AttributeMoments"] >= n["AttributeEncoder"] - 0.5 for n in numbers)


def classes_of_nodes():
    """The similarity graph reads no edge and beats all releases; some of these beat no graph."""
    gcn, sgc = (column("node_classification/cora_ml", name) for name in ("GCN", "SGC"))
    released = [row for row in gcn if " at " in row]
    encoder = [row for row in released if row.startswith("AttributeEncoder")]
    return (
        all(n["similarity graph"] > n[row] for n in (gcn, sgc) for row in released)
        and all(sgc[row] > sgc["no graph"] and gcn[row] < gcn["no graph"] for row in encoder)
        and all(
            n[row] < n["no graph"] for n in (gcn, sgc) for row in released if row not in encoder
        )
    )


@pytest.mark.parametrize(
    ("page", "sentence", "holds"),
    [
        ("results/sets/README.md", "three on IMDB-MULTI and in two on DBLP", sets),
        ("results/sets/README.md", "not reach the paper's LCC and GINI", another_original),
        ("results/sets/README.md", "None of these shortcuts explains the printed", shortcuts),
        (
            "results/ranking/README.md",
            "no release keeps an order beyond the simil",
            explained_orders,
        ),
        (
            "results/ranking/README.md",
            "keep orders that the similarity graph loses",
            orders_of_hopkins,
        ),
        ("results/ranking/README.md", "never keep the order of classes", orders_of_classes),
        ("docs/choosing.md", "has the smallest error of all private methods here", shape),
        ("results/shape/README.md", "Distances are lost again and again", peers),
        ("docs/choosing.md", "Distances are lost most often", peers),
        ("docs/choosing.md", "in three of five statistics, and `DPGGAN` in two or three", sets),
        ("docs/choosing.md", "of the study, and that of `PrivGraph` is not", communities),
        ("results/shape/README.md", "on 9 of the 13 queries", published),
        ("results/communities/README.md", "where it is best from .5 on", communities),
        ("docs/choosing.md", "beyond numbers of nodes by more than a point", sizes_of_dd),
        ("docs/choosing.md", "at no epsilon up to 10,000", local),
        ("results/local/README.md", "beyond the number of nodes at no epsilon", local),
        ("docs/choosing.md", "at every epsilon up to 420", gan),
        (
            "results/attributes/README.md",
            "At epsilon .5 `AttributeEncoder` is no better than they are",
            attributes_of_citeseer,
        ),
        (
            "results/attributes/README.md",
            "the gain is one of the public start",
            averaged_rows,
        ),
        (
            "results/attributes/README.md",
            "level with the encoder in matched AUC from 1 on",
            moments_of_cora,
        ),
        ("docs/choosing.md", "degrees say nothing of any pair", blocks_need_more_than_degrees),
        ("docs/choosing.md", "no method ranks links better than chance, and degrees", road_map),
        ("docs/choosing.md", "Hubs give eigenvalues far above the mean degree", squirrel),
        (
            "docs/choosing.md",
            "highest AUC of all private methods on Cora-ML, Citeseer, Texas and Wisconsin",
            encoder,
        ),
        ("docs/choosing.md", "by more than a standard deviation on Cora-ML only", gains_at_half),
        ("docs/choosing.md", "beyond no graph at all, but not a GCN", classes_of_nodes),
        ("docs/choosing.md", "a standard deviation of 51", deviation_of_reports),
    ],
)
def test_a_conclusion_is_what_the_table_shows(page, sentence, holds):
    text = " ".join((ROOT / page).read_text().replace("*", "").split())
    assert sentence in text, f"{page} no longer says: {sentence}"
    assert holds(), f"{page}: the table does not show: {sentence}"
