"""The model card as sections of text and tables, for all of its formats."""

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lightning_dpg.privacy.budget import digits_down, digits_up
from lightning_dpg.privacy.second_opinion import SecondOpinion
from lightning_dpg.release.card.sentences import cells, say, sentences
from lightning_dpg.release.card.topics import percent, texts_of


class Table(NamedTuple):
    """Rows of texts under a head."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


class Section(NamedTuple):
    """A part of the card; empty parts of a section are left out.

    Attributes:
        title: Heading.
        paragraphs: Texts.
        lists: Lists of texts.
        tables: Tables with numbers.
        code: Lines to type.
        fields: Names of lines to be filled in by hand.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    lists: tuple[list[str], ...] = ()
    tables: tuple[Table, ...] = ()
    code: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


class Document(NamedTuple):
    """The whole card.

    Attributes:
        title: Heading of all.
        guarantee: The guarantee in one sentence, or that there is none.
        is_private: Whether there is a guarantee.
        warning: Warning at the top of the card; empty for a shipped method.
        description: The content of the folder.
        page: Sections of page 1, which is what is signed.
        sections: Sections of the appendix.
    """

    title: str
    guarantee: str
    is_private: bool
    warning: str
    description: str
    page: list[Section]
    sections: list[Section]


def document(content: dict[str, Any]) -> Document:
    """Arrange the content of a ``privacy.json`` with topics.

    Raises:
        KeyError: If it has no topics.
    """
    page = [
        _signed(content),
        _persons(content),
        Section(say("page.assumed"), lists=(content["exposure"]["unprotected_quantities"],)),
        _signature(texts_of(content)),
    ]
    sections = [
        _protected(content["privacy_unit"]),
        _meaning(content),
        _responsible(content),
        _numbers(content),
        Section(
            say("public.title"), (say("public.published", files=content["exposure"]["published"]),)
        ),
        _reads(content["mechanisms"]["reads"], content["entries"]),
        _errors(content["mechanisms"]["reads"], content["entries"]),
        _evaluation(content["evaluation"]),
        _accounting(content),
        Section(say("limits.title"), lists=(content["limitations"]["known"],)),
        Section(say("maps.title"), (say("maps.text"),), tables=(_map(),)),
        Section(
            say("checks.title"),
            (say("checks.text"),),
            code=("sha256sum --check SHA256SUMS", "python -m lightning_dpg verify FOLDER"),
        ),
    ]
    # Releases of earlier versions do not say it.
    is_shipped = content["administrative"].get("shipped", True)
    return Document(
        title=content["product"]["name"],
        guarantee=content["guarantee"],
        is_private=content["epsilon"] != "inf",
        warning="" if is_shipped else say("product.not_shipped"),
        description=content["product"]["description"],
        page=page,
        sections=sections,
    )


_ON_PAGE = ("epsilon_reason", "other_releases", "operator", "purpose", "recipient")
"""Texts of the owner on page 1; the appendix has all of them."""
_LONGEST = 200
"""Number of characters of a text of the owner on page 1, which is one sheet."""
_OF_A_PERSON = (0, 1, 10, 50)
"""Numbers of units in the table of page 1."""


def _signed(content: dict[str, Any]) -> Section:
    """Say what is signed: unit, budget, condition, reason, other releases, and for whom."""
    texts = {
        name: text and shorten(text, _LONGEST, placeholder=say("page.cut"))
        for name, text in texts_of(content).items()
    }
    unit, accounting = content["privacy_unit"], content["accounting"]
    description = " ".join(each["description"] for each in (unit, *unit.get("beside", ())))
    if texts["unit"]:
        description = say("page.unit", words=texts["unit"], description=description)
    words = (say("page.total"), _other_runs(accounting), texts["other_releases"])
    texts["other_releases"] = " ".join(filter(None, words))
    rows = [
        (say("page.unit_of"), description),
        (say("page.budget"), "; ".join(map(_cost, (content, *content.get("beside", ()))))),
        (say("page.condition"), content.get("condition") or say("page.unconditional")),
        *((say(f"owner.{name}"), text) for name in _ON_PAGE if (text := texts[name])),
        (say("page.date"), content["administrative"]["date"] or say("responsible.unknown")),
    ]
    return Section(say("page.title"), tables=(Table(cells("numbers.head"), rows),))


def _cost(stated: dict[str, Any]) -> str:
    """Say the budget of one unit."""
    return say("page.cost", budget=_budget(stated), unit=say(f"{stated['relation']}.one"))


def _persons(content: dict[str, Any]) -> Section:
    """Say what epsilon means for persons with few and with many units."""
    parameters, unit = content["privacy_parameters"], content["privacy_unit"]
    if not parameters["groups"]:
        return Section(say("page.persons"), tuple(parameters["meaning"]))
    rows = _groups(parameters["groups"], _OF_A_PERSON)
    for other in parameters.get("beside", ()):
        together = _groups(other["together"], _OF_A_PERSON)
        rows += [(say("page.columns", units=units), *numbers) for units, *numbers in together]
    values = {"plural": unit["plural"], "mean": say("meaning.mean") if parameters["delta"] else ""}
    table = Table(cells("page.persons_head", **values), rows)
    return Section(say("page.persons"), (say("page.persons_text"),), tables=(table,))


def _signature(texts: dict[str, str | None]) -> Section:
    missing = missing_texts(texts)
    return Section(
        say("page.signature"),
        ((say("page.missing", names=missing),) if missing else ()),
        fields=cells("page.fields"),
    )


def missing_texts(texts: dict[str, str | None]) -> str:
    """Name the texts that the owner has not stated."""
    return ", ".join(say(f"owner.{name}") for name, text in texts.items() if text is None)


def _map() -> Table:
    """Map parts of the card to topics of guidelines."""
    rows = [cells(name) for name in sentences() if name.startswith("maps.of_")]
    return Table(cells("maps.head"), rows)


def _protected(unit: dict[str, Any]) -> Section:
    return Section(
        say("protected.title"),
        (unit["description"], *(each["description"] for each in unit.get("beside", ()))),
        (
            [say("protected.protected", fact=fact) for fact in unit["protected"]],
            [say("protected.not_protected", fact=fact) for fact in unit["not_protected"]],
            [say("protected.absent", fact=fact) for fact in unit["not_in_the_release"]],
        ),
    )


def _meaning(content: dict[str, Any]) -> Section:
    parameters, unit = content["privacy_parameters"], content["privacy_unit"]
    joint = [group for each in parameters.get("beside", ()) for group in each["together"]]
    values = {"plural": unit["plural"], "mean": say("meaning.mean") if parameters["delta"] else ""}
    texts, tables = list(parameters["meaning"]), []
    if parameters["groups"]:
        texts.append(say("meaning.groups", **values))
        tables.append(Table(cells("meaning.head", **values), _groups(parameters["groups"])))
    if joint:
        texts.append(say("meaning.joint", **values))
        tables.append(Table(cells("meaning.joint_head", **values), _groups(joint)))
    return Section(say("meaning.title"), tuple(texts), tables=tuple(tables))


def _groups(
    groups: Sequence[dict[str, Any]], sizes: Sequence[int] | None = None
) -> list[tuple[str, ...]]:
    """Return the rows of groups of units, of all sizes by default."""
    return [
        (
            str(group["units"]),
            f"{group['epsilon']:.12g}",
            f"{group['delta']:g}",
            percent(group["belief_at_most"]),
            percent(group["true_positive_rate_at_most"]),
        )
        for group in groups
        if sizes is None or group["units"] in sizes
    ]


def _responsible(content: dict[str, Any]) -> Section:
    facts, texts = content["administrative"], texts_of(content)
    settings = ", ".join(f"{name}: {_value(value)}" for name, value in facts["settings"].items())
    trust, unknown = content["trust_model"], say("responsible.unknown")
    rows = [
        *((say(f"owner.{name}"), text) for name, text in texts.items() if text),
        *([(say("responsible.not_stated"), missing)] if (missing := missing_texts(texts)) else []),
        ("date", facts["date"] or unknown),
        ("data domain", content["data"]["domain"]),
        ("method", facts["method"]),
        ("settings", settings or "none"),
        ("program", f"lightning_dpg {facts['lightning_dpg'] or unknown}"),
        ("SHA-256 of config.yaml", facts["configuration_sha256"] or unknown),
        ("trust model", f"{trust['model']}: {trust['description']}"),
    ]
    if facts["card_date"] != facts["date"]:
        rows.append(("card written again", facts["card_date"]))
    return Section(say("responsible.title"), tables=(Table(cells("responsible.head"), rows),))


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _numbers(content: dict[str, Any]) -> Section:
    rows = [
        ("method, mode", f"{content['method']}, {content['mode']}"),
        ("neighboring relation", content["relation"]),
        ("epsilon, delta", _budget(content)),
    ]
    if content.get("conditional"):
        rows.append(("only if", content["condition"]))
    if content.get("claimed_epsilon") is not None:
        rows.append(("epsilon by the paper's count", str(content["claimed_epsilon"])))
    rows.append(("accountant", content["accountant"]))
    for other in content.get("beside", ()):
        rows += [
            ("further relation", other["relation"]),
            ("its epsilon, delta", _budget(other)),
            ("its accountant", other["accountant"]),
        ]
    if content["steps"]:
        rows.append(("private training steps", f"{content['steps']:,}"))
    source = {"os": "operating system", "none": "none"}[content["noise_source"]]
    rows.append(("noise source", source))
    return Section(say("numbers.title"), tables=(Table(cells("numbers.head"), rows),))


def _budget(content: dict[str, Any]) -> str:
    epsilon = float(content["epsilon"])
    return "none" if math.isinf(epsilon) else f"{epsilon:.15g}, {content['delta']:.15g}"


def _reads(reads: list[dict[str, Any]], entries: list[dict[str, Any]]) -> Section:
    relations = {entry["relation"] for entry in entries}
    rows = [
        (
            entry["name"],
            *([entry["relation"]] if len(relations) > 1 else []),
            _noise(entry),
            digits_up(float(entry["sensitivity"]), 4),
            f"{entry['steps']:,}",
            "; ".join(read["proofs"]) or entry["proof"],
        )
        for read, entry in zip(reads, entries, strict=True)
    ]
    head = "reads.head_of_units" if len(relations) > 1 else "reads.head"
    return Section(
        say("reads.title"),
        lists=([read["description"] for read in reads],),
        tables=(Table(cells(head), rows),) if rows else (),
    )


def _noise(entry: dict[str, Any]) -> str:
    mechanism = entry["mechanism"]
    if mechanism == "gaussian":
        sample = f", sample rate {entry['sample_rate']:g}" if entry["sample_rate"] < 1 else ""
        return f"noise multiplier {digits_down(entry['noise_multiplier'], 4)}{sample}"
    if mechanism == "non_private":
        return "none"
    delta = f", delta {digits_up(entry['delta'], 4)}" if mechanism == "approximate" else ""
    return f"epsilon {digits_up(float(entry['epsilon']), 4)}{delta}"


_SIZES = (1, 10, 100, 10_000)
"""Sizes of what is counted, from a small group to the whole."""
_SUMS = ("amount_sums", "neighbor_sums", "column_mixing")
"""How the keys of reads begin whose numbers are no counts."""


def _errors(reads: list[dict[str, Any]], entries: list[dict[str, Any]]) -> Section:
    """Say how large the noise is, and what it is to small groups."""
    rows = []
    for read, entry in zip(reads, entries, strict=True):
        if error := read.get("expected_error"):
            mean, is_sum = error["mean_absolute_error"], entry["key"].startswith(_SUMS)
            shares = ["" if is_sum else _share(mean / size) for size in _SIZES]
            limit = f"{error['half_width_95']:g}"
            rows.append((read["name"], error["noise"], f"{mean:g}", limit, *shares))
    lines = [say("errors.text")] if rows else [say("errors.none")]
    for entry in entries:
        if (said := f"false_reports.{entry['key']}") in sentences():
            # A fact is reported as it is with odds times the probability of another one.
            odds = math.exp(min(float(entry["epsilon"]), 700.0))
            rare, half = ((1 - s) / (1 - s + s * odds) for s in (0.01, 0.5))
            values = {"rare": _share(rare), "half": _share(half), "wrong": f"{1000 * half:.2g}"}
            lines.append(say(said, **values))
    lines.append(say("errors.small"))
    tables = (Table(cells("errors.head"), rows),) if rows else ()
    return Section(say("errors.title"), tuple(lines), tables=tables)


def _share(share: float) -> str:
    return f"{float(f'{100 * share:.2g}'):,g} %"


def _evaluation(topic: dict[str, str]) -> Section:
    lines = [topic["audit"], topic["attack"], topic["utility"]]
    return Section(say("evaluation.title"), lists=(lines,))


def _accounting(content: dict[str, Any]) -> Section:
    topic = content["accounting"]
    lines = [topic["composition"], topic["post_processing"], topic["earlier_releases"]]
    if "relations" in topic:
        lines.insert(1, topic["relations"])
    if "second_opinion" in topic:
        lines.insert(1, _opinion(topic["second_opinion"], float(content["epsilon"])))
    lines += filter(None, [_other_runs(topic)])
    return Section(say("accounting.title"), tuple(lines))


def _other_runs(topic: dict[str, Any]) -> str:
    fact = topic.get("other_runs")
    return say("accounting.other_runs", fact=fact) if fact else ""


def _opinion(values: dict[str, Any], epsilon: float) -> str:
    opinion = SecondOpinion(values["rdp"], values["prv"], values["is_part"])
    sentence = say("accounting.opinion", program=values["by"], opinion=opinion)
    return f"{sentence} {opinion.remark(epsilon)}".rstrip()


CARD = "MODEL_CARD.md"
PAGE = "MODEL_CARD.html"
_TEMPLATES = {CARD: "card.md.jinja", PAGE: "card.html.jinja"}
# "\" first, which the other replacements insert.
_ESCAPED = {"\\": "\\\\", "&": "&amp;", "<": "&lt;", "|": "\\|", "*": "\\*", "`": "\\`", "[": "\\["}


def in_markdown(text: str) -> str:
    """Escape a text for Markdown, which then shows it as it is."""
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text


def pages(content: dict[str, Any]) -> dict[str, str]:
    """Render all formats of the card, by names of files.

    Args:
        content: Content of a ``privacy.json`` with topics.
    """
    card = document(content)
    return {name: rendered(file, card=card, private=()) for name, file in _TEMPLATES.items()}


def nonprivate_page(content: dict[str, Any], private: list[Section]) -> str:
    """Render a page for the operator, with sections that read the private data.

    Args:
        content: Content of a ``privacy.json`` with topics.
        private: Sections that must not leave the operator.
    """
    return rendered(_TEMPLATES[PAGE], card=document(content), private=private)


def registry_record(content: dict[str, Any]) -> tuple[str, str]:
    """Render a record for the registry of deployments of differential privacy.

    Args:
        content: Content of a ``privacy.json`` with topics.

    Returns:
        The record in YAML, and a sentence on what the owner has not stated, empty if there is nothing.
    """
    texts, facts = texts_of(content), content["administrative"]
    day, missing = facts["date"] or facts["card_date"], missing_texts(texts)
    words = f"{texts['operator'] or ''} {content['product']['name']} {day}".lower()
    values = {"content": content, "texts": texts, "missing": missing, "day": day}
    record = rendered(
        "registry.yaml.jinja", slug="-".join(re.findall("[a-z0-9]+", words)), **values
    )
    return record, say("registry.missing", names=missing) if missing else ""


def rendered(template: str, **values: Any) -> str:
    """Fill a template of this folder; texts are escaped where it is HTML.

    Args:
        template: Name of the file.
        **values: What it shows.
    """
    return f"{_environment().get_template(template).render(values).strip()}\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=lambda name: name is not None and ".html" in name,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["markdown"] = in_markdown
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    environment.globals["say"] = say
    environment.filters["tied"] = lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%")
    return environment
