"""Lightning's command line with a mandatory privacy budget."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from jsonargparse import Namespace
from pytorch_lightning.callbacks import Callback, ModelSummary, ProgressBar
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI
from pytorch_lightning.utilities import rank_zero_info
from pytorch_lightning.utilities.exceptions import MisconfigurationException

# Configurations can name classes without their modules: the parser searches what is imported.
import lightning_dpg.callbacks
import lightning_dpg.datamodules  # noqa: F401
from lightning_dpg.advice import Facts
from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.callbacks import Card, PrivacyAccountant, PrivacyProgressBar, ReleaseWriter
from lightning_dpg.classes import find_class
from lightning_dpg.errors import CommandError
from lightning_dpg.interfaces import (
    AttributedGraphRecords,
    GraphRecords,
    GraphSetRecords,
    KindOfRecords,
    Records,
    serves_records,
)
from lightning_dpg.methods import PrivateModule
from lightning_dpg.outcome import is_quiet
from lightning_dpg.preflight import check_data, check_settings, preflight
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.progress import at_terminal
from lightning_dpg.release.statement import full_sentence
from lightning_dpg.run.checkpoints import (
    check_resumed,
    checkpoint_of,
    differences,
    hyperparameters,
    restore_split,
)
from lightning_dpg.run.configurations import load_distinct_keys
from lightning_dpg.run.ends import early_end, end_early
from lightning_dpg.run.loggers import (
    TrackingMode,
    close_trackers,
    prepare_wandb,
    run_facts,
    tracker_arguments,
    trackers,
)
from lightning_dpg.run.parser import PrivateParser, import_methods, read_data, settings_of_classes
from lightning_dpg.run.quiet import silence_lightning
from lightning_dpg.run.run_folder import RunFolder, folder_name, is_other_rank
from lightning_dpg.run_folder import NOT_PRIVATE, RELEASE, STATEMENT, owner_only, statement_in


class PrivateCLI(LightningCLI):
    """``fit``, ``validate``, ``test`` and ``predict``; :mod:`lightning_dpg.preflight` lists the checks.

    Lightning calls the functions in the order in which they stand here. Every run has a folder of
    its own, ``runs/METHOD/version_K`` unless the configuration sets another. A refused run leaves
    none.
    """

    @owner_only()
    def __init__(self, args: list[str], out: Path | None = None) -> None:
        """Parse a command line and run it.

        Args:
            args: The command line.
            out: New or empty folder of the run; it is no setting, and is not in config.yaml.
        """
        self._out = out
        silence_lightning()
        load_distinct_keys()
        import_methods(args)
        self._checkpoint: dict[str, Any] = {}
        self._folder: RunFolder | None = None
        self._command = args[0]
        args = [f"--privacy.book={NO_BOOK}" if word == "--no-book" else word for word in args]
        try:
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
        except BaseException as error:
            if self._folder is not None:
                trainer, model = getattr(self, "trainer", None), getattr(self, "model", None)
                end_early(error, self.config.subcommand, trainer, model, self._folder)
            raise

    @property
    def run_path(self) -> Path:
        """Folder of the run; with ``fast_dev_run`` there is none of that name."""
        assert self._folder is not None  # reserved before the run
        return self._folder.path

    @property
    def book_note(self) -> str | None:
        """What the budget book says of the data after the run, or that there is no book."""
        return self._accountant.book_note

    def subcommands(self) -> dict[str, set[str]]:  # type: ignore[override]
        """The subcommand that is run: the parsers of the others would take most of the start."""
        skipped = LightningCLI.subcommands()
        return {self._command: skipped[self._command]}

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Require a budget in every configuration; take the owner's texts, and a tracker."""
        parser.add_class_arguments(PrivacyAccountant, "privacy", instantiate=False)
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
        command, settings = self.config.subcommand, self._settings
        self._checkpoint = checkpoint_of(command, settings.ckpt_path)
        if command != "fit":
            arguments = hyperparameters(self._checkpoint)
            path = arguments.pop("_class_path", settings.model.class_path)
            model = {"class_path": path, "init_args": arguments}
            self.config = self.parser.parse_object({command: {"model": model}}, self.config)

    def _set_seed(self) -> None:
        """Seed as Lightning does; it refuses numbers of more than 32 bits."""
        try:
            super()._set_seed()
        except ValueError as error:
            raise CommandError(f"seed_everything: {error}") from error

    def before_instantiate_classes(self) -> None:
        """Check settings, checkpoint and data, and reserve a folder."""
        settings, is_fit = self._settings, self.config.subcommand == "fit"
        trainer, method = settings.trainer, find_class(settings.model.class_path)
        arguments = settings.model.get("init_args", {})  # a method without arguments has none
        self._accountant = PrivacyAccountant(**settings.privacy.as_dict())
        if is_fit:
            strategy = trainer.strategy
            check_settings(
                min_epochs=trainer.min_epochs,
                min_steps=trainer.min_steps,
                strategy=strategy if isinstance(strategy, str) else strategy.class_path,
                precision=str(trainer.precision),
            )
            check_resumed(settings.ckpt_path, self._checkpoint, method, self._accountant)
        self._trackers = tracker_arguments(settings)
        self._data = self._read_data()
        if self._checkpoint and self.config.subcommand != "predict":
            restore_split(settings.ckpt_path, self._checkpoint, self._data)
        if is_fit:
            check_data(method, self._data)
            fill_num_nodes(arguments, self._data)
            for line in differences(self._checkpoint, arguments):
                rank_zero_info(line)
        self._folder = RunFolder(
            trainer.default_root_dir or ".",
            folder_name(method.__name__),
            settings.ckpt_path,
            leaves_files=not (is_other_rank() or trainer.fast_dev_run),
            out=self._out,
        )
        for tracker in self._trackers:
            prepare_wandb(tracker, self._folder.logger.log_dir)

    def _read_data(self) -> pl.LightningDataModule:
        return read_data(self._settings, self.config.subcommand)

    def instantiate_classes(self) -> None:
        """Build method and trainer, and check the run."""
        self.datamodule, others = self._data, self.config.clone()
        del others[self.config.subcommand]["data"]
        with settings_of_classes():
            self.config_init = self.parser.instantiate(others)
            self.model = self._get(self.config_init, "model")
            self.trainer = self.instantiate_trainer()
        if self.config.subcommand == "fit":
            preflight(self.trainer, self.model, self._data, self._accountant)

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """Add the parts of every run: a CSV log, a release, and a progress bar with the budget."""
        assert self._folder is not None  # reserved before any file is written
        settings, data = self._get(self.config_init, "trainer"), self._settings.data
        source = data.get("init_args", {}).get("name", data.class_path.rpartition(".")[2])
        facts = run_facts(self.model, source, self._accountant.budget, self._accountant.row_budget)
        settings.logger = [self._folder.logger, *trackers(settings.logger, self._trackers, facts)]
        own = settings.callbacks or []
        callbacks = list(own) if isinstance(own, list) else [own]
        callbacks = with_release_writer(callbacks, self._settings.card.as_dict())
        add_progress_bar(callbacks, settings)
        summary = own_summary(callbacks, settings)
        try:
            trainer = super().instantiate_trainer(
                callbacks=[*callbacks, self._accountant], **kwargs
            )
        except (TypeError, ValueError) as error:  # contradictory settings
            raise CommandError(str(error)) from error
        if self.model.capabilities.is_trained:
            typed(trainer).callbacks[:0] = summary  # Lightning would report it
        return trainer

    def before_fit(self) -> None:
        """Report the data, and name a simpler method that is known to do better."""
        for line in notes(self.model, self._data, self._accountant.budget):
            rank_zero_info(line)

    def after_fit(self) -> None:
        """Explain an early end."""
        assert self._folder is not None
        if line := early_end(self.trainer, self.model, self._folder, self._checkpoint):
            rank_zero_info(line)

    def _run_subcommand(self, subcommand: str) -> None:
        """Close the trackers after a run, since another run may follow."""
        super()._run_subcommand(subcommand)
        close_trackers(self.trainer)


def with_release_writer(callbacks: list[Callback], texts: Mapping[str, Any]) -> list[Callback]:
    """Add a writer of the release if there is none, and give the owner's texts to the writers.

    Args:
        callbacks: Configured callbacks.
        texts: Section ``card``; without a text the writers keep their own.
    """
    card = Card.of(texts)
    if not any(isinstance(callback, ReleaseWriter) for callback in callbacks):
        callbacks = [*callbacks, ReleaseWriter()]
    for callback in callbacks:
        if isinstance(callback, ReleaseWriter) and card != Card():
            callback.card = card
    return callbacks


def add_progress_bar(callbacks: list[Callback], settings: Namespace) -> None:
    """Add a bar with the budget at a terminal, unless there is one, and set whether there is.

    With ``--quiet`` there is none, not even a configured one.

    Args:
        callbacks: Callbacks of the run, among which the bar stands in the end.
        settings: Section ``trainer``.
    """
    if is_quiet():
        callbacks[:] = [each for each in callbacks if not isinstance(each, ProgressBar)]
        settings.enable_progress_bar = False
    has_bar = any(isinstance(callback, ProgressBar) for callback in callbacks)
    if settings.enable_progress_bar is None:
        settings.enable_progress_bar = has_bar or at_terminal()
    if settings.enable_progress_bar and not has_bar:
        callbacks.append(PrivacyProgressBar())


def own_summary(callbacks: Sequence[Callback], settings: Namespace) -> list[Callback]:
    """Replace Lightning's summary of the networks, whose form depends on installed packages.

    Args:
        callbacks: Callbacks of the run.
        settings: Section ``trainer``, whose default summary is switched off.
    """
    if any(isinstance(callback, ModelSummary) for callback in callbacks):
        return []
    is_wanted = settings.enable_model_summary is not False
    settings.enable_model_summary = False
    return [ModelSummary()] * is_wanted


def notes(method: PrivateModule, data: object, budget: Budget) -> Iterator[str]:
    """Report the data, and name a method that is known to do better.

    Exact counts and names of the private graph go to the owner's terminal only. Where standard
    error is none, as under cron, mails and collectors of logs would take them.

    Args:
        method: Method of the run.
        data: Its data module.
        budget: Budget of the run.
    """
    summary: str | None = getattr(data, "summary", None)
    if summary is not None and at_terminal():
        yield summary
    yield from getattr(data, "notes", ())
    assert serves_records(data)  # otherwise the run was refused
    if line := better_method(method, data.records, budget):
        yield f"hint: {line}"


def public_facts(records: Records, budget: Budget) -> Facts:
    """Return the facts of data that a guarantee takes as public, without the number of edges.

    Args:
        records: Records of a data module (private).
        budget: Budget of the run.
    """
    allows_delta = budget.delta > 0
    if isinstance(records, GraphSetRecords):
        return Facts("graphs", budget.epsilon, kind="set", allows_delta=allows_delta)
    return Facts(
        "links",
        budget.epsilon,
        records.num_nodes,
        kind=records.kind if isinstance(records, KindOfRecords) else "undirected",
        allows_delta=allows_delta,
        has_attributes=isinstance(records, AttributedGraphRecords),
    )


def better_method(method: PrivateModule, records: Records, budget: Budget) -> str | None:
    """Name a method that is known to do better, in one line; None if no such method is known.

    Args:
        method: Method of a run; its ``advice``, if it has one, knows what it is for.
        records: Records of its data module (private).
        budget: Budget of the run.
    """
    advice = getattr(method, "advice", None)
    line: str | None = advice and advice(public_facts(records, budget))
    return line


def fill_num_nodes(model: Namespace, data: object) -> None:
    """Set the public number of nodes of a method for one graph.

    Args:
        model: Arguments of the method.
        data: The data module after its setup.

    Raises:
        MisconfigurationException: If another number is set.
    """
    records = data.records if serves_records(data) else None
    if not isinstance(records, GraphRecords) or "num_nodes" not in model:
        return
    actual = records.num_nodes
    if model.num_nodes not in (None, actual):
        raise MisconfigurationException(
            f"model.init_args.num_nodes is {model.num_nodes}, but the graph has {actual} "
            f"nodes: set it to {actual}, or leave it out"
        )
    model.num_nodes = actual


_STATED = ("epsilon", "delta", "relation", "conditional")


def run_values(cli: PrivateCLI, seconds: float) -> dict[str, Any] | None:
    """Return what a run has made and what it guarantees; None in all processes but the first.

    Args:
        cli: Command line that has run.
        seconds: Duration of the run, with its preparation.
    """
    if is_other_rank():
        return None
    folder = cli.run_path
    values: dict[str, Any] = {
        "run_folder": str(folder) if folder.is_dir() else None,
        "method": type(cli.model).__name__,
    }
    for name in (RELEASE, NOT_PRIVATE, "predictions"):
        if (place := folder / name).is_dir():
            values[name] = str(place)
            values["files"] = sorted(str(path) for path in place.iterdir())
            if (place / STATEMENT).is_file():
                values |= _guarantee(statement_in(place))
    if cli.config.subcommand in ("validate", "test"):
        values["metrics"] = {
            name: value.item() for name, value in cli.trainer.callback_metrics.items()
        }
    return values | {"book": cli.book_note, "seconds": round(seconds, 3)}


def _guarantee(statement: Mapping[str, Any]) -> dict[str, Any]:
    has_one = statement["epsilon"] != "inf"
    return {
        "guarantee": full_sentence(dict(statement)) if has_one else statement["guarantee"],
        **{name: statement[name] for name in _STATED},
        **({"beside": statement["beside"]} if "beside" in statement else {}),
        "reads": len(statement["entries"]),
    }
