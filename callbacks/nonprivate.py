"""Figures that read the private graph stay on this machine by default."""

from collections.abc import Mapping, Sequence
from typing import Any

from pytorch_lightning import Trainer
from pytorch_lightning.loggers import CSVLogger, Logger
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks.graph_statistics import GraphStatistics
from lightning_dpg.preflight.typed_trainer import typed

PREFIX = "nonprivate/"
_UPLOADS = ("log_model", "log_model_checkpoints")
"""Settings of loggers that upload checkpoints."""


def withhold_nonprivate(trainer: Trainer, *, upload: bool) -> None:
    """Keep curves and pictures with the prefix ``nonprivate/`` from the loggers of a run.

    They are dropped in ``log_metrics``, through which Lightning, the methods and the callbacks
    all log. Trackers that work offline are no exception: their files are made to be uploaded.

    Args:
        trainer: Trainer of the run. With ``GraphStatistics(nonprivate=False)`` among its callbacks
            no logger keeps any of them.
        upload: Whether loggers other than the local CSV may have them, and checkpoints.

    Raises:
        MisconfigurationException: If a logger uploads checkpoints.
    """
    if not upload:
        _refuse_uploads(trainer.loggers)
    statistics = (each for each in typed(trainer).callbacks if isinstance(each, GraphStatistics))
    shows_nonprivate = all(each.nonprivate for each in statistics)
    for logger in trainer.loggers:
        if not shows_nonprivate or not (upload or isinstance(logger, CSVLogger)):
            _withhold(logger)


def _refuse_uploads(loggers: Sequence[Logger]) -> None:
    """Refuse loggers that upload checkpoints, which are private."""
    for logger in loggers:
        for setting in _UPLOADS:
            if vars(logger).get(f"_{setting}"):  # some loggers answer to any name
                raise MisconfigurationException(
                    f"{setting} of {type(logger).__name__} uploads checkpoints, which hold what was "
                    "read of the private graph\nset it to False, or upload_nonprivate of "
                    "PrivacyAccountant to True"
                )


def _withhold(logger: Logger) -> None:
    log_metrics = logger.log_metrics

    def log_others(metrics: Mapping[str, Any], step: int | None = None) -> None:
        others = {name: value for name, value in metrics.items() if not name.startswith(PREFIX)}
        if others:
            log_metrics(others, step=step)

    logger.log_metrics = log_others  # type: ignore[method-assign]
