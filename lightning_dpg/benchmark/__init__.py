"""The benchmark: methods, graphs, budgets and seeds, fitted, measured and reported."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightning_dpg.benchmark.engine import benchmark

__all__ = ["benchmark"]


def __getattr__(name: str) -> Any:
    """Import the engine when it is asked for: it brings PyTorch, the workers beside it do not."""
    if name != "benchmark":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Start-up time: a worker says to its log what is said while PyTorch is imported.
    from lightning_dpg.benchmark.engine import benchmark

    return benchmark
