"""Interleaved timing: disturbances of the machine affect all variants alike."""

import statistics
import time
from collections.abc import Callable, Mapping

import torch


def medians(
    variants: Mapping[str, Callable[[], object]], rounds: int = 9, device: str = "cpu"
) -> dict[str, float]:
    """Return median milliseconds of each variant, one call of each in turn.

    On the CPU it is process time on one thread, which other processes hardly affect; on a GPU it is
    wall time between synchronizations.
    """
    torch.set_num_threads(1)
    clock = time.process_time if device == "cpu" else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 1):
        for name, call in variants.items():
            _wait(device)
            start = clock()
            call()
            _wait(device)
            if turn:  # the first turn warms caches up
                times[name].append(1000 * (clock() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def table(times: Mapping[str, float], base: str, targets: Mapping[str, str] | None = None) -> str:
    """Build a Markdown table of medians and ratios to ``base``."""
    rows = ["| variant | ms | ratio | target |", "|---|---|---|---|"]
    for name, value in times.items():
        target = (targets or {}).get(name, "")
        rows.append(f"| {name} | {value:.1f} | {value / times[base]:.2f} | {target} |")
    return "\n".join(rows)
