"""Checks of the shared settings of Gromov-Wasserstein releases."""

from collections.abc import Mapping

from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.errors import Refusal

_POSITIVE = ("width", "hops", "rounds", "num_clients", "local_epochs")
_FRACTIONS = ("weights_share", "train_fraction")
_CHOICES = {
    "encoder": ("gcn", "gin"),
    "distance": ("euclidean", "cosine", "correlation"),
}


def check_training(settings: Mapping[str, object], weights: tuple[str, ...]) -> None:
    """Refuse settings that are out of range or contradict each other.

    Args:
        settings: Settings of a method; it may lack some of the checked ones.
        weights: Valid values of ``weights`` for the method.

    Raises:
        Refusal: If a setting is out of range.
        MisconfigurationException: If two settings contradict each other.
    """
    for name, choices in (_CHOICES | {"weights": weights}).items():
        if name in settings and settings[name] not in choices:
            raise Refusal(f"{name} must be one of {', '.join(choices)}, got {settings[name]!r}")
    for name in _POSITIVE:
        if not _number(settings, name, 1) >= 1:
            raise Refusal(f"{name} must be positive, got {settings[name]}")
    for name in _FRACTIONS:
        if not 0 < _number(settings, name, 0.5) < 1:
            raise Refusal(f"{name} must lie between 0 and 1, got {settings[name]}")
    processes = _number(settings, "flower_processes", 0)
    if processes < 0:
        raise Refusal(f"flower_processes must not be negative, got {processes:g}")
    if processes and settings["weights"] == "random":
        others = " or ".join(choice for choice in weights if choice != "random")
        raise MisconfigurationException(
            "flower_processes train the encoder, which weights: random does not: set weights to "
            f"{others}"
        )


def _number(settings: Mapping[str, object], name: str, usual: float) -> float:
    value = settings.get(name, usual)
    if not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return value
