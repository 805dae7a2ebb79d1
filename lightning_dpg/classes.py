"""Classes by their dotted names."""

import importlib
from typing import Any


def find_class(path: str) -> type:
    """Import the class ``MODULE.NAME``.

    Raises:
        ImportError: If the module cannot be imported.
        AttributeError: If the module has no such name.
        Refusal: If the path names no module.
    """
    module, _, name = path.rpartition(".")
    cls: type = getattr(importlib.import_module(module), name)
    return cls


def is_abstract(cls: type) -> bool:
    """Return whether a class has abstract methods left; Lightning's classes lack the metaclass."""
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        members |= vars(base)
    return any(getattr(member, "__isabstractmethod__", False) for member in members.values())
