"""``budget plan``, ``export`` and ``html`` from the command line."""

import json

import pytest

from lightning_dpg.main import main
from lightning_dpg.run import quality
from tests.apps.book.small_book import full_book, small_book

URL = "sqlite:///book.db"


@pytest.fixture
def place(here):
    small_book(URL).close()
    return here


def budget(*args):
    return main(["budget", *args, "--book", URL])


def test_a_plan_names_noise_and_measured_quality(place, printed):
    # The open run of the small book ended without a word, and keeps its whole plan.
    lines = printed(budget("plan", "crm", "--method", "chung_lu", "--releases", "2")).splitlines()
    assert lines[0].split() == [
        "method",
        "releases",
        *["epsilon", "each", "delta", "each", "noise", "steps"],
    ]
    assert lines[1].split() == ["ChungLu", "2", "0.125", "0", "-", "-"]
    numbers = quality.nearest("ChungLu", 0.125)
    assert numbers and set(map(str, numbers)) == {line[2:] for line in lines if line[:2] == "  "}


def test_without_a_method_a_plan_is_for_those_that_were_used(place, printed):
    rows = printed(budget("plan", "crm")).splitlines()
    assert [row.split()[:3] for row in rows[1:5]] == [
        ["PrivGraph", str(number), epsilon]
        for number, epsilon in ((1, "0.25"), (2, "0.125"), (4, "0.0625"), (12, "0.02083"))
    ]
    assert not any("measured" in row for row in rows[1:-1])  # with --method only


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["plan", "crm", "--method", "none_such"], "none_such"),
        (["plan", "crm", "--method", "NodeDegrees"], "protects the relation node"),
        (["plan", "crm", "--method", "NetGAN"], "protects the relation of none"),
        (["plan", "crm", "--releases", "0"], "--releases must be 1 or more"),
        (["plan", "crm", "--delta", "2"], "--delta must lie in (0, 1)"),
        (["plan", "crn"], "no data set 'crn'"),
        (["export", "crn", "--format", "csv"], "no data set 'crn'"),
        (["export", "--format", "csv", "--out", "none/a.csv"], "no such folder"),
        (["html", "--out", "."], "a folder; name a file"),
    ],
)
def test_wrong_commands_leave_no_file(place, args, message, refusal):
    before = sorted(place.iterdir())
    assert message in refusal(budget(*args))
    assert sorted(place.iterdir()) == before


def test_no_file_is_replaced_without_a_word(place, refusal):
    for args in (["export", "--format", "json", "--out", "out"], ["html", "--out", "out"]):
        (place / "out").write_text("mine")
        assert "the file exists; replace it with --overwrite" in refusal(budget(*args))
        assert (place / "out").read_text() == "mine"
        assert budget(*args, "--overwrite") == 0
        assert (place / "out").read_text() != "mine"
    assert not [*place.glob("*.part")]


@pytest.fixture
def full(here):
    full_book(URL).close()
    return here


def test_no_plan_is_made_of_what_no_run_may_spend(full, capsys, refusal):
    assert "february: closed at 20" in refusal(budget("plan", "february", "--method", "chung_lu"))
    assert budget("plan", "year") == 2
    assert "year: a group of parts with totals of their own: january, february" in (
        capsys.readouterr().err
    )


def test_a_group_is_shown_by_all_commands(full, printed):
    assert printed(budget("show", "year")).startswith("year: 2 parts")
    history = printed(budget("history", "year"))
    assert "registered january" in history and "closed february" in history
    assert "crm" not in history
    found = json.loads(printed(budget("export", "year", "--format", "json")))["datasets"]
    assert [each["dataset"] for each in found] == ["january", "february"]
    assert found[1]["closed_by"] == "ann"
    assert budget("html", "year") == 0
    page = (full / "budget.html").read_text()
    assert "declared by the owner" in page and "crm" not in page


def test_the_history_of_a_data_set_has_its_grants_approvals_and_measurements(full, printed):
    history = printed(budget("history", "crm"))
    assert history.count("approved by bob") == 2
    assert "compare of BTER, HRG read crm, not private and on no total" in history
    (found,) = json.loads(printed(budget("export", "crm", "--format", "json")))["datasets"]
    assert [grant["state"] for grant in found["grants"]] == [
        "replaced",
        "in force",
        "waits for approval",
    ]
    # Runs 1, 2 and 3: 0.5 ended, 0.25 killed, and 0.25 that ended with its process.
    assert found["grants"][1]["spent_epsilon"] == 1.0
    assert found["measurements"][0]["command"] == "compare"
