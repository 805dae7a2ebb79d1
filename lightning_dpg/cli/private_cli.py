"""Lightning's command line with a mandatory privacy budget."""

import contextlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from jsonargparse import Namespace
from pytorch_lightning.callbacks import Callback, ModelSummary, ProgressBar
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI
from pytorch_lightning.loggers import Logger, WandbLogger
from pytorch_lightning.utilities import rank_zero_info

# Imported so that configurations can name the classes without their modules.
import lightning_dpg.callbacks
import lightning_dpg.datamodules
import lightning_dpg.methods  # noqa: F401
from lightning_dpg.callbacks import Card, PrivacyAccountant, PrivacyProgressBar
from lightning_dpg.callbacks.booking import NO_BOOK
from lightning_dpg.callbacks.journal import journal_state
from lightning_dpg.classes import find_class
from lightning_dpg.cli.card_section import with_release_writer
from lightning_dpg.cli.checkpoints import (
    read_checkpoint,
    refuse_other_graph,
    refuse_other_method,
)
from lightning_dpg.cli.distinct_keys import load_distinct_keys
from lightning_dpg.cli.ends import early_end, farewell
from lightning_dpg.cli.hint import better_method
from lightning_dpg.cli.loggers import (
    TrackingMode,
    describe_run,
    prepare_wandb,
    refuse_uploads,
    run_facts,
    wandb_arguments,
)
from lightning_dpg.cli.method_arguments import fill_num_nodes
from lightning_dpg.cli.parser import PrivateParser
from lightning_dpg.cli.quiet import at_terminal, silence_lightning
from lightning_dpg.cli.run_folder import RunFolder, folder_name, is_other_rank
from lightning_dpg.errors import INTERRUPTED, CommandError, explain, is_interrupt
from lightning_dpg.interfaces import serves_records
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation


class PrivateCLI(LightningCLI):
    """``fit``, ``validate``, ``test`` and ``predict``.

    Data are read and the budget is checked before a folder is made or an edge is used. Every run
    has a folder of its own, ``runs/METHOD/version_K`` unless the configuration sets another.
    """

    def __init__(self, args: list[str]) -> None:
        """Parse a command line and run it."""
        silence_lightning()
        load_distinct_keys()
        self._data: pl.LightningDataModule | None = None
        self._checkpoint: dict[str, Any] = {}
        self._checkpoint_hparams: dict[str, Any] = {}
        self._checkpoint_ledger = PrivacyLedger(Relation.EDGE)
        self._folder: RunFolder | None = None
        self._wandb: Namespace | None = None  # arguments of the logger that --wandb adds
        try:
            self._run(args)
        except BaseException as error:
            self._end_early(error)
            raise

    def _run(self, args: list[str]) -> None:
        args = [f"--privacy.book={NO_BOOK}" if word == "--no-book" else word for word in args]
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

    def _set_seed(self) -> None:
        """Seed as Lightning does; it refuses numbers of more than 32 bits."""
        try:
            super()._set_seed()
        except ValueError as error:
            raise CommandError(f"seed_everything: {error}") from error

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Require a budget in every configuration; take the owner's texts, and a tracker."""
        parser.add_lightning_class_args(PrivacyAccountant, "privacy")
        parser.add_class_arguments(Card, "card", instantiate=False)
        parser.add_argument(
            "--wandb",
            type=TrackingMode | None,
            help="also send the curves to Weights & Biases, or keep them for `wandb sync`; nothing "
            "with the prefix nonprivate/ unless privacy.upload_nonprivate is true",
        )

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Parse without Lightning's warning about arguments given from Python."""
        self.config = parser.parse_args(args)

    @property
    def _settings(self) -> Namespace:
        """Configuration of the subcommand."""
        return self.config[self.config.subcommand]

    def _parse_ckpt_path(self) -> None:
        """Take hyperparameters from the checkpoint, unless training continues.

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
        checkpoint = read_checkpoint(Path(path))
        if command == "fit" and "privacy_ledger" not in checkpoint:
            raise CommandError(
                f"--ckpt_path {path} holds no privacy ledger: what it has spent is unknown\n"
                "start a new run, or resume from a checkpoint written by this program"
            )
        hparams = dict(checkpoint.get("hyper_parameters", {}))
        hparams.pop("_instantiator", None)
        if command == "fit":
            refuse_other_method(Path(path), hparams, self._method_class())
        self._checkpoint = checkpoint
        class_path = hparams.pop("_class_path", self._settings.model.class_path)
        if command == "fit":
            self._checkpoint_hparams = hparams
        else:
            model = {"class_path": class_path, "init_args": hparams}
            self.config = self.parser.parse_object({command: {"model": model}}, self.config)

    def before_instantiate_classes(self) -> None:
        """Check budget and data, so that errors end the run before it has written a file."""
        if self.config.subcommand != "predict":
            self._data = self._read_data()
            split = self._checkpoint.get(type(self._data).__qualname__)
            if split is not None:
                self._data.load_state_dict(split)  # as Lightning does if there is a folder
            if self._checkpoint:
                graph = getattr(self._data, "graph", None)
                refuse_other_graph(Path(self._settings.ckpt_path), self._checkpoint, graph)
        if self.config.subcommand == "fit":
            self._check_budget()
            fill_num_nodes(self._model_arguments, self._data)
            self._print_differences()
        self._prepare_loggers()

    def instantiate_classes(self) -> None:
        """Build everything, with the data module that has already read its data."""
        with _settings_of_classes():
            super().instantiate_classes()
        if self.config.subcommand == "fit":
            accountant = PrivacyAccountant(**self._settings.privacy.as_dict())
            accountant.check_run(self.trainer, self.model)
            if serves_records(self._data):
                self._data.check_request(self.model.batch_request(), self.trainer.max_epochs)
        if self._data is not None:
            self.datamodule = self._data

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """Add the parts of every run: a CSV log, a release, and a progress bar with the budget."""
        settings = self._get(self.config_init, "trainer")
        configured: list[Logger] = settings.logger if isinstance(settings.logger, list) else []
        if self._wandb is not None:
            configured = [*configured, WandbLogger(**vars(self._wandb))]
        for logger in configured:
            if isinstance(logger, WandbLogger):
                describe_run(logger, self._facts())
        given = settings.callbacks or []
        callbacks: list[Callback] = list(given) if isinstance(given, list) else [given]
        callbacks = with_release_writer(callbacks, self._settings.card.as_dict())
        has_bar = any(isinstance(callback, ProgressBar) for callback in callbacks)
        wants_bar = settings.enable_progress_bar
        if wants_bar is None:
            wants_bar = has_bar or at_terminal()
        if wants_bar and not has_bar:
            callbacks.append(PrivacyProgressBar())
        kwargs["enable_progress_bar"] = wants_bar
        assert self._folder is not None  # reserved before any file is written
        loggers = [self._folder.logger, *configured]
        summaries = [each for each in callbacks if isinstance(each, ModelSummary)]
        if not summaries:
            kwargs["enable_model_summary"] = False
        try:
            trainer = super().instantiate_trainer(callbacks=callbacks, logger=loggers, **kwargs)
        except (TypeError, ValueError) as error:  # contradictory settings
            raise CommandError(str(error)) from error
        if not summaries and self.model.is_trained and settings.enable_model_summary is not False:
            trainer.callbacks.insert(0, ModelSummary())  # type: ignore[attr-defined]  # not of rich
        return trainer

    def _facts(self) -> dict[str, Any]:
        """Public facts of the run."""
        data, budget = self._settings.data, PrivacyAccountant(**self._settings.privacy).budget
        source = data.get("init_args", {}).get("name", data.class_path.rpartition(".")[2])
        return run_facts(self.model, source, budget)

    def before_fit(self) -> None:
        """Report the data, and name a simpler method that is known to do better.

        Exact counts and names of the private graph go to the owner's terminal only. Where standard
        error is none, as under cron, mails and collectors of logs would take them.
        """
        summary = getattr(self.datamodule, "summary", None)
        if summary is not None and sys.stderr.isatty():
            rank_zero_info(summary)
        for line in getattr(self.datamodule, "notes", ()):
            rank_zero_info(line)
        budget = PrivacyAccountant(**self._settings.privacy).budget
        assert serves_records(self.datamodule)  # otherwise the run was refused
        if line := better_method(self.model, self.datamodule.records, budget):
            rank_zero_info(f"hint: {line}")

    def after_fit(self) -> None:
        """Explain an early end; close the trackers, since another run may follow."""
        assert self._folder is not None
        if line := early_end(self.trainer, self.model, self._folder, self._checkpoint):
            rank_zero_info(line)
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
        section = self._settings.data
        is_shipped = section.class_path.startswith("lightning_dpg.")
        if is_shipped and section.init_args.get("name", "") is None:
            raise CommandError(
                "data.init_args.name is null: give a built-in graph, a data set, or the path of a "
                "file, see python -m lightning_dpg list"
            )
        parser = PrivateParser()
        parser.add_lightning_class_args(pl.LightningDataModule, "data", subclass_mode=True)
        settings = parser.parse_object({"data": self._settings.data.as_dict()})
        with _settings_of_classes():
            data: pl.LightningDataModule = parser.instantiate_classes(settings).data
        data.prepare_data()
        data.setup(self.config.subcommand)
        return data

    def _check_budget(self) -> None:
        trainer, strategy = self._settings.trainer, self._settings.trainer.strategy
        self._method_class().check_data(self._data)
        assert serves_records(self._data)  # otherwise the run was refused
        accountant = PrivacyAccountant(**self._settings.privacy.as_dict())
        accountant.check(
            min_epochs=trainer.min_epochs,
            min_steps=trainer.min_steps,
            strategy=strategy if isinstance(strategy, str) else strategy.class_path,
            precision=str(trainer.precision),
            num_edges=self._data.num_edges,
            num_pairs=self._data.num_pairs,
            is_pure=self._method_class().is_pure,
        )
        checkpoint, ledger = self._settings.ckpt_path, PrivacyLedger(Relation.EDGE)
        if checkpoint is not None:
            ledger = PrivacyLedger(Relation(self._checkpoint["privacy_ledger"]["relation"]))
            ledger.load_state_dict(self._checkpoint["privacy_ledger"])
        accountant.check_journal(checkpoint, ledger, journal_state(checkpoint))

    @property
    def _model_arguments(self) -> Any:
        """Arguments of the method; a method without arguments has no such section."""
        return self._settings.model.get("init_args", {})

    def _print_differences(self) -> None:
        arguments = self._model_arguments
        for name, old in self._checkpoint_hparams.items():
            if name in arguments and arguments[name] != old:
                rank_zero_info(f"{name}: checkpoint {old}, now {arguments[name]}")

    def _method_class(self) -> type[PrivateModule]:
        return find_class(self._settings.model.class_path)

    def _prepare_loggers(self) -> None:
        """Set one unique folder for all loggers of the run."""
        trainer = self._settings.trainer
        trainer.logger = [
            logger
            for logger in (trainer.logger if isinstance(trainer.logger, list) else [trainer.logger])
            if isinstance(logger, Namespace) and not logger.class_path.endswith(".CSVLogger")
        ]
        tracked = [
            logger.init_args
            for logger in trainer.logger
            if logger.class_path.endswith(".WandbLogger")
        ]
        mode: TrackingMode | None = self._settings.wandb
        if mode is not None and not tracked:
            self._wandb = wandb_arguments(mode)
            tracked = [self._wandb]
        for arguments in tracked:
            if mode is not None:
                arguments.offline = mode == "offline"
            refuse_uploads(arguments, self._settings.privacy.upload_nonprivate)
        self._folder = RunFolder(
            trainer.default_root_dir or ".",
            folder_name(self._method_class().__module__),
            self._settings.ckpt_path,
            leaves_files=not (is_other_rank() or trainer.fast_dev_run),
        )
        for arguments in tracked:
            prepare_wandb(arguments, self._folder.logger.log_dir)

    def _end_early(self, error: BaseException) -> None:
        """Report the spent budget of an interrupted run; remove a run that has not begun."""
        if self._folder is None:
            return
        trainer: pl.Trainer | None = getattr(self, "trainer", None)
        if trainer is not None:
            self._finish()
        self._folder.remove_unused()
        if trainer is None or not self._folder.has_booked or not trainer.is_global_zero:
            return
        if self.config.subcommand != "fit":
            return
        lines = farewell(trainer, self.model, self._folder)
        if is_interrupt(error):
            print("\n".join(["\ninterrupted", *lines]), file=sys.stderr)
            raise SystemExit(INTERRUPTED) from error
        text = explain(error) if isinstance(error, Exception) else None
        if text is None:  # a fault of the program: the lines end its traceback
            error.add_note("\n".join(lines))
        else:
            raise CommandError("\n".join([*text.splitlines()[:2], *lines])) from error


@contextlib.contextmanager
def _settings_of_classes() -> Iterator[None]:
    """Tell what a constructor says, for which the parser reports an unknown type of the whole.

    A ``ValueError`` of a constructor is about a setting, also in a class of a user.
    """
    try:
        yield
    except Exception as error:
        reason = _first_cause(error)
        if isinstance(reason, ValueError) and explain(reason) is None:
            place = traceback.extract_tb(reason.__traceback__)[-1]
            raise CommandError(
                f"{reason}\na setting was refused in {place.filename}, line {place.lineno}"
            ) from error
        if explain(error) is None and reason is not error:
            raise reason from error
        raise


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
