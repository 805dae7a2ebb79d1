import os
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from lightning_dpg.privacy import noise


def pytest_runtest_setup(item):
    """Draw noise by the name of the test: what fails by chance fails for whoever looks into it."""
    noise.secrets = SimpleNamespace(randbits=random.Random(item.nodeid).getrandbits)


@pytest.fixture
def data_root(monkeypatch):
    """Folder of real data, made known to the loader; the test is skipped where there is none."""
    default = Path(__file__).parents[1] / ".." / "shared" / "data"
    root = Path(os.environ.get("LIGHTNING_DPG_DATA") or default).resolve()
    if not (root / "graphs").is_dir():
        pytest.skip("no folder of real data: set LIGHTNING_DPG_DATA")
    monkeypatch.setenv("LIGHTNING_DPG_DATA", str(root))
    return root
