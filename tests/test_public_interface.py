"""The public interface: what it is, what it says of itself, and that its examples run."""

import copy
import doctest
import inspect
import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import pytorch_lightning as pl
import torch

import lightning_dpg as dpg
from lightning_dpg import methods
from lightning_dpg.advice import GOALS, choices
from lightning_dpg.classes import is_abstract
from lightning_dpg.datamodules import EdgeListDataModule, SubgraphDataModule, TUGraphDataModule
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.main import main
from lightning_dpg.methods import BTER, ChungLu
from lightning_dpg.run.configurations import shipped_configs
from lightning_dpg.run.data import name_of_graph

CLASSES = [name for name in dpg.__all__ if isinstance(getattr(dpg, name), type)]
FUNCTIONS = sorted({*dpg.__all__} - {*CLASSES, "methods"})  # a package


@pytest.fixture(scope="module")
def release():
    return dpg.fit(nx.karate_club_graph(), "chung_lu", epsilon=1.0)


def test_the_import_brings_no_torch_and_shows_all_names():
    code = (
        "import sys, lightning_dpg as dpg; shown = dir(dpg);"
        "print(sorted({'torch', 'numpy', 'networkx'} & set(sys.modules)), shown == sorted(shown))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[] True"
    assert dpg.__all__ == dir(dpg)
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        _ = dpg.fitt


def test_a_notebook_without_ipywidgets_gets_no_warning():
    code = (
        "import sys, types; sys.modules['ipywidgets'] = None;"
        "sys.modules['ipykernel.zmqshell'] = types.ModuleType('ipykernel.zmqshell');"
        "sys.modules['IPython'] = types.SimpleNamespace(get_ipython=lambda: None);"
        "import lightning_dpg, tqdm.auto"  # as Lightning does
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize("name", sorted({*dpg.__all__} - {"benchmark"}))  # which is compare
def test_examples_run(name):
    found = doctest.DocTestFinder().find(getattr(dpg, name), name, globs={})
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    for example in found:
        runner.run(example)
    assert not runner.failures


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_document_arguments_result_errors_and_an_example(name):
    function = getattr(dpg, name)
    text = inspect.getdoc(function)
    for section in ("Returns:", "Raises:", "Example:"):
        assert section in text, section
    parameters = inspect.signature(function).parameters
    missing = [each for each in parameters if f"    {each}: " not in text.replace("*", "")]
    assert not missing
    assert "Args:" in text or not parameters


def test_a_fit_opens_a_release_and_keeps_the_private_graph_out_of_it(release):
    assert isinstance(release, dpg.Release)
    assert release.statement["epsilon"] == 1.0
    # The method is rebuilt from released tensors: it has no trainer, whose data are private.
    assert release.method._trainer is None
    assert torch.equal(release.sample(seed=3).edge_index, release.sample(3).edge_index)
    drawn = release.sample_many(2, seed=3)
    assert torch.equal(drawn[0].edge_index, release.sample(3).edge_index)
    assert not torch.equal(drawn[0].edge_index, drawn[1].edge_index)
    graph = release.to_networkx(seed=3)
    assert 2 * graph.number_of_edges() == drawn[0].num_edges
    assert [*map(str, graph)] == drawn[0].node_names
    assert repr(release).count("\n") == 2


def test_scores_take_numbers_and_names(release):
    scores = release.edge_score([[0, 33], [4, 5]])
    assert torch.equal(scores, release.edge_score([["0", "33"], ["4", "5"]]))
    for pairs, why in (([[0, 34]], "no node 34"), ([["0", "x"]], "named 'x'"), ([0, 1], "shape")):
        with pytest.raises(dpg.CommandError, match=why):
            release.edge_score(pairs)


def test_a_saved_release_is_complete_and_replaces_only_a_release(release, tmp_path, capsys):
    folder = release.save(tmp_path / "new" / "out")
    assert main(["verify", str(folder)]) == 0
    assert release.statement == json.loads((folder / "privacy.json").read_text()) | {
        "schema_version": release.statement["schema_version"]
    }
    assert "MODEL_CARD.md" in {path.name for path in folder.iterdir()}
    opened = dpg.open_release(str(folder))
    assert torch.equal(opened.sample(5).edge_index, release.sample(5).edge_index)
    opened.save(folder)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(dpg.CommandError, match="other files than a release"):
        release.save(tmp_path)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda release: release.sample("a"), "seed must be a whole number .*, got 'a'"),
        (lambda release: release.sample(10**30), "seed must be a whole number .*, got 1000"),
        (lambda release: release.to_networkx(0.5), "seed must be a whole number .*, got 0.5"),
        (lambda release: release.sample_many("2"), "n must be a positive whole number, got '2'"),
        (lambda release: release.save("/proc/xyz"), "^/proc/xyz: it cannot be written"),
        (lambda release: release.save("x" * 3000), "^x{100}: it cannot be written .File name too"),
    ],
)
def test_arguments_of_a_release_are_named(release, call, why):
    with pytest.raises(dpg.CommandError, match=why):
        call(release)


@pytest.mark.parametrize("limit", [34, 33])
def test_a_figure_shows_a_drawn_graph_and_its_degrees(release, limit, monkeypatch):
    monkeypatch.setattr("lightning_dpg.metrics.pictures.NETWORK_LIMIT", limit)
    sample = release.sample(3)
    drawing, curve = release.plot(seed=3).axes
    assert "34 nodes" in drawing.get_xlabel()
    assert (len(drawing.lines), len(drawing.images)) == ((2, 0) if limit == 34 else (0, 1))
    degrees = np.bincount(sample.edge_index[0], minlength=34)
    assert curve.lines[0].get_ydata()[0] == (degrees > 0).sum()
    assert curve.lines[0].get_xdata()[-1] == degrees.max()


def test_a_picture_that_a_release_does_not_hold_is_refused_with_those_that_it_holds(release):
    held = "graph, degrees, adjacency, clustering, distances$"
    with pytest.raises(dpg.CommandError, match=f"ChungLu holds no amounts: plot {held}"):
        release.plot("amounts")


def test_a_release_says_what_it_is_in_plain_values(release):
    assert (release.epsilon, release.delta, release.relation) == (1.0, 0.0, "edge")
    assert release.card() == (release.folder / "MODEL_CARD.md").read_text()
    assert release.verify().folder == release.folder
    bare = dpg.Release(release.method, {})
    assert (bare.epsilon, bare.relation) == (np.inf, "")
    for call in (bare.card, bare.verify):
        with pytest.raises(dpg.CommandError, match="ChungLu: there "):
            call()


def test_names_that_are_all_whole_numbers_are_numbers(release):
    graph, table = release.to_networkx(3), release.to_pandas(3)
    assert list(graph) == [*range(34)]
    assert {*map(frozenset, table.to_numpy().tolist())} == {*map(frozenset, graph.edges)}
    copied = dpg.Release(copy.copy(release.method), {})
    for names in (["x", *map(str, range(33))], ["007", *map(str, range(33))]):
        copied.method.node_names = names
        assert list(copied.to_networkx(3)) == names


def test_a_plan_for_a_goal_is_what_fit_takes():
    choice = dpg.plan(goal="communities", epsilon=1.0, num_nodes=300)
    assert (choice.configuration, choice.method) == ("privgraph", "PrivGraph")
    for settings, why in (
        ({"goal": "shapes", "num_nodes": 3}, "'shapes' is no goal: take links"),
        ({"goal": "shape"}, "give num_nodes"),
        ({"goal": "shape", "num_nodes": 3, "steps": 4}, "leave sample_rate, steps"),
        ({}, "or for the choice of a method goal"),
    ):
        with pytest.raises(dpg.CommandError, match=why):
            dpg.plan(epsilon=1.0, **settings)


def test_both_names_of_the_comparison_are_one_object():
    assert dpg.benchmark is dpg.compare


def test_a_verification_says_what_the_command_prints(release, tmp_path, capsys):
    folder = release.save(tmp_path / "out")

    def printed():
        capsys.readouterr()
        code = main(["verify", str(folder)])
        return code, capsys.readouterr().out.rstrip("\n")

    found = dpg.verify(folder / "privacy.json")
    assert (0, str(found)) == printed()
    assert found and found.guarantee == release.guarantee
    (folder / "synthetic-0.edges").write_text("0\t1\n")
    (folder / "more.txt").touch()
    found = dpg.verify(str(folder))
    assert (1, str(found)) == printed()
    assert not found and len(found.faults) == 3 and found.epsilon is None
    with pytest.raises(dpg.CommandError, match="no release, it has neither"):
        dpg.verify(tmp_path)


def test_the_page_of_a_release_escapes_names(release):
    odd = dpg.Release(release.method, {**release.statement, "guarantee": "<script>1</script>"})
    page = odd._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page
    for entry in release.statement["entries"]:
        assert entry["name"] in page
    assert not re.search(r"https?://|<script|<link|src=", page)


def test_a_run_folder_holds_no_object(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    graph = nx.relabel_nodes(nx.karate_club_graph(), {0: "SECRET"})
    settings = {"count_share": np.float64(0.1)}
    release = dpg.fit(graph, BTER, epsilon=1.0, out=tmp_path / "out", **settings)
    assert release.folder == tmp_path / "out" / "release"
    assert release.method.hparams["count_share"] == 0.1
    config = (tmp_path / "out" / "config.yaml").read_text()
    assert "given in Python: Graph" in config and "count_share: 0.1" in config
    (checkpoint,) = (tmp_path / "out").rglob("*.ckpt")
    state = torch.load(checkpoint, weights_only=True)
    assert {type(value) for value in state["hyper_parameters"].values()} <= {int, float}
    assert not list((tmp_path / "scratch").iterdir())
    with pytest.raises(dpg.CommandError, match="files already"):
        dpg.fit(graph, BTER, epsilon=1.0, out=tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"method": "btr"}, "did you mean bter"),
        ({"countshare": 1}, "did you mean count_share"),
        ({"max_epochs": 3}, r"Trainer\(max_epochs=...\)"),
        ({"count_share": "much"}, "count_share: expected float, got 'much'"),
        ({"count_share": 0.99}, "shares"),
        ({"num_nodes": 5}, "num_nodes is 5, but the graph has 34 nodes"),
        ({"undirected": True}, r"EdgeListDataModule\(data, undirected=...\)"),
        ({"data": nx.DiGraph([(0, 1)])}, "undirected=True of lightning_dpg.read"),
        ({"data": nx.DiGraph([(0, 1)])}, 'set kind="directed" of lightning_dpg.read, or'),
        (
            {"data": [("a", "b"), ("c", None)]},
            r'set missing_ids="drop" of lightning_dpg.read to',
        ),
        ({"data": "x" * 3000}, "x{60}...: File name too long"),
        ({"data": Path("x" * 3000)}, "x{60}...: File name too long"),
        ({"data": "~no_such_user/x.csv"}, "home directory"),
        ({"data": "https://a.b/x.csv"}, "a file of another machine.*\ndownload it first"),
        ({"data": "s3://me:secret@b/x"}, "^s3://...: a file of another machine"),
        ({"epsilon": -1}, "epsilon must be positive"),
        ({"epsilon": None}, "epsilon must be a number, got None"),
        ({"method": "netgan"}, "NetGAN protects nothing"),
        ({"method": "dp_netgan", "delta": 0}, "pure epsilon only"),
        ({"data": "karat"}, "did you mean karate"),
        ({"method": "erdos_renyi_set"}, "unknown graph set"),
        ({"method": "erdos_renyi_set", "data": __file__}, "a file, and the method reads a set"),
        ({"method": BTER(34), "count_share": 0.1}, "takes no settings"),
        ({"method": BTER(34, Fraction(1, 5))}, "BTER: count_share is no plain value"),
        ({"data": ["a", "b"], "method": "bter"}, "expected pairs of ids"),
        ({"data": [nx.path_graph(3)] * 2}, "a set is for methods of sets"),
        ({"method": dict}, "expected a name"),
    ],
)
def test_bad_input_gets_one_message_and_leaves_no_folder(arguments, why, tmp_path):
    good = {"data": "karate", "method": "bter", "epsilon": 1.0, "out": tmp_path / "a" / "out"}
    with pytest.raises(dpg.CommandError, match=why) as caught:
        dpg.fit(**good | arguments)
    assert len(str(caught.value).splitlines()) <= 5
    assert "--data" not in str(caught.value)  # an option of the command line
    assert not list(tmp_path.iterdir())


def test_a_fit_leaves_the_random_numbers_of_the_caller():
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    dpg.fit("karate", ChungLu(), epsilon=1.0)
    assert torch.equal(torch.rand(2), expected)


def test_objects_of_a_class_and_of_data_are_taken():
    class Own(ChungLu):
        """A method of a user's cell in a notebook."""

    data = EdgeListDataModule(nx.path_graph(6))
    assert isinstance(data, pl.LightningDataModule)
    release = dpg.fit(data, Own, epsilon=1.0)
    assert type(release.method) is Own
    assert release.sample(0).num_nodes == 6


def test_listed_methods_are_those_of_the_classes():
    """Rows are read from sources; the classes themselves are the truth."""
    rows = {row.name: row for row in dpg.list_methods()}
    concrete = {
        name: cls
        for name, cls in ((name, getattr(methods, name)) for name in methods.__all__)
        if not is_abstract(cls) and name != "PrivateModule"
    }
    assert set(rows) == set(concrete)
    for name, cls in concrete.items():
        kind = (
            ("pure" if cls.capabilities.is_pure else "approximate")
            if cls.capabilities.adds_noise
            else "none"
        )
        assert rows[name].guarantee == kind, name
        assert rows[name].relation == (cls.relation.value if cls.capabilities.adds_noise else ""), (
            name
        )
        room = cls.__module__.split(".")[1]
        named = any(case.method == name for goal in GOALS for case in choices(goal))
        tier = (
            {"methods": "baselines"}.get(room, room)
            if cls.capabilities.adds_noise
            else "without privacy"
        )
        assert rows[name].tier == ("recommended" if named else tier), name
        has_condition = cls.condition is not methods.PrivateModule.condition
        assert rows[name].is_conditional == has_condition, name
        draws_one = cls.capabilities.reads is not GraphSetRecords and not issubclass(
            cls, methods.NodeClassifier
        )
        assert (rows[name].task == "one graph") == draws_one, name
        if rows[name].configuration:
            text = shipped_configs()[rows[name].configuration].read_text()
            assert re.search(rf"class_path: {name}$", text, re.MULTILINE)
    # Baselines such as node_kernel have classes of methods, too.
    assert rows["PrivateGraphKernel"].configuration == "private_kernel"
    assert rows["ErdosRenyi"].configuration == "erdos_renyi"


def test_texts_of_the_owner_stand_in_the_card(tmp_path):
    card = {"operator": "Registry of clubs"}
    release = dpg.fit("karate", "chung_lu", epsilon=1.0, card=card)
    saved = release.save(tmp_path / "out")
    assert "Registry of clubs" in (saved / "MODEL_CARD.md").read_text()
    with pytest.raises(dpg.CommandError, match="did you mean operator"):
        dpg.fit("karate", "chung_lu", epsilon=1.0, card={"operater": "x"})


def test_ctrl_c_reaches_the_caller_and_says_what_was_spent(monkeypatch, tmp_path):
    def interrupted(self, records, budget):
        raise KeyboardInterrupt

    monkeypatch.setattr(ChungLu, "release", interrupted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt, match="spent for good: epsilon 0 of 1"):
        dpg.fit("karate", "chung_lu", epsilon=1.0)
    assert not list(tmp_path.iterdir())


def test_an_audit_takes_objects_and_leaves_them_as_they_were():
    data = EdgeListDataModule(nx.path_graph(12))
    data.setup("fit")
    edges = data.edges.clone()
    report = dpg.audit(data, ChungLu, epsilon=1.0, canaries=6, runs=4)
    assert torch.equal(data.edges, edges)
    assert (report.fits, report.canaries) == (4, 24)
    assert report.graph == ("Graph given in Python", False)
    assert json.loads(report.to_json())["graph"] == report.graph._asdict()
    assert "not private" in str(report) == repr(report)


class Disguised(EdgeListDataModule):
    """Data module of a user, with the name of a built-in graph and other edges."""


@pytest.mark.parametrize(
    ("data", "data_class", "is_public"),
    [
        ("karate", EdgeListDataModule, True),
        (EdgeListDataModule("karate"), EdgeListDataModule, True),
        ("planted_sets", TUGraphDataModule, True),
        (Disguised("karate"), EdgeListDataModule, False),
        ("karate", Disguised, False),
        ("karate", SubgraphDataModule, False),  # a folder planetoid/karate comes first
        ("karate", TUGraphDataModule, False),  # a folder
        ("planted_sets", EdgeListDataModule, False),  # a file
        ("ego_sets", TUGraphDataModule, False),  # cut from files
        (Path("karate"), EdgeListDataModule, False),
        (nx.karate_club_graph(), EdgeListDataModule, False),
    ],
)
def test_only_built_in_graphs_are_public(data, data_class, is_public):
    assert name_of_graph(data, data_class).is_public == is_public


def test_an_attack_takes_objects_and_fits_the_same_method_again():
    graph = nx.gnm_random_graph(12, 30, seed=0)
    release = dpg.fit(graph, "randomized_response", epsilon=30.0)
    report = dpg.attack(graph, release)
    values = json.loads(report.to_json())
    assert values["graph"] == {"name": "Graph given in Python", "is_public": False}
    assert values["baseline"] == "fitted without the targets"
    # With next to no noise the release is the graph.
    first = values["link_stealing"][0]
    assert first["release"]["auc"]["value"] == 1 > first["baseline"]["auc"]["value"]
    drawn = dpg.attack(graph, release.sample_many(2))
    assert drawn.values["baseline"] == "degrees alone"
    assert drawn.values["graphs"] == 2


def test_features_are_read_by_name(tmp_path):
    graphs = [nx.cycle_graph(size) for size in (5, 6, 7, 8)]
    release = dpg.fit(graphs, "private_kernel", epsilon=2.0)
    assert set(release.features) >= {"sizes", "labels"}
    assert release.features["sizes"].tolist() == [5, 6, 7, 8]
    assert "4 graphs" in repr(release)
    with pytest.raises(dpg.CommandError, match=r"release\.features"):
        release.sample()
    opened = dpg.open_release(release.save(tmp_path / "out"))
    assert np.array_equal(opened.features["features"], release.features["features"])


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: dpg.plan(epsilon=1, delta=1e-5, sample_rate=0.1, steps=1.5), "whole number"),
        (lambda: dpg.attack("karate", []), "holds no synthetic graph"),
        (lambda: dpg.audit("karate", "chung_lu", epsilon=1, canaries=999), "set canaries to 241"),
    ],
)
def test_arguments_without_a_meaning_are_refused(call, why):
    with pytest.raises(dpg.CommandError, match=why):
        call()
