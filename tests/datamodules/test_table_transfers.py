"""Amounts and times of a table, which are those of the file of its rows."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from lightning_dpg.datamodules import EdgeListDataModule, EdgeTableDataModule, Nodes
from tests.apps.book.conftest import server  # noqa: F401  # a fixture
from tests.datamodules.test_table_sources import SOURCES, spark, stored  # noqa: F401

pytestmark = pytest.mark.usefixtures("ids_in_order")

pytest.importorskip("ibis", reason="no ibis: install the extra 'tables'")

AMOUNTS = {"weight": "amount", "weight_max": 500}
TIMES = {"time": "at", "time_window": "2026-01-01,2026-02-04"}
FORMS = {"both": "undirected", "amounts": "directed", "times": "bipartite"}
READ = {"both": AMOUNTS | TIMES, "amounts": AMOUNTS, "times": TIMES}


def rows_of(kind, number=900):
    """Rows with loops, ties of all keys, clipped amounts, empty cells and days outside of the window."""
    draw = np.random.default_rng(3)
    ends = draw.integers(0, 60, (number, 2)) // np.array([1, 2])
    amounts = np.round(draw.gamma(1, 200, number), 3)
    amounts[::7] = 12.345  # ties, which are rounded to the even cent by their floating point
    hours = draw.integers(0, 40 * 12, number) * 2
    start = np.datetime64("2025-12-30", "us")
    at = start + hours.astype("timedelta64[h]") + draw.integers(0, 2, number) * 999_999
    ends, amounts, at = (np.concatenate([part, part[:60]]) for part in (ends, amounts, at))
    other = "s" if kind == "bipartite" else "n"
    absent = {"amount": np.arange(len(at)) % 31 == 5, "at": np.arange(len(at)) % 29 == 3}
    return pa.table(
        {
            "source": [f"n{payer}" for payer in ends[:, 0]],
            "target": [f"{other}{payee}" for payee in ends[:, 1]],
            "amount": pa.array(amounts, mask=absent["amount"]),
            "at": pa.array(at, mask=absent["at"]),
        }
    )


def both(rows, engine, folder, request, **settings):
    """Data modules of a table: where an engine keeps it, and of its file in memory."""
    source, table = stored(engine, rows, folder, request)
    there = EdgeTableDataModule(source, **table, **settings)
    parquet.write_table(rows, folder / "here.parquet")
    here = EdgeListDataModule(str(folder / "here.parquet"), **settings)
    for data in (there, here):
        data.setup("fit")
    return there, here


@pytest.mark.parametrize("read", READ)
def test_transfers_and_identity_are_those_of_rows_in_memory(read, tmp_path, request):
    form = FORMS[read]
    settings = {"kind": form, "undirected": form == "undirected", "columns": READ[read]}
    there, here = both(rows_of(form), "postgresql", tmp_path, request, **settings)
    assert there.identity() == here.identity()
    assert there.assumptions == here.assumptions
    assert there.summary.partition("; rows of")[2] == here.summary.partition("; rows of")[2]
    found, expected = there.records.transfers, here.records.transfers
    assert found.bounds == expected.bounds and len(found.pairs)
    for one, other in zip(found[:3], expected[:3], strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def raw(data):
    """Rows of transfers as they were read, in no order."""
    _ = data.graph
    pairs, amounts, times = data._transfer_rows()
    columns = [part.tolist() for part in (amounts, times) if part is not None]
    names = [
        (data.graph.node_names[i], data.graph.node_names[j]) for i, j in pairs.tolist() if i != j
    ]
    loops = (pairs[:, 0] == pairs[:, 1]).tolist()
    kept = [[cell for cell, loop in zip(part, loops, strict=True) if not loop] for part in columns]
    return sorted(zip(names, *kept, strict=True))


TINY = np.random.default_rng(0)


def columns_of(name):
    """Cells of a column, and the settings that read it."""
    year = {"time": "cell", "time_window": "2026-01-01,2026-12-31"}
    zone = year | {"time_zone": "Europe/Berlin"}
    amounts = {"weight": "cell", "weight_max": 1e6}
    stamps = np.array(
        ["2026-01-01", "2026-03-29T00:59:59.9", "2026-03-29T01:00:00.9", "2026-10-25T00:59",
         "2026-10-25T01:00", "2026-12-31T22:59:59", "2026-12-31T23:30", "2025-12-31T22:30", "NaT"],
        "datetime64[us]",
    )  # fmt: skip
    decimals = [decimal.Decimal(n) for n in ("0.0050", "1.0050", "1.0150", "3.1250", "77.0000")]
    return {
        "floats": (pa.array([*TINY.random(200).round(3), np.nan, 0.125, 0.375, 2.5, 1e300, None]), amounts),
        "whole numbers": (pa.array([0, 5, None, 2**62]), amounts),
        "decimals": (pa.array(decimals), amounts),
        "stamps": (pa.array(stamps), year),
        "moments": (pa.array(stamps, pa.timestamp("us", "UTC")), zone),
        "days": (pa.array([dt.date(2026, 1, 1), dt.date(2026, 12, 31), dt.date(1969, 1, 1), None]), year),
        "seconds": (
            pa.array([1774746000 - 1, 1774746000, -5, None]), zone | {"time_format": "unix"}
        ),
        "milliseconds": (
            pa.array([1774746000999, 1774745999999, -1, None]), zone | {"time_format": "unix_ms"}
        ),
    }[name]  # fmt: skip


COLUMNS = [
    "floats",
    "whole numbers",
    "decimals",
    "stamps",
    "moments",
    "days",
    "seconds",
    "milliseconds",
]


@pytest.mark.parametrize(
    "kind", ["postgresql", pytest.param("expression of postgresql", marks=pytest.mark.slow)]
)
def test_cells_are_the_whole_numbers_of_files(kind, tmp_path, request):
    for number, name in enumerate(COLUMNS):
        cells, columns = columns_of(name)
        number_of = np.arange(len(cells))
        rows = pa.table({"source": number_of, "target": 1000 + number_of, "cell": cells})
        folder = tmp_path / str(number)
        folder.mkdir()
        there, here = both(rows, kind, folder, request, columns=columns)
        assert raw(there) == raw(here), name
        assert len(raw(here)) > 1


def test_a_csv_file_is_read_by_an_engine_as_in_memory(tmp_path):
    lines = ["payer,payee,amount,at", "a,b,3.5,2026-01-02 10:00", "b,c,,2026-01-02 10:00",
             "b,a,1e2,2026-01-03 11:30", "c,a,7,2025-12-31 10:00", "c,b,2,2026-01-04 09:00"]  # fmt: skip
    (tmp_path / "pay.csv").write_text("\n".join(lines) + "\n")
    columns = READ["both"] | {"source": "payer", "target": 2, "weight": 3, "time": "4"}
    columns |= {"target": "payee"}
    data = [kind(str(tmp_path / "pay.csv"), undirected=True, columns=columns)
            for kind in (EdgeTableDataModule, EdgeListDataModule)]  # fmt: skip
    for each in data:
        each.setup("fit")
    assert raw(data[0]) == raw(data[1])
    assert len(raw(data[0])) == 3
    assert data[0].records.node_names == data[1].records.node_names


def test_where_rows_have_to_be_read_they_are_those_in_memory(tmp_path, request):
    settings = {"undirected": True, "columns": READ["both"]}
    split = {"val_fraction": 0.3, "seed": 1}
    there, here = both(rows_of("undirected"), "parquet", tmp_path, request, **settings, **split)
    one, other = (data.records.transfers for data in (there, here))
    assert len(one.pairs) < len(there.transfers.pairs)
    assert all(torch.equal(*pair) for pair in zip(one[:3], other[:3], strict=True))
    numbered = {"nodes": Nodes(names="numbers")}
    there, here = both(rows_of("undirected"), "parquet", tmp_path, request, **settings, **numbered)
    assert there.records.transfers.amounts.sum() == here.records.transfers.amounts.sum()
    assert there.identity() == here.identity()


def test_files_of_a_pattern_are_read_as_one(tmp_path):
    at = pa.array(np.array(["2026-01-05T10:00:00.5", "2026-01-06T11:00"], "datetime64[ns]"))
    settings = {"columns": AMOUNTS | TIMES | {"time_zone": "Europe/Berlin"}, "undirected": True}
    for zone in ("UTC", "America/New_York"):
        stamps = at.cast(pa.timestamp("ns", zone))
        ends = {"source": ["n1 ", "n1"], "target": ["n2", "\u2003n3"]}
        rows = pa.table(ends | {"amount": [1.005, 7], "at": stamps})
        for part in range(2):
            parquet.write_table(rows.slice(part, 1), tmp_path / f"part{part}.parquet")
        parquet.write_table(rows, tmp_path / "whole.parquet")
        found = []
        for source in ("part*.parquet", "whole.parquet"):
            data = EdgeTableDataModule(str(tmp_path / source), **settings)
            data.setup("fit")
            found.append((raw(data), data.identity()))
        assert found[0] == found[1]
        assert found[0][0][0][:2] == (("n1", "n2"), 100)
