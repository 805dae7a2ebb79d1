"""Settings of a command line and of its files, read without PyTorch and without a parser."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lightning_dpg.run.distinct_keys import read_yaml
from lightning_dpg.run.parser_messages import GROUPS

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
