"""Command lines with the names of an earlier version."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from lightning_dpg.methods.earlier import translate

_CONFIG = ("--config", "-c")
_PACKAGE = "lightning_dpg.methods"


def with_names_of_today(args: list[str]) -> tuple[list[str], list[str]]:
    """Translate the section ``model`` of a command line to current names.

    All configurations and options together determine a class. So a section with renamed parts is
    removed from all of them and appended as one configuration.

    Args:
        args: Subcommand and options; configurations are paths of files, or YAML.

    Returns:
        The command line, unchanged if nothing was renamed, and a line for each renamed part.
    """
    class_path, rest = "", list[str]()
    settings: dict[str, Any] = {}
    for name, value, words in _options(args):
        if name in _CONFIG:
            content = _content(value)
            section = _section(content.pop("model", None))
            words = ["--config", yaml.safe_dump(content)] if section else words
        elif name.startswith("--model"):
            section, words = _section_of_option(name, value), []
        else:
            section = {}
        class_path = section.get("class_path", class_path)
        settings |= section.get("init_args") or {}
        rest += words
    package, _, class_name = class_path.rpartition(".")
    if package and not f"{package}.".startswith(f"{_PACKAGE}."):
        return args, []  # a user's own method may use the same words
    today, kept, lines = translate(class_name, settings)
    if not lines:
        return args, []
    model = {"class_path": f"{_PACKAGE}.{today}", "init_args": kept}
    return [*rest, "--config", json.dumps({"model": model})], lines


def _options(args: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Name, value and words of each option that may hold method settings; other words alone."""
    place = 0
    while place < len(args):
        name, equals, value = args[place].partition("=")
        is_ours = name in _CONFIG or name == "--model" or name.startswith("--model.")
        width = 2 if is_ours and not equals and place + 1 < len(args) else 1
        words = args[place : place + width]
        yield (name, value if equals else words[-1], words) if is_ours else ("", "", words)
        place += width


def _content(value: str) -> dict[str, Any]:
    """Parse a configuration; return an empty one if the parser will refuse it."""
    try:
        text = Path(value).read_text(encoding="utf-8")
    except OSError:
        text = value  # YAML instead of a path
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return content if isinstance(content, dict) else {}


def _section(model: Any) -> dict[str, Any]:
    """Return a section ``model``, or an empty one if the parser will refuse it."""
    if isinstance(model, str):
        return {"class_path": model}
    if not isinstance(model, dict) or not isinstance(model.get("init_args") or {}, dict):
        return {}
    return model if isinstance(model.get("class_path", ""), str) else {}


def _section_of_option(name: str, value: str) -> dict[str, Any]:
    """Section from ``--model``, ``--model.class_path`` or the option of a setting."""
    key = name.removeprefix("--model").removeprefix(".").removeprefix("init_args.")
    if key in ("", "class_path"):
        return _section(_content(value) or value)
    try:
        return {"init_args": {key: yaml.safe_load(value)}}
    except yaml.YAMLError:
        return {"init_args": {key: value}}
