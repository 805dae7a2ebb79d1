"""Public attributes of nodes: of a table beside the edges, or of the graph itself."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.formats.attribute_tables import read_attributes
from lightning_dpg.formats.conversion import GraphReading
from lightning_dpg.formats.edge_tables import Table
from lightning_dpg.graph.attributes import (
    NOT_PUBLIC,
    PRIVATE,
    PRIVATE_LABEL,
    AttributeTable,
    NodeAttributes,
)
from lightning_dpg.graph.node_names import GraphFormatError
from lightning_dpg.graph.pair_space import Kind

FROM_GRAPH = "from_graph"
LEFT_OUT = (
    "the attributes of the nodes are left out; if they may be published, and were not computed from "
    f"the edges: set nodes.attributes to {FROM_GRAPH} (--attributes {FROM_GRAPH})"
)
NAMED_BY_ATTRIBUTES = (
    "the attributes of the numbered nodes (a row that occurs once in another table names its node)"
)

_MOST_SHOWN = 10
"""Names in the line for the owner."""

if TYPE_CHECKING:
    AttributeSource: TypeAlias = str | Path | Table | AttributeTable
else:
    # An option of the command line is a path; its help would list each subclass of the rest.
    AttributeSource = str


def attribute_table(
    source: AttributeSource | None, policy: Mapping[str, str] | None, id_column: str | None
) -> AttributeTable | None:
    """Read the table of attributes beside the edges; None if there is none.

    Raises:
        MisconfigurationException: If there are policies, and no attributes.
        GraphFormatError: If the table cannot be read.
    """
    if source is None and policy:
        raise MisconfigurationException(
            f"nodes.policy names {next(iter(policy))!r}, and no attributes are used\n"
            "set nodes.attributes to a table (--attributes people.csv), or to "
            f"{FROM_GRAPH}"
        )
    if isinstance(source, AttributeTable):
        return source
    if source is None or (isinstance(source, str) and source == FROM_GRAPH):
        return None
    return read_attributes(source, id_column)


def own_attributes(reading: GraphReading, kind: Kind) -> AttributeTable:
    """Read the attributes of the nodes that a graph holds itself.

    They are used only if the owner asks for them: files of other programs often hold degrees,
    communities or positions of nodes that were computed from the private edges.

    Args:
        reading: The graph as it was read.
        kind: Kind of the graph; the side of a bipartite one is no attribute.

    Raises:
        GraphFormatError: If it holds none.
    """
    table = reading.attributes()  # None as well if none is a single value
    if table is None:
        raise GraphFormatError(
            f"nodes.attributes: {FROM_GRAPH}, and the graph holds no attributes of nodes\n"
            "give a table: --attributes people.csv"
        )
    if kind == "bipartite":
        table = table._replace(
            columns={name: cells for name, cells in table.columns.items() if name != "bipartite"}
        )
    return table


def described(
    table: AttributeTable,
    policy: Mapping[str, str],
    attributes: NodeAttributes,
    nodes: Sequence[str],
) -> str:
    """Name the attributes that become public, and what is private, in a line for the owner."""
    public = [name for name in table.all_names if policy.get(name) not in NOT_PUBLIC]
    more = f" and {len(public) - _MOST_SHOWN:,} more" if len(public) > _MOST_SHOWN else ""
    ids = set(table.ids)
    without = sum(name not in ids for name in nodes)
    private = [name for name in policy if policy[name] == PRIVATE]
    shown = f"{', '.join(public[:_MOST_SHOWN])}{more}, as {len(attributes.names):,} numbers"
    return (
        f"public attributes: {shown if public else 'none'}"
        + "".join(f"; private label: {name}" for name in policy if policy[name] == PRIVATE_LABEL)
        + (f"; private columns: {', '.join(private)}" if private else "")
        + (f"; {without:,} nodes without a row" if without else "")
    )
