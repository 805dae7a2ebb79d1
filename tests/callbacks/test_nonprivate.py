"""What a run logs is public by its declared name, or it bears the prefix ``nonprivate/``."""

import csv

import pytest
import pytorch_lightning as pl
from pytorch_lightning.loggers import CSVLogger, Logger
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from lightning_dpg.callbacks import PrivacyAccountant
from tests.callbacks.test_privacy_accountant import Steps, batches
from tests.training import quiet_trainer

PRIVATE = 7.25


class Tracker(Logger):
    """Keeps all that it gets."""

    name, version = "tracker", "0"

    def __init__(self):
        super().__init__()
        self.figures, self.steps, self.hyperparameters = {}, set(), {}

    @property
    def experiment(self):
        return self

    def add_scalar(self, name, value, step):
        self.log_metrics({name: value}, step)

    def log_metrics(self, metrics, step=None):
        self.figures |= metrics
        self.steps.add(step)

    def log_hyperparams(self, params, *args, **kwargs):
        self.hyperparameters |= params
        assert self.experiment is self


class Talks(Steps):
    """Logs one private figure in all ways, and one that it declares public."""

    curve_names = ("train/loss", "nonprivate/declared")

    def training_step(self, batch, batch_idx):
        super().training_step(batch, batch_idx)
        self.log("train/loss", 0.5, on_step=True, on_epoch=True)
        for name in ("train_loss", "privacy/mine", "stat/mine", "nonprivateX", "hp_metric"):
            self.log(name, PRIVATE)
        self.log_dict({"lr-mine": PRIVATE, "epoch": PRIVATE, "step": PRIVATE}, prog_bar=True)
        self.log("nonprivate/declared", PRIVATE)
        for logger in self.loggers:
            logger.log_metrics({"by_logger": PRIVATE}, step=batch_idx)
            logger.log_hyperparams({"batch": PRIVATE, "sigma": PRIVATE})
        self.loggers[0].experiment.log_metrics({"by_experiment": PRIVATE}, 0)
        self.loggers[1].experiment.add_scalar("by_experiment", PRIVATE, 0)


class Watches(pl.Callback):
    def on_train_batch_end(self, trainer, pl_module, *_):
        pl_module.log("by_callback", PRIVATE)
        for logger in trainer.loggers:
            logger.log_metrics({"by_callback_too": PRIVATE}, step=0)


@pytest.mark.parametrize("upload", [False, True])
def test_a_figure_that_is_not_declared_is_marked_and_stays(upload, tmp_path):
    tracker, module = Tracker(), Talks()
    trainer = quiet_trainer(
        PrivacyAccountant(30.0, 1e-5, upload_nonprivate=upload),
        Watches(),
        pl.callbacks.LearningRateMonitor(),
        logger=[CSVLogger(tmp_path), tracker],
        log_every_n_steps=1,
    )
    trainer.fit(module, batches(3))
    public = {
        *("epoch", "lr-SGD", "train/loss_step", "train/loss_epoch"),
        *("privacy/epsilon", "privacy/delta", "privacy/steps"),
    }
    marked = {"nonprivate/train_loss", "nonprivate/privacy/mine", "nonprivate/by_logger"}
    (path,) = tmp_path.rglob("metrics.csv")
    with path.open() as file:
        local = {name for row in csv.DictReader(file) for name in row if row[name]}
    local -= {"step"}
    assert {name for name in local if not name.startswith("nonprivate/")} == public
    assert marked | {"nonprivate/declared", "nonprivate/by_callback"} < local
    if upload:
        assert local <= set(tracker.figures)
        return
    assert set(tracker.figures) == public
    assert PRIVATE not in tracker.figures.values()
    assert tracker.steps <= {0, 1, 2}
    assert "batch" not in tracker.hyperparameters
    assert tracker.hyperparameters["sigma"] == module.hparams["sigma"] != PRIVATE
    assert tracker.experiment is tracker  # the run has ended


class Follows(Steps):
    scheduler = ReduceLROnPlateau

    def configure_optimizers(self):
        optimizer = super().configure_optimizers()
        return [optimizer], [self.scheduler(optimizer)]


def test_a_learning_rate_that_follows_private_figures_is_refused():
    module = Follows()
    with pytest.raises(MisconfigurationException, match="ReduceLROnPlateau"):
        quiet_trainer(PrivacyAccountant(30.0, 1e-5)).fit(module, batches(3))
    assert not module.ledger.entries
    module.scheduler = lambda optimizer: StepLR(optimizer, 1)
    quiet_trainer(PrivacyAccountant(30.0, 1e-5)).fit(module, batches(3))
    assert module.ledger.steps == 3
