import copy
import functools
import gc
import os
import random
import sys
import weakref
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from lightning_dpg.outcome import LOGGER, ToStderr

# As in a program that has not set up logging, which pytest has; it sees the messages as well.
LOGGER.handlers, LOGGER.propagate = [ToStderr()], True

# One thread for each worker and for each process that a test starts, set before numpy is imported.
# The process that hands out the tests reads this file too: torch is imported where it is used.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

pytest_plugins = ["tests.costs"]

# Examples take longer on a machine under load, which says nothing of the code.
settings.register_profile(
    "any_load", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any_load")


@pytest.fixture(scope="session", autouse=True)
def _searched_and_computed_once():
    """What fits ask the installed packages and their parser, and what releases ask opacus."""
    import torch
    from lightning_fabric.utilities import registry
    from pytorch_lightning.cli import LightningCLI
    from pytorch_lightning.trainer.connectors.logger_connector import result

    opinion = sys.modules.get("lightning_dpg.privacy.second_opinion")  # where a test may write one
    complete = sys.modules.get("lightning_dpg.run.fit")  # where one may complete settings
    composition = sys.modules.get("lightning_dpg.privacy.composition")
    sets = sys.modules.get("lightning_dpg.datamodules.built_in_sets")
    with pytest.MonkeyPatch.context() as patch:
        # Each trainer searches all packages for callbacks, which takes most of its start.
        patch.setattr(registry, "entry_points", functools.cache(registry.entry_points))
        # Each figure is copied, with all that is known of it, where it moves to the device it is on.
        if not torch.cuda.is_available():
            patch.setattr(result._ResultMetric, "to", lambda metric, *args, **options: metric)
        # The parser goes through all options for each option, several times.
        find = "find_action_and_subcommand"  # not part of its interface: it may go
        places = [
            module
            for name, module in sys.modules.items()
            if name.startswith("jsonargparse.") and find in vars(module)
        ]
        if places:
            found = once_for_each_parser(getattr(places[0], find))
            for module in places:
                patch.setattr(module, find, found)
        # A process of a user runs one command, and needs its parser once.
        patch.setattr(
            LightningCLI, "setup_parser", once_for_each_command(LightningCLI.setup_parser)
        )
        if complete is not None:
            patch.setattr(
                complete, "complete_settings", once_if_shipped(complete.complete_settings)
            )
        if sets is not None:
            drawn = functools.cache(sets.planted_sets)
            read = lambda: [copy.copy(graph) for graph in drawn()]
            patch.setitem(sets.BUILT_IN_SETS, "planted_sets", read)
        if composition is not None:
            # Budgets, searches for their steps and statements compose the same releases again.
            patch.setattr(
                composition, "composed_delta", once_for_equal_values(composition.composed_delta)
            )
        if opinion is not None:
            from opacus.accountants.analysis import rdp

            # Both of its accountants ask for the same orders of the same mechanism.
            patch.setattr(rdp, "_compute_rdp", functools.cache(rdp._compute_rdp))
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


def once_if_shipped(complete):
    """A function of a command line, computed once for each shipped configuration alone."""
    from lightning_dpg.run.configurations import shipped_configs

    paths = [each for path in shipped_configs().values() for each in (path, path.resolve())]
    shipped = {("--config", str(path)) for path in paths}
    known = {}

    def completed(args):
        if (key := tuple(args)) not in shipped:
            return complete(args)
        if key not in known:
            known[key] = complete(args)
        return copy.deepcopy(known[key])

    return completed


def once_for_each_command(setup):
    """Set up the parser of a command line, once for each command; runs leave nothing in it."""
    known = {}
    names = ("parser", "_subcommand_parsers", "_subcommand_method_arguments")

    def setup_parser(self, *args):
        key = self._command, self.parser_class  # which a test may replace
        if key not in known:
            setup(self, *args)
            known[key] = {name: vars(self)[name] for name in names}
        vars(self).update(known[key])

    return setup_parser


def once_for_each_parser(find):
    """A search for an option, made once for each parser that has got no further option since."""
    known = weakref.WeakKeyDictionary()

    def found(parser, dest, exclude=None):
        if getattr(parser, "_subcommands_action", None):  # whose own parsers come here
            return find(parser, dest, exclude)
        places = known.setdefault(parser, {})
        key = dest, exclude, len(parser._actions)
        if key not in places:
            places[key] = find(parser, dest, exclude)
        return places[key]

    return found


TENANTS = [Path(__file__).parent / name for name in ("apps", "papers")]


def pytest_ignore_collect(collection_path, config):
    """Do not even import the tests of tenants where they would be left out."""
    return True if collection_path in TENANTS and "not tenants" in config.option.markexpr else None


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Search for garbage less often, and neither while modules are imported nor among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items):
    """Tests of applications and of papers are a group of their own.

    Sensitivities, noise and ledgers of all methods, also of papers, are tried in any case,
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
def here(tmp_path, monkeypatch):
    """A folder of the test's own, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def printed(capsys):
    """What a command has printed that ended with this code, 0."""

    def words(code):
        assert code == 0
        return capsys.readouterr().out

    return words


@pytest.fixture
def refusal(capsys):
    """What a command has said that ended with this code, 2: a few lines."""

    def words(code):
        assert code == 2
        error = capsys.readouterr().err
        assert 1 <= len(error.splitlines()) <= 5, error
        return error

    return words


@pytest.fixture
def fails(here, capfd):
    """Run a command that has to fail and to leave no trace in its folder; give what it says."""
    from lightning_dpg.main import main

    def run(*args):
        before = sorted(here.rglob("*"))
        assert main(args) == 2
        assert sorted(here.rglob("*")) == before
        out, err = capfd.readouterr()
        assert not out
        assert 1 <= len(err.splitlines()) <= 5, err
        return err

    return run


@pytest.fixture
def ids_in_order(monkeypatch):
    """Ids of edge lists keep their order, which a test compares: releases have them in a secret one."""
    from lightning_dpg.datamodules.nodes import Nodes

    def are_numbered(nodes, node_set):
        return nodes.names == "numbers" or (nodes.names == "auto" and bool(nodes.value_domains))

    monkeypatch.setattr(Nodes, "are_numbered", are_numbered)
