"""Releases with numbers in a secret order are compared with the real graph by the key of their run."""

import math
import shutil

import networkx as nx
import pytest

import lightning_dpg as dpg
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.evaluation.purposes import NO_NAMES
from lightning_dpg.methods.single_graph import erdos_renyi

# Ids that are whole numbers, too: a number of the release that is taken for an id is another node.
EDGES = [(str(u), str(v)) for u, v in nx.gnm_random_graph(30, 60, seed=4).edges]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an edge list and two runs on it, whose releases are copies of its graph."""
    folder = tmp_path_factory.mktemp("names")
    path = folder / "g.csv"
    path.write_text("".join(f"{u},{v}\n" for u, v in EDGES))
    for run in ("one", "two"):
        dpg.fit(path, "randomized_response", epsilon=60.0, out=folder / run)
    dpg.open_release(folder / "one").save(folder / "alone")
    return folder


def overlaps(*arguments, **options):
    found = dpg.evaluate(*arguments, baselines=False, **options)
    return [answers["edge_overlap"].score for answers in found.answers.values()]


def test_all_ways_to_compare_find_the_same_edges(place):
    real, one = str(place / "g.csv"), place / "one"
    release = dpg.open_release(one)
    numbers = [str(number) for number in range(len({*sum(EDGES, ())}))]
    assert release.method.node_names == numbers
    assert overlaps(one) == [1]
    assert overlaps(real, [one, place / "two", release]) == [1, 1, 1]
    assert overlaps(nx.Graph(EDGES), one / "release" / "synthetic-0.graphml") == [1]
    data = EdgeListDataModule(real)
    data.setup("fit")
    assert overlaps(data, one) == [1]
    fitted = dpg.fit(data, "randomized_response", epsilon=60.0)
    assert overlaps(data, fitted) == overlaps(real, fitted) == [1]


def test_without_the_key_no_number_is_taken_for_an_id(place):
    real, alone = place / "g.csv", place / "alone"
    found = dpg.evaluate(real, alone)
    (answers,) = found.answers.values()
    none = {name for name, answer in answers.items() if "no node has a name" in answer.note}
    assert none == {"edge_overlap", "community_nmi", "community_ami", "community_f1"}
    assert all(math.isnan(answers[name].score) for name in none)
    assert answers["triangles"].score == answers["num_edges"].score == 0
    assert NO_NAMES in str(found) and NO_NAMES not in str(dpg.evaluate(place / "one"))
    with pytest.raises(CommandError, match=r"numbered in a secret order(.|\n)*node_names\.csv"):
        dpg.attack(real, alone)
    shutil.copy(place / "one" / "node_names.csv", place)  # beside it
    assert overlaps(real, alone) == [1]
    (place / "node_names.csv").write_text("number,name\n0,1\n")
    with pytest.raises(CommandError, match="the key of another release"):
        dpg.evaluate(real, alone)


def test_attacks_score_the_pairs_of_the_real_graph(place):
    for arguments in ([place / "one"], [place / "g.csv", dpg.open_release(place / "two")]):
        found = dpg.attack(*arguments).values["link_stealing"]
        auc = {each["attack"]: each["release"]["auc"]["value"] for each in found}
        assert auc["edges"] == 1 and auc["scores of the generator"] > 0.5


@pytest.mark.parametrize(("graph", "kind"), [("karate", "undirected"), ("davis", "bipartite")])
def test_a_release_that_drew_no_edge_is_judged(tmp_path, monkeypatch, graph, kind):
    paid = erdos_renyi.noisy_num_edges
    monkeypatch.setattr(erdos_renyi, "noisy_num_edges", lambda *reads: 0 * paid(*reads))
    data = dpg.read(graph, kind=kind)
    release = dpg.fit(data, "erdos_renyi", epsilon=1.0, out=tmp_path / "run")
    for suffix in ("npz", "graphml", "edges"):  # what is left is read
        for synthetic in (tmp_path / "run", release):
            found = dpg.evaluate(data, synthetic, baselines=suffix == "npz")
            (answers,) = found.answers.values()
            assert answers["num_edges"][1:3] == (0, 1) and answers["edge_overlap"].score == 0
            assert math.isnan(answers["avg_path_length"].synthetic)
        (tmp_path / "run" / "release" / f"synthetic-0.{suffix}").unlink()
    if kind == "undirected":
        stolen = dpg.attack(data, release).values["link_stealing"]
        assert stolen[0]["release"]["auc"]["value"] == 0.5
    with pytest.raises(CommandError, match="no edges"):
        dpg.evaluate(nx.empty_graph(34), release, kind="undirected")
