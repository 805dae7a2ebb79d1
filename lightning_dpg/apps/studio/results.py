"""The pages of results: one release, all runs, and the budget book."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, abort, redirect, request, send_file
from werkzeug.wrappers import Response as AnyResponse

from lightning_dpg.apps.studio import totals
from lightning_dpg.apps.studio.folder import archive, is_inside, run_folders
from lightning_dpg.apps.studio.inquiry import one_at_a_time
from lightning_dpg.apps.studio.job import STATES, Job, jobs, new_job
from lightning_dpg.apps.studio.view import book, problem_of, show, written_page
from lightning_dpg.outcome import Outcome
from lightning_dpg.release.card.texts import OWNER_TEXTS, Card
from lightning_dpg.release.statement import full_sentence
from lightning_dpg.run.commands.release import card as card_of
from lightning_dpg.run.commands.release import verify as verify_release
from lightning_dpg.run_folder import CONFIGURATION, RELEASE, release_in, statement_in

pages = Blueprint("results", __name__)

_QUALITY, _CARD_PAGE = "quality.html", "MODEL_CARD.html"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pages.get("/")
def index() -> Response:
    """List runs and data sets."""
    url = totals.book_url(book())
    data_sets: list[dict[str, Any]] = []
    problem = problem_of(lambda: data_sets.extend(totals.data_sets(url)))
    folders = run_folders()
    releases = [
        (name, statement_in(release_in(Path(name))), (Path(name) / RELEASE).is_dir())
        for name in folders
    ]
    return show(
        "index",
        runs=[each for each in jobs() if not each.folder],
        states=STATES,
        releases=releases,
        book=url,
        data_sets=data_sets,
        problem=problem,
    )


@pages.get("/book/page")
def page_of_book() -> Response:
    """Show the page of the book for an officer."""
    return written_page(totals.page(totals.book_url(book())))


@pages.get("/result/<path:name>/release.zip")
def release(name: str) -> Response:
    """Send the folder of the release, and nothing beside it."""
    folder = _run(name) / RELEASE
    if not folder.is_dir():
        abort(404)
    content, file = io.BytesIO(archive(folder)), f"{Path(name).name}-{RELEASE}.zip"
    return send_file(content, "application/zip", as_attachment=True, download_name=file)


@pages.get("/result/<path:name>/card")
def card_page(name: str) -> Response:
    """Show the model card."""
    return written_page(_text(release_in(_run(name)) / _CARD_PAGE))


@pages.get("/result/<path:name>/quality")
def quality_page(name: str) -> Response:
    """Show the quality page, whose figures of the real graph nobody has paid for."""
    return written_page(_text(_run(name) / _QUALITY))


@pages.post("/result/<path:name>/verify")
def verify(name: str) -> Response:
    """Check the release."""
    with one_at_a_time:
        outcome = verify_release(_run(name))
    return _result(name, checked=outcome)


@pages.post("/result/<path:name>/card")
def card(name: str) -> AnyResponse:
    """Write the model card again."""
    folder = _run(name)
    texts = {key: request.form.get(f"card.{key}", "").strip() or None for key in OWNER_TEXTS}
    return _done(name, lambda: card_of(folder, texts=Card(**texts)))


@pages.post("/result/<path:name>/evaluate")
def evaluate(name: str) -> AnyResponse:
    """Start the comparison with the real graph."""
    words = ["evaluate", name, f"--html={_run(name) / _QUALITY}"]
    return _done(name, lambda: new_job(folder=name).start(words, [], totals.book_url(book())))


def _done(name: str, action: Callable[[], object]) -> AnyResponse:
    """Do something with a run, and show it, with the message of a refusal."""
    with one_at_a_time:
        problem = problem_of(action)
    return _result(name, problem) if problem else redirect(f"/result/{name}", 303)


@pages.get("/result/<path:name>")
def result(name: str) -> Response:
    """Show a release, what is private beside it, and what else the budget buys."""
    return _result(name)


def _run(name: str) -> Path:
    """Return the folder of a run; other folders are not found."""
    if name not in run_folders():
        abort(404)
    return Path(name)


def _text(path: Path) -> str:
    if not path.is_file() or not is_inside(path):
        abort(404)
    return path.read_text(encoding="utf-8")


def _guarantee(statement: dict[str, Any]) -> str:
    is_void = statement.get("epsilon") == "inf"
    return str(statement["guarantee"]) if is_void else full_sentence(statement)


def _result(name: str, problem: str = "", checked: Outcome | None = None) -> Response:
    folder = _run(name)
    statement = statement_in(release_in(folder))
    evaluations = [each for each in jobs() if each.folder == name]
    source = next((each for each in jobs() if each.out == folder and not each.folder), None)
    return show(
        "result",
        name=name,
        statement=statement,
        guarantee=_guarantee(statement),
        may_leave=(folder / RELEASE).is_dir(),
        files=[(path.name, path.stat().st_size) for path in sorted(release_in(folder).iterdir())],
        card=OWNER_TEXTS,
        has_card=(release_in(folder) / _CARD_PAGE).is_file(),
        checked=checked,
        lines=[_ANSI.sub("", line) for line in checked.lines] if checked else [],
        has_quality=(folder / _QUALITY).is_file(),
        can_evaluate=(folder / CONFIGURATION).is_file(),
        evaluation=evaluations[0] if evaluations else None,
        states=STATES,
        source=source,
        problem=problem,
        **_further(source),
    )


def _further(source: Job | None) -> dict[str, Any]:
    """What else the budget buys, if the data have a total in the book."""
    url = totals.book_url(book())
    own, folder = (source.answers.dataset, str(source.out.absolute())) if source else ("", "")
    for each in totals.data_sets(url):
        if each["dataset"] == own or folder in [run["folder"] for run in each["releases"]]:
            further = [] if each["closed"] else totals.further(url, each["dataset"])
            return {"book": url, "further": further, "data_set": each}
    return {"book": url, "further": [], "data_set": None}
