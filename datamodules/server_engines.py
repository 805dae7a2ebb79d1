"""Engines of other processes: PostgreSQL, Spark, and the connection of an Ibis expression."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlencode

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.datamodules.table_engine import ASCII_SPACES, TableEngine
from lightning_dpg.graph.node_names import GraphFormatError

_SECONDS = 10
"""Longest wait for a server."""
_ONLY_READ = "SET default_transaction_read_only = on"
_MAY_WRITE = "SET default_transaction_read_only = off"


class PostgresEngine(TableEngine):
    """A PostgreSQL server, asked in transactions that only read."""

    dialect = "postgres"
    order = ' COLLATE "C"'
    spaces = ASCII_SPACES  # a database may have an encoding without others

    def __init__(self, url: SplitResult) -> None:
        import adbc_driver_postgresql.dbapi as postgres

        super().__init__(f"postgresql://{url.hostname}{url.path}")
        self.failures = (postgres.Error,)
        if url.password is not None:
            raise GraphFormatError(
                f"{self.origin}: the URL holds a password, which the files of a run would keep\n"
                "put it into the file ~/.pgpass or the variable PGPASSWORD, and leave it out here"
            )
        query = {"connect_timeout": [str(_SECONDS)], **parse_qs(url.query)}
        address = url._replace(query=urlencode(query, doseq=True)).geturl()
        try:
            self._connection = postgres.connect(address, autocommit=True)
        except postgres.Error as error:
            text = " ".join(str(error).split())
            reason = re.search(
                r"Connection refused|timeout expired|could not translate host name|"
                r"password authentication failed|no password supplied|"
                r"(?:database|role) \"[^\"]*\" does not exist",
                text,
            )
            where = f"{url.hostname}:{url.port or 5432}"
            raise GraphFormatError(
                f"{where}: {reason[0].lower() if reason else text[-120:]}\n"
                "expected a PostgreSQL server that answers within 10 s; check host, port and user\n"
                "a password belongs into the file ~/.pgpass or the variable PGPASSWORD"
            ) from None
        self._execute(_ONLY_READ)
        # The planner has no statistics of grouped rows, and would loop over both sides of a join.
        self._execute("SET enable_nestloop = off")

    def _execute(self, *statements: str) -> None:
        with self._connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)

    def define(self, name: str, sql: str, *, keep: bool = False) -> None:
        """Give a query a name; rows that are needed often go to a temporary table."""
        if not keep:
            super().define(name, sql)
            return
        # A name of its own: a temporary table would hide one of the user with an equal name.
        kept = f"lightning_dpg_{name}"
        try:
            self._execute(
                _MAY_WRITE,
                f"DROP TABLE IF EXISTS pg_temp.{kept}",
                f"CREATE TEMPORARY TABLE {kept} AS {self.complete(sql)}",
                f"ANALYZE pg_temp.{kept}",  # temporary tables get no statistics otherwise
            )
            self._queries[name] = f"NOT MATERIALIZED (SELECT * FROM pg_temp.{kept})"
        except self.failures:  # without the right to make a table, each count asks anew
            super().define(name, sql)
        finally:
            self._execute(_ONLY_READ)

    def _batches(self, sql: str) -> Iterator[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            yield from cursor.fetch_record_batch()

    def upload(self, name: str, columns: Mapping[str, NDArray[np.int64]]) -> None:
        """Put numbers into a temporary table, which ends with the connection."""
        import pyarrow

        with self._explained(), self._connection.cursor() as cursor:
            cursor.execute(_MAY_WRITE)
            try:
                table = pyarrow.table(dict(columns))
                cursor.adbc_ingest(name, table, mode="replace", temporary=True)
                cursor.execute(f"ANALYZE pg_temp.{name}")
            finally:
                cursor.execute(_ONLY_READ)

    def tables(self) -> list[str]:
        """Names of the tables."""
        sql = (
            "SELECT table_name::text FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
        )
        return [name for batch in self._batches(sql) for name in batch.column(0).to_pylist()]


class SparkEngine(TableEngine):
    """A Spark cluster, through a session of this process."""

    dialect = "pyspark"
    grammar = "spark"
    group = "$1"

    def __init__(self, url: str) -> None:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        super().__init__(url)
        self.failures = (PySparkException,)
        master = url.removeprefix("spark://") if url.startswith("spark://local") else url
        self._session = SparkSession.getActiveSession() or (
            SparkSession.builder.master(master).appName("lightning_dpg").getOrCreate()
        )

    def _batches(self, sql: str) -> Iterator[Any]:
        yield from self._session.sql(sql).toArrow().to_batches()

    def define(self, name: str, sql: str, *, keep: bool = False) -> None:
        """Give a query a name, as a temporary view, cached by the cluster if it is needed often."""
        with self._explained():
            self._session.sql(sql).createOrReplaceTempView(name)
            if keep:
                self._session.sql(f"CACHE TABLE {name}")

    def upload(self, name: str, columns: Mapping[str, NDArray[np.int64]]) -> None:
        """Put numbers into a temporary view."""
        import pyarrow

        self._session.createDataFrame(pyarrow.table(dict(columns))).createOrReplaceTempView(name)

    def tables(self) -> list[str]:
        """Names of the tables."""
        return [row.tableName for row in self._session.sql("SHOW TABLES").collect()]


class IbisEngine(TableEngine):
    """The connection of an Ibis table expression on PostgreSQL or Spark."""

    def __init__(self, backend: Any, relation: str) -> None:
        engines: dict[str, type[TableEngine]]
        engines = {"postgres": PostgresEngine, "pyspark": SparkEngine}
        same = engines.get(backend.name)
        if same is None:
            raise GraphFormatError(
                f"an ibis table of {backend.name}\nexpected DuckDB, PostgreSQL or Spark"
            )
        self.dialect, self.grammar = same.dialect, same.grammar  # type: ignore[misc]
        self.group, self.order = same.group, same.order  # type: ignore[misc]
        self.spaces = same.spaces  # type: ignore[misc]
        super().__init__("ibis table", relation)
        from ibis.common.exceptions import IbisError

        self.failures, self._backend = (IbisError,), backend

    def _batches(self, sql: str) -> Iterator[Any]:
        yield from self._backend.sql(sql).to_pyarrow_batches()

    def upload(self, name: str, columns: Mapping[str, NDArray[np.int64]]) -> None:
        """Put numbers into a temporary table."""
        import pyarrow

        table = pyarrow.table(dict(columns))
        self._backend.create_table(name, table, temp=True, overwrite=True)

    def tables(self) -> list[str]:
        """Names of the tables."""
        return sorted(self._backend.list_tables())
