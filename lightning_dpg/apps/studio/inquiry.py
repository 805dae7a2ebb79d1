"""What the pages say before a run: what was read, what a budget means, and methods by goal.

All numbers come from functions of the core. One graph is kept in memory, that of the last page.
"""

import importlib.util
import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg import methods as shipped_methods
from lightning_dpg.advice import GOALS, OF_COLUMNS, OF_SETS, Facts, Goal, recommend
from lightning_dpg.apps.studio.answers import Answers
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.batches import number_of_steps
from lightning_dpg.formats.edge_columns import column_names
from lightning_dpg.formats.node_lists import place_of_ids
from lightning_dpg.formats.text_rows import is_edge_list
from lightning_dpg.graph.transfer_counts import first_days
from lightning_dpg.pages.page import number
from lightning_dpg.preflight import check_data
from lightning_dpg.preflight.budget import budget_warnings, row_budget_warnings, served
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.meaning import belief_bound, group_budget
from lightning_dpg.release.card.reads import expected_error
from lightning_dpg.run import quality
from lightning_dpg.run.data import set_up
from lightning_dpg.run.method_choice import MethodChoice, choose_method
from lightning_dpg.run.shipped import MethodInfo, configuration_of, list_methods

one_at_a_time = threading.RLock()
"""Compute in one thread only: libraries set warnings and random states for a whole process."""
_last: dict[str, "Read"] = {}
NUMBERS = (1, 5, 10, 50)
"""Numbers of relations of a person for which a page says what epsilon means."""


class Read(NamedTuple):
    """Data that were read (private).

    Attributes:
        module: The data module.
        nodes: Number of nodes, or of graphs of a set.
        relations: Exact number of relations (private).
        summary: How they were read, in sentences (private).
    """

    module: Any
    nodes: int
    relations: int
    summary: Sequence[str]

    @property
    def is_set(self) -> bool:
        """Whether they are a set of graphs."""
        return not isinstance(self.module, EdgeListDataModule)


def read(answers: Answers) -> Read:
    """Read data as a fit would do.

    Args:
        answers: The owner's answers.

    Raises:
        Refusal: If they cannot be read; the message is that of ``fit``.
    """
    section = answers.section()
    files = [path for name in (answers.data, answers.persons) for path in files_of(name)]
    state = [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files]
    key = json.dumps([section, state], default=str)
    with one_at_a_time:
        if key not in _last:
            _last.clear()
            module = set_up(section)
            if isinstance(module, EdgeListDataModule):
                found = Read(module, module.num_nodes, module.num_edges, _sentences(module))
            else:
                found = Read(module, len(module.sizes), int(module.num_edges), ())
            _last[key] = found
        return _last[key]


def _sentences(module: EdgeListDataModule) -> list[str]:
    """Part the line about what was read, without the numbers that stand beside it."""
    _, _, details = str(module.summary).partition(" (")
    return [*details.replace("); ", "; ", 1).removesuffix(")").split("; "), *module.notes]


def files_of(name: str) -> list[Path]:
    """Return the file of a name, or those of a pattern; none of a table or a built-in name."""
    paths = sorted(Path().glob(name)) if "*" in name else [Path(name)]
    return [path for path in paths if path.is_file()]


def columns(answers: Answers, name: str) -> list[str]:
    """Return the names of the columns of a table of the folder or of the database of the answers.

    Args:
        answers: The owner's answers.
        name: File, pattern of files, ``TABLE`` or ``TABLE(COLUMN)``.

    Returns:
        The names; none of a graph that is no table.

    Raises:
        Refusal: If the table cannot be read.
    """
    path = next(iter(files_of(name)), Path())
    if answers.is_database and not path.is_file():
        # Start-up time: Ibis, which is optional.
        from lightning_dpg.datamodules.table_source import open_engine

        engine = open_engine(answers.section()["init_args"]["source"])
        table = name.partition("(")[0]
        return [*engine.columns(engine.table(table), table)]
    if path.is_file() and is_edge_list(path.name):
        return column_names(path)
    if path.suffix == ".parquet" and path.is_file() and importlib.util.find_spec("pyarrow"):
        from pyarrow import parquet  # optional

        return [*parquet.read_schema(path).names]
    return []


def columns_of_persons(answers: Answers) -> tuple[list[str], list[str]]:
    """Return all columns of the table of persons, and those beside their ids; none without a table.

    Args:
        answers: The owner's answers.

    Raises:
        Refusal: If the table cannot be read.
    """
    if not answers.persons:
        return [], []
    names = columns(answers, answers.persons)
    own = answers.persons.partition("(")[2].rstrip(")").strip('"') or answers.column
    place = place_of_ids(names)
    ids = own or ("" if place is None else names[place])
    return names, [name for name in names if name != ids and len(names) > 1]


def goals(answers: Answers, data: Read) -> dict[Goal, str]:
    """Return the goals that the data allow, with their words."""
    kept = set(answers.kept.values())
    only: tuple[tuple[Goal, bool], ...] = (
        ("degrees", answers.secret == "person"),
        ("transfers", answers.has_transfers),
        ("rows", "private" in kept),
        ("classes", "private_label" in kept),
    )
    of_classes = {"public", "label"} <= kept and answers.kind == "undirected"
    further = (
        OF_SETS
        if data.is_set
        else {*GOALS} - OF_SETS - OF_COLUMNS | ({"classes"} if of_classes else set())
    )
    fitting = [goal for goal, is_only in only if is_only][:1] or further
    return {goal: GOALS[goal].removeprefix("for ") for goal in GOALS if goal in fitting}


def recommended(answers: Answers, data: Read) -> tuple[str, str]:
    """Return the configuration for the goal and the secret, and the reason.

    Args:
        answers: The owner's answers.
        data: The data, of which public facts count only.

    Raises:
        Refusal: If the goal does not fit the data.
    """
    if answers.secret == "person":
        return "node_degrees", "its noise hides all relations of one person"
    if answers.has_transfers:
        return "transfers", "it learns amounts and times beside the relations"
    if "private" in answers.kept.values():
        return "attributed", "columns and relations have a budget each"
    best = recommend(
        Facts(
            _goal(answers, data),
            answers.epsilon,
            max(data.nodes, 2),
            kind="set" if data.is_set else answers.kind,
            num_edges=float(answers.size) if answers.size and not data.is_set else None,
            has_attributes="public" in answers.kept.values(),
            has_hubs=answers.hubs,
        )
    )
    return configuration_of(best), best.reason


def with_method(answers: Answers, data: Read) -> Answers:
    """Return answers with a method, by default the recommended one, and with a structure for their kind.

    Args:
        answers: The owner's answers.
        data: The data.
    """
    method, settings = answers.method or recommended(answers, data)[0], answers.settings
    if method == "transfers" and answers.kind != "undirected":
        settings = {"structure": "chung_lu"} | settings
    return replace(answers, method=method, settings=settings)


def offers(answers: Answers, data: Read) -> list[tuple[str, str, MethodInfo, Sequence[Any]]]:
    """Return the recommended method, and others for the same kind of data and the same secret.

    Args:
        answers: The owner's answers.
        data: The data.

    Returns:
        For each its configuration, why it is recommended or nothing, its facts, and numbers of
        ``results/`` at the nearest epsilon.
    """
    best, reason = recommended(answers, data)
    relations = ("node", "edges_of_node") if answers.secret == "person" else ("edge", "local_graph")
    rows = {best: _class_of(best)}
    for row in list_methods():
        is_open = row.relation in relations and row.tier in ("recommended", "baselines")
        is_other = row.name != rows[best].name
        if row.configuration and is_open and is_other and _reads(row.name, data):
            rows[row.configuration] = row
    return [
        (name, reason if name == best else "", row, quality.nearest(row.name, answers.epsilon))
        for name, row in rows.items()
    ]


def settings_of(configuration: str) -> dict[str, Any]:
    """Return the settings of a method with the values of its configuration.

    Args:
        configuration: Its name.
    """
    arguments = _chosen(configuration).arguments
    return {
        name: value
        for name, value in arguments.items()
        if isinstance(value, bool | int | float | str) and name != "num_nodes"
    }


class Noise(NamedTuple):
    """Noise of one read.

    Attributes:
        name: What is read, in the unit of the data.
        mean: Mean absolute error; None where no number is released as a count.
        width: Bound that the error keeps 19 times of 20; None likewise.
        level: Public guess of the number that is read, in words; empty without one.
        hides: Whether the noise is as large as this number.
    """

    name: str
    mean: float | None
    width: float | None
    level: str
    hides: bool


def _fitted(answers: Answers, data: Read) -> tuple[MethodChoice, Any]:
    """Return the method of the answers, which has seen that it reads the data."""
    settings = {name: yaml.safe_load(text) for name, text in answers.settings.items()}
    choice = choose_method(answers.method, settings)
    method = choice.build(data.module)
    method.accept_data(data.module)
    return choice, method


def check(answers: Answers, data: Read) -> None:
    """Refuse data that the recommended method does not read: no other one protects them.

    Raises:
        Refusal: If it does not.
        MisconfigurationException: Likewise.
    """
    _fitted(with_method(replace(answers, method="", settings={}), data), data)


def planned(answers: Answers, data: Read) -> tuple[Sequence[LedgerEntry], Sequence[Noise], str]:
    """Plan a run by public facts, with nothing booked and nothing drawn.

    Args:
        answers: The owner's answers, with a method.
        data: The data.

    Returns:
        Planned reads, their noise, once for reads of one name and noise, and what they serve at this
        number of nodes; empty if that is not known.

    Raises:
        Refusal: If the method does not read such data, or if the budget does not suffice; the message
            names the smallest one.
        MisconfigurationException: Likewise.
    """
    with one_at_a_time:
        choice, method = _fitted(answers, data)
        given = float(answers.delta) if answers.delta else None
        budget = Budget(answers.epsilon, choice.delta(given, answers.epsilon))
        rows = Budget(answers.row_epsilon, 0.0) if answers.has_private_columns else None
        epochs = int(choice.sections["trainer"].get("max_epochs") or 1)
        steps = epochs * number_of_steps(method.batch_request(), None)
        method.accept_budget(budget, steps, rows)
        entries = method.plan(budget, steps)
        noise = [*dict.fromkeys(_noise(entry, answers, data) for entry in entries)]
        nodes = None if data.is_set else data.nodes
        return entries, noise, served(entries, budget.epsilon, nodes).sentence


def _noise(entry: LedgerEntry, answers: Answers, data: Read) -> Noise:
    """Noise of a read, beside the number that follows from the owner's guess: never one of the data."""
    error = expected_error(entry.to_dict()) or {}
    name, _, part = entry.name.partition(", in 1/")
    parts = int(part or 1)
    mean, width = error.get("mean_absolute_error"), error.get("half_width_95")
    if mean is None or width is None:
        return Noise(name, None, None, "", False)
    first, _, last = answers.time_window.partition(",")
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1 if last else 1
    bins = first_days(days, mean, float(answers.size or 0))
    span = int(bins[1]) if len(bins) > 1 else days
    of_days = len(bins), "a day has" if span == 1 else f"{span} days have"
    units: dict[str, tuple[float, str]] = {
        "num_edges": (1, "in all"),
        "days": of_days,
        "hours": (24 * 7, "an hour of the week has"),
        "new_pairs": of_days,
    }
    if answers.persons:  # otherwise the number of nodes is not public
        units["degrees"] = data.nodes / (1 if answers.kind == "directed" else 2), "a node has"
    level, hides = "", False
    if answers.size and entry.key in units and not data.is_set:
        share, words = units[entry.key]
        each = float(answers.size) / max(share, 1)
        most = "at most " if answers.has_transfers and entry.key not in ("days", "hours") else ""
        level, hides = f"{words} {most}about {number(each)}", mean >= each
    return Noise(name, mean / parts, width / parts, level, hides)


def meanings(answers: Answers, delta: float) -> list[tuple[int, float, float]]:
    """Return epsilon and the largest belief in percent, by the number of relations of a person.

    Args:
        answers: The owner's answers.
        delta: Delta of the run.
    """
    found = []
    for count in NUMBERS if answers.secret == "relation" else (1,):
        together = group_budget(answers.epsilon, delta, count)
        found.append((count, together.epsilon, 100 * belief_bound(*together)))
    return found


def warnings(answers: Answers, data: Read, delta: float) -> list[str]:
    """Return the warnings of a fit about its budget, by public facts."""
    relation = Relation.NODE if answers.secret == "person" else Relation.EDGE
    nodes = None if data.is_set else data.nodes
    found = budget_warnings(Budget(answers.epsilon, delta), relation, nodes)
    if answers.has_private_columns:
        found += row_budget_warnings(Budget(answers.row_epsilon, 0.0), nodes)
    return found


def _reads(name: str, data: Read) -> bool:
    """Return whether a method reads such data."""
    try:
        check_data(getattr(shipped_methods, name), data.module)
    except MisconfigurationException:
        return False
    return True


def _goal(answers: Answers, data: Read) -> Goal:
    """Goal of the owner, or the usual one for such data."""
    fitting = goals(answers, data)
    usual: Sequence[Goal] = ("graphs", "shape", *fitting)
    return next(goal for goal in (answers.goal, *usual) if goal in fitting)


def _class_of(configuration: str) -> MethodInfo:
    """Return the method of a further configuration of its class."""
    name = _chosen(configuration).method.__name__
    return next(row for row in list_methods() if row.name == name)


@cache
def _chosen(configuration: str) -> MethodChoice:
    return choose_method(configuration, {})


def default_delta(answers: Answers) -> float:
    """Return the delta of a run whose owner names none: that of the method's configuration.

    Args:
        answers: The owner's answers, with a method.
    """
    return _chosen(answers.method).delta(None, answers.epsilon)
