"""The verifier in ``docs/``, which imports nothing of the package."""

import importlib.util
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "docs" / "verify_release.py"


def standalone(release):
    """Faults that it finds in a release."""
    spec = importlib.util.spec_from_file_location(SOURCE.stem, SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.POINTS = 2**15  # bounds are wider, and hold
    return module.check(release)[0]
