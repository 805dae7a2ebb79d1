"""Two runs that go on from one checkpoint: their spends add up, or one of them is refused."""

from pathlib import Path

import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.errors import Refusal
from lightning_dpg.methods.base import ledger_of
from lightning_dpg.privacy.ledger import JOURNAL, JournalOfTwoRuns, PrivacyLedger, open_journal
from lightning_dpg.privacy.paid_weights import LEDGER
from tests.callbacks.test_privacy_accountant import (
    Killer,
    Steps,
    batches,
    interrupted,
    make_trainer,
    steps_in_journal,
)

__all__ = ["interrupted"]


def resume(path, folder=None, *callbacks, epsilon=8.0, sigma=1.0):
    module = Steps(sigma)
    trainer = make_trainer(
        PrivacyAccountant(epsilon, 1e-5), *callbacks, folder=folder, max_epochs=1
    )
    trainer.fit(module, batches(10), ckpt_path=path)
    return module.ledger.steps, trainer


@pytest.mark.parametrize("folders", [(None, None), ("a", None), (None, "b"), ("a", "b")])
def test_a_checkpoint_that_is_resumed_twice_books_both(interrupted, tmp_path, folders):
    """The first resume without a folder was in no journal, and the second one did not count it."""
    first, second = (folder and tmp_path / folder for folder in folders)
    assert resume(interrupted, first)[0] == 5 + 7
    assert resume(interrupted, second)[0] == 5 + 7 + 7


def test_a_resume_on_another_file_system_goes_on_in_the_same_journal(
    interrupted, tmp_path, monkeypatch
):
    """A copy would know nothing of what a second resume spends, nor the second of the copy."""

    def refused(*_):
        raise OSError("Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    assert resume(interrupted, tmp_path / "a")[0] == 12
    made, trainer = resume(interrupted, tmp_path / "b")
    assert made == steps_in_journal(trainer) == 19


class Fork(Killer):
    """Resumes the same checkpoint while its own run goes on."""

    def __init__(self, path, folder):
        super().__init__(4)
        self.path, self.folder = path, folder

    def on_train_batch_end(self, *args):
        self.after -= 1
        if self.after == 0:
            self.made, self.trainer = resume(self.path, self.folder)


def test_of_two_runs_at_once_from_one_checkpoint_one_ends(interrupted, tmp_path):
    """Both printed 12 steps, and made 19."""
    fork = Fork(interrupted, tmp_path / "fork")
    with pytest.raises(
        JournalOfTwoRuns, match="two runs share a folder or a checkpoint"
    ) as refused:
        resume(interrupted, tmp_path / "own", fork)
    assert len(str(refused.value).splitlines()) <= 5
    assert fork.made == steps_in_journal(fork.trainer) == 5 + 4 + 7


def test_two_new_runs_in_one_folder_do_not_share_a_journal(tmp_path):
    """The first wrote its later steps to the file of the second, where a resume missed the rest."""
    first, second = PrivacyLedger(Steps.relation), PrivacyLedger(Steps.relation)
    (step,) = Steps().step_entries()
    first.journal = open_journal(tmp_path, None)
    for _ in range(10):
        first.spend(step)
    second.journal = open_journal(tmp_path, None)
    second.spend(step)
    with pytest.raises(JournalOfTwoRuns):
        first.spend(step)
    second.spend(step)
    assert (first.steps, second.steps) == (10, 2)


def edited(path, change):
    state = torch.load(path, weights_only=True)
    ledger = ledger_of(state)
    state["privacy_ledger"] = ledger | {"entries": change(ledger["entries"])}
    state["assumptions"] = []
    state["state_dict"].pop(LEDGER, None)  # earlier versions had these keys in place of it
    torch.save(state, path)
    return path


def test_fewer_steps_in_an_edited_checkpoint_are_those_of_the_journal(interrupted):
    path = edited(interrupted, lambda entries: [entries[0] | {"steps": 1}])
    assert resume(path)[0] == 12
    path = edited(interrupted, lambda entries: [])
    assert resume(path)[0] == 19


@pytest.mark.parametrize(
    ("change", "beside"),
    [
        (lambda entries: [entries[0] | {"noise_multiplier": 100.0}], True),
        (lambda entries: [entries[0] | {"steps": 7}], True),
        (lambda entries: [], False),
    ],
)
def test_an_edited_ledger_that_no_journal_confirms_is_refused(interrupted, change, beside):
    """Without entries it passed for a checkpoint of which nothing had been released."""
    path = edited(interrupted, change)
    if not beside:
        (interrupted.parents[1] / JOURNAL).unlink()
    with pytest.raises(MisconfigurationException, match="lost_steps"):
        resume(path)


def test_a_lower_budget_that_is_spent_adds_no_step_and_is_not_what_is_stated(
    interrupted, tmp_path, capsys
):
    made, _ = resume(interrupted, tmp_path / "low", epsilon=0.1)
    assert made == 5
    alone = PrivacyLedger(Steps.relation)
    for entry in 5 * Steps().step_entries():
        alone.spend(entry)
    stated = float(
        capsys.readouterr().out.rpartition("(add")[0].rpartition("level (")[2].split(",")[0]
    )
    assert stated >= alone.headline(1e-5)[0] > 0.1


def test_noise_that_was_changed_after_releases_were_seen_is_refused(interrupted, tmp_path):
    """At (1, 1e-5) noise that follows from a first release of 0.5 had a delta of 1.32e-5."""
    with pytest.raises(Refusal, match=r"noise_multiplier 1 (.|\n)*cannot change"):
        resume(interrupted, tmp_path / "noisier", sigma=2.0)
    assert resume(interrupted)[0] == 12  # nothing was booked by the refused run
