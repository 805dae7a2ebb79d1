"""Private columns and labels of nodes: their public domains, and the place of each cell in its domain."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import torch
import yaml
from numpy.typing import NDArray

from lightning_dpg.graph.attributes import PRIVATE_LABEL, AttributeTable, cells_of, policy_option
from lightning_dpg.graph.node_names import GraphFormatError, is_missing, natural_key, user_path
from lightning_dpg.interfaces import PrivateColumns, PrivateLabels

MOST_VALUES = 64
"""Largest number of values of a private column."""
OTHER = "other"
"""Value of all cells that are none of the domain; a part of each domain."""
MISSING = "missing"
"""Value of empty cells and of nodes without a row, where a domain names it; else they are other."""


class Domain(NamedTuple):
    """All values that a private column can have (public).

    Attributes:
        values: Names of the values, :data:`OTHER` among them.
        borders: Ascending borders of bins, whose names are the first values; None for categories.
    """

    values: list[str]
    borders: list[float] | None = None

    def places(self, cells: Sequence[str | None]) -> NDArray[np.int64]:
        """Return the place of each cell among the values; each cell has one (private).

        A number below or above all bins is in the outer bin. An error would show that there is such a
        cell, and a count of them as well.
        """
        other, place = self.values.index(OTHER), {name: k for k, name in enumerate(self.values)}
        missing = place.get(MISSING, other)
        if self.borders is None:
            found = [missing if cell is None else place.get(cell, other) for cell in cells]
            return np.array(found, dtype=np.int64)
        numbers = np.array([math.nan if cell is None else _number(cell) for cell in cells])
        bins = np.searchsorted(self.borders[1:-1], numbers, side="right")
        is_absent = np.array([cell is None for cell in cells], dtype=bool)
        places = np.where(np.isnan(numbers), other, bins)
        return np.where(is_absent, missing, places).astype(np.int64)


def read_domains(
    domains: str | Path | Mapping[str, Sequence[object]] | None, columns: Sequence[str]
) -> dict[str, Domain]:
    """Read the domains of private columns, from a mapping or a YAML file of it.

    Args:
        domains: Values of each column by its name: texts for categories, or ascending numbers for
            borders of bins.
        columns: Names of the private columns.

    Returns:
        The domain of each private column, in the order of ``columns``.

    Raises:
        GraphFormatError: If a domain is missing, of no private column, or of another form.
    """
    given = _read_file(domains) if isinstance(domains, str | Path) else domains or {}
    if not isinstance(given, Mapping):
        raise GraphFormatError(
            "nodes.domains: expected the values of each private column by its name, such as "
            "{age: [18, 30, 45, 100], region: [north, south]}, or a YAML file of it"
        )
    for column in columns:
        if column not in given:
            raise GraphFormatError(
                f"nodes.domains: no values of the private column {column!r}\n"
                "list them, or borders of bins of numbers, from public knowledge: the values in the "
                "data would be a read that nobody pays\nor leave the column out: "
                f"{policy_option(column, 'drop')}"
            )
    for column in given:
        if column not in columns:
            raise GraphFormatError(
                f"nodes.domains: {str(column)[:60]!r} is no private column\n"
                f"the private columns are {', '.join(columns)[:100] or 'none'}: name them all, "
                "--data.nodes.private_columns NAME,NAME"
            )
    return {column: _domain(column, given[column]) for column in columns}


def private_columns_of(
    table: AttributeTable, nodes: Sequence[str], domains: Mapping[str, Domain]
) -> PrivateColumns | None:
    """Place the cells of private columns in their domains; None without such columns.

    Args:
        table: The table, with rows of other nodes as well.
        nodes: Names of the nodes; one without a row has empty cells.
        domains: Domain of each private column.
    """
    if not domains:
        return None
    places = [
        domain.places(cells_of(table, name, nodes, domain.values))
        for name, domain in domains.items()
    ]
    values = {name: list(domain.values) for name, domain in domains.items()}
    return PrivateColumns(values, torch.from_numpy(np.stack(places, axis=1)))


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
        classes: The classes that a label can have (public), see :func:`class_names`.
    """
    column = next((name for name, policy in policies.items() if policy == PRIVATE_LABEL), None)
    if column is None:
        return None
    names = class_names(classes)
    place = {name: number for number, name in enumerate(names)}
    cells = cells_of(table, column, nodes, names)
    values = [-1 if cell is None else place.get(cell, len(names)) for cell in cells]
    # Not 7 and 07, which would be one number, as codes of a region are.
    are_numbers = all(name.isdecimal() and name == str(int(name)) for name in names)
    numbers = [int(name) for name in names] if are_numbers else list(range(len(names)))
    return PrivateLabels(column, names, numbers, torch.tensor(values, dtype=torch.long))


def class_names(classes: str | Sequence[object] | None) -> list[str]:
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


def _read_file(name: str | Path) -> object:
    path = user_path(name)
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0][:80]
        raise GraphFormatError(
            f"nodes.domains {path}: {reason}\nexpected a YAML file with the values of each private "
            "column, such as\nage: [18, 30, 45, 100]\nregion: [north, south]"
        ) from None  # of a file that is missing the command line would say where to write


def _domain(column: str, given: object) -> Domain:
    """Check the form of a domain; see :func:`read_domains`."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        _refuse(column, f"{str(given)[:60]!r} is no list of values")
    if all(isinstance(value, Real) and not isinstance(value, bool) for value in given):
        return _bins(column, [float(value) for value in given])
    for value in given:
        if not isinstance(value, str):
            _refuse(column, f"{value!r} is neither a number among numbers nor a text among texts")
    names = [str(value).strip() for value in given]
    if any(is_missing(name) for name in names):
        _refuse(column, f"a value means an empty cell: call it {MISSING}")
    return _named(column, names, None)


def _bins(column: str, borders: list[float]) -> Domain:
    """Name the bins between borders."""
    steps = np.diff(borders)
    if len(borders) < 2 or not np.isfinite(borders).all() or not (steps > 0).all():
        _refuse(column, "borders of bins are two or more ascending numbers")
    if len(borders) > 2 and (steps == 1).all() and all(border.is_integer() for border in borders):
        _refuse(
            column,
            "numbers that count up by 1 can be categories or borders: write categories as texts "
            '("0", "1"), and borders between them (0.5)',
        )
    texts = [f"{border:.12g}" for border in borders]
    names = [f"{low} to {high}" for low, high in pairwise(texts)]
    return _named(column, names, borders)


def _named(column: str, names: list[str], borders: list[float] | None) -> Domain:
    """Add the value of all other cells, and check the number of values."""
    names = names if OTHER in names else [*names, OTHER]
    if twice := next((name for name in names if names.count(name) > 1), None):
        _refuse(column, f"{twice!r} is there twice")
    if len(names) > MOST_VALUES:
        _refuse(column, f"{len(names)} values with {OTHER!r}, and {MOST_VALUES} at most")
    return Domain(names, borders)


def _refuse(column: str, problem: str) -> NoReturn:
    raise GraphFormatError(
        f"nodes.domains, {column}: {problem}\nexpected categories, such as [north, south], or borders "
        "of bins, such as [18, 30, 45, 100]"
    )


def _number(cell: str) -> float:
    """Return the number in a cell, not a number for any other text."""
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan
