"""Runs end within their budget, and a killed run forgets no step."""

import math
from pathlib import Path
from typing import get_args

import networkx as nx
import pytest
import pytorch_lightning as pl
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lightning_fabric.connector import _PRECISION_INPUT
from pytorch_lightning.callbacks import Callback, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, GraphSetDataModule
from lightning_dpg.methods import (
    ChungLu,
    DPNetGAN,
    ErdosRenyiSet,
    LDPGromovWasserstein,
    PrivateGraphKernel,
)
from lightning_dpg.methods.base import LEDGER
from lightning_dpg.preflight.budget import check_delta
from lightning_dpg.preflight.trainer import check_selection, check_settings
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.ledger import JOURNAL, LedgerEntry, PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sampling import PoissonSampler
from lightning_dpg.release.statement import privacy_statement
from tests.entries import entry
from tests.training import BooksSteps, quiet_trainer

FINE = {"min_epochs": None, "min_steps": None, "strategy": "auto", "precision": "None"}
DATA = {"num_edges": 100, "num_pairs": 4950, "is_pure": False}


class Steps(BooksSteps):
    """Books one sampled Gaussian per batch."""

    def __init__(self, sigma=1.0, q=0.1):
        super().__init__()
        self.save_hyperparameters()

    def step_entries(self):
        return [
            entry(
                name="steps", noise_multiplier=self.hparams["sigma"], sample_rate=self.hparams["q"]
            )
        ]


class Killed(RuntimeError):
    pass


class Killer(Callback):
    """Ends the process, as far as a test can, in the middle of a step."""

    def __init__(self, after):
        self.after = after

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.after -= 1
        if self.after == 0:
            raise Killed


def make_trainer(*callbacks, folder=None, **options):
    return quiet_trainer(
        *callbacks,
        logger=CSVLogger(folder) if folder else False,
        enable_checkpointing=any(isinstance(c, ModelCheckpoint) for c in callbacks),
        log_every_n_steps=1,
        **{"max_epochs": 100, **options},
    )


def batches(count, q=0.1):
    """Poisson samples of some records."""
    records = torch.utils.data.TensorDataset(torch.zeros(20))
    return torch.utils.data.DataLoader(
        records, sampler=PoissonSampler(len(records), q, count), batch_size=None
    )


@settings(max_examples=12)
@given(
    sigma=st.floats(0.6, 4),
    q=st.floats(0.01, 1),
    epsilon=st.floats(0.5, 8),
    log_delta=st.floats(-8, -3),
)
def test_run_ends_within_the_budget_and_one_more_step_would_not(sigma, q, epsilon, log_delta):
    delta, module = 10**log_delta, Steps(sigma, q)
    trainer = make_trainer(PrivacyAccountant(epsilon, delta), max_epochs=3)
    trainer.fit(module, batches(60, q))
    assert not module.ledger.entries or module.ledger.delta(epsilon) <= delta
    if module.ledger.steps < 180 and trainer.should_stop:
        assert module.ledger.delta(epsilon, *module.step_entries()) > delta


def test_curves_are_those_of_the_ledger(tmp_path):
    module = Steps()
    trainer = make_trainer(PrivacyAccountant(8.0, 1e-5), folder=tmp_path, max_epochs=1)
    trainer.fit(module, batches(3))
    assert trainer.logged_metrics["privacy/steps"] == 3
    expected = PrivacyLedger(module.relation)
    for read in 3 * module.step_entries():
        expected.spend(read)
    assert trainer.logged_metrics["privacy/epsilon"] == pytest.approx(expected.epsilon(1e-5))
    assert trainer.logged_metrics["privacy/delta"] == pytest.approx(expected.delta(8.0))


@pytest.mark.parametrize("kills", [[5], [1], [4, 4], [7, 2, 6], [3, 1, 1, 9]])
def test_killed_and_resumed_run_books_every_step_it_made(tmp_path, kills):
    """Checkpoints come every 3 batches, kills at any: what lies between must not get lost."""
    budget = {"epsilon": 4.0, "delta": 1e-5}
    checkpoint, made = None, 0
    for after in kills:
        keep = ModelCheckpoint(every_n_train_steps=3, save_top_k=-1)
        trainer = make_trainer(
            PrivacyAccountant(**budget), Killer(after), keep, folder=tmp_path, max_epochs=1
        )
        with pytest.raises(Killed):
            trainer.fit(Steps(), batches(1000), ckpt_path=checkpoint)
        made += after
        if checkpoint is not None or keep.best_model_path:
            assert steps_in_journal(trainer) == made
        else:
            made = 0  # nothing to resume from: the next run is another one
        checkpoint = keep.best_model_path or checkpoint
    module = Steps()
    trainer = make_trainer(PrivacyAccountant(**budget), folder=tmp_path, max_epochs=1)
    trainer.fit(module, batches(1000), ckpt_path=checkpoint)
    alone = Steps()
    make_trainer(PrivacyAccountant(**budget), max_epochs=1).fit(alone, batches(1000))
    assert steps_in_journal(trainer) == module.ledger.steps == alone.ledger.steps


def steps_in_journal(trainer):
    shown = PrivacyLedger(Steps.relation)
    shown.load_state_dict(PrivacyLedger.replay(Path(trainer.log_dir) / JOURNAL))
    return shown.steps


def test_spent_budget_leaves_a_resumed_run_without_a_step(tmp_path):
    keep = ModelCheckpoint(save_last=True)
    first, again = Steps(), Steps()
    make_trainer(PrivacyAccountant(2.0, 1e-5), keep, folder=tmp_path).fit(first, batches(40))
    trainer = make_trainer(PrivacyAccountant(2.0, 1e-5), folder=tmp_path)
    trainer.fit(again, batches(40), ckpt_path=keep.last_model_path)
    assert again.ledger.steps == first.ledger.steps
    more = Steps()
    trainer = make_trainer(PrivacyAccountant(2.5, 1e-5), folder=tmp_path)
    trainer.fit(more, batches(40), ckpt_path=keep.last_model_path)
    assert more.ledger.steps > first.ledger.steps
    assert again.ledger.delta(2.0) <= 1e-5 < again.ledger.delta(2.0, *again.step_entries())


def test_checkpoint_without_ledger_is_refused(tmp_path):
    keep = ModelCheckpoint(save_last=True)
    trainer = make_trainer(PrivacyAccountant(2.0, 1e-5), keep, folder=tmp_path, max_epochs=1)
    trainer.fit(Steps(), batches(3))
    state = torch.load(keep.last_model_path, weights_only=True)
    del state["state_dict"][LEDGER]
    torch.save(state, tmp_path / "stripped.ckpt")
    with pytest.raises(MisconfigurationException, match="no privacy ledger"):
        make_trainer(PrivacyAccountant(2.0, 1e-5)).fit(
            Steps(), batches(3), ckpt_path=tmp_path / "stripped.ckpt"
        )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"min_epochs": 1}, "min_epochs"),
        ({"min_steps": 5}, "min_steps"),
        ({"strategy": "FSDPStrategy"}, "FSDPStrategy shards"),
        ({"strategy": "deepspeed_stage_2"}, "shards"),
        ({"strategy": "pytorch_lightning.strategies.ModelParallelStrategy"}, "shards"),
        *(
            ({"precision": str(each)}, "full precision")
            for kinds in get_args(_PRECISION_INPUT)
            for each in get_args(kinds)
            if str(each) not in ("32", "32-true")
        ),
    ],
)
def test_settings_that_void_the_guarantee_are_refused(changed, said):
    check_settings(**FINE)
    with pytest.raises(MisconfigurationException, match=said):
        check_settings(**FINE | changed)


def test_a_delta_that_protects_no_single_edge_is_refused():
    check_delta(Budget(1.0, 1e-5), **DATA)
    with pytest.raises(MisconfigurationException, match="number of edges"):
        check_delta(Budget(1.0, 1e-5), **DATA | {"num_edges": 100_000})


@pytest.mark.parametrize(
    ("num_pairs", "advice"), [(4_999_950_000, "1e-10"), (9, "1e-01"), (10, "1e-02")]
)
@pytest.mark.parametrize("delta", [0.0, 0.9])
def test_advised_delta_is_of_the_public_pairs_and_not_of_the_edges(delta, num_pairs, advice):
    said = set()
    for num_edges in (8, 5):
        with pytest.raises(MisconfigurationException) as refusal:
            data = {"num_edges": num_edges, "num_pairs": num_pairs}
            check_delta(Budget(1.0, delta), **DATA | data)
        said.add(str(refusal.value))
    (text,) = said  # equal for all numbers of edges
    assert f"set it to {advice} or less" in text
    assert float(advice) * num_pairs < 1


def test_a_release_states_what_it_shows_of_the_number_of_edges():
    """The exact number of edges decides whether a run with a delta is refused."""
    for budget, stated in (
        (Budget(1.0, 1e-5), ["that there are fewer than 100000 edges"]),
        (Budget(1.0, 0.0), []),
        (Budget(math.inf, 1e-5), []),
    ):
        module = ledger_of(pure("x", 0.5))
        module.ledger.budget = budget
        said = [text.partition(" (")[0] for text in privacy_statement(module)["assumptions"]]
        assert said == stated


def test_delta_zero_is_for_pure_methods():
    check_delta(Budget(1.0, 0.0), **DATA | {"is_pure": True})
    with pytest.raises(MisconfigurationException, match="pure epsilon"):
        check_delta(Budget(1.0, 0.0), **DATA)


def test_infinite_budget_needs_no_delta_and_never_stops():
    module = Steps(sigma=0.3, q=1.0)
    make_trainer(PrivacyAccountant("inf"), max_epochs=1).fit(module, batches(50, 1.0))
    assert module.ledger.steps == 50
    with pytest.raises(ValueError, match="delta is missing"):
        make_trainer(PrivacyAccountant(1.0)).fit(Steps(), batches(1))


def test_last_line_names_the_guarantee(capsys):
    make_trainer(PrivacyAccountant(8.0, 1e-5), max_epochs=1).fit(Steps(), batches(3))
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("guarantee: edge-level (")
    assert "1e-05)-DP (add/remove one undirected edge)" in line
    assert "3 private steps" in line


def ledger_of(*entries):
    module = Steps()
    module.ledger.budget = PrivacyAccountant(math.inf, 1e-5).budget
    for read in entries:
        module.ledger.spend(read)
    return module


def pure(name, epsilon):
    return entry("pure", name=name, epsilon=epsilon)


def test_statement_holds_what_applies_and_no_rounding_of_sums():
    module = ledger_of(*(pure(name, 0.1) for name in "abc"))
    assert module.ledger.epsilon(0.0) > 0.3
    statement = privacy_statement(module)
    assert statement["epsilon"] == 0.3
    assert "(0.3, 0)-DP" in statement["guarantee"]
    assert statement["conditional"] is False
    # What exceeds it by more than rounding still counts.
    assert privacy_statement(ledger_of(pure("x", 2.9 * (1 + 1e-8))))["epsilon"] == 2.9001
    (read,) = privacy_statement(ledger_of(pure("x", 0.4 - 2e-16)))["entries"]
    assert read["epsilon"] == 0.4
    assert not {"noise_multiplier", "delta"} & set(read)
    assert LedgerEntry.from_dict(read) == pure("x", 0.4)


def test_known_noise_voids_the_guarantee():
    module = ledger_of(*Steps().step_entries())
    assert isinstance(privacy_statement(module)["epsilon"], float)
    assert privacy_statement(module)["noise_source"] == "os"
    module._noise = NoiseSource(unsafe_seed=1)
    statement = privacy_statement(module)
    assert statement["guarantee"].startswith("none: the noise was drawn from a known seed")
    assert (statement["epsilon"], statement["noise_source"]) == ("inf", "none")


def test_empty_ledger_is_no_proof():
    statement = privacy_statement(ledger_of())
    assert statement["guarantee"].startswith("none: ")
    assert statement["epsilon"] == "inf"


@pytest.mark.parametrize("selector", ["EarlyStopping", "ModelCheckpoint"])
@pytest.mark.parametrize("monitor", ["nonprivate/val", "train_loss", "privacy/mine", "lr-SGD"])
def test_selection_by_private_figures_is_refused_within_a_budget(selector, monitor, tmp_path):
    callback = getattr(pl.callbacks, selector)(monitor=monitor, mode="max")
    trainer = make_trainer(callback, default_root_dir=tmp_path)
    with pytest.raises(MisconfigurationException, match=rf"{selector}.*{monitor}"):
        check_selection(trainer, Steps(), Budget(1.0, 1e-5))
    check_selection(trainer, Steps(), Budget(math.inf, 1e-5))


@pytest.mark.parametrize("monitor", ["train/generator_loss", "privacy/epsilon", "step"])
def test_selection_by_declared_curves_is_paid_for(monitor, tmp_path):
    callback = pl.callbacks.ModelCheckpoint(monitor=monitor)
    trainer = make_trainer(callback, PrivacyAccountant(1.0, 1e-5), default_root_dir=tmp_path)
    check_selection(trainer, DPNetGAN(34), Budget(1.0, 1e-5))


@pytest.fixture
def interrupted(tmp_path):
    """A checkpoint of step 3, whose run was stopped after step 5 of 10."""
    keep = ModelCheckpoint(every_n_train_steps=3)
    trainer = make_trainer(
        PrivacyAccountant(8.0, 1e-5), Killer(5), keep, folder=tmp_path / "first", max_epochs=1
    )
    with pytest.raises(Killed):
        trainer.fit(Steps(), batches(10))
    return Path(keep.best_model_path)


def resume(path, steps=10, **options):
    module = Steps()
    trainer = make_trainer(PrivacyAccountant(8.0, 1e-5, **options), max_epochs=1)
    trainer.fit(module, batches(steps), ckpt_path=path)
    return module.ledger


@pytest.mark.parametrize("beside", ["nothing", "the journal of another run"])
def test_checkpoint_without_its_journal_is_refused_unless_the_lost_steps_are_told(
    interrupted, tmp_path, beside
):
    (tmp_path / "elsewhere").mkdir()
    copied = interrupted.rename(tmp_path / "elsewhere" / "copied.ckpt")
    if beside != "nothing":
        other = PrivacyLedger(Steps.relation)
        other.journal = copied.with_name(JOURNAL)
        other.spend(*Steps().step_entries())
    with pytest.raises(MisconfigurationException, match="lost_steps") as refused:
        resume(copied)
    assert len(str(refused.value).splitlines()) <= 5
    assert resume(copied, lost_steps=2).steps == 12  # 3 kept, 2 lost, 7 made
    assert resume(copied, lost_steps=0).steps == 10


def test_lost_steps_are_in_the_journal_of_the_run_that_goes_on(interrupted, tmp_path):
    copied = interrupted.rename(tmp_path / "copied.ckpt")
    trainer = make_trainer(
        PrivacyAccountant(8.0, 1e-5, lost_steps=2), folder=tmp_path / "again", max_epochs=1
    )
    trainer.fit(Steps(), batches(10), ckpt_path=copied)
    assert steps_in_journal(trainer) == 12


def test_lost_steps_are_those_of_a_resumed_run():
    accountant = PrivacyAccountant(8.0, 1e-5, lost_steps=2)
    with pytest.raises(MisconfigurationException, match="leave it out of a new run"):
        make_trainer(accountant).fit(Steps(), batches(3))


ONE_SHOT = [ChungLu(34), DPNetGAN(34, noise_multiplier=1.0, num_edges=78), ErdosRenyiSet()]
ONE_SHOT += [PrivateGraphKernel(max_degree=3), LDPGromovWasserstein()]


@pytest.mark.parametrize("module", ONE_SHOT, ids=lambda module: type(module).__name__)
def test_a_second_fit_of_one_object_is_refused(module, tmp_path):
    """It released nothing, and printed a guarantee for the new data."""
    is_set = hasattr(module, "sizes")
    data = GraphSetDataModule if is_set else EdgeListDataModule
    name = [nx.path_graph(4), nx.star_graph(4)] if is_set else "karate"

    def fit(folder):
        trainer = make_trainer(PrivacyAccountant(80.0, 1e-5), folder=folder, max_epochs=1)
        trainer.fit(module, data(name))

    fit(tmp_path)
    entries = list(module.ledger.entries)
    with pytest.raises(MisconfigurationException, match="make a new object"):
        fit(tmp_path / "again")
    assert module.ledger.entries == entries
    assert not list((tmp_path / "again").rglob(JOURNAL))
