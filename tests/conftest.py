import functools
import os
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

# The process that hands out the tests reads this file too: torch is imported where it is used.


@pytest.fixture(scope="session", autouse=True)
def _packages_are_searched_once():
    """Each trainer asks all installed packages for callbacks, which takes most of its start."""
    from lightning_fabric.utilities import registry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "entry_points", functools.cache(registry.entry_points))
        yield


def pytest_runtest_setup(item):
    """Seed the noise by the name of the test, so that a random failure is reproducible."""
    from lightning_dpg.privacy import noise

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


@pytest.fixture
def fails(tmp_path, monkeypatch, capfd):
    """Run a command that has to fail and to leave no trace in its folder; give what it says."""
    from lightning_dpg.main import main

    monkeypatch.chdir(tmp_path)

    def run(*args):
        before = sorted(tmp_path.rglob("*"))
        assert main(args) == 2
        assert sorted(tmp_path.rglob("*")) == before
        out, err = capfd.readouterr()
        assert not out
        assert 1 <= len(err.splitlines()) <= 5, err
        return err

    return run
