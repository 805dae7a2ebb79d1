"""``compare`` on labels of graphs has correct rows and accuracies, and refuses bad input."""

import math

import networkx as nx
import numpy as np
import pytest
import yaml

from lightning_dpg.main import main
from lightning_dpg.metrics import kernel_svm
from lightning_dpg.metrics.kernel_svm import Accuracy
from tests.apps.bench.conftest import read_csv, without_processes
from tests.graphs import write_tu_set

GRAPHS = [nx.gnm_random_graph(10 + k % 3, 10 + 20 * (k % 2), seed=k) for k in range(44)]
LABELS = [k % 2 for k in range(len(GRAPHS))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of a private kernel, one without privacy and the baselines."""
    folder = tmp_path_factory.mktemp("labels")
    write_tu_set(folder / "tiny", GRAPHS, LABELS)
    write_tu_set(folder / "unlabelled", GRAPHS)
    private = {
        "model": {
            "class_path": "PrivateGraphKernel",
            "init_args": {"features": ["edges", "gk-c3"], "max_degree": 9},
        },
        "data": {"class_path": "TUGraphDataModule", "init_args": {"name": "planted_sets"}},
        "trainer": {"max_epochs": 1},
        "privacy": {"epsilon": 1.0, "delta": 0.0},
    }
    (folder / "private.yaml").write_text(yaml.safe_dump(private))
    with pytest.MonkeyPatch.context() as patch:
        without_processes(patch)
        network = Accuracy(0.75, math.nan, np.array([0.75]))
        patch.setattr(kernel_svm, "gin_cross_validated", lambda *_, seed: network)
        methods = ["--methods", str(folder / "private.yaml"), "weisfeiler_lehman"]
        rest = ["--epsilons", "1", "80", "--runs", "1", "--classify", "--out", str(folder / "out")]
        assert main(["compare", *methods, "--graphs", str(folder / "tiny"), *rest]) == 0
    return folder


def rows_of(folder, method, query="accuracy"):
    return [row for row in read_csv(folder) if row["method"] == method and row["query"] == query]


def test_all_rows_are_there_and_the_largest_budget_tells_the_labels(folder):
    found = {row["method"] for row in read_csv(folder)}
    baselines = {"node_kernel (baseline)", "size_kernel (baseline)"}
    exact = "size_kernel (baseline, exact number of edges)"
    assert found == {"private", "weisfeiler_lehman", *baselines, exact}
    private = {(row["epsilon"], row["run"]): row for row in rows_of(folder, "private")}
    assert set(private) == {(e, r) for e in ("1.0", "80.0") for r in "0"}
    assert float(private["80.0", "0"]["synthetic"]) > 0.9  # edge counts alone reveal them
    assert float(rows_of(folder, exact)[0]["synthetic"]) == 1.0
    for row in rows_of(folder, "node_kernel (baseline)"):
        assert float(row["real"]) == 0.5  # the majority
        assert row["spent_epsilon"] == "0.0"
    assert float(rows_of(folder, "private", "gin_accuracy_real")[0]["real"]) == 0.75


def test_folds_are_drawn_anew_for_each_run():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(len(LABELS), 2)) + 0.8 * np.array(LABELS)[:, None]
    gram = np.exp(-((points[:, None] - points[None]) ** 2).sum(-1))
    graphs = [type("Labelled", (), {"y": label}) for label in LABELS]
    accuracies = {
        kernel_svm.compare_labels(graphs, [gram], seed=seed)["accuracy"].synthetic
        for seed in range(4)
    }
    assert len(accuracies) > 1


def test_report_shows_no_figure_of_features(folder):
    page = (folder / "out" / "report.html").read_text()
    assert page.count("Features have no figure") == page.count('alt="Adjacency, original: ') == 2
    assert page.count('alt="Adjacency') == 2


def test_sets_without_labels_and_methods_of_graphs_are_refused(folder, refusal):
    rest = ["--epsilons", "1", "--out", str(folder / "refused")]
    private = str(folder / "private.yaml")
    unlabelled = ["--graphs", str(folder / "unlabelled")]
    assert "no labels" in refusal(main(["compare", "--methods", private, *unlabelled, *rest]))
    both = ["--methods", private, "erdos_renyi_set"]
    assert "apart" in refusal(main(["compare", *both, "--graphs", str(folder / "tiny"), *rest]))
    assert not (folder / "refused").exists()
