"""Parser of ``budget`` and its subcommands, with short errors that name the nearest option."""

import argparse
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from lightning_dpg.errors import CommandError, nearest


class BudgetParser(argparse.ArgumentParser):
    """Parser without short forms of options: a registration cannot be undone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accept options by their full names only, as ``fit`` does."""
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def error(self, message: str) -> NoReturn:
        """Exit with two lines: the fault with the nearest name, and the help that lists all."""
        if wrong := re.match(r"unrecognized arguments: (\S+)", message):
            message = f"unknown option {wrong[1]}{nearest(wrong[1], self._names('-'))}"
        elif wrong := re.search(r"COMMAND: invalid choice: '(.*?)'", message):
            message = f"unknown command '{wrong[1]}'{nearest(wrong[1], self._names())}"
        program = self.prog.removeprefix("lightning_dpg ")
        raise CommandError(f"{message}\nall options: python -m lightning_dpg {program} --help")

    def _names(self, start: str = "") -> Iterator[str]:
        """Options of this parser and its subcommands that begin with a text, or all subcommands."""
        for action in self._actions:
            if start:
                yield from action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                for name, parser in action.choices.items():
                    yield from parser._names(start) if start else [name]
