"""Settings of data modules: the nodes of a graph, and the columns of its relation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lightning_dpg.datamodules.node_attributes import AttributeSource
from lightning_dpg.datamodules.private_columns import Domain, class_names, read_domains
from lightning_dpg.errors import Refusal
from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.conversion import NodeSet
from lightning_dpg.graph.attributes import PRIVATE, PRIVATE_LABEL, Policy

if TYPE_CHECKING:
    Classes: TypeAlias = str | Sequence[object]
    ColumnNames: TypeAlias = str | Sequence[str]
    Domains: TypeAlias = str | Mapping[str, Sequence[object]]
else:
    # For the command line:
    Classes = str | list[str] | list[int]
    ColumnNames = str | list[str]
    Domains = str | dict[str, list[str] | list[float]]


@dataclass(frozen=True)
class Nodes:
    """Nodes of a graph, and the public facts about them.

    Attributes:
        ids: Ids of all nodes (public), or a file of them: one per line, or a table in CSV or
            Parquet. ``from_edges``: the ids that occur on the private lines of an edge list, which
            becomes an assumption of the guarantee. By default the node table of the graph or, of an
            edge list, ``from_edges``. For :class:`EdgeTableDataModule` also a ``TABLE(COLUMN)`` of
            its database, such as ``customers(id)``, or ``FILE(COLUMN)``.
        column: Column of the table of nodes that holds the ids.
        names: ``numbers`` publishes numbers from 0 to N - 1 in a secret random order instead of
            ids, and leaves a key file in the run folder; ``ids`` publishes the ids. ``auto`` takes
            numbers for ids that were read off the private lines, which nobody has listed, and where
            columns are private: a drawn row beside a name would be taken for that of its bearer.
        left: Ids of all left nodes of a bipartite graph (public), in a form of ``ids``. By default
            the sides are those of the graph or, of an edge list, of its two columns.
        right: Ids of all right nodes (public).
        side_column: Column of the table of nodes that holds the side, one of two values.
        attributes: Public attributes: a table in CSV, TSV or Parquet with a row per node, whose ids
            are also the nodes unless ``ids`` is given or the graph is bipartite; or ``from_graph``:
            those in the graph itself. For :class:`EdgeTableDataModule` also a ``TABLE(COLUMN)`` of
            its database, with the column of ids. By default none are used or published.
        policy: Policy of each attribute by its name. ``public``, the default, finds out whether
            it holds numbers, categories or text; ``number``, ``category``, ``text`` and ``label``
            (classes) say so; ``drop`` leaves it out; ``private`` makes it a private column, which
            :class:`Attributed` protects at ``privacy.row_epsilon``, and other methods refuse;
            ``private_label`` makes it the classes of the nodes, which methods of classes protect at
            that budget. Which nodes have a label stays public.
        classes: All classes that the private label can have (public), also as a text with commas.
            They must not be collected from the labels.
        private_columns: Columns of the table whose policy is ``private``, also as a text with commas.
        domains: All values of each private column (public) by its name, or a YAML file of them: a
            list of texts for categories, or of ascending numbers for borders of bins. A number
            outside of the bins counts in the outer one. All other values are ``other``, which each
            domain has, and so are empty cells unless a domain names ``missing``. The values must not
            be collected from the data.
        right_columns: Those of the private columns that right nodes of a bipartite graph have (public);
            left nodes have all others. Cells of the other side are not looked at.
    """

    ids: str | Sequence[str] | None = None
    column: str | None = None
    names: Literal["auto", "ids", "numbers"] = "auto"
    left: str | Sequence[str] | None = None
    right: str | Sequence[str] | None = None
    side_column: str | None = None
    attributes: AttributeSource | None = None
    policy: dict[str, Policy] | None = None
    classes: Classes | None = None
    private_columns: ColumnNames | None = None
    domains: Domains | None = None
    right_columns: ColumnNames | None = None

    def __post_init__(self) -> None:
        """Refuse another word for names, and private labels or columns without their values."""
        if self.names not in ("auto", "ids", "numbers"):
            raise Refusal(f"names must be 'auto', 'ids' or 'numbers', got {self.names!r}")
        known = self.value_domains  # refused before anything is read
        if unknown := [name for name in self.of_right if name not in known]:
            raise Refusal(
                f"nodes.right_columns: {unknown[0]} is no private column\n"
                "name it in nodes.private_columns, too"
            )
        labels = [name for name, policy in self.policies.items() if policy == PRIVATE_LABEL]
        if len(labels) > 1:
            raise Refusal(f"nodes.policy: {' and '.join(labels)} are private labels, expected one")
        if labels:
            class_names(self.classes)
        elif self.classes is not None:
            raise Refusal(
                "nodes.classes are those of a private label, and no column is one\n"
                "name it (--data.nodes.policy.COLUMN private_label), or leave the classes out: "
                "those of public labels are read from the column"
            )

    def are_numbered(self, node_set: NodeSet) -> bool:
        """Return whether a release has numbers in place of the ids, with the meaning of ``auto``.

        Args:
            node_set: Origin of the ids. Ids from 0 to the largest one tell their number only.
        """
        if self.names != "auto":
            return self.names == "numbers"
        return bool(self.value_domains) or node_set is NodeSet.LINES

    @cached_property
    def policies(self) -> dict[str, Policy]:
        """Policy of each attribute that has one, private columns included.

        Raises:
            Refusal: If a private column has another policy as well.
        """
        policies: dict[str, Policy] = dict(self.policy or {})
        for name in _listed(self.private_columns):
            if policies.setdefault(name, "private") != PRIVATE:
                raise Refusal(
                    f"nodes.private_columns: {name} has the policy {policies[name]!r}\n"
                    "name it in one of private_columns and policy"
                )
        return policies

    @property
    def of_right(self) -> tuple[str, ...]:
        """Names of the private columns of right nodes."""
        return tuple(_listed(self.right_columns))

    @cached_property
    def value_domains(self) -> dict[str, Domain]:
        """Domain of each private column (public).

        Raises:
            GraphFormatError: If one is missing, of no private column, or of another form.
        """
        columns = [name for name, policy in self.policies.items() if policy == PRIVATE]
        return read_domains(self.domains, columns) if columns or self.domains is not None else {}

    @classmethod
    def of(cls, settings: "NodesGiven") -> "Nodes":
        """Build nodes from ids alone, or from the settings of a configuration."""
        if isinstance(settings, Nodes):
            return settings
        return cls(**settings) if isinstance(settings, Mapping) else cls(settings)


def _listed(given: "ColumnNames | None") -> list[str]:
    """Return names of columns, which may be a text with commas."""
    given = given or ()
    listed = given.split(",") if isinstance(given, str) else given
    return [str(name).strip() for name in listed]


if TYPE_CHECKING:
    NodesGiven: TypeAlias = Nodes | str | Sequence[str] | Mapping[str, Any] | None
    ColumnsGiven: TypeAlias = Columns | Mapping[str, Any]
else:
    NodesGiven, ColumnsGiven = Nodes, Columns  # which the command line takes as groups of options
