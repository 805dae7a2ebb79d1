"""Refusal of mistaken options before PyTorch is imported, which takes seconds.

Options and their types are read from source files, and jsonargparse checks the values. Doubtful
options pass, such as those of a user's own class: Lightning's parser decides.
"""

import ast
import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from jsonargparse import ArgumentError, ArgumentParser

from lightning_dpg.errors import CommandError, nearest
from lightning_dpg.run.configurations import load_distinct_keys
from lightning_dpg.run.messages import (
    GROUPS,
    MISSING,
    explain_parsing,
    no_group,
    no_such_option,
    unknown_class,
)
from lightning_dpg.run.shipped import is_abstract
from lightning_dpg.run.source import refuse_missing_files
from lightning_dpg.run.words import (
    CLASSES,
    PLAIN_SECTIONS,
    Setting,
    class_options,
    exported_classes,
    group_options,
    is_uncertain,
    shipped_classes,
)

_FOREIGN_CLASS = re.compile(r"'(?!lightning_dpg\.|pytorch_lightning\.)[a-zA-Z_]\w*\.[\w.]+'")


def refuse_mistakes(command: str, args: Sequence[str], settings: Sequence[Setting]) -> None:
    """Refuse unknown options and classes, values of wrong types, missing sections and missing files.

    Args:
        command: ``fit``, ``validate``, ``test`` or ``predict``.
        args: Its options. Each configuration is the path of a file that holds YAML sections.
        settings: Settings of these, see :func:`lightning_dpg.run.words.named_settings`.

    Raises:
        Refusal: If the command would refuse them too; the message is the same.
    """
    load_distinct_keys()  # values are read as the parser of the command reads them
    if is_uncertain(args, settings):
        return
    sections = {setting.section for setting in settings}
    of_groups = [each for each in settings if each.section not in CLASSES]
    _check_groups(of_groups, group_options(command))
    for section in CLASSES:
        _check_class(section, settings)
    if any(each.section == "privacy" and each.name in ("epsilon", "") for each in settings):
        sections.add("privacy.epsilon")
    for name in ("privacy.epsilon", "data", "model"):
        if name not in sections:
            raise CommandError(f"{name} is missing\n{MISSING[name]}")
    refuse_missing_files(command, settings)


def _check_groups(settings: Sequence[Setting], options: Mapping[str, Any]) -> None:
    """Check all settings except those of the method and of the data module."""
    for path, section, name, value, is_word in settings:
        key = f"{section}.{name}" if section in PLAIN_SECTIONS and name else section
        if key not in options:
            while isinstance(value, dict) and value:  # the parser names the first value inside
                inner, value = next(iter(value.items()))
                path = f"{path}.{inner}"
            shown = f"--{path}" if is_word else repr(path)
            raise CommandError(f"unknown option {shown}{nearest(path, options)}")
        _check_value(key, options[key], value, is_word=is_word)


def _check_class(section: str, settings: Sequence[Setting]) -> None:
    """Check the class of a section and its options."""
    named = {_shipped_name(each) for each in settings if _names_class(each, section)}
    shipped = exported_classes(section, named)
    if named - shipped.keys():
        shipped = shipped_classes(section)
    foreign = [
        each
        for each in settings
        if (each.section == "trainer" or each.name == "class_path")
        and _FOREIGN_CLASS.search(repr(each.value))
    ]
    taker, class_settings = "", list[tuple[str, Setting]]()
    for setting in settings:
        if _names_class(setting, section):
            taker = _shipped_name(setting)
            if taker.isidentifier() and taker not in shipped and taker != "null" and not foreign:
                concrete = _concrete(shipped)
                raise CommandError(unknown_class(section, taker, concrete, concrete))
        elif setting.section == section and setting.name not in ("init_args", "dict_kwargs"):
            class_settings.append((taker, setting))
    class_settings = [(cls, each) for cls, each in class_settings if cls in shipped]
    options = {name: class_options(family) for name, family in shipped.items()}
    unknown = [(cls, each.name) for cls, each in class_settings if each.name not in options[cls]]
    if unknown:
        mistaken, name = unknown[0]
        families = shipped_classes(section)
        others = [cls for cls in _concrete(families) if name in class_options(families[cls])]
        raise CommandError(no_such_option(section, mistaken, name, options[mistaken], others))
    for cls, each in class_settings:
        key = f"{section}.{each.name}"
        if each.name in GROUPS and not each.is_word:
            raise CommandError(no_group(key, each.value))
        _check_value(key, options[cls][each.name], each.value, is_word=each.is_word)


def _names_class(setting: Setting, section: str) -> bool:
    return setting.section == section and setting.name == "class_path"


def _shipped_name(setting: Setting) -> str:
    """Name of a class, which has no module if it is shipped."""
    path = f"{setting.value}"
    return path.rpartition(".")[2] if path.startswith("lightning_dpg.") else path


def _concrete(families: Mapping[str, Sequence[ast.ClassDef]]) -> list[str]:
    return [name for name, family in families.items() if not is_abstract([*family])]


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
