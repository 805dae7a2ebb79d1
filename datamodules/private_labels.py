"""Private labels of nodes: a column whose classes are given, since its values must not name them."""

from collections.abc import Mapping, Sequence

import torch

from lightning_dpg.graph.attributes import PRIVATE_LABEL, AttributeTable, cells_of
from lightning_dpg.graph.node_names import GraphFormatError, is_missing, natural_key
from lightning_dpg.interfaces import PrivateLabels


def private_labels(
    table: AttributeTable,
    nodes: Sequence[str],
    policies: Mapping[str, str],
    classes: str | Sequence[object] | None,
) -> PrivateLabels | None:
    """Read the column of a table that a policy makes private labels; None without one.

    An empty cell, or a node without a row, has no label, which is public. A value that is none of
    the classes is kept as such, and nothing depends on it before its report is drawn: an error, or a
    node left out, would show that there is one.

    Args:
        table: The table, with rows of other nodes as well.
        nodes: Names of the nodes.
        policies: Policy of each column by its name.
        classes: The classes that a label can have (public), see :func:`domain`.
    """
    column = next((name for name, policy in policies.items() if policy == PRIVATE_LABEL), None)
    if column is None:
        return None
    names = domain(classes)
    place = {name: number for number, name in enumerate(names)}
    cells = cells_of(table, column, nodes, names)
    values = [-1 if cell is None else place.get(cell, len(names)) for cell in cells]
    # Not 7 and 07, which would be one number, as codes of a region are.
    are_numbers = all(name.isdecimal() and name == str(int(name)) for name in names)
    numbers = [int(name) for name in names] if are_numbers else list(range(len(names)))
    return PrivateLabels(column, names, numbers, torch.tensor(values, dtype=torch.long))


def domain(classes: str | Sequence[object] | None) -> list[str]:
    """Return the names of classes in natural order.

    Args:
        classes: The classes, or a text of them with commas.

    Raises:
        GraphFormatError: If there are no two, or one is empty or repeated.
    """
    given = classes.split(",") if isinstance(classes, str) else classes or ()
    names = [str(name).strip() for name in given]
    twice = next((name for name in names if names.count(name) > 1), None)
    missing = next((name for name in names if is_missing(name)), None)
    if twice is not None or missing is not None or len(names) < 2:
        problem = f"{twice!r} twice" if twice is not None else f"{missing!r} means a missing cell"
        problem = problem if len(names) > 1 else f"{len(names)} classes"
        raise GraphFormatError(
            f"nodes.classes: {problem}\nexpected the classes of the private label, each once: "
            "--data.nodes.classes a,b,c\nfrom public knowledge: the private values would be a read "
            "that nobody pays"
        )
    return sorted(names, key=natural_key)
