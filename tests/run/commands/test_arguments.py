"""Options of a command are those of its function, and its docstring is their help."""

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest

from lightning_dpg.errors import CommandError
from lightning_dpg.run.commands.arguments import Parser, add_arguments, call, described, parse

CALLS = []


def paint(
    wall: Path,
    colors: list[str],
    *,
    coats: int = 2,
    shares: list[float] | None = None,
    finish: Literal["matt", "gloss"] | None = None,
    dry_first: bool = False,
    book: str | None = None,
) -> None:
    """Paint a wall.

    Walls are ``flat``.

    Args:
        wall: File of the wall, which
            may be long.
        colors: Names of colors.
        coats: Number of coats.
        shares: Share of each color, 100 % in all.
        finish: Finish; see :func:`lightning_dpg.main.main`.
        dry_first: Whether to dry it first.
        book: See :func:`lightning_dpg.apps.audit.audits.audit`.

    Raises:
        ValueError: Never.
    """
    CALLS.append((wall, colors, coats, shares, finish, dry_first, book))


def brush(
    name: Annotated[str | None, "BRUSH"] = None,
    *others: str,
    hairs: Annotated[int, "--hairs.number", "--hairs"],
) -> None:
    """Make a brush.

    Args:
        name: Its name.
        hairs: Number of hairs.
    """
    CALLS.append((name, others, hairs))


@dataclass(frozen=True)
class Ladder:
    """A ladder.

    Attributes:
        rungs: Number of rungs.
        at: Wall or tree.
        is_safe: Somebody holds it.
    """

    rungs: int = 5
    at: Annotated[str | None, "--at", "--place.name"] = None
    is_safe: bool = False


def climb(who: str, *, ladder: Ladder = Ladder(), speed: float = 1.0) -> None:
    """Climb a ladder.

    Args:
        who: Name.
        ladder: The ladder.
        speed: Rungs per second.
    """
    CALLS.append((who, ladder, speed))


def test_fields_of_a_data_class_are_options_in_the_place_of_its_parameter():
    CALLS.clear()
    call(climb, ["Ann"])
    call(climb, ["Bo", "--place.name", "tree", "--is-safe", "--speed", "2", "--rungs", "7"])
    assert CALLS == [("Ann", Ladder(), 1.0), ("Bo", Ladder(7, "tree", is_safe=True), 2.0)]
    said = help_of(climb)
    places = [said.index(text) for text in ("--rungs N Number of rungs (5)", "--at", "--speed X")]
    assert places == sorted(places) and "The ladder" not in said
    with pytest.raises(CommandError, match="unknown option --rung, did you mean --rungs"):
        parse(climb, ["Cy", "--rung", "2"])


def test_words_are_read_by_the_types_of_the_parameters():
    CALLS.clear()
    call(paint, ["w.png", "red", "blue"])
    options = ["--coats", "3", "--shares", ".5", "1e-1", "--finish", "gloss", "--dry-first"]
    call(paint, ["w.png", "red", *options, "--book", "none"])
    assert CALLS == [
        (Path("w.png"), ["red", "blue"], 2, None, None, False, None),
        (Path("w.png"), ["red"], 3, [0.5, 0.1], "gloss", True, "none"),
    ]


def test_other_words_go_to_the_parameter_that_takes_them():
    assert parse(brush, ["--hairs", "5", "--config", "x"]) == (
        ["--config"],
        {"name": "x", "hairs": 5},
    )
    with pytest.raises(CommandError, match="unknown option --config"):
        parse(paint, ["w", "red", "--config", "x"])


def help_of(function):
    with contextlib.redirect_stdout(io.StringIO()) as said, pytest.raises(SystemExit):
        parse(function, ["--help-all"], "The end.")
    return " ".join(said.getvalue().split())


def test_help_is_the_docstring(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    said = help_of(paint)
    assert said.startswith(
        "usage: lightning_dpg paint WALL COLORS... [options] Paint a wall. Walls are `flat`. "
    )
    for line in (
        "WALL File of the wall, which may be long",
        "--coats N Number of coats (2)",
        "--shares X [X ...] Share of each color, 100 % in all",
        "--finish {matt,gloss} Finish; see main",
        "--dry-first Whether to dry it first",
        "--book TEXT URL of the budget book that logs the audit if it knows the data; by default",
    ):
        assert f" {line} " in said
    assert "Never" not in said and said.endswith("The end.")
    usage = "usage: lightning_dpg brush [BRUSH] --hairs.number N [others] [options]"
    assert help_of(brush).startswith(usage)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["w"], "required: COLORS"),
        (["w", "red", "--coats", "x"], "--coats: invalid int value: 'x'"),
        (["w", "red", "--coat", "1"], "unknown option --coat, did you mean --coats?"),
        (["w", "red", "--finish", "mat"], "'mat' (choose from 'matt', 'gloss')"),
    ],
)
def test_mistakes_are_two_lines(args, said):
    with pytest.raises(CommandError) as refused:
        parse(paint, args)
    first, second = str(refused.value).splitlines()
    assert said in first
    assert second == "all options: python -m lightning_dpg paint --help-all"


def test_a_parameter_without_a_text_is_a_fault():
    def silent(*, loud: bool = False) -> None:
        """Say nothing."""

    with pytest.raises(KeyError, match="loud"):
        add_arguments(Parser("silent"), silent)


def test_sections_of_a_docstring_are_told_apart():
    text = "Title.\n\nMore: text.\n\nArgs:\n    a: First\n        line.\n    b: B.\n\nReturns:\n    c: No."
    assert described(text) == ("Title.\n\nMore: text.", {"a": "First line.", "b": "B."})
    of_data_class = text.replace("Args:", "Attributes:")
    assert described(of_data_class) == described(text)
