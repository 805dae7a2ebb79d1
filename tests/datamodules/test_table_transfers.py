"""Amounts and times of a table: whole numbers, counts and releases equal to those of rows in memory."""

import datetime as dt
import decimal

import numpy as np
import pytest
import torch

from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, EdgeTableDataModule, Nodes
from lightning_dpg.datamodules.records import OneGraph
from lightning_dpg.errors import Refusal
from lightning_dpg.graph.transfer_counts import CountsTransfers, EndClasses, TransferStatistics
from lightning_dpg.methods import BTER, Attributed
from lightning_dpg.methods.single_graph.protected_unit import TransferFacts, counts_of
from lightning_dpg.preflight.data import check_data
from lightning_dpg.privacy.noise import NoiseSource
from tests.apps.book.conftest import server  # noqa: F401  # a fixture
from tests.datamodules.test_table_sources import SOURCES, spark, stored  # noqa: F401
from tests.training import quiet_trainer

pytestmark = pytest.mark.usefixtures("ids_in_order")

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
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


def all_counts(source, columns, space):
    """All counts of a source, by name."""
    of_end = np.arange(space.num_ends) % 3
    names = ["numbers"]
    arguments = {name: () for name in ("days", "hours", "gaps", "new_pairs")}
    if "weight" in columns:
        names += ["amounts", "sums", "strengths"]
        arguments |= dict.fromkeys(("amounts", "sums"), (EndClasses(of_end, (3, 3)),))
        arguments["strengths"] = (slice(2, space.num_nodes),)
    if "time" in columns:
        names += ["days", "hours", "gaps", "new_pairs"]
    return {name: getattr(source, name)(*arguments.get(name, ())) for name in names}


KINDS = [getattr(kind, "values", [kind])[0] for kind in SOURCES]
# Spark reads an expression as it reads a table, and takes about a second for each query.
READINGS = [
    pytest.param(kind, read, marks=[pytest.mark.slow] * is_slow)
    for kind in KINDS
    for read in (["both"] if kind == "expression of spark" else READ)
    for is_slow in ["spark" in kind or ("postgresql" in kind and read != "both")]
]


@pytest.mark.parametrize(("kind", "read"), READINGS)
def test_counts_and_releases_are_those_of_rows_in_memory(kind, read, tmp_path, request):
    for form in FORMS.values() if (kind, read) == ("postgresql", "both") else [FORMS[read]]:
        settings = {"kind": form, "undirected": form == "undirected", "columns": READ[read]}
        folder = tmp_path / form
        folder.mkdir()
        there, here = both(rows_of(form), kind, folder, request, **settings)
        found, expected = there.records.transfers, here.records.transfers
        assert isinstance(found, CountsTransfers) and found.bounds == expected.bounds
        units = ("relation", 3), ("transfer", 3), ("relation", 40)
        for unit, most in units[:2] if "spark" in kind else units:
            facts = TransferFacts(unit, most, expected.bounds, form, "edge")
            one, other = (counts_of(each, facts, here.space) for each in (found, expected))
            assert not isinstance(one, TransferStatistics)
            one, other = (all_counts(each, READ[read], here.space) for each in (one, other))
            for name, counts in other.items():
                assert counts.sum() > 0
                np.testing.assert_array_equal(one[name], counts, f"{name} of {form} {unit}")
        one, other = (released(data, "transfer") for data in (there, here))
        assert all(torch.equal(value, other[name]) for name, value in one.items())
        assert there.identity() == here.identity()
        assert there.assumptions == here.assumptions
        assert not isinstance(there.records, OneGraph) and there.transfers is None
        assert there.summary.partition("; rows of")[2] == here.summary.partition("; rows of")[2]


def released(data, unit):
    """Released tensors under noise that the test fixes."""
    module = Attributed(structure="chung_lu", unit=unit)
    module._noise = NoiseSource(unsafe_seed=5)
    quiet_trainer(PrivacyAccountant(4.0, 0.0, book=NO_BOOK)).fit(module, data)
    return module.released_state()


def test_a_relation_is_released_from_a_table_as_from_memory(tmp_path, request):
    settings = {"undirected": True, "columns": READ["both"]}
    there, here = both(rows_of("undirected"), "postgresql", tmp_path, request, **settings)
    one, other = (released(data, "relation") for data in (there, here))
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert not isinstance(there.records, OneGraph) and there.transfers is None
    with pytest.raises(
        Exception, match="amounts and times of transfers, and BTER does not protect"
    ):
        check_data(BTER, there)


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
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "postgresql")) for kind in KINDS],
)
def test_cells_are_the_whole_numbers_of_files(kind, tmp_path, request):
    for number, name in enumerate(COLUMNS):
        cells, columns = columns_of(name)
        number_of = np.arange(len(cells))
        rows = pa.table({"source": number_of, "target": 1000 + number_of, "cell": cells})
        folder = tmp_path / str(number)
        folder.mkdir()
        there, here = both(rows, kind, folder, request, columns=columns)
        by_server = numbers_there(there)
        assert raw(there) == raw(here), name  # the rows, read into memory
        assert by_server == numbers_of(here), name
        assert len(raw(here)) > 1


def numbers_there(data):
    """Amount or time of each transfer by its pair, as the server has them."""
    rows = data._table.numbered_rows()
    (name,) = {"amount", "time"} & set(rows.columns)
    found = data._table.engine.numbers(rows.select("source_number", "target_number", name))
    return sorted(map(tuple, found.tolist()))


def numbers_of(data):
    """Likewise in memory, where amounts are not clipped yet and times are those since 1970."""
    pairs, amounts, times = data._transfer_rows()
    first = int(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp())
    values = amounts if times is None else times - first
    return sorted(zip(*pairs.T.tolist(), values.tolist(), strict=True))


def test_a_clock_changes_on_the_second_and_may_go_back():
    from zoneinfo import ZoneInfo

    from lightning_dpg.datamodules.table_values import clock_changes  # of Ibis, an extra

    first = int(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp())
    spring = int(dt.datetime(2026, 3, 29, 1, tzinfo=dt.UTC).timestamp())
    autumn = int(dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC).timestamp())
    last = first + 365 * 86_400
    changes = clock_changes(ZoneInfo("Europe/Berlin"), first, last)
    assert changes == [(first, 3600), (spring, 7200), (autumn, 3600)]
    assert clock_changes(ZoneInfo("UTC"), first, last) == [(first, 0)]


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


VIEW = "make a view that casts it"
REFUSED = {
    "negative": ([5, -2.5], AMOUNTS, "1 amounts in column 'amount' are negative or infinite"),
    "infinity": ([5, float("inf")], AMOUNTS, "1 amounts in column 'amount' are negative or infinite"),
    "truth": ([True, False], AMOUNTS, f"'amount' holds bool\nexpected a column of numbers\n{VIEW}"),
    "texts of numbers": (["5", "7"], AMOUNTS, f"'amount' holds string\n.*{VIEW}"),
    "nothing": ([None, None, float("nan")], AMOUNTS, "no row is a transfer; .* amount or a time: 3"),
    "numbers": ([1, 2], TIMES, "column 'at' holds int64.*--time-format unix"),
    "texts of times": (["2026-01-05", "2026-01-06"], TIMES, f"'at' holds string.*{VIEW}"),
    "no zone": ([dt.datetime(2026, 1, 5, tzinfo=dt.UTC)], TIMES, "(?s)'at'.*--time-zone Europe/Berlin"),
    "zone": ([dt.datetime(2026, 1, 5)], TIMES | {"time_zone": "UTC"}, "without a zone, and columns.time_zone"),
    "format": ([dt.date(2026, 1, 5)], TIMES | {"time_format": "%d.%m.%Y"}, "holds dates and times already"),
    "format of dates": ([dt.date(2026, 1, 5)], TIMES | {"time_format": "unix"}, "holds dates and times"),
    "other days": ([dt.date(2020, 1, 5)], TIMES, "outside of the window: 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_other_columns_of_a_server_are_refused_with_a_way_out(name, tmp_path, request):
    cells, columns, message = REFUSED[name]
    column = columns.get("weight", "at")
    ends = [f"n{k}" for k in range(len(cells) + 1)]
    rows = pa.table({"source": ends[:-1], "target": ends[1:], column: cells})
    source, table = stored("postgresql", rows, tmp_path, request)
    with pytest.raises(Refusal, match=f"(?s){message}") as refused:
        EdgeTableDataModule(source, **table, columns=columns).setup("fit")
    assert "postgres: table transfers: " in str(refused.value)
    assert len(str(refused.value).splitlines()) <= 5
