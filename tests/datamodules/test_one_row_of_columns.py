"""A cell of a private column changes the place of its own node alone, whatever is in it.

Each container, type and replacement is tried on one row. The other nodes keep their places,
or both tables are refused alike.
"""

from datetime import date, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from lightning_dpg.datamodules.private_columns import private_columns_of, read_domains
from lightning_dpg.formats.attribute_tables import read_attributes
from lightning_dpg.formats.io import GraphFormatError

NAMES = [f"p{number}" for number in range(5)]
ODD = ["", "odd", 'a "quote" in', '"quoted"', "1e300", "1.0", "07", "0.70", "  7 ", "é", "12,5", "NaN", "-", "True"]  # fmt: skip
HUGE = [1e300, -1.0, 2.0**60, float("inf"), float("nan"), 7.0]
CELLS = {
    "float": [0.7, 0.3, 0.1, 0.6, 0.7],
    "double": [0.7, 0.30000001, 0.1, 0.6, 1.0],
    "int": [7, 8, 30, 7, 1],
    "long": [2**53 + 1, 2**53, 2**53 + 2, 7, 8],
    "bool": [True, False, True, False, True],
    "decimal": [
        Decimal("0.70"),
        Decimal("1.00"),
        Decimal("7.50"),
        Decimal("0.70"),
        Decimal("8.00"),
    ],
    "date": [date(2026, 1, day) for day in (1, 2, 3, 1, 2)],
    "time": [datetime(2026, 1, day, 9) for day in (1, 2, 3, 1, 2)],
    "text": ["7", "07", "0.70", "north", "7.0"],
}
ARROW = {
    "float": (pa.float16(), pa.float32(), pa.dictionary(pa.int8(), pa.float32())),
    "double": (pa.float64(),),
    "int": (pa.int8(), pa.uint16(), pa.int64()),
    "long": (pa.int64(), pa.uint64()),
    "bool": (pa.bool_(),),
    "decimal": (pa.decimal128(9, 2),),
    "date": (pa.date32(), pa.date64()),
    "time": (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ms", "UTC")),
    "text": (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ),
}
PANDAS = {
    "float": ("float32", "Float32", "float[pyarrow]", "Sparse[float32]", "object", "category"),
    "double": ("float64", "Float64"),
    "int": ("int8", "Int8", "uint16", "int64", "int64[pyarrow]", "object", "category"),
    "long": ("int64", "Int64", "category"),
    "bool": ("bool", "boolean", "object"),
    "text": ("str", "object", "string", "category"),
}


def csv(kind, cells, folder, separator=","):
    texts = ["" if cell is None else str(cell) for cell in cells]
    quoted = [
        f'"{text.replace(chr(34), chr(34) * 2)}"' if {*text} & {*'",'} else text for text in texts
    ]
    path = folder / ("t.tsv" if separator == "\t" else "t.csv")
    rows = [separator.join((name, cell, "x")) for name, cell in zip(NAMES, quoted, strict=True)]
    path.write_text("\n".join([separator.join(("id", "x", "memo")), *rows]))
    return path


def tsv(kind, cells, folder):
    return csv(kind, cells, folder, "\t")


def arrow(kind, cells, folder):
    if pa.types.is_dictionary(kind):
        column = pa.array(cells, kind.value_type).dictionary_encode().cast(kind)
    else:
        column = pa.array(cells, kind)
    return pa.table({"id": NAMES, "x": column})


def in_parquet(kind, cells, folder):
    parquet.write_table(arrow(kind, cells, folder), folder / "t.parquet")
    return folder / "t.parquet"


def frame(kind, cells, folder):
    """Give the column its type, or the one that pandas takes for these cells beside a gap."""
    plain = pd.Series(cells, dtype="object")
    try:
        column = plain.astype(kind)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        column = pd.Series(cells)
    return pd.DataFrame({"id": NAMES, "x": column})


def read_csv(kind, cells, folder):
    """Read a file by pandas, which finds the type of a column in all of its cells."""
    return pd.read_csv(csv(kind, cells, folder), keep_default_na=kind != "text")


def polars(kind, cells, folder):
    return pytest.importorskip("polars").DataFrame(arrow(kind, cells, folder))


CASES = [
    *((container, name, name) for container in (csv, tsv, read_csv) for name in CELLS),
    *((container, name, kind) for container in (arrow, in_parquet, polars) for name in ARROW for kind in ARROW[name]),
    *((frame, name, kind) for name in PANDAS for kind in PANDAS[name]),
]  # fmt: skip


def replacements(container, name, kind):
    """Return cells that the column may hold, and in a DataFrame or a text any others."""
    others = [None, CELLS[name][1], CELLS[name][2]]
    if container in (csv, tsv, read_csv) or kind in ("str", "object", "string"):
        return others + ODD
    if container is frame:
        return others + HUGE + ODD
    if name == "text":
        return others + ODD
    return others + (HUGE[:1] + HUGE[3:] if name == "double" else [])


def places(container, kind, cells, domains, folder):
    """Return the places of all nodes in each domain; None where it is refused."""
    table = read_attributes(container(kind, cells, folder))
    for domain in domains:
        try:
            columns = private_columns_of(table, NAMES, read_domains({"x": domain}, ["x"]))
            yield columns.values[:, 0].tolist()
        except GraphFormatError:
            yield None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of pandas, about casts
@pytest.mark.parametrize(("container", "name", "kind"), CASES)
def test_one_cell_of_a_private_column(tmp_path, container, name, kind):
    cells = CELLS[name]
    domains = [[*map(str, dict.fromkeys(cells))], [0, 0.3, 0.6, 0.7, 1, 8, 2.0**53]]
    whole = [*places(container, kind, cells, domains, tmp_path)]
    assert any(whole)
    for cell in replacements(container, name, kind):
        found = places(container, kind, [cells[0], cell, *cells[2:]], domains, tmp_path)
        for one, other in zip(whole, found, strict=True):
            assert (one is None) == (other is None), cell
            if one is not None:
                assert [one[0], *one[2:]] == [other[0], *other[2:]], cell
