"""Publish and learn from graphs under differential privacy, with PyTorch Lightning.

``lightning_dpg.__all__`` is the public interface, and every name in it is imported at its first use.
Modules, methods and callbacks keep their names as well; everything else can move.
"""

import os
import warnings
from typing import TYPE_CHECKING

from lightning_dpg.lazy_exports import lazy_exports

__version__ = "0.3.0.dev0"

if os.path.isfile(os.path.join(os.path.dirname(__file__), "conf")):  # a link became a text file
    raise ImportError(
        "this clone of lightning_dpg has no symbolic links: switch them on (on Windows: developer mode), "
        "and clone it again with git clone -c core.symlinks=true"
    )

# Lightning imports a progress bar that asks for ipywidgets in notebooks; without them it is of text.
warnings.filterwarnings("ignore", "IProgress not found")

if TYPE_CHECKING:
    __all__: list[str]
    from lightning_dpg import methods as methods
    from lightning_dpg.apps.audit.attacks import attack as attack
    from lightning_dpg.apps.audit.audits import audit as audit
    from lightning_dpg.apps.bench.engine import benchmark as benchmark
    from lightning_dpg.apps.bench.engine import compare as compare
    from lightning_dpg.apps.bench.views import Benchmark as Benchmark
    from lightning_dpg.errors import CommandError as CommandError
    from lightning_dpg.evaluation.database import evaluate_database as evaluate_database
    from lightning_dpg.evaluation.evaluate import evaluate as evaluate
    from lightning_dpg.release.database import DatabaseRelease as DatabaseRelease
    from lightning_dpg.release.database import open_database as open_database
    from lightning_dpg.release.reader import open_release as open_release
    from lightning_dpg.release.release import Release as Release
    from lightning_dpg.release.verify import verify as verify
    from lightning_dpg.run.data import read as read
    from lightning_dpg.run.database import fit_database as fit_database
    from lightning_dpg.run.plan import plan as plan
    from lightning_dpg.run.python import fit as fit
    from lightning_dpg.run.shipped import list_methods as list_methods
else:
    # Start-up time: nothing here imports PyTorch before it is used.
    __getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
