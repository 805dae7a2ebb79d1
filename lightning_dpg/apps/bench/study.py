"""Arguments of a benchmark that a study holds: the section ``benchmark:`` of a file."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lightning_dpg.errors import CommandError, nearest

_FOLDER = Path(__file__).parent / "studies"
SHIPPED_STUDIES = sorted(file.stem for file in _FOLDER.glob("*.yaml"))
KINDS_OF_GRAPHS = ("undirected", "directed", "bipartite")


class Arguments(NamedTuple):
    """Arguments of a benchmark, see :func:`lightning_dpg.apps.bench.engine.compare`."""

    methods: Sequence[str | Path]
    graphs: Sequence[Any] | Mapping[str, Any]
    epsilons: Sequence[float]
    seeds: Sequence[int] = range(5)
    delta: float = 1e-6
    classify: bool = False
    undirected: bool = False
    kind: str = "undirected"
    queries: Sequence[str] | None = None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _all_are(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and bool(value) and all(map(check, value))


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "methods": ("a list of names", _all_are(lambda value: isinstance(value, str))),
    "graphs": ("a list of names", _all_are(lambda value: isinstance(value, str))),
    "epsilons": ("a list of numbers", _all_are(_is_number)),
    "seeds": ("a list of whole numbers", _all_are(lambda value: type(value) is int)),
    "queries": ("a list of names", _all_are(lambda value: isinstance(value, str))),
    "delta": ("a number", _is_number),
    "classify": ("true or false", lambda value: isinstance(value, bool)),
    "undirected": ("true or false", lambda value: isinstance(value, bool)),
    "kind": ("undirected, directed or bipartite", lambda value: value in KINDS_OF_GRAPHS),
}


def complete(study: str | Path | None, arguments: Mapping[str, Any]) -> Arguments:
    """Complete the arguments of a benchmark by those of a study, and then by defaults.

    Args:
        study: A shipped study such as ``shape``, or a file with a section ``benchmark``.
        arguments: Arguments by name; None where one is not given.

    Raises:
        CommandError: If the file is at fault, or if a required argument is neither given nor there.
    """
    _check_methods(arguments.get("methods"))
    _check_graphs(arguments.get("graphs"))
    if isinstance(arguments.get("queries"), str):
        raise CommandError(f"queries must be a list of names, such as {[arguments['queries']]}")
    for key in ("epsilons", "seeds"):
        if isinstance(arguments.get(key), (int, float)):
            raise CommandError(f"{key} must be a list of numbers, got {arguments[key]!r}")
    section = {} if study is None else read_benchmark(study)
    values = section | {key: value for key, value in arguments.items() if value is not None}
    required = [key for key in Arguments._fields if key not in Arguments._field_defaults]
    if missing_keys := [key for key in required if key not in values]:
        place = "give them, or a study" if study is None else f"{study} has none either"
        raise CommandError(f"benchmark: {', '.join(missing_keys)} missing; {place}")
    return Arguments(**values)


def _check_methods(names: Any) -> None:
    """Refuse a single name, and objects: fits run in processes that read configurations."""
    if isinstance(names, (str, Path)):
        raise CommandError(f"methods must be a list of names, such as [{str(names)!r}]")
    for item in names or ():
        if not isinstance(item, (str, Path)):
            raise CommandError(
                f"methods must be names or files, got an object of type {type(item).__name__}\n"
                "a method of your own has a configuration file that names its class"
            )


def _check_graphs(graphs: Any) -> None:
    """Refuse a single name or graph."""
    if graphs is None or isinstance(graphs, (list, tuple, Mapping)):
        return
    if isinstance(graphs, (str, Path)):
        raise CommandError(f"graphs must be a list of names, such as [{str(graphs)!r}]")
    raise CommandError(
        f"graphs must be a list or a dictionary, got an object of type {type(graphs).__name__}\n"
        "give [graph], or {'name': graph}"
    )


def read_benchmark(study: str | Path) -> dict[str, Any]:
    """Read the section ``benchmark`` of a study.

    Args:
        study: Name of a shipped study, or a file.

    Raises:
        CommandError: If it is no study, was not measured by a benchmark, or an argument is wrong.
    """
    file = _FOLDER / f"{study}.yaml" if str(study) in SHIPPED_STUDIES else Path(study)
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CommandError(
            f"study {study}: no such file\nshipped studies: {', '.join(SHIPPED_STUDIES)}"
        ) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"study {study}: cannot be read ({error})") from error
    section = content.get("benchmark") if isinstance(content, dict) else None
    if not isinstance(section, dict):
        raise CommandError(
            f"study {study}: no section benchmark with methods, graphs and epsilons\n"
            "where a study was measured otherwise, its section commands says how"
        )
    for key, value in section.items():
        place = f"study {study}: benchmark: {key}"
        if key not in _KINDS:
            raise CommandError(f"{place}: no such argument{nearest(str(key), _KINDS)}")
        kind, is_valid = _KINDS[key]
        if not is_valid(value):
            raise CommandError(f"{place}: must be {kind}, got {value!r}")
    return section
