"""What the pages say before a run: what was read, what a budget means, and methods by goal.

All numbers come from functions of the core. One graph is kept in memory, that of the last page.
"""

import importlib.util
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg import methods as shipped_methods
from lightning_dpg.advice import GOALS, OF_COLUMNS, OF_SETS, Facts, Goal, Kind, recommend
from lightning_dpg.apps.studio.answers import Answers
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.batches import number_of_steps
from lightning_dpg.formats.attribute_tables import read_attributes
from lightning_dpg.formats.edge_columns import column_names
from lightning_dpg.formats.text_rows import is_edge_list
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

_LOCK = threading.RLock()
_last: dict[str, "Read"] = {}
NUMBERS = (1, 5, 10, 50)
"""Numbers of relations of a person for which a page says what epsilon means."""


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Compute in one thread only: libraries set warnings and random states for a whole process."""
    with _LOCK:
        yield


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
    files = [
        path
        for name in (answers.data, answers.nodes, answers.attributes)
        if (path := Path(name)).is_file()
    ]
    state = [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files]
    key = json.dumps([section, state], default=str)
    with _LOCK:
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


def columns(answers: Answers) -> list[str]:
    """Return the names of the columns of a table of relations; none of other data.

    Args:
        answers: The owner's answers.
    """
    path = Path(answers.data)
    if path.is_file() and is_edge_list(path.name):
        return column_names(path)
    if path.suffix == ".parquet" and path.is_file() and importlib.util.find_spec("pyarrow"):
        from pyarrow import parquet  # optional

        return [*parquet.read_schema(path).names]
    return []


def columns_of_nodes(answers: Answers) -> list[str]:
    """Return the names of the columns of the table of nodes, without that of the ids.

    Args:
        answers: The owner's answers.
    """
    if not Path(answers.attributes).is_file():
        return []
    return [*read_attributes(answers.attributes, answers.column or None).columns]


class Offer(NamedTuple):
    """A method that a page offers.

    Attributes:
        configuration: Its name.
        text: What it does.
        reason: Why it is recommended; empty for another one.
        measured: Numbers of ``results/`` at the nearest epsilon.
        is_conditional: Whether its guarantee has a condition.
    """

    configuration: str
    text: str
    reason: str
    measured: Sequence[quality.Measured]
    is_conditional: bool


def goals(answers: Answers, data: Read) -> dict[str, str]:
    """Return the goals that the data allow, with their words."""
    of_nodes = bool(answers.attributes) and answers.direction not in ("directed", "bipartite")
    has_columns = dict.fromkeys(OF_COLUMNS, of_nodes) | {"transfers": answers.has_transfers}
    return {
        goal: words.removeprefix("for ")
        for goal, words in GOALS.items()
        if (goal in OF_SETS) == data.is_set and has_columns.get(goal, True)
    }


def recommended(answers: Answers, data: Read) -> tuple[str, str]:
    """Return the configuration for the goal and the secret, and the reason.

    Args:
        answers: The owner's answers.
        data: The data, of which public facts count only.

    Raises:
        Refusal: If the goal does not fit the data.
    """
    if answers.secret == "person":
        return _OF_PERSON, "its noise hides all relations of one person"
    if answers.has_transfers:
        return "transfers", "it learns amounts and times beside the relations"
    if answers.has_private_columns and answers.goal != "classes":
        return "attributed", "columns and relations have a budget each"
    best = recommend(
        Facts(
            _goal(answers, data),
            answers.epsilon,
            max(data.nodes, 2),
            kind="set" if data.is_set else _kind(answers),
            has_attributes=bool(answers.attributes),
        )
    )
    return configuration_of(best), best.reason


def offers(answers: Answers, data: Read) -> list[Offer]:
    """Return the recommended method, and others for the same kind of data and the same secret.

    Args:
        answers: The owner's answers.
        data: The data.
    """
    best, reason = recommended(answers, data)
    by_name = {row.configuration: row for row in list_methods() if row.configuration}
    relations = ("node", "edges_of_node") if answers.secret == "person" else ("edge", "local_graph")
    others = [
        row.configuration
        for row in list_methods()
        if row.configuration
        and row.configuration != best
        and row.relation in relations
        and row.tier in ("recommended", "baselines")
        and _reads(row.name, data)
    ]
    rows = {name: by_name.get(name) or _class_of(name) for name in (best, *others)}
    return [
        Offer(
            name,
            row.summary,
            reason if name == best else "",
            quality.nearest(row.name, answers.epsilon),
            row.is_conditional,
        )
        for name, row in rows.items()
    ]


def settings_of(configuration: str) -> dict[str, Any]:
    """Return the settings of a method with the values of its configuration.

    Args:
        configuration: Its name.
    """
    plain = (bool, int, float, str)
    arguments = _chosen(configuration).arguments
    return {
        name: value
        for name, value in arguments.items()
        if isinstance(value, plain) and name != "num_nodes"
    }


class Planned(NamedTuple):
    """All that a run will read.

    Attributes:
        budget: Budget of the run.
        entries: Planned reads.
        errors: For each read its name, the mean absolute error and the bound of 95 %; None for
            both where no number is released as a count.
        serves: What the plan serves at this number of nodes; empty if that is not known.
    """

    budget: Budget
    entries: Sequence[LedgerEntry]
    errors: Sequence[tuple[str, float | None, float | None]]
    serves: str


def planned(answers: Answers, data: Read) -> Planned:
    """Plan a run by public facts, with nothing booked and nothing drawn.

    Args:
        answers: The owner's answers, with a method.
        data: The data.

    Raises:
        Refusal: If the method does not read such data, or if the budget does not suffice; the message
            names the smallest one.
        MisconfigurationException: Likewise.
    """
    with _LOCK:
        given_settings = {name: yaml.safe_load(text) for name, text in answers.settings.items()}
        choice = choose_method(answers.method, given_settings)
        given = float(answers.delta) if answers.delta else None
        budget = Budget(answers.epsilon, choice.delta(given, answers.epsilon))
        method = choice.build(data.module)
        method.accept_data(data.module)
        rows = Budget(answers.row_epsilon, 0.0) if answers.has_private_columns else None
        epochs = int(choice.sections["trainer"].get("max_epochs") or 1)
        steps = epochs * number_of_steps(method.batch_request(), None)
        method.accept_budget(budget, steps, rows)
        entries = method.plan(budget, steps)
        found = [(entry.name, expected_error(entry.to_dict()) or {}) for entry in entries]
        errors = [(n, e.get("mean_absolute_error"), e.get("half_width_95")) for n, e in found]
        nodes = None if data.is_set else data.nodes
        return Planned(budget, entries, errors, served(entries, budget.epsilon, nodes).sentence)


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


def _kind(answers: Answers) -> Kind:
    match answers.direction:
        case "directed" | "bipartite" as kind:
            return kind
    return "undirected"


def _reads(name: str, data: Read) -> bool:
    """Return whether a method reads such data."""
    try:
        check_data(getattr(shipped_methods, name), data.module)
    except MisconfigurationException:
        return False
    return True


_OF_PERSON = "node_degrees"


def _goal(answers: Answers, data: Read) -> Goal:
    """Goal of the owner, or the usual one for such data."""
    fitting = goals(answers, data)
    chosen = answers.goal if answers.goal in fitting else "graphs" if data.is_set else "shape"
    return chosen  # type: ignore[return-value]


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
