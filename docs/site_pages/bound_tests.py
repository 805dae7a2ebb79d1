"""Which tests try a bound: those whose code names its function."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from site_pages.source import ROOT

# Tests nearer to the proofs come first.
_NEAREST = ("tests/privacy/sensitivity", "tests/privacy", "tests/graph", "tests")


@dataclass(frozen=True)
class TestFunction:
    """A test function.

    Attributes:
        path: Its file, relative to the root of the project.
        name: Its name.
        code: Its source, with decorators.
        names: Names that its body and decorators use.
        reached: The same, and what helpers, fixtures and constants of its file use on its behalf.
    """

    __test__ = False  # pytest collects classes by their names

    path: str
    name: str
    code: str
    names: frozenset[str]
    reached: frozenset[str]


def tests_of(function: str) -> list[TestFunction]:
    """Tests that name a function in their own body, then those that reach it through a helper.

    Args:
        function: Name of the function.
    """
    found = [test for test in all_tests() if function in test.reached]  # its own names among them
    return sorted(found, key=lambda test: function not in test.names)


@cache
def all_tests() -> tuple[TestFunction, ...]:
    """All test functions of the project, those near to the proofs first."""
    files = sorted((ROOT / "tests").rglob("test_*.py"), key=lambda path: (_rank(path), path))
    return tuple(test for path in files for test in functions(path))


def functions(path: Path) -> list[TestFunction]:
    """Test functions of one file, in its order."""
    code = path.read_text(encoding="utf-8")
    definitions = {name: node for node in ast.parse(code).body for name in _defined(node)}
    found = []
    for name, node in definitions.items():
        if name.startswith("test_") and isinstance(node, ast.FunctionDef):
            lines = code.splitlines()[_first_line(node) - 1 : node.end_lineno]
            reached = _reached(node, definitions)
            place = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
            found.append(TestFunction(place, name, "\n".join(lines), _used(node), reached))
    return found


def _rank(path: Path) -> int:
    place = path.relative_to(ROOT).as_posix()
    return next(rank for rank, folder in enumerate(_NEAREST) if place.startswith(f"{folder}/"))


def _defined(node: ast.stmt) -> list[str]:
    """Names that a statement at the top of a file defines, imports apart."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(mark.lineno for mark in node.decorator_list)])


def _used(node: ast.stmt) -> frozenset[str]:
    """Names, attributes and arguments (which may be fixtures) in a piece of code."""
    parts = list(ast.walk(node))
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    names |= {part.attr for part in parts if isinstance(part, ast.Attribute)}
    return frozenset(names | {part.arg for part in parts if isinstance(part, ast.arg)})


def _reached(node: ast.stmt, definitions: dict[str, ast.stmt]) -> frozenset[str]:
    """Names that a piece of code uses, also through other definitions of its file."""
    reached: set[str] = set()
    waiting = set(_used(node))
    while waiting:
        name = waiting.pop()
        reached.add(name)
        if name in definitions:
            waiting |= _used(definitions[name]) - reached
    return frozenset(reached)
