"""Lightning's argument parser, with readable errors."""

import contextlib
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from jsonargparse import Namespace
from pytorch_lightning import LightningDataModule
from pytorch_lightning.cli import LightningArgumentParser

from lightning_dpg import methods
from lightning_dpg.errors import CommandError, Refusal, explain
from lightning_dpg.run.messages import explain_parsing
from lightning_dpg.run.words import is_uncertain, named_settings

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


def read_data(settings: Namespace, command: str) -> LightningDataModule:
    """Build the data module and read its data, unless graphs are drawn from a checkpoint.

    Args:
        settings: All sections.
        command: Subcommand.

    Raises:
        CommandError: If no data are named.
    """
    section = settings.data
    is_shipped = section.class_path.startswith("lightning_dpg.")
    if command != "predict" and is_shipped and section.init_args.get("name", "") is None:
        raise CommandError(
            "data.init_args.name is null: give a built-in graph, a data set, or the path of a "
            "file, see python -m lightning_dpg list --all"
        )
    # The parser of the command would keep the arguments of a method that is not complete yet.
    parser = PrivateParser()
    parser.add_lightning_class_args(LightningDataModule, "data", subclass_mode=True)
    with settings_of_classes():
        data: LightningDataModule = parser.instantiate(settings).data
    if command != "predict":
        data.prepare_data()
        data.setup(command)
    return data


@contextlib.contextmanager
def settings_of_classes() -> Iterator[None]:
    """Report the message of a constructor, which the parser would hide behind an unknown type.

    A ``ValueError`` of a constructor is about a setting, also in a class of a user.
    """
    try:
        yield
    except Exception as error:
        reason = _first_cause(error)
        if isinstance(reason, ValueError) and explain(reason) is None:
            place = traceback.extract_tb(reason.__traceback__)[-1]
            raise CommandError(
                f"{reason}\na setting was refused in {place.filename}, line {place.lineno}"
            ) from error
        if explain(error) is None and reason is not error:
            raise reason from error
        raise


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
