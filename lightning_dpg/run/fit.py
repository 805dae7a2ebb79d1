"""Fits in this process: all code except the command line starts fits here."""

import contextlib
import copy
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytorch_lightning as pl
import yaml
from jsonargparse import Namespace
from pytorch_lightning.cli import LightningArgumentParser

from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.release.reader import open_release
from lightning_dpg.release.release import Release
from lightning_dpg.run.data_argument import ReadData
from lightning_dpg.run.private_cli import PrivateCLI
from lightning_dpg.run.quiet import mute_known_warnings, quiet


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
