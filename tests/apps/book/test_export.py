"""Exports of a book hold all releases, no secret, and no formula."""

import csv
import io
import json
import math

import pytest

from lightning_dpg.apps.book.export import csv_text, whole
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.request import Request
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.tables import as_json, strict
from tests.apps.book.small_book import entry, new_book, register, run, small_book


def rows(book, *names):
    return [*csv.DictReader(io.StringIO(csv_text(book, names), newline=""))]


def test_one_row_for_each_planned_release(tmp_path):
    book = small_book(f"sqlite:///{tmp_path}/book.db")
    register(book, "web")
    run(book, entry(sigma=6.0, steps=2), "web", method="AttributeEncoder", delta=1e-3)
    found = rows(book, "crm", "web")
    numbers = [(row["dataset"], row["run"], float(row["epsilon"])) for row in found]
    assert numbers == [("crm", "1", 0.5), ("crm", "2", 0.25), ("crm", "3", 1.0), ("web", "4", 0.0)]
    assert [row["steps_booked"] for row in found] == ["1", "1", "0", "2"]
    assert [row["outcome"] for row in found] == ["ended", "ended", "open", "ended"]
    assert (found[3]["noise_multiplier"], found[3]["budget_delta"]) == ("6.0", "0.001")
    assert all(row["reserved_utc"].endswith("+00:00") for row in found)
    content = whole(book, ["crm", "web"])
    crm, web = content["datasets"]
    assert [crm[key] for key in ("total", "spent", "reserved", "left")] == [2.0, 0.75, 1.0, 0.25]
    entries = [each for run in crm["releases"] for each in run["entries"]]
    assert [each["epsilon"] for each in entries] == [0.5, 0.25, 1.0]
    assert web["releases"][0]["entries"][0]["steps_booked"] == 2


def test_an_infinite_budget_is_a_word(tmp_path):
    """Strict JSON has no infinite number. Only its noise counts, so that the book lets the run in."""
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    noise = entry(sigma=20.0)
    values = {"settings": "s", "edges": "edges of crm", "budget": Budget(math.inf, 1e-6)}
    made = book.reserve("crm", Request("DPNetGAN", plan=lambda budget: [noise], **values))
    made.book(noise)
    made.close("ended")
    (shown,) = json.loads(as_json(strict(whole(book, ["crm"]))))["datasets"]
    assert shown["releases"][0]["budget_epsilon"] == "inf"
    assert 0 < shown["spent"] < 1
    shown = json.loads(as_json(strict(summary(book, "crm"))), parse_constant=pytest.fail)
    assert shown["releases"][0]["epsilon"] == "inf"


def test_no_secret_leaves_the_book(tmp_path):
    book = small_book(f"sqlite:///{tmp_path}/book.db")
    ((secret,),) = book.database.rows("SELECT value FROM book_facts WHERE name = 'secret'")
    known = book.data_set("crm")
    for text in (csv_text(book, ["crm"]), as_json(strict(whole(book, ["crm"])))):
        assert not [each for each in (secret, known.edges, known.nodes) if each in text]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\uff1d1"])
def test_no_cell_is_a_formula(tmp_path, name):
    book = new_book(f"sqlite:///{tmp_path}/book.db", name)
    run(book, entry(0.5), name, folder=f"{name}/version_0", method=name)
    (row,) = rows(book, name)
    assert [row[key] for key in ("dataset", "method", "folder")] == [
        f"'{name}",
        f"'{name}",
        f"'{name}/version_0",
    ]
    assert whole(book, [name])["datasets"][0]["dataset"] == name
