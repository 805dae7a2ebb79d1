"""Five methods on one graph through the command line: their total equals one computed by hand."""

import json
import math

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


def renyi_by_hand(entry, alpha):
    """Renyi divergence of all steps of a line of a journal, at an integer order."""
    if entry["mechanism"] == "pure":  # randomized response, the worst of its epsilon
        p = 1 / (1 + math.exp(-entry["epsilon"]))
        one = math.log(p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha))
    else:
        q, sigma = entry["sample_rate"], entry["noise_multiplier"]
        one = math.log(
            math.fsum(
                math.comb(alpha, k)
                * (1 - q) ** (alpha - k)
                * q**k
                * math.exp(k * (k - 1) / (2 * sigma**2))
                for k in range(alpha + 1)
            )
        )
    return entry["steps"] * one / (alpha - 1)


def epsilon_by_renyi(entries):
    """The sum of the Renyi divergences, converted once at the best order."""
    found = []
    for alpha in range(2, 31):
        total = math.fsum(renyi_by_hand(entry, alpha) for entry in entries)
        slack = math.log((alpha - 1) / alpha) - math.log(DELTA * alpha) / (alpha - 1)
        found.append(total + slack)
    return min(found)


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
    by_renyi, by_others = epsilon_by_renyi(lines), epsilon_by_distributions(lines)
    assert found["accountant"] == "PLD"
    assert found["spent"] == pytest.approx(by_others, rel=5e-3)
    assert by_others < by_renyi < sum(epsilon for _, epsilon, _ in RUNS.values())
    assert found["spent"] <= by_renyi <= 1.15 * found["spent"]
