"""Engines of other processes: PostgreSQL, Spark, and the connection of an Ibis expression."""

import os
import re
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, urlencode, urlsplit

from numpy.typing import NDArray

from lightning_dpg.datamodules.table_engine import ASCII_SPACES, TableEngine, written
from lightning_dpg.graph.node_names import GraphFormatError

_SECONDS = 10
"""Longest wait for a server."""
_ROWS = 100_000
"""Rows that become Python objects at a time."""
_TYPES = {"i": "BIGINT", "O": "TEXT"}
"""Types of PostgreSQL by the kind of a column of numpy."""


class PostgresEngine(TableEngine):
    """A PostgreSQL server, asked in transactions that only read."""

    dialect = "postgres"
    order = ' COLLATE "C"'
    spaces = ASCII_SPACES  # a database may have an encoding without others
    _holds_snapshot = False

    def __init__(self, url: SplitResult) -> None:
        import adbc_driver_postgresql.dbapi as postgres
        import pyarrow

        if "@" in url.path + url.query + url.fragment:
            raise GraphFormatError(
                "source: an @ behind the host of a PostgreSQL URL\n"
                "a password belongs into the file ~/.pgpass or the variable PGPASSWORD, and\n"
                "a user name with one of @ : / ? # is written in percent form, such as %40 for @"
            )
        query = parse_qs(url.query)
        place = url.netloc.rpartition("@")[2] or query.get("host", ["localhost"])[0]
        super().__init__(f"postgresql://{place}{url.path}")
        # A connection that ends between two batches is an error of the reader of batches.
        self.failures = (postgres.Error, pyarrow.ArrowException, OSError)
        if url.password is not None or {"password", "sslpassword"} & query.keys():
            raise GraphFormatError(
                f"{self.origin}: the URL holds a password, which the files of a run would keep\n"
                "put it into the file ~/.pgpass or the variable PGPASSWORD, and leave it out here"
            )
        (seconds,) = query.setdefault("connect_timeout", [str(_SECONDS)])[:1]
        # libpq takes a plus for itself, not for a space.
        settings = urlencode(query, doseq=True, quote_via=quote)
        # By hand: ``geturl`` leaves out the slashes of an empty host, which is the local server.
        address = f"postgresql://{url.netloc}{url.path}?{settings}"
        try:
            self._connection = postgres.connect(address, autocommit=True)
        except postgres.Error as error:
            raise GraphFormatError(
                f"{place if ':' in place else f'{place}:5432'}: {_reason(str(error))}\n"
                f"expected a PostgreSQL server that answers within {seconds} s; check host, port and user\n"
                "a password belongs into the file ~/.pgpass or the variable PGPASSWORD"
            ) from None
        self._execute("SET default_transaction_read_only = on")
        # The planner has no statistics of grouped rows, and would loop over both sides of a join.
        self._execute("SET enable_nestloop = off")

    def _execute(self, *statements: str) -> None:
        with self._explained(), self._connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)

    @contextmanager
    def _may_write(self) -> Iterator[None]:
        """Allow temporary tables."""
        self._execute("SET default_transaction_read_only = off")
        try:
            yield
        finally:
            self._execute("SET default_transaction_read_only = on")

    def define(self, name: str, sql: str, *, keep: bool = False) -> None:
        """Give a query a name; rows that are needed often go to a temporary table."""
        if not keep or self._holds_snapshot:
            super().define(name, sql)
            return
        # A name of its own: a temporary table would hide one of the user with an equal name.
        table_name = self._own_name(name)
        try:
            with self._may_write():
                self._execute(
                    f"CREATE TEMPORARY TABLE {table_name} AS {self.complete(sql)}",
                    f"ANALYZE pg_temp.{table_name}",  # temporary tables get no statistics otherwise
                )
            self._queries[name] = f"NOT MATERIALIZED (SELECT * FROM pg_temp.{table_name})"
        except GraphFormatError:  # without the right to make a table, each count runs the query
            super().define(name, sql)
            self._hold_snapshot()

    def _hold_snapshot(self) -> None:
        """Ask all further queries of the same rows, whatever others write meanwhile."""
        self._execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self._holds_snapshot = True

    def _batches(self, sql: str) -> Iterator[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            yield from cursor.fetch_record_batch()

    def upload(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Put public columns into a temporary table, which ends with the connection."""
        import pyarrow

        if self._holds_snapshot:
            self._refuse(PermissionError("permission denied to create temporary tables"))
        table_name, table = self._own_name(name), pyarrow.table(dict(columns))
        with self._may_write():
            with self._explained(), self._connection.cursor() as cursor:
                cursor.adbc_ingest(table_name, table, mode="replace", temporary=True)
            self._execute(f"ANALYZE pg_temp.{table_name}")
        self._queries[name] = f"NOT MATERIALIZED (SELECT * FROM pg_temp.{table_name})"

    def tables(self) -> list[str]:
        """Return the names of the tables, with their schema where a query needs it."""
        sql = (
            "SELECT table_schema::text, table_name::text, "
            "coalesce(table_schema::name = ANY(current_schemas(false)), false) "
            "FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
        )
        rows = (row.values() for batch in self._batches(sql) for row in batch.to_pylist())
        return [
            written(name) if is_near else f"{written(schema)}.{written(name)}"
            for schema, name, is_near in rows
        ]


def _reason(text: str) -> str:
    """Return why a server refused the connection, which libpq says last."""
    text = " ".join(text.split())
    match = re.search(
        r"Connection refused|timeout expired|could not translate host name|"
        r"password authentication failed|no password supplied|"
        r"server does not support SSL|"
        r"(?:database|role) \"[^\"]*\" does not exist",
        text,
    )
    last = re.split(r"failed: |Failed to connect: ", text)[-1].removeprefix("FATAL: ")
    reason = match[0] if match else last[:120]
    return (reason[:1].lower() + reason[1:]).strip()


class IbisPostgresEngine(PostgresEngine):
    """The connection of an Ibis table expression on PostgreSQL, whose settings stay as they are.

    Args:
        backend: Connection of Ibis, which is one of psycopg.
        relation: The expression in SQL.
    """

    def __init__(self, backend: Any, relation: str) -> None:
        import psycopg

        TableEngine.__init__(self, "ibis table", relation)
        self.failures = (psycopg.Error,)
        self._connection = backend.con

    @contextmanager
    def _may_write(self) -> Iterator[None]:
        """Leave the user's connection as it is."""
        yield

    def _hold_snapshot(self) -> None:
        """Refuse: a transaction that stays open would change the user's connection."""
        self._refuse(PermissionError("permission denied to create temporary tables"))

    def columns(self, relation: str, name: str | None) -> dict[str, str]:
        """Return the columns of a relation and their types in Arrow, or of PostgreSQL for others."""
        arrow_names = {"int2": "int16", "int4": "int32", "int8": "int64", "numeric": "decimal128"}
        arrow_names |= {"float4": "float", "float8": "double", "date": "date32[day]"}
        arrow_names |= {"timestamp": "timestamp[us]", "timestamptz": "timestamp[us, tz=UTC]"}
        arrow_names |= dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid"), "string")
        types = self._connection.adapters.types
        with self._explained(), self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {relation} LIMIT 0")
            types_by_column = {
                column.name: getattr(types.get(column.type_code), "name", "another type")
                for column in cursor.description
            }
        self.known_columns += types_by_column
        return {column: arrow_names.get(type_, type_) for column, type_ in types_by_column.items()}

    def _batches(self, sql: str) -> Iterator[Any]:
        import pyarrow

        # All settings end with the transaction; a named cursor reads piece by piece.
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute("SET LOCAL transaction_read_only = on")
            cursor.execute("SET LOCAL enable_nestloop = off")
            with self._connection.cursor(self._own_name("cursor")) as rows:
                rows.execute(sql)
                names = [column.name for column in rows.description]
                while block := rows.fetchmany(_ROWS):
                    columns = [pyarrow.array(column) for column in zip(*block, strict=True)]
                    yield pyarrow.record_batch(columns, names=names)

    def upload(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Put public columns into a temporary table, which ends with the connection."""
        table_name = self._own_name(name)
        types = ", ".join(
            f'"{column}" {_TYPES[values.dtype.kind]}' for column, values in columns.items()
        )
        self._execute(
            f"DROP TABLE IF EXISTS pg_temp.{table_name}",
            f"CREATE TEMPORARY TABLE {table_name} ({types})",
        )
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        to_table = f"COPY pg_temp.{table_name} FROM STDIN"
        with (
            self._explained(),
            self._connection.cursor() as cursor,
            cursor.copy(to_table) as copy,
        ):
            for row in rows:
                copy.write_row(row)
        self._execute(f"ANALYZE pg_temp.{table_name}")
        self._queries[name] = f"NOT MATERIALIZED (SELECT * FROM pg_temp.{table_name})"


class SparkEngine(TableEngine):
    """A session of Spark in this process, whose cluster runs the queries.

    Args:
        origin: Place that errors name.
        session: The session.
        relation: The only relation, such as an Ibis table expression, in SQL; else None.
    """

    dialect = "pyspark"
    grammar = "spark"
    is_cluster = True
    group = "$1"

    def __init__(self, origin: str, session: Any, relation: str | None = None) -> None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        super().__init__(origin, relation)
        self.failures = (PySparkException, Py4JError, OSError)
        self._session = session

    def _batches(self, sql: str) -> Iterator[Any]:
        yield from self._session.sql(sql).toArrow().to_batches()

    def define(self, name: str, sql: str, *, keep: bool = False) -> None:
        """Give a query a name; the cluster caches rows that are needed often."""
        if not keep:
            super().define(name, sql)
            return
        with self._explained():
            # A name of its own: a view would replace one of the user with an equal name.
            self._session.sql(self.complete(sql)).createOrReplaceTempView(self._own_name(name))
            self._session.sql(f"CACHE TABLE {self._own_name(name)}")
        self._queries[name] = f"(SELECT * FROM {self._own_name(name)})"

    def upload(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Put public columns into a temporary view."""
        import pyarrow

        with self._explained():
            rows = self._session.createDataFrame(pyarrow.table(dict(columns)))
            rows.createOrReplaceTempView(self._own_name(name))
        self._queries[name] = f"(SELECT * FROM {self._own_name(name)})"

    def tables(self) -> list[str]:
        """Return the names of the tables."""
        return [row.tableName for row in self._session.sql("SHOW TABLES").collect()]


def open_spark(url: str) -> SparkEngine:
    """Connect to the Spark cluster of a URL, or take the session that this process has there.

    Args:
        url: ``spark://HOST:PORT`` of the master of a cluster; ``spark://local[2]`` runs Spark in
            this process, and ``spark://local-cluster[2,1,1024]`` two workers of this machine.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    name = url.removeprefix("spark://")
    is_local = re.fullmatch(r"local(-cluster)?(\[.*\])?", name) is not None
    if not is_local:
        _refuse_absent(url, name)
    if shutil.which("java", path=_java_path()) is None:
        raise GraphFormatError(f"{url}: Spark needs Java 17\ninstall it, or set JAVA_HOME")
    master = name if is_local else url
    builder = SparkSession.builder.master(master).appName("lightning_dpg")
    try:
        session = builder.config("spark.ui.showConsoleProgress", False).getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise GraphFormatError(f"{url}: {' '.join(str(error).split())[:200]}") from None
    if session.sparkContext.master != master:
        raise GraphFormatError(
            f"{url}: this process has a session of Spark on {session.sparkContext.master}\n"
            "name that one as the source, or stop it"
        )
    return SparkEngine(url, session)


def _java_path() -> str | None:
    """Return the folders in which Spark looks for Java."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin" if home else None


def _refuse_absent(url: str, places: str) -> None:
    """Refuse masters that do not answer, for which Spark would wait a minute."""
    reason = ""
    for place in places.split(","):
        try:
            parts = urlsplit(f"spark://{place}")
            socket.create_connection((parts.hostname, parts.port or 7077), _SECONDS).close()
            return
        except (OSError, ValueError) as error:
            reason = str(getattr(error, "strerror", None) or error).lower()
    raise GraphFormatError(
        f"{url}: {reason}\nexpected the master of a Spark cluster that answers within {_SECONDS} s\n"
        "give its host and port, such as spark://host:7077"
    )
