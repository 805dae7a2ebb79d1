"""Private labels: both totals by hand, nothing but reports leaves, refusals, and planted bugs."""

import csv
import itertools
import json
import math

import numpy as np
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.datamodules.private_columns import private_labels
from lightning_dpg.graph.attributes import AttributeTable
from lightning_dpg.main import main
from lightning_dpg.methods import NeighborVotes, NodeNeighborVotes, node_classes
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.private_columns import reported_label_sensitivity
from lightning_dpg.release.statement import privacy_statement
from lightning_dpg.run.data import data_of_run
from lightning_dpg.run_folder import NOT_PRIVATE
from tests.methods.test_neighbor_votes import CLASSES, N, planted
from tests.training import quiet_trainer

SMALL = {"rank": 8}
NAMES = ["ape", "bee", "cat"]


def private(graph, classes=range(CLASSES)):
    nodes = Nodes(attributes="from_graph", policy={"y": "private_label"}, classes=list(classes))
    return EdgeListDataModule(graph, nodes=nodes)


def fitted(graph, method=NeighborVotes, rows=1.5, folder=None, **settings):
    """A fit with noise of a known seed, so that two of them can be compared."""
    module = method(**SMALL | settings)
    module._noise = NoiseSource(unsafe_seed=1)
    callbacks = [PrivacyAccountant(1.0, 1e-5, row_epsilon=rows)]
    callbacks += [] if folder is None else [ReleaseWriter()]
    quiet_trainer(*callbacks, default_root_dir=folder).fit(module, private(graph))
    return module


def test_both_totals_are_those_by_hand_and_verify_finds_them_again(tmp_path):
    release = dpg.fit(
        *(planted(), "neighbor_votes"),
        **SMALL,
        epsilon=1.0,
        delta=1e-5,
        row_epsilon=2.0,
        classes=range(CLASSES),
        out=tmp_path / "run",
    )
    booked = [(each["key"], each["relation"]) for each in release.statement["entries"]]
    votes = [(f"neighbor_votes_{number}", "edge") for number in (1, 2, 3)]
    of_edges = [("num_edges", "edge"), ("attribute_moment", "edge"), ("vote_moment", "edge")]
    assert booked == [("label_reports", "attributes"), *of_edges, *votes]
    report = release.statement["entries"][0]
    assert (report["epsilon"], report["sensitivity"], report["public"]) == (2.0, 1, {"classes": 3})
    assert release.statement["beside"] == [
        {
            "relation": "attributes",
            "epsilon": 2.0,
            "delta": 0.0,
            "accountant": "sum of pure epsilons",
            "record": "label of one node",
            "reads": 1,
        }
    ]
    for words in (
        "attribute-level (2, 0)-DP (exchange the label of one node)",
        "the label of one node at epsilon 2, and together with k edges of that node at epsilon 2 + k",
    ):
        assert words in release.guarantee
    card = (tmp_path / "run" / "release" / "MODEL_CARD.md").read_text()
    assert (
        "- the list of classes, and which nodes have a label (the private column of a node" in card
    )
    assert "A further unit is the label of one node." in card
    assert "given classes" not in card
    found = dpg.verify(tmp_path / "run")
    assert found.ok, found.faults
    assert "epsilon 2 of the relation attributes is what its reads prove" in str(found)
    with np.load(tmp_path / "run" / "release" / "features.npz") as arrays:
        assert "known_classes" not in arrays
        assert arrays["reported_classes"].shape == (N,)


def test_edges_of_a_node_and_its_label_are_protected_together():
    module = fitted(planted(), NodeNeighborVotes, max_edges=5)
    module._noise = NoiseSource()  # whose guarantee is asked for
    sentence = privacy_statement(module)["guarantee"]
    assert sentence.endswith(
        "Protected are at most 5 edges of one node at epsilon 1 and delta 1e-05, the label of one node "
        "at epsilon 1.5, and both together at epsilon 2.5 and delta 1e-05."
    )


def test_an_exchanged_label_is_one_report():
    """All exchanges of one label, for other classes and for a value that is none."""
    graph = planted()
    graph.x, graph.attribute_names = graph.x[:, :2], graph.attribute_names[:2]
    graph.y[1] = -1
    before = private(graph)
    before.setup("fit")
    values, largest = before.private_labels.values, 0
    for node, label in itertools.product((0, 2, 5), (0, 1, 2, 9)):
        graph.y = torch.where(torch.arange(N) == 1, -1, torch.arange(N) % CLASSES)
        graph.y[node] = label
        after = private(graph)
        after.setup("fit")
        others = after.private_labels.values
        assert torch.equal(others < 0, values < 0)
        largest = max(largest, int((others != values).sum()))
    assert largest == reported_label_sensitivity()


def files_of_two(monkeypatch, tmp_path, method):
    """Files of the releases of two labelings, where the second fit gets the first one's reports."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    law, first = node_classes.report_labels, []

    def exchanged(read, num_classes):
        def draw(labels, noise):
            first.append(law(read, num_classes)(labels, noise))
            return first[0].clone()

        return draw

    monkeypatch.setattr(node_classes, "report_labels", exchanged)
    found = []
    for name in ("a", "b"):
        graph = planted()
        if (
            found
        ):  # each label is another one, some are in no class, and which nodes have one is equal
            graph.y = torch.where(torch.arange(N) % 7 == 0, 9, (graph.y + 1) % CLASSES)
        graph.y[:5] = -1
        fitted(graph, method, folder=tmp_path / name)
        folder = tmp_path / name / NOT_PRIVATE
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})
    return found


@pytest.mark.parametrize("method", [NeighborVotes, NodeNeighborVotes])
def test_nothing_but_the_reports_knows_the_labels(method, monkeypatch, tmp_path):
    one, other = files_of_two(monkeypatch, tmp_path, method)
    assert len(one) > 5
    assert one == other


def keeps_labels(method, labels, read):
    """The planted bug: a report is paid for, and the true labels are learned."""
    honest(method, labels, read)
    method.known_classes = labels.values[method.known_nodes].clamp(max=CLASSES - 1)


honest = NodeClassifier._report


def test_true_labels_in_place_of_reports_are_found(monkeypatch, tmp_path):
    monkeypatch.setattr(NodeClassifier, "_report", keeps_labels)
    one, other = files_of_two(monkeypatch, tmp_path, NeighborVotes)
    assert one != other
    with pytest.raises(AssertionError):
        test_reports_are_wrong_as_often_as_their_epsilon_says(NeighborVotes)


@pytest.mark.parametrize("method", [NeighborVotes, NodeNeighborVotes])
def test_reports_are_wrong_as_often_as_their_epsilon_says(method):
    graph = planted()
    module = fitted(graph, method, rows=1.5)
    kept = math.exp(1.5) / (math.exp(1.5) + CLASSES - 1)
    share = (module.known_labels() == graph.y).double().mean()
    assert abs(share - kept) < 4 * math.sqrt(kept * (1 - kept) / N)
    logs = module.evidence().log_likelihoods
    is_own = torch.eye(CLASSES, dtype=torch.bool)[module.known_classes]
    expected = torch.where(is_own, kept, (1 - kept) / (CLASSES - 1)).log().double()
    torch.testing.assert_close(logs, expected, rtol=1e-6, atol=0)
    assert module.node_posteriors().max() < 1  # a report is no class


def test_the_fingerprint_of_the_data_holds_the_labels():
    graph = planted()
    first, public = private(graph), EdgeListDataModule(graph, nodes=Nodes(attributes="from_graph"))
    graph = planted()
    graph.y[3] = (graph.y[3] + 1) % CLASSES
    other = private(graph)
    rows = [data.identity().rows for data in (first, public, other)]
    assert not rows[1]
    assert len({rows[0], rows[2]}) == 2


@pytest.mark.parametrize("few_labels", [N, N + 1])
def test_few_labels_get_a_warning(few_labels, monkeypatch, recwarn):
    monkeypatch.setattr(node_classes, "FEW_LABELS", few_labels)
    fitted(planted(), NodeNeighborVotes)
    said = [str(each.message) for each in recwarn if "private labels" in str(each.message)]
    assert len(said) == few_labels - N
    assert all("300 private labels are few" in each for each in said)


def refused(*arguments, **settings):
    with pytest.raises(dpg.CommandError) as error:
        dpg.fit(planted(), *arguments, epsilon=1.0, delta=1e-5, **settings)
    assert len(str(error.value).splitlines()) <= 5
    return str(error.value)


VOTES = "neighbor_votes"


@pytest.mark.parametrize(
    ("method", "settings", "said"),
    [
        (VOTES, {"classes": range(3)}, "has no budget for them\nset row_epsilon, such as 1"),
        (VOTES, {"row_epsilon": 1.0}, 'the classes private: labels="COLUMN", classes=["A", "B"]'),
        (VOTES, {"row_epsilon": 1.0, "classes": [0]}, "1 classes\nexpected the classes of"),
        (VOTES, {"row_epsilon": 1.0, "classes": [0, 0]}, "'0' twice"),
        (
            VOTES,
            {"row_epsilon": 1.0, "classes": range(3), "split_seed": 0},
            "set train_fraction as well",
        ),
        (
            "aggregation_perturbation",
            {"row_epsilon": 1.0, "classes": range(3)},
            "AggregationPerturbation does not protect labels\ntake NeighborVotes or",
        ),
        (
            "attribute_moments",
            {"row_epsilon": 1.0, "classes": range(3)},
            "AttributeMoments does not protect labels\ntake NeighborVotes or",
        ),
    ],
)
def test_refusals_name_the_way_out_and_leave_no_folder(method, settings, said, tmp_path):
    assert said in refused(method, out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_data_without_any_label_are_refused():
    graph = planted()
    graph.y = torch.full((N,), -1)
    with pytest.raises(dpg.CommandError, match="no node has a label in 'y'"):
        dpg.fit(graph, VOTES, epsilon=1.0, row_epsilon=1.0, classes=range(3))


def write(folder):
    """Write the planted graph as two files; one node has an animal that is none of the classes."""
    graph = planted()
    with (folder / "people.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", *graph.attribute_names, "animal"])
        animals = [NAMES[label] for label in graph.y.tolist()]
        animals[7] = "zebra"
        for node, row in enumerate(graph.x.int().tolist()):
            lines.writerow([node, *row, animals[node]])
    with (folder / "edges.csv").open("w", newline="") as file:
        pairs = graph.edge_index.T.tolist()
        csv.writer(file).writerows([["source", "target"], *([a, b] for a, b in pairs if a < b)])
    return graph


def test_the_command_line_runs_from_files_to_a_release_that_verifies(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    graph = write(tmp_path)
    words = ["--method", "neighbor_votes", "--epsilon", "1", "--privacy.delta", "1e-5", "--json"]
    words += ["--data.nodes.attributes", "people.csv", "--out", "run"]
    labels = ["--data.nodes.policy.animal", "private_label"]
    classes = ["--data.nodes.classes", ",".join(NAMES)]
    assert main(["fit", "edges.csv", *words, *labels, "--row-epsilon", "2"]) != 0
    assert "--data.nodes.classes a,b,c" in capsys.readouterr().err
    assert main(["fit", "edges.csv", *words, *labels, *classes]) != 0
    assert "set privacy.row_epsilon, such as 1" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert main(["fit", "edges.csv", *words, *labels, *classes, "--row-epsilon", "2"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["epsilon"], made["beside"][0]["epsilon"]) == (1.0, 2.0)
    assert main(["verify", "run"]) == 0
    release = tmp_path / "run" / "release"
    written = b"".join(path.read_bytes() for path in release.iterdir())
    assert b"zebra" not in written
    true = data_of_run("run").graph.y  # on the owner's side
    assert true[7] == -1
    assert torch.equal(true[8:], graph.y[8:])
    with np.load(release / "features.npz") as arrays:
        reports = torch.from_numpy(arrays["reported_classes"])
    assert 0.6 < float((reports == graph.y).double().mean()) < 0.95  # .79 are kept


def test_codes_that_are_equal_as_numbers_are_classes_of_their_own():
    table = AttributeTable("t", ["a", "b", "c"], {"region": ["07", "7", "8"]})
    found = private_labels(table, ["a", "b", "c"], {"region": "private_label"}, ["07", "7", "8"])
    assert len(set(found.class_numbers().tolist())) == 3
