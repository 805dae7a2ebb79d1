"""Errors of the Python interface: the sentences of the command line, with the names of arguments."""

import contextlib
import re
from collections.abc import Iterator

from lightning_dpg.errors import REPORT, CommandError, explain

_READ = "of lightning_dpg.read"
_OPTIONS: tuple[tuple[str, str], ...] = (
    # A setting of the data, which the message names, with its option in brackets.
    (r"set (?:\w+\.)?(\w+) to (\w+)\s\(--[\w-]+ \2\)", rf'set \1="\2" {_READ}'),
    (r"undirected=True \(--undirected\)", f"undirected=True {_READ}"),
    (
        r"columns\.source and columns\.target\n\(--source NAME --target NAME\)",
        f"source and target {_READ}",
    ),
    (
        r"--data\.nodes\.policy\.COLUMN private_label --data\.nodes\.classes A,B",
        'labels="COLUMN", classes=["A", "B"]',
    ),
    (r"--data\.nodes\.classes a,b,c", 'classes=["a", "b", "c"]'),
    (
        r"--attributes people\.csv --data\.nodes\.private_columns \S+ --data\.nodes\.domains \S+",
        'nodes=Nodes(attributes="people.csv", private_columns=["age", "region"], domains={...})',
    ),
    (r"--data\.nodes\.private_columns NAME,NAME", "nodes=Nodes(private_columns=[...])"),
    (r"--data\.nodes\.policy\.(\w+) (\w+)", r'nodes=Nodes(policy={"\1": "\2"})'),
    (r"--data\.nodes\.policy '({.*})'", r"nodes=Nodes(policy=\1)"),
    (r"--attributes ([\w.]+)", rf'attributes="\1" {_READ}'),
    (r"\s\(--(?:[^()']|'[^']*')*\)", ""),
    (r"--(?:privacy|model\.init_args|data\.init_args)\.(\w+)", r"\1"),
    (r"\b(?:privacy|model\.init_args|data\.init_args)\.(\w+)", r"\1"),
    (r"--dataset ([^\s,]+)", r'dataset="\1"'),
    (r"--no-book\b", 'book="none"'),
    (r"--baseline-config CONF", "baseline=NAME"),
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
