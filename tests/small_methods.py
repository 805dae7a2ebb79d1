"""All exported methods, with settings that make each of them small."""

import inspect
from typing import Any

import pytest

from lightning_dpg import methods
from lightning_dpg.classes import is_abstract
from lightning_dpg.methods import PrivateModule

METHODS: dict[str, type[PrivateModule]] = {
    name: method
    for name in methods.__all__
    if (method := getattr(methods, name)) is not PrivateModule and not is_abstract(method)
}
# Given to each method that has a setting of the name. The cost of a plan does not depend on these,
SIZES = {
    "rank": 2,
    "batch_size": 4,
    "num_samples": 50,
    "embedding_dim": 4,
    "generator_dim": 4,
    "critic_dim": 4,
    "latent_dim": 4,
    "feature_dim": 4,
    "hidden_dim": 4,
    "edge_hidden_dim": 4,
    "public_pairs": 32,
    "num_steps": 2,
    "encoder_steps": 1,
    "classifier_steps": 1,
}
# but it does on these.
SHORT = SIZES | {
    "iterations": 2,
    "rounds": 2,
    "num_clients": 2,
    "local_epochs": 1,
    "steps_per_node": 100,
    "sweeps": 5,
    "noise_multiplier": 1.0,
    "max_degree": 8,
}

# Configurations: the ten rows of docs/choosing.md, baselines, and one of each other kind. The
# contracts of the methods fit every class.
RECOMMENDED = {
    "attribute_encoder",
    "attributed",
    "bter",
    "chung_lu",
    "dp_netgan",
    "erdos_renyi",
    "erdos_renyi_set",
    "local_scalars",
    "neighbor_votes",
    "node_degrees",
    "pooled_set",
    "private_kernel",
    "privgraph",
    "randomized_response_spectral",
    "size_kernel",
}


def marks_of(name: str) -> list[pytest.MarkDecorator]:
    """Methods of papers and of research are slow where a test goes through all methods at length."""
    rooms = ("lightning_dpg.papers", "lightning_dpg.research")
    return [pytest.mark.slow] if METHODS[name].__module__.startswith(rooms) else []


def made(name: str, table: dict[str, Any], **settings: Any) -> PrivateModule:
    """A method with those settings of a table that it has, and others."""
    known = inspect.signature(METHODS[name]).parameters
    return METHODS[name](**{key: table[key] for key in table if key in known} | settings)
