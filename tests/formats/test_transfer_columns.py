"""Amounts and times of rows: equal from every source, one rule for each row, and no guess."""

import datetime as dt
import random
import re

import pandas as pd
import pytest

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import Refusal

pytestmark = pytest.mark.usefixtures("ids_in_order")

START = dt.datetime(2026, 1, 1)
BOUNDS = {"weight": "amount", "weight_max": 1000, "time": "at"}
COLUMNS = BOUNDS | {"time_window": "2026-01-01,2026-06-30"}
ROWS = [  # payer, payee, amount, time; the last four are no transfers
    ("b", "a", "3", "2026-01-02 11:30:00"),
    ("a", "b", "10.50", "2026-01-01 10:00:00"),
    ("a", "b", "2", "2026-01-01 10:00:00"),
    ("b", "a", "1", "2026-01-01 10:00:00"),
    ("a", "b", "5000", "2026-06-30 23:59:59"),
    ("c", "a", "0", "2026-01-01 00:00:00"),
    ("c", "d", "7", "2025-12-31 23:59:59"),
    ("c", "d", "7", "2026-07-01 00:00:00"),
    ("c", "d", "", "2026-01-03 08:00:00"),
    ("c", "d", "7", ""),
]


def expected():
    """Payer, payee, cents and seconds of the transfers, by hand: the pair, time, payer, amount."""
    found = [
        (payer, payee, min(round(float(amount) * 100), 100_000), dt.datetime.fromisoformat(at))
        for payer, payee, amount, at in ROWS[:6]
    ]
    found.sort(key=lambda row: (sorted(row[:2]), row[3], row[0], row[2]))
    return [(*row[:3], int((row[3] - START).total_seconds())) for row in found]


def frame(rows=ROWS):
    return pd.DataFrame(rows, columns=["payer", "payee", "amount", "at"])


def typed():
    table = frame()
    table["amount"] = pd.to_numeric(table["amount"])
    table["at"] = pd.to_datetime(table["at"])
    return table


def of_csv(folder):
    frame().to_csv(folder / "pay.csv", index=False)
    return folder / "pay.csv"


def of_tsv(folder):
    text = "\n".join("\t".join(row) for row in ROWS)
    (folder / "pay.tsv").write_text(f"payer\tpayee\tamount\tat\n{text}\n")
    return folder / "pay.tsv"


def of_parquet(folder):
    typed().to_parquet(folder / "pay.parquet")
    return folder / "pay.parquet"


def of_texts_in_parquet(folder):
    frame().to_parquet(folder / "texts.parquet")
    return folder / "texts.parquet"


def read(source, columns=COLUMNS, **options):
    data = EdgeListDataModule(source, undirected=True, columns=columns, **options)
    data.setup("fit")
    return data


def rows_of(data):
    """The transfers of a data module with the names of both ends."""
    found, names = data.records.transfers, data.records.node_names
    ends = [[names[node] for node in pair] for pair in found.pairs.tolist()]
    values = [part.tolist() for part in (found.amounts, found.times) if part is not None]
    return [(*pair, *cells) for pair, *cells in zip(ends, *values, strict=True)]


@pytest.mark.parametrize(
    "source",
    [of_csv, of_tsv, of_parquet, of_texts_in_parquet, lambda _: frame(), lambda _: typed()],
)
def test_rows_are_the_same_transfers_from_every_source(tmp_path, source):
    data = read(source(tmp_path))
    assert rows_of(data) == expected()
    assert data.records.node_names == ["a", "b", "c"]  # d occurs in rows that are no transfer
    said = data.summary.partition("; rows of transfers: ")[2]
    assert said == (
        "6, amounts from 'amount', above 1,000: 1, times from 'at', rows outside of 2026-01-01 to "
        "2026-06-30: 2, rows without one: 2"
    )
    assert "dropped from the edges" not in data.summary


def test_the_order_of_rows_changes_nothing():
    for seed in range(5):
        shuffled = random.Random(seed).sample(ROWS, len(ROWS))
        assert rows_of(read(frame(shuffled))) == expected()


def test_amounts_and_times_may_be_read_alone():
    amounts = read(frame(), {"weight": "amount", "weight_max": 1000}).records.transfers
    assert amounts.times is None
    assert sorted(amounts.amounts.tolist()) == [0, 100, 200, 300, 700, 700, 700, 1050, 100_000]
    times = read(frame(), {"time": "at", "time_window": ["2026-01-01", "2026-06-30"]})
    assert times.records.transfers.amounts is None
    assert len(times.records.transfers.times) == 7


def test_columns_without_a_header_have_numbers(tmp_path):
    path = tmp_path / "pay.edges"
    path.write_text("1 2 5 1767225600\n2 3 6.5 1767312061\n")
    by_number = {"weight": 3, "weight_max": 10, "time": 4, "time_zone": "UTC"}
    days = (dt.date(2026, 1, 1), dt.date(2026, 1, 2))
    data = read(path, by_number | {"time_window": days, "time_format": "unix"})
    assert rows_of(data) == [("1", "2", 500, 0), ("2", "3", 650, 86_461)]


@pytest.mark.parametrize(
    ("texts", "settings", "clock"),
    [
        (["31/01/2026 14:05", "01/02/2026 00:00"], {"time_format": "%d/%m/%Y %H:%M"}, None),
        (["01/31/2026 14:05", "02/01/2026 00:00"], {"time_format": "%m/%d/%Y %H:%M"}, None),
        (["2026-01-31T14:05", "2026-02-01T00:00:00.999"], {}, None),
        # A winter and a summer in Berlin, written by three clocks.
        (["2026-01-31T13:05Z", "2026-01-31 18:00:00-05:00"], {"time_zone": "Europe/Berlin"}, None),
        (["1769864700", "1769900400.5"], {"time_zone": "Europe/Berlin", "time_format": "unix"}, None),
        (["2026-06-01T10:00+00:00", "2026-06-01 15:30:00+0530"], {"time_zone": "Europe/Berlin"},
         ["2026-06-01 12:00", "2026-06-01 12:00"]),
        (["31.01.2026 13:05 +0000", "01.02.2026 00:00 +0100"],
         {"time_format": "%d.%m.%Y %H:%M %z", "time_zone": "Europe/Berlin"}, None),
        # Outside of every calendar of a zone, and therefore of the window.
        (["2026-01-31T13:05Z", "2026-01-31T23:00Z", "0001-01-01T00:00Z", "9999-12-31T23:59Z"],
         {"time_zone": "Europe/Berlin"}, None),
    ],
)  # fmt: skip
def test_times_are_those_of_one_clock(texts, settings, clock):
    stamps = clock or ["2026-01-31 14:05", "2026-02-01 00:00"]
    wanted = [int((dt.datetime.fromisoformat(at) - START).total_seconds()) for at in stamps]
    rows = [("a", "b", 1, at) for at in texts]
    assert [row[3] for row in rows_of(read(frame(rows), COLUMNS | settings))] == wanted


def test_moments_with_a_zone_are_those_of_the_named_clock(tmp_path):
    table = frame(
        [("a", "b", 1, "2026-03-28 23:30+00:00"), ("a", "b", 1, "2026-03-29 01:30+00:00")]
    )
    table["at"] = pd.to_datetime(table["at"]).dt.tz_convert("America/New_York")
    table.to_parquet(tmp_path / "pay.parquet")
    # Berlin's clock jumps from 2 to 3 in the night to March 29.
    wanted = [(dt.datetime(2026, 3, 29, hour, 30) - START).total_seconds() for hour in (0, 3)]
    for source in (table, tmp_path / "pay.parquet"):
        data = read(source, COLUMNS | {"time_zone": "Europe/Berlin"})
        assert [row[3] for row in rows_of(data)] == wanted
        with pytest.raises(Refusal, match=r"row 0 .*a moment with a zone"):
            read(source)


@pytest.mark.parametrize(
    ("signs", "texts"),
    [
        ({"decimal": ","}, ["17,70", "1234,5", "0"]),
        ({"decimal": ",", "thousands": "."}, ["17,70", "1.234,5", "0,00"]),
        ({"thousands": ","}, ["17.7", "1,234.50", "0"]),
        ({"thousands": "'"}, ["17.7", "1'234.50", "-0"]),
    ],
)
def test_amounts_in_the_signs_of_a_country(tmp_path, signs, texts):
    path = tmp_path / "pay.csv"
    path.write_text("payer;payee;amount\n" + "".join(f"a;b;{text}\n" for text in texts))
    amounts = {"weight": "amount", "weight_max": 5000}
    read_amounts = read(path, amounts | signs).records.transfers.amounts.tolist()
    assert sorted(read_amounts) == [0, 1770, 123_450]
    with pytest.raises(Refusal, match=r"not an amount(.*\n)+.*--decimal"):
        read(path, amounts)
    for wrong in ("1.23", "12.34", "1.2345,6", "1,2,3"):
        path.write_text(f"payer;payee;amount\na;b;{wrong}\n")
        with pytest.raises(Refusal, match="not an amount"):
            read(path, amounts | {"decimal": ",", "thousands": "."})


GOOD = "a,b,1,2026-01-01 10:00\n"
ROW = re.compile(r"[^,\"\n]{3,}")


def test_numbers_of_columns_are_no_cells_of_the_first_row(tmp_path):
    (tmp_path / "pay.csv").write_text("4,3,9,5\n1,2,7,6\n")
    columns = {"source": 1, "target": 2, "weight": 3, "weight_max": 100}
    data = read(tmp_path / "pay.csv", columns)
    assert sorted(data.transfers.amounts.tolist()) == [700, 900]
    with pytest.raises(Refusal, match="no column '7'") as refusal:
        read(tmp_path / "pay.csv", columns | {"weight": 7})
    assert "9" not in str(refusal.value).replace(str(tmp_path), "")


@pytest.mark.parametrize(
    ("line", "settings", "said"),
    [
        ("a,b,-1.5,2026-01-01 10:00", {}, ["negative amount", "other direction"]),
        ("a,b,ten,2026-01-01 10:00", {}, ["not an amount", "such as 1234.56"]),
        ('a,b,"1,234.50",2026-01-01 10:00', {}, ["--decimal , --thousands ."]),
        ("a,b,EUR 5,2026-01-01 10:00", {}, ["sign of a currency"]),
        ("a,b,1e999,2026-01-01 10:00", {}, ["not an amount"]),
        ("a,b,1,01/02/2026", {}, ["'%d/%m/%Y'", "'%m/%d/%Y'"]),
        ("a,b,1,Jan 1st 2026", {}, ["time_format"]),
        ("a,b,1,1767225600", {}, ["unix for seconds"]),
        ("a,b,1,2026-02-30 10:00", {}, ["no day and time"]),
        ("a,b,1,2026-01-01 24:00", {}, ["no day and time"]),
        ("a,b,1,2026-01-01", {}, ["one form in all rows"]),
        ("a,b,1,2026-01-01 10:00+01:00", {}, ["with a zone, and rows before it have none"]),
        ("a,b,1,2026-01-01 11:00", {"time_format": "%d.%m.%Y"}, ["line 2", "'%d.%m.%Y'"]),
        ("a,b,1,2026-01-01 11:00", {"time_zone": "UTC"}, ["without a zone", "leave it out"]),
        ("a,b,1,2026-01-01 11:00", {"time_format": "unix"}, ["number of seconds"]),
        ("a,b,1,2026-01-01 11:00", {"weight": "eur"}, ["no column 'eur'", "'payer'", "'amount'"]),
        ("a,b,1,2026-01-01 11:00", {"time": "when"}, ["no column 'when'", "columns.time"]),
        ("a,b,1,2026-01-01 11:00", {"weight": "payer"}, ["in one column 'payer'"]),
        ("a,b,1,2026-01-01 11:00", {"time_window": "2027-01-01,2027-12-31"},
         ["no row is a transfer", "outside of the window: 2", "time_window"]),
    ],
)  # fmt: skip
def test_bad_cells_are_named_with_file_line_value_and_a_way_out(tmp_path, line, settings, said):
    path = tmp_path / "pay.csv"
    path.write_text(f"payer,payee,amount,at\n{GOOD}{line}\n")
    with pytest.raises(Refusal) as refusal:
        read(path, COLUMNS | settings)
    message = str(refusal.value)
    assert len(message.splitlines()) <= 5, message
    assert max(map(len, message.replace(str(tmp_path), "").splitlines())) < 125, message
    assert all(part in message for part in ["pay.csv", *said]), message
    assert not any(cell in message.replace(str(path), "") for cell in ROW.findall(GOOD + line))
    if not settings:
        assert re.search("line 3[:,] ", message), message


def test_a_table_without_amounts_is_refused_before_it_is_read(tmp_path):
    table = frame()[["payer", "payee"]]
    table.to_csv(tmp_path / "pay.csv", index=False)
    for source in (table, tmp_path / "pay.csv"):
        with pytest.raises(Refusal, match="no column 'amount'\nthe columns are 'payer', 'payee'"):
            read(source)


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = frame().rename(columns={"at": "amount"})
    table.to_csv(tmp_path / "pay.csv", index=False)
    for source in (table, tmp_path / "pay.csv"):
        with pytest.raises(Refusal, match="two columns have the name 'amount'"):
            read(source, {"weight": "amount", "weight_max": 5})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"weight": "amount"}, "columns.weight_max is missing"),
        ({"time": "at"}, "columns.time_window is missing"),
        ({"weight_max": 5}, "columns.weight names no column"),
        ({"time_window": "2026-01-01,2026-01-02"}, "columns.time names no column"),
        ({"time_zone": "UTC"}, "columns.time names no column"),
        *(
            (COLUMNS | {"weight_max": bound}, "must be a positive number")
            for bound in (0, -1, 0.001, 10.005, float("nan"), float("inf"), 1e12)
        ),
        *(
            (COLUMNS | {"time_window": days}, "the first and the last day")
            for days in ("2026-01-01", "2026-06-30,2026-01-01", "1/1/2026,2/1/2026", "2026-02-30,")
        ),
        *(
            (COLUMNS | {"time_format": form}, "does not tell the day")
            for form in ("", "%H:%M", "%d/%m", "%Y-%m-%d %Z", "%q", "%Y-%m-%d %")
        ),
        *(
            (COLUMNS | {"time_zone": zone}, "is no zone")
            for zone in ("", "Berlin", "../UTC", "Europe")
        ),
    ],
)
def test_bounds_are_public_settings_and_refused_before_a_file_is_read(settings, said):
    with pytest.raises(Refusal) as refusal:
        EdgeListDataModule("no such file.csv", columns=settings)
    assert said in str(refusal.value)
    assert len(str(refusal.value).splitlines()) <= 4
    if "missing" in said:
        assert "public knowledge" in str(refusal.value)
        assert re.search(r"\(--(weight-max|time-window) ", str(refusal.value))
