"""Names of a package that are imported at their first use.

A package names them once, in its block ``if TYPE_CHECKING``, which type checkers and editors read::

    if TYPE_CHECKING:
        from lightning_dpg.methods.single_graph.bter import BTER as BTER
    else:
        __getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
"""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def exports(file: str | Path) -> dict[str, str]:
    """Return the names under ``if TYPE_CHECKING`` of a file, each with the module that holds it.

    Args:
        file: Source file of the package.
    """
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    blocks = [
        node.body
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        alias.name: node.module
        for block in blocks
        for node in block
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
        if alias.asname == alias.name
    }


def lazy_exports(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Args:
        package: Its ``__name__``.
        file: Its ``__file__``.
    """
    modules = exports(file)

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if modules[name] == package:  # a module of the package
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(modules[name]), name)

    names = sorted(modules)
    return get, lambda: names, names
