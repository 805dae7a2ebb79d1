"""Publish and learn from graphs under differential privacy, with PyTorch Lightning.

``lightning_dpg.__all__`` is the public interface, and every name in it is imported at its first use.
Modules, methods and callbacks keep their names as well; everything else can move.
"""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightning_dpg.auditing.attacks import attack
    from lightning_dpg.auditing.audits import audit
    from lightning_dpg.benchmark import benchmark
    from lightning_dpg.errors import CommandError
    from lightning_dpg.evaluation.evaluate import evaluate
    from lightning_dpg.release.reader import open_release
    from lightning_dpg.release.release import Release
    from lightning_dpg.running.method_list import list_methods
    from lightning_dpg.running.plan import plan
    from lightning_dpg.running.python_fit import fit

__version__ = "0.2.0"

__all__ = [
    "CommandError",
    "Release",
    "attack",
    "audit",
    "benchmark",
    "evaluate",
    "fit",
    "list_methods",
    "open_release",
    "plan",
]

# Lightning imports a progress bar that asks for ipywidgets in notebooks; without them it is of text.
warnings.filterwarnings("ignore", "IProgress not found")

# Start-up time: nothing here imports PyTorch before it is used.
_MODULES = {
    "CommandError": "errors",
    "Release": "running.release",
    "attack": "auditing.attacks",
    "audit": "auditing.audits",
    "evaluate": "benchmark.evaluation",
    "fit": "running.python_fit",
    "list_methods": "running.method_list",
    "open_release": "running.releases",
    "plan": "running.plan",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    if name == "benchmark":  # a package that can be called, see its module
        return importlib.import_module(f"{__name__}.benchmark")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Public names."""
    return sorted([*__all__, "__version__"])
