"""DuckDB, the engine of files and of its own databases, whose rows are read into memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from lightning_dpg.datamodules.table_engine import TableEngine, written
from lightning_dpg.graph.node_names import GraphFormatError


class DuckDBEngine(TableEngine):
    """DuckDB within this process, on files or on a file of its own."""

    grammar = "duckdb"
    ways: ClassVar[dict[str, str]] = {
        "Cannot compare values": "a column of text needs a cast, as all columns of CSV files do: "
        "where 'CAST(\"the column\" AS DOUBLE) > 5'",
        "Schema mismatch": "expected files with the same columns",
        "Could not set lock": "another program has it open: close that one first",
    }

    def __init__(
        self, origin: str, database: Path | None, relation: str | None, connection: Any = None
    ) -> None:
        import duckdb

        super().__init__(origin, relation)
        self.failures = (duckdb.Error, OSError)  # Arrow raises OSError while rows are read
        self._connection = connection
        if connection is None:
            with self._explained():
                self._connection = duckdb.connect(
                    str(database or ":memory:"), read_only=bool(database)
                )

    def _batches(self, sql: str) -> Iterator[Any]:
        yield from self._connection.sql(sql).to_arrow_reader(1 << 20)

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

        text = str(error)
        if isinstance(error, duckdb.OutOfMemoryException) or "No space left" in text:
            raise GraphFormatError(
                f"{self.origin}: no room for the rows that DuckDB puts aside\n"
                "set the variable TMPDIR to a folder with more room"
            ) from None
        is_parquet = self.relation is not None and self.relation.startswith("read_parquet")
        is_query = isinstance(error, duckdb.BinderException | duckdb.ConversionException)
        if is_parquet and not is_query and "Schema mismatch" not in text:
            raise GraphFormatError(
                f"{self.origin}: not a whole Parquet file\n"
                "get the file again, or write it again: it is damaged or cut short"
            ) from None
        super()._refuse(error)
