"""Options of a command, from the signature and the docstring of its Python function.

``jsonargparse`` does not serve here: it takes several files as ``[a,b]`` and a flag as ``--flag true``,
and its import takes as long as a quick command.
"""

import argparse
import ast
import dataclasses
import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NoReturn,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import lightning_dpg
from lightning_dpg.errors import CommandError, nearest
from lightning_dpg.outcome import Outcome

_METAVARS: Mapping[Any, str] = {int: "N", float: "X", Path: "PATH", str: "TEXT"}
SWITCHES: Mapping[str, str] = {
    "--json": "Print one JSON object on stdout, and nothing else there",
    "--quiet": "Print no progress and no notes; warnings and errors stay",
}
"""Options of every command, with their texts."""
_SECTIONS = re.compile(r"\n\n(Args|Attributes|Returns|Raises|Example):\n")


class _ShortHelp(argparse.Action):
    """Option that prints the help on one screen, and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        """Take no value, and leave none."""
        hidden = argparse.SUPPRESS
        super().__init__(option_strings, dest=hidden, default=hidden, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print the help of the parser that has found the option."""
        example = parser.example if isinstance(parser, Parser) else ""
        print(short_help(parser, SWITCHES, example), end="")
        parser.exit()


class Parser(argparse.ArgumentParser):
    """Parser that takes full names of options only, and names the nearest one in its errors."""

    def __init__(self, prog: str, description: str = "", epilog: str = "") -> None:
        """Accept options by their full names only, as ``fit`` does."""
        super().__init__(
            prog,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            add_help=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.example = ""
        self.add_argument("-h", "--help", action=_ShortHelp, help="Print the first options")
        self.add_argument("--help-all", action="help", help="Print all options and explanations")
        for name, text in SWITCHES.items():  # the main function takes them off the command line
            self.add_argument(name, action="store_true", default=argparse.SUPPRESS, help=text)

    def error(self, message: str) -> NoReturn:
        """Exit with two lines: the fault with the nearest name, and the help that lists all."""
        if wrong := re.match(r"unrecognized arguments: (\S+)", message):
            what = "option" if wrong[1].startswith("-") else "word"
            message = f"unknown {what} {wrong[1]}{nearest(wrong[1], self._names('-'))}"
            if wrong[1] in ("true", "false"):
                message += ": a flag takes no value"
        elif wrong := re.search(r"COMMAND: invalid choice: '(.*?)'", message):
            message = f"unknown command '{wrong[1]}'{nearest(wrong[1], self._names())}"
        program = self.prog.removeprefix("lightning_dpg ")
        raise CommandError(f"{message}\nall options: python -m lightning_dpg {program} --help-all")

    def _names(self, start: str = "") -> Iterator[str]:
        """Yield the options of this parser and its subcommands that begin with a text."""
        for action in self._actions:
            if start:
                yield from action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                for name, parser in action.choices.items():
                    yield from parser._names(start) if start else [name]


@dataclasses.dataclass(frozen=True)
class Group:
    """A command with subcommands.

    Attributes:
        name: Name of the command.
        functions: Functions of the subcommands, see :func:`add_arguments`.
        description: First lines of its help.
        example: Example in its help.
    """

    name: str
    functions: Sequence[Callable[..., Outcome]]
    description: str
    example: str


def call(command: Callable[..., Outcome] | Group, args: Sequence[str], epilog: str = "") -> Outcome:
    """Run a command.

    Args:
        command: Its function, see :func:`add_arguments`, or those of its subcommands.
        args: Its command line.
        epilog: Last paragraphs of its help.

    Raises:
        CommandError: If a word is no option, or if a value has another type.
    """
    if not isinstance(command, Group):
        words, options = parse(command, args, epilog)
        return command(*words, **options)
    functions = {_name(function): function for function in command.functions}
    parser = Parser(prog=f"lightning_dpg {command.name}", description=command.description)
    parser.example = command.example
    below = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in functions.items():
        does = (inspect.getdoc(function) or "").partition("\n")[0]
        add_arguments(below.add_parser(name, help=does), function)
    if not args or args[0] not in functions:
        parser.parse_args(args[:1])  # prints the help, or refuses the word
    options = vars(below.choices[args[0]].parse_intermixed_args(args[1:]))
    function = functions[args[0]]
    return function(**in_groups(function, options))


def parse(
    function: Callable[..., Any], args: Sequence[str], epilog: str = ""
) -> tuple[list[str], dict[str, Any]]:
    """Read the command line of a command.

    Args:
        function: Its function, see :func:`add_arguments`.
        args: Its command line.
        epilog: Last paragraphs of its help.

    Returns:
        Words for the function's parameter ``*words``, if it has one, and all other arguments by name.

    Raises:
        CommandError: If a word is no option, or if a value has another type.
    """
    parser = Parser(prog=f"lightning_dpg {_name(function)}", epilog=epilog)
    add_arguments(parser, function)
    options, words = parser.parse_known_args(args)
    parameters = inspect.signature(function).parameters.values()
    if words and not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        parser.error(f"unrecognized arguments: {words[0]}")
    return words, in_groups(function, vars(options))


def _name(function: Callable[..., Any]) -> str:
    """Return the name of a command, whose function may need another letter for it."""
    return function.__name__.rstrip("_").replace("_", "-")


def in_groups(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function, with its data classes made from the options of their fields.

    Args:
        function: Function of a command.
        options: Values by the names of parameters and of fields.
    """
    arguments = dict(options)
    for name, parameter in inspect.signature(function).parameters.items():
        group = parameter.annotation
        if isinstance(group, type) and dataclasses.is_dataclass(group):
            fields = dataclasses.fields(group)
            arguments[name] = group(**{each.name: arguments.pop(each.name) for each in fields})
    return arguments


class _Option(NamedTuple):
    """A parameter of a function, or a field of a data class in its place, with its text."""

    name: str
    annotation: Any
    default: Any
    is_word: bool
    text: str


def _options(function: Callable[..., Any], texts: Mapping[str, str]) -> Iterator[_Option]:
    """Yield parameters, and the fields of those that are data classes, in their order.

    Args:
        function: Function of a command; of a data class it has an instance as the default.
        texts: Text of each parameter that is no data class.
    """
    for name, parameter in inspect.signature(function).parameters.items():
        group = parameter.annotation
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if dataclasses.is_dataclass(group):
            types = get_type_hints(group, include_extras=True)
            _, of_fields = described(inspect.getdoc(group) or "")
            for field in dataclasses.fields(group):
                default = getattr(parameter.default, field.name)
                text = of_fields[field.name]
                yield _Option(field.name, types[field.name], default, False, text)
        else:
            is_word = parameter.kind is not parameter.KEYWORD_ONLY
            yield _Option(name, parameter.annotation, parameter.default, is_word, texts[name])


def add_arguments(parser: Parser, function: Callable[..., Any]) -> None:
    """Add the parameters of a function to a parser, and its description.

    A keyword-only parameter is an option, any other one is a word of the command line. Parameters of
    type ``list[...]`` take one word or more, and those of type ``bool`` are flags. ``*words`` gets
    the words that are no options of the command. ``Annotated[..., "--name"]`` gives another name, and
    further ones are aliases. A parameter whose type is a data class, and whose default is an instance of
    it, stands for the options of its fields; see :func:`in_groups`.

    Args:
        parser: The parser of the command.
        function: Its function, with a Google-style docstring. ``See :func:`path``` in place of the text
            of a parameter stands for the text of the parameter of that name there.
    """
    docstring = inspect.getdoc(function) or ""
    parser.description, texts = described(docstring)
    parser.example = " ".join(sections(docstring).get("Example", "").split())
    usage = ["%(prog)s"]
    for option in _options(function, texts):
        annotation, *names = (
            get_args(option.annotation)
            if get_origin(option.annotation) is Annotated
            else [option.annotation]
        )
        settings = _settings(annotation)
        settings["help"] = _text(option.name, option.text).rstrip(".").replace("%", "%%")
        is_required = option.default is inspect.Parameter.empty
        if not is_required:
            settings["default"] = option.default
            if option.default not in (None, False, ""):
                settings["help"] += f" ({option.default})"
        if option.is_word:
            words = [option.name]
            shown = settings["metavar"] = names[0] if names else option.name.upper()
            if not is_required:
                is_list = settings.get("nargs") == "+"
                settings["nargs"], shown = (
                    ("*", f"[{shown}...]") if is_list else ("?", f"[{shown}]")
                )
        else:
            words = names or [f"--{option.name.replace('_', '-')}"]
            settings |= {"required": is_required, "dest": option.name}
            shown = f"{words[0]} {settings.get('metavar')}"
        if is_required or option.is_word:
            usage.append(shown + ("..." if settings.get("nargs") == "+" else ""))
        parser.add_argument(*words, **settings)
    others = [
        f"[{name.replace('_', ' ')}]"
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.VAR_POSITIONAL
    ]
    parser.usage = " ".join([*usage, *others, "[options]"])


def described(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the description, and the text of each argument.

    Args:
        docstring: Google-style docstring, without indentation.
    """
    description = _SECTIONS.split(docstring)[0]
    titles = sections(docstring)
    arguments = titles.get("Args") or titles.get("Attributes") or ""  # those of a data class
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", arguments, re.MULTILINE)
    return _plain(description), {name: " ".join(text.split()) for name, text in entries}


def sections(docstring: str) -> dict[str, str]:
    """Return the text of each section of a docstring by its title.

    Args:
        docstring: Google-style docstring, without indentation.
    """
    _, *parts = _SECTIONS.split(docstring)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _text(name: str, text: str) -> str:
    """Return the text of a parameter, which another function or class may have."""
    link = re.match(r"See :\w+:`lightning_dpg\.([\w.]+)\.(\w+)`\.", text)
    return _plain(_texts_of(link[1], link[2])[name] if link else text)


@cache
def _texts_of(module: str, name: str) -> dict[str, str]:
    """Return the texts of the arguments of a function or class, read from its source file."""
    path = Path(lightning_dpg.__file__).parent / f"{module.replace('.', '/')}.py"
    docstrings = (
        ast.get_docstring(node) or ""  # an overload has none
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
    )
    return described("\n\n".join(docstrings))[1]


def _plain(text: str) -> str:
    """Remove the marks of docstrings from a text."""
    text = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"\1", text)
    return text.replace("``", "`")


def _settings(annotation: Any) -> dict[str, Any]:
    """Return the settings of ``add_argument`` for a type of Python."""
    if annotation == bool | None:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
    if annotation is bool:
        return {"action": "store_true"}
    if get_origin(annotation) is list:
        return _settings(get_args(annotation)[0]) | {"nargs": "+"}
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
        return {"choices": choices, "metavar": f"{{{','.join(choices)}}}"}
    return {"type": annotation, "metavar": _METAVARS[annotation]}


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
