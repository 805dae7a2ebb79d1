"""``audit`` measures epsilon, detects mistakes, and refuses bad arguments."""

import json

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.apps.audit.canaries import CanarySites, spread_non_edges
from lightning_dpg.apps.audit.scores import attackers
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.main import main
from lightning_dpg.methods import base
from lightning_dpg.privacy import mechanisms
from tests.planting import plant

WITH_DELTA = ("dp_netgan", "privcom")


@pytest.fixture
def audit(here):
    """Exit code and audit.json of a command line."""

    def run(*args):
        code = main(["audit", *args, "--out", "out"])
        assert sorted(path.name for path in here.iterdir()) == ["out"]  # no run is left
        return code, json.loads((here / "out" / "audit.json").read_text())

    return run


@pytest.mark.parametrize(
    ("args", "epsilon", "delta", "canaries", "least"),
    [
        # 0.95 of the budget is for the reports, of which 500 are guessed from.
        (("--config", "randomized_response_spectral", "--canaries", "1000"), 1.0, 0.0, 1000, 0.2),
        (("--config", "neighbor_votes", "--view", "white_box"), 1.0, 1e-4, 100, 0.0),
        # Stars of five edges and four other nodes take half of 200 nodes.
        (("--config", "neighbor_votes_node"), 8.0, 1e-4, 11, 0.0),
    ],
    ids=["RandomizedResponse", "NeighborVotes", "NodeNeighborVotes"],
)
def test_honest_methods_pass(audit, capsys, args, epsilon, delta, canaries, least):
    # A confidence at which one test in a thousand fails of itself.
    code, result = audit(*args, "--privacy.epsilon", str(epsilon), "--confidence", "0.999")
    assert code == 0
    assert 0.9 * epsilon < result["claimed_epsilon"] <= epsilon
    assert least <= result["epsilon_lower_bound"] <= result["claimed_epsilon"]
    assert (result["delta"], result["confidence"]) == (delta, 0.999)
    assert result["canaries"] == canaries
    assert result["guesses"] in (result["canaries"] // 4 * 2, result["canaries"] // 8)
    assert result["refuted"] is False and result["fits"] == 1
    printed = capsys.readouterr().out
    assert "verdict: not refuted" in printed
    assert "not private" in printed


def test_missing_noise_is_caught_by_the_release(audit, monkeypatch, capsys):
    """Released degrees are moved at random by as much as noise of that scale leaves uncertain."""
    silent = lambda noise, rates: np.zeros(len(rates), dtype=np.int64)
    monkeypatch.setattr(mechanisms, "_draw_discrete_laplace", silent)
    many = ("--runs", "20", "--canaries", "20")
    code, result = audit("--config", "chung_lu", "--privacy.epsilon", "0.2", *many)
    assert code == 1
    assert result["view"] == "black_box"
    assert result["epsilon_lower_bound"] > result["claimed_epsilon"] == 0.2
    assert "verdict: REFUTED" in capsys.readouterr().out


def test_an_exact_number_of_edges_that_is_called_private_is_caught(audit, monkeypatch):
    def exact(read, value, ledger, noise, law=None, *, also=()):
        ledger.spend(read, *also)
        return ledger.publish(read.key, value)

    monkeypatch.setattr(base, "pay", exact)
    runs = ("--runs", "8", "--confidence", "0.8")
    code, result = audit("--config", "erdos_renyi", "--privacy.epsilon", "0.2", *runs)
    assert code == 1
    assert (result["canaries"], result["guesses"], result["correct"]) == (1, 8, 8)
    # Four of four in both worlds: the rates are bounded by the fourth root of 0.1.
    rate = 0.1 ** (1 / 4)
    assert result["epsilon_lower_bound"] == pytest.approx(np.log(rate / (1 - rate)))


def test_an_infinite_claim_cannot_be_refuted(audit, capsys):
    code, result = audit("--config", "randomized_response", "--privacy.epsilon", ".inf")
    assert code == 0
    assert result["claimed_epsilon"] == "inf"
    assert result["correct"] == result["guesses"] == 18
    assert "nothing is claimed" in capsys.readouterr().out


def test_the_scored_releases_are_named_each_with_what_is_claimed_up_to_it(audit, capsys):
    runs = ("--runs", "4", "--canaries", "9", "--confidence", "0.999")
    code, result = audit("--config", "dk2", "--view", "white_box", *runs)
    assert code == 0
    assert (result["fits"], result["canaries"], result["unscored"]) == (4, 36, [])
    names = ["number of edges", "ordered degrees", "degree of each node", "joint degrees"]
    assert result["scored"] == [one["release"] for one in result["apart"]] == names
    claims = [one["claimed_epsilon"] for one in result["apart"]]
    assert 0 < claims[0] < claims[1] < claims[2] < claims[3] == result["claimed_epsilon"]
    printed = capsys.readouterr().out
    assert "scored: 4 of 4 reads" in printed
    assert all(f"  {name}: " in printed for name in names)


def test_a_release_that_no_score_reads_is_named(audit, monkeypatch, capsys):
    monkeypatch.delitem(attackers.SCORES, "ordered_degrees")
    _, result = audit("--config", "chung_lu", "--view", "white_box", "--confidence", "0.999")
    assert result["unscored"] == ["ordered degrees"]
    assert "scored: 2 of 3 reads, not: ordered degrees" in capsys.readouterr().out


def test_missing_noise_of_one_release_is_caught_and_named(audit, monkeypatch, capsys):
    plant(monkeypatch, 0, ["degree_mixing"])
    runs = ("--view", "white_box", "--runs", "8", "--canaries", "10")
    code, result = audit("--config", "bter", "--privacy.epsilon", "0.5", *runs)
    assert code == 1 and result["refuted"] is True
    assert result["epsilon_lower_bound"] <= result["claimed_epsilon"]  # it drowns in the others
    name = "edges between classes of degrees"
    assert f"loses more than it claims, by {name}\n" in capsys.readouterr().out


def test_equal_scores_lead_to_many_runs(audit, capsys):
    code, result = audit("--config", "erdos_renyi", "--privacy.epsilon", "1")
    assert code == 0 and result["epsilon_lower_bound"] < 1
    assert "try 200 runs" in capsys.readouterr().out


def sites(graph):
    edges = torch.tensor(list(graph.edges), dtype=torch.long).view(-1, 2)
    whole, nodes = make_graph(edges, len(graph)), torch.arange(len(graph))
    return CanarySites(whole, whole, torch.zeros_like(nodes), nodes, len(nodes), lambda pairs: None)


@settings(max_examples=30)
@given(st.integers(5, 40), st.floats(0, 0.6), st.integers(0, 9), st.data())
def test_canaries_are_different_pairs_without_an_edge_spread_over_the_nodes(n, p, seed, data):
    graph = nx.gnp_random_graph(n, p, seed=seed)
    available = n * (n - 1) // 2 - graph.number_of_edges()
    if available < 2:
        return
    count = data.draw(st.integers(1, available // 2))
    pairs = spread_non_edges(sites(graph), count, torch.Generator().manual_seed(seed))
    found = {tuple(pair) for pair in pairs.tolist()}
    assert len(found) == len(pairs) == count
    assert all(i < j and not graph.has_edge(i, j) for i, j in found)
    if not graph.number_of_edges() and count <= n // 2:
        assert len(set(pairs.flatten().tolist())) == 2 * count


def test_a_dense_graph_has_no_room():
    with pytest.raises(CommandError, match="more than half of the 0 pairs"):
        spread_non_edges(sites(nx.complete_graph(6)), 1, torch.Generator())


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "audit FILE --epsilon 1, or audit RUN"),
        (["--config", "chung_lu", "--canaries", "3"], "at least 4 in all fits together, got 3"),
        (["--config", "chung_lu", "--canaries", "3000"], "set --canaries to 1336 or less"),
        (["--config", "chung_lu", "--runs", "3"], "--runs must be at least 4"),
        (["--config", "chung_lu", "--runs", "4", "--canaries", "0"], "in all fits together, got 0"),
        (["--config", "chung_lu", "--confidence", "1"], "between 0 and 1"),
        (["--config", "chung_lu", "--out", "file"], "--out file: not a folder"),
    ],
)
def test_mistakes(tmp_path, fails, args, said):
    (tmp_path / "file").touch()
    assert said in fails("audit", *args)


@pytest.mark.parametrize("view", ["black_box", "white_box"])
@pytest.mark.parametrize(
    "config",
    [
        "bter",
        "chung_lu",
        "dk2",
        "dp_netgan",
        "erdos_renyi",
        "hrg",
        "privcom",
        "privcom_rr",
        "privgraph",
        "randomized_response",
        "randomized_response_degrees",
        "randomized_response_spectral",
    ],
)
def test_no_method_loses_more_than_it_claims(audit, config, view):
    budget = ["--privacy.epsilon", "1", "--privacy.delta", "1e-6" if config in WITH_DELTA else "0"]
    if config == "dp_netgan":  # of which others take minutes, with the gradients of all canaries
        budget += ["--trainer.max_epochs", "1"]
    code, _ = audit("--config", config, "--view", view, "--confidence", "0.999", *budget)
    assert code == 0
