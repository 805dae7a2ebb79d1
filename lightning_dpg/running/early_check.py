"""Refusal of mistaken options before PyTorch is imported, which takes seconds.

Options and their types are read from source files, and jsonargparse checks the values. Doubtful
options pass, such as those of a user's own class: Lightning's parser decides.
"""

import ast
import contextlib
import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Optional, Union

import yaml
from jsonargparse import ArgumentError, ArgumentParser

from lightning_dpg.cli.distinct_keys import load_distinct_keys, read_yaml
from lightning_dpg.cli.parser_messages import (
    GROUPS,
    MISSING,
    explain_parsing,
    no_group,
    no_such_option,
    unknown_class,
)
from lightning_dpg.errors import CommandError, nearest
from lightning_dpg.running.method_list import (
    classes_of,
    is_abstract,
    lineage,
    method_files,
    source_folder,
)

_GROUPS = ("trainer", "privacy", "card")
_CLASSES = {"model": "PrivateModule", "data": "LightningDataModule"}
_FLAGS = ("config", "help", "no-book", "print_config")
_NO_OPTIONS = ("model", "datamodule", "dataloaders", "train_dataloaders", "val_dataloaders")
# Help, words behind the end of the options, and a file that is glued to its -c.
_UNCERTAIN = re.compile(r"-h|--help|--\S+\.help(=.*)?|--|-c.+")
_FOREIGN_CLASS = re.compile(r"'(?!lightning_dpg\.|pytorch_lightning\.)[a-zA-Z_]\w*\.[\w.]+'")
_PLAIN: dict[str, Any] = {"int": int, "float": float, "bool": bool}
_PLAIN |= {"Optional": Optional, "Union": Union, "Literal": Literal}


class Setting(NamedTuple):
    """The setting ``path`` of the command line or of a file, with its first two parts."""

    path: str
    section: str
    name: str
    value: Any
    is_word: bool


def refuse_mistakes(command: str, args: Sequence[str]) -> None:
    """Refuse unknown options and classes, values of wrong types, and missing sections and data.

    Args:
        command: ``fit``, ``validate``, ``test`` or ``predict``.
        args: Its options. Each configuration is the path of a file that holds YAML sections.

    Raises:
        CommandError: If the command would refuse them too; the message is the same.
    """
    load_distinct_keys()  # values are read as the parser of the command reads them
    settings = list(named_settings(args))
    sections = {setting.section for setting in settings}
    if "config" in sections or any(_UNCERTAIN.fullmatch(word) for word in args):
        return
    _check_groups(command, [each for each in settings if each.section not in _CLASSES])
    for section in _CLASSES:
        _check_class(command, section, settings)
    if any(each.section == "privacy" and each.name in ("epsilon", "") for each in settings):
        sections.add("privacy.epsilon")
    for name in ("privacy.epsilon", "data", "model"):
        if name not in sections:
            raise CommandError(f"{name} is missing\n{MISSING[name]}")


def named_settings(args: Sequence[str]) -> Iterator[Setting]:
    """Yield the settings in their order, including those of configurations."""
    for place, word in enumerate(args):
        flag, equals, value = word.partition("=")
        value = value if equals else "".join(args[place + 1 : place + 2])
        if flag in ("--config", "-c") and Path(value).is_file():
            yield from _settings_of_file(Path(value))
        elif re.fullmatch(r"--\w[\w.-]*\+?", flag):
            path = flag[2:].removesuffix("+")
            section, _, name = path.partition(".")
            if equals and " " in word and section not in (*_GROUPS, *_CLASSES):
                continue  # argparse takes an unknown option with a space for a value
            if section in _CLASSES:
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
        if section in _CLASSES:
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


def _check_groups(command: str, settings: Sequence[Setting]) -> None:
    """Check all settings except those of the method and of the data module."""
    options = group_options(command)
    for path, section, name, value, is_word in settings:
        key = f"{section}.{name}" if section in _GROUPS and name else section
        if key not in options:
            while isinstance(value, dict) and value:  # the parser names the first value inside
                inner, value = next(iter(value.items()))
                path = f"{path}.{inner}"
            shown = f"--{path}" if is_word else repr(path)
            raise CommandError(f"unknown option {shown}{nearest(path, options)}")
        _check_value(key, options[key], value, is_word=is_word)


def _check_class(command: str, section: str, settings: Sequence[Setting]) -> None:
    """Check the class of a section, its options, and the file of a graph."""
    shipped = shipped_classes(section)
    options = {name: _options(family) for name, family in shipped.items()}
    concrete = [name for name, family in shipped.items() if not is_abstract(family)]
    foreign = [
        each
        for each in settings
        if (each.section == "trainer" or each.name == "class_path")
        and _FOREIGN_CLASS.search(repr(each.value))
    ]
    taker, class_settings = "", list[tuple[str, Setting]]()
    for setting in settings:
        if setting.section == section and setting.name == "class_path":
            taker = f"{setting.value}"
            if taker.isidentifier() and taker not in shipped and taker != "null" and not foreign:
                raise CommandError(unknown_class(section, taker, concrete, concrete))
            if taker.startswith("lightning_dpg."):
                taker = taker.rpartition(".")[2]
        elif setting.section == section and setting.name not in ("init_args", "dict_kwargs"):
            class_settings.append((taker, setting))
    class_settings = [(cls, each) for cls, each in class_settings if cls in shipped]
    unknown = [(cls, each.name) for cls, each in class_settings if each.name not in options[cls]]
    if unknown:
        mistaken, name = unknown[0]
        others = [cls for cls in concrete if name in options[cls]]
        raise CommandError(no_such_option(section, mistaken, name, options[mistaken], others))
    for cls, each in class_settings:
        key = f"{section}.{each.name}"
        if each.name in GROUPS and not each.is_word:
            raise CommandError(no_group(key, each.value))
        _check_value(key, options[cls][each.name], each.value, is_word=each.is_word)
    reads_graph = "GraphDataModule" in {node.name for node in shipped.get(taker, [])}
    graphs = [each.value for _, each in class_settings if each.name == "name"]
    if reads_graph and command != "predict" and graphs and isinstance(graphs[-1], str):
        _check_file(graphs[-1])


def _check_value(key: str, kind: Any, value: Any, *, is_word: bool) -> None:
    if kind is Any or value in (None, "null"):  # the parser takes null in some places
        return
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument(f"--{key}", type=kind)
    with contextlib.suppress(yaml.YAMLError):  # left to the parser of the command
        try:
            if is_word:
                parser.parse_args([f"--{key}={value}"])
            else:
                for part in reversed(key.split(".")):
                    value = {part: value}
                parser.parse_object(value)
        except ArgumentError as error:
            raise CommandError(explain_parsing(str(error), ())) from error


def _check_file(name: str) -> None:
    """Refuse the path of a graph that does not exist."""
    path, root = Path(os.path.expanduser(name)), Path(os.environ.get("LIGHTNING_DPG_DATA") or ".")
    data_sets = root / "graphs" / f"{name}.edges.gz", root / "npz" / f"{name}.npz"
    is_url_or_odd = ":/" in name or str(path).startswith("~") or len(path.name) > 255
    if path.suffix and not is_url_or_odd and not any(map(os.path.exists, (path, *data_sets))):
        form = "an edge list, .npz, .graphml, .gexf or .gml file"
        raise CommandError(f"{path}: no such file\nexpected {form}")


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
    command_line = (source_folder("cli") / "private_cli.py").read_text(encoding="utf-8")
    ours = re.findall(r'parser\.add_argument\(\s*"--([\w.-]+)"', command_line)
    options: dict[str, Any] = dict.fromkeys((*_FLAGS, *_GROUPS, *_CLASSES, *ours), Any)
    options["seed_everything"] = bool | int
    classes = (trainer, accountant["PrivacyAccountant"], card["Card"])
    for group, cls in zip(_GROUPS, classes, strict=True):
        options |= {f"{group}.{name}": kind for name, kind in _parameters([cls]).items()}
    own = _parameters([trainer], command).items()
    return options | {name: kind for name, kind in own if name not in _NO_OPTIONS}


def shipped_classes(section: str) -> dict[str, list[ast.ClassDef]]:
    """Return the shipped classes of a section by name, each with its bases.

    Args:
        section: ``model`` or ``data``.
    """
    base = _CLASSES[section]
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


def _options(family: Sequence[ast.ClassDef]) -> dict[str, Any]:
    """Return the types of the options of a class, including those of groups."""
    options = _parameters(family)
    if GROUPS.keys() <= options.keys():
        for name, node in classes_of(source_folder("datamodules") / "nodes.py").items():
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
