"""Runs in Python reserve, book and give back, however they end."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from pytorch_lightning.callbacks import Callback, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger

import lightning_dpg as dpg
from lightning_dpg.apps.book import owner
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.reservation import Reservation
from lightning_dpg.apps.book.unfinished import proved_steps
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import (
    Columns,
    EdgeListDataModule,
    GraphSetDataModule,
    SubgraphDataModule,
)
from lightning_dpg.errors import BookError
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.methods import ChungLu, PrivateGraphKernel
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.composition import fits
from lightning_dpg.privacy.events import PROVED_FOR, Relation
from tests.entries import entry
from tests.graphs import labelled
from tests.training import BooksSteps, quiet_trainer

KARATE = nx.karate_club_graph()
SET = [nx.gnm_random_graph(10, 10 + 25 * (k % 2), seed=k) for k in range(40)]


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A new book of the environment."""
    url = f"sqlite:///{tmp_path}/book.db"
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", url)
    made = Book(url, is_new=True)
    yield made
    made.close()


def register(book, name, data, epsilon=4.0, delta=1e-4, relation=Relation.EDGE, **changes):
    data.setup("fit")
    fingerprint = book.fingerprint(data.identity())
    total = Budget(epsilon, delta)
    owner.register(book, name, fingerprint, total=total, relation=relation, **changes)


def outcomes(book, name="people"):
    return [run.outcome for run in book.runs(name)]


def booked(book, name="people"):
    return [sum(entry.pure_epsilon for entry in run.booked) for run in book.runs(name)]


def kernel_fitted(data, epsilon=1.0):
    method = PrivateGraphKernel(features=["edges", "gk-c3"], max_degree=4)
    quiet_trainer(PrivacyAccountant(epsilon, 0.0)).fit(method, data)
    return method


class Conditional(ChungLu):
    """A user's own method with a condition."""

    def condition(self):
        return "the moon is full"


def test_the_condition_of_a_run_is_booked(book):
    data = EdgeListDataModule(KARATE)
    register(book, "people", data)
    for _ in range(2):
        quiet_trainer(PrivacyAccountant(1.0, 0.0)).fit(ChungLu(), data)
    proved = summary(book, "people")
    assert 1.9 < proved["spent"] <= 2.0 and not proved["conditional"]
    quiet_trainer(PrivacyAccountant(1.0, 0.0)).fit(Conditional(), data)
    found = summary(book, "people")
    conditions = [each["condition"] for each in found["releases"]]
    assert conditions == [None, None, "the moon is full"]
    assert 2.9 < found["spent"] <= 3.0
    assert found["conditional"]


def test_a_total_of_transfers_books_runs_on_edges_by_transfer(book, tmp_path):
    """The run reads no amounts: it is known by its edges alone; its journal proves what it spent."""
    rows = pd.DataFrame([(f"m{u}", f"m{v}", 1) for u, v in KARATE.edges])
    rows.columns = ["source", "target", "amount"]
    data = EdgeListDataModule(rows, columns=Columns(weight="amount", weight_max=10))
    register(book, "pay", data, 5.0, relation=Relation.TRANSFER)
    released = dpg.fit(rows, "chung_lu", epsilon=3.5, out=tmp_path / "run", progress=False)
    (run,) = book.runs("pay")
    assert released.guarantee.startswith("edge-level")
    assert {(each.relation, each.public[PROVED_FOR]) for each in run.booked} == {
        (Relation.TRANSFER, "undirected edge")
    }
    assert [entry.by_edge().by_transfer() for entry in run.booked] == run.booked
    assert (booked(book, "pay"), summary(book, "pay")["spent"]) == ([pytest.approx(3.5)], 3.5)
    lost = replace(run, planned=[replace(each, booked=0) for each in run.planned])
    assert proved_steps(lost) == [entry.steps for entry in run.plan]
    with pytest.raises(dpg.CommandError, match="samples edges"):
        dpg.fit(rows, "dp_netgan", epsilon=1.0, delta=1e-5, progress=False)
    with pytest.raises(dpg.CommandError, match="does not pay for ChungLu"):
        dpg.fit(rows, "chung_lu", epsilon=2.0, progress=False)
    assert len(book.runs("pay")) == 1


def test_predict_is_booked_on_the_graphs_that_it_reads(book):
    known, new = GraphSetDataModule(labelled(SET)), GraphSetDataModule(labelled(SET[:8]))
    register(book, "people", known)
    register(book, "newcomers", new)
    method = kernel_fitted(known)
    trainer = quiet_trainer(PrivacyAccountant(0.5, 0.0))
    trainer.predict(method, GraphSetDataModule(labelled(SET[:8])))
    assert booked(book, "people") == pytest.approx([1.0])
    assert booked(book, "newcomers") == pytest.approx([0.5])
    assert len(book.runs("newcomers")[0].booked) == len(method.ledger.entries) == 2
    trainer.predict(method, GraphSetDataModule(labelled(SET)))  # the graphs of fit again
    assert booked(book, "people") == pytest.approx([1.0, 0.5])
    assert outcomes(book, "people") == ["ended", "ended"]
    with pytest.raises(BookError, match="does not pay for PrivateGraphKernel"):
        quiet_trainer(PrivacyAccountant(5.0, 0.0)).predict(method, new)
    quiet_trainer(PrivacyAccountant(5.0, 0.0, book="none")).predict(method, new)
    assert outcomes(book, "newcomers") == ["ended"]


def test_a_predict_that_fails_before_its_release_gives_all_back(book, monkeypatch):
    data = GraphSetDataModule(labelled(SET))
    register(book, "people", data)
    method = kernel_fitted(data)

    def fail(*args):
        assert book.left("people") == pytest.approx(2)  # it is reserved now
        raise RuntimeError("no memory")

    monkeypatch.setattr(method, "release_features", fail)
    with pytest.raises(RuntimeError, match="no memory"):
        quiet_trainer(PrivacyAccountant(1.0, 0.0)).predict(method, data)
    assert outcomes(book) == ["ended", "stopped"]
    assert book.left("people") == pytest.approx(3)


class Stop(Callback):
    """Ends a run at its first batch, before any release."""

    def __init__(self, error):
        self.error = error

    def on_train_batch_start(self, *args):
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
def test_a_stopped_fit_gives_back_and_another_one_follows_in_the_same_process(book, error):
    data = EdgeListDataModule(KARATE)
    register(book, "people", data)
    accountant = PrivacyAccountant(1.0, 0.0)
    with pytest.raises((RuntimeError, SystemExit)):
        quiet_trainer(accountant, Stop(error)).fit(ChungLu(), data)
    assert (outcomes(book), booked(book)) == (["stopped"], [0])
    for epsilon in (1.0, 0.5):  # the same object again, with another budget
        accountant.epsilon = epsilon
        quiet_trainer(accountant).fit(ChungLu(), data)
    assert booked(book) == pytest.approx([0, 1.0, 0.5])
    assert not [run for run in book.runs() if run.is_open]
    accountant.book = "none"
    quiet_trainer(accountant).fit(ChungLu(), data)
    assert len(book.runs()) == 3


class Steps(BooksSteps):
    """Books one Gaussian per batch."""

    def plan(self, budget, steps):
        return [entry(name="steps", steps=steps, noise_multiplier=4.0)]

    def step_entries(self):
        return self.plan(None, 1)


class Served(EdgeListDataModule):
    """A graph with batches that no method samples."""

    def check_request(self, request, max_epochs):
        pass

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.zeros(10, 1), batch_size=None)


def run_of_steps(tmp_path, *callbacks, checkpoint=None, name="first", epsilon=8.0, **options):
    accountant = PrivacyAccountant(epsilon, 1e-5, dataset="people", **options)
    trainer = quiet_trainer(
        *(accountant, *callbacks),
        enable_checkpointing=bool(callbacks),
        logger=CSVLogger(tmp_path / name),
    )
    module = Steps()
    trainer.fit(module, Served(KARATE), ckpt_path=checkpoint)
    return module.ledger


class Kill(Callback):
    """Ends a run after some steps."""

    def on_train_batch_end(self, trainer, *args):
        if trainer.global_step == 5:
            raise RuntimeError("killed")


def lost_checkpoint(tmp_path):
    """Checkpoint of step 3 of a run that went on to step 5; its journal is gone."""
    keep = ModelCheckpoint(every_n_train_steps=3)
    with suppress(RuntimeError):
        run_of_steps(tmp_path, keep, Kill())
    return Path(keep.best_model_path).rename(tmp_path / "kept.ckpt")


def steps_of(book):
    return [sum(entry.steps for entry in run.booked) for run in book.runs("people")]


@pytest.mark.parametrize("lost", [2, 9])
def test_lost_steps_are_booked_also_beyond_the_plan(book, tmp_path, lost):
    """3 steps are in the checkpoint, and 7 more are made; the plan has 10."""
    register(book, "people", Served(KARATE), epsilon=20.0)
    checkpoint = lost_checkpoint(tmp_path)
    ledger = run_of_steps(tmp_path, checkpoint=checkpoint, name="again", lost_steps=lost)
    assert ledger.steps == 3 + lost + 7
    assert steps_of(book) == [5, 3 + lost, 7]
    assert outcomes(book) == ["stopped", "stopped", "ended"]


def test_lost_steps_that_exceed_the_total_are_booked_and_end_the_run(book, tmp_path, capsys):
    register(book, "people", Served(KARATE), epsilon=20.0)
    checkpoint = lost_checkpoint(tmp_path)
    lost = 10_000
    assert not fits(Steps().plan(None, lost), Budget(20.0, 1e-4))
    with pytest.raises(BookError, match="10000 lost steps are booked, and exceed the total"):
        run_of_steps(tmp_path, checkpoint=checkpoint, name="again", lost_steps=lost)
    assert steps_of(book) == [5, 3 + lost]
    assert (book.left("people"), book.runs("people")[1].outcome) == (0, "stopped")
    with pytest.raises(BookError, match="does not pay"):
        dpg.fit(KARATE, "chung_lu", epsilon=0.1, dataset="people")


def test_every_form_of_a_graph_in_memory_is_recognized(book, tmp_path):
    register(book, "people", EdgeListDataModule(KARATE))
    pairs = [(a, b) for a, b in KARATE.edges]
    forms = [
        KARATE,
        pairs[::-1],
        np.array(pairs),
        pd.DataFrame(pairs, columns=["source", "target"]),
        nx.to_numpy_array(KARATE, weight=None),
        nx.to_scipy_sparse_array(KARATE, weight=None),
        from_networkx(KARATE),
        EdgeListDataModule(KARATE),
    ]
    for form in forms:
        dpg.fit(form, "erdos_renyi", epsilon=0.25, progress=False)
    assert booked(book) == pytest.approx([0.25] * len(forms))
    # Parts that are cut from the graph have its edges.
    cut = SubgraphDataModule(KARATE, kind="ego", num_subgraphs=10, max_occurrences=4)
    kernel_fitted(cut, 0.5)
    assert booked(book)[-1] == pytest.approx(0.5)
    assert outcomes(book) == ["ended"] * (len(forms) + 1)


def test_refused_runs_leave_no_files(book, tmp_path):
    register(book, "people", EdgeListDataModule(KARATE), epsilon=0.5)
    out = tmp_path / "new" / "folder"
    with pytest.raises(dpg.CommandError, match="does not pay for ChungLu"):
        dpg.fit(KARATE, "chung_lu", epsilon=1.0, out=out)
    with pytest.raises(dpg.CommandError, match="are not registered"):
        dpg.fit("les_miserables", "chung_lu", epsilon=0.1, out=out)
    with pytest.raises(dpg.CommandError, match="Unknown has no identity"):
        dpg.fit(Unknown(KARATE), "chung_lu", epsilon=0.1, out=out)
    own = quiet_trainer(PrivacyAccountant(0.1, 0.0), default_root_dir=tmp_path / "own")
    with pytest.raises(dpg.CommandError, match="give book and dataset to it"):
        dpg.fit(KARATE, "chung_lu", epsilon=0.1, trainer=own, dataset="people")
    assert all(path.name.startswith("book.db") for path in tmp_path.iterdir())
    assert book.runs() == []


class Unknown(EdgeListDataModule):
    """A data module of a user that says nothing of its content."""

    identity = None


def test_a_run_that_cannot_be_closed_leaves_no_lock_in_a_living_notebook(book, monkeypatch):
    """As after a minute without the lock of writes: the next one to look reconciles it."""
    register(book, "people", EdgeListDataModule(KARATE))

    kept = []  # as a notebook keeps its trainer

    def fails(self, outcome, release=None):
        kept.append(self)
        raise BookError("locked for 60 seconds")

    with monkeypatch.context() as patched:
        patched.setattr(Reservation, "close", fails)
        with pytest.raises(dpg.CommandError, match="locked for 60 seconds"):
            dpg.fit(KARATE, "chung_lu", epsilon=1.0, progress=False)
    assert outcomes(book) == ["open"]
    assert book.reconcile() == [1]


def test_a_new_version_under_the_name_of_other_people_warns_with_the_right_name(book):
    register(book, "people", EdgeListDataModule(KARATE))
    register(book, "others", EdgeListDataModule("les_miserables"))
    version = KARATE.copy()
    version.remove_edge(0, 1)
    with pytest.warns(UserWarning, match="have the nodes of 'people'"):
        dpg.fit(version, "erdos_renyi", epsilon=0.1, dataset="others", progress=False)
