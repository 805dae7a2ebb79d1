"""The fit of a database: one run for each kind of relation, and a release of all of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.budget_book import names_book, reserve_at_once
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules.database import BUILT_IN_DATABASES, RECORD, DatabaseDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.node_names import user_path
from lightning_dpg.outcome import note
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Approximate, LedgerEntry, Relation
from lightning_dpg.release.checksums import digest
from lightning_dpg.release.database import DatabaseRelease, statement_of, write_database
from lightning_dpg.run.messages import readable_errors
from lightning_dpg.run.method_choice import MethodChoice, choose_method
from lightning_dpg.run.python import data_module, fit
from lightning_dpg.run_folder import (
    KINDS,
    NOT_PRIVATE,
    RELEASE,
    SCHEMA,
    SUMS,
    owner_only,
    release_in,
)


def fit_database(
    schema: str | Path | Mapping[str, Any] | DatabaseDataModule,
    *,
    epsilon: float,
    out: str | Path,
    row_epsilon: float | None = None,
    delta: float = 0.0,
    seed: int = 0,
    card: Mapping[str, str] | None = None,
    book: str | None = None,
    dataset: str | None = None,
) -> DatabaseRelease:
    """Fit a whole private database within a budget, and open its release.

    Each kind of relation has a run of its own, at the whole epsilon: a relation is in one kind. The
    budget of the private columns of a node table is divided among the kinds that touch it. All plans are
    checked before the first run spends anything. A run that fails or is killed leaves those before it,
    with their journals, and no release of the whole.

    Args:
        schema: Schema of the database, see :class:`lightning_dpg.datamodules.DatabaseDataModule`.
        epsilon: Budget of one relation of any kind.
        out: New or empty folder of the run.
        row_epsilon: Budget of the private columns of one node, over all kinds together.
        delta: Budget of one relation.
        seed: Public seed of the training.
        card: Texts of the owner for the cards of all kinds.
        book: URL of the budget book, in which the database is one data set. The whole budget is booked
            before the first kind is read.
        dataset: Name of the database in the book; by default it is recognized.

    Returns:
        The open release.

    Raises:
        CommandError: If the schema, the data or a budget is refused. Nothing is spent then.

    Example:
        >>> import tempfile
        >>> import lightning_dpg as dpg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     bank = dpg.fit_database(
        ...         "small_database", epsilon=1.0, row_epsilon=1.0, out=f"{folder}/run"
        ...     )
        ...     list(bank.tables(seed=1))
        ['person', 'account', 'merchant', 'owns', 'transfers', 'buys']
    """
    folder = Path(out).expanduser()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder}: there are files already\ngive a new folder")
    with readable_errors(), owner_only():
        PrivacyAccountant(epsilon, delta, row_epsilon=row_epsilon)  # refuses what is no budget
        data = schema if isinstance(schema, DatabaseDataModule) else DatabaseDataModule(schema)
        data.setup("fit")
        shares = _row_shares(data, row_epsilon)
        chosen = {kind: _method(data, kind) for kind in data.schema.relations}
        for kind, each in chosen.items():
            _check(data, kind, each, Budget(epsilon, delta), shares[kind])
        account = None
        if names_book(book, dataset):
            cost = _entries(data, epsilon, delta, row_epsilon)
            account = reserve_at_once(book, dataset, data.identity(), "database", cost, folder)
        releases = {}
        try:
            for kind, each in chosen.items():
                note(f"{kind}: {each.method.__name__}")
                fit(
                    data.relation(kind),
                    each.build(data.relation(kind)),
                    epsilon=epsilon,
                    delta=delta,
                    row_epsilon=shares[kind],
                    seed=seed,
                    out=folder / KINDS / kind,
                    card=card,
                    book=book if account is None else _Part(),
                )
                releases[kind] = release_in(folder / KINDS / kind)
            data.write_key(folder)
            if isinstance(schema, str | Path):
                (folder / SCHEMA).write_text(_absolute(schema, data), encoding="utf-8")
            names = {each.name for each in releases.values()}
            place = folder / (RELEASE if names == {RELEASE} else NOT_PRIVATE)
            release = write_database(_facts(data), releases, place)
        except BaseException:
            if account is not None:
                account.close("stopped")
            raise
        if account is not None and (line := account.close("ended", digest(place / SUMS))):
            note(line)
        return release


class _Part:
    """The account of one kind of a database, which the book has as a whole."""

    def record(self, *entries: LedgerEntry) -> None:
        """Accept a read: the whole cost of the database is booked before."""

    def affords(self, entries: Sequence[LedgerEntry]) -> bool:
        """Return that it is booked; the ledger of the kind knows the budget of the kind."""
        return True

    def close(self, outcome: str, release: str | None = None) -> None:
        """Leave the database open for the kinds that follow."""


def _entries(
    data: DatabaseDataModule, epsilon: float, delta: float, row_epsilon: float | None
) -> list[LedgerEntry]:
    """Return the whole cost of a database: what no kind exceeds, and all columns of one node.

    Over several runs the sum of these costs bounds the sum of any one kind, which is what one relation
    costs, even if each run has another most expensive kind. Where a kind protects one transfer, so does
    the total, since whatever protects a relation with all its transfers protects each of them.
    """
    is_of_one = any(each.unit == "transfer" for each in data.schema.relations.values())
    relations = [
        (Relation.TRANSFER if is_of_one else Relation.EDGE, epsilon, delta),
        *([] if row_epsilon is None else [(Relation.ATTRIBUTES, row_epsilon, 0.0)]),
    ]
    return [
        LedgerEntry(
            key=f"database_{relation}",
            name="all kinds of relations" if part == 0 else "private columns in all kinds",
            relation=relation,
            event=Approximate(*cost),
            sensitivity=1.0,
            proof=statement_of.__name__,
            record=RECORD if relation is Relation.EDGE else "",
        )
        for part, (relation, *cost) in enumerate(relations)
    ]


def _absolute(schema: str | Path, data: DatabaseDataModule) -> str:
    """Return a schema whose files have absolute paths, for commands that read the data again."""
    if schema in BUILT_IN_DATABASES:
        return f"{schema}\n"
    content, read = yaml.safe_load(user_path(schema).read_text(encoding="utf-8")), data.schema
    if read.source is not None:
        content["source"] = read.source
    for part, tables in (("nodes", read.nodes), ("relations", read.relations)):
        for name, each in tables.items():
            if isinstance(each.table, Path):
                content[part][name]["table"] = str(each.table.absolute())
    return yaml.safe_dump(content, sort_keys=False)


def _row_shares(data: DatabaseDataModule, row_epsilon: float | None) -> dict[str, float | None]:
    """Divide the budget of rows: each kind gets the smallest share of the tables that it reads."""
    reading = [kind for kind in data.schema.relations if data.reads_columns(kind)]
    if reading and row_epsilon is None:
        raise CommandError(
            "--row-epsilon is missing: it is the budget of the private columns of one node\n"
            "such as: --row-epsilon 1"
        )
    if not reading and row_epsilon is not None:
        raise CommandError(
            "--row-epsilon is the budget of private columns, and no table of nodes has one\n"
            "leave it out, or name them in the schema"
        )
    times = Counter(
        table
        for kind in reading
        for table in data.relation(kind).ends
        if data.schema.nodes[table].private
    )
    return {
        kind: row_epsilon / max(times[table] for table in data.relation(kind).ends)
        if kind in reading and row_epsilon is not None
        else None
        for kind in data.schema.relations
    }


def _method(data: DatabaseDataModule, kind: str) -> MethodChoice:
    """Choose the method of a kind: the structure that learns its sort of graph, with all that it holds."""
    of = data.schema.relations[kind]
    structure = "bter" if of.kind == "undirected" else "chung_lu"
    has_columns, has_transfers = data.reads_columns(kind), bool(of.columns.values)
    if not has_columns and not has_transfers:
        return choose_method(structure, {})
    return choose_method("attributed", {"structure": structure, "unit": of.unit})


def _check(
    data: DatabaseDataModule,
    kind: str,
    chosen: MethodChoice,
    budget: Budget,
    row_epsilon: float | None,
) -> None:
    """Refuse a budget that the plan of a kind exceeds, with its name."""
    module = data_module(data.relation(kind), chosen)
    method = chosen.build(module)
    method.accept_data(module)
    rows = None if row_epsilon is None else Budget(row_epsilon, 0.0)
    try:
        method.accept_budget(budget, 1, rows)
    except MisconfigurationException as error:
        raise CommandError(f"{kind}: {error}") from error


def _facts(data: DatabaseDataModule) -> dict[str, Any]:
    """List what is public about the tables."""
    schema = data.schema
    return {
        "nodes": {
            name: {
                "id": table.id,
                "size": len(data.table(name).ids),
                "names": schema.names,
                "columns": [*table.private],
            }
            for name, table in schema.nodes.items()
        },
        "relations": {
            name: {
                "between": [*of.between],
                "graph": of.kind,
                "exactly_one": of.exactly_one,
                **of.names,
            }
            for name, of in schema.relations.items()
        },
    }
