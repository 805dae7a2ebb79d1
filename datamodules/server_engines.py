"""Engines of other processes, which count where the rows are: PostgreSQL and Spark."""

import os
import re
import shutil
import socket
import uuid
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar
from urllib.parse import SplitResult, parse_qs, quote, urlencode, urlsplit

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.datamodules.table_engine import TableEngine, written
from lightning_dpg.graph.node_names import GraphFormatError

_SECONDS = 10
"""Longest wait for a server."""


class ServerEngine(TableEngine):
    """An engine that counts: it answers queries of Ibis, and keeps their rows under names.

    Attributes:
        dialect: Name of the SQL dialect for Ibis.
    """

    dialect: ClassVar[str]

    def __init__(self, origin: str, relation: str | None) -> None:
        super().__init__(origin, relation)
        self._queries: dict[str, str] = {}
        self._mark = uuid.uuid4().hex[:12]

    @property
    @abstractmethod
    def may_keep(self) -> bool:
        """Whether the user may keep rows there, without which nothing can be counted."""

    @abstractmethod
    def _keep(self, name: str, sql: str) -> str:
        """Keep the rows of a query; return the SQL that reads them."""

    @abstractmethod
    def _upload(self, name: str, table: Any) -> str:
        """Keep a table of Arrow; return the SQL that reads it."""

    def define(self, name: str, query: Any, *, keep: bool = False) -> None:
        """Give a query of Ibis, or SQL, a name; ``keep`` says that its rows are needed several times."""
        sql = query if isinstance(query, str) else self._sql(query)
        self._queries[name] = (
            self._keep(self._own_name(name), self._complete(sql)) if keep else f"({sql})"
        )

    def upload(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Keep public columns under a name: whole numbers, or text as objects."""
        import pyarrow  # of the extra 'tables'

        self._queries[name] = self._upload(self._own_name(name), pyarrow.table(dict(columns)))

    def row(self, query: Any) -> list[int]:
        """Return the only row of a query of counts; sums of no rows are 0."""
        (only_row,) = (row for batch in self._found(query) for row in batch.to_pylist())
        return [int(value or 0) for value in only_row.values()]  # PostgreSQL has sums as text

    def texts(self, query: Any) -> list[str]:
        """Return the first column of a query of texts."""
        return [text for batch in self._found(query) for text in batch.column(0).to_pylist()]

    def numbers(self, query: Any) -> NDArray[np.int64]:
        """Return the rows of a query of whole numbers, shape ``(R, columns)``."""
        parts = [batch.astype(np.int64) for batch in self.numbers_in_batches(query)]
        return np.concatenate(parts) if parts else np.empty((0, len(query.columns)), np.int64)

    def numbers_in_batches(self, query: Any) -> Iterator[NDArray[Any]]:
        """Return the rows of a query of numbers batch by batch, shape ``(R, columns)`` each."""
        for batch in self._found(query):
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            yield np.stack(columns, axis=1)

    def _found(self, query: Any) -> Iterator[Any]:
        return self.batches(self._complete(self._sql(query)))

    def _sql(self, query: Any) -> str:
        import ibis  # of the extra 'tables'

        return str(ibis.to_sql(query, dialect=self.dialect))

    def _own_name(self, name: str) -> str:
        """Return a name that neither the user nor another engine gives."""
        return f"lightning_dpg_{self._mark}_{name}"

    def _complete(self, sql: str) -> str:
        """Put the named queries in front of a query."""
        own = ", ".join(f"{name} AS {query}" for name, query in self._queries.items())
        if not own:
            return sql
        is_more = sql.startswith("WITH ")
        return f"WITH {own}, {sql[5:]}" if is_more else f"WITH {own} {sql}"


class PostgresEngine(ServerEngine):
    """A PostgreSQL server, asked in transactions that only read.

    Args:
        origin: Place that errors name.
        address: URL of the server for libpq.
        relation: The only relation, such as an Ibis table expression, in SQL; else None.
    """

    grammar = dialect = "postgres"

    def __init__(self, origin: str, address: str, relation: str | None = None) -> None:
        import adbc_driver_postgresql.dbapi as postgres
        import pyarrow

        super().__init__(origin, relation)
        # A connection that ends between two batches is an error of the reader of batches.
        self.failures = (postgres.Error, pyarrow.ArrowException, OSError)
        self._connection = postgres.connect(address, autocommit=True)
        self._execute("SET default_transaction_read_only = on")
        # The planner has no statistics of grouped rows, and would loop over both sides of a join.
        self._execute("SET enable_nestloop = off")

    def _execute(self, *statements: str) -> None:
        with self._explained(), self._connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)

    @property
    def may_keep(self) -> bool:
        """Whether the user may make temporary tables, which a standby server cannot."""
        right = "has_database_privilege(current_database(), 'TEMP') AND NOT pg_is_in_recovery()"
        return bool(self.arrow(f"SELECT {right}").column(0)[0].as_py())

    @contextmanager
    def _may_write(self) -> Iterator[None]:
        """Allow temporary tables, which end with the connection."""
        self._execute("SET default_transaction_read_only = off")
        try:
            yield
        finally:
            self._execute("SET default_transaction_read_only = on")

    def _keep(self, name: str, sql: str) -> str:
        with self._may_write():
            self._execute(f"CREATE TEMPORARY TABLE {name} AS {sql}")
        return self._analyzed(name)

    def _upload(self, name: str, table: Any) -> str:
        with self._may_write(), self._explained(), self._connection.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="replace", temporary=True)
        return self._analyzed(name)

    def _analyzed(self, name: str) -> str:
        """Count values, which nobody else does for temporary tables; return the SQL that reads one."""
        with self._may_write():
            self._execute(f"ANALYZE pg_temp.{name}")
        return f"NOT MATERIALIZED (SELECT * FROM pg_temp.{name})"

    def _batches(self, sql: str) -> Iterator[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            yield from cursor.fetch_record_batch()

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


def open_postgres(url: SplitResult) -> PostgresEngine:
    """Connect to the PostgreSQL server of a URL.

    Raises:
        GraphFormatError: If it does not let in, or if the URL holds a password.
    """
    import adbc_driver_postgresql.dbapi as postgres

    if "@" in url.path + url.query + url.fragment:
        raise GraphFormatError(
            "source: an @ behind the host of a PostgreSQL URL\n"
            "a password belongs into the file ~/.pgpass or the variable PGPASSWORD, and\n"
            "a user name with one of @ : / ? # is written in percent form, such as %40 for @"
        )
    query = parse_qs(url.query)
    place = url.netloc.rpartition("@")[2] or query.get("host", ["localhost"])[0]
    origin = f"postgresql://{place}{url.path}"
    if url.password is not None or {"password", "sslpassword"} & query.keys():
        raise GraphFormatError(
            f"{origin}: the URL holds a password, which the files of a run would keep\n"
            "put it into the file ~/.pgpass or the variable PGPASSWORD, and leave it out here"
        )
    (seconds,) = query.setdefault("connect_timeout", [str(_SECONDS)])[:1]
    # libpq takes a plus for itself, not for a space.
    settings = urlencode(query, doseq=True, quote_via=quote)
    try:
        # By hand: ``geturl`` leaves out the slashes of an empty host, which is the local server.
        return PostgresEngine(origin, f"postgresql://{url.netloc}{url.path}?{settings}")
    except postgres.Error as error:
        raise GraphFormatError(
            f"{place if ':' in place else f'{place}:5432'}: {_reason(str(error))}\n"
            f"expected a PostgreSQL server that answers within {seconds} s; check host, port and user\n"
            "a password belongs into the file ~/.pgpass or the variable PGPASSWORD"
        ) from None


def postgres_of(connection: Any, relation: str) -> PostgresEngine:
    """Connect anew to the server of an Ibis table expression, whose connection stays as it is.

    Args:
        connection: Connection of psycopg.
        relation: The expression in SQL.
    """
    info = connection.info
    settings = {**info.get_parameters(), "password": info.password}
    address = f"postgresql:///?{urlencode(settings, quote_via=quote)}"
    return PostgresEngine("ibis table", address, relation)


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


class SparkEngine(ServerEngine):
    """A session of Spark in this process, whose cluster runs the queries.

    Args:
        origin: Place that errors name.
        session: The session.
        relation: The only relation, such as an Ibis table expression, in SQL; else None.
    """

    dialect = "pyspark"
    grammar = "spark"

    def __init__(self, origin: str, session: Any, relation: str | None = None) -> None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        super().__init__(origin, relation)
        self.failures = (PySparkException, Py4JError, OSError)
        self._session = session

    def _batches(self, sql: str) -> Iterator[Any]:
        yield from self._session.sql(sql).toArrow().to_batches()

    @property
    def may_keep(self) -> bool:
        """Whether rows may be kept: always, in the memory of the cluster."""
        return True

    def _keep(self, name: str, sql: str) -> str:
        with self._explained():
            self._session.sql(sql).createOrReplaceTempView(name)
            self._session.sql(f"CACHE TABLE {name}")
        return f"(SELECT * FROM {name})"

    def _upload(self, name: str, table: Any) -> str:
        with self._explained():
            self._session.createDataFrame(table).createOrReplaceTempView(name)
        return f"(SELECT * FROM {name})"

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
        raise GraphFormatError(
            f"{url}: Spark does not start ({type(error).__name__})\nstart pyspark by itself, which says why"
        ) from None
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
