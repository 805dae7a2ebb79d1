"""The pages of one run: data, budget, method, and the run itself."""

import json
import shlex
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, NamedTuple

from flask import Blueprint, Response, abort, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from lightning_dpg.apps.studio import inquiry, totals
from lightning_dpg.apps.studio.answers import CARD, MOST_EPSILON, Answers, answered, examples
from lightning_dpg.apps.studio.folder import data_files
from lightning_dpg.apps.studio.job import STATES, Job, job, new_job
from lightning_dpg.apps.studio.view import book, message, problem_of, show
from lightning_dpg.errors import CommandError
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import JOURNAL, PrivacyLedger, replay
from lightning_dpg.run.checkpoints import newest_checkpoint

pages = Blueprint("steps", __name__)

_NAMES = [each.name for each in fields(Answers)]
_OF_DATA = _NAMES[: _NAMES.index("epsilon")]
_OF_BUDGET = ("epsilon", "row_epsilon", "delta", "dataset")
_OF_METHOD = ("goal", "method", "settings")
_STOPS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, MOST_EPSILON)
"""Epsilons at which the slider stops."""


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
    return _step(number, "data", _OF_DATA, "budget", _parts_of_data)


@pages.route("/runs/<int:number>/budget", methods=["GET", "POST"])
def budget(number: int) -> AnyResponse:
    """Choose epsilon beside its meaning."""
    return _step(number, "budget", _OF_BUDGET, "method", _parts_of_budget)


@pages.route("/runs/<int:number>/method", methods=["GET", "POST"])
def method(number: int) -> AnyResponse:
    """Choose a method by goal."""
    return _step(number, "method", _OF_METHOD, "run", _parts_of_method)


@pages.get("/runs/<int:number>/meaning")
def meaning(number: int) -> Response:
    """Show the meaning of an epsilon beside the slider."""
    run = _job(number)
    try:
        asked = answered(run.answers, request.args, _OF_BUDGET)
        return show("meaning", **_meaning(asked))
    except Exception as error:  # noqa: BLE001  faults of the program are raised again
        return show("refusal", problem=message(error))


@pages.post("/runs/<int:number>/register")
def register(number: int) -> AnyResponse:
    """Register the data in the budget book, which is made if there is none."""
    run = _job(number)
    name = request.form.get("name", "").strip()
    try:
        run = run.revise(answered(run.answers, request.form, _OF_BUDGET))
        if not name or name.startswith("-") or not name.isprintable():
            raise CommandError("the data need a name in the book, such as transfers")
        sums = [request.form.get(each, "") for each in ("total", "total_delta", "row_total")]
        if not sums[0]:
            raise CommandError("the total epsilon of all releases is missing")
        if not (url := totals.book_url(book())):
            totals.make_book()
            url = totals.book_url(book())
        totals.register(run.answers, url, name, *sums)
    except Exception as error:  # noqa: BLE001  faults of the program are raised again
        return show("budget", **_frame(run, "budget", _parts_of_budget, message(error)))
    run.revise(replace(run.answers, dataset=name))
    return redirect(f"/runs/{number}/budget", 303)


@pages.get("/runs/<int:number>/run")
def run(number: int) -> Response:
    """Show what will run, or what runs."""
    found = _job(number)
    return show("run", **_frame(found, "run", _parts_of_run))


@pages.post("/runs/<int:number>/start")
def start(number: int) -> AnyResponse:
    """Start the run."""
    found = _job(number)
    try:
        answers = answered(found.answers, request.form, ["card"])
        found = replace(found, answers=_with_method(answers))
        plan = inquiry.planned(found.answers, inquiry.read(found.answers))
        reads = [(each.name, each.steps, each.relation.value) for each in plan.entries]
        found.start(found.answers.words(found.out), reads, totals.book_url(book()))
    except Exception as error:  # noqa: BLE001  faults of the program are raised again
        return show("run", **_frame(_job(number), "run", _parts_of_run, message(error)))
    return redirect(f"/runs/{number}/run", 303)


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


class Progress(NamedTuple):
    """Progress of a run, by its journal.

    Attributes:
        reads: Name, planned steps and steps made of each read.
        spent: Epsilon that was spent for good, by relation.
    """

    reads: list[tuple[str, int, int]]
    spent: list[tuple[str, float]]

    @property
    def share(self) -> float:
        """Share of the planned steps that were made."""
        planned = sum(steps for _, steps, _ in self.reads)
        return sum(done for *_, done in self.reads) / max(planned, 1)


def progress_of(run: Job) -> Progress:
    """Read the progress of a run from its journal.

    Args:
        run: The run.
    """
    made, spent = dict[tuple[str, str], int](), list[tuple[str, float]]()
    journal = run.out / JOURNAL
    state = replay(journal) if run.plan and journal.is_file() else None
    if state is not None:
        with inquiry.one_at_a_time():
            ledger = PrivacyLedger(Relation(state["relation"]))
            ledger.load_state_dict(state)
            delta = float(run.answers.delta or 0) or inquiry.default_delta(run.answers)
            relations = dict.fromkeys(entry.relation for entry in ledger.entries)
            spent = [(each.value, ledger.epsilon(delta, relation=each)) for each in relations]
        for entry in ledger.entries:
            key = entry.name, entry.relation.value
            made[key] = made.get(key, 0) + entry.steps
    reads = [(name, steps, min(steps, made.get((name, of), 0))) for name, steps, of in run.plan]
    return Progress(reads, spent)


def _job(number: int) -> Job:
    try:
        return job(number)
    except CommandError:
        abort(404)


def _step(
    number: int,
    name: str,
    names: Any,
    following: str,
    parts: Callable[[Job], dict[str, Any]],
) -> AnyResponse:
    """Show a step, or save its form and go on."""
    found = _job(number)
    problem = ""
    if request.method == "POST":
        try:
            sent = request.form.to_dict()
            if (server := sent.get("server", "")) and server != found.answers.data:
                sent["data"] = server  # the address of a server stands in a field of its own
            found = found.revise(_answered(name, found.answers, sent, names))
            shown = parts(found)
            is_well = not (shown.get("problem") or shown.get("plan_problem"))
            if request.form.get("go") == "next" and is_well:
                return redirect(f"/runs/{number}/{following}", 303)
        except Exception as error:  # noqa: BLE001  faults of the program are raised again
            problem = message(error)
    return show(name, **_frame(found, name, parts, problem))


def _answered(step: str, before: Answers, sent: dict[str, str], names: Any) -> Answers:
    """Return the answers of a form, without a choice that others have made void."""
    if step == "method" and sent.get("go") == "recommend":
        sent["method"] = ""
    if step == "method" and sent.get("method") != sent.pop("of", ""):
        sent = {name: text for name, text in sent.items() if not name.startswith("settings.")}
    after = answered(before, sent, names)
    return replace(after, method="", settings={}) if step == "data" and after != before else after


def _frame(
    run: Job, name: str, parts: Callable[[Job], dict[str, Any]], problem: str = ""
) -> dict[str, Any]:
    """Return what each step shows, and its own parts; a problem stands above those of the parts."""
    common = {"run": run, "answers": run.answers, "step": name, "state": run.state}
    return common | {"states": STATES} | parts(run) | ({"problem": problem} if problem else {})


def _read(answers: Answers) -> tuple[inquiry.Read | None, str]:
    """Read the data; return the message of a refusal."""
    if not answers.data:
        return None, ""
    try:
        with inquiry.one_at_a_time():
            return inquiry.read(answers), ""
    except Exception as error:  # noqa: BLE001  faults of the program are raised again
        return None, message(error)


def _parts_of_data(run: Job) -> dict[str, Any]:
    answers = run.answers
    read, problem = _read(answers)
    try:
        columns, of_nodes = inquiry.columns(answers), inquiry.columns_of_nodes(answers)
    except Exception as error:  # noqa: BLE001  faults of the program are raised again
        columns, of_nodes, problem = [], [], problem or message(error)
    return {
        "files": data_files(),
        "examples": examples(),
        "columns": columns,
        "columns_of_nodes": of_nodes,
        "read": read,
        "problem": problem,
    }


def _with_method(answers: Answers) -> Answers:
    """Return answers with a method, by default the recommended one."""
    if answers.method:
        return answers
    read = inquiry.read(answers)
    return replace(answers, method=inquiry.recommended(answers, read)[0])


def _meaning(answers: Answers) -> dict[str, Any]:
    """Meaning of a budget, and expected errors of the method."""
    with inquiry.one_at_a_time():
        read = inquiry.read(answers)
        chosen = _with_method(answers)
        delta = float(answers.delta or 0) or inquiry.default_delta(chosen)
        plan: list[inquiry.Planned] = []
        problem = problem_of(lambda: plan.append(inquiry.planned(chosen, read)))
        return {
            "planned_method": chosen.method,
            "meaning": inquiry.meanings(chosen, delta),
            "delta": delta,
            "warnings": inquiry.warnings(chosen, read, delta),
            "plan": plan[0] if plan else None,
            "plan_problem": problem,
        }


def _parts_of_budget(run: Job) -> dict[str, Any]:
    url = totals.book_url(book())
    parts: dict[str, Any] = {
        "stops": json.dumps(_STOPS),
        "book": url,
        "data_sets": [],
        "delta": 0.0,
    }
    try:
        parts["data_sets"] = totals.data_sets(url)
        return parts | _meaning(run.answers)
    except Exception as error:  # noqa: BLE001  faults of the program are raised again
        return parts | {"meaning": None, "problem": message(error)}


def _parts_of_method(run: Job) -> dict[str, Any]:
    answers = run.answers
    with inquiry.one_at_a_time():
        read = inquiry.read(answers)
        offers, chosen = inquiry.offers(answers, read), _with_method(answers).method
        return {
            "goals": inquiry.goals(answers, read),
            "offers": offers,
            "chosen": chosen if chosen in [each.configuration for each in offers] else offers[0][0],
            "settings": inquiry.settings_of(chosen),
            "problem": problem_of(lambda: inquiry.planned(replace(answers, method=chosen), read)),
        }


def _parts_of_run(run: Job) -> dict[str, Any]:
    answers, problem = run.answers, run.problem if run.state != "draft" else ""
    if not run.words:
        try:
            answers = _with_method(answers)
        except Exception as error:  # noqa: BLE001  faults of the program are raised again
            problem = message(error)
    words = run.words or answers.words(run.out)
    return {
        "answers": answers,
        "command": shlex.join(["python", "-m", "lightning_dpg", *words]),
        "card": CARD,
        "book": totals.book_url(book()),
        "progress": progress_of(run),
        "problem": problem if run.state in ("draft", "refused", "stopped", "lost") else "",
        "can_resume": run.state in ("stopped", "lost")
        and newest_checkpoint(run.out / "checkpoints") is not None,
    }
