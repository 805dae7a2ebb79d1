"""Contracts of a method that reads the edges of one graph, and no more.

They prove nothing: a method needs a proof of each sensitivity, and a test of it on all small graphs.
"""

import copy
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.privacy.events import LedgerEntry, Pure
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.run.method_choice import choose_method

GRAPHS = [
    nx.complete_graph(10),
    nx.star_graph(11),
    nx.connected_watts_strogatz_graph(12, 4, 0.3, seed=0),
]


def pytest_generate_tests(metafunc: Any) -> None:
    """Run each contract for each method that was named."""
    metafunc.parametrize("name", metafunc.config.option.dpg_method)


def fit(name: str, graph: nx.Graph, out: Path) -> dpg.Release:
    """Fit a method within a budget that has room for all of its reads."""
    pure = choose_method(name, {}).method.capabilities.is_pure
    return dpg.fit(graph, name, epsilon=10.0, delta=0.0 if pure else 1e-6, out=out)


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_release_keeps_its_plan_and_budget_and_draws_simple_graphs(
    name: str, graph: nx.Graph, tmp_path: Path
) -> None:
    """Reads are those of the plan of the class, the epsilon is theirs, and a copy draws the same."""
    release = fit(name, graph, tmp_path / "run")
    verification = release.verify()
    assert verification, verification
    again = dpg.open_release(tmp_path / "run", type(release.method))
    drawn, edges = release.sample(seed=0), undirected_edges(release.sample(seed=0))
    assert torch.equal(drawn.edge_index, again.sample(seed=0).edge_index)
    assert drawn.num_nodes == len(graph)
    assert drawn.num_edges == 2 * len(edges) == 2 * len({*map(tuple, edges.tolist())})
    assert release.edge_score(torch.combinations(torch.arange(len(graph)))).isfinite().all()


@pytest.mark.parametrize("graph", GRAPHS)
def test_one_edge_moves_each_read_by_its_sensitivity_and_nothing_else(
    name: str, graph: nx.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A neighbor is given the noisy values of the graph: what differs then was released without noise."""
    if choose_method(name, {}).method.capabilities.is_trained:
        pytest.skip("steps of gradients are tried by a dry run in each fit")
    paid, pay = list[tuple[LedgerEntry, Any, Any]](), PrivateModule.pay
    seen = list[str]()

    def first(method: PrivateModule, read: LedgerEntry, value: Any, *law: Any, **also: Any) -> Any:
        private = copy.deepcopy(value)
        paid.append((read, private, pay(method, read, value, *law, **also)))
        return paid[-1][2]

    def second(method: PrivateModule, read: LedgerEntry, value: Any, *law: Any, **also: Any) -> Any:
        known, theirs, released = paid[len(seen)]
        seen.append(read.key)
        assert read == known, "the price of a read depends on private edges"
        if not law and "law" not in also:  # a law of its own has another distance
            moved = (value - theirs).double().norm(1 if isinstance(read.event, Pure) else 2)
            assert moved <= read.sensitivity * (1 + 1e-9), f"{read.name} moves by {moved:g}"
        pay(method, read, value, *law, **also)
        return released

    fewer = graph.copy()
    fewer.remove_edge(*next(iter(fewer.edges)))
    states = []
    for number, (each, watched) in enumerate(((graph, first), (fewer, second))):
        with monkeypatch.context() as patch:
            patch.setattr(PrivateModule, "noise", NoiseSource(unsafe_seed=0))
            patch.setattr(PrivateModule, "pay", watched)
            states.append(fit(name, each, tmp_path / str(number)).method.released_state())
    assert len(seen) == len(paid) > 0
    for key, value in states[0].items():
        assert torch.equal(value, states[1][key]), f"{key} depends on private edges"
