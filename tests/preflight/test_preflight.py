"""A run passes each check before its first read, whoever starts it, and passes for itself only."""

from collections import Counter
from functools import wraps

import networkx as nx
import pytest
import pytorch_lightning as pl
from pytorch_lightning.utilities.exceptions import MisconfigurationException

import lightning_dpg as dpg
from lightning_dpg.callbacks import PrivacyAccountant, privacy_accountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.main import main
from lightning_dpg.methods import BTER
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.preflight import preflight, trainer
from lightning_dpg.privacy.ledger import PrivacyLedger
from tests.training import quiet_trainer

GRAPH = nx.karate_club_graph()
ONCE = [
    (PrivacyAccountant, "__init__"),
    (PrivateModule, "accept_data"),
    (PrivateModule, "accept_budget"),
    (EdgeListDataModule, "check_request"),
    (EdgeListDataModule, "_check_arguments"),  # one data module
    (privacy_accountant, "privacy_statement"),
]


@pytest.fixture
def calls(monkeypatch):
    """Names of what was called, in order; ``spend`` is the first read."""
    made = []

    def record(owner, name):
        real = getattr(owner, name)

        @wraps(real)
        def recorded(*args, **options):
            made.append((owner, name))
            return real(*args, **options)

        monkeypatch.setattr(owner, name, recorded)

    for owner, name in [*ONCE, (PrivacyLedger, "spend")]:
        record(owner, name)
    return made


def by_command():
    assert main(["fit", "--config", "bter", "--trainer.enable_progress_bar", "false"]) == 0


def in_python():
    dpg.fit("les_miserables", "bter", epsilon=1.0)


def by_lightning():
    quiet_trainer(PrivacyAccountant(1.0, 0.0)).fit(BTER(), EdgeListDataModule(GRAPH))


@pytest.mark.parametrize("fit", [by_command, in_python, by_lightning])
def test_each_check_is_made_once_and_before_the_first_read(fit, calls, here):
    fit()
    before = calls[: calls.index((PrivacyLedger, "spend"))]
    assert Counter(before) == Counter(ONCE[:-1])
    assert calls.count(ONCE[-1]) == 1  # one statement, which accountant and writer share


def passed(method, data, *callbacks, **options):
    """A trainer of a run that has passed the preflight."""
    accountant = PrivacyAccountant(4.0, 0.0)
    made = quiet_trainer(accountant, *callbacks, **options)
    data.setup("fit")
    preflight(made, method, data, accountant)
    return made


def test_a_run_that_has_passed_is_not_checked_again_and_the_next_one_is():
    method, data = BTER(), EdgeListDataModule(GRAPH)
    made = passed(method, data)
    made.fit_loop.min_epochs = 3
    made.fit(method, data)  # its settings are those of the preflight
    with pytest.raises(MisconfigurationException, match="min_epochs"):
        made.fit(method, data)


def test_another_method_has_not_passed():
    data = EdgeListDataModule(GRAPH)
    made = passed(BTER(), data)
    made.fit_loop.min_epochs = 3
    other = BTER()
    with pytest.raises(MisconfigurationException, match="min_epochs"):
        made.fit(other, data)
    assert not other.ledger.entries


@pytest.mark.parametrize(
    ("callback", "said"),
    [
        (pl.callbacks.StochasticWeightAveraging(0.1), "averages copies"),
        (pl.callbacks.EarlyStopping("nonprivate/val"), "would choose by"),
    ],
)
def test_callbacks_that_a_method_adds_are_checked_too(callback, said):
    class Adds(BTER):
        def configure_callbacks(self):
            return [*super().configure_callbacks(), callback]

    method, data = Adds(), EdgeListDataModule(GRAPH)
    made = passed(method, data)
    with pytest.raises(MisconfigurationException, match=said):
        made.fit(method, data)
    assert not method.ledger.entries


def test_processes_are_looked_at_when_they_run(monkeypatch):
    method, data = BTER(), EdgeListDataModule(GRAPH)
    made = passed(method, data)
    monkeypatch.setattr(trainer.dist, "is_initialized", lambda: True)
    monkeypatch.setattr(trainer.dist, "get_world_size", lambda: 2)
    with pytest.raises(MisconfigurationException, match="2 processes, and the trainer 1"):
        made.fit(method, data)
    assert not method.ledger.entries
