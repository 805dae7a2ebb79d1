"""DuckDB, the engine of files and of its own databases."""

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from numpy.typing import NDArray

from lightning_dpg.datamodules.table_engine import TableEngine, written
from lightning_dpg.graph.node_names import GraphFormatError

_LEAST_MEMORY = 256 * 2**20
_BYTES_PER_ROW = 24


class DuckDBEngine(TableEngine):
    """DuckDB within this process, on files or on a file of its own."""

    dialect = "duckdb"
    is_within_process = True
    order = " COLLATE C"

    def __init__(
        self, origin: str, database: Path | None, relation: str | None, connection: Any = None
    ) -> None:
        import duckdb

        super().__init__(origin, relation)
        self.failures = (duckdb.Error, OSError)  # Arrow raises OSError while rows are read
        self._connection = connection
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._limit = _LEAST_MEMORY
        if connection is not None:
            return
        with self._explained():
            self._connection = duckdb.connect(str(database or ":memory:"), read_only=bool(database))
        # Rows that exceed the memory go to a folder for the owner only, which ends with the object.
        self._scratch = tempfile.TemporaryDirectory(prefix="lightning_dpg-")
        self._connection.execute("SET temp_directory = ?", [self._scratch.name])
        self._connection.execute("SET preserve_insertion_order = false")

    def _batches(self, sql: str) -> Iterator[Any]:
        yield from self._connection.sql(sql).to_arrow_reader(1 << 16)
        self._put_aside()

    def define(self, name: str, sql: str, *, keep: bool = False) -> None:
        """Give a query a name, as a temporary view or table."""
        kind = "TABLE" if keep else "VIEW"
        with self._explained():
            self._connection.execute(
                f"CREATE OR REPLACE TEMP {kind} {self._own_name(name)} AS {self.complete(sql)}"
            )
        self._name_own(name)

    def _name_own(self, name: str) -> None:
        # A connection of the user may have tables of this name, or several graphs.
        self._queries[name] = f"NOT MATERIALIZED (SELECT * FROM temp.{self._own_name(name)})"

    def expect(self, num_rows: int) -> None:
        """Limit the memory of DuckDB in proportion to the rows; it spills to the disk beyond."""
        if self._scratch is not None:
            self._limit = max(_LEAST_MEMORY, _BYTES_PER_ROW * num_rows)
            self._set_limit(self._limit)

    def _put_aside(self) -> None:
        """Move kept rows to the disk after a query: what reads it needs the memory meanwhile."""
        if self._limit > _LEAST_MEMORY:
            with contextlib.suppress(*self.failures):  # a full disk: they stay where they are
                self._set_limit(_LEAST_MEMORY)
            self._set_limit(self._limit)

    def _set_limit(self, num_bytes: int) -> None:
        self._connection.execute(f"SET memory_limit = '{num_bytes}B'")

    def upload(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Put public columns into a temporary view."""
        import pyarrow

        self._connection.register(self._own_name(name), pyarrow.table(dict(columns)))
        self._name_own(name)

    def tables(self) -> list[str]:
        """Return the names of the tables."""
        rows = self._connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2"
        ).fetchall()
        return [
            written(name) if schema == "main" else f"{written(schema)}.{written(name)}"
            for schema, name in rows
        ]

    def _refuse(self, error: Exception) -> NoReturn:
        import duckdb

        text = " ".join(str(error).split())
        if isinstance(error, duckdb.OutOfMemoryException) or "No space left" in text:
            raise GraphFormatError(
                f"{self.origin}: no room for the rows that DuckDB puts aside ({text[:90]})\n"
                "set the variable TMPDIR to a folder with more room"
            ) from None
        is_parquet = self.relation is not None and self.relation.startswith("read_parquet")
        is_query = isinstance(error, duckdb.BinderException | duckdb.ConversionException)
        if is_parquet and not is_query and "Schema mismatch" not in text:
            raise cut_short(self.origin, text[:90])
        hints = {
            "destination type INT64": "expected numbers below 2^63\nmake a view that casts the ids "
            "to text, and read the view",
            "not utf-8 encoded": "save it as UTF-8",
            "CSV Error on Line": "expected as many cells as in the first row: correct the line",
            "Cannot compare values": "a column of text needs a cast, as all columns of CSV files do: "
            "where 'CAST(\"the column\" AS DOUBLE) > 5'",
            "Schema mismatch": "expected files with the same columns",
            "Could not set lock": "another program has it open: close that one first",
        }
        hint = next((way for sign, way in hints.items() if sign in text), None)
        if isinstance(error, duckdb.ConversionException | duckdb.InvalidInputException):
            text = re.sub(r"'[^']*'", "'...'", text)  # values of rows
        text = re.split(r" LINE \d+:| Possible | Potential Fixes| Original Line:", text)[0]
        if hint is None:
            super()._refuse(duckdb.Error(text))
        raise GraphFormatError(f"{self.origin}: {text[:200]}\n{hint}") from None


def cut_short(origin: str, reason: str) -> GraphFormatError:
    """Return the error of a damaged Parquet file."""
    return GraphFormatError(
        f"{origin}: not a whole Parquet file ({reason})\nit may be cut short: copy it anew"
    )
