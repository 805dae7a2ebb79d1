"""Benchmark: fit methods on graphs with budgets and seeds, measure them, and report the results."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightning_dpg.benchmark.engine import benchmark

__all__ = ["benchmark"]


def __getattr__(name: str) -> Any:
    """Import the engine on first use: it imports PyTorch, which the workers' module does not."""
    if name != "benchmark":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Start-up time: a worker logs messages during the import of PyTorch.
    from lightning_dpg.benchmark.engine import benchmark

    return benchmark
