"""Tables in all formats, against texts written by hand."""

import math

import pytest

from lightning_dpg.tables import as_csv, as_json, as_text

ROWS = [["a", "10", "x"], ["long", "", "y, z"]]
HEAD = ["name", "n", "note"]


def test_columns_of_text_are_aligned_and_lines_end_without_spaces():
    rows = [HEAD, ["a", "10", ""], ["longer", "5", "why"]]
    assert as_text(rows, left={0, 2}) == ["name     n  note", "a       10", "longer   5  why"]


def test_csv_quotes_what_has_a_comma_and_leaves_none_empty():
    assert as_csv(HEAD, [*ROWS, [None, 0.1, 'say "x"']]) == (
        'name,n,note\r\na,10,x\r\nlong,,"y, z"\r\n,0.1,"say ""x"""\r\n'
    )


def test_json_is_strict():
    assert as_json({"a": [1, None]}) == '{\n  "a": [\n    1,\n    null\n  ]\n}\n'
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="JSON"):
            as_json([value])
