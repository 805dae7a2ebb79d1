"""Every private method keeps its sensitivity, ledger and secrecy, as shipped.

Each configuration of a finite budget joins by its file, and has to add its ledger below.
"""

import csv
import functools
import inspect
import json
import math
import shutil
import sys
from collections import defaultdict
from itertools import accumulate, product
from types import SimpleNamespace
from unittest.mock import ANY

import networkx as nx
import numpy as np
import pytest
import pytorch_lightning as pl
import torch
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from opacus.accountants.analysis import rdp
from pytorch_lightning.loggers import CSVLogger
from scipy.optimize import brentq
from scipy.sparse import load_npz
from scipy.special import ndtr
from torch_geometric.utils import subgraph

from lightning_dpg import callbacks, datamodules, methods
from lightning_dpg.classes import is_abstract
from lightning_dpg.datamodules.records import EdgeRecords
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph import communities, spectral
from lightning_dpg.graph.graph import adjacency, make_graph
from lightning_dpg.graph.pair_space import pair_space
from lightning_dpg.interfaces import TransferBounds
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.papers.xiao2014.dendrogram import branch_edges, branch_pairs, log_likelihoods
from lightning_dpg.privacy import mechanisms, reports
from lightning_dpg.privacy import pay as paying
from lightning_dpg.privacy import selection as exponential
from lightning_dpg.privacy.dpsgd import DPSGD
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.noise import NoiseSource, secret_generator
from lightning_dpg.release.reader import open_release
from lightning_dpg.release.verify import verify
from lightning_dpg.run.configurations import shipped_configs
from lightning_dpg.run_folder import NOT_PRIVATE
from tests.closed_forms import gaussian_sigma
from tests.small_methods import short_fits  # noqa: F401  # a fixture
from tests.training import quiet_trainer
from tests.transfers import BOUNDS, TransferDataModule

N = 14
SIZES = (1, 3, 10)  # of the parts of the nodes that make a set
MAX_BATCH = 100
WORDS = torch.eye(7).repeat(2, 1)  # public attributes, the same of every graph
SMALL_GAN = {"latent_dim": 4, "generator_dim": 8, "critic_dim": 8, "embedding_dim": 8}
SMALL_VAE = {"latent_dim": 4, "feature_dim": 4, "hidden_dim": 8, "public_pairs": 64}
SMALL_GW = {"width": 3, "num_clients": 2, "local_epochs": 1}
SMALL = {
    "DPNetGAN": SMALL_GAN | {"batch_size": 8, "num_samples": 200},
    "DPNetGANAsPublished": SMALL_GAN | {"batch_size": 8, "num_samples": 200},
    "DPGVAE": SMALL_VAE,
    "DPGGAN": SMALL_VAE,
    "HRG": {"steps_per_node": 100},
    "CentralGromovWasserstein": SMALL_GW,
    "LDPGromovWasserstein": SMALL_GW,
    "AttributeEncoder": {"iterations": 4, "rank": 4, "public_pairs": 64},
    "AttributeMoments": {"rank": 4},
    "NodeAttributeMoments": {"max_degree": 13, "rank": 4},
    "NodeDegrees": {"max_degree": 13},
    "AggregationPerturbation": {"rank": 4, "encoder_steps": 2, "classifier_steps": 2},
}

# Name, mechanism, sensitivity, epsilon or noise multiplier, steps at the budget of the file, written
# by hand. The DP-SGD of two epochs has the noise multiplier that spends the rest, see below.
LEDGERS = {
    "erdos_renyi": [("number of edges", "pure", 1, 1.0, 1)],
    "chung_lu": [
        ("number of edges", "pure", 1, 0.05, 1),
        ("ordered degrees", "pure", 2, 0.25, 1),
        ("degree of each node", "pure", 2, 0.7, 1),
    ],
    "bter": [
        ("number of edges", "pure", 1, 0.05, 1),
        ("ordered degrees", "pure", 2, 0.2, 1),
        ("degree of each node", "pure", 2, 0.4, 1),
        ("edges between classes of degrees", "pure", 1, 0.05, 1),
        ("wedges and closed wedges by degree", "pure", 8, 0.3, 1),
    ],
    "privgraph": [
        ("number of edges", "pure", 1, 0.05, 1),
        ("ordered degrees", "pure", 2, 0.0625, 1),
        ("degree of each node", "pure", 2, 0.1375, 1),
        ("communities", "pure", 3, 0.6, 1),
        ("edges within and between communities", "pure", 1, 0.05, 1),
        ("wedges by equal or different communities of their ends", "pure", 4, 0.05, 1),
        (
            "edges between classes of degrees, within communities and between them",
            *("pure", 1, 0.05, 1),
        ),
    ],
    "dk2": [
        ("number of edges", "pure", 1, 0.05, 1),
        ("ordered degrees", "pure", 2, 0.0625, 1),
        ("degree of each node", "pure", 2, 0.1375, 1),
        ("joint degrees", "pure", 4, 0.75, 1),
    ],
    "hrg": [
        ("number of edges", "pure", 1, 0.05, 1),
        ("dendrogram", "pure", 49 * math.log(49) - 48 * math.log(48), 0.5, 1),
        ("edges divided by each branch", "pure", 1, 0.45, 1),
    ],
    "privcom": [
        ("number of edges", "pure", 1, 0.16, 1),
        ("ordered degrees", "pure", 2, 0.2, 1),
        ("degree of each node", "pure", 2, 0.44, 1),
        # The root of 2 times half the length of the rows of a flat basis of 4 vectors.
        ("products", "gaussian", 0.378, ("all the rest", 0.98 / 24), 24),
        ("eigenvalues", "gaussian", ANY, ("all the rest", 0.02), 1),
    ],
    "papers/zhang2020/privcom_katz": [
        ("number of edges", "pure", 1, 0.16, 1),
        ("ordered degrees", "pure", 2, 0.2, 1),
        ("degree of each node", "pure", 2, 0.44, 1),
        # The root of 2 times 1 / 100 + 2 / 200 + 3 / 400, in four digits.
        ("products", "gaussian", 0.0389, ("all the rest", 0.98 / 24), 24),
        ("eigenvalues", "gaussian", 0.0389, ("all the rest", 0.02), 1),
    ],
    "privcom_rr": [
        ("number of edges", "pure", 1, 0.08, 1),
        ("ordered degrees", "pure", 2, 0.1, 1),
        ("degree of each node", "pure", 2, 0.22, 1),
        ("edges", "pure", 1, 1.6, 1),
    ],
    "randomized_response": [("number of edges", "pure", 1, 0.25, 1), ("edges", "pure", 1, 4.75, 1)],
    "randomized_response_degrees": [
        ("number of edges", "pure", 1, 0.15, 1),
        ("ordered degrees", "pure", 2, 0.45, 1),
        ("degree of each node", "pure", 2, 1.35, 1),
        ("edges", "pure", 1, 1.05, 1),
    ],
    "randomized_response_spectral": [
        ("number of edges", "pure", 1, 0.25, 1),
        ("edges", "pure", 1, 4.75, 1),
    ],
    "dp_netgan": [
        ("number of edges", "pure", 1, 0.2, 1),
        ("degrees", "gaussian", math.sqrt(2), "sigma of 0.5", 1),
        ("critic gradient", "gaussian", 1.0, "the rest", 20),
    ],
    "erdos_renyi_set": [("number of edges of each graph", "pure", 1, 1.0, 1)],
    "pooled_set": [
        ("number of edges of each graph", "pure", 1, 0.65, 1),
        # In units of 1 / 1024: two degrees change by 1, and a triangle count by its maximum.
        ("ordered degrees, pooled", "pure", 2048, 0.15, 1),
        ("triangles, pooled", "pure", 1024, 0.15, 1),
        ("largest components, pooled", "pure", 1024, 0.05, 1),
    ],
    "dpgvae": [
        ("number of edges of each graph", "pure", 1, 2.4, 1),
        ("sums over neighbors, hop 1", "gaussian", math.sqrt(2), "sigma of 0.3", 1),
        ("gradient of edges", "gaussian", 5.0, "the rest", 20),
    ],
}
LEDGERS |= {
    # One report of each of the 10 rows of the largest graph.
    "ldp_gw": [("reports of embeddings", "pure", 10, 8.0, 1)],
    "local_scalars": [("scalars of each graph", "pure", 1, 4.0, 1)],
    "ldp_gw_curated": [
        (f"sums over neighbors, hop {hop}", "gaussian", math.sqrt(2), "sigma of 0.5", 1)
        for hop in (1, 2)
    ],
}
# Rows have length 1 at most, apart from rounding in single precision.
UNIT = pytest.approx(1.0, rel=1e-5)
LEDGERS |= {
    # A fifth of epsilon, of which count and sequence take a fifth each.
    "attribute_encoder": [
        ("number of edges", "pure", 1, 0.04, 1),
        ("ordered degrees", "pure", 2, 0.04, 1),
        ("degree of each node", "pure", 2, 0.12, 1),
        ("gradient of edges by attributes", "gaussian", 1.0, "the rest", 20),
    ],
    "attribute_moments": [
        ("number of edges", "pure", 1, 0.04, 1),
        ("ordered degrees", "pure", 2, 0.04, 1),
        ("degree of each node", "pure", 2, 0.12, 1),
        ("moment of attributes over edges", "gaussian", UNIT, ("all the rest", 1), 1),
    ],
    "attribute_moments_node": [
        ("number of edges", "pure", 13, 0.8, 1),
        (
            "moment of attributes over edges",
            "gaussian",
            pytest.approx(13.0, rel=1e-5),
            ("all the rest", 1),
            1,
        ),
    ],
}
LEDGERS["neighbor_votes"] = [
    ("number of edges", "pure", 1, 0.02, 1),
    # .15 of what the count leaves for each moment, and a third of the rest for each table.
    (
        "moment of attributes over edges",
        "gaussian",
        pytest.approx(1.0, rel=1e-5),
        ("all the rest", 0.15),
        1,
    ),
    (
        "moment of attributes and neighbors' beliefs",
        "gaussian",
        pytest.approx(2.0, rel=1e-5),
        ("all the rest", 0.15),
        1,
    ),
    *(
        (
            f"votes of neighbors, table {number}",
            "gaussian",
            pytest.approx(math.sqrt(2), rel=1e-5),
            ("all the rest", 0.7 / 3),
            1,
        )
        for number in (1, 2, 3)
    ),
]
LEDGERS["aggregation_perturbation"] = LEDGERS["ldp_gw_curated"]  # two hops of the whole budget
# Five edges, and twice the length of the clip of 5 / 6.
LEDGERS["neighbor_votes_node"] = [
    (
        f"moment of attributes and clipped {name} of neighbors",
        "gaussian",
        pytest.approx(20 / 3, rel=1e-5),
        ("all the rest", share),
        1,
    )
    for name, share in (("attributes", 0.3), ("votes", 0.7))
]
# Twice the bound on degrees.
LEDGERS["node_degrees"] = [("nodes of each degree or more", "pure", 26, 4.0, 1)]
# A share of .15 for the mixing of the values 0, 1 and other: the noise that it buys is more than a row
# needs, and what a row saves buys tables. 5 of 6 cells have one of two values.
ROW_MIXING = (2 * 4 * 1024 + 5) * 0.15 / (2458 + 5)
STRUCTURE_OF_SIDES = [
    (name, "pure", sensitivity, 0.85 * epsilon, 1)
    for name, _, sensitivity, epsilon, _ in LEDGERS["chung_lu"]
]


def mixing_of_sides(sensitivity, of_row):
    """Tables and mixing where 85 % of the edges' budget is left to the structure."""
    spent, name = (
        of_row * 0.15 / sensitivity,
        "weights of edges by the values of their ends, in 1/1024",
    )
    return [
        ("nodes by private columns and classes of released degrees", "pure", 2, 1 - spent, 1),
        (name, "pure", sensitivity, 0.15, 1),
        (name, "pure", of_row, spent, 1),
    ]


OF_SIDES = {
    # Of 3 x 3 cells all but one have one of two first or one of two second values. A bipartite graph
    # has a column on each side, with one matrix and one table of a node.
    case: [*STRUCTURE_OF_SIDES, *mixing_of_sides(2458 + 8, 2 * 4 * 1024 + 8)]
    for case in ("attributed, directed", "attributed, bipartite")
}
LEDGERS |= OF_SIDES
LEDGERS["attributed"] = [
    *(
        (name, "pure", sensitivity, 0.85 * epsilon, 1)
        for name, _, sensitivity, epsilon, _ in LEDGERS["bter"]
    ),
    ("nodes by private columns and classes of released degrees", "pure", 2, 1 - ROW_MIXING, 1),
    # 3 * 4 / (4 + 1) in units of 1 / 1024, rounded up.
    ("weights of edges by the values of their ends, in 1/1024", "pure", 2458 + 5, 0.15, 1),
    (
        "weights of edges by the values of their ends, in 1/1024",
        "pure",
        2 * 4 * 1024 + 5,
        ROW_MIXING,
        1,
    ),
]
# Half of epsilon for the structure. A quarter each for amounts and times, of which .15 for the numbers
# of transfers; 10 transfers of a relation count, of 500 at most, in units of 1 / 100.
LEDGERS["transfers"] = [
    *(
        (name, "pure", sensitivity, 0.5 * epsilon, 1)
        for name, _, sensitivity, epsilon, _ in LEDGERS["bter"]
    ),
    ("pairs by the number of their transfers", "pure", 1, 0.0375, 1),
    ("transfers by amount and classes of payer and payee", "pure", 10, 0.05, 1),
    ("sums of amounts by classes of payer and payee, in 1/100", "pure", 10 * 50_000, 0.1, 1),
    ("nodes by degree and sum of their amounts", "pure", 4, 0.1, 1),
    ("transfers by hour of the week", "pure", 10, 0.031875, 1),
    ("transfers by day, week or four weeks", "pure", 10, 0.053125, 1),
    ("pairs by the day, week or four weeks of their first transfer", "pure", 1, 0.053125, 1),
    ("gaps between transfers of a pair", "pure", 9, 0.074375, 1),
]
OF_ROWS = {"row_tables", "column_mixing_rows"}
"""Keys of the reads of private columns."""
RELATIONS = {
    "node_degrees": "node",
    "ldp_gw": "local_graph",
    "local_scalars": "local_graph",
    "attribute_moments_node": "node",
    "neighbor_votes_node": "edges_of_node",
}
LEDGERS["dpggan"] = LEDGERS["dpgvae"]  # its discriminator reads no edge
LEDGERS["private_kernel"] = [
    ("number of edges", "pure", 1, 2 / (1 + 42 ** (2 / 3)), 1),
    # A flip changes 3 edges of the truncated graph, and each is in 2 (8 - 1) triples at most.
    ("graphlets of 3 nodes", "pure", 3 * 14, 2 * 42 ** (2 / 3) / (1 + 42 ** (2 / 3)), 1),
]
# The root of the sum of both sensitivities.
LEDGERS["private_kernel_gaussian"] = [("counts", "gaussian", math.sqrt(43), "sigma of 1", 1)]
LEDGERS["size_kernel"] = [("number of edges", "pure", 1, 1.0, 1)]

NOTHING_PRIVATE = {"node_kernel"}
"""Configurations whose method reads public facts only: there is nothing that could move."""


@functools.cache
def parsed(name):
    """A shipped configuration, which nobody changes."""
    return yaml.safe_load(shipped_configs()[name].read_text())


def is_private(name):
    """Whether a configuration is one of an exported method within a finite budget."""
    config = parsed(name)
    if "/" in name or "model" not in config:
        return False
    exported = config["model"]["class_path"] in methods.__all__ and name not in NOTHING_PRIVATE
    return exported and math.isfinite(config["privacy"]["epsilon"])


CONFIGS = [name for name in shipped_configs() if is_private(name)]
CONFIGS.append("papers/zhang2020/privcom_katz")  # the only one of its class; its graph is built in
# The exact number of edges is public there, and each example has its own fake.
PUBLISHED = ("dp_netgan", {"frozen_embedding": False})
KERNEL = {"length": 3, "max_degree": 6}
CASES = {name: (name, {}) for name in CONFIGS} | {
    "kernel, walks": ("private_kernel", KERNEL | {"features": ["nodes", "edges", "w"]}),
    "kernel, graphlets": ("private_kernel", KERNEL | {"features": ["edges", "gk-c4"]}),
    "kernel, paper mode": ("private_kernel", KERNEL | {"features": ["edges", "w", "gk-c3"]}),
    "ldp_gw, padded": ("ldp_gw", {"max_nodes": 12}),
    # The largest graph teaches there, and noise does not drown the rows.
    "ldp_gw, private rounds": (
        "ldp_gw_curated",
        {"weights": "private", "seed": 3, "max_update_norm": 0.01},
    ),
    "dp_netgan, paper mode": PUBLISHED,
    "privcom, paper mode": ("privcom", {"hops": 1}),
    "neighbor_votes, private labels": ("neighbor_votes", {}),
    "neighbor_votes_node, private labels": ("neighbor_votes_node", {}),
}
CASES |= {
    f"attributed, {structure}": ("attributed", {"structure": structure})
    for structure in ("privgraph", "erdos_renyi")  # which selects, and has no degrees
}
CASES |= dict.fromkeys(OF_SIDES, ("attributed", {"structure": "chung_lu"}))
ONE_TRANSFER = "transfers, one transfer"
CASES |= {
    ONE_TRANSFER: ("transfers", {"unit": "transfer"}),
    "transfers, no degrees": ("transfers", {"structure": "erdos_renyi", "max_transfers": 2}),
}
TRANSFERS = {case for case, (name, _) in CASES.items() if name == "transfers"}
PRIVATE_LABELS = {case for case in CASES if case.endswith("private labels")}
PRIVATE_COLUMNS = {case for case, (name, _) in CASES.items() if name == "attributed"}
PRIVATE_ROWS = sorted(PRIVATE_LABELS | PRIVATE_COLUMNS)
OTHER_METHODS = {
    "dp_netgan, paper mode": "DPNetGANAsPublished",
    "privcom, paper mode": "PrivComAsPublished",
    "kernel, paper mode": "PrivateGraphKernelAsPublished",
    "ldp_gw, private rounds": "LDPGromovWasserstein",
}
"""Methods of cases that take another one than their configuration."""

# All are loaded before a test replaces a function that their modules import.
EXPORTED = [getattr(methods, name) for name in methods.__all__]

SETS = {
    case
    for case, (name, _) in CASES.items()
    if issubclass(
        getattr(datamodules, parsed(name)["data"]["class_path"]), datamodules.GraphSetDataModule
    )
}

LEARNERS = {
    case
    for case, (name, _) in CASES.items()
    if issubclass(
        getattr(methods, parsed(name)["model"]["class_path"]),
        methods.GraphFeatureRelease | methods.NodeClassifier,
    )
}


def method_of(case):
    """Class of a case, and its arguments: those of its configuration that it has, and its own."""
    name, options = CASES[case]
    model = parsed(name)["model"]
    name, given = model["class_path"], model.get("init_args", {})
    if case in OTHER_METHODS:
        name = OTHER_METHODS[case]
        takes = inspect.signature(getattr(methods, name)).parameters
        given = {key: value for key, value in given.items() if key in takes}
    return getattr(methods, name), given | SMALL.get(name, {}) | options


def known(case, **options):
    """Those of some settings that the method of a case has."""
    takes = inspect.signature(method_of(case)[0]).parameters
    return {name: value for name, value in options.items() if name in takes}


@functools.cache
def draws_batches(case):
    """Whether the steps of a case read Poisson samples, at a rate of the method's own."""
    method, arguments = method_of(case)
    module = method(**arguments | known(case, num_nodes=N))
    return module.batch_request().kind == "poisson"


@functools.cache
def is_cut(case):
    """Whether a case draws batches, and as many as the data module serves."""
    return draws_batches(case) and not known(case, iterations=4)


def mark_of(case):
    """Cases of papers are slow where a test tries what all methods share."""
    return () if ".methods." in method_of(case)[0].__module__ else pytest.mark.slow


every_case = pytest.mark.parametrize("case", CASES)
core_cases = pytest.mark.parametrize(
    "case", [pytest.param(case, marks=mark_of(case)) for case in CASES]
)


def relation_of(case):
    """Relation that the method of a case protects."""
    return Relation.TRANSFER if case == ONE_TRANSFER else method_of(case)[0].relation


def row_epsilon_of(case, epsilon):
    """Budget of the rows of a case."""
    if case in PRIVATE_COLUMNS:
        return epsilon or parsed("attributed")["privacy"]["row_epsilon"]
    return 2.0 if case in PRIVATE_LABELS else None


def fit(case, graph, *, extra=(), epsilon=None, noise_seed=None, rows=None, **changes):
    """Fit a case on a graph and give the trainer; ``changes`` are of data and trainer.

    Rows are private labels, or a private column, if a case has one. Four steps of each that draws batches: what holds for them holds for more.
    """
    config = parsed(CASES[case][0])
    method, arguments = method_of(case)
    if "num_nodes" in inspect.signature(method).parameters:
        arguments |= {"num_nodes": graph.num_nodes}
    few = {"steps_per_epoch": 2} if is_cut(case) else {}
    changes = {"max_epochs": 2, "options": {}} | few | changes
    pl.seed_everything(0, verbose=False)
    module = method(**arguments | changes.pop("options"))
    if noise_seed is not None:
        module._noise = NoiseSource(unsafe_seed=noise_seed)
    trainer = quiet_trainer(
        *extra,
        callbacks.PrivacyAccountant(
            epsilon or config["privacy"]["epsilon"],
            config["privacy"]["delta"],
            row_epsilon=row_epsilon_of(case, epsilon),
        ),
        max_epochs=changes.pop("max_epochs"),
        default_root_dir=changes.pop("folder", None),
        **changes.pop("trainer", {}),
    )
    data = getattr(datamodules, config["data"]["class_path"])
    if "nodes" in config["data"]["init_args"]:
        graph.x = WORDS
        if issubclass(method, methods.NodeClassifier | methods.Attributed):
            graph.y = torch.arange(N) % 2 if rows is None else rows
    if case in PRIVATE_LABELS:
        labels = {"policy": {"y": "private_label"}, "classes": "0,1"}
        changes["nodes"] = config["data"]["init_args"]["nodes"] | labels
    if case in PRIVATE_COLUMNS:
        column = {"private_columns": "y", "domains": {"y": ["0", "1"]}, "names": "ids"}
        changes["nodes"] = {"attributes": "from_graph"} | column
    if case in OF_SIDES:
        changes["kind"] = case.split()[-1]
        graph = of_sides(graph, changes["kind"])
    if changes.get("kind") == "bipartite":
        column = {"private_columns": "y,z", "domains": {"y": ["0", "1"], "z": [0, 0.5, 1]}}
        changes["nodes"] |= column | {"right_columns": "z"}
    given = dict(config["data"]["init_args"])
    if case in TRANSFERS:
        data, _ = TransferDataModule, (given.pop("name"), given.pop("columns"))
        bounds = TransferBounds(500.0, BOUNDS.window)
        changes |= {"graph": graph, "bounds": bounds, "number": number_of(case)}
    else:
        given["name"] = graph
    data = data(**given | changes)
    if case in SETS:
        data.read_graphs = lambda: parts(graph)  # as in files, and unlike lists, some may be empty
    trainer.fit(module, data)
    return trainer


def of_sides(graph, kind):
    """A directed or a bipartite graph whose last record comes and goes with that of a graph.

    In the directed one the reverse of this arc is there, and so are those of others. In the bipartite
    one nodes of even numbers are left.
    """
    pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].T
    if kind == "directed":
        back = pairs[(pairs[:, 0] % 3 == 0) & (pairs[:, 1] < N - 1)].flip(1)
        arcs = torch.cat([pairs, back, torch.tensor([[N - 1, N - 2]])])
        found = pair_space(kind, N).graph(arcs, graph.node_names)
        order = torch.arange(N)
    else:
        order = torch.cat([torch.arange(0, N, 2), torch.arange(1, N, 2)])
        cross = pairs[(pairs.sum(1) % 2) == 1]
        found = pair_space(kind, N, N // 2).graph(order.argsort()[cross].sort(1).values)
    found.y = graph.y[order]
    found.x = graph.x
    if kind == "bipartite":  # a column of right nodes, too
        found.x = torch.cat([graph.x, graph.y[:, None].float()], 1)[order]
        found.attribute_names = [*map(str, range(7)), "z"]
    return found


def number_of(case):
    """Numbers of transfers of edges; where one transfer is protected, the last edge has one."""
    return (lambda u, v: 1 if u == N - 2 else 1 + (u + v) % 4) if case == ONE_TRANSFER else None


def parts(graph):
    """A set of graphs: the nodes in their order, without the edges between two parts."""
    graphs = []
    for nodes in torch.arange(N).split(SIZES):
        inside, _ = subgraph(nodes, graph.edge_index, relabel_nodes=True, num_nodes=N)
        graphs.append(make_graph(inside.T, len(nodes)))
        graphs[-1].y = torch.tensor([len(nodes) == 3]).long()
    return graphs


def random_graph(num_edges, seed):
    return from_networkx(nx.gnm_random_graph(N, num_edges, seed=seed))


LAWS = (
    mechanisms.normal_noise,
    mechanisms.integer_noise,
    mechanisms.randomized_response,
    reports.multi_bit,
    reports.piecewise,
    exponential.choose_in_turns,
    exponential.choose_by_chain,
    reports.report_labels,
)


class Transcript:
    """What was paid for in a first run; a second run is given the same values.

    Both runs then see equal noisy values, so that whatever else differs has read the private graph.
    """

    def __init__(self, monkeypatch):
        self.calls, self.first, self.second, self.outputs = 0, [], None, []
        self.states = {}
        # Nearly all nodes of the small graphs here are hubs, which are to choose in passes nevertheless.
        monkeypatch.setattr(communities, "_MOST_HUBS", 1.0)
        for law in LAWS:
            exchanged = self._turns if law is exponential.choose_in_turns else labeled
            replace_everywhere(monkeypatch, law, exchanged(law))
        replace_everywhere(monkeypatch, paying.pay, self._paid(paying.pay))
        monkeypatch.setattr(DPSGD, "backward", self._backward(DPSGD.backward))
        # Noise by known seeds goes by the place of an example, which the trial of a sum refuses.
        monkeypatch.setattr(PrivateTraining, "dry_run", lambda *_: None)

    def start_second(self):
        self.calls, self.second = 0, []

    def exchange(self, kind, terms, value):
        """Note a value and give the one of the first run; ``terms`` must be public."""
        record = (self.calls, kind, terms, value)
        if self.second is None:
            self.first.append(record)
            return value
        known = self.first[len(self.second)]
        assert known[:3] == record[:3]
        self.second.append(record)
        return known[3]

    def moved(self, relation):
        """Distance between the two values of each call, and its sensitivity under a relation."""
        assert len(self.first) == len(self.second) > 0
        distances, declared = defaultdict(float), {}
        for (call, kind, terms, ours), (*_, theirs) in zip(self.first, self.second, strict=True):
            declared[call] = terms.get("by_relation", {relation: terms["sensitivity"]}).get(
                relation, 0
            )
            if kind == "randomized_response":
                distances[call] += len(set(ours.tolist()) ^ set(theirs.tolist()))
            elif kind == "multi_bit":
                rows = int((ours != theirs).any(dim=1).sum())
                distances[call] += rows * terms["reports_per_row"]
            elif kind in ("piecewise", "report_labels"):
                distances[call] += int((ours != theirs).sum())
            elif kind in ("normal_noise", "backward"):
                distances[call] += float((ours - theirs).double().norm())
            else:
                scales = torch.tensor(terms.get("scales", 1))
                distances[call] += float(((ours - theirs).abs() / scales).sum())
        return [(distances[call], declared[call]) for call in declared]

    def _paid(self, original):
        def pay(read, value, ledger, noise, law=None, *, also=()):
            self.calls += 1
            given, law = law, paying.noise_of(read) if law is None else law
            kind = getattr(law, "kind", None)
            public = {"sensitivity": read.sensitivity, "read": read.to_dict()}
            public["by_relation"] = {each.relation: each.sensitivity for each in (read, *also)}
            if kind is not None:
                public |= law.public
            if isinstance(value, torch.Tensor) and kind not in (None, "choose_in_turns"):
                shape = () if kind == "randomized_response" else tuple(value.shape)
                value = self.exchange(kind, public | {"shape": shape}, value.clone())
            utility = _UTILITIES.get(kind)
            edges = _chain_edges(value) if kind == "choose_by_chain" else None
            released = original(read, value, ledger, noise, given, also=also)
            if utility is not None:
                # The second run gets what the first one chose: how likely does it make either graph?
                released = self.states.setdefault(self.calls, released)
                self.exchange(kind, public, torch.tensor(utility(released, value, edges)))
            self.outputs.append(released)
            return released

        return pay

    def _turns(self, original):
        def choose_in_turns(read, stops, utilities):
            def exchanged(chosen, stop):
                counts, offsets = utilities(chosen, stop)
                public = {"sensitivity": read.sensitivity, "read": read.to_dict()}
                public |= {"turn": plain([chosen, stop, offsets]), "stops": list(stops)}
                return self.exchange("choose_in_turns", public, counts), offsets

            return labeled(original)(read, stops, exchanged)

        return choose_in_turns

    def _backward(self, original):
        def mechanism(dpsgd, clipped_sum, parameters, *, entry, expected_size, **others):
            self.calls += 1
            terms = {"entry": entry.to_dict(), "expected_size": expected_size}
            terms["sensitivity"] = entry.sensitivity

            def exchanged(max_grad_norm):
                assert max_grad_norm == entry.sensitivity
                total = clipped_sum(max_grad_norm)
                flat = torch.cat([total[name].flatten() for name in parameters])
                pieces = self.exchange("backward", terms, flat).split(
                    [total[name].numel() for name in parameters]
                )
                return {
                    name: piece.view_as(total[name])
                    for name, piece in zip(parameters, pieces, strict=True)
                }

            original(
                dpsgd, exchanged, parameters, entry=entry, expected_size=expected_size, **others
            )
            self.outputs.append(torch.cat([p.grad.flatten() for p in parameters.values()]))

        return mechanism


def _chain_edges(dendrogram):
    adjacent = enumerate(dendrogram._adjacent)
    edges = [(i, j) for i, bits in adjacent for j in range(i) if bits >> j & 1]
    return np.array(edges, dtype=int).reshape(-1, 2)


def _likelihood(chosen, dendrogram, edges):
    counts = branch_edges(chosen.numpy(), edges)
    return log_likelihoods(counts, branch_pairs(chosen.numpy())).sum()


_UTILITIES = {"choose_by_chain": _likelihood}


def labeled(original):
    """A law that says which one it is, and its public arguments by name."""

    def build(*arguments, **terms):
        law = original(*arguments, **terms)

        def draw(value, noise):
            return law(value, noise)

        given = inspect.signature(original).bind(*arguments, **terms).arguments
        shown = {name: value for name, value in given.items() if not callable(value)}
        draw.kind = original.__name__
        draw.public = dict(zip(shown, plain(shown.values()), strict=True))
        return draw

    return build


def replace_everywhere(monkeypatch, original, other):
    """Replace a function in all modules that use it, its own module included."""
    for module in users(original, len(sys.modules)):
        monkeypatch.setattr(module, original.__name__, other)


@functools.cache
def users(function, _num_modules):
    """Modules of ours that have a function under its name, searched anew where one was imported."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("lightning_dpg.") and getattr(module, function.__name__, 0) is function
    ]


def plain(values):
    """Convert public arguments to comparable values."""
    return [value.tolist() if isinstance(value, torch.Tensor) else value for value in values]


def same_coins(monkeypatch):
    """Give the records of a batch the same secret coins in both runs."""
    replace_everywhere(monkeypatch, secret_generator, lambda: torch.Generator().manual_seed(0))


def align_rows(monkeypatch, name):
    """Make the k-th row of a draw the same, however many rows are drawn."""
    draw = getattr(torch, name)

    def drawn(*size, generator=None, **options):
        if generator is None or len(size) < 2:
            return draw(*size, generator=generator, **options)
        assert size[0] <= MAX_BATCH
        return draw(MAX_BATCH, *size[1:], generator=generator, **options)[: size[0]]

    monkeypatch.setattr(torch, name, drawn)


def test_all_private_methods_are_here():
    # LightningModules are no ABCs: abstract methods are marked, and forbid nothing.
    concrete = {
        cls.__name__
        for cls in EXPORTED
        if issubclass(cls, PrivateModule) and cls is not PrivateModule
        if not is_abstract(cls)
    }
    complete = [name for name in shipped_configs() if "/" not in name and "model" in parsed(name)]
    configured = {parsed(name)["model"]["class_path"] for name in complete}
    others = {method_of(case)[0].__name__ for case in CASES}
    published = {name for name in concrete if name.endswith("AsPublished")}  # cases, if anything
    names = sorted(concrete - configured - others - published)
    assert not names, (
        f"{names[0]} has no configuration: add one to conf/methods, see CONTRIBUTING.md"
    )
    assert not set(LEDGERS) - set(CONFIGS) - set(OF_SIDES), (
        "ledgers of configurations that are no longer there"
    )


@every_case
@pytest.mark.parametrize(
    "num_edges", [20, *(pytest.param(size, marks=pytest.mark.slow) for size in (3, 80))]
)
def test_one_edge_moves_what_mechanisms_are_given_by_their_sensitivity(
    case, num_edges, monkeypatch
):
    for name in ("rand", "randn"):
        align_rows(monkeypatch, name)
    same_coins(monkeypatch)
    more = random_graph(num_edges, seed=num_edges)
    pairs = more.edge_index[:, more.edge_index[0] < more.edge_index[1]].T
    # The nodes are renamed so that the edge that comes or goes is the last record.
    moved = pairs[num_edges // 2]
    order = torch.cat([torch.tensor([i for i in range(N) if i not in moved]), moved])
    renamed = order.argsort()[pairs].sort(dim=1).values
    more = make_graph(renamed, N)
    is_last = (renamed == torch.tensor([N - 2, N - 1])).all(dim=1)
    fewer = make_graph(renamed[~is_last], N)
    moves = False
    for graphs in ((more, fewer), (fewer, more)):
        with monkeypatch.context() as patch:
            transcript = Transcript(patch)
            for graph in graphs:
                if graph is not graphs[0]:
                    transcript.start_second()
                steps = {"max_epochs": 1}
                options = {}
                if draws_batches(case):  # all records, so that both runs draw the same
                    own_steps = known(case, iterations=3)  # the number is a setting of the method
                    steps |= {} if own_steps else {"steps_per_epoch": 3}
                    # A bound below the norm of an edge's gradient in a set.
                    norm = {"max_grad_norm": 0.1} if case in SETS else {}
                    options = known(case, num_edges=20, **norm) | own_steps | {"sample_rate": 1.0}
                fit(case, graph, noise_seed=1, options=options, **steps)
            for distance, sensitivity in transcript.moved(relation_of(case)):
                assert distance <= sensitivity * (1 + 1e-5)
                moves |= distance > 0
    assert moves


@pytest.mark.parametrize("case", PRIVATE_ROWS)
def test_one_row_moves_what_mechanisms_are_given_by_their_sensitivity(case, monkeypatch):
    graph, rows = random_graph(20, 0), torch.arange(N) % 2
    hub = int(torch.bincount(graph.edge_index[0]).argmax())
    moves = False
    for value in (1 - int(rows[hub]), 7):  # another value, and one that is not in the domain
        other = rows.clone()
        other[hub] = value
        with monkeypatch.context() as patch:
            transcript = Transcript(patch)
            fit(case, graph, noise_seed=1, rows=rows)
            transcript.start_second()
            fit(case, graph, noise_seed=1, rows=other)
            for distance, sensitivity in transcript.moved(Relation.ATTRIBUTES):
                assert distance <= sensitivity
                moves |= distance > 0
    assert moves


def test_mixing_that_only_edges_pay_for_is_found(monkeypatch):
    honest = methods.Attributed.pay

    def cheap(method, read, value, law=None, *, also=()):
        return honest(method, read, value, law)

    monkeypatch.setattr(methods.Attributed, "pay", cheap)
    with pytest.raises(AssertionError, match="<="):
        test_one_row_moves_what_mechanisms_are_given_by_their_sensitivity("attributed", monkeypatch)
    with pytest.raises(ValueError, match="is longer than"):
        test_ledger_of_a_run_is_the_list_written_by_hand("attributed")


def test_a_domain_that_is_read_from_the_data_is_found(monkeypatch, tmp_path):
    honest = datamodules.base.private_columns_of

    def values_that_occur(table, nodes, domains):
        columns = honest(table, nodes, domains)
        names = [columns.domains["y"][value] for value in columns.values.unique().tolist()]
        return columns._replace(domains={"y": names})

    monkeypatch.setattr(datamodules.base, "private_columns_of", values_that_occur)
    with pytest.raises(AssertionError):
        test_apart_from_the_mechanisms_nothing_knows_which_graph_it_was(
            "attributed", monkeypatch, tmp_path
        )


ROW_TABLES = (torch.arange(N) % 2, torch.tensor([5, 0] + [1] * (N - 2)))
"""Quite different labels, of which the second has one that is none of the classes."""


def dense_eigsh(operator, k, **options):
    values, vectors = np.linalg.eigh(operator @ np.eye(N))
    return values[-k:], vectors[:, -k:]


class PublicState(pl.Callback):
    """State that the rest of the program may read at the end of a run."""

    def on_fit_end(self, trainer, pl_module):
        logged = {k: float(v) for k, v in trainer.callback_metrics.items()}
        self.known = {
            "logged": {k: v for k, v in logged.items() if not k.startswith("nonprivate/")},
            "steps": trainer.global_step,
            "random state": torch.get_rng_state().numpy().tobytes(),
            "ledger": pl_module.ledger.state_dict(),
            "assumptions": pl_module.assumptions,
        }


@core_cases
def test_apart_from_the_mechanisms_nothing_knows_which_graph_it_was(case, monkeypatch, tmp_path):
    """Another graph, whose mechanisms are given the values of the first: all else must be equal."""
    # ARPACK goes on from a state of its own where a small graph stops it, and so from the first run.
    monkeypatch.setattr(spectral, "eigsh", dense_eigsh)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # midnight may come between the fits
    transcript, ends = Transcript(monkeypatch), []
    sizes, val_fraction = ((30, 30), 0.0) if "paper" in case else ((20, 45), 0.2)
    for seed, size in enumerate(sizes):
        if seed:
            transcript.start_second()
        state, folder = PublicState(), tmp_path / str(seed)
        writer = callbacks.ReleaseWriter(num_graphs=2)
        changes = {"folder": folder} | ({} if case in SETS else {"val_fraction": val_fraction})
        graph = from_networkx(nx.gnm_random_graph(N, size, seed=seed))
        rows = ROW_TABLES[seed] if case in PRIVATE_ROWS else None
        fit(case, graph, extra=[state, writer], noise_seed=1, rows=rows, **changes)
        files = {path.name: path.read_bytes() for path in (folder / NOT_PRIVATE).iterdir()}
        ends.append(state.known | files)
    assert len(transcript.first) == len(transcript.second)
    num_files = 6 if case in LEARNERS else 11
    num_files += (folder / NOT_PRIVATE / "node_attributes.npz").is_file()
    num_files += 2 * (case in PRIVATE_COLUMNS | TRANSFERS)  # a table of each graph
    assert len(ends[0]) == 5 + num_files
    different = [name for name in ends[0] if ends[0][name] != ends[1][name]]
    assert not different


@pytest.mark.parametrize("case", ["bter", "dp_netgan", "dpgvae", "ldp_gw", "attribute_encoder"])
def test_run_folders_of_two_graphs_differ_in_nonprivate_figures_only(case, monkeypatch, tmp_path):
    """Journal, checkpoint, settings, and the names and sizes of all files, beside the release."""
    transcript, ends = Transcript(monkeypatch), []
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    for seed, size in enumerate((20, 45)):
        if seed:
            transcript.start_second()
        folder = tmp_path / "run"  # the same for both: a checkpoint names its folder
        trainer = {"logger": CSVLogger(folder, name=None), "enable_checkpointing": True}
        extra = [callbacks.ReleaseWriter()]
        if case not in SETS:
            extra.append(callbacks.GraphStatistics())
        graph = from_networkx(nx.gnm_random_graph(N, size, seed=seed))
        fit(case, graph, extra=extra, noise_seed=1, folder=folder, trainer=trainer)
        files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
        ends.append({name: content(path) for name, path in files.items()})
        shutil.rmtree(folder)
    names = " ".join(ends[0])
    assert all(name in names for name in ("ledger.jsonl", ".ckpt", "hparams.yaml", "metrics.csv"))
    assert set(ends[0]) == set(ends[1])
    different = [name for name in ends[0] if ends[0][name] != ends[1][name]]
    assert not [name for name in different if "/figures/nonprivate-" not in name]


def content(path):
    """Content of a file, without the columns that no guarantee covers."""
    if path.name != "metrics.csv":
        return path.read_bytes()
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if not k.startswith("nonprivate/")} for row in rows]


class Secret(torch.Tensor):
    """Private edges that raise an error when they are read without permission."""

    may_be_read = False

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        is_moved = function is torch.Tensor.to
        if not (cls.may_be_read or is_moved):
            raise AssertionError(f"private edges were read by {function}")
        with torch._C.DisableTorchFunctionSubclass():
            result = function(*args, **kwargs or {})
        return result.as_subclass(cls) if is_moved else result


class Guard(pl.Callback):
    """From the start of a fit on, only the reads of the method's own steps are let through.

    What these steps may do with their reads is the matter of the test above. Before, the accountant
    compares delta with the number of edges, and data modules refuse records that they must not have.
    """

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def on_fit_start(self, trainer, pl_module):
        data = trainer.datamodule
        graphs = data.graphs if hasattr(data, "graphs") else (data.graph, data.train_graph)
        for graph in graphs:
            graph.edge_index = graph.edge_index.as_subclass(Secret)
        data.edges = data.edges.as_subclass(Secret)
        columns = getattr(data, "private_columns", None)
        if columns is not None:
            data.private_columns = columns._replace(values=columns.values.as_subclass(Secret))
        for owner, name in (
            (pl_module, "on_fit_start"),
            (pl_module, "training_step"),
            (EdgeRecords, "__init__"),
            (EdgeRecords, "__len__"),
            (EdgeRecords, "__getitem__"),
        ):
            self.monkeypatch.setattr(owner, name, self.reader(getattr(owner, name)))

    def reader(self, function):
        def reads(*args):
            before, Secret.may_be_read = Secret.may_be_read, True  # one step may call another
            try:
                result = function(*args)
            finally:
                Secret.may_be_read = before
            if function.__name__ == "__getitem__":
                return result._replace(data=result.data.as_subclass(Secret))
            return result

        return reads


@core_cases
def test_private_edges_are_read_in_training_steps_only(case, monkeypatch, tmp_path):
    writer = callbacks.ReleaseWriter()
    extra = [Guard(monkeypatch), writer]
    trainer = fit(case, random_graph(30, 0), extra=extra, folder=tmp_path, epsilon=20.0)
    data, module = trainer.datamodule, trainer.lightning_module.eval()
    with pytest.raises(AssertionError, match="private edges were read"):
        len(data.edges)
    trainer.datamodule = None
    del data
    assert not verify(tmp_path / "release").faults  # it is what the class and its plan say
    rebuilt = open_release(tmp_path / "release").method
    if case in LEARNERS:
        if isinstance(module, methods.NodeClassifier):
            assert torch.equal(rebuilt.predict_proba(WORDS), module.predict_proba(WORDS))
            with np.load(tmp_path / "release" / "features.npz") as released:
                assert np.array_equal(released["posteriors"], module.node_posteriors())
            return
        kernels = rebuilt.kernels(rebuilt.embedding, rebuilt.sizes)
        assert np.array_equal(kernels, module.kernels(module.embedding, module.sizes))
        with np.load(tmp_path / "release" / "features.npz") as released:
            assert np.array_equal(released["features"], module.features)
        return
    pairs = torch.combinations(torch.arange(N))
    # By another library: noise may leave a graph without edges, which is no input of ours.
    released = load_npz(tmp_path / "release" / "synthetic-0.npz")
    with torch.no_grad():
        for method in (module, rebuilt):
            drawn = method.sample(torch.Generator().manual_seed(0))
            assert (adjacency(drawn) != released).nnz == 0
        assert torch.equal(rebuilt.score(pairs), module.score(pairs))


@pytest.mark.parametrize(
    "case", ["erdos_renyi", "dp_netgan", "privcom", "dpgvae", "private_kernel"]
)
def test_private_values_are_caught_by_the_guard(case, monkeypatch):
    """The guard is no dummy: a method that reads at the end of its fit is found out."""

    class Reader(pl.Callback):
        def on_train_end(self, trainer, pl_module):
            trainer.datamodule.edges.sum()

    with pytest.raises(AssertionError, match="private edges were read"):
        fit(case, random_graph(30, 0), extra=[Guard(monkeypatch), Reader()])


def ledger_by_hand(name, entries):
    """Rows of a configuration in ``LEDGERS``; ``entries`` name those that are missing."""
    keys = ", ".join(entry.key for entry in entries)
    assert name in LEDGERS, (
        f"conf/methods/{name}.yaml has no ledger yet: add LEDGERS[{name!r}] to {__file__}, a row "
        "(name, mechanism, sensitivity, epsilon or noise multiplier, steps) for each read, worked "
        f"out by hand and not copied from plan()\nthe run books the keys {keys}, in this order"
    )
    return LEDGERS[name]


def test_a_missing_ledger_is_asked_for_by_the_keys_of_its_rows():
    entries = [
        SimpleNamespace(key="halves", epsilon=0.12345),
        SimpleNamespace(key="edges", epsilon=1),
    ]
    with pytest.raises(AssertionError, match=r"add LEDGERS\['halved'\]") as asked:
        ledger_by_hand("halved", entries)
    assert "keys halves, edges" in str(asked.value)
    assert "0.12345" not in str(asked.value)  # pytest may append all of LEDGERS


@pytest.mark.parametrize("name", [*CONFIGS, *OF_SIDES])
def test_ledger_of_a_run_is_the_list_written_by_hand(name):
    budget = parsed(CASES[name][0])["privacy"]
    steps = {"steps_per_epoch": 10} if is_cut(name) else {}
    options = known(name, iterations=20) if draws_batches(name) else {}
    ledger = fit(name, random_graph(30, 0), options=options, **steps).lightning_module.ledger
    sigma = gaussian_sigma(budget["epsilon"], budget["delta"]) if budget["delta"] else None
    booked = []
    for entry, by_hand in zip(ledger.entries, ledger_by_hand(name, ledger.entries), strict=True):
        is_given = entry.event.mechanism in ("pure", "approximate")
        amount = entry.event.pure_epsilon if is_given else entry.event.noise_multiplier
        booked.append((entry.name, entry.event.mechanism, entry.sensitivity, amount, entry.steps))
        match by_hand[3]:
            case ("all the rest", part):  # of its zCDP parameter, for Gaussian noise alone
                paid = [entry for entry in ledger.entries if entry.event.mechanism == "pure"]
                expected = gaussian_rest(paid, budget) / math.sqrt(part)
            case "the rest":  # Renyi DP asks for more noise than the ledger does
                spent = spent_beside(ledger.entries[:-1], budget, 0.1, by_hand[4])
                assert spent(2 * amount) < budget["epsilon"] <= spent(amount / (1 + 1e-3))
                assert 0.99 * budget["epsilon"] < ledger.headline(budget["delta"])[0]
                expected = amount
            case str(words) if words.startswith(
                "sigma at "
            ):  # a share of epsilon, and all of delta
                share = float(words.removeprefix("sigma at "))
                expected = gaussian_sigma(share * budget["epsilon"], budget["delta"])
            case str(words):  # a share of the budget's zCDP parameter, 1 / (2 sigma ** 2)
                expected = sigma / math.sqrt(float(words.removeprefix("sigma of ")))
            case amount:
                expected = amount
        assert booked[-1] == (*by_hand[:3], pytest.approx(expected, rel=1e-3), by_hand[4])
        relation = "attributes" if entry.key in OF_ROWS else RELATIONS.get(name, "edge")
        assert entry.relation == relation
        assert entry.event.total_delta == (
            budget["delta"] if entry.event.mechanism == "approximate" else 0
        )
        assert entry.event.sample_rate == (0.1 if by_hand[3] == "the rest" else 1.0)


def gaussian_rest(paid, budget):
    """Noise multiplier of one Gaussian release that spends what pure ones leave.

    Randomized response is the worst of pure releases: all sums of its losses are written out.
    """

    def excess(sigma):
        mu, delta = 1 / sigma, 0.0
        for signs in product((-1, 1), repeat=len(paid)):
            losses = [
                sign * entry.event.pure_epsilon for sign, entry in zip(signs, paid, strict=True)
            ]
            chance = math.prod(1 / (1 + math.exp(-loss)) for loss in losses)
            epsilon = budget["epsilon"] - sum(losses)
            kept = math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
            delta += chance * (ndtr(mu / 2 - epsilon / mu) - kept)
        return delta - budget["delta"]

    return brentq(excess, 0.5, 5)


def spent_beside(entries, budget, sample_rate, steps):
    """Epsilon of DP-SGD beside other releases by its noise multiplier, composed by opacus."""
    orders = [1 + x / 10 for x in range(1, 100)] + list(range(11, 200))
    other = 0
    for entry in entries:
        if entry.event.mechanism == "gaussian":
            other = other + rdp.compute_rdp(
                q=1.0, noise_multiplier=entry.event.noise_multiplier, steps=1, orders=orders
            )
        else:  # that of randomized response, the worst of its epsilon
            p = 1 / (1 + math.exp(-entry.event.pure_epsilon))
            other = (
                other
                + torch.tensor(
                    [
                        math.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
                        for a in orders
                    ]
                ).numpy()
            )

    def epsilon(sigma):
        own = rdp.compute_rdp(q=sample_rate, noise_multiplier=sigma, steps=steps, orders=orders)
        return rdp.get_privacy_spent(orders=orders, rdp=own + other, delta=budget["delta"])[0]

    return epsilon


@core_cases
@settings(
    max_examples=1,  # of each case, and drawn anew in each run
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_no_budget_and_no_shares_are_overspent(case, data):
    config = parsed(CASES[case][0])
    method, arguments = method_of(case)
    defaults = {k: p.default for k, p in inspect.signature(method).parameters.items()}
    arguments = defaults | arguments
    # Parts of 1, of which the last one is what the shares leave over; one of 0 is a switch.
    shares = [key for key, value in arguments.items() if key.endswith("_share") and value]
    weights = data.draw(
        st.lists(st.floats(0.3, 1), min_size=len(shares) + 1, max_size=len(shares) + 1)
    )
    delta = config["privacy"]["delta"]
    # Shares of a pure epsilon and of a zCDP parameter that nearly add up to 1 cost more than 1.
    scale = 2 * sum(weights) if delta and len(shares) > 1 else sum(weights)
    drawn = {key: weight / scale for key, weight in zip(shares, weights[:-1], strict=True)}
    # A count of fixed cost has to find room in it.
    epsilon = data.draw(st.floats(4 if delta else 0.01, 12))
    ledger = fit(case, random_graph(30, 0), epsilon=epsilon, options=drawn).lightning_module.ledger
    assert ledger.entries
    if delta:
        assert ledger.delta(epsilon) <= delta
        assert ledger.epsilon(delta) <= epsilon * (1 + 1e-9)
    else:
        assert {entry.event.mechanism for entry in ledger.entries} == {"pure"}
        for relation in ledger.relations:  # a case with rows has an equal budget for them
            costs = [entry.event.pure_epsilon * entry.steps for entry in ledger.of(relation)]
            assert math.fsum(costs) == pytest.approx(epsilon, rel=1e-9)
            assert max(accumulate(costs)) <= epsilon * (1 + 1e-12)


@core_cases
def test_public_seeds_fix_everything_but_the_noise(case, monkeypatch, tmp_path):
    # So little budget that two equal integers are a matter of millionths. Counts of transfers need no
    # less: noise alone would draw hundreds of thousands of them.
    tiny = {"epsilon": 1e-3 if case == ONE_TRANSFER else 1e-4}
    if draws_batches(case):  # whose steps need more; the published variant releases no number
        tiny = {"options": known(case, count_epsilon=1e-4, count_share=1e-5)}
    outputs = []
    for run in range(2):
        with monkeypatch.context() as patch:
            transcript = Transcript(patch)
            writer = callbacks.ReleaseWriter(formats=["npz"])
            folder = tmp_path / str(run)
            fit(case, random_graph(30, 0), extra=[writer], folder=folder, **tiny)
        outputs.append(transcript.outputs)
    assert len(outputs[0]) == len(outputs[1]) > 0
    # No report at all is what a noisy number of edges of 0 gives, in either run.
    pairs = enumerate(zip(*outputs, strict=True))
    equal = [i for i, (a, b) in pairs if a.numel() and torch.equal(a, b)]
    assert not equal

    release = tmp_path / "0" / "release"
    assert json.loads((release / "privacy.json").read_text())["noise_source"] == "os"
    if case in LEARNERS:  # which draws nothing
        return
    generator = open_release(release).method
    assert isinstance(generator, Synthesizer)
    graphs = []
    with torch.no_grad():
        for global_seed in (1, 2):
            torch.manual_seed(global_seed)
            graphs.append(generator.sample(torch.Generator().manual_seed(0)).edge_index)
    assert torch.equal(*graphs)


def test_a_number_of_edges_passed_off_as_private_is_found(monkeypatch, tmp_path):
    honest = methods.ErdosRenyi.release

    def leaks(method, source, reads):
        honest(method, source, reads)
        method.num_edges = torch.tensor(source.num_edges())

    monkeypatch.setattr(methods.ErdosRenyi, "release", leaks)
    with pytest.raises(AssertionError, match="generator"):
        test_apart_from_the_mechanisms_nothing_knows_which_graph_it_was(
            "erdos_renyi", monkeypatch, tmp_path
        )


def test_votes_of_beliefs_that_were_not_released_are_found(monkeypatch, tmp_path):
    honest = methods.NeighborVotes.pay

    def leaks(method, read, value, law=None):
        noisy = honest(method, read, value, law)
        return value if read.key == "vote_moment" else noisy

    monkeypatch.setattr(methods.NeighborVotes, "pay", leaks)
    with pytest.raises(AssertionError, match="learner"):
        test_apart_from_the_mechanisms_nothing_knows_which_graph_it_was(
            "neighbor_votes", monkeypatch, tmp_path
        )


@pytest.mark.parametrize(
    ("case", "sensitivity"),
    [
        ("chung_lu", "methods.single_graph.degree_release.degree_l1_sensitivity"),
        ("neighbor_votes", "methods.neighbor_votes.vote_moment_sensitivity"),
        ("dk2", "papers.wang2013.dk2.weighted_joint_degree_sensitivity"),
        ("hrg", "papers.xiao2014.hrg.log_likelihood_sensitivity"),
        ("dpgvae", "privacy.aggregation_perturbation.aggregation_sensitivity"),
        ("kernel, walks", "papers.dubhashi2015.counts.walk_sensitivity"),
    ],
)
def test_a_sensitivity_that_is_too_small_is_found(case, sensitivity, monkeypatch):
    monkeypatch.setattr(f"lightning_dpg.{sensitivity}", lambda *sizes: 1)
    with pytest.raises(AssertionError, match="<="):
        test_one_edge_moves_what_mechanisms_are_given_by_their_sensitivity(case, 20, monkeypatch)
