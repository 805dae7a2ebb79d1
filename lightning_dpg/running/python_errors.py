"""Errors of the Python interface: the sentences of the command line, with the names of arguments."""

import contextlib
import re
from collections.abc import Iterator

from lightning_dpg.errors import REPORT, CommandError, explain

_OPTIONS = (
    # A setting of the data, which the message names, with its option in brackets.
    (r"set (\w+) to (\w+)\s\(--data\.\1 \2\)", r'set \1="\2" of EdgeListDataModule'),
    (
        r"set columns\.(\w+) to (\w+)\s\(--data\.columns\.\1 \2\)",
        r'set columns=Columns(\1="\2") of EdgeListDataModule',
    ),
    (
        r"set nodes\.(\w+) to (\w+)\s\(--data\.nodes\.\1 \2\)",
        r'set nodes=Nodes(\1="\2") of EdgeListDataModule',
    ),
    (r"--(?:privacy|model\.init_args|data\.init_args)\.(\w+)", r"\1"),
    (r"\b(?:privacy|model\.init_args|data\.init_args)\.(\w+)", r"\1"),
    (r"--baseline-config CONF", "baseline=NAME"),
    (r"undirected=True \(--data\.undirected true\)", "undirected=True of EdgeListDataModule"),
    (r"undirected=True \(--undirected\)", "undirected=True"),
    (
        r"\n\(--data\.columns\.source NAME --data\.columns\.target NAME\)",
        " of EdgeListDataModule",
    ),
    (r"\s\(--data\.(?:[^()']|'[^']*')*\)", ""),
    (r"--data\.nodes\.policy\.(\w+) (\w+)", r'nodes=Nodes(policy={"\1": "\2"})'),
    (r"--data\.nodes\.policy '({.*})'", r"nodes=Nodes(policy=\1)"),
    (r"--data\.nodes\.(\w+) ([\w.]+)", r'nodes=Nodes(\1="\2")'),
    (r"--undirected\b", "undirected=True"),
    (r"--canaries\b", "canaries"),
    (r"^name: ", "data: "),
    (r"--method (?=[\w.]+)", "method_class="),
    (r"python -m lightning_dpg list( --all)?", "lightning_dpg.list_methods()"),
)


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Raise errors of the user as ``CommandError``, with a message of at most five lines.

    Raises:
        CommandError: In place of every error that the command line explains without a traceback.
    """
    try:
        yield
    except Exception as error:
        text = explain(error)
        if text is None:  # a fault of the program, whose traceback helps more
            error.add_note(REPORT)
            raise
        kind = type(error) if isinstance(error, CommandError) else CommandError
        cause = error if isinstance(error, OSError) else None  # its number tells kinds apart
        raise kind(in_words_of_python(text.removeprefix("error: "))) from cause


def in_words_of_python(text: str) -> str:
    """Replace options of the command line by arguments of Python functions."""
    for option, argument in _OPTIONS:
        text = re.sub(option, argument, text)
    return text
