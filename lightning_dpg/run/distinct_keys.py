"""Refusal of repeated keys in YAML, where the last one would silently win."""

import contextlib
import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from lightning_dpg.errors import CommandError

_NULLS = ("", "null", "~")
_MOST_TEXTS = 100
_PARSED: dict[str, Any] = {}


def read_yaml(path: Path) -> Any:
    """Read a YAML file with distinct keys."""
    return _parsed(path.read_text(encoding="utf-8"), str(path))


def check_section_file(path: Path) -> None:
    """Check the file of an option, such as ``--trainer trainer.yaml``, if it is one."""
    if path.suffix in (".yaml", ".yml") and path.is_file():
        with contextlib.suppress(yaml.YAMLError, UnicodeDecodeError):  # the parser reports these
            read_yaml(path)


def refuse_repeated_keys(text: str, origin: str) -> None:
    """Refuse YAML in which a key stands twice.

    Args:
        text: The YAML.
        origin: Source of the YAML.

    Raises:
        CommandError: If a mapping has a key twice.
        yaml.YAMLError: If the text is not YAML.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    nodes, visited = [root], set()
    while nodes:
        node = nodes.pop()
        if id(node) in visited or not isinstance(node, yaml.CollectionNode):
            continue
        visited.add(id(node))  # an alias is the same node object
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
            continue
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in lines:
                    raise CommandError(
                        f"{origin}, line {line}: the key {key.value!r} stands in line "
                        f"{lines[key.value]} already; remove one of them"
                    )
                lines[key.value] = line
            nodes.append(value)


def load_distinct_keys() -> None:
    """Make the parser refuse repeated keys in all YAML, also within an option."""
    from jsonargparse import get_loader, set_loader

    if getattr(get_loader("yaml"), "__module__", None) == __name__:
        return  # an earlier command of this process has done so
    _plain_loader()

    def load_distinct(text: str) -> Any:
        loaded = _parsed(text, "YAML of an option or of a file that a configuration names")
        # A comment or an anchor alone is no null that a user means.
        return text if loaded is None and text.strip().lower() not in _NULLS else loaded

    # Text that is no YAML, such as a condition on a quoted column, is plain text.
    set_loader("yaml", load_distinct, exceptions=(yaml.YAMLError, RecursionError))


def _parsed(text: str, origin: str) -> Any:
    """Parse YAML as the parser of a command does; each text once in a command."""
    if text not in _PARSED:
        refuse_repeated_keys(text, origin)
        if len(_PARSED) == _MOST_TEXTS:  # many fits in one process
            _PARSED.clear()
        _PARSED[text] = _plain_loader()(text)
    return copy.deepcopy(_PARSED[text])


@functools.cache
def _plain_loader() -> Callable[[str], Any]:
    """Return the loader of the parser's library, which does not look at repeated keys."""
    from jsonargparse import get_loader

    loader: Callable[[str], Any] = get_loader("yaml")
    return loader
