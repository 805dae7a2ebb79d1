"""The model card as sections of text and tables, for all of its formats."""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lightning_dpg.privacy.budget import digits_down, digits_up
from lightning_dpg.privacy.second_opinion import SecondOpinion
from lightning_dpg.release.card.sentences import cells, say
from lightning_dpg.release.card.topics import OF_THE_OWNER, percent


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
        sections: All sections in their order.
    """

    title: str
    guarantee: str
    is_private: bool
    warning: str
    description: str
    sections: list[Section]


def document(content: dict[str, Any]) -> Document:
    """Arrange the content of a ``privacy.json`` with topics.

    Raises:
        KeyError: If it has no topics.
    """
    sections = [
        _protected(content["privacy_unit"]),
        _meaning(content),
        _responsible(content),
        _numbers(content),
        _public(content["exposure"]),
        _reads(content["mechanisms"]["reads"], content["entries"]),
        _errors(content["mechanisms"]["reads"]),
        _evaluation(content["evaluation"]),
        _accounting(content),
        Section(say("limits.title"), lists=(content["limitations"]["known"],)),
        _checks(),
    ]
    # Releases of earlier versions do not say it.
    is_shipped = content["administrative"].get("shipped", True)
    return Document(
        title=content["product"]["name"],
        guarantee=content["guarantee"],
        is_private=content["epsilon"] != "inf",
        warning="" if is_shipped else say("product.not_shipped"),
        description=content["product"]["description"],
        sections=sections,
    )


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
    values = {
        "plural": unit["plural"],
        "mean": say("meaning.mean") if parameters["delta"] else "",
    }
    texts, tables = list(parameters["meaning"]), []
    if parameters["groups"]:
        texts.append(say("meaning.groups", **values))
        tables.append(Table(cells("meaning.head", **values), _groups(parameters["groups"])))
    if joint:
        texts.append(say("meaning.joint", **values))
        tables.append(Table(cells("meaning.joint_head", **values), _groups(joint)))
    return Section(say("meaning.title"), tuple(texts), tables=tuple(tables))


def _groups(groups: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the rows of groups of units."""
    return [
        (
            str(group["units"]),
            f"{group['epsilon']:.12g}",
            f"{group['delta']:g}",
            percent(group["belief_at_most"]),
            percent(group["true_positive_rate_at_most"]),
        )
        for group in groups
    ]


def _responsible(content: dict[str, Any]) -> Section:
    facts, data = content["administrative"], content["data"]
    settings = ", ".join(f"{name}: {_value(value)}" for name, value in facts["settings"].items())
    trust, unknown = content["trust_model"], say("responsible.unknown")
    rows = [
        *((name, facts[name]) for name in OF_THE_OWNER),
        ("date", facts["date"] or unknown),
        ("data", data["description"]),
        ("data domain", data["domain"]),
        ("settings chosen on", data["settings_chosen_on"]),
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


def _public(exposure: dict[str, Any]) -> Section:
    published = say("public.published", files=exposure["published"])
    return Section(
        say("public.title"),
        (published, say("public.assumed")),
        (exposure["unprotected_quantities"],),
    )


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


def _errors(reads: list[dict[str, Any]]) -> Section:
    rows = [
        (
            read["name"],
            read["expected_error"]["noise"],
            f"{read['expected_error']['mean_absolute_error']:g}",
            f"{read['expected_error']['half_width_95']:g}",
        )
        for read in reads
        if "expected_error" in read
    ]
    if not rows:
        return Section(say("errors.title"), (say("errors.none"),))
    table = Table(cells("errors.head"), rows)
    return Section(say("errors.title"), (say("errors.text"),), tables=(table,))


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
    if "other_runs" in topic:
        lines.append(say("accounting.other_runs", fact=topic["other_runs"]))
    return Section(say("accounting.title"), tuple(lines))


def _opinion(values: dict[str, Any], epsilon: float) -> str:
    opinion = SecondOpinion(values["rdp"], values["prv"], values["is_part"])
    sentence = say("accounting.opinion", program=values["by"], opinion=opinion)
    return f"{sentence} {opinion.remark(epsilon)}".rstrip()


def _checks() -> Section:
    return Section(
        say("checks.title"),
        (say("checks.text"),),
        code=("sha256sum --check SHA256SUMS", "python -m lightning_dpg verify FOLDER"),
        fields=cells("checks.fields"),
    )


CARD = "MODEL_CARD.md"
PAGE = "MODEL_CARD.html"
_TEMPLATES = {CARD: "card.md.jinja", PAGE: "card.html.jinja"}
# "\" first, which the other replacements insert.
_ESCAPED = {
    "\\": "\\\\",
    "&": "&amp;",
    "<": "&lt;",
    "|": "\\|",
    "*": "\\*",
    "`": "\\`",
    "[": "\\[",
}


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
    return {name: _rendered(template, content, ()) for name, template in _TEMPLATES.items()}


def nonprivate_page(content: dict[str, Any], private: list[Section]) -> str:
    """Render a page for the operator, with sections that read the private data.

    Args:
        content: Content of a ``privacy.json`` with topics.
        private: Sections that must not leave the operator.
    """
    return _rendered(_TEMPLATES[PAGE], content, tuple(private))


def _rendered(template: str, content: dict[str, Any], private: tuple[Section, ...]) -> str:
    text = _environment().get_template(template).render(card=document(content), private=private)
    return f"{text.strip()}\n"


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
    environment.filters["tied"] = lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%")
    return environment
