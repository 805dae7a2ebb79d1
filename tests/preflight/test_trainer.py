"""Each trainer flag and built-in callback is refused, or leaves the booked steps alone."""

import inspect

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.plugins import MixedPrecision
from pytorch_lightning.strategies import SingleDeviceStrategy
from pytorch_lightning.trainer.connectors.data_connector import _process_dataloader
from pytorch_lightning.trainer.states import RunningStage, TrainerFn
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch.utils.data import DataLoader

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.records import EdgeRecords
from lightning_dpg.interfaces import BatchRequest
from lightning_dpg.methods import ChungLu, DPNetGAN
from lightning_dpg.preflight.trainer import check_loader, check_sampler, check_trainer
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sampling import PoissonSampler
from tests.entries import entry
from tests.training import BooksSteps, quiet_trainer

RATE, PER_EPOCH = 0.1, 5


class Reader(BooksSteps):
    """Books a sampled Gaussian for each batch, and keeps the batches."""

    def __init__(self, kind="poisson"):
        super().__init__()
        self.kind = kind
        self.seen = []
        self.batch_size = 1  # BatchSizeFinder asks for it

    def batch_request(self):
        return BatchRequest(self.kind, RATE)

    def step_entries(self):
        return [entry(name="steps", noise_multiplier=1.0, sample_rate=RATE)]

    def training_step(self, batch, batch_idx):
        super().training_step(batch, batch_idx)
        self.seen.append(batch.data)


@pytest.fixture
def draws(monkeypatch):
    """All Poisson draws of the test: rates and indices."""
    made, bernoulli = [], NoiseSource.bernoulli

    def recorded(self, n, p):
        made.append((p, bernoulli(self, n, p)))
        return made[-1][1]

    monkeypatch.setattr(NoiseSource, "bernoulli", recorded)
    return made


def fit(*callbacks, **options):
    module = Reader()
    data = EdgeListDataModule("karate", steps_per_epoch=PER_EPOCH)
    trainer = quiet_trainer(PrivacyAccountant(8.0, 1e-4), *callbacks, **options)
    trainer.fit(module, data)
    return module, data


def books_what_it_does(draws, *callbacks, steps=None, **options):
    """One fresh draw at the booked rate for each booked step, and the step reads that draw."""
    module, data = fit(*callbacks, **options)
    (read,) = module.ledger.entries
    assert read.steps == len(module.seen) == (steps or read.steps)
    for (rate, indices), batch in zip(draws, module.seen, strict=False):
        assert rate == read.event.sample_rate
        assert torch.equal(batch, data.edges[indices])


REFUSED = object()
FLAGS = {
    "accelerator": [("cpu", 5)],
    "strategy": [("auto", 5), (SingleDeviceStrategy("cpu"), 5)],
    "devices": [(1, 5)],
    "num_nodes": [(1, 5)],
    "precision": [
        ("32-true", 5),
        ("64-true", REFUSED),
        ("bf16-mixed", REFUSED),
        ("bf16-true", REFUSED),
    ],
    "logger": [("csv", 5)],
    "callbacks": [],  # below
    "fast_dev_run": [(2, 2), (True, 1)],
    "max_epochs": [(2, 10), (0, REFUSED)],
    "min_epochs": [(1, REFUSED)],
    "max_steps": [(3, 3)],
    "min_steps": [(1, REFUSED)],
    "max_time": [("00:01:00:00", 5)],
    "limit_train_batches": [(3, 3), (0.4, 2), (0, REFUSED), (0.0, REFUSED)],
    "limit_val_batches": [(0, 5)],
    "limit_test_batches": [(0, 5)],
    "limit_predict_batches": [(0, 5)],
    "overfit_batches": [(1, REFUSED), (0.5, REFUSED)],
    "val_check_interval": [(2, 5)],
    "check_val_every_n_epoch": [(2, 5)],
    "num_sanity_val_steps": [(2, 5)],
    "log_every_n_steps": [(1, 5)],
    "enable_checkpointing": [(True, 5)],
    "enable_progress_bar": [(True, 5)],
    "enable_model_summary": [(True, 5)],
    "accumulate_grad_batches": [(2, REFUSED)],
    "gradient_clip_val": [(1.0, REFUSED)],
    "gradient_clip_algorithm": [("value", 5)],
    "deterministic": [("warn", 5)],
    "benchmark": [(True, 5)],
    "inference_mode": [(False, 5)],
    "use_distributed_sampler": [(True, 5), (False, 5)],  # on two devices: below
    "profiler": [("simple", 5), ("advanced", REFUSED), ("pytorch", REFUSED)],
    "detect_anomaly": [(True, REFUSED)],
    "barebones": [(True, 5)],
    "plugins": [("mixed", REFUSED)],
    "sync_batchnorm": [(True, 5)],
    "reload_dataloaders_every_n_epochs": [(1, REFUSED)],
    "default_root_dir": [("runs", 5)],
    "enable_autolog_hparams": [(False, 5)],
    "model_registry": [("name", 5)],
}


def test_every_flag_of_the_trainer_is_looked_at():
    """A new version of Lightning may bring new ones: say what each does to a booked step."""
    assert set(FLAGS) == set(inspect.signature(pl.Trainer.__init__).parameters) - {"self"}


@pytest.mark.parametrize(
    ("flag", "value", "steps"), [(flag, *case) for flag, cases in FLAGS.items() for case in cases]
)
def test_a_flag_is_refused_or_the_run_books_what_it_does(flag, value, steps, draws, here):
    if value == "csv":
        value = CSVLogger(here)
    if value == "mixed":
        value = MixedPrecision("bf16-mixed", "cpu")
    options = {flag: value}
    if steps is not REFUSED:
        try:
            books_what_it_does(draws, steps=steps, **options)
        finally:
            torch.use_deterministic_algorithms(False)
        return
    with pytest.raises(MisconfigurationException, match=flag.replace("plugins", "precision")):
        fit(**options)
    assert not draws
    assert not list(here.rglob("ledger*"))


BUILT_IN = pl.callbacks
CALLBACKS = {
    "BackboneFinetuning": (BUILT_IN.BackboneFinetuning, REFUSED),
    "BaseFinetuning": (BUILT_IN.BaseFinetuning, REFUSED),
    "BasePredictionWriter": (BUILT_IN.BasePredictionWriter, 5),
    "BatchSizeFinder": (BUILT_IN.BatchSizeFinder, REFUSED),
    "Callback": (BUILT_IN.Callback, 5),
    "Checkpoint": (BUILT_IN.Checkpoint, 5),
    "DeviceStatsMonitor": (BUILT_IN.DeviceStatsMonitor, REFUSED),
    "EMAWeightAveraging": (BUILT_IN.EMAWeightAveraging, REFUSED),
    "EarlyStopping": (lambda: BUILT_IN.EarlyStopping("privacy/steps", patience=9), 5),
    "GradientAccumulationScheduler": (
        lambda: BUILT_IN.GradientAccumulationScheduler({0: 2}),
        REFUSED,
    ),
    "LambdaCallback": (BUILT_IN.LambdaCallback, 5),
    "LearningRateFinder": (BUILT_IN.LearningRateFinder, REFUSED),
    "LearningRateMonitor": (BUILT_IN.LearningRateMonitor, 5),
    "ModelCheckpoint": (BUILT_IN.ModelCheckpoint, 5),
    "ModelPruning": (lambda: BUILT_IN.ModelPruning("l1_unstructured"), REFUSED),
    "ModelSummary": (BUILT_IN.ModelSummary, 5),
    "OnExceptionCheckpoint": (lambda: BUILT_IN.OnExceptionCheckpoint("."), 5),
    "ProgressBar": (BUILT_IN.ProgressBar, 5),
    "RichModelSummary": (BUILT_IN.ModelSummary, 5),
    "RichProgressBar": (BUILT_IN.TQDMProgressBar, 5),
    "SpikeDetection": (BUILT_IN.SpikeDetection, REFUSED),
    "StochasticWeightAveraging": (lambda: BUILT_IN.StochasticWeightAveraging(0.1), REFUSED),
    "TQDMProgressBar": (BUILT_IN.TQDMProgressBar, 5),
    "ThroughputMonitor": (lambda: BUILT_IN.ThroughputMonitor(len), REFUSED),
    "Timer": (lambda: BUILT_IN.Timer("00:01:00:00"), 5),
    "WeightAveraging": (BUILT_IN.WeightAveraging, REFUSED),
}


def test_every_built_in_callback_is_looked_at():
    assert set(CALLBACKS) == set(pl.callbacks.__all__)


@pytest.mark.parametrize("name", CALLBACKS)
def test_a_callback_is_refused_or_the_run_books_what_it_does(name, draws, here):
    make, steps = CALLBACKS[name]
    given = {"enable_checkpointing": issubclass(getattr(BUILT_IN, name), BUILT_IN.Checkpoint)}
    given["logger"] = CSVLogger(here) if name == "LearningRateMonitor" else False
    given["enable_progress_bar"] = name.endswith("Bar")
    given["enable_model_summary"] = name.endswith("Summary")
    if steps is not REFUSED:
        books_what_it_does(draws, make(), steps=steps, **given)
        return
    with pytest.raises(MisconfigurationException, match=f"{name} .*: remove it"):
        fit(make(), **given)
    assert not draws


def test_two_processes_must_not_share_a_wrapped_sampler():
    """Constructed as two processes would: one record could be in both parts of a step."""
    trainer = pl.Trainer(accelerator="cpu", devices=2, strategy="ddp", logger=False)
    with pytest.raises(MisconfigurationException, match="use_distributed_sampler"):
        check_trainer(trainer, DPNetGAN(34))
    check_trainer(trainer, ChungLu(34))  # reads all records whatever the batches hold
    data = EdgeListDataModule("karate")
    data.setup("fit")
    data.trainer = trainer
    loader = data.train_dataloader()
    assert check_sampler(loader, trainer) is loader.sampler
    wrapped = _process_dataloader(trainer, TrainerFn.FITTING, RunningStage.TRAINING, loader)
    with pytest.raises(MisconfigurationException, match="DistributedSamplerWrapper"):
        check_sampler(wrapped, trainer)
    plain = pl.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", logger=False, use_distributed_sampler=False
    )
    check_trainer(plain, DPNetGAN(34))


def loaders(data, world_size=1):
    records = EdgeRecords(data.edges, RATE)
    ours = PoissonSampler(len(records), RATE, 5)
    known = PoissonSampler(len(records), RATE, 5, NoiseSource(unsafe_seed=0))
    part = PoissonSampler(len(records) - 1, RATE, 5)
    other = PoissonSampler(len(records), RATE, 5, rank=1, world_size=2)
    return {
        "batches come from RandomSampler": DataLoader(records, batch_size=8, shuffle=True),
        "batches come from list": [records[torch.arange(3)]],
        "batch_size 4": DataLoader(records, batch_size=4, sampler=ours),
        "process 1 of 2": DataLoader(records, batch_size=None, sampler=other),
        "with a known seed": DataLoader(records, batch_size=None, sampler=known),
        "another number of records": DataLoader(records, batch_size=None, sampler=part),
        "at the rate 0.5, and booked at 0.1": DataLoader(
            records, batch_size=None, sampler=PoissonSampler(len(records), 0.5, 5)
        ),
    }


@pytest.mark.parametrize("number", range(7))
def test_batches_of_another_kind_are_refused_before_anything_is_spent(number):
    class Other(EdgeListDataModule):
        def train_dataloader(self):
            return list(loaders(self).values())[number]

    data, module = Other("karate"), DPNetGAN(34, noise_multiplier=1.0)
    data.setup("fit")
    with pytest.raises(MisconfigurationException, match=list(loaders(data))[number]):
        quiet_trainer(PrivacyAccountant(8.0, 1e-4)).fit(module, data)
    assert not module.ledger.entries


class Exchange(pl.Callback):
    """Draws at another rate from the second epoch on."""

    def on_train_epoch_end(self, trainer, pl_module):
        trainer.train_dataloader.sampler.sample_rate = 0.9


def test_a_rate_that_changes_in_a_run_is_refused():
    with pytest.raises(MisconfigurationException, match=r"rate 0\.9, and booked at 0\.1"):
        fit(Exchange(), max_epochs=2)


def test_a_method_that_says_nothing_of_its_batches_is_held_to_what_it_books():
    module = Reader("all")
    trainer = quiet_trainer(PrivacyAccountant(8.0, 1e-4))
    with pytest.raises(MisconfigurationException, match="SequentialSampler"):
        trainer.fit(module, DataLoader(torch.zeros(9)))
    assert not module.ledger.entries
    assert check_loader(trainer, ChungLu(34)) is None
