"""The pages of one run: data, plan, and the run itself."""

import json
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, abort, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from lightning_dpg.apps.studio import inquiry, totals
from lightning_dpg.apps.studio.answers import (
    DIRECTIONS,
    LABELS,
    MOST_EPSILON,
    Answers,
    answered,
    examples,
)
from lightning_dpg.apps.studio.folder import data_files
from lightning_dpg.apps.studio.job import STATES, Job, job, new_job
from lightning_dpg.apps.studio.view import book, message, of_fields, problem_of, show
from lightning_dpg.errors import CommandError
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import JOURNAL, PrivacyLedger, replay
from lightning_dpg.release.card.texts import OWNER_TEXTS
from lightning_dpg.run.checkpoints import newest_checkpoint

pages = Blueprint("steps", __name__)

_NAMES = [each.name for each in fields(Answers)]
_OF_DATA = _NAMES[: _NAMES.index("epsilon")]
_OF_PLAN = _NAMES[_NAMES.index("epsilon") :]
_STOPS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, MOST_EPSILON)


@pages.post("/runs")
def new() -> AnyResponse:
    """Make a run, perhaps with the answers of another one."""
    start = Answers()
    if (number := request.form.get("like", "")).isdecimal():
        start = job(int(number)).answers
    return redirect(f"/runs/{new_job(start).number}/data", 303)


@pages.route("/runs/<int:number>/data", methods=["GET", "POST"])
def data(number: int) -> AnyResponse:
    """Choose data; show what was read, and what is protected."""
    return _step(number, "data", _OF_DATA, _parts_of_data, lambda run: "plan")


@pages.route("/runs/<int:number>/plan", methods=["GET", "POST"])
def plan(number: int) -> AnyResponse:
    """Choose a budget beside its meaning, a method by goal, and start."""
    return _step(number, "plan", _OF_PLAN, _parts_of_plan, _start)


@pages.get("/runs/<int:number>/run")
def run(number: int) -> AnyResponse:
    """Show what runs, or has run."""
    found = _job(number)
    if not found.words:
        return redirect(f"/runs/{number}/plan", 303)
    is_over = found.state in ("refused", "stopped", "lost")
    has_checkpoint = newest_checkpoint(found.out / "checkpoints") is not None
    can_resume = found.state in ("stopped", "lost") and has_checkpoint
    parts: dict[str, Any] = {"command": _command(found.words), "progress": progress_of(found)}
    parts["can_resume"] = can_resume
    return show("run", **_frame(found, "run", parts, of_fields(found.problem) if is_over else ""))


def _start(found: Job) -> str:
    """Start a run by its answers, once its data are in the book if the form names a total."""
    read = inquiry.read(found.answers)
    answers = inquiry.with_method(found.answers, read)
    entries, *_ = inquiry.planned(answers, read)
    name, total, *sums = (
        request.form.get(each, "").strip() for each in ("name", "total", "total_delta", "row_total")
    )
    url = totals.book_url(book())
    if total:
        if not name or name.startswith("-") or not name.isprintable():
            raise CommandError(f"'{LABELS['name']}' is missing, such as transfers")
        totals.register(answers, url, name, total, *sums)
        answers = found.revise(replace(answers, dataset=name)).answers
        url = totals.book_url(book())
    elif url and not answers.dataset:
        raise CommandError(
            f"data without a total in the budget book are refused\ngive '{LABELS['total']}', or choose "
            f"the data in '{LABELS['dataset']}' if they have one"
        )
    reads = [(each.name, each.steps, each.relation.value) for each in entries]
    replace(found, answers=answers).start(answers.words(found.out), reads, url)
    return "run"


@pages.post("/runs/<int:number>/stop")
def stop(number: int) -> AnyResponse:
    """Interrupt the run, as Ctrl-C does."""
    _job(number).stop()
    return redirect(f"/runs/{number}/run", 303)


@pages.post("/runs/<int:number>/resume")
def resume(number: int) -> AnyResponse:
    """Continue a run that has ended early from its newest checkpoint."""
    found = _job(number)
    checkpoint = newest_checkpoint(found.out / "checkpoints")
    if checkpoint is None or found.state not in ("stopped", "lost"):
        raise CommandError(f"run {number}: there is no checkpoint to go on from")
    further = new_job(found.answers)
    words = ["fit", f"--config={found.out / 'config.yaml'}", f"--ckpt_path={checkpoint}"]
    words.append(f"--out={further.out}")
    further.start(words, found.plan, totals.book_url(book()))
    return redirect(f"/runs/{further.number}/run", 303)


@pages.get("/runs/<int:number>/progress")
def progress(number: int) -> Response:
    """Show the progress of the run, which the page asks for each second."""
    found = _job(number)
    answer = show("progress", run=found, states=STATES, progress=progress_of(found))
    answer.headers["X-State"] = found.state
    return answer


def progress_of(run: Job) -> dict[str, Any]:
    """Read the progress of a run from its journal.

    Args:
        run: The run.

    Returns:
        ``reads`` with the name, planned steps and steps made of each read, and ``spent`` with the
        epsilon that was spent for good, by relation.
    """
    made, spent = dict[tuple[str, str], int](), list[tuple[str, float]]()
    journal = run.out / JOURNAL
    state = replay(journal) if run.plan and journal.is_file() else None
    if state is not None:
        with inquiry.one_at_a_time:
            ledger = PrivacyLedger(Relation(state["relation"]))
            ledger.load_state_dict(state)
            delta = float(run.answers.delta or 0) or inquiry.default_delta(run.answers)
            relations = dict.fromkeys(entry.relation for entry in ledger.entries)
            spent = [(each.value, ledger.epsilon(delta, relation=each)) for each in relations]
        for entry in ledger.entries:
            key = entry.name, entry.relation.value
            made[key] = made.get(key, 0) + entry.steps
    reads = [(name, steps, min(steps, made.get((name, of), 0))) for name, steps, of in run.plan]
    return {"reads": reads, "spent": spent}


def _job(number: int) -> Job:
    try:
        return job(number)
    except CommandError:
        abort(404)


def _step(
    number: int,
    name: str,
    names: Collection[str],
    parts: Callable[[Job], dict[str, Any]],
    following: Callable[[Job], str],
) -> AnyResponse:
    """Show a step, or save its form and go on."""
    found, sent, problem = _job(number), request.form.to_dict(), ""
    try:
        if sent:
            answers = _answered(name, found.answers, sent, names)
            is_look = sent.get("go") == "look"  # of the script beside the slider: nothing is kept
            found = replace(found, answers=answers) if is_look else found.revise(answers)
        shown = parts(found)
        if sent.get("go") == "next" and not shown.get("problem"):
            return redirect(f"/runs/{number}/{following(found)}", 303)
        # What is no answer, such as the total of a book, stays in the form.
        sent = {key: text for key, text in sent.items() if key in LABELS and key not in _NAMES}
    except Exception as error:  # noqa: BLE001  faults of the program are raised again
        if name == "plan" and not sent:  # data that cannot be read
            return redirect(f"/runs/{number}/data", 303)
        problem, found = message(error), _job(number)
        shown = parts(found)
    sent.pop("server", None)  # it may hold a password
    return show(name, **_frame(found, name, shown, problem), sent=sent)


def _answered(step: str, before: Answers, sent: dict[str, str], names: Collection[str]) -> Answers:
    """Return the answers of a form, without a choice that others have made void."""
    if step == "plan":
        if (sent.get("method"), sent.get("goal")) != (before.method, before.goal):
            sent = {key: text for key, text in sent.items() if not key.startswith("settings.")}
        return answered(before, sent, names)
    if server := sent.get("server", ""):
        sent = sent | {"data": server}  # the address of a server stands in a field of its own
    after = answered(before, sent, names)
    # A column of persons is left out until the owner chooses, also where no page has shown it yet.
    columns: list[str] = []
    problem_of(lambda: columns.extend(inquiry.columns_of_persons(after)[1]))
    after = replace(after, policy={each: after.policy.get(each, "drop") for each in columns})
    return after if after == before else replace(after, method="", settings={})


def _frame(run: Job, name: str, parts: dict[str, Any], problem: str = "") -> dict[str, Any]:
    """Return what each step shows, and its own parts; a problem stands above those of the parts."""
    common = {"run": run, "answers": run.answers, "step": name, "state": run.state}
    return common | {"states": STATES} | parts | ({"problem": problem} if problem else {})


def _parts_of_data(run: Job) -> dict[str, Any]:
    answers = run.answers
    table = answers.table if answers.is_database else answers.data
    parts: dict[str, Any] = {"read": None, "columns": [], "columns_of_persons": ([], [])}
    looks: dict[str, Callable[[], object]] = {
        "read": lambda: inquiry.read(answers),
        "checked": lambda: inquiry.check(answers, inquiry.read(answers)),
        "columns": lambda: inquiry.columns(answers, table),
        "columns_of_persons": lambda: inquiry.columns_of_persons(answers),
    }

    def look_at(name: str) -> None:
        parts[name] = looks[name]()

    with inquiry.one_at_a_time:
        problems = [problem_of(partial(look_at, name)) for name in looks if answers.data]
    common = {"files": data_files(), "examples": examples(), "directions": DIRECTIONS}
    return common | parts | {"problem": next(filter(None, problems), "")}


def _meaning(answers: Answers) -> dict[str, Any]:
    """Meaning of a budget, and the noise of the method."""
    with inquiry.one_at_a_time:
        read = inquiry.read(answers)
        chosen = inquiry.with_method(answers, read)
        delta = float(answers.delta or 0) or inquiry.default_delta(chosen)
        plan: list[Any] = []
        problem = problem_of(lambda: plan.extend(inquiry.planned(chosen, read)))
        _, noise, serves = plan or ([], [], "")
        return {
            "planned_method": chosen.method,
            "meaning": inquiry.meanings(chosen, delta),
            "delta": delta,
            "warnings": inquiry.warnings(chosen, read, delta),
            "noise": noise,
            "serves": serves,
            "size": answers.size,
            "plan_problem": problem,
        }


def _parts_of_plan(run: Job) -> dict[str, Any]:
    answers, url = run.answers, totals.book_url(book())
    with inquiry.one_at_a_time:
        read = inquiry.read(answers)
        offers, chosen = inquiry.offers(answers, read), inquiry.with_method(answers, read)
        meaning = _meaning(answers)
        return {
            **meaning,
            "problem": meaning["plan_problem"],
            "stops": json.dumps(_STOPS),
            "book": url,
            "data_sets": totals.data_sets(url),
            "own_name": Path(answers.data.split("*")[0]).stem or "data",
            "goals": inquiry.goals(answers, read),
            "offers": offers,
            "settings": inquiry.settings_of(chosen.method),
            "card": OWNER_TEXTS,
            "command": _command(chosen.words(run.out)),
        }


def _command(words: Sequence[str]) -> str:
    return shlex.join(["python", "-m", "lightning_dpg", *words])
