"""Figures that read the private graph stay on this machine by default."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytorch_lightning import Trainer
from pytorch_lightning.loggers import CSVLogger, Logger
from pytorch_lightning.loggers.logger import DummyLogger
from pytorch_lightning.trainer.states import TrainerStatus
from pytorch_lightning.utilities import rank_zero_only
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks.graph_statistics import GraphStatistics
from lightning_dpg.interfaces import Released
from lightning_dpg.outcome import note
from lightning_dpg.preflight.trainer import PREFIX, public_curves
from lightning_dpg.preflight.typed_trainer import typed

_FRAMEWORKS = ("pytorch_lightning", "lightning_fabric", "lightning_dpg")
_UPLOADS = ("log_model", "log_model_checkpoints")
"""Settings of loggers that upload checkpoints."""


def withhold_nonprivate(trainer: Trainer, method: Released, *, upload: bool) -> None:
    """Mark figures that no one declared public, and keep them from the trackers of a run.

    A figure keeps its name if that is one of :func:`~lightning_dpg.preflight.trainer.public_curves`.
    All others get the prefix ``nonprivate/``, and trackers do not get them; those that work offline
    are no exception, since their files are made to be uploaded. This holds in ``log_metrics``,
    through which Lightning, methods, callbacks and pictures are logged. Hyperparameters are those
    that the constructors saved. While the trainer runs, ``experiment`` of a logger takes nothing
    from others than the logger and Lightning.

    Args:
        trainer: Trainer of the run. With ``GraphStatistics(nonprivate=False)`` among its callbacks
            no logger keeps any figure with the prefix.
        method: Its method.
        upload: Whether loggers other than the local CSV may have them, and checkpoints.

    Raises:
        MisconfigurationException: If a logger uploads checkpoints.
    """
    if not upload:
        _refuse_uploads(trainer.loggers)
    statistics = (each for each in typed(trainer).callbacks if isinstance(each, GraphStatistics))
    shows_nonprivate = all(each.nonprivate for each in statistics)
    said: set[str] = set()
    for logger in trainer.loggers:
        keeps = shows_nonprivate and (upload or isinstance(logger, CSVLogger))
        if not isinstance(logger, _Guarded):  # a logger may serve several runs
            kind = type(logger)
            # Parsers list the classes of loggers, and leave out private ones.
            names = {"__module__": __name__, "__qualname__": f"_Guarded.{kind.__name__}"}
            logger.__class__ = type(kind.__name__, (_Guarded, kind), names)
        vars(logger)["_guard"] = _Guard(trainer, method, keeps, said)


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


@dataclass(frozen=True)
class _Guard:
    """What one run lets a logger keep."""

    trainer: Trainer
    method: Released
    keeps_nonprivate: bool
    said: set[str]

    def named(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Return the figures that the logger keeps, by their names in the log."""
        if metrics == {"hp_metric": -1}:  # TensorBoard's mark of a run without such a figure
            return dict(metrics)
        public = public_curves(self.trainer, self.method)
        unknown = [name for name in metrics if name not in public and not name.startswith(PREFIX)]
        self.say("logged as nonprivate/NAME, since curve_names do not declare them public", unknown)
        named = {f"{PREFIX}{name}" if name in unknown else name: metrics[name] for name in metrics}
        if "epoch" in named:  # a figure of this name would replace the number
            named["epoch"] = self.trainer.current_epoch
        return {
            name: value
            for name, value in named.items()
            if self.keeps_nonprivate or not name.startswith(PREFIX)
        }

    def say(self, line: str, names: Iterable[str]) -> None:
        """Say a line on names of which it has not been said in this run."""
        if new := [name for name in names if name not in self.said]:
            self.said.update(new)
            rank_zero_only(note)(f"{', '.join(new)}: {line}")


class _Guarded(Logger):
    """Put before the class of a logger in a run."""

    _guard: _Guard

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Log what the run lets the logger keep, at the true step."""
        trainer = self._guard.trainer
        if "step" in trainer.logged_metrics:  # Lightning would take a figure of this name for it
            step = trainer.fit_loop.epoch_loop._batches_that_stepped
        if named := self._guard.named(metrics):
            super().log_metrics(named, step=step)  # type: ignore[safe-super]

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Log those that the constructors of method and data module saved."""
        trainer = self._guard.trainer
        holders = (trainer.lightning_module, typed(trainer).datamodule)
        saved: dict[str, Any] = {}
        for holder in holders:
            saved |= getattr(holder, "hparams_initial", {})
        names = params if isinstance(params, Mapping) else vars(params)
        kept = {name: saved[name] for name in names if name in saved}
        super().log_hyperparams(kept)  # type: ignore[safe-super]

    @property
    def experiment(self) -> Any:
        """The tracker's own object; for others than the logger and Lightning it takes nothing."""
        caller, guard = sys._getframe(1), self._guard
        is_own = caller.f_locals.get("self") is self
        is_own = is_own or caller.f_globals["__name__"].partition(".")[0] in _FRAMEWORKS
        experiment = super().experiment  # type: ignore[misc]
        if is_own or guard.trainer.state.status != TrainerStatus.RUNNING:
            return experiment
        guard.say(
            "takes nothing in a run; log by self.log", [f"experiment of {type(self).__name__}"]
        )
        return DummyLogger().experiment
