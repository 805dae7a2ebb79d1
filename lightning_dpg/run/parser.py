"""Lightning's argument parser, with readable errors."""

import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from pytorch_lightning.cli import LightningArgumentParser

from lightning_dpg import methods
from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.run.parser_messages import explain_parsing
from lightning_dpg.run.written_settings import is_uncertain, named_settings

_NODES = ("--data.nodes", "--data.init_args.nodes")


class PrivateParser(LightningArgumentParser):
    """Parser with errors that name the fault, its place, and the nearest valid name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accept options by their full names only: ``max_epoch`` is a mistake, not a short form."""
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def parse_args(self, args: Any = None, *others: Any, **kwargs: Any) -> Any:
        """Parse options, of which ``--nodes FILE`` is short for ``--data.nodes.ids FILE``."""
        words = sys.argv[1:] if args is None else list(args)
        for place, word in enumerate(words):
            name, equals, value = word.partition("=")
            value = value if equals else "".join(words[place + 1 : place + 2])
            if name in _NODES and not value.lstrip().startswith("{"):
                words[place] = f"{name}.ids{equals}{value if equals else ''}"
            elif word == f"{name}=None":
                # jsonargparse writes the null of an option such as --data.columns.time so, when it
                # hands the option to the parser of the class.
                words[place] = f"{name}=null"
        return super().parse_args(words, *others, **kwargs)

    def dump(self, *args: Any, **kwargs: Any) -> str:
        """Write shipped methods by their public path, which stays where their modules move.

        What is written was parsed, and is not checked a second time.
        """
        text: str = super().dump(*args, **{**kwargs, "skip_validation": True})
        module = r"lightning_dpg\.papers\.[\w.]+\.(\w+)"
        return re.sub(
            rf"\b(class_path: ){module}$", r"\1lightning_dpg.methods.\2", text, flags=re.MULTILINE
        )

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Exit with at most five lines; nested parsers pass their error to the outermost one."""
        if not self.exit_on_error:
            super().error(message, ex)
        if refusal := _refusal_behind(ex):  # the parser wraps every ValueError
            raise CommandError(str(refusal)) from ex
        import_all_methods()  # the message names their options
        raise CommandError(explain_parsing(message, self.known_options())) from ex

    def add_lightning_class_args(self, *args: Any, **kwargs: Any) -> list[str]:
        """Add a class with plain values: a path is not replaced by the content of its file."""
        added = super().add_lightning_class_args(*args, **kwargs)
        for action in self._actions:
            if action.dest in ("model", "data") and hasattr(action, "sub_add_kwargs"):
                action.sub_add_kwargs = {**action.sub_add_kwargs, "sub_configs": False}
        return added

    def known_options(self) -> list[str]:
        """Return the names of all options, including options of subcommands."""
        names = [action.dest for action in self._actions]
        subcommands = self._subcommands_action
        for parser in subcommands._name_parser_map.values() if subcommands else ():
            names += [action.dest for action in parser._actions]
        return names


def _refusal_behind(error: BaseException | None) -> Refusal | None:
    """Find a message of our own behind an error of the parser."""
    while error is not None and not isinstance(error, Refusal):
        error = error.__cause__ or error.__context__
    return error


def import_methods(args: Sequence[str]) -> None:
    """Import the methods that a command line and its files name.

    All methods take a third of a second. They are imported only where the parser may need them: for
    help, and for a name that is none of theirs.

    Args:
        args: Command and options.
    """
    settings = list(named_settings(args))
    named = [each for each in settings if (each.section, each.name) == ("model", "class_path")]
    names = {f"{setting.value}" for setting in named}
    short = {name for name in names if not name.startswith("lightning_dpg.")}
    if not names or not short <= {*methods.__all__} or is_uncertain(args, settings):
        import_all_methods()
    else:
        for name in short:
            getattr(methods, name)


def import_all_methods() -> None:
    """Import all methods, such as for a message that names the nearest one."""
    for name in methods.__all__:
        getattr(methods, name)
