"""Names of 0.1.0 in releases that ``tests/releases`` does not hold; names of no version stay."""

from inspect import signature

import pytest

from lightning_dpg import methods
from lightning_dpg.release.earlier_releases import (
    class_of_today,
    settings_of_today,
    tensors_of_today,
)

GROMOV = {
    "encoder": "gin",
    "release": "ldp",
    "weights": "random",
    "mode": "corrected",
    "width": 4,
    "distance": "cosine",
    "reports_per_row": 2,
    "report_epsilon": 5.0,
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
"""All settings that 0.1.0 wrote into a release of LDPGromovWasserstein."""

KERNEL = {
    "features": ["w"],
    "length": 3,
    "max_degree": 5,
    "truncation": "canonical",
    "mechanism": "gaussian",
    "shares": None,
    "sampling": "poisson",
    "sample_rate": 0.5,
    "num_samples": 100,
    "mode": "corrected",
    "paper_epsilon": None,
}
"""The same of PrivateGraphKernel."""


@pytest.mark.parametrize(
    ("earlier", "settings", "today", "kept"),
    [
        (
            "LDPGromovWasserstein",
            GROMOV | {"weights": "trained", "flower_processes": 2},
            "GromovWassersteinFeatures",
            {"encoder": "gin", "report_epsilon": 5.0, "reports_per_row": 2, "seed": 3},
        ),
        (
            "LDPGromovWasserstein",
            GROMOV | {"release": "exact"},
            "GromovWassersteinFeatures",
            {"train_fraction": 0.25, "report_epsilon": None, "reports_per_row": None},
        ),
        (
            "PrivateGraphKernel",
            KERNEL,
            "GaussianGraphKernel",
            {"length": 3, "max_degree": 5, "public_features": False},
        ),
    ],
)
def test_a_release_gets_the_class_of_its_guarantee(earlier, settings, today, kept):
    name = class_of_today(earlier, settings)
    assert name == today
    cls = getattr(methods, name)
    translated = settings_of_today(settings, signature(cls).parameters)
    assert cls(**translated).hparams.items() >= kept.items()


def test_a_name_that_is_in_use_or_unknown_stays():
    assert class_of_today("PrivCom", {"rank": 2}) == "PrivCom"
    assert class_of_today("BTER", {"mode": "paper"}) == "BTER"
    assert settings_of_today({"hops": 1, "mode": "corrected", "odd": 2}, {"hops"}) == {
        "hops": 1,
        "odd": 2,
    }
    tensors = {"rows": 1, "teaching": 2, "odd": 3}
    assert tensors_of_today(tensors, {"rows"}) == {"rows": 1, "train_mask": 2, "odd": 3}
    assert tensors_of_today(tensors, {"teaching"}) == {"teaching": 2, "odd": 3}
