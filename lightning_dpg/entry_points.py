"""What installed packages add to this one: entry points of their metadata.

The applications in ``apps/`` are found in this way, and so are commands and methods of other packages.
"""

from importlib.metadata import entry_points
from typing import Any

COMMANDS = "lightning_dpg.commands"
"""Group of commands: each is a function, or a group of functions."""
METHODS = "lightning_dpg.methods"
"""Group of methods: each is a class, its name is a short one, such as ``noisy_degrees``."""
BOOK = "lightning_dpg.book"
"""Group of the functions by which a run and a measurement reach the budget book."""


def entry_names(group: str) -> list[str]:
    """Return the names that installed packages declare in a group, in alphabetical order.

    Args:
        group: Group of entry points.
    """
    return sorted({each.name for each in entry_points(group=group)})


def class_path(method: str) -> str:
    """Return the dotted name of a method that an installed package declares; other names as they are.

    Nothing is imported.

    Args:
        method: Its short name.
    """
    return next(
        (each.value.replace(":", ".") for each in entry_points(group=METHODS, name=method)), method
    )


def find_entry(group: str, name: str) -> Any:
    """Import what an installed package declares by a name; None if it is not there.

    A package cannot replace what this one declares.

    Args:
        group: Group of entry points.
        name: Name in the group.
    """
    declared = sorted(
        entry_points(group=group, name=name),
        key=lambda each: each.dist is None or each.dist.name != "lightning_dpg",
    )
    for entry in declared[:1]:
        try:
            return entry.load()
        except ModuleNotFoundError as error:
            # The metadata may name an application whose folder was taken away.
            if error.name is None or not f"{entry.module}.".startswith(f"{error.name}."):
                raise
    return None
