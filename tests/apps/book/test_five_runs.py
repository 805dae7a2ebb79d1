"""Five methods on one graph through the command line: their total equals one computed by hand."""

import json

import networkx as nx
import pytest
import yaml

from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.report import summary
from lightning_dpg.main import main

DELTA = 1e-5
SMALL = {"embedding_dim": 8, "critic_dim": 8, "generator_dim": 8, "num_samples": 500}
RUNS = {  # settings of the method, and epsilon and delta of the run
    "BTER": ({}, 0.5, 0.0),
    "DPNetGAN": (SMALL | {"sample_rate": 0.25}, 2.0, 1e-6),
    "PrivCom": ({}, 2.0, 1e-6),
    "GaussianGraphKernel": ({"features": ["edges", "gk-c3"], "max_degree": 8}, 1.0, 1e-6),
    "ChungLu": ({}, 0.3, 0.0),
}


def epsilon_by_distributions(entries):
    """Privacy loss distributions of another library."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as distributions

    composed = distributions.identity()
    for entry in entries:
        if entry["mechanism"] == "gaussian":
            q = entry["sample_rate"]
            one = distributions.from_gaussian_mechanism(entry["noise_multiplier"], sampling_prob=q)
        else:
            of_pure = common.DifferentialPrivacyParameters(entry["epsilon"], 0.0)
            one = distributions.from_privacy_parameters(of_pure)
        composed = composed.compose(one.self_compose(entry["steps"]))
    return composed.get_epsilon_for_delta(DELTA)


def test_five_methods_spend_what_is_added_up_by_hand(tmp_path, monkeypatch):
    pytest.importorskip("dp_accounting", reason="dp_accounting is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", "sqlite:///book.db")
    graph = nx.planted_partition_graph(2, 25, 0.3, 0.05, seed=0)
    (tmp_path / "graph.txt").write_text("".join(f"{a} {b}\n" for a, b in graph.edges))
    assert main(["budget", "init"]) == 0
    total = ["--relation", "edge", "--epsilon", "6", "--delta", str(DELTA)]
    assert main(["budget", "register", "graph", "graph.txt", *total]) == 0
    for name, (settings, epsilon, delta) in RUNS.items():
        source = "SubgraphDataModule" if name == "GaussianGraphKernel" else "EdgeListDataModule"
        config = {
            "model": {"class_path": name, "init_args": settings},
            "data": {"class_path": source, "init_args": {"name": "graph.txt"}},
            "trainer": {"max_epochs": 3 if name == "DPNetGAN" else 1, "accelerator": "cpu"},
            "privacy": {"epsilon": epsilon, "delta": delta},
        }
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
        assert main(["fit", "--config", "run.yaml"]) == 0
    book = Book("sqlite:///book.db")
    found = summary(book, "graph")
    journals = [tmp_path / run["folder"] / "ledger.jsonl" for run in found["releases"]]
    lines = [json.loads(line) for path in journals for line in path.read_text().splitlines()]
    assert [run["method"] for run in found["releases"]] == list(RUNS)
    assert {line["sample_rate"] < 1 for line in lines} == {True, False}
    assert sum(line["steps"] for line in lines) == sum(
        entry["steps"] for run in found["releases"] for entry in run["entries"]
    )
    by_others = epsilon_by_distributions(lines)
    assert found["accountant"] == "PLD"
    assert found["spent"] == pytest.approx(by_others, rel=5e-3)
    assert found["spent"] < sum(epsilon for _, epsilon, _ in RUNS.values())
