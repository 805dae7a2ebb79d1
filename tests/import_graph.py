"""Imports between modules of the package, read from the sources."""

import ast
import functools
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
# Folders at the top that are links in the package.
LINKED = ("datamodules", "callbacks")


def room_of(name):
    """Room of a module: the first part of its name; commands and applications are rooms of their own."""
    first, _, rest = name.partition(".")
    second = rest.partition(".")[0]
    is_own = (first == "apps" and rest) or (first, second) == ("run", "commands")
    return f"{first}.{second}" if is_own else first


class Import(NamedTuple):
    """One name of ours that a module imports."""

    path: Path
    line: int
    module: str
    """Module that imports, below ``lightning_dpg``."""
    target: str
    """Name that it imports, below ``lightning_dpg``."""
    is_inside: bool
    """Whether it stands inside a function."""
    is_for_types: bool
    """Whether it stands under ``if TYPE_CHECKING``."""
    comment: str
    """Line above the block of imports that it stands in, and its own line."""

    @property
    def rooms(self):
        """Both rooms, such as ``("methods", "graph")``."""
        return room_of(self.module), room_of(self.target)

    def __str__(self):
        place = f"{self.path.relative_to(ROOT)}:{self.line}"
        return f"{place}: {self.module} imports {self.target}"


@functools.cache
def modules():
    """Path of each module by its name below ``lightning_dpg``; that of a package is its own."""
    package = ROOT / "lightning_dpg"
    paths = [path for name in (".", *LINKED) for path in (package / name).rglob("*.py")]
    found = {}
    for path in sorted(set(paths)):
        parts = path.relative_to(package).with_suffix("").parts
        name = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
        found[".".join(name)] = path
    return found


@functools.cache
def imports():
    """All imports of ours."""
    return [found for name, path in modules().items() for found in _imports_of(name, path)]


def _imports_of(module, path):
    lines = path.read_text(encoding="utf-8").splitlines()
    found = _statements(path)
    imported = {
        number for each in found for number in range(each.node.lineno, each.node.end_lineno + 1)
    }
    for node, is_inside, is_for_types, _ in found:
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} is a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names]
        above = node.lineno
        while above in imported:
            above -= 1
        comment = f"{lines[above - 1]} {lines[node.lineno - 1]}"
        for name in names:
            top, _, target = name.partition(".")
            assert top not in (*LINKED, "conf"), f"{path}:{node.lineno}: import {name}"
            if top == "lightning_dpg" and target:
                yield Import(path, node.lineno, module, target, is_inside, is_for_types, comment)


class Statement(NamedTuple):
    """One statement that imports."""

    node: ast.Import | ast.ImportFrom
    is_inside: bool
    """Whether it stands inside a function."""
    is_for_types: bool
    """Whether it stands under ``if TYPE_CHECKING``."""
    is_first: bool
    """Whether it stands in the module itself, under no other statement."""


@functools.cache
def _statements(path):
    """All statements of a file that import, which stand in other statements but in no expression."""
    found = []

    def look(node, is_inside, is_for_types, is_first):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(Statement(node, is_inside, is_for_types, is_first))
        is_inside |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_for_types |= isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            below = getattr(node, name, None)
            for each in below if isinstance(below, list) else ():  # a lambda has one, too
                look(each, is_inside, is_for_types, isinstance(node, ast.Module))

    look(ast.parse(path.read_text(encoding="utf-8")), False, False, False)
    return found


class ForeignImport(NamedTuple):
    """One package of others that a module imports."""

    place: str
    """File and line."""
    package: str
    """Name that is imported, without what is below it."""
    is_needed: bool
    """Whether it is imported with the module; else in a function, or for types only."""


def foreign_imports():
    """All imports of packages of others."""
    return [found for path in modules().values() for found in _foreign_imports_of(path)]


def _foreign_imports_of(path):
    for node, _, _, is_first in _statements(path):
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        else:
            names = [alias.name for alias in node.names]
        for name in names:
            top = name.partition(".")[0]
            if top != "lightning_dpg" and top not in sys.stdlib_module_names:
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield ForeignImport(place, top, is_first)
