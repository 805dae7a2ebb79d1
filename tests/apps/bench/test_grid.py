"""The plan of a benchmark has the expected fits, and changed settings give new jobs."""

import math

import networkx as nx
import pytest

from lightning_dpg.apps.bench import grid as grids
from lightning_dpg.apps.bench.grid import Grid, baselines_beside, read_methods
from lightning_dpg.apps.bench.tasks import GRAPH_LABELS, SINGLE_GRAPHS
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.run.configurations import conf_folder

GRAPH = from_networkx(nx.path_graph(4))


@pytest.fixture(scope="module")
def methods():
    return read_methods(["erdos_renyi", "netgan", "dp_netgan"])


def digests(grid):
    return {job.method: job.digest for job in grid.jobs()}


def test_other_settings_are_other_jobs(methods, monkeypatch):
    grid = Grid(methods, {"a": GRAPH}, [1.0], [0], 1e-6, SINGLE_GRAPHS)
    first = digests(grid)
    assert digests(grid) == first
    other = from_networkx(nx.star_graph(3))
    for changed in (
        grid._replace(data={"a": other}),
        grid._replace(seeds=[1]),
        grid._replace(data={"b": GRAPH}),
    ):
        assert set(digests(changed).values()).isdisjoint(first.values())
    monkeypatch.setattr(grids, "__version__", "another")
    assert set(digests(grid).values()).isdisjoint(first.values())


def test_methods_without_privacy_are_fitted_once(methods):
    data, epsilons = {"a": GRAPH, "b": GRAPH}, [0.5, 1.0, 2.0]
    jobs = Grid(methods, data, epsilons, range(2), 1e-3, SINGLE_GRAPHS).jobs()
    budgets = {}
    for job in jobs:
        budgets.setdefault(job.method, []).append(job.epsilon)
        settings = job.settings
        assert settings["privacy"]["epsilon"] == job.epsilon
        assert settings["seed_everything"] == job.run
        assert settings["data"]["init_args"]["name"] == job.graph
        untrained = job.method.endswith("(untrained)")
        assert (settings["trainer"]["max_steps"] == 0) == (job.role == "untrained") == untrained
    private, open_ = epsilons * 4, [math.inf] * 4
    assert budgets == {
        "erdos_renyi (baseline)": private,
        "netgan": open_,
        "netgan (untrained)": open_,
        "dp_netgan": private,
        "dp_netgan (untrained)": private,
    }
    deltas = {job.method: job.settings["privacy"]["delta"] for job in jobs}
    assert deltas["erdos_renyi (baseline)"] == 0  # pure, and stays so
    assert deltas["dp_netgan"] == 1e-3
    assert len({job.name for job in jobs}) == len(jobs)
    assert [job.run for job in jobs] == sorted(job.run for job in jobs)


@pytest.mark.parametrize(
    ("name", "is_local"),
    [("ldp_gw", True), ("local_scalars", True), ("ldp_gw_curated", False), ("size_kernel", False)],
)
def test_methods_of_local_privacy_have_a_baseline_of_their_own(name, is_local):
    beside = baselines_beside(read_methods([name]), GRAPH_LABELS)
    found = read_methods([name, *beside])
    jobs = Grid(found, {"a": GRAPH}, [1.0, 2.0], [0], 1e-6, GRAPH_LABELS).jobs()
    local = [(job.role, job.epsilon) for job in jobs if job.method == "local_scalars (baseline)"]
    assert local == [("baseline", 1.0), ("baseline", 2.0)] * is_local


def test_a_baseline_that_is_named_is_there_once(monkeypatch):
    monkeypatch.chdir(conf_folder().parent)
    found = read_methods(["conf/erdos_renyi.yaml", *SINGLE_GRAPHS.baselines])
    assert list(found) == ["erdos_renyi", "chung_lu"]
