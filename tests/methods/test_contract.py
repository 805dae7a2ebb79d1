"""Every exported method: extreme graphs, its release restored, shares that leave nothing."""

import copy
import functools
import inspect
import math
import re
import warnings
from collections import Counter
from typing import ClassVar

import networkx as nx
import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch_geometric.data import Data

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, GraphSetDataModule
from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.pair_space import apart
from lightning_dpg.interfaces import GraphSetRecords, PrivateColumns
from lightning_dpg.methods import (
    GraphFeatureRelease,
    NodeClassifier,
    PrivateModule,
    RandomizedResponse,
    Synthesizer,
)
from lightning_dpg.methods.constraints import POSITIVE, constraints_of
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.paid_weights import load_released
from tests.graphs import EXTREMES, edges_of
from tests.small_methods import METHODS, SHORT, made, marks_of, short_fits  # noqa: F401  # a fixture
from tests.training import quiet_trainer

DELTA = 1e-6
EPSILONS = (0.01, math.inf)
# Of trained methods, whose fits are slower; a finite one, so that there is noise.
TRAINED_EPSILON = 100.0
RICH = "small world"  # beside the extremes, a graph with something to learn
GRAPHS = EXTREMES | {RICH: nx.connected_watts_strogatz_graph(12, 4, 0.3, seed=0)}
SYNTHESIZERS = [name for name, method in METHODS.items() if issubclass(method, Synthesizer)]
LEARNERS = [name for name, method in METHODS.items() if issubclass(method, GraphFeatureRelease)]
# Shares of what other shares leave, or of another budget: with these they may add up to 1.
OF_THE_REST = {"value_share", "table_share", "structure_share"}


class AnyGraph(EdgeListDataModule):
    """Serves graphs that a file may not hold, but that are left when edges are held out."""

    has_private_columns = False

    def _read_graph(self):
        return apart(make_graph(edges_of(self.source), len(self.source)))

    @property
    def records(self):
        """The records, with public attributes for the methods that read them."""
        records = super().records
        source = torch.Generator().manual_seed(0)
        records.attributes = torch.rand(records.num_nodes, 3, generator=source)
        records.attribute_names = ["a", "b", "c"]
        records.graph.y = torch.arange(records.num_nodes) % 2  # of methods that learn classes
        if self.has_private_columns:
            rows = torch.arange(2 * records.num_nodes).view(-1, 2) % 3
            domains = {"region": ["north", "south", "other"], "age": ["0 to 9", "9 to 99", "other"]}
            records.private_columns = PrivateColumns(domains, rows)
        return records


def reads_one_graph(name):
    return METHODS[name].capabilities.reads is not GraphSetRecords


def pays_for_nothing(name):
    """Whether a method of these small settings protects nothing."""
    method = made(name, SHORT | {"num_nodes": 12})
    return not method.capabilities.adds_noise or method.hparams.get("noise_multiplier") == 0


@functools.cache
def epsilons(name):
    if pays_for_nothing(name):
        return [math.inf]
    return [TRAINED_EPSILON] if METHODS[name].capabilities.is_trained else EPSILONS


def labelled():
    """All graphs as one set; each label is that of several graphs."""
    graphs = [make_graph(edges_of(graph), len(graph)) for graph in GRAPHS.values()]
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([number % 2])
    return graphs


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory):
    """Some methods keep what they have computed in the folder of the run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("contract"))
        yield


@functools.cache
def fitted(name: str, graph: str | None, epsilon: float) -> PrivateModule | str:
    """A method after its fit on a graph, or on all of them as a set; its message if it refuses them.

    That has at most five lines, and comes before anything is booked.
    """
    torch.manual_seed(0)
    settings = SHORT | {"max_degree": 30}  # that of the star
    if graph is not None:
        num_nodes = len(GRAPHS[graph])
        settings |= {"num_nodes": num_nodes, "rank": min(2, num_nodes)}
    data = (
        GraphSetDataModule(labelled(), steps_per_epoch=2)
        if graph is None
        else AnyGraph(GRAPHS[graph], steps_per_epoch=2)
    )
    method, rows = None, None
    if METHODS[name].capabilities.learns_private_columns:
        data.has_private_columns, rows = True, epsilon
    try:
        method = made(name, settings)
        method._noise = NoiseSource(unsafe_seed=0)
        trainer = quiet_trainer(PrivacyAccountant(epsilon, DELTA, row_epsilon=rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of advice
            trainer.fit(method, data)
    except (MisconfigurationException, Refusal) as refusal:  # an accident in a library is none
        assert 1 <= len(str(refusal).splitlines()) <= 5, refusal
        assert method is None or not method.ledger.entries or pays_for_nothing(name), refusal
        return str(refusal)
    assert method.ledger.entries
    method.trainer = None
    return method


def check_simple(sample: Data, sizes: list[int]) -> None:
    """A graph of one of the sizes whose links have two ends and are there once."""
    edges = undirected_edges(sample)
    assert sample.num_nodes in sizes
    assert sample.num_edges == 2 * len(edges) == 2 * len(edges.unique(dim=0))
    assert (edges[:, 0] < edges[:, 1]).all()


def all_pairs(num_nodes):
    return torch.combinations(torch.arange(num_nodes)).view(-1, 2)


CLASSIFIERS = [
    pytest.param(name, graph, epsilon, id=f"{name}-{graph}-{epsilon:g}", marks=marks_of(name))
    for name, method in METHODS.items()
    if issubclass(method, NodeClassifier)
    for graph in EXTREMES
    for epsilon in epsilons(name)
]
ONE_GRAPH = [
    pytest.param(name, graph, epsilon, id=f"{name}-{graph}-{epsilon:g}", marks=marks_of(name))
    for name in SYNTHESIZERS
    if reads_one_graph(name)
    for graph in EXTREMES
    for epsilon in epsilons(name)
]
SETS = [
    pytest.param(name, epsilon, id=f"{name}-{epsilon:g}", marks=marks_of(name))
    for name in METHODS
    if not reads_one_graph(name)
    for epsilon in epsilons(name)
]


@pytest.mark.parametrize(("name", "graph", "epsilon"), ONE_GRAPH)
def test_extreme_graphs_give_a_simple_graph_and_finite_scores(name, graph, epsilon):
    method = fitted(name, graph, epsilon)
    if isinstance(method, str):
        return
    num_nodes = len(EXTREMES[graph])
    check_simple(method.sample(torch.Generator().manual_seed(0)), [num_nodes])
    assert method.score(all_pairs(num_nodes)).isfinite().all()


@pytest.mark.parametrize(("name", "graph", "epsilon"), CLASSIFIERS)
def test_extreme_graphs_give_probabilities_of_classes(name, graph, epsilon):
    method = fitted(name, graph, epsilon)
    if isinstance(method, str):
        return
    for found in (method.node_posteriors(), method.predict_proba(torch.rand(4, 3))):
        assert found.shape[1] == len(method.classes)
        torch.testing.assert_close(found.sum(1), torch.ones(len(found)))
    assert len(method.node_posteriors()) == len(EXTREMES[graph])


@pytest.mark.parametrize(("name", "epsilon"), SETS)
def test_extreme_graphs_of_a_set_give_simple_graphs_and_finite_scores(name, epsilon):
    method = fitted(name, None, epsilon)
    if isinstance(method, str):
        return
    sizes = [len(graph) for graph in GRAPHS.values()]
    if name in LEARNERS:
        assert all(tensor.isfinite().all() for tensor in method.embedding.values())
        for kernel in method.kernels(method.embedding, method.sizes):
            assert kernel.shape == (len(sizes), len(sizes))
            assert torch.from_numpy(kernel).isfinite().all()
        return
    drawn = method.sample_set(torch.Generator().manual_seed(0))
    assert [graph.num_nodes for graph in drawn] == sizes
    for graph in drawn:
        check_simple(graph, sizes)
    assert method.score(all_pairs(sum(sizes))).isfinite().all()


def drawn(method: PrivateModule) -> list[torch.Tensor]:
    """What anybody can make of a release: graphs and scores, or kernels."""
    if isinstance(method, GraphFeatureRelease):
        kernels = method.kernels(method.embedding, method.sizes)
        return [torch.from_numpy(kernel) for kernel in kernels] + list(method.embedding.values())
    if isinstance(method, NodeClassifier):
        source = torch.Generator().manual_seed(0)
        return [method.predict_proba(torch.rand(4, 3, generator=source)), method.node_posteriors()]
    graphs = [method.sample_edges(torch.Generator().manual_seed(seed)) for seed in range(3)]
    return [*graphs, method.score(all_pairs(len(GRAPHS[RICH])))]


@pytest.mark.parametrize("name", METHODS)
def test_released_state_restores_it(name):
    graph = RICH if reads_one_graph(name) else None
    fits = [fitted(name, graph, epsilon) for epsilon in epsilons(name)]
    method = fits[-1] if isinstance(fits[-1], PrivateModule) else fits[0]
    assert isinstance(method, PrivateModule), method
    torch.manual_seed(1)  # what is not restored is drawn anew
    fresh = METHODS[name](**method.hparams)
    load_released(fresh, copy.deepcopy(method.released_state()))
    ours, restored = drawn(method), drawn(fresh)
    assert sum(map(len, ours[:-1])) > 0, "nothing is drawn, so nothing is compared"
    assert len(ours) == len(restored)
    for one, other in zip(ours, restored, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-12)  # sums may round otherwise


def costs(entries):
    """Steps of each read, whose sensitivity may follow from earlier releases."""
    steps = Counter()
    for entry in entries:
        steps[entry.key, entry.relation, entry.event, entry.proof, entry.record] += entry.steps
    return steps


@pytest.mark.parametrize(
    "name", [name for name in METHODS if METHODS[name].plan is not PrivateModule.plan]
)
def test_what_is_planned_is_spent(name):
    graph = RICH if reads_one_graph(name) else None
    for epsilon in epsilons(name):
        method = fitted(name, graph, epsilon)
        if isinstance(method, PrivateModule):
            steps = max(entry.steps for entry in method.ledger.entries)
            assert costs(method.plan(Budget(epsilon, DELTA), steps)) == costs(method.ledger.entries)


def shares_of(name):
    """Defaults of the settings that are shares."""
    settings = inspect.signature(METHODS[name]).parameters
    return {key: settings[key].default for key in settings if key.endswith("_share")}


def refused(name, **shares):
    with pytest.raises((ValueError, MisconfigurationException), match="|".join(shares)) as refusal:
        made(name, SHORT | {"num_nodes": 12}, **shares)
    assert len(str(refusal.value).splitlines()) <= 5


@pytest.mark.parametrize("name", [name for name in METHODS if shares_of(name)])
def test_shares_that_leave_nothing_are_refused(name):
    shares = shares_of(name)
    for share, default in shares.items():
        for value in {0.0, 1.0, -0.1, math.nan} - {default}:  # a default of 0 buys nothing
            refused(name, **{share: value})
    together = shares.keys() - OF_THE_REST
    refused(name, **dict.fromkeys(together, 1 / len(together)))


def constraints(name):
    """Constraints of the settings that a method has."""
    declared = constraints_of(METHODS[name])
    return {
        key: declared[key] for key in inspect.signature(METHODS[name]).parameters if key in declared
    }


@pytest.mark.parametrize(
    ("name", "setting"), [(name, setting) for name in METHODS for setting in constraints(name)]
)
def test_settings_are_checked_before_anything_is_made_of_them(name, setting):
    words = re.escape(constraints(name)[setting].words)
    for value in (-1, math.nan, "no such value"):
        with pytest.raises(Refusal, match=rf"^{setting} must be {words}, got {value!r}"):
            made(name, SHORT | {"num_nodes": 12}, **{setting: value})


def test_each_constraint_names_a_setting():
    for declaring in {owner for method in METHODS.values() for owner in method.__mro__}:
        heirs = [method for method in METHODS.values() if issubclass(method, declaring)]
        known = {key for heir in heirs for key in inspect.signature(heir).parameters}
        assert vars(declaring).get("constraints", {}).keys() <= known


def test_a_class_of_a_user_keeps_the_constraints_of_its_bases():
    class Own(RandomizedResponse):
        constraints: ClassVar = {"factor": POSITIVE}

        def __init__(self, factor=1.0, shape="none"):
            super().__init__(9, shape)
            self.save_hyperparameters()

    assert Own(2.0).hparams == RandomizedResponse(9).hparams | {"factor": 2.0, "shape": "none"}
    with pytest.raises(Refusal, match="factor must be positive, got 0"):
        Own(0)
    with pytest.raises(Refusal, match="denoise must be one of none, spectral, got 'nmf'"):
        Own(shape="nmf")


def guarantee(method):
    """What a class promises, apart from its numbers, and whether it is that of a paper."""
    is_published = method.__name__.endswith("AsPublished")
    return (
        method.relation,
        method.capabilities.is_pure,
        method.capabilities.adds_noise,
        is_published,
    )


@pytest.mark.parametrize("name", METHODS)
def test_no_method_inherits_from_one_with_another_guarantee(name):
    method = METHODS[name]
    for base in set(METHODS.values()).intersection(method.__mro__):
        assert guarantee(base) == guarantee(method), base
