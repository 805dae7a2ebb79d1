"""Reads of the private data in words, with the errors that their noise makes."""

import math
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lightning_dpg.privacy.budget import digits_down, digits_up
from lightning_dpg.release.card.sentences import say, sentences

_PRIVACY = Path(__file__).parents[2] / "privacy"
_INTEGER_NOISE = re.compile(
    "num_edges(_per_graph)?|edge_counts|(ordered_)?degrees|degree_mixing|wedges|largest_degrees|"
    "branch_edges|community_(links|wedges)|walks_[0-9]+|graphlets_[0-9]+|row_tables|"
    "column_mixing(_rows)?|amounts|amount_sums|strengths|pair_numbers|days|hours|gaps|new_pairs"
)
"""Keys of numbers with discrete Laplace noise of the rate epsilon / sensitivity."""
_NORMAL_NOISE = re.compile("degrees|branch_edges|neighbor_sums_[0-9]+")
_SAMPLED = ("amplified_epsilon", "drawn_epsilon")  # the latter in releases of earlier versions
"""Proofs of reads that are computed from a sample: the noise is not that of their cost."""
LEVEL = 0.95
_NORMAL_QUANTILE = 1.959963984540054  # of (1 + LEVEL) / 2


class NoiseError(NamedTuple):
    """Error of one noisy number before it is processed further.

    Attributes:
        mean: Mean absolute error.
        half_width: Smallest number that the absolute error does not exceed with probability
            ``LEVEL``.
    """

    mean: float
    half_width: float


def discrete_laplace_error(rate: float) -> NoiseError:
    r"""Error by integer noise with :math:`P(k) = \tanh(t / 2) e^{-t |k|}`.

    With :math:`p = e^{-t}` the mean is :math:`2 p / (1 - p^2) = 1 / \sinh t`, and :math:`|k|`
    exceeds h with probability :math:`2 p^{h + 1} / (1 + p)`.

    Args:
        rate: Rate t: epsilon over the sensitivity; infinite without noise.
    """
    if math.isinf(rate):
        return NoiseError(0.0, 0.0)
    mean = 2 * math.exp(-rate) / -math.expm1(-2 * rate)
    tail = (1 - LEVEL) * (1 + math.exp(-rate)) / 2
    return NoiseError(mean, float(max(0, math.ceil(-math.log(tail) / rate) - 1)))


def gaussian_error(std: float) -> NoiseError:
    r"""Error by normal noise, of mean :math:`\sigma \sqrt{2 / \pi}`.

    Args:
        std: Standard deviation.
    """
    return NoiseError(std * math.sqrt(2 / math.pi), std * _NORMAL_QUANTILE)


def read_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Describe one entry of a statement.

    Args:
        entry: Plain values of a ledger entry.

    Returns:
        Plain values: the key, a sentence, files with the proofs, and the expected error if there is
        a closed form.
    """
    error = expected_error(entry)
    return {
        "name": entry["name"],
        "description": say("reads.read", name=_capital(entry["name"]), how=_words(entry)),
        "proofs": [_place(name) for name in _proof_names(entry["proof"])],
        **({} if error is None else {"expected_error": error}),
    }


def expected_error(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Return the expected error of each number of a read; None without a known closed form."""
    key, mechanism, moved = entry["key"], entry["mechanism"], float(entry["sensitivity"])
    if not moved or mechanism == "non_private" or any(p in entry["proof"] for p in _SAMPLED):
        return None
    if mechanism == "gaussian":
        is_once = entry["steps"] == 1 and entry["sample_rate"] == 1
        if not (is_once and _NORMAL_NOISE.fullmatch(key)):
            return None
        return _values("Gaussian", gaussian_error(moved * float(entry["noise_multiplier"])))
    if not _INTEGER_NOISE.fullmatch(key):
        return None
    return _values("discrete Laplace", discrete_laplace_error(float(entry["epsilon"]) / moved))


def _values(noise: str, error: NoiseError) -> dict[str, Any]:
    return {
        "noise": noise,
        "mean_absolute_error": float(f"{error.mean:.3g}"),
        "half_width_95": float(f"{error.half_width:.3g}"),
    }


def _words(entry: dict[str, Any]) -> str:
    mechanism, steps = entry["mechanism"], entry["steps"]
    if mechanism == "non_private":
        return say("reads.not_private", reason=entry["proof"])
    if mechanism == "gaussian":
        return _gaussian(entry)
    if not float(entry["sensitivity"]):
        return say("reads.public")
    epsilon, delta = float(entry["epsilon"]), float(entry.get("delta") or 0)
    if math.isinf(epsilon):
        return say("reads.no_noise")
    return say(
        "reads.cost",
        how=_mechanism(entry, epsilon),
        often="" if steps == 1 else say("reads.often", steps=f"{steps:,}"),
        epsilon=digits_up(epsilon, 4),
        failing=say("reads.failing", delta=digits_up(delta, 3)) if delta else "",
    )


def _mechanism(entry: dict[str, Any], epsilon: float) -> str:
    key = entry["key"]
    if (described := f"released.{key}") in sentences():
        odds = math.exp(-epsilon / float(entry["sensitivity"]))
        return say(described, wrong=f"{odds / (1 + odds):.3g}")
    return say("reads.integers" if _INTEGER_NOISE.fullmatch(key) else "reads.other")


def _gaussian(entry: dict[str, Any]) -> str:
    ratio, rate, steps = float(entry["noise_multiplier"]), entry["sample_rate"], entry["steps"]
    if not ratio:
        return say("reads.no_noise")
    return say(
        "reads.once" if steps == 1 else "reads.steps",
        steps=f"{steps:,}",
        noise=say("reads.noise", ratio=digits_down(ratio, 4)),
        sample=say("reads.sample", rate=f"{rate:g}") if rate < 1 else "",
    )


def _proof_names(proof: str) -> list[str]:
    """Return the names of the functions that prove an entry; none if it gives a reason."""
    names = re.split("[,;] ", proof)
    return names if all(name.isidentifier() for name in names) else []


@cache
def _proofs() -> dict[str, str]:
    """Return the file of each function that proves a cost, from the sources: they import PyTorch."""
    files = [*sorted(_PRIVACY.glob("sensitivity/*.py")), _PRIVACY / "reports.py"]
    return {
        name: file.relative_to(_PRIVACY.parents[1]).as_posix()
        for file in files
        for name in re.findall(r"^def ([a-z]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }


def _place(name: str) -> str:
    """Name a function and the file of its docstring, which is the proof."""
    return f"{name} ({_proofs()[name]})" if name in _proofs() else name


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
