"""Settings of a command line and of its files, read without PyTorch and without a parser."""

import ast
import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Optional, Union

from lightning_dpg.run.configurations import read_yaml
from lightning_dpg.run.messages import GROUPS
from lightning_dpg.run.shipped import (
    classes_of,
    lineage,
    method_files,
    source_folder,
    statements_of,
)

CLASSES = {"model": "PrivateModule", "data": "LightningDataModule"}
"""Sections that name a class, and the base of their classes."""

PLAIN_SECTIONS = ("trainer", "privacy", "card")
"""Sections whose options are those of one class."""

# Help, words behind the end of the options, and a file that is glued to its -c.
_UNCERTAIN = re.compile(r"-h|--help|--\S+\.help(=.*)?|--|-c.+")


class Setting(NamedTuple):
    """The setting ``path`` of the command line or of a file, with its first two parts."""

    path: str
    section: str
    name: str
    value: Any
    is_word: bool


def is_uncertain(args: Sequence[str], settings: Sequence[Setting]) -> bool:
    """Return whether only the parser knows all settings.

    Args:
        args: Command line.
        settings: Its settings, see :func:`named_settings`.
    """
    in_files = any(setting.section == "config" for setting in settings)
    return in_files or any(_UNCERTAIN.fullmatch(word) for word in args)


def named_settings(args: Sequence[str]) -> Iterator[Setting]:
    """Yield the settings in their order, including those of configurations.

    Args:
        args: Command line. Each configuration is the path of a file that holds YAML sections.
    """
    for place, word in enumerate(args):
        flag, equals, value = word.partition("=")
        value = value if equals else "".join(args[place + 1 : place + 2])
        if flag in ("--config", "-c") and Path(value).is_file():
            yield from _settings_of_file(Path(value))
        elif re.fullmatch(r"--\w[\w.-]*\+?", flag):
            path = flag[2:].removesuffix("+")
            section, _, name = path.partition(".")
            if equals and " " in word and section not in (*PLAIN_SECTIONS, *CLASSES):
                continue  # argparse takes an unknown option with a space for a value
            if section in CLASSES:
                name = name.removeprefix("init_args.") or "class_path"
            name, point, inner = name.partition(".")
            if section == "data" and name in GROUPS and point:
                field, point, _ = inner.partition(".")
                name = f"{name}.{field}"
            is_checked = not point and (equals or (value and not value.startswith("--")))
            yield Setting(path, section, name, value if is_checked else None, True)


def _settings_of_file(file: Path) -> Iterator[Setting]:
    """Yield the settings of a configuration; if there may be others, of its section ``config``."""
    for section, content in read_yaml(file).items():
        if "." in f"{section}":
            yield Setting(section, "config", "", None, False)
            continue
        values = content if isinstance(content, dict) else {"": content}
        if section in CLASSES:
            chosen, inner = values.get("class_path", values.get("")), values.get("init_args")
            values = {"class_path": chosen} if chosen is not None else {}
            values |= inner if isinstance(inner, dict) else {}
        if section == "data":
            for group in GROUPS:
                if isinstance(values.get(group), dict):
                    fields = values.pop(group)
                    values |= {f"{group}.{field}": value for field, value in fields.items()}
        for name, value in values.items():
            yield Setting(f"{section}.{name}".strip("."), f"{section}", f"{name}", value, False)


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
    command_line = (source_folder("run") / "lightning_cli.py").read_text(encoding="utf-8")
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
