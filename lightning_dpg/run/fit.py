"""Complete configurations, and their fits in this process: all code except the command line."""

import contextlib
import copy
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytorch_lightning as pl
import yaml
from jsonargparse import Namespace
from pytorch_lightning.cli import LightningArgumentParser

from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.errors import CommandError
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.release.reader import open_release
from lightning_dpg.release.release import Release
from lightning_dpg.run.configurations import find_configs
from lightning_dpg.run.lightning_cli import PrivateCLI
from lightning_dpg.run.quiet import mute_known_warnings, quiet

_NOT_LOOKED_AT = ("GraphStatistics", "ReleaseWriter")


def complete_settings(args: Sequence[str]) -> dict[str, Any]:
    """Build the sections of a configuration, with all defaults.

    Args:
        args: Command line of ``fit``, such as ``["--config", "bter", "--privacy.epsilon", "2"]``.

    Raises:
        CommandError: If the options are not those of a fit.
    """
    mute_known_warnings()
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        PrivateCLI(["fit", *find_configs([*args]), "--print_config"])
    settings: dict[str, Any] = yaml.safe_load(text.getvalue())
    return settings


def method_settings(config: Path) -> dict[str, Any]:
    """Build the complete configuration of a method for fits on other data within a command.

    Such a fit draws no curves and figures.

    Args:
        config: File of the configuration.

    Raises:
        CommandError: If the file is not the configuration of a method.
    """
    try:
        settings = complete_settings(["--config", str(config)])
    except CommandError as error:
        raise CommandError(f"{config}: {error}") from error
    if settings["model"] is None or settings["data"] is None:
        raise CommandError(f"{config}: an overlay, while a method is a model and its data")
    if settings["privacy"].get("epsilon") is None:
        raise CommandError(f"{config}: no budget, such as privacy: {{epsilon: 1, delta: 0}}")
    arguments = settings["data"].get("init_args", {})
    if "source" in arguments:  # of a table, in whose place other data are read
        settings["data"] = {
            "class_path": "lightning_dpg.datamodules.EdgeListDataModule",
            "init_args": {"name": arguments["source"], "kind": arguments.get("kind", "undirected")},
        }
    elif "name" not in arguments:
        raise CommandError(f"{config}: its data have no name, by which they are exchanged")
    callbacks = [
        callback
        for callback in settings["trainer"]["callbacks"] or ()
        if callback["class_path"].rpartition(".")[2] not in _NOT_LOOKED_AT
    ]
    if settings["data"]["class_path"].rpartition(".")[2] == "GraphSetDataModule":
        # This module reads the same sets, and sets in files.
        settings["data"]["class_path"] = "TUGraphDataModule"
    writer = {"class_path": "ReleaseWriter", "init_args": {"formats": ["npz"]}}
    settings["trainer"] |= {
        "callbacks": [*callbacks, writer],
        "enable_model_summary": False,
        "enable_progress_bar": False,
        "logger": False,
    }
    return settings


def under_ids(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Leave the nodes of a configuration in their order, for fits that a command compares.

    Such fits publish nothing. Each fit would number nodes in a secret order of its own.

    Args:
        settings: Complete configuration of a method.
    """
    data = settings["data"]
    arguments = data["init_args"]
    if isinstance(nodes := arguments.get("nodes"), Mapping):
        arguments = arguments | {"nodes": {**nodes, "names": "ids"}}
    return {**settings, "data": data | {"init_args": arguments}}


def on_data(settings: Mapping[str, Any], name: str, **options: Any) -> dict[str, Any]:
    """Replace the data of a configuration.

    Args:
        settings: Complete configuration of a method.
        name: Name of the data, or path of a file or folder.
        options: Further arguments of the data module.
    """
    data = settings["data"]
    arguments = data["init_args"] | {"name": name} | options
    return {**settings, "data": data | {"init_args": arguments}}


ReadData = Callable[[], pl.LightningDataModule]
"""Function that returns new data modules of equal data, set up for a fit."""


def fit_settings(
    settings: Mapping[str, Any], folder: Path | None = None, *, is_quiet: bool = True
) -> Release:
    """Fit a configuration and open its release.

    Args:
        settings: Sections of a configuration: model, data, trainer and privacy.
        folder: Folder of the run's folder; by default the run leaves no files.
        is_quiet: Whether to drop standard output and messages that are no warnings.

    Raises:
        CommandError: If the configuration or its data are refused.
    """
    with contextlib.ExitStack() as stack:
        root = folder or Path(stack.enter_context(TemporaryDirectory()))
        if is_quiet:
            stack.enter_context(quiet())
        run_folder = PrivateCLI(_arguments(settings, root, stack)).trainer.log_dir
        assert run_folder is not None  # each fit has a folder
        return open_release(Path(run_folder))


def fit_without_release(
    settings: Mapping[str, Any],
    *,
    on_data: Callable[[pl.LightningDataModule], None],
    on_start: Callable[[PrivateModule], None],
    read: ReadData | None = None,
) -> PrivateModule:
    """Fit a configuration without callbacks, logs, release and files.

    Args:
        settings: Sections of a configuration: model, data, trainer and privacy.
        on_data: Function called with the data module after its setup, before any check.
        on_start: Function called with the method before the first step.
        read: Function that reads the data; by default they are those of the configuration.

    Raises:
        CommandError: If the configuration or its data are refused.
    """
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory()))
        stack.enter_context(quiet())
        args = _arguments(settings, root, stack)
        text = yaml.safe_dump({**settings})
        method: PrivateModule = _BareFit(args, text, on_data, on_start, read).model
        return method


def fit_method(
    method: PrivateModule,
    data: pl.LightningDataModule,
    epsilon: float,
    delta: float,
    row_epsilon: float | None = None,
) -> None:
    """Fit a method for one epoch within a budget, without logs and files.

    Args:
        method: Method to fit.
        data: Its private data.
        epsilon: Budget.
        delta: Budget.
        row_epsilon: Budget of the private columns of one node.
    """
    accountant = PrivacyAccountant(epsilon, delta, book=NO_BOOK, row_epsilon=row_epsilon)
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pl.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[accountant],
        ).fit(method, data)


def _arguments(settings: Mapping[str, Any], root: Path, stack: contextlib.ExitStack) -> list[str]:
    """Yield the command line of a fit; its configuration is a file until the stack closes."""
    mute_known_warnings()
    config = Path(stack.enter_context(TemporaryDirectory())) / "settings.yaml"
    config.write_text(yaml.safe_dump({**settings}), encoding="utf-8")
    # Fits of comparisons, audits and attacks measure a method; they are no releases of an owner.
    place = ["--trainer.default_root_dir", str(root), "--privacy.book", NO_BOOK]
    return ["fit", "--config", str(config), *place]


class _BareFit(PrivateCLI):
    """``fit`` without files, whose data and method a caller can change.

    Audits make hundreds of fits of equal settings, which are parsed once.
    """

    _parsed: ClassVar[tuple[str, Namespace] | None] = None
    """Settings of the last fit, and what the parser made of them."""

    def __init__(
        self,
        args: list[str],
        text: str,
        on_data: Callable[[pl.LightningDataModule], None],
        on_start: Callable[[PrivateModule], None],
        read: ReadData | None,
    ) -> None:
        """Parse a command line and run it."""
        self._text = text
        self._on_data, self._on_start, self._read = on_data, on_start, read
        super().__init__(args)

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Take the settings of the last fit if these are equal; folders are new in any case."""
        if _BareFit._parsed is None or _BareFit._parsed[0] != self._text:
            super().parse_arguments(parser, args)
            _BareFit._parsed = self._text, copy.deepcopy(self.config)
            return
        self.config = copy.deepcopy(_BareFit._parsed[1])
        root = args[args.index("--trainer.default_root_dir") + 1]
        self._settings.trainer.default_root_dir = root

    def _read_data(self) -> pl.LightningDataModule:
        data = super()._read_data() if self._read is None else self._read()
        self._on_data(data)
        return data

    def before_instantiate_classes(self) -> None:
        """Drop the parts that only a user's run needs."""
        trainer = self._settings.trainer
        trainer.callbacks, trainer.logger, self._settings.wandb = None, False, None
        trainer.enable_checkpointing = trainer.enable_progress_bar = False
        trainer.enable_model_summary = False
        super().before_instantiate_classes()

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """Build a trainer without a release, which does not write its settings."""
        self.save_config_callback = None
        trainer = super().instantiate_trainer(**kwargs)
        typed(trainer).callbacks = [
            callback
            for callback in typed(trainer).callbacks
            if not isinstance(callback, ReleaseWriter)
        ]
        return trainer

    def before_fit(self) -> None:
        """Pass the method to the caller."""
        self._on_start(self.model)
