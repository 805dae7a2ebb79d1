"""Options of the commands that take a configuration, read from source files without PyTorch."""

import ast
import importlib.util
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Optional, Union

from lightning_dpg.run.method_list import (
    classes_of,
    lineage,
    method_files,
    source_folder,
    statements_of,
)
from lightning_dpg.run.parser_messages import GROUPS
from lightning_dpg.run.written_settings import CLASSES, PLAIN_SECTIONS

_FLAGS = ("config", "help", "no-book", "print_config")
_NO_OPTIONS = ("model", "datamodule", "dataloaders", "train_dataloaders", "val_dataloaders")
_PLAIN: dict[str, Any] = {"int": int, "float": float, "bool": bool}
_PLAIN |= {"Optional": Optional, "Union": Union, "Literal": Literal}


def group_options(command: str) -> dict[str, Any]:
    """Return the types of the options of a command except those of classes; ``Any`` if not plain.

    Args:
        command: ``fit``, ``validate``, ``test`` or ``predict``.
    """
    lightning = importlib.util.find_spec("pytorch_lightning")
    assert lightning is not None and lightning.origin is not None  # a dependency of the package
    trainer = classes_of(Path(lightning.origin).parent / "trainer" / "trainer.py")["Trainer"]
    accountant = classes_of(source_folder("callbacks") / "privacy_accountant.py")
    card = classes_of(source_folder("release") / "card" / "texts.py")
    command_line = (source_folder("run") / "private_cli.py").read_text(encoding="utf-8")
    ours = re.findall(r'parser\.add_argument\(\s*"--([\w.-]+)"', command_line)
    options: dict[str, Any] = dict.fromkeys((*_FLAGS, *PLAIN_SECTIONS, *CLASSES, *ours), Any)
    options["seed_everything"] = bool | int
    classes = (trainer, accountant["PrivacyAccountant"], card["Card"])
    for group, cls in zip(PLAIN_SECTIONS, classes, strict=True):
        options |= {f"{group}.{name}": kind for name, kind in _parameters([cls]).items()}
    own = _parameters([trainer], command).items()
    return options | {name: kind for name, kind in own if name not in _NO_OPTIONS}


def exported_classes(section: str, names: Iterable[str]) -> dict[str, list[ast.ClassDef]]:
    """Return classes that the package exports by name, each with its bases.

    It reads the files of these classes and of their bases, and no others.

    Args:
        section: ``model`` or ``data``.
        names: Names of classes; names that are not exported are left out.
    """
    exporting = source_folder({"model": "methods", "data": "datamodules"}[section]) / "__init__.py"
    places, classes = _imported_names(exporting), dict[str, ast.ClassDef]()
    exported = [name for name in names if name in places]
    waiting = [*exported]
    while waiting:
        name = waiting.pop()
        if name in places and name not in classes:
            file = places[name]
            classes |= classes_of(file)
            places |= _imported_names(file)
            waiting += [base.id for base in classes[name].bases if isinstance(base, ast.Name)]
    return {name: lineage(classes[name], classes) for name in exported}


def _imported_names(file: Path) -> dict[str, Path]:
    """Return the files of the package from which a file imports, by the imported names."""
    nodes = [*statements_of(file)]
    nodes += [inner for node in nodes if isinstance(node, ast.If) for inner in node.body]
    imported = [
        (alias.name, f"{node.module}")
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    return {
        name: source_folder(".").parent / f"{module.replace('.', '/')}.py"
        for name, module in imported
        if module.startswith("lightning_dpg.")
    }


def shipped_classes(section: str) -> dict[str, list[ast.ClassDef]]:
    """Return the shipped classes of a section by name, each with its bases.

    Args:
        section: ``model`` or ``data``.
    """
    base = CLASSES[section]
    files = method_files() if section == "model" else source_folder("datamodules").rglob("*.py")
    classes: dict[str, ast.ClassDef] = {}
    for path in files:
        classes |= classes_of(path)
    families = {name: lineage(node, classes) for name, node in classes.items()}
    return {
        name: family
        for name, family in families.items()
        if base in {ast.unparse(each).rpartition(".")[2] for node in family for each in node.bases}
    }


def class_options(family: Sequence[ast.ClassDef]) -> dict[str, Any]:
    """Return the types of the options of a class, including those of groups.

    Args:
        family: The class and its bases.
    """
    options = _parameters(family)
    if GROUPS.keys() <= options.keys():
        files = source_folder("datamodules") / "nodes.py", source_folder("formats") / "columns.py"
        for name, node in (item for file in files for item in classes_of(file).items()):
            fields = _parameters([node]).items()
            options |= {f"{name.lower()}.{field}": kind for field, kind in fields}
    return options


def _parameters(family: Sequence[ast.ClassDef], function: str = "__init__") -> dict[str, Any]:
    """Return the types of the parameters of a function, or fields of a data class, by name."""
    for node in family:
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name == function:
                arguments = [*item.args.args[1:], *item.args.kwonlyargs]
                return {each.arg: _type(each.annotation) for each in arguments}
    fields = [item for item in family[0].body if isinstance(item, ast.AnnAssign)]
    return {ast.unparse(field.target): _type(field.annotation) for field in fields}


def _type(annotation: ast.expr | None) -> Any:
    """Return the type of an annotation if all its parts are plain, ``Any`` otherwise."""
    nodes = list(ast.walk(annotation)) if annotation is not None else []
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    if annotation is None or not names or not names <= _PLAIN.keys():
        return Any
    return eval(ast.unparse(annotation), dict(_PLAIN))  # source text of a package, not of a user
