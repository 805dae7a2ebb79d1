"""The engine of a source of tables: a file, a database, a cluster or an Ibis expression."""

import glob
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow

from lightning_dpg.datamodules.duckdb_engine import DuckDBEngine
from lightning_dpg.datamodules.server_engines import (
    SparkEngine,
    open_postgres,
    open_spark,
    postgres_of,
)
from lightning_dpg.datamodules.table_engine import TableEngine
from lightning_dpg.formats.edge_lists import read_text_table
from lightning_dpg.graph.node_names import GraphFormatError, user_path

_FILES = (".parquet", ".csv", ".tsv")
_EXPECTED = (
    "expected .parquet, .csv, .tsv or a pattern of these, duckdb:///FILE,\n"
    "postgresql://USER@HOST/DATABASE or spark://MASTER"
)


def open_engine(source: Any, names: Sequence[str] | None = None) -> TableEngine:
    """Open the source of a table.

    Args:
        source: Parquet file, CSV file or a pattern of such files, ``duckdb:///FILE``,
            ``postgresql://USER@HOST/DATABASE``, ``spark://MASTER``, or an Ibis table expression.
        names: Names of all columns of files of text whose first line is a row.
    """
    _require("ibis", "duckdb", "pyarrow")
    if not isinstance(source, str | Path):
        if not hasattr(source, "get_backend"):
            raise GraphFormatError(
                f"source: an object of type {type(source).__name__} is no table\n"
                "expected a path, a URL or an ibis table expression; a DataFrame is for "
                "EdgeListDataModule"
            )
        return _expression_engine(source)
    text = str(source)
    scheme = text.partition("://")[0] if "://" in text else ""
    if scheme == "duckdb":
        path = user_path(text.removeprefix("duckdb://").removeprefix("/"))
        if not path.is_file():
            raise GraphFormatError(
                f"{path}: no such file\nexpected a database of DuckDB: duckdb:///FILE, and with "
                "four slashes a path from the root (duckdb:////data/bank.duckdb)"
            )
        return DuckDBEngine(str(path), path, None)
    if scheme in ("postgresql", "postgres"):
        _require("adbc_driver_postgresql")
        return open_postgres(urlsplit(text))
    if scheme == "spark":
        _require("pyspark", extra="spark")
        return open_spark(text)
    if scheme:
        raise GraphFormatError(
            f"{scheme}://...: no database that is read here\n{_EXPECTED}\n"
            "a file of another machine, as of https:// or s3://: download it first"
        )
    return _engine_of_files(text, names)


def parquet_file(source: Any) -> Path | None:
    """Return the path of a source that is one Parquet file, which is read without an engine."""
    if not isinstance(source, str | Path) or not str(source).lower().endswith(".parquet"):
        return None
    path = user_path(source)
    return path if path.is_file() else None


def _expression_engine(expression: Any) -> TableEngine:
    """Return the engine of an Ibis table expression."""
    import ibis

    backend = expression.get_backend()
    relation = f"({ibis.to_sql(expression, dialect=backend.name)}) AS given"
    if backend.name == "duckdb":
        return DuckDBEngine("ibis table", None, relation, backend.con)
    if backend.name == "postgres":
        _require("adbc_driver_postgresql")
        return postgres_of(backend.con, relation)
    if backend.name == "pyspark":
        return SparkEngine("ibis table", backend.raw_sql("SELECT 1").sparkSession, relation)
    raise GraphFormatError(
        f"an ibis table of {backend.name}\nexpected one of DuckDB, PostgreSQL or Spark"
    )


def _engine_of_files(pattern: str, names: Sequence[str] | None) -> DuckDBEngine:
    """Return the engine of Parquet files, or of the rows of files of text."""
    import duckdb

    path = user_path(pattern)
    kind = path.name.lower().removesuffix(".gz")
    if path.is_dir():
        raise GraphFormatError(
            f"{pattern}: a folder\nexpected the pattern of its files, such as "
            f"'{pattern.rstrip('/')}/**/*.parquet'"
        )
    if not kind.endswith(_FILES):
        raise GraphFormatError(f"{pattern}: no table\n{_EXPECTED}")
    files = sorted(glob.glob(str(path), recursive=True))
    if not files:
        raise GraphFormatError(f"{pattern}: no such file")
    if kind.endswith(".parquet"):
        literal = str(path).replace("'", "''")
        return DuckDBEngine(pattern, None, f"read_parquet('{literal}')")
    tables = [read_text_table(Path(name), names) for name in files]
    if any(table.column_names != tables[0].column_names for table in tables):
        raise GraphFormatError(
            f"{pattern}: first rows that differ\nexpected files with the same columns, in one order"
        )
    connection = duckdb.connect()
    connection.register("rows_of_files", pyarrow.concat_tables(tables))
    return DuckDBEngine(pattern, None, "rows_of_files", connection)


def _require(*modules: str, extra: str = "tables") -> None:
    """Refuse a source whose libraries are not installed."""
    missing_modules = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing_modules:
        raise GraphFormatError(
            f"tables need libraries that are not installed: {', '.join(missing_modules)}\n"
            f"pip install 'lightning_dpg[{extra}]'"
        )
