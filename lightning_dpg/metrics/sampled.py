"""Figures of large graphs that were sampled or left out, and the notes that say so."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

from lightning_dpg.metrics.functional import NUM_WEDGES, Estimate
from lightning_dpg.metrics.motifs import MotifCounts
from lightning_dpg.metrics.paths import Distances

LEFT_OUT = "left out"
_SAMPLED = " sampled"
_BOUND = ", a lower bound"
How = Literal["measured", "sampled", "left out"]


class Sampled(NamedTuple):
    """A figure of one graph that was sampled."""

    sample: str
    """The sample, as in ``128 nodes``."""
    standard_error: float
    """Standard error of the figure; nan if it is a bound only."""


def sampled_distances(measured: Distances) -> dict[str, Sampled]:
    """Name the queries about distances that were sampled, if any.

    Args:
        measured: Distances of a graph.
    """
    if measured.num_sources is None:
        return {}
    sample = f"{measured.num_sources} nodes"
    return {
        "diameter": Sampled(sample, math.nan),
        "avg_path_length": Sampled(sample, measured.standard_error),
    }


def sampled_wedges(estimates: Mapping[str, float]) -> dict[str, Sampled]:
    """Name the queries about triangles that were sampled, if any.

    Args:
        estimates: Standard error of each query; 0 where it is exact.
    """
    sample = f"{NUM_WEDGES:,} wedges"
    return {name: Sampled(sample, error) for name, error in estimates.items() if error > 0}


def notes_on_samples(
    sampled: tuple[Mapping[str, Sampled], Mapping[str, Sampled]],
    values: tuple[Mapping[str, float], Mapping[str, float]],
    spread: float,
) -> dict[str, str]:
    """Note on each sampled query about a single graph, and on the divergence of sampled distances.

    Args:
        sampled: Samples of the real and of the synthetic graph, by query.
        values: Values of both graphs, by query.
        spread: Standard error of the divergence of distances.
    """
    real, synthetic = sampled
    notes = {
        name: note_on_sampling(
            real.get(name), synthetic.get(name), (values[0][name], values[1][name])
        )
        for name in values[0]
        if name in real or name in synthetic
    }
    if "diameter" in notes:
        sample = notes["diameter"].removesuffix(_BOUND)
        notes["distance_distribution_kl"] = f"{sample}, standard error {spread:.1g}"
    return notes


def note_on_sampling(
    real: Sampled | None, synthetic: Sampled | None, values: tuple[float, float]
) -> str:
    """Say what was sampled, and the standard errors of both values and of their relative error.

    Args:
        real: Sample of the real graph; None if its value is exact.
        synthetic: Sample of the synthetic graph; None if its value is exact.
        values: Value of the real and of the synthetic graph.
    """
    sides = {"real": real, "synthetic": synthetic}
    samples_of = {side: sampled for side, sampled in sides.items() if sampled is not None}
    samples = dict.fromkeys(sampled.sample for sampled in samples_of.values())
    sample = " and ".join(samples)
    errors = [sampled.standard_error for sampled in samples_of.values()]
    if any(map(math.isnan, errors)):
        return f"{' and '.join(samples_of)}: {sample}{_SAMPLED}{_BOUND}"
    plural = "s" if len(errors) > 1 else ""
    digits = " and ".join(f"{error:.2g}" for error in errors)
    note = f"{' and '.join(samples_of)}: {sample}{_SAMPLED}, standard error{plural} {digits}"
    estimates = [
        Estimate(value, side.standard_error if side else 0.0)
        for value, side in zip(values, sides.values(), strict=True)
    ]
    spread = relative_spread(*estimates)
    return f"{note}; of the error {spread:.1g}" if math.isfinite(spread) else note


def relative_spread(real: Estimate, synthetic: Estimate) -> float:
    """Return the standard error of the relative error of two estimates, to first order.

    It is nan if the real value is 0.
    """
    if not real.value:
        return math.nan
    through_real = synthetic.value / real.value * real.standard_error
    return math.hypot(synthetic.standard_error, through_real) / abs(real.value)


def note_on_motifs(real: MotifCounts, synthetic: MotifCounts, error: float) -> str:
    """Say that all motifs were counted, or the standard error of their cosine.

    Args:
        real: Motifs of the real graph.
        synthetic: Motifs of the synthetic graph.
        error: Standard error of the cosine.
    """
    sampled = {
        side: motifs.sampled_sizes
        for side, motifs in (("real", real), ("synthetic", synthetic))
        if motifs.sampled_sizes
    }
    if not sampled:
        return "all motifs counted"
    sizes = sorted({size for sizes in sampled.values() for size in sizes})
    range_of_sizes = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
    sides = " and ".join(sampled)
    return f"{sides}: motifs of {range_of_sizes} nodes{_SAMPLED}, standard error {error:.1g}"


def how_noted(note: str) -> How:
    """Read whether a figure was measured, sampled or left out from its note.

    Args:
        note: Note on a query.
    """
    if note.startswith(LEFT_OUT):
        return "left out"
    return "sampled" if _SAMPLED in note else "measured"


def line_on_sampling(notes: Mapping[str, str]) -> str:
    """Name all sampled figures and those that were left out in one line; empty if there are none.

    Args:
        notes: Note on each query.
    """
    parts = []
    for state in ("sampled", LEFT_OUT):
        names = [name for name, note in notes.items() if how_noted(note) == state]
        if names:
            reason = notes[names[0]].partition(": ")[2]  # of all that are left out
            remark = reason if state == LEFT_OUT else "standard errors in the notes"
            parts.append(f"{state} ({remark}): {', '.join(names)}")
    return "; ".join(parts)
