"""Names that methods and settings had in the version before this one."""

from collections.abc import Mapping
from typing import Any

# Settings of the earlier PrivCom that chose between what are classes of their own now.
_CHOICES = {"release": "noisy_oja", "relation": "edge", "mode": "corrected", "hops": 0}
_POWER_METHOD = ("release", "relation", "mode")
_EDGE = (*_POWER_METHOD, "hops", "max_degree")
_RESPONSES = (*_EDGE, "iterations", "momentum", "clip", "value_share")
_PUBLISHED = (*_POWER_METHOD, "momentum", "clip", "degree_share", "value_share", "max_degree")


def translate(
    class_name: str, settings: Mapping[str, Any]
) -> tuple[str, dict[str, Any], list[str]]:
    """Today's name and settings of a method that a configuration or a release of 0.1 names.

    A setting that this version does not know, and that 0.1 did not know either, is kept, so that the
    parser refuses it; so is a combination that 0.1 refused.

    Args:
        class_name: Public name of the class, such as ``PrivCom``.
        settings: Its settings, all of them or some.

    Returns:
        Public name of the class today, its settings, and a line for each thing that has a new name.
    """
    match class_name:
        case "PrivCom":
            return _privcom(settings)
        case "HRG":
            return _by_noise("HRG", settings, {"laplace": "HRG", "gaussian": "GaussianHRG"})
        case "DK2":
            return _by_noise("DK2", settings, {"weighted": "DK2", "uniform": "UniformDK2"})
        case _:
            return class_name, dict(settings), []


def _privcom(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
    """A class for each algorithm, relation and variant of PrivCom."""
    chosen = tuple(settings.get(name, usual) for name, usual in _CHOICES.items())
    match chosen:
        case ("rr_spectral", "edge", "corrected", 0):
            return _without("PrivCom", settings, _RESPONSES, "RandomizedResponsePrivCom")
        case ("noisy_oja", "edge" | "node", "paper", _):
            return _without("PrivCom", settings, _PUBLISHED, "PrivComAsPublished")
        case ("noisy_oja", "node", "corrected", _):
            return _without("PrivCom", settings, _POWER_METHOD, "NodePrivCom")
        case ("noisy_oja", "edge", "corrected", 0):
            return _without("PrivCom", settings, _EDGE, "PrivCom")
        case ("noisy_oja", "edge", "corrected", _):
            return _without("PrivCom", settings, _POWER_METHOD, "KatzPrivCom")
        case _:
            return "PrivCom", dict(settings), []


def _by_noise(
    class_name: str, settings: Mapping[str, Any], classes: Mapping[str, str]
) -> tuple[str, dict[str, Any], list[str]]:
    """A class for each kind of noise; the first one is the default."""
    noise = settings.get("noise", next(iter(classes)))
    today = next((today for choice, today in classes.items() if choice == noise), None)
    if today is None:
        return class_name, dict(settings), []
    # Only uniform noise asks for a bound.
    left_out = ("noise", "bound_share") if today == "DK2" else ("noise",)
    return _without(class_name, settings, left_out, today)


def _without(
    class_name: str, settings: Mapping[str, Any], left_out: tuple[str, ...], today: str
) -> tuple[str, dict[str, Any], list[str]]:
    """The class of today, without the settings that it has no more, and a line about these."""
    kept = {name: value for name, value in settings.items() if name not in left_out}
    gone = [f"{name}: {value}" for name, value in settings.items() if name in left_out]
    if not gone:
        return today, kept, []
    line = (
        f"{class_name} with {', '.join(gone)} is now called {today}, which has no such settings; "
        "the earlier words work in this version only"
    )
    return today, kept, [line]
