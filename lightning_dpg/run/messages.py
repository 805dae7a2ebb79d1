"""Errors of the parser in the user's terms, and of the command line in those of Python."""

import contextlib
import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence

from lightning_dpg.classes import find_class, is_abstract
from lightning_dpg.errors import REPORT, CommandError, explain, nearest

MISSING = {
    "privacy.epsilon": "every run states its budget: privacy: {epsilon: 2.0, delta: 1.0e-6}, "
    "or privacy: {epsilon: .inf} for none",
    "model": "give a configuration: --config dp_netgan.yaml, or see python -m lightning_dpg list",
    "data": "give a configuration: --config dp_netgan.yaml, or see python -m lightning_dpg list",
}

GROUPS = {"nodes": "{ids: FILE}", "columns": "{source: NAME, target: NAME}"}
"""Groups of settings of a data module, each with an example."""


def explain_parsing(message: str, options: Iterable[str]) -> str:
    """Rewrite a message of jsonargparse.

    Args:
        message: Text of the message, which can be a tree of types and errors.
        options: Names of all valid options, such as ``trainer.max_epochs``.
    """
    message = re.sub(
        r"Group '(\w+)' does not accept option '", r"unrecognized arguments: --\1.", message
    )
    where = _last(r'Parser key "([^"]+)"', message)
    first = _first(r'Parser key "([^"]+)"', message)
    if name := _first(r"Expected a dot import path string: (\S+)", message):
        ours = [cls.__name__ for cls in _ours(message)]
        return unknown_class(first, name, [cls.__name__ for cls in _classes(message)], ours)
    if name := _first(r"Option '([^']+)' is not accepted", message):
        taker, parameters = _parameters(message)
        # Settings of a class that no configuration names.
        if name in parameters and first in MISSING:
            return f"{first}.class_path is missing\n{MISSING[first]}"
        others = [
            cls.__name__ for cls in _ours(message) if name in inspect.signature(cls).parameters
        ]
        return no_such_option(first, taker, name, parameters, others)
    if where in GROUPS and (value := _first(r'Unable to load config "(.*)"', message)):
        return no_group(f"{first}.{where}", value)
    if name := _first(r"does not accept option '([^']+)'", message):
        return f"unknown option {name!r}{nearest(name, options)}"
    if name := _first(r"unrecognized arguments: --([^\s=']+)", message):
        if "Problem with given class_path" in message:  # of a group of settings of a class
            taker, parameters = _parameters(message)
            return no_such_option(first, taker, name, parameters, [])
        return f"unknown option --{name}{nearest(name, options)}"
    if name := _first(r"arguments are required: (?:\w+\.)?(model|data|privacy\.\w+)", message):
        return f"{name} is missing\n{MISSING.get(name, '')}"
    if name := _first(r"following arguments are required: (\w+)", message):
        return f"{first}.{name} is missing"
    if cause := _import_failure(message):
        return f"{first}: {cause}"
    expected = [
        _plain(kind)
        for kind in re.findall(r"Expected a (.+?)(?:\. Got value: .*)?$", message, re.MULTILINE)
        if "NoneType" not in kind
    ]
    value = _first(r"Got value: (.*)", message) or _last(r"Given value: (.*)", message)
    if where and expected and value is not None:
        path = where if where == first else f"{first}.{where}"
        choices = re.findall(r"'([^']+)'", " ".join(expected))
        return f"{path}: expected {' or '.join(sorted(expected))}, got {value!r}{nearest(value, choices)}"
    return message


def no_group(path: str, value: object) -> str:
    """Describe a value in place of a group of settings.

    Args:
        path: Place of the group, such as ``data.nodes``.
        value: The value.
    """
    group = path.rpartition(".")[2]
    return f"{path}: expected settings, such as {group}: {GROUPS[group]}, got {value!r}"


def unknown_class(
    section: str | None, name: str, classes: Iterable[str], listed: Iterable[str]
) -> str:
    """Describe a name that is no class.

    Args:
        section: Section of the configuration, such as ``model``.
        name: Name that was given.
        classes: All names that the section takes.
        listed: Names to list if none of them is near.
    """
    return f"{section}: unknown class {name}{nearest(name, classes) or _listed(listed)}"


def no_such_option(
    section: str | None, taker: str, name: str, options: Iterable[str], others: Sequence[str]
) -> str:
    """Describe an option that a class does not have.

    Args:
        section: Section of the configuration, such as ``model``.
        taker: Name of the class.
        name: Name of the option.
        options: Options of the class.
        others: Names of our classes that have the option; only one of them is a hint.
    """
    other = f"\n{others[0]} has it" if len(others) == 1 else ""
    return f"{section}: {taker} has no option {name!r}{other or nearest(name, options) or _listed(options)}"


def _import_failure(message: str) -> str | None:
    """Explain why a class cannot be imported; None if the message has another cause."""
    path = _first(r"Problem with given class_path '([^']+)'", message) or ""
    module, _, name = path.rpartition(".")
    if missing_module := _first(r"No module named '([^']+)'", message):
        if module == missing_module or module.startswith(f"{missing_module}."):
            looked = "looked for in the current folder and among installed packages"
            return f"there is no module {missing_module!r} to take {name} from\n{looked}"
        return f"{module} cannot be imported: there is no module {missing_module!r}"
    if _first(r"(module '[^']+' has no attribute)", message):
        names = importlib.import_module(module)
        classes = [key for key in dir(names) if isinstance(getattr(names, key), type)]
        return f"{module} has no class {name}{nearest(name, classes)}"
    if reason := _first(
        r"Problem with given class_path '[^']+':\s+(cannot import name .+)", message
    ):
        return f"{module} cannot be imported: {reason}"
    if reason := _first(r"- (.+ \(\S+\.py, line \d+\))$", message):
        return f"a module cannot be imported: {reason}"
    if base := _first(r"Import path does not correspond to a subclass of (\w+)", message):
        given_path = _last(r"Given value: (.*)", message)
        return f"expected a {base}, and {given_path} is none"
    return None


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None


def _last(pattern: str, text: str) -> str | None:
    matches: list[str] = re.findall(pattern, text)
    return matches[-1] if matches else None


def _plain(kind: str) -> str:
    """Convert ``<class 'int'>`` to ``int``, and a literal to its values."""
    if match := re.fullmatch(r"<class '(?:\w+\.)*(\w+)'>", kind):
        return match[1]
    if match := re.fullmatch(r"typing\.Literal\[(.*)\]", kind):
        return match[1].replace(", ", " or ")
    return kind


def _listed(options: Iterable[str]) -> str:
    names = ", ".join(sorted(options))
    return f"\nthere are: {names}" if names else ""


def _classes(message: str) -> list[type]:
    """Return the classes that the program accepts at the place of the error."""
    expected = _first(r"Subtypes: \[(?:<class '|[\w.]+\[)([\w.]+)", message)
    base = find_class(expected) if expected else None
    if not isinstance(base, type):  # such as a union
        return []
    return [cls for cls in _subclasses(base) if not is_abstract(cls)]


def _ours(message: str) -> list[type]:
    """Return the package's classes that fit, or all classes if none does."""
    classes = _classes(message)
    return [cls for cls in classes if cls.__module__.startswith("lightning_dpg.")] or classes


def _subclasses(base: type) -> Iterator[type]:
    subclasses: list[type] = base.__subclasses__()
    for cls in subclasses:
        yield cls
        yield from _subclasses(cls)


def _options(message: str, name: str) -> list[str]:
    """Return the options of the class of a name, or of all classes that fit if none has it."""
    classes = _classes(message)
    takers = [cls for cls in classes if cls.__name__ == name] or classes
    return sorted({option for cls in takers for option in options_of(cls)})


def options_of(cls: type) -> Iterator[str]:
    """Yield the names of the options of a class, including those of groups of options."""
    for name, parameter in inspect.signature(cls).parameters.items():
        yield name
        if dataclasses.is_dataclass(parameter.default):
            yield from (f"{name}.{field.name}" for field in dataclasses.fields(parameter.default))


def _parameters(message: str) -> tuple[str, list[str]]:
    """Return the name of the class that refuses an option, and its valid options."""
    path = _last(r"'class_path': '([^']+)'", message)
    path = path or _last(r"Problem with given class_path '([^']+)'", message) or ""
    name = path.rpartition(".")[2]
    return name or "the class", _options(message, name)


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
