"""Answers of an owner to the questions of one run, and the options of ``fit`` that they are."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from lightning_dpg.advice import GOALS
from lightning_dpg.apps.studio.folder import data_files, is_inside
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.kind import Kind
from lightning_dpg.release.card.texts import OWNER_TEXTS
from lightning_dpg.run.configurations import shipped_configs
from lightning_dpg.run.shipped import built_in_graphs, built_in_sets
from lightning_dpg.run.source import Form, Reading, data_settings, form_of

Secret = Literal["relation", "person"]
Policy = Literal["public", "label", "drop", "private", "private_label"]
MOST_EPSILON = 10.0
"""Largest epsilon that the studio offers; the command line takes larger ones."""
_LONGEST = 500
_SERVERS = ("postgresql://", "postgres://")
_TABLE_AND_COLUMN = re.compile(r"[^/\\]+\([^/\\]+\)")
_PLAIN = ("table", "source", "target", "weight", "time")
TEXTS: Mapping[str, Any] = yaml.safe_load(
    Path(__file__).with_name("texts.yaml").read_text(encoding="utf-8")
)
"""What the pages say of fields, choices, states and refusals."""
LABELS: Mapping[str, str] = TEXTS["labels"]
"""What the pages call each field."""
DIRECTIONS: Mapping[str, str] = TEXTS["directions"]
"""Choices of the direction, in words."""
FIELDS: Mapping[str, str] = TEXTS["settings"] | {name: name for name in LABELS}
"""Field of a page by the name of a setting or option."""


@dataclass(frozen=True)
class Answers:
    """Answers for one run: texts, numbers and choices that forms send.

    Attributes:
        data: File or folder inside of the chosen folder, built-in name, or URL of a server.
        table: Table of a database.
        source: Column of the first id.
        target: Column of the second id.
        direction: Kind of the graph, or ``drop`` to drop the directions.
        drop_missing: Leave out rows without an id.
        persons: File with a row per node, or ``TABLE(COLUMN)`` of a database.
        column: Column of the ids in this file.
        names: ``ids`` or ``numbers``, what the release calls the nodes; empty for the default.
        weight: Column of amounts.
        weight_max: Largest amount that counts.
        time: Column of times.
        time_window: First and last day.
        time_format: Format of the times.
        policy: Policy of each column of the nodes; one without a policy is left out.
        domains: All values of each private column, parted by commas.
        secret: What the guarantee protects.
        epsilon: Budget.
        row_epsilon: Budget of the private columns of one node.
        delta: Budget; empty for that of the method.
        size: Public guess of the number of rows; empty without one.
        dataset: Name of the data in the budget book.
        goal: What the release is for.
        hubs: One node in a hundred, or more, has over ten times the mean degree (public).
        method: Configuration; empty for the recommended one.
        settings: Settings of the method that differ from its configuration.
        card: Texts of the owner for the model card.
    """

    data: str = ""
    table: str = ""
    source: str = ""
    target: str = ""
    direction: str = ""
    drop_missing: bool = False
    persons: str = ""
    column: str = ""
    names: str = ""
    weight: str = ""
    weight_max: str = ""
    time: str = ""
    time_window: str = ""
    time_format: str = ""
    policy: dict[str, str] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    secret: str = "relation"
    epsilon: float = 1.0
    row_epsilon: float = 1.0
    delta: str = ""
    size: str = ""
    dataset: str = ""
    goal: str = "shape"
    hubs: bool = False
    method: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    card: dict[str, str] = field(default_factory=dict)

    @property
    def reading(self) -> Reading:
        """How the graph is read, in the words of all commands."""
        if form_of(self.data) == "set":  # of other data a form may still hold columns
            return Reading(undirected=self.direction == "drop")
        given = {name: getattr(self, name) or None for name in _PLAIN}
        persons = self.persons or None
        return Reading(
            **given,
            # The sides of a bipartite graph are those of its two columns.
            nodes=None if self.kind == "bipartite" else persons,
            attributes=persons if self.kept else None,
            weight_max=_number("weight_max", self.weight_max) if self.weight_max else None,
            time_window=self.time_window or None,
            time_format=self.time_format or None,
            kind=None if self.kind == "undirected" else self.kind,
            undirected=self.direction == "drop",
            missing_ids="drop" if self.drop_missing else None,
        )

    @property
    def kind(self) -> Kind:
        """Kind of the graph."""
        return self.direction if self.direction in ("directed", "bipartite") else "undirected"  # type: ignore[return-value]

    @property
    def form(self) -> Form:
        """Form of the data."""
        return form_of(self.data, self.reading.given())

    @property
    def is_database(self) -> bool:
        """Whether the data are a table of a database."""
        return self.data.startswith(_SERVERS) or self.data.endswith(".duckdb")

    @property
    def kept(self) -> dict[str, str]:
        """Policies of the columns of the nodes that are read."""
        return {name: word for name, word in self.policy.items() if word != "drop"}

    @property
    def has_private_columns(self) -> bool:
        """Whether columns of the nodes have a budget of their own."""
        return any(word.startswith("private") for word in self.policy.values())

    @property
    def has_transfers(self) -> bool:
        """Whether amounts or times are read."""
        return bool(self.weight or self.time)

    def section(self) -> dict[str, Any]:
        """Return the section ``data`` of a configuration."""
        section = data_settings(self.data, self.reading.given(), self.form)
        return section | {"init_args": section["init_args"] | self._of_nodes()}

    def words_of_data(self) -> list[str]:
        """Return the data as words of a command line."""
        given = self.reading.given()
        short = [
            f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
            for name, value in given.items()
        ]
        long = [
            f"--data.{name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in self._of_nodes().items()
        ]
        return [self.data, *short, *long]

    def words(self, out: Path) -> list[str]:
        """Return the whole command line of a fit, without its program.

        Args:
            out: Folder of the run.
        """
        budget = {"epsilon": f"{self.epsilon:g}", "method": self.method, "delta": self.delta}
        budget["row-epsilon"] = f"{self.row_epsilon:g}" if self.has_private_columns else ""
        budget["dataset"] = self.dataset
        return [
            "fit",
            *self.words_of_data(),
            *(f"--{name}={value}" for name, value in budget.items() if value),
            *(
                f"--model.init_args.{name}={value}"
                for name, value in self.settings.items()
                if value
            ),
            *(f"--card.{name}={value}" for name, value in self.card.items() if value),
            f"--out={out}",
        ]

    def _of_nodes(self) -> dict[str, Any]:
        """Settings of the nodes that have no short option."""
        if self.form == "set":
            return {}
        others = {n: word for n, word in self.policy.items() if word not in ("public", "private")}
        labels, private = (
            {
                name: values(self.domains.get(name, ""))
                for name, each in self.kept.items()
                if each == word
            }
            for word in ("private_label", "private")
        )
        given = {
            "nodes.column": self.column,
            "nodes.names": self.names,
            "nodes.policy": others if self.kept else {},
            # Not by their policy: the configuration of a method may name private columns of its own.
            "nodes.private_columns": ",".join(private),
            "nodes.domains": private,
            "nodes.classes": ",".join(str(value) for each in labels.values() for value in each),
        }
        return {name: value for name, value in given.items() if value}


def values(text: str) -> list[str] | list[float]:
    """Return the values of a private column: borders of bins if all are numbers, or else categories.

    Args:
        text: The values, parted by commas.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        return [float(part) for part in parts]
    except ValueError:
        return parts


def answered(answers: Answers, form: Mapping[str, str], names: Collection[str]) -> Answers:
    """Return answers with those of a form.

    Args:
        answers: Answers so far.
        form: Texts by their names; those of a dictionary are ``policy.COLUMN`` and so on.
        names: Names of the answers that the page asks for. A switch that is off sends nothing.

    Raises:
        CommandError: If a text is too long, or if a number is none.
    """
    changes: dict[str, Any] = {}
    for each in fields(Answers):
        if each.name not in names:
            continue
        if each.type == bool:
            changes[each.name] = each.name in form
        elif each.type == dict[str, str]:
            start = f"{each.name}."
            changes[each.name] = {
                name.removeprefix(start): _text(text)
                for name, text in form.items()
                if name.startswith(start) and _text(text)
            }
        elif each.name in form:
            text = _text(form[each.name])
            changes[each.name] = _number(each.name, text) if each.type == float else text
    return checked(replace(answers, **changes))


def checked(answers: Answers) -> Answers:
    """Return answers that a page may send; what reads them checks the rest.

    Raises:
        CommandError: If data lie outside of the folder, or if a choice is none.
    """
    _check_data(answers.data)
    is_of_table = _TABLE_AND_COLUMN.fullmatch(answers.persons)
    if not is_of_table or Path(answers.persons.partition("(")[0]).exists():
        _check_file(answers.persons)
    if "/" in answers.table:
        raise CommandError("'Table' has the form NAME or SCHEMA.NAME")
    choices: list[tuple[str, Collection[str]]] = [
        (answers.direction, DIRECTIONS),
        (answers.secret, get_args(Secret)),
        (answers.names, ("", "ids", "numbers")),
        (answers.goal, GOALS),
        (answers.method, ("", *methods())),
        *((word, get_args(Policy)) for word in answers.policy.values()),
        *((name, OWNER_TEXTS) for name in answers.card),
    ]
    for choice, all_choices in choices:
        if choice not in all_choices:
            raise CommandError(f"{choice!r} is none of {', '.join(filter(None, all_choices))}")
    for name in answers.settings:
        if not name.isidentifier():
            raise CommandError(f"{name!r} is no setting of a method")
    for name in ("epsilon", "row_epsilon"):
        if not 0 < getattr(answers, name) <= MOST_EPSILON:
            raise CommandError(
                f"'{LABELS[name]}' must be above 0 and at most {MOST_EPSILON:g}\n"
                "larger ones protect next to nothing: the command line takes them"
            )
    for name in ("delta", "size"):
        if getattr(answers, name):
            _number(name, getattr(answers, name))
    return answers


def methods() -> list[str]:
    """Return the configurations that the studio may name; files of a user are none of them."""
    found = shipped_configs().items()
    return [name for name, path in found if path.parent.name in ("methods", "baselines")]


def examples() -> Sequence[str]:
    """Return the names of the built-in graphs and sets."""
    return [*built_in_graphs(), *built_in_sets()]


def _check_data(name: str) -> None:
    if name.startswith(_SERVERS):
        if re.search(r"://[^/@]*:[^/@]*@|password", name):
            raise CommandError(
                "the URL holds a password, which the files of a run would keep\n"
                "a password belongs into the file ~/.pgpass or the variable PGPASSWORD"
            )
    elif name not in examples():
        _check_file(name)


def _check_file(name: str) -> None:
    """Refuse a file that is none of the list: other folders stay closed."""
    if name and (name not in data_files() or not is_inside(Path(name))):
        raise CommandError(
            f"{name[:100]}: no data file of the folder of the studio\n"
            "copy it into the folder, and load the page again"
        )


def _text(text: str) -> str:
    """Return a text without spaces around it.

    Raises:
        CommandError: If it is too long, or has a control character.
    """
    text = text.strip()
    if len(text) > _LONGEST or not text.isprintable():
        raise CommandError(f"a text has at most {_LONGEST} characters, in one line")
    return text


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise CommandError(f"'{LABELS[name]}' must be a number, got {text!r}")
    return value
