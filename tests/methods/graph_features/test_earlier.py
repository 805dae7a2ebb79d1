"""Releases of features open by the names and settings of version 0.1."""

import inspect

import pytest

from lightning_dpg import methods
from lightning_dpg.methods.earlier import translate

GROMOV = {
    "encoder": "gcn",
    "release": "ldp",
    "weights": "random",
    "mode": "corrected",
    "width": 8,
    "distance": "euclidean",
    "reports_per_row": None,
    "report_epsilon": None,
    "max_nodes": None,
    "hops": 2,
    "rounds": 50,
    "num_clients": 10,
    "concentration": 1.0,
    "local_epochs": 5,
    "learning_rate": 0.003,
    "proximal": 0.0,
    "max_update_norm": 1.0,
    "weights_share": 0.5,
    "teaching_fraction": 0.25,
    "split_seed": 3,
    "flower_processes": 0,
}
"""All settings that 0.1 wrote into a release of LDPGromovWasserstein."""

KERNEL = {
    "features": ["w"],
    "length": 4,
    "max_degree": 8,
    "truncation": "canonical",
    "mechanism": "laplace",
    "shares": None,
    "sampling": "poisson",
    "sample_rate": 0.5,
    "num_samples": 100,
    "mode": "corrected",
    "paper_epsilon": None,
}
"""The same of PrivateGraphKernel."""


@pytest.mark.parametrize(
    ("earlier", "settings", "today"),
    [
        ("LDPGromovWasserstein", GROMOV, "LDPGromovWasserstein"),
        ("LDPGromovWasserstein", GROMOV | {"weights": "private"}, "LDPGromovWasserstein"),
        (
            "LDPGromovWasserstein",
            GROMOV | {"weights": "trained", "report_epsilon": 5.0},
            "GromovWassersteinFeatures",
        ),
        ("LDPGromovWasserstein", GROMOV | {"release": "exact"}, "GromovWassersteinFeatures"),
        ("LDPGromovWasserstein", GROMOV | {"mode": "paper"}, "LDPGromovWassersteinAsPublished"),
        (
            "LDPGromovWasserstein",
            GROMOV | {"release": "curated_edge", "weights": "trained"},
            "CentralGromovWasserstein",
        ),
        ("PrivateGraphKernel", KERNEL, "PrivateGraphKernel"),
        ("PrivateGraphKernel", KERNEL | {"mechanism": "gaussian"}, "GaussianGraphKernel"),
        ("PrivateGraphKernel", KERNEL | {"mode": "paper"}, "PrivateGraphKernelAsPublished"),
    ],
)
def test_all_settings_of_0_1_become_all_settings_of_the_class_of_the_guarantee(
    earlier, settings, today
):
    name, kept, lines = translate(earlier, settings)
    assert name == today
    made = getattr(methods, name)(**kept)
    parameters = inspect.signature(type(made)).parameters
    # What is not kept is a setting that the class does not have, or that has its default.
    assert {key for key in parameters if made.hparams[key] != parameters[key].default} <= set(kept)
    if "split_seed" in settings:
        assert (kept["seed"], kept["train_fraction"]) == (3, 0.25)
        assert any("seed" in line for line in lines)
    assert all("in this version only" in line for line in lines)


def test_some_settings_are_enough():
    name, kept, (line,) = translate(
        "LDPGromovWasserstein", {"release": "curated_edge", "rounds": 5}
    )
    assert (name, kept) == ("CentralGromovWasserstein", {"rounds": 5})
    assert line == (
        "LDPGromovWasserstein with release: curated_edge is now called CentralGromovWasserstein, "
        "which has no such settings; the earlier words work in this version only"
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("LDPGromovWasserstein", {"weights": "private", "max_nodes": 9}),
        ("LDPGromovWasserstein", {"release": "curated_edge", "weights": "private"}),  # refused
        ("LDPGromovWasserstein", {"weights": "trained"}),  # no law for an infinite epsilon
        ("PrivateGraphKernel", {"mode": "paper", "mechanism": "gaussian"}),
        ("PrivateGraphKernel", {"features": ["edges"]}),
    ],
)
def test_everything_else_stays_as_it_is(name, settings):
    assert translate(name, settings) == (name, settings, [])


def test_the_earlier_name_of_the_base_says_the_new_one():
    with pytest.warns(FutureWarning, match="GraphLearner is now called GraphFeatureRelease"):
        earlier = methods.GraphLearner
    assert earlier is methods.GraphFeatureRelease
    assert not hasattr(methods, "Learner")
