"""A run that goes on with other data spends the budget of these."""

from dataclasses import replace

import networkx as nx
import pytest
from pytorch_lightning.callbacks import ModelCheckpoint

from lightning_dpg.apps.book.book import Book
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import BookError
from tests.apps.book.test_booking import register
from tests.callbacks.test_privacy_accountant import Killed, Killer, make_trainer
from tests.preflight.test_trainer import Reader


class Planned(Reader):
    """A reader that says in advance what it books."""

    def plan(self, budget, steps):
        return [replace(entry, steps=steps) for entry in self.step_entries()]


@pytest.mark.parametrize("total", [8.0, 0.2])
def test_steps_on_other_data_are_booked_on_these(total, tmp_path):
    url = f"sqlite:///{tmp_path}/book.db"
    book = Book(url, is_new=True)
    first, other = (
        EdgeListDataModule(graph, steps_per_epoch=10)
        for graph in (nx.karate_club_graph(), nx.path_graph(34))
    )
    register(book, "first", first, epsilon=8.0)
    register(book, "other", other, epsilon=total)
    keep = ModelCheckpoint(every_n_train_steps=3)

    def trainer(*callbacks):
        budget = PrivacyAccountant(8.0, 1e-4, book=url)
        return make_trainer(budget, *callbacks, folder=tmp_path, max_epochs=1)

    with pytest.raises(Killed):
        trainer(Killer(5), keep).fit(Planned(), first)
    module = Planned()
    if total < 8.0:
        with pytest.raises(BookError, match="does not pay for Planned"):
            trainer().fit(module, other, ckpt_path=keep.best_model_path)
        assert not book.runs("other")
        return
    trainer().fit(module, other, ckpt_path=keep.best_model_path)
    assert module.ledger.steps == 10
    booked = {
        name: sum(e.steps for run in book.runs(name) for e in run.booked)
        for name in ("first", "other")
    }
    assert booked == {"first": 5, "other": 10}  # the weights hold what the first five released
    book.close()
