"""The release of a database: one release for each kind of relation, and tables that they draw together.

Node tables are public. Each kind of relation is a table of its own, which one run has read. The proof of
the guarantee of the whole is that of :func:`statement_of`.
"""

import copy
import filecmp
import json
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import torch
from markupsafe import Markup
from numpy.typing import NDArray
from pyarrow import csv, parquet
from pyarrow.compute import strftime
from pyarrow.types import is_floating, is_timestamp
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data, HeteroData

from lightning_dpg.errors import CommandError
from lightning_dpg.graph.coupled_degrees import coupled_places
from lightning_dpg.graph.degrees import with_degrees
from lightning_dpg.graph.drawn_tables import DrawnRows, rows_of, transfers_of
from lightning_dpg.graph.expected_degrees import MANY_EDGES
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.graph.rows import draw_rows
from lightning_dpg.methods.single_graph.attributed import Attributed
from lightning_dpg.methods.single_graph.chung_lu import ChungLu
from lightning_dpg.pages.page import render
from lightning_dpg.privacy.events import Relation
from lightning_dpg.release.agreement import INCOMPLETE, Verification, faults_of_files
from lightning_dpg.release.card.document import PAGE
from lightning_dpg.release.card.texts import Card
from lightning_dpg.release.cards import rewrite_card
from lightning_dpg.release.checksums import write_sums
from lightning_dpg.release.reader import open_release
from lightning_dpg.release.release import Release
from lightning_dpg.release.signature import signatures
from lightning_dpg.release.verify import verify
from lightning_dpg.release.writer import write_folder
from lightning_dpg.run_folder import DATABASE, KINDS, UNSUMMED, release_in, statement_in
from lightning_dpg.tables import as_data_frame, as_json

_OF_NODES = ("id", "size", "names", "columns")
_OF_KIND = ("between", "keys", "graph", "exactly_one", "amount", "time")
"""What a statement has of each node table and of each kind beside their guarantees, and nothing else."""
_COSTS = ("method", "relation", "epsilon", "delta", "guarantee")
_LEAST = 1e-9  # of a cell that has no nodes by the noisy tables
_LEAST_WEIGHT = 1e-3  # of a node whose released degree is 0, which may have any relation
_SEEDS = 2**32
"""Distance between the seeds of two kinds."""


def statement_of(
    facts: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    r"""State what the releases of all kinds prove together.

    **One relation.** Two neighboring databases differ in one relation, which is a row of one table,
    hence of one kind k. The runs are made in a fixed order. Each reads the table of its kind, public node
    tables, private columns, and what earlier runs have released. The laws of the runs before k are equal
    for both databases. Given what they have released, the law of run k changes by its
    :math:`(\epsilon_k, \delta_k)`. Later runs read equal tables, so that given all earlier
    releases their laws are equal, and they are post-processing of these. So the whole is
    :math:`(\epsilon_k, \delta_k)`-DP for a relation of the kind k, and
    :math:`(\max_k \epsilon_k, \max_k \delta_k)`-DP for any one relation.

    **The private columns of one node** are read by each run whose kind has its table at an end. By basic
    composition their epsilons and deltas add up over these runs. Nodes of another table have other rows.

    Args:
        facts: Node tables and kinds (public), as :func:`lightning_dpg.run.database.fit_database` lists
            them.
        parts: Statement of each kind.

    Returns:
        The facts with ``epsilon``, ``delta`` and ``guarantee``, and the epsilon of each node table.
    """
    relations = {
        name: {each: about[each] for each in _OF_KIND}
        | {each: parts[name][each] for each in _COSTS}
        for name, about in facts["relations"].items()
    }
    nodes = {}
    for table, about in facts["nodes"].items():
        reads = [
            each
            for name, kind in relations.items()
            if about["columns"] and table in kind["between"]
            for each in parts[name].get("beside", ())
            if each["relation"] == Relation.ATTRIBUTES
        ]
        nodes[table] = {
            **{each: about[each] for each in _OF_NODES},
            "epsilon": _plain(math.fsum(float(each["epsilon"]) for each in reads)),
            "delta": math.fsum(float(each["delta"]) for each in reads),
        }
    whole = {
        "epsilon": _plain(max(float(kind["epsilon"]) for kind in relations.values())),
        "delta": max(kind["delta"] for kind in relations.values()),
        "nodes": nodes,
        "relations": relations,
    }
    return whole | {"guarantee": _guarantee(whole)}


def _plain(value: float) -> float | str:
    return "inf" if math.isinf(value) else float(f"{value:.12g}")


def _guarantee(whole: Mapping[str, Any]) -> str:
    """Say the guarantee of all kinds together, in sentences for people."""
    if whole["epsilon"] == "inf":
        names = [name for name, kind in whole["relations"].items() if kind["epsilon"] == "inf"]
        return f"none: {', '.join(names)}: epsilon is infinite."
    kinds = ", ".join(
        f"{name} ({kind['epsilon']:g}, {kind['delta']:g})"
        + " for one transfer" * (kind["relation"] == Relation.TRANSFER)
        for name, kind in whole["relations"].items()
    )
    relation = (
        f"any one relation is protected: ({whole['epsilon']:g}, {whole['delta']:g})-DP, the largest of "
        f"its kinds: {kinds}. k relations of one node cost k times the epsilon of their kind, and "
        "those of several kinds add up."
    )
    lines = [relation]
    for kind, about in whole["relations"].items():
        if about["exactly_one"] is not None:
            lines.append(
                f"That each {about['exactly_one']} has exactly one relation of {kind} is public: which one "
                f"it is, is protected at {2 * about['epsilon']:g}, twice the epsilon of {kind}."
            )
    for table, about in whole["nodes"].items():
        if about["columns"]:
            columns = ", ".join(about["columns"])
            lines.append(
                f"The private columns of one {table} ({columns}): ({about['epsilon']:g}, "
                f"{about['delta']:g})-DP, the sum over the kinds that read them."
            )
    lines.append(
        "Assumed public: the tables of nodes, the schema, and what the card of each kind lists; no row "
        "is in two kinds."
    )
    return " ".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class DatabaseRelease:
    """An open release of a database. All its methods read released tensors only, and spend no budget.

    Attributes:
        kinds: Release of each kind of relation, by its name.
        statement: Content of ``database.json``.
        folder: Folder of the release.
    """

    kinds: dict[str, Release]
    statement: dict[str, Any]
    folder: Path

    @property
    def guarantee(self) -> str:
        """The guarantee of all kinds together."""
        return str(self.statement["guarantee"])

    @property
    def epsilon(self) -> float:
        """Epsilon of any one relation."""
        return float(self.statement["epsilon"])

    @property
    def delta(self) -> float:
        """Delta of :attr:`epsilon`."""
        return float(self.statement["delta"])

    def verify(self) -> Verification:
        """Check the files of the release, see :func:`verify_database`."""
        return verify_database(self.folder)

    @cached_property
    def methods(self) -> dict[str, Any]:
        """Method of each kind, whose nodes have exchanged degrees, see :func:`coupled_places`.

        Degrees out and in of a directed kind are exchanged one by one. Those of a table whose nodes have
        exactly one relation are noise and stay.
        """
        methods = {kind: copy.deepcopy(release.method) for kind, release in self.kinds.items()}
        ends: dict[str, list[tuple[str, slice]]] = {}
        for kind, method in methods.items():
            about = self.statement["relations"][kind]
            # An undirected kind has one part.
            for table, part in zip(about["between"], method.space.parts, strict=False):
                if table != about["exactly_one"]:
                    ends.setdefault(table, []).append((kind, slice(part.start, part.stop)))
        for parts in ends.values():
            places = coupled_places(
                [_degrees_of(methods[kind])[part] for kind, part in parts],
                [_node_scale(self.kinds[kind].statement) for kind, _ in parts],
            )
            for (kind, part), of_kind in zip(parts, places, strict=True):
                for values in _by_end(methods[kind]):
                    values[part] = values[part][of_kind]
        return methods

    def sample(self, seed: int = 0) -> dict[str, Data]:
        """Draw a graph for each kind. A node has one drawn row, the same in all of them.

        The edges of all kinds are drawn first, then rows by the degrees of the nodes in all kinds, and
        then the edges of each kind are rewired to the mixing of these rows.

        Args:
            seed: Public seed: equal seeds draw equal databases.
        """
        edges: dict[str, NDArray[np.int64]] = {}
        sources = {}
        for place, (kind, method) in enumerate(self.methods.items()):
            generator = torch.Generator().manual_seed(seed + _SEEDS * place)
            with torch.no_grad():
                drawn, rng = _edges_of(method.eval(), generator)
            edges[kind], sources[kind] = self._with_one(kind, drawn, rng), rng
        rows = self._rows(edges, np.random.default_rng([seed % 2**63, len(edges)]))
        return {
            kind: self._complete(kind, each, rows, sources[kind]) for kind, each in edges.items()
        }

    def _with_one(
        self, kind: str, edges: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Leave each node of a table one relation, if that is a public fact of the kind.

        One of those that were drawn is kept. A node without any gets one to a node of the other
        table, which is drawn in proportion to its released degree.
        """
        about, method = self.statement["relations"][kind], self.methods[kind]
        if about["exactly_one"] is None:
            return edges
        side = about["between"].index(about["exactly_one"])
        (_, others, _), (_, nodes, _) = [*self.ends(kind)][:: 1 if side else -1]
        everyone = np.arange(method.hparams["num_nodes"])
        weights = _degrees_of(method)[others].clip(min=0) + _LEAST_WEIGHT
        partner = everyone.copy()
        partner[nodes] = rng.choice(
            everyone[others], len(everyone[nodes]), p=weights / weights.sum()
        )
        edges = rng.permutation(edges)
        partner[edges[:, side]] = edges[:, 1 - side]
        return np.stack([partner[nodes], everyone[nodes]][:: 1 if side else -1], axis=1)

    def _rows(
        self, edges: Mapping[str, NDArray[np.int64]], rng: np.random.Generator
    ) -> dict[str, NDArray[np.int64]]:
        r"""Draw the rows of each node table by the degrees of its nodes in all kinds.

        Given the columns, the groups :math:`g_k` of a node in the kinds k are taken to be independent:
        :math:`P(c | g) \propto P(c)^{1 - m} \prod_k P(c | g_k)` for m kinds.
        """
        found: dict[str, list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
        for kind, drawn in edges.items():
            method = self.kinds[kind].method
            if not isinstance(method, Attributed) or not method.reads_private_columns:
                continue
            groups = method.groups(
                np.bincount(drawn.ravel(), minlength=method.hparams["num_nodes"])
            )
            ends = [end for end in self.ends(kind) if end[2]]
            for (table, nodes, _), (_, _, joint) in zip(ends, method.joints(), strict=True):
                used, own = np.unique(groups[nodes], return_inverse=True)
                found.setdefault(table, []).append((own.ravel(), joint[used]))
        rows = {}
        for table, parts in found.items():
            both = np.stack([groups for groups, _ in parts], axis=1)
            combined, place = np.unique(both, axis=0, return_inverse=True)
            shape = parts[0][1].shape[1:]
            flat = [_LEAST + joint.reshape(len(joint), -1) for _, joint in parts]
            share = sum(each.sum(axis=0) / each.sum() for each in flat) / len(flat)
            logs = (1 - len(flat)) * np.log(share)[None, :]
            for own, each in zip(combined.T, flat, strict=True):
                logs = logs + np.log(each / each.sum(axis=1, keepdims=True))[own]
            joint = np.exp(logs - logs.max(axis=1, keepdims=True)).reshape(-1, *shape)
            rows[table] = draw_rows(joint, place.ravel(), rng)
        return rows

    def _complete(
        self,
        kind: str,
        edges: NDArray[np.int64],
        rows: Mapping[str, NDArray[np.int64]],
        rng: np.random.Generator,
    ) -> Data:
        """Build the graph of a kind, with the rows of its tables."""
        method = self.methods[kind]
        if not isinstance(method, Attributed):
            graph: Data = method.space.graph(torch.from_numpy(edges), method.node_names)
            return graph
        if not method.reads_private_columns:
            return method.complete(edges, None, rng)
        size = method.hparams["num_nodes"], len(method.hparams["domains"])
        values = np.zeros(size, dtype=np.int64)
        for table, nodes, columns in self.ends(kind):
            if columns:
                values[nodes, columns] = rows[table]
        return method.complete(edges, values, rng)

    def ends(self, kind: str) -> Iterator[tuple[str, slice, list[int]]]:
        """Yield each node table of a kind, its nodes, and the places of its private columns."""
        method = self.kinds[kind].method
        first, second = self.statement["relations"][kind]["between"]
        names = list(method.hparams.get("domains") or ())
        right = [names.index(name) for name in method.hparams.get("right_columns") or ()]
        if first == second:
            yield first, slice(None), [*range(len(names))]
            return
        yield first, slice(method.num_left), [*sorted({*range(len(names))} - {*right})]
        yield second, slice(method.num_left, None), right

    def names(self, table: str) -> list[str]:
        """Return the ids of the nodes of a table: their own, or numbers from 0 on in a secret order."""
        about = self.statement["nodes"][table]
        if about["names"] == "numbers":
            return [*map(str, range(about["size"]))]
        kind = next(
            name for name, of in self.statement["relations"].items() if table in of["between"]
        )
        (nodes,) = (nodes for name, nodes, _ in self.ends(kind) if name == table)
        found: list[str] = self.kinds[kind].method.node_names[nodes]
        return found

    def arrow_tables(self, seed: int = 0) -> dict[str, pyarrow.Table]:
        """Draw all tables of the database, see :meth:`tables`.

        Args:
            seed: Public seed, as for :meth:`sample`.
        """
        nodes: dict[str, dict[str, Any]] = {
            table: {about["id"]: self.names(table)}
            for table, about in self.statement["nodes"].items()
        }
        relations = {}
        for kind, graph in self.sample(seed).items():
            rows, public = rows_of(graph), self.kinds[kind].method.node_attributes
            for table, places, columns in self.ends(kind):
                if public is not None:
                    nodes[table] |= {
                        name.removeprefix(f"{table}."): cells[places].numpy()
                        for name, cells in zip(public.names, public.x.T, strict=True)
                        if name.startswith(f"{table}.")
                    }
                if rows is not None:
                    own = [name for column, name in enumerate(rows.domains) if column in columns]
                    domains = {name.removeprefix(f"{table}."): rows.domains[name] for name in own}
                    drawn = DrawnRows(domains, rows.values[places][:, columns])
                    nodes[table] |= dict(zip(domains, drawn.texts(), strict=True))
            relations[kind] = self._relations(kind, graph)
        return {table: pyarrow.table(columns) for table, columns in nodes.items()} | relations

    def _relations(self, kind: str, graph: Data) -> pyarrow.Table:
        """Return the table of a kind: both keys of each relation, or of each transfer."""
        about, transfers = self.statement["relations"][kind], transfers_of(graph)
        pairs: Tensor = space_of(graph).edges(graph) if transfers is None else transfers.pairs
        first, second = pairs.numpy().T
        left, right = (np.array(self.names(table), dtype=object) for table in about["between"])
        start = 0 if about["between"][0] == about["between"][1] else len(left)
        columns = dict(zip(about["keys"], (left[first], right[second - start]), strict=True))
        if transfers is not None:
            columns |= {about[name]: cells for name, cells in transfers.columns().items()}
        return pyarrow.table(columns)

    def tables(self, seed: int = 0) -> dict[str, Any]:
        """Draw all tables of the database.

        Args:
            seed: Public seed, as for :meth:`sample`.

        Returns:
            A DataFrame of pandas for each node table, with its ids and its drawn columns, and for each
            kind of relation, with two keys and its amounts and times. A drawn row is not that of the
            node beside it.

        Raises:
            CommandError: If pandas is not installed.
        """
        return {
            name: as_data_frame(table.column_names, zip(*table.to_pydict().values(), strict=True))
            for name, table in self.arrow_tables(seed).items()
        }

    def to_hetero_data(self, seed: int = 0) -> HeteroData:
        """Draw the database for PyTorch Geometric.

        Args:
            seed: Public seed, as for :meth:`sample`.

        Returns:
            For each node table ``num_nodes`` and, with drawn columns, ``x`` of shape ``(N, F)`` with a
            column for each value; for each kind ``edge_index`` and, with amounts or times, ``edge_attr``
            and ``edge_time`` of its edges. Undirected edges are there in both directions.
        """
        data = HeteroData()
        for table, about in self.statement["nodes"].items():
            data[table].num_nodes = about["size"]
        for kind, graph in self.sample(seed).items():
            rows = rows_of(graph)
            for table, nodes, columns in self.ends(kind):
                if rows is not None and columns:
                    domains = [*rows.domains.values()]
                    held = [
                        one_hot(torch.from_numpy(rows.values[nodes, column]), len(domains[column]))
                        for column in columns
                    ]
                    data[table].x = torch.cat(held, dim=1).float()
            first, second = self.statement["relations"][kind]["between"]
            store, index = data[first, kind, second], graph.edge_index
            start = 0 if first == second else data[first].num_nodes
            kept = index[0] < (start or data[first].num_nodes)
            store.edge_index = index[:, kept] - torch.tensor([[0], [start]])
            for name in ("edge_attr", "edge_time"):
                if name in graph:
                    store[name] = graph[name][kept]
        return data

    def to_duckdb(self, path: str | Path, seed: int = 0) -> Path:
        """Write all tables into a new file of DuckDB.

        Args:
            path: The file.
            seed: Public seed, as for :meth:`sample`.

        Raises:
            CommandError: If there is a file already, or if DuckDB is not installed.
        """
        target = Path(path).expanduser()
        if target.exists():
            raise CommandError(f"{target}: there is a file already\ngive a new one")
        try:
            import duckdb  # optional
        except ModuleNotFoundError as error:
            raise CommandError(
                'DuckDB is not installed: pip install "lightning_dpg[tables]"'
            ) from error
        with duckdb.connect(str(target)) as connection:
            for name, table in self.arrow_tables(seed).items():
                connection.register("rows", table)
                quoted = name.replace('"', '""')
                connection.execute(f'CREATE TABLE "{quoted}" AS SELECT * FROM rows')
        return target

    def to_neo4j(self, root: str | Path, seed: int = 0) -> Path:
        """Write a CSV file per table for ``neo4j-admin database import``, and ``database.json``.

        Node tables are labels, with an id space each; kinds of relations are types of relationships.
        Amounts and public columns are numbers, times are local ones, and private columns are texts.

        Args:
            root: New folder.
            seed: Public seed, as for :meth:`sample`.

        Raises:
            CommandError: If there is such a folder with files.
        """

        def fill(folder: Path) -> None:
            for name, table in self.arrow_tables(seed).items():
                about, (first, *_) = self.statement["relations"].get(name), table.column_names
                ends = () if about is None else zip(("START", "END"), about["between"], strict=True)
                heads = [f":{end}_ID({of})" for end, of in ends] or [f"{first}:ID({name})"]
                cells = [
                    strftime(each, "%Y-%m-%dT%H:%M:%S") if is_timestamp(each.type) else each
                    for each in table.columns
                ]
                heads += [
                    f"{each.name}:{_neo4j_type(each.type)}"
                    for each in [*table.schema][len(heads) :]
                ]
                heads.append(":LABEL" if about is None else ":TYPE")
                cells.append(pyarrow.array([name] * len(table)))
                csv.write_csv(pyarrow.table(cells, heads), folder / f"{name}.csv")
            _write_statement(self.statement, folder)

        return _written(root, fill)

    def save(self, folder: str | Path) -> Path:
        """Copy the complete release.

        Args:
            folder: New folder.

        Raises:
            CommandError: If there is such a folder with files.
        """

        def fill(new: Path) -> None:
            shutil.copytree(self.folder, new, dirs_exist_ok=True)

        return _written(folder, fill)

    def __repr__(self) -> str:
        """Name the tables, the guarantee, and what the release can do."""
        sizes = ", ".join(
            f"{table} ({of['size']:,})" for table, of in self.statement["nodes"].items()
        )
        calls = "tables(seed), to_hetero_data(seed), to_duckdb(path), to_neo4j(folder), kinds, save(folder)"
        return f"Release of a database: {sizes}; {', '.join(self.kinds)}\n{self.guarantee}\n{calls}"


def _neo4j_type(of: pyarrow.DataType) -> str:
    """Return the type of a column in the header of a file for Neo4j."""
    is_number = is_floating(of)
    return "double" if is_number else "localdatetime" if is_timestamp(of) else "string"


def _written(root: str | Path, fill: Callable[[Path], None]) -> Path:
    """Write a new folder, and refuse one that holds files."""
    target = Path(root).expanduser()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CommandError(f"{target}: it is not empty\ngive a new folder")
    write_folder(target, fill)
    return target


def _edges_of(
    method: Any, generator: torch.Generator
) -> tuple[NDArray[np.int64], np.random.Generator]:
    """Draw the edges of a method, shape ``(M, 2)``, and a source for all that follows.

    Keys have the numbers of relations that were released, where the method draws expected ones.
    """
    if isinstance(method, Attributed):
        edges, rng = method.draw_edges(generator)
        structure: Any = method.structure
    else:
        edges = method.sample_edges(generator).numpy(force=True)
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        structure = method
    is_moved = isinstance(method, Attributed) and method.has_transfers
    if isinstance(structure, ChungLu) and not is_moved:
        edges = with_degrees(edges, _degrees_of(method), method.space, rng)
    return edges, rng


def _degrees_of(method: Any) -> NDArray[np.int64]:
    """Return the released degree of each end."""
    degrees: NDArray[np.int64] = _by_end(method)[0].numpy(force=True)
    return degrees


def _by_end(method: Any) -> list[Tensor]:
    """Return what a method holds for each end: its degree, and classes of it."""
    if not isinstance(method, Attributed):
        return [method.degrees]
    degrees: Any = method.structure.degrees
    amounts = method.transfers.amounts
    return [degrees, *(each for each in (amounts.count_classes, amounts.sum_classes) if len(each))]


def _node_scale(statement: Mapping[str, Any]) -> float:
    """Return the scale of the noise that has ordered the nodes of a kind by their degrees."""
    (read,) = (entry for entry in statement["entries"] if entry["key"] == "degrees")
    return float(read["sensitivity"]) / float(read["epsilon"])


def write_database(
    facts: Mapping[str, Any], releases: Mapping[str, Path], folder: Path
) -> DatabaseRelease:
    """Write the release of a database from those of its kinds.

    Args:
        facts: Node tables and kinds (public), see :func:`statement_of`.
        releases: Folder of the release of each kind.
        folder: Folder to write, which appears complete or not at all.
    """

    def fill(new: Path) -> None:
        for kind, release in releases.items():
            shutil.copytree(release, new / KINDS / kind)
        statement = statement_of(facts, {kind: statement_in(of) for kind, of in releases.items()})
        _write_statement(statement, new)
        (new / PAGE).write_text(_page(new, statement), encoding="utf-8")
        write_tables(_opened(new, statement), new)
        write_sums(new)

    write_folder(folder, fill)
    return open_database(folder)


def rewrite_cards(folder: Path, card: Card, *, is_rewritten: bool) -> list[Path]:
    """Write the cards of all kinds again, see :func:`lightning_dpg.release.cards.rewrite_card`.

    Args:
        folder: Folder of the release, which must have no faults.
        card: Texts of the owner; those that are not given stay.
        is_rewritten: Whether to write anything.

    Returns:
        The cards that were written.

    Raises:
        CommandError: If the release has faults.
    """
    if wrong := verify_database(folder, redraw=False).faults:
        raise CommandError("\n".join([f"{folder}: it has faults", *wrong[:3]]))
    kinds = [*_read(folder)["relations"]] if is_rewritten else []

    def fill(new: Path) -> None:
        shutil.copytree(folder, new, dirs_exist_ok=True)
        for kind in kinds:
            rewrite_card(new / KINDS / kind, card)
        write_sums(new)

    if kinds:
        write_folder(folder, fill)
    return [folder / KINDS / kind / PAGE for kind in kinds]


def write_tables(release: DatabaseRelease, folder: Path, seed: int = 0) -> None:
    """Write all tables of a seed, each in CSV or, with a million rows, in Parquet."""
    for name, table in release.arrow_tables(seed).items():
        if len(table) < MANY_EDGES:
            csv.write_csv(table, folder / f"{name}.csv")
        else:
            parquet.write_table(table, folder / f"{name}.parquet")


def schema_picture(statement: Mapping[str, Any]) -> Markup:
    """Draw node tables as boxes, and kinds of relations as lines between them.

    Args:
        statement: Content of ``database.json``.
    """
    places = {}
    for number, (name, about) in enumerate(statement["nodes"].items()):
        turn = math.pi * (1 + 2 * number / len(statement["nodes"]))
        x, y = round(320 + 220 * math.cos(turn)), round(180 + 120 * math.sin(turn))
        places[name] = {"name": name, "size": about["size"], "x": x, "y": y}
    lines, seen = [], Counter[tuple[str, ...]]()
    for name, kind in statement["relations"].items():
        first, second = (places[table] for table in kind["between"])
        pair = tuple(sorted(kind["between"]))
        x, y = (first["x"] + second["x"]) // 2, (first["y"] + second["y"]) // 2 + 40 * seen[pair]
        path = (
            f"M {first['x']} {first['y']} Q {x} {y + 40 * seen[pair]} {second['x']} {second['y']}"
        )
        if first is second:
            y += -62 + 80 * (seen[pair] % 2)
            path = f"M {x - 40} {y + 40} C {x - 60} {y - 20} {x + 60} {y - 20} {x + 40} {y + 40}"
        seen[pair] += 1
        lines.append({"name": name, "path": path, "x": x, "y": y})
    parts = {"boxes": [*places.values()], "lines": lines, "relations": statement["relations"]}
    return Markup(render("schema", parts, Path(__file__).parent))


def _page(folder: Path, statement: Mapping[str, Any]) -> str:
    """Render the card of a database: its schema as a picture, and a section for each kind."""
    reads = {
        kind: statement_in(folder / KINDS / kind)["entries"] for kind in statement["relations"]
    }
    parts = {**statement, "picture": schema_picture(statement), "reads": reads}
    return render("database", parts, Path(__file__).parent)


def _write_statement(statement: Mapping[str, Any], folder: Path) -> None:
    (folder / DATABASE).write_text(as_json(statement), encoding="utf-8")


def _opened(folder: Path, statement: dict[str, Any]) -> DatabaseRelease:
    kinds = {kind: open_release(folder / KINDS / kind) for kind in statement["relations"]}
    return DatabaseRelease(kinds, statement, folder)


def open_database(folder: str | Path) -> DatabaseRelease:
    """Open the release of a database.

    Args:
        folder: Its folder, or that of its run.

    Returns:
        The open release.

    Raises:
        CommandError: If there is none, or if the release of a kind is damaged or changed.

    Example:
        >>> import lightning_dpg as dpg
        >>> dpg.open_database("runs/database/version_0").tables(seed=3)  # doctest: +SKIP
    """
    place = release_in(Path(folder).expanduser())
    return _opened(place, _read(place))


def _read(folder: Path) -> dict[str, Any]:
    """Read the statement of a database."""
    try:
        statement: dict[str, Any] = json.loads((folder / DATABASE).read_text(encoding="utf-8"))
        _ = [of["between"] for of in statement["relations"].values()], statement["nodes"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(
            f"{folder}: no release of a database: its {DATABASE} cannot be read ({type(error).__name__})"
        ) from error
    return statement


def _is_foreign(name: str, statement: Mapping[str, Any]) -> bool:
    """Return whether no writer makes a file of this name; the files of a kind are checked with it."""
    top, *below = Path(name).parts
    if below:
        return top != KINDS or below[0] not in statement["relations"]
    tables = {*statement["nodes"], *statement["relations"]}
    is_table = Path(name).stem in tables and Path(name).suffix in (".csv", ".parquet")
    return not is_table and name not in {DATABASE, PAGE, *UNSUMMED}


def verify_database(
    folder: Path, *, redraw: bool = True, signed_by: str | Path | None = None
) -> Verification:
    """Check the release of a database: each kind, the statement of the whole, and all tables.

    Args:
        folder: Folder of the release.
        redraw: Whether to draw graphs and tables again.
        signed_by: Key whose signature of the checksums it must have.
    """
    statement = _read(folder)
    found = [*faults_of_files(folder, lambda name: _is_foreign(name, statement))]
    found += [f"{path.name}: a link" for path in folder.rglob("*") if path.is_symlink()]
    parts = {}
    for kind in statement["relations"]:
        try:
            each = verify(folder / KINDS / kind, redraw=redraw)
        except CommandError:
            found.append(f"{KINDS}/{kind}: there is no release")
            continue
        found += [f"{KINDS}/{kind}/{fault}" for fault in each.faults]
        parts[kind] = statement_in(folder / KINDS / kind) if each.ok else {}
    if not found:
        found += _faults_of_statement(folder, statement, parts)
    if not found and redraw:
        found += _faults_of_tables(folder, statement)
    bad, signed = signatures(folder, None if signed_by is None else Path(signed_by).expanduser())
    found += bad
    if found:
        return Verification(folder, tuple(found), (), (), None, "")
    drawn = "all tables are what its tensors draw" if redraw else "its tables were not drawn again"
    lines = [
        f"{len(parts)} kinds of relations, each of which is in order",
        *signed,
        drawn,
        f"guarantee: {statement['guarantee']}",
    ]
    return Verification(
        folder, (), (), tuple(lines), float(statement["epsilon"]), statement["guarantee"]
    )


def _faults_of_statement(
    folder: Path, statement: dict[str, Any], parts: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Find contradictions between the statement, those of the kinds, their tensors and the card."""
    try:
        if statement != statement_of(statement, parts):
            yield f"{DATABASE}: it is not the sum of the statements of its kinds"
            return
        release = _opened(folder, statement)
        for kind, about in statement["relations"].items():
            method = release.kinds[kind].method
            names = [*(method.hparams.get("domains") or ())]
            for table, nodes, columns in release.ends(kind):
                size = len(range(method.hparams["num_nodes"])[nodes])
                own = [names[place].removeprefix(f"{table}.") for place in columns]
                of = statement["nodes"][table]
                if size != of["size"] or own != of["columns"] or method.kind != about["graph"]:
                    yield f"{DATABASE}: its facts of {table} are not those of {kind}"
        if (folder / PAGE).read_text(encoding="utf-8") != _page(folder, statement):
            yield f"{PAGE}: not the card of {DATABASE}"
    except INCOMPLETE as error:
        yield f"{DATABASE}: no statement ({type(error).__name__}: {error})"


def _faults_of_tables(folder: Path, statement: dict[str, Any]) -> Iterator[str]:
    """Find tables that differ from those that the tensors draw."""
    with tempfile.TemporaryDirectory() as scratch:
        new = Path(scratch)
        write_tables(_opened(folder, statement), new)
        drawn = {path.name for path in new.iterdir()}
        there = {path.name for path in folder.iterdir() if path.suffix in (".csv", ".parquet")}
        for name in sorted(drawn | there):
            if name not in there:
                yield f"{name}: missing"
            elif name not in drawn or not filecmp.cmp(folder / name, new / name, shallow=False):
                yield f"{name}: not the table that its tensors draw"
