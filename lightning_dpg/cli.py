"""Lightning's command line with a mandatory privacy budget."""

import contextlib
import importlib
import logging
import os
from pathlib import Path
from typing import Any, NoReturn

import pytorch_lightning as pl
import torch
from jsonargparse import Namespace
from pytorch_lightning.callbacks import Callback, ProgressBar
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI
from pytorch_lightning.loggers import CSVLogger, Logger, WandbLogger
from pytorch_lightning.utilities import rank_zero_info
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from pytorch_lightning.utilities.rank_zero import rank_zero_only

# Imported for their classes, which configurations can then name without the module.
import lightning_dpg.callbacks
import lightning_dpg.datamodules
import lightning_dpg.methods  # noqa: F401
from lightning_dpg.callbacks import PrivacyAccountant, PrivacyProgressBar, ReleaseWriter
from lightning_dpg.callbacks.privacy_accountant import number_of_edges, number_of_pairs
from lightning_dpg.commands.errors import CommandError, explain
from lightning_dpg.commands.parsing import explain_parsing
from lightning_dpg.commands.tracking import why_offline
from lightning_dpg.methods.base import PrivateModule


class PrivateParser(LightningArgumentParser):
    """Parser whose errors say what is wrong, where, and the nearest valid name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take options by their full names only: ``max_epoch`` is a mistake, not a short form."""
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Leave with at most five lines; nested parsers tell the outermost one."""
        if not self.exit_on_error:
            super().error(message, ex)
        raise CommandError(explain_parsing(message, self.known_options())) from ex

    def add_lightning_class_args(self, *args: Any, **kwargs: Any) -> list[str]:
        """Add a class whose arguments are values: a path is not replaced by what the file holds."""
        added = super().add_lightning_class_args(*args, **kwargs)
        for action in self._actions:
            if action.dest in ("model", "data") and hasattr(action, "sub_add_kwargs"):
                action.sub_add_kwargs = {**action.sub_add_kwargs, "sub_configs": False}
        return added

    def known_options(self) -> list[str]:
        """Names of all options, those of subcommands included."""
        names = [action.dest for action in self._actions]
        subcommands = self._subcommands_action
        for parser in subcommands._name_parser_map.values() if subcommands else ():
            names += [action.dest for action in parser._actions]
        return names


class PrivateCLI(LightningCLI):
    """``fit``, ``validate``, ``test`` and ``predict``.

    Data are read and the budget is checked before a folder is made or an edge is used. Every run
    has a folder of its own, ``runs/METHOD/version_K`` unless the configuration says otherwise.
    """

    def __init__(self, args: list[str]) -> None:
        """Parse a command line and run it."""
        _silence_advertisements()
        self._data: pl.LightningDataModule | None = None
        self._checkpoint_hparams: dict[str, Any] = {}
        self._made_folders: list[Path] = []
        super().__init__(
            PrivateModule,
            pl.LightningDataModule,
            args=args,
            parser_class=PrivateParser,
            parser_kwargs={"prog": "lightning_dpg"},
            save_config_kwargs={"overwrite": True},
            seed_everything_default=0,
            subclass_mode_model=True,
            subclass_mode_data=True,
            auto_configure_optimizers=False,  # it would replace the private optimizers
            trainer_defaults={
                "default_root_dir": "runs",
                "log_every_n_steps": 1,
                "num_sanity_val_steps": 0,
                "use_distributed_sampler": False,  # Lightning's is not a Poisson sampler
            },
        )

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Ask for a budget in every configuration."""
        parser.add_lightning_class_args(PrivacyAccountant, "privacy")

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Parse without Lightning's warning about arguments given from Python."""
        self.config = parser.parse_args(args)

    @property
    def _settings(self) -> Namespace:
        """Configuration of the subcommand."""
        return self.config[self.config.subcommand]

    def _parse_ckpt_path(self) -> None:
        """Take hyperparameters from the checkpoint, except where training goes on.

        A resumed fit follows the configuration: changed noise must not be ignored silently.
        """
        command, path = self.config.subcommand, self._settings.ckpt_path
        if path is None:
            if command != "fit":
                raise CommandError(
                    f"{command} needs --ckpt_path FILE, a checkpoint of a run\n"
                    "to draw graphs from a release: python -m lightning_dpg generate --run DIR"
                )
            return
        if not Path(path).is_file():
            raise CommandError(f"--ckpt_path {path}: no such file{_checkpoints_near(Path(path))}")
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        if command == "fit" and "privacy_ledger" not in checkpoint:
            raise CommandError(
                f"--ckpt_path {path} holds no privacy ledger: what it has spent is unknown\n"
                "start a new run, or resume from a checkpoint written by this program"
            )
        hparams = dict(checkpoint.get("hyper_parameters", {}))
        hparams.pop("_instantiator", None)
        class_path = hparams.pop("_class_path", self._settings.model.class_path)
        if command == "fit":
            self._checkpoint_hparams = hparams
        else:
            model = {"class_path": class_path, "init_args": hparams}
            self.config = self.parser.parse_object({command: {"model": model}}, self.config)

    def before_instantiate_classes(self) -> None:
        """Check budget and data, so that bad ones end the run before it has left a trace."""
        if self.config.subcommand != "predict":
            self._data = self._read_data()
        if self.config.subcommand == "fit":
            self._check_budget()
            self._fill_num_nodes()
            self._print_differences()
        self._prepare_loggers()

    def instantiate_classes(self) -> None:
        """Build everything; the data module is the one that has read its data already."""
        try:
            super().instantiate_classes()
            if self.config.subcommand == "fit":
                accountant = PrivacyAccountant(**self._settings.privacy.as_dict())
                self.model.check_budget(accountant.budget)
        except BaseException as error:
            self._remove_made_folders()
            # The parser says of a refused argument that the whole model is of no known type.
            reason = _first_cause(error)
            if isinstance(error, Exception) and explain(error) is None and reason is not error:
                raise reason from error
            raise
        if self._data is not None:
            self.datamodule = self._data

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """Add what every run has: a CSV log, a release, and a progress bar with the budget."""
        settings = self._get(self.config_init, "trainer")
        configured: list[Logger] = settings.logger if isinstance(settings.logger, list) else []
        for logger in configured:
            if isinstance(logger, WandbLogger):  # wandb warns of a setting that Lightning passes
                logger._wandb_init.pop("anonymous", None)
        callbacks: list[Callback] = list(settings.callbacks or [])
        if not any(isinstance(callback, ReleaseWriter) for callback in callbacks):
            callbacks.append(ReleaseWriter())
        has_bar = any(isinstance(callback, ProgressBar) for callback in callbacks)
        if settings.enable_progress_bar is not False and not has_bar:
            callbacks.append(PrivacyProgressBar())
        loggers = [self._csv_logger, *configured]
        try:
            return super().instantiate_trainer(callbacks=callbacks, logger=loggers, **kwargs)
        except (TypeError, ValueError) as error:  # settings that do not go together
            raise CommandError(str(error)) from error

    def before_fit(self) -> None:
        """Name a simpler method where one is known to do better."""
        advice = getattr(self.model, "advice", None)
        if advice is not None and (line := advice(float(self._settings.privacy.epsilon))):
            rank_zero_info(f"hint: {line}")

    def after_fit(self) -> None:
        """Close the trackers; a process that goes on may start another run."""
        self._finish()

    def after_validate(self) -> None:
        """Close the trackers."""
        self._finish()

    def after_test(self) -> None:
        """Close the trackers."""
        self._finish()

    def after_predict(self) -> None:
        """Close the trackers."""
        self._finish()

    def _finish(self) -> None:
        for logger in self.trainer.loggers:
            if isinstance(logger, WandbLogger) and self.trainer.is_global_zero:
                logger.experiment.finish()

    def _read_data(self) -> pl.LightningDataModule:
        parser = PrivateParser()
        parser.add_lightning_class_args(pl.LightningDataModule, "data", subclass_mode=True)
        settings = parser.parse_object({"data": self._settings.data.as_dict()})
        data: pl.LightningDataModule = parser.instantiate_classes(settings).data
        data.prepare_data()
        data.setup(self.config.subcommand)
        return data

    def _check_budget(self) -> None:
        trainer, strategy = self._settings.trainer, self._settings.trainer.strategy
        accountant = PrivacyAccountant(**self._settings.privacy.as_dict())
        accountant.check(
            min_epochs=trainer.min_epochs,
            min_steps=trainer.min_steps,
            strategy=strategy if isinstance(strategy, str) else strategy.class_path,
            precision=str(trainer.precision),
            num_edges=number_of_edges(self._data),
            num_pairs=number_of_pairs(self._data),
            is_pure=self._method_class().is_pure,
        )

    def _fill_num_nodes(self) -> None:
        arguments = self._model_arguments
        # Asked for by methods of one graph only: a set of graphs refuses them.
        actual = getattr(self._data, "num_nodes", None) if "num_nodes" in arguments else None
        if actual is None:
            return
        if arguments.num_nodes not in (None, actual):
            raise MisconfigurationException(
                f"model.init_args.num_nodes is {arguments.num_nodes}, but the graph has {actual} "
                f"nodes: set it to {actual}, or leave it out"
            )
        arguments.num_nodes = actual

    @property
    def _model_arguments(self) -> Any:
        """Arguments of the method; one without any has no such section."""
        return self._settings.model.get("init_args", {})

    def _print_differences(self) -> None:
        arguments = self._model_arguments
        for name, old in self._checkpoint_hparams.items():
            if name in arguments and arguments[name] != old:
                rank_zero_info(f"{name}: checkpoint {old}, now {arguments[name]}")

    def _method_class(self) -> type[PrivateModule]:
        package, _, name = self._settings.model.class_path.rpartition(".")
        method: type[PrivateModule] = getattr(importlib.import_module(package), name)
        return method

    def _prepare_loggers(self) -> None:
        """One folder for all loggers of the run, whose name no other run has."""
        trainer = self._settings.trainer
        self._csv_logger = self._claim_folder(
            trainer.default_root_dir or ".", self._method_class().__module__.rpartition(".")[2]
        )
        trainer.logger = [
            logger
            for logger in (trainer.logger if isinstance(trainer.logger, list) else [trainer.logger])
            if isinstance(logger, Namespace) and not logger.class_path.endswith(".CSVLogger")
        ]
        for logger in trainer.logger:
            if logger.class_path.endswith(".WandbLogger"):
                _prepare_wandb(logger.init_args, self._csv_logger.log_dir)

    def _claim_folder(self, root: str, name: str) -> CSVLogger:
        """Logger to a new folder, which is made at once: another run may start at this moment."""
        while True:
            logger = CSVLogger(root, name=name)
            folder = Path(logger.log_dir)
            if getattr(rank_zero_only, "rank", 0) or self._settings.trainer.fast_dev_run:
                return logger  # Lightning tells other ranks the folder of rank 0
            made = [path for path in (folder, *folder.parents) if not path.exists()]
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                continue
            self._made_folders = made
            return logger

    def _remove_made_folders(self) -> None:
        """Leave nothing behind; what holds a file already stays."""
        for folder in self._made_folders:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _prepare_wandb(arguments: Namespace, folder: str) -> None:
    """Track into the run folder, and offline when online is impossible."""
    arguments.save_dir = str(Path(folder).absolute())  # wandb's process may work elsewhere
    # The run's last lines are the guarantee; a summary of the curves is in metrics.csv.
    os.environ.setdefault("WANDB_SILENT", "true")
    if arguments.offline or os.environ.get("WANDB_MODE") in ("offline", "disabled", "dryrun"):
        return
    reason = why_offline()
    if reason is not None:
        arguments.offline, arguments.log_model = True, False
        rank_zero_info(f"wandb: {reason}; offline run in {folder}, see `wandb sync`")


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _checkpoints_near(path: Path) -> str:
    """The checkpoints in the folder of a path, or in the folders of runs."""
    folder = path.parent if path.parent.is_dir() else Path("runs")
    found = sorted(folder.rglob("*.ckpt"), key=lambda file: file.stat().st_mtime)
    return f"\nthe newest one there is {found[-1]}" if found else ""


def _silence_advertisements() -> None:
    """Drop tips for products that this program does not use, and what config.yaml says better."""

    def is_wanted(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("💡 Tip: For seamless cloud")

    logging.getLogger("pytorch_lightning.utilities.rank_zero").addFilter(is_wanted)
    logging.getLogger("lightning_fabric.utilities.seed").setLevel(logging.WARNING)
