"""``budget plan``, ``export`` and ``html`` from the command line."""

import json

import pytest

from lightning_dpg.main import main
from lightning_dpg.running import quality
from tests.small_book import small_book

URL = "sqlite:///book.db"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_book(URL).close()
    return tmp_path


def budget(*args):
    return main(["budget", *args, "--book", URL])


def test_a_plan_names_noise_and_measured_quality(place, capsys):
    # The open run of the small book ended without a word, and keeps its whole plan.
    assert budget("plan", "crm", "--method", "chung_lu", "--releases", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "method",
        "releases",
        *["epsilon", "each", "delta", "each", "noise", "steps"],
    ]
    assert lines[1].split() == ["ChungLu", "2", "0.125", "0", "-", "-"]
    numbers = quality.nearest("ChungLu", 0.125)
    assert numbers and set(map(str, numbers)) == {line[2:] for line in lines if line[:2] == "  "}


def test_without_a_method_a_plan_is_for_two_kinds(place, capsys):
    assert budget("plan", "crm", "--releases", "1") == 0
    _, pure, trained, *notes = capsys.readouterr().out.splitlines()
    assert pure.split() == ["pure", "release", "1", "0.25", "0", "-", "-"]
    assert trained.split()[:4] == ["DPNetGAN", "1", "none", "-"]  # its counts alone cost 0.2
    assert any(note.startswith("none: what is left does not pay") for note in notes)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["plan", "crm", "--method", "none_such"], "none_such"),
        (["plan", "crm", "--method", "NodePrivCom"], "protects the relation node"),
        (["plan", "crm", "--method", "NetGAN"], "protects the relation of none"),
        (["plan", "crm", "--releases", "0"], "--releases must be 1 or more"),
        (["plan", "crm", "--delta", "2"], "--delta must lie in (0, 1)"),
        (["plan", "crn"], "no data set 'crn'"),
        (["export", "crn", "--format", "csv"], "no data set 'crn'"),
        (["export", "--format", "csv", "--output", "none/a.csv"], "no such folder"),
        (["html", "--output", "."], "a folder; name a file"),
        (["html", "--method", "none_such"], "none_such"),
    ],
)
def test_wrong_commands_leave_no_file(place, args, message, capsys):
    before = sorted(place.iterdir())
    assert budget(*args) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) <= 5
    assert sorted(place.iterdir()) == before


def test_no_file_is_replaced_without_a_word(place, capsys):
    for args in (
        ["export", "--format", "json", "--output", "out"],
        ["html", "--method", "chung_lu", "--output", "out"],
    ):
        (place / "out").write_text("mine")
        assert budget(*args) == 2
        assert "the file exists; replace it with --overwrite" in capsys.readouterr().err
        assert (place / "out").read_text() == "mine"
        assert budget(*args, "--overwrite") == 0
        assert (place / "out").read_text() != "mine"
    assert not [*place.glob("*.part")]


def test_exports_in_the_terminal_are_whole(place, capsys):
    capsys.readouterr()
    assert budget("export", "crm", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["datasets"][0]["spent"] == 1.75
