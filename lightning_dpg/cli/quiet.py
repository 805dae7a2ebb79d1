"""Messages that nobody asked for: of Lightning, and of a fit inside another command."""

import contextlib
import io
import logging
from collections.abc import Iterator

_UNWANTED = (
    "💡 Tip: For seamless cloud",  # a product that this program does not use
    "Detected KeyboardInterrupt",  # the end of the run says it better
)


def silence_lightning() -> None:
    """Drop advertisements, and what the end of a run or its config.yaml says better."""

    def is_wanted(record: logging.LogRecord) -> bool:
        return not record.getMessage().strip().startswith(_UNWANTED)

    logging.getLogger("pytorch_lightning.utilities.rank_zero").addFilter(is_wanted)
    logging.getLogger("lightning_fabric.utilities.seed").setLevel(logging.WARNING)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop standard output and messages that are no warnings."""
    logging.disable(logging.INFO)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)
