"""Attributed: rows that fit a graph, two budgets, and a release that says that rows are drawn."""

import csv
import math

import networkx as nx
import numpy as np
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.graph.edge_statistics import exact_mixing
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.main import main
from lightning_dpg.methods import Attributed
from lightning_dpg.methods.single_graph.attributed import DRAWN_ROWS, NodeGroups, fitted_joint
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from tests.training import quiet_trainer

BLOCK = {"attributes": "from_graph", "private_columns": "block", "domains": {"block": list("0123")}}


def planted(**settings):
    return EdgeListDataModule("planted_partition", nodes=Nodes(**BLOCK | settings))


def assortativity(graph):
    """By networkx."""
    found = nx.Graph()
    rows = graph.drawn_rows.values[:, 0].tolist()
    found.add_nodes_from((node, {"value": value}) for node, value in enumerate(rows))
    found.add_edges_from(undirected_edges(graph).tolist())
    return nx.attribute_assortativity_coefficient(found, "value")


@pytest.mark.parametrize(("second", "is_on"), [([20, 60, 240], True), ([80, 80, 80], False)])
def test_classes_of_a_group_differ_where_a_value_has_a_trend(second, is_on):
    of_class, of_classes = np.array([0, 1, 2, 2]), np.array([400.0, 400, 300, 100])
    groups = NodeGroups(of_class, np.full(3, 400.0), np.zeros(0, dtype=int), of_classes)
    noisy = np.array([[400 - with_it, with_it] for with_it in second], dtype=float).ravel()
    found, joint = fitted_joint(noisy, groups, [2], scale=4.0)
    assert found.tolist() == ([0, 1, 2, 3] if is_on else [0, 1, 2, 2])
    rising = np.diff(joint[:, 1] / joint.sum(axis=1))
    assert (rising > 0.09).all() == is_on
    assert joint[2:].sum(axis=0) * 1200 == pytest.approx([400 - second[2], second[2]], abs=15)


@pytest.fixture(scope="module")
def exact():
    """A release without noise, which shows what the post-processing does."""
    return dpg.fit(planted(), "attributed", epsilon=math.inf, row_epsilon=math.inf)


def test_rows_and_edges_fit_each_other_without_noise(exact):
    graph = exact.sample(seed=0)
    real = nx.attribute_assortativity_coefficient(
        nx.planted_partition_graph(4, 50, 0.15, 0.01, seed=0), "block"
    )
    assert assortativity(graph) == pytest.approx(real, abs=0.05)
    counts = np.bincount(graph.drawn_rows.values[:, 0], minlength=5)
    assert counts[4] == 0 and abs(counts[:4] - 50).max() < 25  # each row is drawn by itself
    # Rewiring keeps the edges and degrees that the structure has drawn.
    drawn = exact.method.structure.sample_edges(torch.Generator().manual_seed(0))
    rewired = undirected_edges(graph)
    assert torch.equal(
        torch.bincount(rewired.flatten(), minlength=200),
        torch.bincount(drawn.flatten(), minlength=200),
    )


def test_a_graph_has_its_rows_as_columns_of_0_and_1(exact):
    graph = exact.sample(seed=3)
    assert graph.attribute_names == [f"block={value}" for value in [*"0123", "other"]]
    assert graph.x.argmax(1).tolist() == graph.drawn_rows.values[:, 0].tolist()
    assert torch.equal(graph.x.sum(1), torch.ones(200))
    assert not torch.equal(graph.x, exact.sample(seed=4).x)


def test_rows_are_a_data_frame(exact):
    people, graph = exact.people(seed=3), exact.sample(seed=3)
    assert people.columns.tolist() == ["node", "block"]
    assert people["node"].tolist() == [*map(int, graph.node_names)]
    assert people["block"].tolist() == graph.drawn_rows.texts()[0]
    with pytest.raises(CommandError, match="ErdosRenyi draws no rows"):
        dpg.fit("karate", "erdos_renyi", epsilon=1.0).people()


def plan(edges, rows, **settings):
    columns = {"age": ["a", "b", "other"], "region": ["a", "b", "c", "other"]}
    method = Attributed(20, domains=columns, **settings)
    method.ledger.beside[Relation.ATTRIBUTES] = Budget(rows, 0.0)
    found = {entry.key: entry for entry in method.plan(Budget(edges, 0.0), 1)}
    return found, {
        relation: math.fsum(e.event.pure_epsilon for e in found.values() if e.relation is relation)
        for relation in (Relation.EDGE, Relation.ATTRIBUTES)
    }


@pytest.mark.parametrize(
    ("edges", "rows", "settings"),
    [(1.0, 1.0, {}), (4.0, 0.5, {}), (0.5, 4.0, {}), (1.0, 1.0, {"max_weight": 1})],
)
def test_one_noise_serves_both_and_each_budget_is_spent(edges, rows, settings):
    found, spent = plan(edges, rows, **settings)
    of_edges, of_rows = found["column_mixing"], found["column_mixing_rows"]
    assert of_edges.scale == pytest.approx(of_rows.scale, rel=1e-12)
    weight = settings.get("max_weight", 4)
    cells = 5 + 7  # with one of two values, of 3 and of 4 values
    assert of_rows.sensitivity == 2 * 2 * weight * 1024 + cells
    assert of_edges.sensitivity == math.ceil(2 * 3 * weight * 1024 / (weight + 1)) + cells
    needed = (
        of_edges.sensitivity / (0.15 * edges),
        of_rows.sensitivity / (0.5 * rows),
    )
    assert of_edges.scale == pytest.approx(max(needed))
    assert spent[Relation.EDGE] == pytest.approx(edges, rel=1e-12)
    assert spent[Relation.ATTRIBUTES] == pytest.approx(rows, rel=1e-12)
    assert found["row_tables"].sensitivity == 2 * 3  # pairs of class, age and region


def test_one_budget_may_be_infinite():
    found, _ = plan(math.inf, 1.0)
    assert found["column_mixing_rows"].event.pure_epsilon == 0.5
    assert math.isfinite(found["column_mixing"].event.pure_epsilon)


def test_each_read_gets_the_noise_that_both_relations_need():
    """2,080 cells of mixing, and 64 of the table, around exact counts."""
    values = [f"club {number}" for number in range(62)] + ["Mr. Hi"]
    private = {"private_columns": "club", "domains": {"club": values}, "names": "ids"}
    data = EdgeListDataModule("karate", nodes=Nodes(attributes="from_graph", **private))
    method, noisy = Attributed(structure="erdos_renyi"), {}
    method.ledger.observer = lambda key, value: noisy.setdefault(key, value)
    trainer = quiet_trainer(PrivacyAccountant(1.0, 0.0, row_epsilon=2.0))
    trainer.fit(method, data)
    rows = data.records.private_columns.values.numpy()
    degrees = np.bincount(data.edges.flatten().numpy())
    exact = exact_mixing(data.edges.numpy(), degrees, rows, (64,), 4)
    scale = (2458 + 127) / 0.15  # which edges need, more than what rows need at 2
    assert np.abs(noisy["column_mixing"].numpy() - exact).mean() == pytest.approx(scale, rel=0.1)
    left = 2.0 - (2 * 4 * 1024 + 127) / scale
    counts = np.bincount(rows[:, 0], minlength=64)
    assert np.abs(noisy["row_tables"].numpy() - counts).mean() == pytest.approx(2 / left, rel=0.5)


def refused(data, **settings):
    with pytest.raises(CommandError) as refusal:
        dpg.fit(data, "attributed", **{"epsilon": 1.0, "row_epsilon": 1.0} | settings)
    assert len(str(refusal.value).splitlines()) <= 5
    return str(refusal.value)


def test_what_it_cannot_learn_is_refused():
    assert 'nodes=Nodes(attributes="people.csv", private_columns=' in refused(
        EdgeListDataModule("karate")
    )
    assert "row_epsilon" in refused(planted(), row_epsilon=None)
    assert "domains is not the list" in refused(planted(), domains={"block": ["0", "1"]})
    many = EdgeListDataModule(
        "planted_partition",
        nodes=Nodes(
            attributes="from_graph",
            policy={"block": "private"},
            domains={"block": [f"v{k}" for k in range(63)]},
        ),
    )
    many.setup("fit")
    columns = many.records.private_columns
    wide = {f"column {k}": columns.domains["block"] for k in range(4)}
    many.private_columns = columns._replace(domains=wide, values=columns.values.repeat(1, 4))
    assert "combinations" in refused(many)


BANK = {"age": [0, 30, 45, 60, 100], "region": ["north", "south", "east", "west"]}


def test_a_bank_has_private_customers_amounts_and_times_in_one_directed_run():
    private = {"private_columns": "age,region", "domains": BANK}
    nodes, columns = Nodes(attributes="from_graph", **private), {"weight": "amount", "time": "at"}
    data = EdgeListDataModule("small_bank", kind="directed", nodes=nodes, columns=columns)
    assert "by the structure bter, and this one is directed" in refused(data)
    budgets = {"epsilon": 1000.0, "row_epsilon": 1000.0}
    release = dpg.fit(data, "attributed", structure="chung_lu", **budgets)
    graph, arcs = release.sample(0), data.space.edges(data.graph).numpy()
    drawn, real = graph.drawn_rows.values, data.private_columns.values.numpy()
    assert (
        len(release.transfers(0)) > 1000 and release.people(0)["region"].isin(BANK["region"]).all()
    )
    # Of 25 pairs of values of payer and payee.
    for place in (0, 1):
        shares = []
        for ends, rows in ((arcs, real), (graph.edge_index.T.numpy(), drawn)):
            cells = rows[ends[:, 0], place] * 5 + rows[ends[:, 1], place]
            shares.append(np.bincount(cells, minlength=25) / len(ends))
        assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.15


def shop(**settings):
    """Young people buy food and old ones cars, most of the time; books are bought by all."""
    rng, graph = np.random.default_rng(0), nx.Graph()
    age, sector = rng.integers(0, 2, 80), rng.integers(0, 3, 40)
    for i, k in enumerate(age):
        graph.add_node(f"p{i}", bipartite=0, age=["young", "old"][k], sector="not looked at")
    for j, k in enumerate(sector):
        graph.add_node(f"m{j}", bipartite=1, sector=["food", "cars", "books"][k])
    likely = np.where(age[:, None] == sector, 0.4, 0.03) + 0.1 * (sector == 2)
    graph.add_edges_from((f"p{i}", f"m{j}") for i, j in np.argwhere(rng.random((80, 40)) < likely))
    private = {"age": ["young", "old"], "sector": ["food", "cars", "books"]}
    given = {"private_columns": "age,sector", "domains": private, "right_columns": "sector"}
    nodes = Nodes(attributes="from_graph", **given | settings)
    return EdgeListDataModule(graph, kind="bipartite", nodes=nodes)


def bought(graph, num_left=80):
    """Purchases by age and sector; and whether no node has a column of the other side."""
    rows, (left, right) = graph.drawn_rows.values, graph.edge_index
    ends = left < num_left  # both directions are there
    counts = np.zeros((3, 4))
    np.add.at(counts, (rows[left[ends], 0], rows[right[ends], 1]), 1)
    return counts, (rows[num_left:, 0] == -1).all() and (rows[:num_left, 1] == -1).all()


def test_each_side_of_a_bipartite_graph_has_columns_of_its_own(tmp_path):
    budgets = {"epsilon": 1000.0, "row_epsilon": 1000.0, "structure": "chung_lu"}
    data = shop()
    release = dpg.fit(data, "attributed", **budgets)
    assert (data.private_columns.values[:80, 1] == 0).all()  # cells of the other side
    counts, are_apart = bought(release.sample(0))
    assert are_apart and not counts[2].any() and not counts[:, 3].any()
    assert counts[0, 0] > 2 * counts[0, 1] and counts[1, 1] > 2 * counts[1, 0]
    people = release.people(0)
    assert (people["sector"][:80] == "").all() and (people["age"][80:] == "").all()
    given = release.sample(0).drawn_rows.values  # and on rows that others have drawn
    edges, rng = release.method.draw_edges(torch.Generator().manual_seed(1))
    graph = release.method.complete(edges, given, rng)
    assert (graph.drawn_rows.values == given).all()
    counts, _ = bought(graph)
    assert counts[0, 0] > 2 * counts[0, 1] and counts[1, 1] > 2 * counts[1, 0]
    found = dpg.evaluate(data, release, baselines=False).measured[0].rows
    figures = {(each.figure, each.of): each for each in found}
    assert figures["mixing", "age and sector"].error < 0.25
    assert figures["mixing", "age and sector"].independent > 0.3
    assert ("association", "age and sector") not in figures
    report = dpg.attack(data, release).values["row_guesses"]
    by_neighbors = [each for each in report if each["knowledge"] == "neighbors"]
    assert [each["column"] for each in by_neighbors] == ["age", "sector"]
    assert all(each["release"]["value"] > each["prior"] for each in by_neighbors)


def test_columns_of_one_side_have_no_mixing():
    left = {"private_columns": "age", "domains": {"age": ["young", "old"]}, "right_columns": None}
    data = shop(**left, policy={"sector": "drop"})
    release = dpg.fit(data, "attributed", epsilon=1.0, row_epsilon=1.0, structure="chung_lu")
    spent = {entry["key"]: entry["epsilon"] for entry in release.statement["entries"]}
    assert spent["row_tables"] == 1 and "column_mixing" not in spent
    assert math.fsum(spent.values()) == pytest.approx(2)
    assert (release.people(0)["age"][80:] == "").all()
    with pytest.raises(Refusal, match=r"right_columns: size is no private column"):
        shop(right_columns="size")
    said = refused(planted(right_columns="block"))
    assert "right_columns are for kind: bipartite" in said


def test_two_files_become_a_verified_release(tmp_path, monkeypatch, capsys):
    """Values outside of the domain, missing ones, nodes without a row, and rows without an edge."""
    monkeypatch.chdir(tmp_path)
    graph = nx.planted_partition_graph(2, 60, 0.15, 0.02, seed=1)
    lines = [f"p{u},p{v}" for u, v in graph.edges]
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(lines))
    towns = [f"town {k}" for k in range(40)]
    rows = [f"p{k},{k},{towns[k % 40]},{'north' if k < 60 else 'south'}" for k in range(110)]
    rows += ["lonely,,town 3,west", "p119,old,nowhere,"]
    (tmp_path / "people.csv").write_text("id,age,town,region\n" + "\n".join(rows))
    (tmp_path / "ids.txt").write_text("\n".join([*(f"p{k}" for k in range(120)), "lonely"]))
    (tmp_path / "domains.yaml").write_text(
        f"age: [18, 30, 60]\ntown: {towns}\nregion: [north, south, missing]\n"
    )
    fit = ["fit", "edges.csv", "--method", "attributed", "--epsilon", "2", "--row-epsilon", "1"]
    fit += ["--nodes", "ids.txt", "--attributes", "people.csv", "--out", "run"]
    fit += ["--data.nodes.private_columns", "age,town,region"]
    assert main(fit) == 2
    assert "no values of the private column 'age'" in capsys.readouterr().err
    assert main([*fit, "--data.nodes.domains", "domains.yaml"]) == 0
    assert DRAWN_ROWS in capsys.readouterr().out
    assert main(["verify", "run"]) == 0
    assert "epsilon 1 of the relation attributes" in capsys.readouterr().out
    with (tmp_path / "run" / "release" / "people-0.csv").open() as file:
        people = list(csv.DictReader(file))
    assert [row["node"] for row in people] == [str(k) for k in range(121)]
    assert {row["age"] for row in people} <= {"18 to 30", "30 to 60", "other"}
    again = dpg.open_release("run").sample(seed=0)
    assert [row["region"] for row in people] == again.drawn_rows.texts()[2]
    read = nx.read_graphml(tmp_path / "run" / "release" / "synthetic-0.graphml")
    assert all(read.nodes[row["node"]].get(f"town={row['town']}", 0.0) == 1.0 for row in people)
    assert main(["generate", "run", "--num-graphs", "1", "--out", "more"]) == 0
    assert list((tmp_path / "more").glob("people-*.csv"))


def test_audits_and_attacks_read_its_structure(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "--config", "attributed", "--out", "run"]) == 0
    assert main(["attack", "run"]) == 0
    assert "fitted without the targets" not in capsys.readouterr().out
    for view in ("black_box", "white_box"):
        options = ["--config", "attributed", "--canaries", "20", "--view", view, "--no-book"]
        assert main(["audit", *options, "--out", view]) == 0
        assert "not refuted" in capsys.readouterr().out
    assert main(["evaluate", "run"]) == 0


def test_a_run_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "--config", "attributed", "--out", "run"]) == 0
    (checkpoint,) = tmp_path.glob("run/checkpoints/*.ckpt")
    options = ["--config", "attributed", "--ckpt_path", str(checkpoint), "--out", "again"]
    assert main(["fit", *options]) == 0
    before, after = (dpg.open_release(tmp_path / name).sample(0) for name in ("run", "again"))
    assert torch.equal(before.x, after.x) and torch.equal(before.edge_index, after.edge_index)
