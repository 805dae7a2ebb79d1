"""The engine of a source of tables: a file, a database, a cluster or an Ibis expression."""

import glob
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lightning_dpg.datamodules.duckdb_engine import DuckDBEngine
from lightning_dpg.datamodules.server_engines import (
    SparkEngine,
    open_postgres,
    open_spark,
    postgres_of,
)
from lightning_dpg.datamodules.table_engine import TableEngine
from lightning_dpg.formats.text_rows import check_lines, csv_head
from lightning_dpg.graph.node_names import GraphFormatError, user_path

_FILES = (".parquet", ".csv", ".tsv")
_EXPECTED = (
    "expected .parquet, .csv, .tsv or a pattern of these, duckdb:///FILE,\n"
    "postgresql://USER@HOST/DATABASE or spark://MASTER"
)


def open_engine(source: Any) -> TableEngine:
    """Open the source of a table.

    Args:
        source: Parquet file, CSV file or a pattern of such files, ``duckdb:///FILE``,
            ``postgresql://USER@HOST/DATABASE``, ``spark://MASTER``, or an Ibis table expression.
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
    return DuckDBEngine(text, None, _read_files(text))


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


def _read_files(pattern: str) -> str:
    """Return the call that reads files in DuckDB."""
    path = user_path(pattern)
    kind = path.name.lower().removesuffix(".gz")
    if path.is_dir():
        raise GraphFormatError(
            f"{pattern}: a folder\nexpected the pattern of its files, such as "
            f"'{pattern.rstrip('/')}/**/*.parquet'"
        )
    if not kind.endswith(_FILES):
        raise GraphFormatError(f"{pattern}: no table\n{_EXPECTED}")
    files = glob.glob(str(path), recursive=True)
    if not files:
        raise GraphFormatError(f"{pattern}: no such file")
    if kind.endswith(".parquet"):
        return f"read_parquet({_literal(str(path))})"
    return _read_csv(pattern, path, files)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _read_csv(pattern: str, path: Path, files: Sequence[str]) -> str:
    """Return the call that reads CSV files by their first row alone: nothing is guessed from others.

    DuckDB would choose separator, quotes, comments and the first line by what most rows look like, and
    would let a cell go on over many lines.
    """
    heads = [csv_head(Path(name)) for name in files]
    if any(head != heads[0] for head in heads):
        raise GraphFormatError(
            f"{pattern}: first rows that differ\nexpected files with the same columns, in one order"
        )
    line, separator, cells = heads[0]
    for name in files:
        check_lines(Path(name), separator)
    folded = [cell.casefold() for cell in cells]
    names = [
        cell if cell and folded.index(cell.casefold()) == place else f"{cell}_{place}"
        for place, cell in enumerate(cells)
    ]
    columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({_literal(str(path))}, auto_detect=false, header=true, skip={line}, "
        f"columns={{{columns}}}, delim={_literal(separator)}, quote='\"', escape='\"', comment='')"
    )


def _require(*modules: str, extra: str = "tables") -> None:
    """Refuse a source whose libraries are not installed."""
    missing_modules = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing_modules:
        raise GraphFormatError(
            f"tables need libraries that are not installed: {', '.join(missing_modules)}\n"
            f"pip install 'lightning_dpg[{extra}]'"
        )
