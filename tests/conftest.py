import functools
import os
import random
import sys
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace

import pytest

# The process that hands out the tests reads this file too: torch is imported where it is used.


@pytest.fixture(scope="session", autouse=True)
def _searched_and_computed_once():
    """What each fit asks the installed packages, and what each release asks opacus."""
    from lightning_fabric.utilities import registry

    opinion = sys.modules.get("lightning_dpg.privacy.second_opinion")  # where a test may write one
    with pytest.MonkeyPatch.context() as patch:
        # Each trainer searches all packages for callbacks, which takes most of its start.
        patch.setattr(registry, "entry_points", functools.cache(registry.entry_points))
        if opinion is not None:
            for name in ("_prv", "_rdp"):
                patch.setattr(opinion, name, once_for_equal_values(getattr(opinion, name)))
        yield


@pytest.fixture(scope="session", autouse=True)
def _figures_of_runs_are_blank():
    """Two figures take longer than the fit that they show; ``figures_drawn`` draws those of a test."""
    if (figure := sys.modules.get("matplotlib.figure")) is None:
        yield
        return

    def save(self, path, **options):
        if draws or Path(str(path)).parent.name != "figures":
            savefig(self, path, **options)
        else:
            Path(path).write_bytes(BLANK)

    savefig = figure.Figure.savefig
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure.Figure, "savefig", save)
        yield


draws = []
BLANK = b64decode(  # a picture of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.fixture
def figures_drawn():
    """Figures of runs are drawn in this test."""
    draws.append(True)
    yield
    draws.clear()


def once_for_equal_values(function):
    """A pure function of numbers and lists of them, computed once for equal ones."""
    known = {}

    def computed(*args, **options):
        key = repr((args, options))
        if key not in known:
            known[key] = function(*args, **options)
        return known[key]

    return computed


TENANTS = [Path(__file__).parent / name for name in ("book", "papers", "research")]


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items):
    """Tests of the budget book, of papers and of research are a group of their own.

    Sensitivities, noise and ledgers of all methods, also of papers and research, are tried in any case,
    by ``test_private_methods.py``.
    """
    for item in items:
        if any(map(item.path.is_relative_to, TENANTS)):
            item.add_marker(pytest.mark.tenants)


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
