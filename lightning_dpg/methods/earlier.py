"""Names of methods and settings in the previous version."""

from collections.abc import Mapping
from typing import Any

# Settings of the earlier PrivCom whose values are separate classes now.
_CHOICES = {"release": "noisy_oja", "relation": "edge", "mode": "corrected", "hops": 0}
_POWER_METHOD = ("release", "relation", "mode")
_EDGE = (*_POWER_METHOD, "hops", "max_degree")
_RESPONSES = (*_EDGE, "iterations", "momentum", "clip", "value_share")
_PUBLISHED = (*_POWER_METHOD, "momentum", "clip", "degree_share", "value_share", "max_degree")

# Settings of the earlier LDPGromovWasserstein whose values are separate classes now, and the
# settings without effect in each class.
_REPORTS = ("release", "mode", "hops")
_NO_PRIVATE_ROUNDS = ("max_nodes", "max_update_norm", "weights_share")
_ROWS = (*_REPORTS, *_NO_PRIVATE_ROUNDS)
_SUMS = (
    *("release", "mode", "encoder", "reports_per_row", "report_epsilon"),
    *_NO_PRIVATE_ROUNDS,
)
_SPLIT = {"teaching_fraction": "train_fraction", "split_seed": "seed"}
# Settings of the earlier PrivateGraphKernel whose values are separate classes now.
_SAMPLES = ("sampling", "sample_rate")
# Settings of the earlier DPGVAE and DPGGAN that only one of the two modes used.
_CORRECTED_STEPS = ("count_share", "aggregation_share", "hops", "public_pairs")
_PUBLISHED_STEPS = ("clip_decay",)


def translate(
    class_name: str, settings: Mapping[str, Any]
) -> tuple[str, dict[str, Any], list[str]]:
    """Translate the class name and settings of version 0.1 to the current ones.

    A setting unknown to both versions is kept, so that the parser refuses it; a combination that
    0.1 refused is kept as well.

    Args:
        class_name: Public name of the class, such as ``PrivCom``.
        settings: Its settings, all of them or some.

    Returns:
        Public name of the current class, its settings, and one line per renamed thing.
    """
    match class_name:
        case "PrivCom":
            return _privcom(settings)
        case "HRG":
            return _by_noise("HRG", settings, {"laplace": "HRG", "gaussian": "GaussianHRG"})
        case "DK2":
            return _by_noise("DK2", settings, {"weighted": "DK2", "uniform": "UniformDK2"})
        case "LDPGromovWasserstein":
            return _gromov_wasserstein(settings)
        case "PrivateGraphKernel":
            return _graph_kernel(settings)
        case "DPNetGAN":
            return _by_mode(class_name, settings, ("count_epsilon", "degree_share"))
        case "DPGVAE" | "DPGGAN":
            return _by_mode(class_name, settings, _CORRECTED_STEPS)
        case _:
            return class_name, dict(settings), []


def _privcom(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
    """Translate PrivCom: a class for each algorithm, relation and variant."""
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


def _gromov_wasserstein(
    settings: Mapping[str, Any],
) -> tuple[str, dict[str, Any], list[str]]:
    """Translate LDPGromovWasserstein: a class for each guarantee, with current names."""
    usual = {"release": "ldp", "mode": "corrected", "weights": "random", "report_epsilon": None}
    chosen = tuple(settings.get(name, default) for name, default in usual.items())
    earlier = "LDPGromovWasserstein"
    left_out: tuple[str, ...]
    match chosen:
        case ("ldp", "corrected", "random" | "private", _):
            left_out, today = (*_REPORTS, "report_epsilon"), earlier
        case ("ldp", "corrected", "trained", float() | int()):
            left_out, today = _ROWS, "GromovWassersteinFeatures"
        case ("ldp", "paper", "random" | "trained", _):
            left_out, today = _ROWS, "LDPGromovWassersteinAsPublished"
            settings = {"weights": "random"} | dict(settings)  # the earlier default differs
        case ("curated_edge", "corrected", "random" | "trained", _):
            left_out, today = _SUMS, "CentralGromovWasserstein"
        case ("exact", "corrected" | "paper", "random" | "trained", _):
            left_out = (*_ROWS, "report_epsilon", "reports_per_row")
            today = "GromovWassersteinFeatures"
        case _:
            return earlier, dict(settings), []
    name, kept, lines = _without(earlier, settings, left_out, today)
    lines += [
        f"{old} of {earlier} is now called {new}; the earlier word works in this version only"
        for old, new in _SPLIT.items()
        if old in kept
    ]
    return name, {_SPLIT.get(key, key): value for key, value in kept.items()}, lines


def _graph_kernel(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
    """Translate PrivateGraphKernel: a class for each kind of noise."""
    usual = {"mode": "corrected", "mechanism": "laplace"}
    left_out: tuple[str, ...]
    match tuple(settings.get(name, default) for name, default in usual.items()):
        case ("corrected", "laplace"):
            left_out, today = (*usual, "paper_epsilon"), "PrivateGraphKernel"
        case ("corrected", "gaussian"):
            left_out = (*usual, *_SAMPLES, "shares", "num_samples", "paper_epsilon")
            today = "GaussianGraphKernel"
        case ("paper", "laplace"):
            left_out = (*usual, *_SAMPLES, "shares")
            today = "PrivateGraphKernelAsPublished"
        case _:
            return "PrivateGraphKernel", dict(settings), []
    return _without("PrivateGraphKernel", settings, left_out, today)


def _by_mode(
    class_name: str, settings: Mapping[str, Any], corrected_only: tuple[str, ...]
) -> tuple[str, dict[str, Any], list[str]]:
    """Select one of two classes by mode, and drop settings without an effect in its mode."""
    match settings.get("mode", "corrected"):
        case "corrected":
            return _without(class_name, settings, ("mode", *_PUBLISHED_STEPS), class_name)
        case "paper":
            left_out = ("mode", *corrected_only)
            return _without(class_name, settings, left_out, f"{class_name}AsPublished")
        case _:
            return class_name, dict(settings), []


def _by_noise(
    class_name: str, settings: Mapping[str, Any], classes: Mapping[str, str]
) -> tuple[str, dict[str, Any], list[str]]:
    """Select a class by the kind of noise; the first one is the default."""
    noise = settings.get("noise", next(iter(classes)))
    today = next((today for choice, today in classes.items() if choice == noise), None)
    if today is None:
        return class_name, dict(settings), []
    # Only uniform noise needs a bound.
    left_out = ("noise", "bound_share") if today == "DK2" else ("noise",)
    return _without(class_name, settings, left_out, today)


def _without(
    class_name: str, settings: Mapping[str, Any], left_out: tuple[str, ...], today: str
) -> tuple[str, dict[str, Any], list[str]]:
    """Drop settings that the current class does not have, and report them in one line."""
    kept = {name: value for name, value in settings.items() if name not in left_out}
    gone = [f"{name}: {value}" for name, value in settings.items() if name in left_out]
    if not gone:
        return today, kept, []
    line = (
        f"{class_name} with {', '.join(gone)} is now called {today}, which has no such settings; "
        "the earlier words work in this version only"
    )
    return today, kept, [line]
