"""One row never changes how others are read: by any reader, of any type, with any cell in it.

A row is taken away, or one of its cells is exchanged. Then the other records stay as they were, or
one of both tables is refused as a whole, before anything is learned.
"""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from lightning_dpg.datamodules import Columns, EdgeTableDataModule, Nodes
from lightning_dpg.datamodules.private_columns import private_columns_of, read_domains
from lightning_dpg.formats.attribute_tables import read_attributes
from lightning_dpg.formats.edge_tables import read_pairs, read_table
from lightning_dpg.formats.io import GraphFormatError, read
from lightning_dpg.formats.node_lists import given_names
from lightning_dpg.formats.text_rows import SEPARATORS
from lightning_dpg.graph.graph import undirected_edges

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("ibis", reason="no ibis: install the extra 'tables'")

IDS = ["n1", "n2", "n3", "n4", "n5", "7", "8", "30", "ann", "bob", "carol"]
# Cells as they stand in a file of text
ODD = [
    '"x',
    'x"',
    '5" x',
    '"a,b"',
    '"a""b"',
    '""',
    "'x",
    "\\",
    "a;b",
    "a|b",
    "a\tb",
    "# c",
    "",
    "nan",
]
ODD += ["30 7", " x ", '"a\nn1,n2,b"', '"a\rb"', "a\x85b", "a\u2028b", "é", "1,5", "source", "<x>"]


def outcome(reader, *arguments, **options):
    """Return what a reader reads, or None if it refuses."""
    try:
        return reader(*arguments, **options)
    except GraphFormatError as error:
        assert len(str(error).splitlines()) <= 5
        return None


def edges_of(reading):
    names = reading.graph.node_names
    return {frozenset((names[i], names[j])) for i, j in undirected_edges(reading.graph).tolist()}


def by_text(path, **options):
    return edges_of(read(path, undirected=True, **options))


def by_duckdb(path, **options):
    data = EdgeTableDataModule(str(path), undirected=True, nodes=Nodes(IDS), **options)
    data.setup("fit")
    names = data.records.node_names
    return {frozenset((names[i], names[j])) for i, j in data.records.edges.tolist()}


ODD += [
    "1.0",
    "7.5",
    "007",
    "-3",
    "#c",
    "# c",
    "%",
    "{'w': 1, 'd': 2}",
    "(1, 2)",
    "[x]",
    "x->y",
    "a:b",
]
ODD += [
    "2026-01-01",
    "0,5",
    "x y z",
    "7 8",
    "7,8",
    "7;8",
    "7\t8",
    "n1",
    "n1 n2",
    "target",
    "sep=;",
    "*A",
    "e",
]
texts = st.one_of(st.sampled_from(["x", "y", "rent"]), st.sampled_from(ODD))
PAIRS = [("7", "8"), ("8", "30"), ("30", "7"), ("7", "7"), ("30", "30")]
WORDS = [("n1", "n2"), ("n2", "n3"), ("n3", "n4"), ("n4", "n5"), ("n5", "n1")]
MEMOS = ["x", "a b", "y", "5,1", "z"]


def of_text(mark, header, **options):
    """Return a reader of lines with a mark between cells, which are written as they are."""

    def reader(path, rows):
        lines = [
            mark.join(row) for row in ([("source", "target", "memo")] if header else []) + rows
        ]
        path.write_bytes("\n".join(lines).encode())
        return by_text(path, **options)

    return reader


def of_table(make, **options):
    """Return a reader of a table of Python."""
    return lambda path, rows: edges_of(
        read_table(make(dict(zip(("source", "target", "memo"), zip(*rows, strict=True), strict=True))),
                   **options)
    )  # fmt: skip


def of_parquet(path, rows, **options):
    columns = zip(("source", "target", "memo"), zip(*rows, strict=True), strict=True)
    path = path.with_suffix(".parquet")
    parquet.write_table(pa.table({name: list(cells) for name, cells in columns}), path)
    return by_text(path, **options)


def of_pairs(path, rows):
    return edges_of(read_pairs([row[:2] for row in rows]))


def of_duckdb(path, rows):
    lines = [",".join(row) for row in [("source", "target", "memo"), *rows]]
    path.write_bytes("\n".join(lines).encode())
    return by_duckdb(path)


NAMED = {f"{name}, header": of_text(mark, True) for mark, name in SEPARATORS.items()}
PLAIN = {f"{name}, no header": of_text(mark, False) for mark, name in SEPARATORS.items()}
READERS = NAMED | PLAIN | {
    "with nodes": of_text(",", False, nodes=IDS),
    "by number": of_text(",", False, columns=Columns("1", "2")),
    "by number, with nodes": of_text(",", False, columns=Columns("1", "2"), nodes=IDS),
    "rows without ids dropped": of_text(",", True, columns=Columns(missing_ids="drop")),
    "Parquet": of_parquet,
    "DataFrame": of_table(pd.DataFrame),
    "Arrow": of_table(pa.table, columns=Columns(missing_ids="drop")),
    "pairs": of_pairs,
}  # fmt: skip


def exchanged(rows, row, column, cell):
    """Return rows with another cell."""
    other = [*rows]
    other[row] = (*rows[row][:column], cell, *rows[row][column + 1 :])
    return other


@pytest.mark.parametrize("cells", [ODD[::7], pytest.param(ODD, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("pairs", [PAIRS, WORDS], ids=["numbers", "words"])
def test_one_cell_changes_one_record(tmp_path, how, pairs, cells):
    """Any cell of two rows is exchanged, or one of these rows is left out."""
    reader = lambda rows: outcome(READERS[how], tmp_path / "e.csv", rows)
    memos = ["x" if how[:5] == "space" or how in PLAIN else memo for memo in MEMOS]
    rows = [(*pair, memo) for pair, memo in zip(pairs, memos, strict=True)]
    whole, refused = reader(rows), 0
    for row in (0, 3):
        less = reader(rows[:row] + rows[row + 1 :])
        for column in range(3):
            for cell in cells:
                other = reader(exchanged(rows, row, column, cell))
                refused += other is None
                if other is not None and less is not None:
                    assert less <= other and len(other - less) <= 1, (row, column, cell)
                if other is not None and whole is not None:
                    assert len(whole ^ other) <= 2, (row, column, cell)
    assert refused < 6 * len(cells)


def test_each_reader_reads_all_rows(tmp_path):
    for how in READERS:
        for pairs in (PAIRS, WORDS):
            read_edges = READERS[how](tmp_path / "e.csv", [(*pair, "x") for pair in pairs])
            assert read_edges == {frozenset(pair) for pair in pairs if len({*pair}) == 2}


@pytest.mark.parametrize("memo", ['"rent', '"a\nn1,n2,b"', "a;b;c"])
def test_edges_in_csv_by_duckdb(tmp_path, memo):
    memos = ["x", '5 inch" y', '"a, b"', 'end"', "z"]
    rows = [(*pair, memo) for pair, memo in zip(WORDS, memos, strict=True)]
    assert len(of_duckdb(tmp_path / "e.csv", rows)) == 5
    other = outcome(of_duckdb, tmp_path / "e.csv", exchanged(rows, 0, 2, memo))
    assert other is None if memo[0] == '"' else len(other) == 5


def test_a_header_is_one_by_the_first_row_and_the_public_nodes_alone(tmp_path):
    path, lines = tmp_path / "e.csv", "n1,n2\nn2,n3\nn3,n4\n"
    for more, size in (("", 4), ("carol,n1\n", 5)):
        path.write_text("ann,bob\n" + lines + more)
        for options in ({"nodes": IDS}, {"nodes": IDS, "columns": Columns("1", "2")}):
            assert len(by_text(path, **options)) == size
        with pytest.raises(
            GraphFormatError, match=r"line 1: expected a header(.*\n)+.*--no-header"
        ):
            by_text(path, columns=Columns("1", "2"))
        path.write_text("payer id,shop\n" + lines + more)  # neither is a node
        assert len(by_text(path, nodes=IDS, columns=Columns("1", "2"))) == size - 1


@pytest.mark.parametrize("more", ["", "ann,bob,x\nbob,carol,x\n"])
def test_ids_of_two_numbers_are_whole_beside_words(tmp_path, more):
    (tmp_path / "e.csv").write_text("7,30 555,x\n8,30 777,x\n9,30 888,x\n" + more)
    assert {"30 555", "30 777"} <= set(read(tmp_path / "e.csv").graph.node_names)


# Cells of which some lie on a border of bins
SINGLES = [0.7, 0.1, 0.3, 0.6, 0.9, 0.7]
WHOLE = [7, 8, 9, 7, 8, 30]
WORDS_OF = ["north", "south", "7", "07", "0.7", "7.0"]
BORDERS = [0, 0.3, 0.6, 0.7, 1, 8, 2.0**53]
NAMES = [f"p{number}" for number in range(6)]


def series(cells, kind):
    if kind == "single":
        return pd.Series([np.float32(cell) if isinstance(cell, float) else cell for cell in cells])
    if kind.startswith("category of"):
        return series(cells, kind.removeprefix("category of ")).astype("category")
    if kind == "float32":
        return pd.Series([np.nan if cell is None else cell for cell in cells]).astype(kind)
    return pd.Series(cells, dtype=kind)


def as_arrow(cells, arrow_type):
    if pa.types.is_dictionary(arrow_type):
        return pa.array(cells, arrow_type.value_type).dictionary_encode().cast(arrow_type)
    return pa.array(cells, arrow_type)


def places(table, domain):
    domains = read_domains({"x": domain}, ["x"])
    return private_columns_of(table, NAMES, domains).values[:, 0].tolist()


REGIONS = ["north", "south", "north", "south", "other", "north"]


@settings(max_examples=25)
@given(st.lists(texts, min_size=6, max_size=6), st.integers(0, 5), texts, texts)
@example(["x"] * 6, 1, '"north', "x")
@example(["x", 'end"', "x", "x", 'end"', "x"], 1, "north", '"x')
def test_people_in_text(tmp_path_factory, memos, row, region, memo):
    path = tmp_path_factory.mktemp("people") / "p.csv"
    rows = [",".join(cells) for cells in zip(NAMES, REGIONS, memos, strict=True)]
    found = []
    for other in ([rows[row]], [], [f"{NAMES[row]},{region},{memo}"]):
        lines = [*rows[:row], *other, *rows[row + 1 :]]
        path.write_bytes(("id,x,memo\n" + "\n".join(lines) + "\n").encode())
        table = outcome(read_attributes, path)
        cells = table and places(table, ["north", "south"])
        ids = outcome(given_names, path, "id")  # as the public list of nodes
        assert (cells is None) == (ids is None)
        found.append(cells and (cells[:row] + cells[row + 1 :], set(ids) - {NAMES[row]}))
    read_ones = [each for each in found if each is not None]
    assert all(each == read_ones[0] for each in read_ones)


@pytest.mark.parametrize(("text", "line"), [('a,1,x\nb,"2,x\nc,3,x\n', 3), ('a,1,"x\nb"\n', 2)])
@pytest.mark.parametrize(
    "reader", [read_attributes, lambda path: given_names(path, "id"), by_duckdb]
)
def test_a_quote_is_refused_by_the_number_of_its_line_alone(tmp_path, text, line, reader):
    head = "source,target,memo" if reader is by_duckdb else "id,x,memo"
    (tmp_path / "p.csv").write_text(f"{head}\n{text}")
    with pytest.raises(
        GraphFormatError,
        match=rf"p\.csv, line {line}: expected quotes that close on the same line\n",
    ) as error:
        reader(tmp_path / "p.csv")
    assert "2,x" not in str(error.value) and len(str(error.value).splitlines()) == 2


def test_people_of_duckdb_have_the_cells_of_files(tmp_path):
    types = {
        "FLOAT": SINGLES,
        "UTINYINT": WHOLE,
        "TEXT": WORDS_OF,
    }
    with duckdb.connect(str(tmp_path / "crm.duckdb")) as connection:
        connection.execute("CREATE TABLE links AS SELECT 'p0' AS source, 'p1' AS target")
        for number, (kind, cells) in enumerate(types.items()):
            for gap in (False, True):
                name = f"t{number}{gap}"
                connection.execute(f"CREATE TABLE {name} (id TEXT, x {kind})")
                given = [None if gap and row == 1 else cell for row, cell in enumerate(cells)]
                connection.executemany(
                    f"INSERT INTO {name} VALUES (?, ?)", list(zip(NAMES, given, strict=True))
                )
    for number, (kind, cells) in enumerate(types.items()):
        domain = BORDERS if cells is SINGLES else [str(cell) for cell in dict.fromkeys(cells)]
        found = []
        for gap in (False, True):
            nodes = Nodes(
                attributes=f"t{number}{gap}(id)",
                private_columns="x",
                domains={"x": domain},
                names="ids",
            )
            data = EdgeTableDataModule(
                f"duckdb:///{tmp_path}/crm.duckdb", table="links", nodes=nodes
            )
            data.setup("fit")
            found.append(data.records.private_columns.values[:, 0].tolist())
        assert found[0][2:] == found[1][2:] and found[0][0] == found[1][0], kind


AMOUNTS = [
    0.015,
    2.675,
    1.005,
    7.0,
    0.125,
    1e6,
]  # near borders of cents, in one precision or another
DAYS = [f"2026-01-0{day} 09:00:00" for day in range(1, 7)]
TABLES = {
    "float": (pa.float32(), "float32", AMOUNTS),
    "double": (pa.float64(), "float64", AMOUNTS),
    "Float32": (None, "Float32", AMOUNTS),
    "single": (None, "single", AMOUNTS),
    "dictionary of float": (pa.dictionary(pa.int8(), pa.float32()), "category of float32", AMOUNTS),
    "int": (pa.int64(), "Int64", WHOLE),
    "decimal": (pa.decimal128(9, 3), "object", [Decimal(f"{k}.005") for k in WHOLE]),
    "string": (pa.string(), "object", ["0.015", "1e3", "7", "7.0", "2.675", ".5"]),
}


RELATION = Columns(
    "payer", "payee", weight="x", weight_max=1e5, time="at", time_window="2026-01-01,2026-02-01"
)


def transfers_of(path, form, kind, cells):
    """Return amount and time of each transfer by its pair of nodes."""
    rows = [row for row, cell in enumerate(cells) if cell != "gone"]
    cells, (arrow_type, dtype, _) = [cells[row] for row in rows], TABLES[kind]
    columns = {"payer": [NAMES[row] for row in rows], "payee": [NAMES[row - 1] for row in rows]}
    columns["at"] = [DAYS[row] for row in rows]
    if form == "frame":
        table = pd.DataFrame(columns | {"x": series(cells, dtype)})
        reading = read_table(table, RELATION)
    else:
        parquet.write_table(pa.table(columns | {"x": as_arrow(cells, arrow_type)}), path)
        reading = read(path, RELATION, undirected=True)
    names, values = reading.graph.node_names, reading.values
    amounts, times = values.amounts.tolist(), values.times.tolist()
    links = zip(reading.links.tolist(), amounts, times, strict=True)
    return {(names[i], names[j]): rest for (i, j), *rest in links}


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (form, kind)
        for kind in TABLES
        for form in ("frame", "arrow")
        if form == "frame" or TABLES[kind][0]
    ],
)
def test_amounts_of_each_type(tmp_path, form, kind):
    cells = TABLES[kind][2]
    whole = transfers_of(tmp_path / "t.parquet", form, kind, cells)
    assert len(whole) == 6
    for row in range(6):
        for cell in (
            None,
            "gone",
            cells[row - 1],
            *(["0.02"] if kind in ("single", "string") else []),
        ):
            other = [*cells]
            other[row] = cell
            found = transfers_of(tmp_path / "t.parquet", form, kind, other)
            own = (NAMES[row], NAMES[row - 1])
            assert {**whole, own: 0} == {**found, own: 0}


def test_ids_are_trimmed_by_every_reader(tmp_path):
    ends = {"source": ["a", " b", "c\u3000", "a "], "target": ["b ", "c", "\x1fd", "\u2003b"]}
    parquet.write_table(pa.table(ends), tmp_path / "e.parquet")
    expected = {frozenset("ab"), frozenset("bc"), frozenset("cd")}
    data = EdgeTableDataModule(str(tmp_path / "e.parquet"), undirected=True, nodes=list("abcd"))
    data.setup("fit")
    assert data.num_edges == 3
    for nodes in (None, list("abcd")):
        assert by_text(tmp_path / "e.parquet", nodes=nodes) == expected
    assert edges_of(read_table(pd.DataFrame(ends))) == expected
    ends = {"source": pa.array([2**63, 1], pa.uint64()), "target": pa.array([1, 2], pa.int32())}
    parquet.write_table(pa.table(ends), tmp_path / "e.parquet")
    assert by_text(tmp_path / "e.parquet") == {frozenset("12"), frozenset(("1", str(2**63)))}
    parquet.write_table(
        pa.table({"source": ends["target"], "target": pa.array([-1, 2])}), tmp_path / "e.parquet"
    )
    for reader in (by_text, by_duckdb):
        with pytest.raises(GraphFormatError, match="below 0"):
            reader(tmp_path / "e.parquet")


def test_a_gap_takes_no_digits_from_ids():
    ids = [2**53 + 1, 2**53, 5]
    codes = pd.Categorical.from_codes([0, 1, 2, -1], categories=ids)
    for column in (pd.Series([*ids, None], dtype="Int64"), pd.Series(codes)):
        frame = pd.DataFrame({"source": column, "target": ["a", "b", "c", "d"]})
        names = read_table(frame, columns=Columns(missing_ids="drop")).graph.node_names
        assert set(names) == {*map(str, ids), "a", "b", "c"}
    for lost in ([2**53 + 1, 5], [2**53, 5]):  # one float
        frame = pd.DataFrame({"source": np.array(lost, float), "target": ["a", "b"]})
        assert outcome(read_table, frame) is None
        assert outcome(read_attributes, frame, "source") is None
