"""Names of the parts of a release in earlier versions, and their names today.

Keys of its ledger entries are in ``privacy/entry_keys.py``.
"""

from collections.abc import Collection, Mapping
from typing import Any

_CLASSES = (
    ("PrivCom", "release", "rr_spectral", "RandomizedResponsePrivCom"),
    ("PrivCom", "mode", "paper", "PrivComAsPublished"),
    ("PrivCom", "relation", "node", "NodePrivCom"),
    ("PrivCom", "hops", 0, "PrivCom"),
    ("PrivCom", "relation", "edge", "KatzPrivCom"),
    ("HRG", "noise", "gaussian", "GaussianHRG"),
    ("DK2", "noise", "uniform", "UniformDK2"),
    ("DPNetGAN", "mode", "paper", "DPNetGANAsPublished"),
    ("DPGVAE", "mode", "paper", "DPGVAEAsPublished"),
    ("DPGGAN", "mode", "paper", "DPGGANAsPublished"),
    ("LDPGromovWasserstein", "release", "curated_edge", "CentralGromovWasserstein"),
    ("LDPGromovWasserstein", "release", "exact", "GromovWassersteinFeatures"),
    ("LDPGromovWasserstein", "mode", "paper", "LDPGromovWassersteinAsPublished"),
    ("LDPGromovWasserstein", "weights", "trained", "GromovWassersteinFeatures"),
    ("PrivateGraphKernel", "mechanism", "gaussian", "GaussianGraphKernel"),
    ("PrivateGraphKernel", "mode", "paper", "PrivateGraphKernelAsPublished"),
)
"""A class, a setting and its value in 0.1.0, and the class of this guarantee; the first row counts."""

_SETTINGS: dict[str, str | None] = {
    "teaching_fraction": "train_fraction",
    "split_seed": "seed",
    **dict.fromkeys(("mode", "relation", "release", "noise", "mechanism", "hops", "max_degree")),
    **dict.fromkeys(("iterations", "momentum", "clip", "clip_decay", "value_share", "bound_share")),
    **dict.fromkeys(("count_epsilon", "count_share", "aggregation_share", "public_pairs")),
    **dict.fromkeys(("degree_share", "encoder", "report_epsilon", "reports_per_row", "max_nodes")),
    **dict.fromkeys(("max_update_norm", "weights_share", "shares", "paper_epsilon", "sampling")),
    **dict.fromkeys(("sample_rate", "num_samples", "flower_processes")),
}
"""Settings that some classes no longer have, with their names today; None if they are gone."""

_TENSORS: dict[str, str | None] = {
    "teaching": "train_mask",
    **dict.fromkeys(("steps_made", "steps_planned", "noise_multipliers")),
    **dict.fromkeys(("rounds_planned", "rows", "update_noise")),
}
"""The same of tensors."""

_ADDED_SETTINGS = {"public_features": False}
"""Settings that releases of earlier versions lack, and what these versions did."""

ADDED_TENSORS = frozenset({"spread", "right_share", "node_labels", "class_ratios"})
"""Tensors that releases of earlier versions lack; those of a new object replace them."""


def class_of_today(name: str, settings: Mapping[str, Any]) -> str:
    """Return the name of the class that has the guarantee of a released class.

    Args:
        name: Name of the class in a recipe.
        settings: All its settings.
    """
    rows = (row for row in _CLASSES if row[0] == name and settings.get(row[1]) == row[2])
    return next((today for *_, today in rows), name)


def settings_of_today(settings: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Rename the settings of a recipe to their names today, and add what it lacks.

    Args:
        settings: All settings of a released class.
        names: Names of the settings that the class has today; a name that no version had stays.
    """
    if settings.get("release") == "exact":  # where 0.1.0 ignored these
        settings = {**settings, "report_epsilon": None, "reports_per_row": None}
    added = {name: value for name, value in _ADDED_SETTINGS.items() if name in names}
    return added | _of_today(settings, names, _SETTINGS)


def tensors_of_today(tensors: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Rename the tensors of a release to their names today.

    Args:
        tensors: Released tensors by name.
        names: Names of the tensors that the method has today; a name that no version had stays.
    """
    return _of_today(tensors, names, _TENSORS)


def _of_today(
    values: Mapping[str, Any], current: Collection[str], names: Mapping[str, str | None]
) -> dict[str, Any]:
    today = {name: name if name in current else names.get(name, name) for name in values}
    return {new: values[name] for name, new in today.items() if new is not None}
