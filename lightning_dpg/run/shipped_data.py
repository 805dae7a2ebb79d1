"""Names of the built-in graphs and sets, read from source files without execution."""

import ast

from lightning_dpg.run.method_list import first_line, source_folder


def built_in_graphs() -> list[str]:
    """Return the names of the built-in graphs."""
    return _keys("loading.py", "BUILT_IN")


def built_in_sets() -> dict[str, str]:
    """Return the first line of the documentation of each built-in set, by its name."""
    file = "built_in_sets.py"
    functions = {node.name: node for node in _tree(file).body if isinstance(node, ast.FunctionDef)}
    names = _keys(file, "BUILT_IN_SETS")
    return {name: first_line(functions[name]).removesuffix(".") for name in names}


def _keys(file: str, constant: str) -> list[str]:
    """Return the keys of a dictionary in a file of a data module."""
    value = next(
        node.value
        for node in _tree(file).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == constant
    )
    assert isinstance(value, ast.Dict)
    return [str(ast.literal_eval(key)) for key in value.keys if key is not None]


def _tree(file: str) -> ast.Module:
    """Parse a file of a data module."""
    return ast.parse((source_folder("datamodules") / file).read_text(encoding="utf-8"))
