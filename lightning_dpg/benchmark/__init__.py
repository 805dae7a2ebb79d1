"""Benchmark: fits methods on graphs with budgets and seeds, measures them, and reports the results.

The package itself can be called: ``lightning_dpg.benchmark(...)`` is its function ``benchmark``.
"""

import inspect
import sys
from types import ModuleType
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


class _CallablePackage(ModuleType):
    """A package and a function of one name: Python binds the package to the name at its import."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the benchmark."""
        return self.benchmark(*args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        """Signature of the function, for ``help`` and for notebooks."""
        return inspect.signature(self.benchmark)


sys.modules[__name__].__class__ = _CallablePackage
