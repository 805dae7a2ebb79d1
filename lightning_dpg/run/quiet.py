"""Suppression of messages: of Lightning, and of a fit inside another command."""

import contextlib
import io
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

_PACKAGE = Path(__file__).parents[1]
_UNWANTED = (
    "💡 Tip: For seamless cloud",  # a product without use here
    "Detected KeyboardInterrupt",  # the end of the run reports it better
    "GPU available: False",
    "Loading `train_dataloader` to estimate",
    "TPU available: False",
    "`Trainer.fit` stopped: `max_epochs",  # as was asked for
)


def silence_lightning() -> None:
    """Drop advertisements, and messages that the end of a run or its config.yaml repeats better."""

    def is_wanted(record: logging.LogRecord) -> bool:
        return not record.getMessage().strip().startswith(_UNWANTED)

    logging.getLogger("pytorch_lightning.utilities.rank_zero").addFilter(is_wanted)
    logging.getLogger("lightning_fabric.utilities.seed").setLevel(logging.WARNING)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence stdout and INFO logs of a nested fit."""
    with without_messages(), contextlib.redirect_stdout(io.StringIO()):
        yield


@contextlib.contextmanager
def without_messages() -> Iterator[None]:
    """Silence INFO logs, and then set the level that the caller has chosen."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.INFO))
    try:
        yield
    finally:
        logging.disable(before)


def plain_warnings() -> None:
    """Print warnings of this program as a line for the user, without a place in its source."""
    others = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if _PACKAGE in Path(filename).parents:
            print(f"warning: {message}", file=file or sys.stderr)
        else:
            others(message, category, filename, lineno, file, line)

    warnings.showwarning = show


def mute_known_warnings() -> None:
    """Drop warnings for developers, and warnings about intended settings."""
    # For developers of Lightning, of its loggers, and of PyTorch Geometric (from torch 2.14 on).
    warnings.filterwarnings("ignore", r"`torch\.jit\.script` is deprecated", Warning)
    warnings.filterwarnings("ignore", r".*LeafSpec.*deprecated", FutureWarning)
    warnings.filterwarnings("ignore", r".*does not have many workers", UserWarning)
    warnings.filterwarnings("ignore", r"Experiment logs directory .* exists", UserWarning)
    # Intended: a graph without a split has no validation, and each run has its own folder.
    warnings.filterwarnings("ignore", r"Total length of `\w+` across ranks is zero", UserWarning)
    warnings.filterwarnings("ignore", r"The dirpath has changed", UserWarning)
    # A method that reads the graph once has no gradient and no loss to return.
    warnings.filterwarnings("ignore", r".*configure_optimizers` returned `None`", UserWarning)
    warnings.filterwarnings("ignore", r".*training_step` returned `None`", UserWarning)
