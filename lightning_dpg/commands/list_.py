"""``list``: methods, data sets and configurations, read from source files without execution."""

import argparse
import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import lightning_dpg
from lightning_dpg.running.settings import shipped_configs


def run(args: list[str]) -> None:
    """Print all three tables."""
    parser = argparse.ArgumentParser(
        prog="lightning_dpg list", description="Methods, data sets and configurations."
    )
    parser.parse_args(args)
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
    print("which method for links: plan ... --epsilon E --nodes N --edges M names it")


def methods() -> list[tuple[str, str]]:
    """Name and first docstring line of each method, with the relation of its guarantee."""
    package = ast.parse((_folder("methods") / "__init__.py").read_text(encoding="utf-8"))
    exported = {
        alias.name
        for node in package.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    classes = {
        node.name: node
        for path in sorted(_folder("methods").rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    rows = []
    for name, node in classes.items():
        if name not in exported:
            continue
        ancestors = list(_ancestors(node, classes))
        if "PrivateModule" in {base.name for base in ancestors[1:]} and not _is_abstract(ancestors):
            relation = next(filter(None, map(_relation, ancestors)), "")
            rows.append((name, f"{_first_line(node)} [{relation}]"))
    return sorted(rows)


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
    return [(name, _first_line(functions[name]).removesuffix(".")) for name in names]


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
    return ast.parse((_folder("datamodules") / file).read_text(encoding="utf-8"))


def configs() -> list[tuple[str, str]]:
    """Name and first comment of each shipped configuration."""
    return [
        (name, _sentence(re.findall(r"^# ?(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)))
        for name, path in shipped_configs().items()
    ]


def _folder(name: str) -> Path:
    """A folder of the package."""
    return Path(lightning_dpg.__file__).parent / name


def _ancestors(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """A class and its bases that are methods."""
    yield node
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _ancestors(classes[base.id], classes)


def _is_abstract(ancestors: list[ast.ClassDef]) -> bool:
    """Whether an abstract function remains; the nearest definition counts."""
    state: dict[str, bool] = {}
    for node in ancestors:
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                marks = [mark.id for mark in item.decorator_list if isinstance(mark, ast.Name)]
                state.setdefault(item.name, "abstractmethod" in marks)
    return any(state.values())


def _relation(node: ast.ClassDef) -> str | None:
    """The relation that a class declares, such as ``edge``."""
    for item in node.body:
        if isinstance(item, ast.Assign | ast.AnnAssign) and isinstance(item.value, ast.Attribute):
            targets = item.targets if isinstance(item, ast.Assign) else [item.target]
            if "relation" in [target.id for target in targets if isinstance(target, ast.Name)]:
                return item.value.attr.lower()
    return None


def _first_line(node: ast.ClassDef | ast.FunctionDef) -> str:
    return re.sub(r"[*`]", "", (ast.get_docstring(node) or "").partition("\n")[0])


def _sentence(comments: list[str]) -> str:
    """The first sentence of a comment of several lines."""
    return re.split(r"(?<=[\w)])\.(?: |$)", " ".join(comments))[0]
