"""What a trainer can do beside its flags: each is refused, or leaves the booked steps alone."""

import networkx as nx
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.tuner import Tuner
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant, PrivacyProgressBar
from lightning_dpg.callbacks.nonprivate import withhold_nonprivate
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import ChungLu, DPNetGAN
from lightning_dpg.preflight.trainer import check_equal_records, check_sampler, check_trainer
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sampling import PoissonSampler
from tests.callbacks.test_privacy_accountant import Steps, batches
from tests.preflight.test_trainer import Reader, fit
from tests.training import quiet_trainer


@pytest.mark.parametrize("search", ["lr_find", "scale_batch_size"])
@pytest.mark.parametrize("stage", ["fit", "validate", "test"])
def test_a_tuner_makes_no_trial_step(search, stage, here):
    module, data = Reader(), EdgeListDataModule("karate", steps_per_epoch=5)
    tuner = Tuner(quiet_trainer(PrivacyAccountant(8.0, 1e-4)))
    with pytest.raises((MisconfigurationException, TypeError)):
        getattr(tuner, search)(module, datamodule=data, method=stage)
    assert not module.ledger.entries
    assert not module.seen


def test_two_budgets_are_refused():
    """The run kept the second one, and the first one said nothing."""
    with pytest.raises(MisconfigurationException, match="two PrivacyAccountants"):
        fit(PrivacyAccountant(1e3, 1e-4))


def test_anomalies_are_not_looked_for_by_the_global_switch_either():
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.raises(MisconfigurationException, match="detect_anomaly"),
    ):
        fit()


def test_an_accountant_that_leaves_during_the_run_leaves_its_budget():
    class Remove(pl.Callback):
        def on_train_batch_end(self, trainer, *_):
            trainer.callbacks = [c for c in trainer.callbacks if c is self]

    module = Steps(sigma=0.5, q=1.0)
    quiet_trainer(PrivacyAccountant(30.0, 1e-5), Remove()).fit(module, batches(50, 1.0))
    assert 0 < module.ledger.steps < 50
    assert module.ledger.delta(30.0) <= 1e-5 < module.ledger.delta(30.0, *module.step_entries())


def test_a_group_of_processes_that_the_trainer_does_not_know_is_refused(monkeypatch):
    """Two processes of one trainer each: the sum of 153.6 held each gradient of at most 1 twice."""
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 2)
    with pytest.raises(MisconfigurationException, match="2 processes, and the trainer 1"):
        check_trainer(quiet_trainer(), DPNetGAN(34))
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 1)
    check_trainer(quiet_trainer(), DPNetGAN(34))


class TwoRanks:
    """A trainer of two processes, of which the other one shows a digest."""

    world_size = 2

    def __init__(self, shown=None):
        self.strategy, self.shown = self, shown

    def broadcast(self, digest):
        self.digest = digest
        return self.shown or digest

    def reduce_boolean_decision(self, decision):
        return decision


def loader_of(graph):
    data = EdgeListDataModule(graph)
    data.setup("fit")
    return data.train_dataloader()


def test_processes_with_different_data_are_refused():
    """Without its first edge, 38 of the other 77 edges were in the batches of both processes."""
    karate = nx.karate_club_graph()
    less = karate.copy()
    less.remove_edge(0, 1)
    own, other = TwoRanks(), TwoRanks()
    check_equal_records(loader_of(karate), own)
    check_equal_records(loader_of(less), other)
    check_equal_records(loader_of(karate), TwoRanks(own.digest))
    with pytest.raises(MisconfigurationException, match="different data") as refused:
        check_equal_records(loader_of(karate), TwoRanks(other.digest))
    assert not any(number in str(refused.value) for number in ("77", "78"))
    check_equal_records(loader_of(karate), own, Steps().step_entries())
    with pytest.raises(MisconfigurationException, match="different settings"):
        check_equal_records(
            loader_of(karate), TwoRanks(own.digest), Steps(sigma=2.0).step_entries()
        )


@pytest.mark.parametrize("make", [lambda: ChungLu(34), lambda: PoissonSampler(9, 0.5, 1)])
def test_noise_of_before_the_process_group_is_not_used_in_it(make, monkeypatch):
    """Each process had a key of its own: two noisy looks at one sum, at the price of one."""
    owner = make()
    owner.noise if isinstance(owner, ChungLu) else setattr(owner, "noise", NoiseSource())
    early = owner.noise
    keys = []
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 2)
    monkeypatch.setattr("torch.distributed.broadcast_object_list", lambda k, src: keys.append(k))
    if isinstance(owner, PoissonSampler):
        list(owner)
    assert owner.noise is not early
    assert owner.noise is owner.noise
    assert len(keys) == 1


def test_a_refusal_does_not_name_the_number_of_records():
    data = EdgeListDataModule("karate")
    data.setup("fit")
    loader = data.train_dataloader()
    loader.sampler.num_records = 77
    with pytest.raises(MisconfigurationException, match="another number") as refused:
        check_sampler(loader, quiet_trainer())
    assert not any(number in str(refused.value) for number in ("77", "78"))


def test_checkpoints_are_not_uploaded(tmp_path):
    """The command line refused it, and a logger from Python uploaded the private checkpoints."""
    logger = CSVLogger(tmp_path)
    for name in ("_log_model", "_log_model_checkpoints"):
        setattr(logger, name, "all")
        with pytest.raises(MisconfigurationException, match=f"{name[1:]} of CSVLogger uploads"):
            fit(logger=logger)
        withhold_nonprivate(quiet_trainer(logger=logger), Steps(), upload=True)
        setattr(logger, name, False)
    assert not list(tmp_path.rglob("ledger*"))


@pytest.mark.parametrize(("spent", "shown"), [(1.3749, "1.38/2"), (0.0041201, "0.00413/2")])
def test_the_bar_rounds_up(spent, shown, monkeypatch):
    """It showed 1.37 and 0.00."""
    module = Steps()
    module.ledger.budget = Budget(2.0, 1e-5)
    monkeypatch.setattr(module.ledger, "epsilon", lambda delta, **_: spent)
    monkeypatch.setattr(pl.callbacks.TQDMProgressBar, "get_metrics", lambda *_: {"v_num": 0})
    assert PrivacyProgressBar().get_metrics(None, module) == {"eps": shown}


class Nested(DPNetGAN):
    """Makes two steps on each batch, as a loop in a loop does."""

    def training_step(self, batch, batch_idx):
        super().training_step(batch, batch_idx)
        super().training_step(batch, batch_idx)


def test_a_batch_is_read_in_one_step_only():
    """Two steps on one sample of rate q were booked as two samples."""
    module = Nested(34, noise_multiplier=1.0, num_edges=78, embedding_dim=4, critic_dim=4)
    with pytest.raises(ValueError, match="it was read before"):
        quiet_trainer(PrivacyAccountant(8.0, 1e-4)).fit(module, EdgeListDataModule("karate"))
    assert module.ledger.steps == 1
