"""All exported methods, with settings that make each of them small."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from lightning_dpg import methods
from lightning_dpg.classes import is_abstract
from lightning_dpg.methods import PrivateModule
from lightning_dpg.methods.single_graph import attribute_encoder as encoder
from lightning_dpg.methods.single_graph import attribute_moments, bter
from lightning_dpg.nn import class_student

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


@pytest.fixture(scope="module", autouse=True)
def short_fits() -> Iterator[None]:
    """What methods make of their releases, and of public data, takes few steps of each kind.

    A test module that looks at no accuracy imports this. Reads, their order and their noise are the
    same, and of blocks one step loosens the order and two are compared.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_student, "_STEPS", 6)
        patch.setattr(class_student, "_FOLDS", 2)
        patch.setattr(bter, "_FITTING_STEPS", 3)
        patch.setattr(bter, "_LOOSENING_STEPS", 1)
        for module in (encoder, attribute_moments):
            patch.setattr(module, "SWAP_ROUNDS", 10)
        yield


def marks_of(name: str) -> list[pytest.MarkDecorator]:
    """Methods of papers are slow where a test goes through all methods at length."""
    is_of_paper = METHODS[name].__module__.startswith("lightning_dpg.papers")
    return [pytest.mark.slow] if is_of_paper else []


def made(name: str, table: dict[str, Any], **settings: Any) -> PrivateModule:
    """A method with those settings of a table that it has, and others."""
    known = inspect.signature(METHODS[name]).parameters
    return METHODS[name](**{key: table[key] for key in table if key in known} | settings)
