"""A progress bar that shows the budget."""

import contextlib
import math
import sys
from collections.abc import Callable
from typing import Any

from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import TQDMProgressBar
from pytorch_lightning.callbacks.progress.tqdm_progress import Tqdm

from lightning_dpg.privacy.budget import digits_up
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger


def _on_stderr(init: Callable[[TQDMProgressBar], Tqdm]) -> Callable[[TQDMProgressBar], Tqdm]:
    """Return the function that makes a bar, which is drawn on stderr in place of stdout."""

    def on_stderr(callback: TQDMProgressBar) -> Tqdm:
        with contextlib.redirect_stdout(sys.stderr):  # which Lightning passes to the bar
            return init(callback)

    return on_stderr


class PrivacyProgressBar(TQDMProgressBar):
    """Progress bar with the epsilon spent and the budget, such as ``eps=1.37/2``; it is rounded up.

    That of private columns is ``row_eps``. The bar is drawn on stderr, since the lines at the end of a run are the output of a command.
    """

    init_sanity_tqdm = _on_stderr(TQDMProgressBar.init_sanity_tqdm)
    init_train_tqdm = _on_stderr(TQDMProgressBar.init_train_tqdm)
    init_validation_tqdm = _on_stderr(TQDMProgressBar.init_validation_tqdm)
    init_test_tqdm = _on_stderr(TQDMProgressBar.init_test_tqdm)
    init_predict_tqdm = _on_stderr(TQDMProgressBar.init_predict_tqdm)

    def get_metrics(self, trainer: Trainer, pl_module: Any) -> dict[str, Any]:
        """Return the metrics at the end of the bar."""
        metrics = super().get_metrics(trainer, pl_module)
        metrics.pop("v_num", None)  # the run folder is named in full at the end
        ledger: PrivacyLedger = pl_module.ledger
        shown = {"eps": ledger.relation, "row_eps": Relation.ATTRIBUTES}
        for name, relation in shown.items():
            budget = ledger.budget_of(relation)
            if budget is not None and math.isfinite(budget.epsilon):
                epsilon = digits_up(ledger.epsilon(budget.delta, relation=relation), 3)
                metrics[name] = f"{epsilon}/{budget.epsilon:g}"
        return metrics


def announce(trainer: Trainer, text: str) -> None:
    """Announce the work after a full bar, which takes many seconds for a large graph.

    Args:
        trainer: Trainer of the run; nothing is said without a bar of :class:`PrivacyProgressBar`.
        text: Work that follows.
    """
    bar = trainer.progress_bar_callback
    if isinstance(bar, PrivacyProgressBar) and bar.is_enabled and sys.stderr.isatty():
        Tqdm.write(text, file=sys.stderr)  # an open bar moves below it
