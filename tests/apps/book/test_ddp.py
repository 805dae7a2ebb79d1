"""Two processes of one run reserve, book and give back once, and are refused together."""

import pytest
import yaml

from lightning_dpg.apps.book.book import Book
from lightning_dpg.main import main
from lightning_dpg.privacy.composition import costs
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.ledger import JOURNAL, PrivacyLedger
from tests.processes import LIMIT, ends, start_two_commands
from tests.test_ddp import BOTH, CONFIG, PROBE, launched

DEATH = """

import os
import signal


class Die(Callback):
    def on_train_batch_end(self, trainer, *args):
        dying = int(os.environ.get("DYING", -1))
        if trainer.global_rank == dying and trainer.global_step >= 20:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a configuration, and a book that has its graph."""
    (tmp_path / "probe.py").write_text(PROBE + DEATH)
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(CONFIG))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", "sqlite:///book.db")
    total = ["--relation", "edge", "--epsilon", "12", "--delta", "3e-4"]
    assert main(["budget", "init"]) == 0
    assert main(["budget", "register", "novel", "les_miserables", *total]) == 0
    return tmp_path


def end(place):
    """Exit code and output of both processes, of which the first one starts the second."""
    process = launched(place, "lightning_dpg", *BOTH)
    out, _ = process.communicate(timeout=LIMIT)
    return process.returncode, out


def runs():
    book = Book("sqlite:///book.db")
    try:
        book.reconcile()
        return book.runs()
    finally:
        book.close()


def journaled(place):
    """Events of each journal, by their number of steps."""
    states = [PrivacyLedger.replay(path) for path in sorted(place.glob(f"runs/*/*/{JOURNAL}"))]
    return [costs([LedgerEntry.from_dict(entry) for entry in each["entries"]]) for each in states]


def test_one_process_books_and_a_refusal_ends_both(place):
    codes, outs = ends(start_two_commands(place, *BOTH))
    assert codes == [0, 0], outs
    (run,) = runs()
    assert run.outcome == "ended"
    assert [costs(run.booked)] == journaled(place)
    assert sum(entry.steps for entry in run.booked) > 40  # the steps, and the number of edges
    folders = sorted(place.glob("runs/*/*"))
    code, out = end(place)
    assert code == 2, out
    assert "what is left of its total does not pay for DPNetGAN" in out
    assert sorted(place.glob("runs/*/*")) == folders
    assert len(runs()) == 1


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_run_of_which_one_process_dies_gives_back_the_rest(place, monkeypatch, rank):
    monkeypatch.setenv("DYING", rank)
    dying = "--trainer.callbacks=[{class_path: probe.Die}]"
    codes, outs = ends(start_two_commands(place, *BOTH, dying))
    assert 0 not in codes, outs
    (run,) = runs()
    assert run.outcome == ("killed" if rank == "0" else "stopped")
    (journal,) = journaled(place)
    booked = costs(run.booked)
    assert booked == journal if rank == "1" else booked >= journal  # a killed run keeps its block
    assert 10 <= sum(entry.steps for entry in run.booked) < 40
