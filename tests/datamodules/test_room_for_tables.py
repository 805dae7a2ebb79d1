"""An engine that runs out of memory or disk names that, and not a damaged file."""

import pytest
from pyarrow import parquet

from lightning_dpg.graph.node_names import GraphFormatError

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("ibis")


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
