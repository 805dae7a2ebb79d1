"""``list``: methods, data sets and configurations, read from source files without execution."""

import ast
import os
import re
from pathlib import Path

from lightning_dpg.advice import GOALS, choices
from lightning_dpg.running.method_list import MethodInfo, first_line, list_methods, source_folder
from lightning_dpg.running.settings import shipped_configs


def list_() -> None:
    """Print methods, data sets and configurations."""
    sections = {
        "methods (model.class_path)": methods(),
        "data sets (data.init_args.name)": data_sets(),
        "configurations (--config)": configs(),
    }
    for title, rows in sections.items():
        width = max((len(name) for name, _ in rows), default=0)
        print(f"{title}:")
        for name, text in rows:
            print(f"  {name:<{width}}  {text}".rstrip())
    print("which method:")
    for goal, words in GOALS.items():
        print(f"  {words}: {', '.join(choices(goal))}")
    print("  plan --goal ... --epsilon E --nodes N --edges M chooses, and gives the reason")


def methods() -> list[tuple[str, str]]:
    """Name and summary of each method, with the relation of its guarantee, if it has one."""
    return [(row.name, f"{row.summary} [{_protected(row)}]") for row in list_methods()]


def _protected(row: MethodInfo) -> str:
    """The relation of a guarantee, with a word where it has a condition."""
    return (row.relation or "no guarantee") + (", under a condition" if row.is_conditional else "")


def data_sets() -> list[tuple[str, str]]:
    """Built-in graphs and sets of graphs, and the data sets in the folder of real data."""
    rows = [(name, "built in") for name in _keys("loading.py", "BUILT_IN")]
    rows += [(name, f"{text}; built in, a set") for name, text in _built_in_sets()]
    root = os.environ.get("LIGHTNING_DPG_DATA")
    if root is None:
        return [*rows, ("...", "set LIGHTNING_DPG_DATA to a folder with graphs/NAME.edges.gz")]
    files = [*Path(root).glob("graphs/*.edges.gz"), *Path(root).glob("npz/*.npz")]
    rows += [(path.name.split(".")[0], str(path)) for path in sorted(files)]
    return rows + [(path.name, f"{path}, a set") for path in sorted(Path(root).glob("tu/*/"))]


def _built_in_sets() -> list[tuple[str, str]]:
    """Name of each built-in set, and first docstring line of its function."""
    file = "built_in_sets.py"
    functions = {node.name: node for node in _tree(file).body if isinstance(node, ast.FunctionDef)}
    names = _keys(file, "BUILT_IN_SETS")
    return [(name, first_line(functions[name]).removesuffix(".")) for name in names]


def _keys(file: str, constant: str) -> list[str]:
    """Keys of a dictionary in a data module's file."""
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
    """Parse a data module's file."""
    return ast.parse((source_folder("datamodules") / file).read_text(encoding="utf-8"))


def configs() -> list[tuple[str, str]]:
    """Name and first comment of each shipped configuration."""
    return [
        (name, _sentence(re.findall(r"^# ?(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)))
        for name, path in shipped_configs().items()
    ]


def _sentence(comments: list[str]) -> str:
    """The first sentence of a comment of several lines."""
    return re.split(r"(?<=[\w)])\.(?: |$)", " ".join(comments))[0]
