"""An engine that runs out of memory or disk names that, and not a damaged file."""

import pytest

from lightning_dpg.datamodules import duckdb_engine
from lightning_dpg.datamodules.duckdb_engine import DuckDBEngine
from lightning_dpg.graph.node_names import GraphFormatError

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("ibis")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize(
    "error",
    [
        duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate"),
        duckdb.IOException('IO Error: Could not write file "x.tmp": No space left on device'),
    ],
)
def test_no_room_is_not_a_damaged_file(error, tmp_path):
    import pyarrow

    from lightning_dpg.datamodules.table_source import open_engine

    path = tmp_path / "edges.parquet"
    parquet.write_table(pyarrow.table({"source": [0], "target": [1]}), path)
    with pytest.raises(GraphFormatError, match=r"no room for the rows.*\n.*TMPDIR"):
        open_engine(path)._refuse(error)


def test_kept_rows_wait_on_the_disk_between_queries(monkeypatch):
    monkeypatch.setattr(duckdb_engine, "_LEAST_MEMORY", 2**24)
    engine = DuckDBEngine("rows", None, None)
    engine.expect(2**24)
    engine.define("kept", "SELECT hash(range) AS number FROM range(4194304)", keep=True)
    used = "SELECT sum(memory_usage_bytes) AS used FROM duckdb_memory()"
    assert engine.row(used)[0] > 2**25
    assert engine.row(used)[0] <= 2**24 + 2**18  # DuckDB may keep one more of its blocks
    sums = [
        engine.row(f"SELECT bit_xor({number}) AS sum FROM {rows}")
        for number, rows in (("number", "kept"), ("hash(range)", "range(4194304)"))
    ]
    assert sums[0] == sums[1]
