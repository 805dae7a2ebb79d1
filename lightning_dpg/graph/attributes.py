"""Public attributes of nodes: columns of a table become columns of a matrix, and arrays of an archive.

Vocabularies, categories and missing values are found in the table of attributes alone, which is
public as a whole: nothing here reads an edge. An archive has the keys of NetGAN's, and holds a sparse
matrix, because a bag of words is mostly zeros: Cora-ML's 2,879 words of 2,995 nodes are 151,171
numbers, and 8.6 million with the zeros.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.node_names import GraphFormatError, is_missing, natural_key

Policy = Literal[
    "public", "number", "category", "text", "label", "drop", "private", "private_label"
]
"""What may happen to a column: ``public`` finds its kind, the next four set it."""
POLICIES: tuple[Policy, ...] = get_args(Policy)
PRIVATE = "private"
PRIVATE_LABEL = "private_label"
NOT_PUBLIC = frozenset({"drop", PRIVATE, PRIVATE_LABEL})
"""Policies of columns whose values are no attributes of the nodes."""
LABELS = "y"
"""Column of whole numbers that holds classes unless a policy says otherwise, as in PyG."""
_MOST_VALUES = 256
"""Largest number of values of a column that is taken for categories without being asked."""
_MOST_WORDS = 1000
"""Largest vocabulary of a column of text: its most frequent words."""
_WORDS_OF_TEXT = 3
"""A column whose cells have more words than this on average is text."""
_MOST_CLASSES = 2**53
"""Largest number of a class: beyond it a cell of a table does not determine a whole number."""
_LARGEST = float(np.finfo(np.float32).max)
Matrix: TypeAlias = csr_array | NDArray[Any]
PUBLIC_ATTRIBUTES = "the node attributes, which were not computed from the edges"
"""Assumption of each guarantee where attributes are used."""
ATTRIBUTE_KEYS = {"attr_data", "attr_matrix", "labels"}
"""An archive with attributes of nodes has at least one of these keys."""
_PARTS = ("data", "indices", "indptr", "shape")


class AttributeTable(NamedTuple):
    """Attributes of nodes as their source holds them, one row per id.

    Attributes:
        origin: Source, which errors name.
        ids: Names of the nodes of the rows, each once.
        columns: Cells of each column of a table; an array where all of them are numbers.
        matrix: Numbers that come without a table, shape ``(len(ids), F)``.
        names: Names of the F columns of the matrix.
        labels: Class of each row; None if the source has none apart from its columns.
        is_exact: Whether no cell loses digits because of another one.
    """

    origin: str
    ids: Sequence[str]
    columns: Mapping[str, Sequence[object]]
    matrix: Matrix | None = None
    names: Sequence[str] = ()
    labels: NDArray[np.int64] | None = None
    is_exact: bool = True

    @property
    def all_names(self) -> list[str]:
        """Names of all columns."""
        return [*self.columns, *self.names, *([] if self.labels is None else [LABELS])]

    def cells(self, name: str) -> Sequence[object]:
        """Return the cell of each row in one of :attr:`all_names`."""
        if name in self.columns:
            return self.columns[name]
        if self.matrix is not None and name in self.names:
            column = self.matrix[:, [self.names.index(name)]]
            dense = column.toarray() if isinstance(column, csr_array) else column
            return list(dense[:, 0])
        return [] if self.labels is None else list(self.labels)


class NodeAttributes(NamedTuple):
    """Public attributes of N nodes.

    Attributes:
        x: Numbers of shape ``(N, F)``.
        names: Names of the F columns.
        y: Class of each node, shape ``(N,)``, -1 where it is missing; None without classes.
    """

    x: Tensor
    names: list[str]
    y: Tensor | None

    @property
    def is_empty(self) -> bool:
        """Whether there is no column and no class."""
        return not self.names and self.y is None

    def of_nodes(self, nodes: Tensor) -> "NodeAttributes":
        """Return the rows of some nodes, in their order."""
        return NodeAttributes(self.x[nodes], self.names, None if self.y is None else self.y[nodes])


class _Part(NamedTuple):
    """Numbers made of one column, one row per row of the table."""

    matrix: Matrix
    names: list[str]


class _Numbers(NamedTuple):
    """The cells of a column as numbers: NaN for a missing one, infinity for text."""

    values: NDArray[np.float64]
    are_numbers: bool


def policy_option(column: str, policy: str) -> str:
    """Return the option of the command line that sets the policy of a column."""
    if column.isidentifier():
        return f"--data.nodes.policy.{column} {policy}"
    return f"--data.nodes.policy '{json.dumps({column: policy})}'"


def attributes_of(graph: Data) -> NodeAttributes | None:
    """Return the attributes that a graph carries; None if it carries none."""
    names = getattr(graph, "attribute_names", None)
    if names is None:
        return None
    return NodeAttributes(graph.x, list(names), graph.y)


def attach(graph: Data, attributes: NodeAttributes) -> None:
    """Set ``x``, ``y`` and ``attribute_names`` of a graph, by reference."""
    graph.x, graph.attribute_names = attributes.x, attributes.names
    graph.y = attributes.y


def share_attributes(graph: Data, source: Data) -> Data:
    """Give a graph the attributes of another one on the same nodes; return it."""
    attributes = attributes_of(source)
    if attributes is not None:
        attach(graph, attributes)
    return graph


def encode(
    table: AttributeTable, nodes: Sequence[str], policies: Mapping[str, str]
) -> NodeAttributes:
    """Make numbers of the public columns of a table, in the order of the nodes.

    A column of numbers stays as it is, with a column ``NAME is missing`` if a cell is missing.
    Categories become a column each, and words of a text their tf-idf weights. A missing cell is 0
    everywhere else, and so are all cells of a node without a row.

    Args:
        table: The table, with rows of other nodes as well.
        nodes: Names of the nodes.
        policies: Policy of each column by its name; ``public`` by default.

    Raises:
        GraphFormatError: If a policy is unknown, or does not fit its column.
    """
    _check_policies(table, policies)
    parts, labels = [], table.labels
    if policies.get(LABELS) in NOT_PUBLIC:
        labels = None
    for name, cells in table.columns.items():
        policy = policies.get(name, "public")
        if policy in NOT_PUBLIC:
            continue
        numbers = _numbers_in(cells)
        kind = _kind(table.origin, name, cells, numbers) if policy == "public" else policy
        if kind == "label":
            labels = _classes(table.origin, name, cells, numbers)
        elif kind == "number":
            parts.append(_numbers(table.origin, name, cells, numbers))
        elif kind == "text":
            parts.append(_words(table.origin, name, cells))
        else:
            parts.append(_one_hot(name, cells))
    if table.matrix is not None:
        parts.append(_public_part(table.matrix, table.names, policies))
    names = [name for part in parts for name in part.names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GraphFormatError(f"{table.origin}: two attributes would be named {twice!r}")
    has_private_label = PRIVATE_LABEL in policies.values()
    if has_private_label and labels is not None:
        raise GraphFormatError(
            f"{table.origin}: classes of a public column and a private label\nleave one of them out, "
            f"such as {policy_option(LABELS, 'drop')}"
        )
    is_private = has_private_label or PRIVATE in policies.values()
    if not (names or labels is not None or is_private):
        raise GraphFormatError(
            f"{table.origin}: no public attribute is left\n"
            f"its columns are {_shown(table.all_names)}"
        )
    return _in_order(table, nodes, parts, names, labels)


def _in_order(
    table: AttributeTable,
    nodes: Sequence[str],
    parts: Sequence[_Part],
    names: list[str],
    labels: NDArray[np.int64] | None,
) -> NodeAttributes:
    """Arrange the rows of all parts in the order of the nodes."""
    rows = _rows_of(table, nodes)
    with_row = np.flatnonzero(rows >= 0)
    if not len(with_row):
        raise GraphFormatError(
            f"{table.origin}: no row is that of a node\nits first id is {table.ids[0]!r}, and the "
            f"first node is {nodes[0]!r}"
        )
    # Filled in place: the numbers are in memory once as floats.
    x, start = np.zeros((len(nodes), len(names)), dtype=np.float32), 0
    for matrix, own_names in parts:
        if isinstance(matrix, np.ndarray):
            x[with_row, start : start + len(own_names)] = matrix[rows[with_row]]
        else:
            block = matrix[rows[with_row]].tocoo()
            x[with_row[block.row], start + block.col] = block.data
        start += len(own_names)
    y = None
    if labels is not None:
        classes = np.full(len(nodes), -1, dtype=np.int64)
        classes[with_row] = labels[rows[with_row]]
        y = torch.from_numpy(classes)
    return NodeAttributes(torch.from_numpy(x), names, y)


def cells_of(
    table: AttributeTable, column: str, nodes: Sequence[str], values: Sequence[str] = ()
) -> list[str | None]:
    """Return a column of a table in the order of the nodes, as text; None where a cell is missing.

    Args:
        table: The table, with rows of other nodes as well.
        column: Name of the column.
        nodes: Names of the nodes.
        values: Public texts that are looked for among the cells. A cell that is none of them becomes
            the first of them that means the same, as 1.0 means 1 and true True: one odd cell makes
            pandas read a column of numbers as text.

    Raises:
        GraphFormatError: If a value has more digits than the numbers of a DataFrame.
    """
    long = [value for value in values if _MOST_CLASSES <= abs(_number(value) or 0) < math.inf]
    if long and not table.is_exact:
        raise GraphFormatError(
            f"{table.origin}: the value {long[0][:40]!r} of column {column!r} is 2^53 or more, and one "
            "empty cell\ntakes the last digits of all such numbers in a DataFrame\n"
            "give the path of the table, as CSV or Parquet, instead"
        )
    same = {_meaning(value): value for value in reversed(values)}
    same |= {value: value for value in values}
    texts = [None if _is_absent(cell) else _text(cell) for cell in table.cells(column)]
    cells = [
        text if text is None else same.get(text) or same.get(_meaning(text), text) for text in texts
    ]
    if column == LABELS and column not in table.columns:  # classes of a graph, -1 for none
        cells = [None if cell is not None and cell.startswith("-") else cell for cell in cells]
    return [cells[row] if row >= 0 else None for row in _rows_of(table, nodes).tolist()]


def _rows_of(table: AttributeTable, nodes: Sequence[str]) -> NDArray[np.int64]:
    """Return the row of each node, -1 for a node without one."""
    row_of = {name: row for row, name in enumerate(table.ids)}
    return np.array([row_of.get(name, -1) for name in nodes], dtype=np.int64)


def _check_policies(table: AttributeTable, policies: Mapping[str, str]) -> None:
    names = set(table.all_names)
    for name, policy in policies.items():
        if policy not in POLICIES:
            raise GraphFormatError(
                f"nodes.policy: {name} is {policy!r}\nexpected one of {', '.join(POLICIES)}"
            )
        if name not in names:
            setting, way = "nodes.policy", ""
            if policy == PRIVATE:
                setting, way = (
                    "nodes.private_columns",
                    "\nname its private columns: --data.nodes.private_columns NAME,NAME",
                )
            raise GraphFormatError(
                f"{setting}: {table.origin} has no column {name!r}\n"
                f"its columns are {_shown(table.all_names)}{way}"
            )
        made_as = {"number", "public", "drop", PRIVATE}
        made_as |= {"label", PRIVATE_LABEL} if name == LABELS else set()
        if name not in table.columns and policy not in made_as:
            raise GraphFormatError(
                f"nodes.policy: {name} is a column of numbers, and cannot be {policy}\n"
                "expected public, drop or private"
            )


def _public_part(matrix: Matrix, names: Sequence[str], policies: Mapping[str, str]) -> _Part:
    """Return the columns of a matrix that no policy leaves out."""
    columns = [i for i, name in enumerate(names) if policies.get(name) not in NOT_PUBLIC]
    if len(columns) < len(names):
        matrix = matrix[:, columns]
    return _Part(matrix, [names[i] for i in columns])


def _kind(origin: str, name: str, cells: Sequence[object], numbers: _Numbers) -> str:
    """Return how a column is encoded by the look of its cells."""
    if numbers.are_numbers:
        return "label" if name == LABELS and _are_whole(numbers.values) else "number"
    present = [cell for cell in cells if not _is_absent(cell)]
    texts = [str(cell) for cell in present]
    if sum(len(text.split()) for text in texts) > _WORDS_OF_TEXT * len(texts):
        return "text"
    if (count := len(set(texts))) > _MOST_VALUES:
        raise GraphFormatError(
            f"{origin}: column {name!r} has {count:,} different values, too many for categories\n"
            f"leave it out: {policy_option(name, 'drop')}\n"
            f"or take it as text, or as category: {policy_option(name, 'text')}"
        )
    return "category"


def _one_hot(name: str, cells: Sequence[object]) -> _Part:
    values, codes = _categories(cells)
    rows = np.flatnonzero(codes >= 0)
    ones = np.ones(len(rows), dtype=np.float32)
    matrix = csr_array((ones, (rows, codes[rows])), shape=(len(cells), len(values)))
    return _Part(matrix, [f"{name}={value}" for value in values])


def _numbers(origin: str, name: str, cells: Sequence[object], numbers: _Numbers) -> _Part:
    values = numbers.values
    missing, odd = np.isnan(values), np.flatnonzero(np.abs(values) > _LARGEST)
    if len(odd):
        raise GraphFormatError(
            f"{origin}: {str(cells[odd[0]])[:40]!r} in column {name!r} is no finite number\n"
            f"take it as category, or leave it out: {policy_option(name, 'drop')}"
        )
    column = np.where(missing, 0, values).astype(np.float32)
    if missing.any():
        both = np.stack([column, missing.astype(np.float32)], axis=1)
        return _Part(both, [name, f"{name} is missing"])
    return _Part(column[:, None], [name])


def _words(origin: str, name: str, cells: Sequence[object]) -> _Part:
    # Takes a while to import, and most tables have no text.
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["" if _is_absent(cell) else str(cell) for cell in cells]
    vectorizer = TfidfVectorizer(max_features=_MOST_WORDS, dtype=np.float32)
    try:
        weights = csr_array(vectorizer.fit_transform(texts))
    except ValueError as error:
        raise GraphFormatError(
            f"{origin}: column {name!r} holds no words\nleave it out: {policy_option(name, 'drop')}"
        ) from error
    return _Part(weights, [f"{name}:{word}" for word in vectorizer.get_feature_names_out()])


def _classes(
    origin: str, name: str, cells: Sequence[object], numbers: _Numbers
) -> NDArray[np.int64]:
    """Return numbers of classes: the cells if they are whole numbers, else their categories."""
    if not numbers.are_numbers or not _are_whole(numbers.values):
        return _categories(cells)[1]
    values = numbers.values
    if (values < 0).any() or (values > _MOST_CLASSES).any():
        side = "below 0" if (values < 0).any() else f"above {_MOST_CLASSES:,}"
        raise GraphFormatError(
            f"{origin}: column {name!r} has a class {side}\nexpected classes from 0 on"
        )
    return np.where(np.isnan(values), -1, values).astype(np.int64)


def _are_whole(values: NDArray[np.float64]) -> bool:
    """Return whether all numbers that are not missing are whole."""
    return bool((np.isnan(values) | (np.isfinite(values) & (values == np.floor(values)))).all())


def _categories(cells: Sequence[object]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the values of a column in natural order, and the number of each cell's; -1 for none."""
    values = sorted({_text(cell) for cell in cells if not _is_absent(cell)}, key=natural_key)
    number = {value: i for i, value in enumerate(values)}
    codes = [-1 if _is_absent(cell) else number[_text(cell)] for cell in cells]
    return values, np.array(codes, dtype=np.int64)


def _text(cell: object) -> str:
    """Return a cell as text, by its value alone: a gap elsewhere may change the type of a column.

    A float that is whole and determines its digits is the text of a whole number. Others have the
    shortest text in single precision if they are such a number, and in double precision if not.
    """
    if not isinstance(cell, float | np.floating):
        return str(cell).strip()
    number = float(cell)
    if not abs(number) < _MOST_CLASSES:  # nor NaN
        return str(number)
    single = np.float32(number)
    return (
        str(int(number))
        if number.is_integer()
        else str(single if float(single) == number else number)
    )


def _meaning(text: str) -> str:
    """Return what a text of a cell means: the digits of a number, or true or false."""
    number = _number(text)
    if number is None or not abs(number) < _MOST_CLASSES:
        return text.casefold() if text.casefold() in ("true", "false") else text
    # Programs read the last digit in different ways.
    return str(int(number)) if number.is_integer() else f"{number:.15g}"


def _is_absent(cell: object) -> bool:
    return cell is None or is_missing(str(cell))


def _numbers_in(cells: Sequence[object]) -> _Numbers:
    """Return the numbers in the cells of a column."""
    if isinstance(cells, np.ndarray):
        return _Numbers(cells.astype(np.float64), True)
    numbers = [_number(cell) for cell in cells]
    values = np.array([math.inf if number is None else number for number in numbers])
    return _Numbers(values, None not in numbers)


def _number(cell: object) -> float | None:
    """Return the number in a cell: NaN for a missing one, None for anything else."""
    text = str(cell)
    try:
        return None if "_" in text else float(text)  # Python reads 1_2 as 12
    except ValueError:
        return math.nan if cell is None or is_missing(text) else None


def _shown(names: Sequence[str]) -> str:
    text = ", ".join(names[:8])
    return text[:120] + (", ..." if len(names) > 8 or len(text) > 120 else "")


def read_stored(
    archive: Mapping[str, NDArray[Any]],
) -> tuple[Matrix | None, list[str] | None, NDArray[Any] | None]:
    """Return matrix, names of its columns, and classes of the nodes; None for an absent one.

    Args:
        archive: Arrays ``attr_data``, ``attr_indices``, ``attr_indptr`` and ``attr_shape`` of NetGAN
            and PyG, or a dense ``attr_matrix``; ``attr_names`` and ``labels``.
    """
    matrix: Matrix | None = None
    if all(f"attr_{part}" in archive for part in _PARTS):
        data, indices, indptr, shape = (archive[f"attr_{part}"] for part in _PARTS)
        sparse = csr_array((data, indices, indptr), shape=tuple(shape))
        sparse.check_format(full_check=True)
        sparse.sum_duplicates()
        matrix = sparse
    elif "attr_matrix" in archive and archive["attr_matrix"].ndim == 2:
        matrix = archive["attr_matrix"]
    names = [str(name) for name in archive["attr_names"]] if "attr_names" in archive else None
    labels = archive.get("labels")
    is_classes = labels is not None and labels.ndim == 1 and labels.dtype.kind in "iu"
    return matrix, names, labels if is_classes else None


def stored(attributes: NodeAttributes) -> dict[str, Any]:
    """Return the arrays that :func:`read_stored` reads."""
    matrix = csr_array(attributes.x.numpy(force=True))
    arrays: dict[str, Any] = {
        "attr_data": matrix.data,
        "attr_indices": matrix.indices,
        "attr_indptr": matrix.indptr,
        "attr_shape": np.array(matrix.shape),
        "attr_names": np.array(attributes.names, dtype=np.str_),
    }
    if attributes.y is not None:
        arrays["labels"] = attributes.y.numpy(force=True)
    return arrays


def packed(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Make plain values of arrays, for a checkpoint that is read without running code."""
    return {
        name: array.tolist() if array.dtype.kind == "U" else torch.from_numpy(array)
        for name, array in arrays.items()
    }


def unpacked(values: Mapping[str, Any]) -> NodeAttributes:
    """Return the attributes that :func:`packed` has made plain values of."""
    return restored({name: np.asarray(value) for name, value in values.items()})


def restored(archive: Mapping[str, NDArray[Any]]) -> NodeAttributes:
    """Return the attributes of arrays that :func:`stored` has made.

    Raises:
        Refusal: If they are not such arrays.
    """
    matrix, names, labels = read_stored(archive)
    if matrix is None or names is None or matrix.shape[1:] != (len(names),):
        raise Refusal("no attributes of nodes, or no names of all of them")
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    x = torch.from_numpy(np.ascontiguousarray(dense, dtype=np.float32))
    if not bool(x.isfinite().all()):
        raise Refusal("attributes that are not finite")
    if labels is not None and labels.shape != (len(x),):
        raise Refusal(f"{len(labels)} classes of {len(x)} nodes")
    return NodeAttributes(x, names, None if labels is None else torch.from_numpy(labels))
