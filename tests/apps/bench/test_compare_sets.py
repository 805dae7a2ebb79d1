"""``compare`` on sets of graphs has correct rows and numbers, and refuses bad input."""

import itertools
import json
import re

import networkx as nx
import numpy as np
import pytest
import yaml

from lightning_dpg.apps.bench.grid import Grid, read_methods
from lightning_dpg.apps.bench.tasks import GRAPH_SETS
from lightning_dpg.apps.bench.views import Benchmark
from lightning_dpg.formats.io import from_networkx, read_graph
from lightning_dpg.main import main
from lightning_dpg.metrics import set_queries
from lightning_dpg.metrics.graph_sets import SET_STATISTICS
from tests.apps.bench.conftest import read_csv, without_processes
from tests.graphs import write_tu_set

TINY = {
    "data": {"class_path": "GraphSetDataModule", "init_args": {"steps_per_epoch": 2}},
    "trainer": {"max_epochs": 1},
}
OPEN = TINY | {"model": {"class_path": "GVAE"}, "privacy": {"epsilon": float("inf")}}
PRIVATE = TINY | {"model": {"class_path": "DPGVAE"}, "privacy": {"epsilon": 1.0, "delta": 1e-5}}
BASELINE = "erdos_renyi_set (baseline)"
EXACT = "erdos_renyi_set (baseline, exact number of edges)"
GRAPHS = [nx.gnm_random_graph(5 + k, 4 + 2 * k, seed=k) for k in range(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of a method without privacy, a private one and the baselines, two runs each."""
    folder = tmp_path_factory.mktemp("sets")
    write_tu_set(folder / "tiny", GRAPHS, [k % 2 for k in range(len(GRAPHS))])
    (folder / "open.yaml").write_text(yaml.safe_dump(OPEN))
    (folder / "private.yaml").write_text(yaml.safe_dump(PRIVATE))

    def without_training(real, synthetic):
        names = ("gin", "size", "gin_real", "size_real", "majority")
        return {name: 0.1 * k + 0.25 for k, name in enumerate(names)}

    with pytest.MonkeyPatch.context() as patch:
        without_processes(patch)
        patch.setattr(set_queries, "classification_accuracies", without_training)
        methods = ["--methods", str(folder / "open.yaml"), str(folder / "private.yaml")]
        rest = ["--epsilons", "1", "--runs", "2", "--classify", "--out", str(folder / "out")]
        assert main(["compare", *methods, "--graphs", str(folder / "tiny"), *rest]) == 0
    return folder


def drawn_by(folder, row):
    """The graphs that a row drew in run 0, by networkx."""
    (path,) = (
        path
        for path in (folder / "out" / "runs").rglob("*.npz")
        if path.parent.name.startswith(row)
    )
    union = nx.Graph(read_graph(path).edge_index.T.tolist())
    ends = np.cumsum([len(graph) for graph in GRAPHS]).tolist()
    union.add_nodes_from(range(ends[-1]))
    return [union.subgraph(range(*span)) for span in itertools.pairwise([0, *ends])]


def statistics_by_networkx(graph):
    components = map(len, nx.connected_components(graph))
    lengths = [
        length
        for source, found in nx.shortest_path_length(graph)
        for target, length in found.items()
        if target != source
    ]
    return {
        "LCC": max(components),
        "TC": sum(nx.triangles(graph).values()) / 3,
        "CPL": np.mean(lengths) if lengths else np.nan,
    }


def test_rows_are_methods_untrained_and_baselines(folder):
    rows = {(r["method"], r["role"], r["epsilon"], r["private"]) for r in read_csv(folder)}
    assert rows == {
        ("open", "method", "inf", "False"),
        ("open (untrained)", "untrained", "inf", "False"),
        ("private", "method", "1.0", "True"),
        ("private (untrained)", "untrained", "1.0", "True"),
        (BASELINE, "baseline", "1.0", "True"),
        (EXACT, "baseline", "inf", "False"),
    }


@pytest.mark.parametrize("row", ["private", "erdos_renyi_set_baseline-", "open_untrained"])
def test_errors_are_those_of_networkx_on_the_kept_graphs(folder, row):
    drawn = drawn_by(folder, f"{row}-" if row == "private" else row)
    ours, theirs = (list(map(statistics_by_networkx, graphs)) for graphs in (GRAPHS, drawn))
    method = {"erdos_renyi_set_baseline-": BASELINE, "open_untrained": "open (untrained)"}.get(
        row, row
    )
    for query in ("LCC", "TC", "CPL"):
        (answer,) = (
            r
            for r in read_csv(folder)
            if (r["method"], r["run"], r["query"]) == (method, "0", query)
        )
        errors = [abs(a[query] - b[query]) for a, b in zip(ours, theirs, strict=True)]
        assert float(answer["error"]) == pytest.approx(np.nanmean(errors))
        assert float(answer["real"]) == pytest.approx(np.mean([a[query] for a in ours]))
        assert float(answer["synthetic"]) == pytest.approx(np.nanmean([b[query] for b in theirs]))


@pytest.mark.parametrize("row", ["erdos_renyi_set_baseline_exact", "open_untrained"])
def test_rows_without_privacy_draw_the_exact_numbers_of_edges(folder, row):
    drawn = [graph.size() for graph in drawn_by(folder, row)]
    assert drawn == [graph.size() for graph in GRAPHS]


def test_classifiers_are_asked_once_and_only_if_wanted(folder):
    rows = [row for row in read_csv(folder) if row["query"] == "gin_accuracy"]
    assert {row["run"] for row in rows} == {"0"}
    assert {(float(row["real"]), float(row["error"])) for row in rows} == {(0.45, 0.25)}
    assert "0.25 (1 of 2)" not in (folder / "out" / "report.html").read_text()
    methods = read_methods(["gvae"])
    real = GRAPH_SETS.load(str(folder / "tiny"), False)
    jobs = {
        wanted: Grid(methods, {"tiny": real}, [1.0], range(5), 1e-6, GRAPH_SETS, wanted).jobs()
        for wanted in (False, True)
    }
    assert not any(job.classify for job in jobs[False])
    assert [job.classify for job in jobs[True]] == [True, True, *[False] * 8]
    others = [a.digest != b.digest for a, b in zip(*jobs.values(), strict=True)]
    assert others == [True, True, *[False] * 8]


def test_table_begins_with_the_originals_and_counts_wins(folder):
    runs = [json.loads(path.read_text()) for path in (folder / "out" / "cells").iterdir()]
    results = Benchmark(runs, {}, GRAPH_SETS, folder, [], GRAPH_SETS.queries)
    ((_, _, heads, marked, _, _),) = results.sections()
    rows = [[re.sub("<.*?>", "", text) for text in row] for row in marked]
    assert rows[0][0] == "original"
    assert "open (not private)" in [row[0] for row in rows]
    originals = [from_networkx(graph) for graph in GRAPHS]
    for name, statistic in SET_STATISTICS.items():
        mean = np.mean([statistic(graph) for graph in originals])
        assert float(rows[0][heads.index(name)]) == pytest.approx(mean, rel=5e-3)
    errors = {}
    for row in read_csv(folder):
        if row["query"] in set_queries.TABLE_1:
            errors.setdefault((row["method"], row["query"]), []).append(float(row["error"]))
    for row in rows[1:]:
        method = row[0].removesuffix(" (not private)")
        won = sum(
            np.mean(errors[method, query]) < np.mean(errors[BASELINE, query])
            for query in set_queries.TABLE_1
        )
        expected = "-" if method == BASELINE else f"{won} of 5"
        assert row[heads.index("beats erdos_renyi_set")] == expected


def test_report_shows_the_sets(folder):
    page = (folder / "out" / "report.html").read_text()
    body = page[: page.index('<script type="application/json"')]
    assert body.count('<tr data-query="LCC">') == 1
    assert body.count("data:image/png;base64,") == 1 + 6
    assert "1 set, 6 rows, 1 budget, 2 runs" in body


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"methods": ["gvae", "netgan"]}, "gvae learns a single set, netgan a single graph"),
        ({"methods": ["gvae"], "graphs": ["karate"]}, "karate: a single graph"),
        ({"methods": ["netgan"]}, "planted_sets: a set of graphs"),
        ({"graphs": ["planted_set"]}, "unknown graph set"),
        ({"graphs": ["graph_atlas"], "classify": []}, "none of the graphs"),
        ({"methods": ["netgan"], "graphs": ["karate"], "classify": []}, "none of the graphs"),
    ],
)
def test_mistakes_are_told_before_anything_starts(fails, options, said):
    given = {"methods": ["gvae"], "graphs": ["planted_sets"], "epsilons": ["1"], "out": ["o"]}
    args = [word for name, words in (given | options).items() for word in (f"--{name}", *words)]
    assert said in fails("compare", *args)
