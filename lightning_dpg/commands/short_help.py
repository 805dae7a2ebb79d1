"""Help of a command on one screen: its first options, each with the first sentence of its text."""

import argparse
import re
import shutil
import textwrap
from collections.abc import Collection, Iterator

_WIDTH, _HEIGHT = 100, 24
_COLUMN = 28
"""Widest name of an option beside its text; longer ones stand above it."""
_COUNT = 10
_LINES = 2
"""Lines of a text; a longer one is cut."""
_SENTENCE = re.compile(r"(?<=[^.])\. (?=[A-Z])|; (?!see )")


def short_help(parser: argparse.ArgumentParser, common: Collection[str], example: str) -> str:
    """Return usage, first paragraph, all subcommands or the first options, and an example.

    Args:
        parser: Parser of the command.
        common: Options that all commands have, which stand last.
        example: Example of the command, or nothing.
    """
    width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, _HEIGHT)).columns)
    usage = " ".join(parser.format_usage().split())
    own = [row for row in _rows(parser) if row[0] not in common]
    has_subcommands = parser._subparsers is not None
    rows = [
        *(own if has_subcommands else own[:_COUNT]),
        *(row for row in _rows(parser) if row[0] in common),
    ]
    column = 2 + max(len(name) for name, _ in rows if len(name) <= _COLUMN)
    blocks = [
        textwrap.fill(usage, width, subsequent_indent=" " * 7, break_on_hyphens=False),
        textwrap.fill((parser.description or "").partition("\n\n")[0], width),
        "\n".join(line for name, text in rows for line in _lines(name, text, column, width)),
        f"example:\n  {example}" * bool(example),
        f"all options and explanations: python -m {parser.prog} --help-all",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _rows(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yield options and words with the first sentence of their texts; for subcommands, those."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action._choices_actions:
                yield each.dest, (each.help or "").rstrip(".")
        elif "--help-all" not in action.option_strings and "--help" not in action.option_strings:
            names = [*action.option_strings[:1], *([action.metavar] if action.metavar else [])]
            more = "..." if action.nargs == "+" else ""
            sentence = _SENTENCE.split(action.help or "")[0].replace("%%", "%")
            yield " ".join(map(str, names)) + more, sentence


def _lines(name: str, text: str, column: int, width: int) -> list[str]:
    """Return a row of the table of options."""
    lines = textwrap.wrap(text, width - column - 2, max_lines=_LINES, placeholder=" ...")
    head, *others = lines or [""]
    if len(name) > width - 2:  # many choices
        name = f"{name[: width - 8].rpartition(',')[0]},...}}"
    if len(name) > column - 2:
        first = [f"  {name}", f"  {'':{column}}{head}"]
    else:
        first = [f"  {name:{column}}{head}".rstrip()]
    return [*first, *(f"  {'':{column}}{line}" for line in others)]
