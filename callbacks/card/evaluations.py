"""Audits and attacks in the card: only those of public graphs are published with their numbers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lightning_dpg.callbacks.card.document import Section, Table
from lightning_dpg.callbacks.card.texts import Card
from lightning_dpg.callbacks.card.topics import percent
from lightning_dpg.errors import CommandError

_COMMANDS = {"audit": "audit --output FOLDER", "attack": "attack --json FILE"}
_REQUIRED = {
    "audit": ("method", "epsilon_lower_bound", "confidence"),
    "attack": ("link_prediction",),
}
_PRIVATE = {
    "audit": "The method was audited on the private graph",
    "attack": "The release was attacked with the private graph at hand",
}


class Findings(NamedTuple):
    """Results of audits and attacks.

    Attributes:
        topic: Published sentences about what was given, by ``audit`` and ``attack``.
        private: Sections with numbers that read a private graph, for the operator only.
    """

    topic: dict[str, str]
    private: list[Section]


def findings(card: Card, method: str) -> Findings:
    """Read the results that a card names.

    Args:
        card: Texts of the owner, with the names of the files.
        method: Name of the method of the release.

    Raises:
        CommandError: If a file holds no result, or that of another method.
    """
    sentences, private = dict[str, str](), list[Section]()
    for kind, path in (("audit", card.audit), ("attack", card.attack)):
        if path is None:
            continue
        report = _read(kind, Path(path), method)
        graph = report.get("graph")
        if isinstance(graph, dict) and graph.get("is_public") is True:
            sentences[kind] = _public(kind, report, str(graph.get("name")))
        else:
            sentences[kind] = (
                f"{_PRIVATE[kind]}; the operator has the result, which is itself private and no "
                "part of the release."
            )
            rows = [*_leaves(report)]
            private.append(
                Section(
                    f"Result of the {kind}: must stay with the operator",
                    ("These numbers read the private graph. No guarantee covers them.",),
                    tables=(Table(("quantity", "value"), rows),),
                )
            )
    return Findings(sentences, private)


def _read(kind: str, path: Path, method: str) -> dict[str, Any]:
    wanted = f"expected the file that `python -m lightning_dpg {_COMMANDS[kind]}` writes"
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CommandError(f"card.{kind} {path}: no JSON ({error})\n{wanted}") from error
    missing = [
        name for name in _REQUIRED[kind] if not isinstance(report, dict) or name not in report
    ]
    if missing:
        raise CommandError(f"card.{kind} {path}: it has no {missing[0]!r}\n{wanted}")
    found = report.get("method", method)
    if found != method:
        raise CommandError(
            f"card.{kind} {path}: a result of {found}, while this release is by {method}\n"
            f"name the {kind} of {method}, or leave card.{kind} out"
        )
    return dict(report)


def _public(kind: str, report: dict[str, Any], graph: str) -> str:
    if kind == "audit":
        verdict = "the claim is REFUTED" if report.get("refuted") else "the claim is not refuted"
        return (
            f"Audit on the built-in graph {graph}, which is public, by the view "
            f"{report.get('view')}: {report.get('correct')} of {report.get('guesses')} guesses "
            f"were right, so that epsilon is at least {report['epsilon_lower_bound']:.4g} at a "
            f"confidence of {report['confidence']:.0%}; claimed was epsilon "
            f"{report.get('claimed_epsilon')}: {verdict}. An audit bounds epsilon from below and "
            "proves no protection."
        )
    generated = report["link_prediction"]["generated"]["value"]
    return (
        f"Attacks on the built-in graph {graph}, which is public.{_best(report)} Accuracy of "
        f"predicting hidden links from generated graphs: {percent(generated)}, where chance is 50 "
        "%."
    )


def _best(report: dict[str, Any]) -> str:
    """The most successful attack on single links; nothing for sets of graphs."""
    rows = report.get("link_stealing") or []
    if not rows:
        return ""
    best = max(rows, key=lambda row: row["release"]["found"]["value"])
    base = best.get("baseline")
    unseen = "" if not base else f"; {percent(base['found']['value'])} without them in the data"
    return (
        f" The best of {len(rows)} attacks on single links ({best['attack']}) finds "
        f"{percent(best['release']['found']['value'])} of them at 1 % false alarms, where chance "
        f"is 1 %{unseen}."
    )


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Names and texts of all single values of a report."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}, {key}" if name else str(key))
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            yield from _leaves(inner, f"{name} {number}")
    else:
        yield name, f"{value:.6g}" if isinstance(value, float) else str(value)
