"""Audits and attacks in the card: only those of public graphs are published with their numbers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lightning_dpg.errors import CommandError
from lightning_dpg.release.card.document import Section, Table
from lightning_dpg.release.card.sentences import cells, say
from lightning_dpg.release.card.texts import Card
from lightning_dpg.release.card.topics import percent

_COMMANDS = {"audit": "audit --out FOLDER", "attack": "attack --json > FILE"}
_REQUIRED = {"audit": ("method", "epsilon_lower_bound", "confidence"), "attack": ("confidence",)}


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
            sentences[kind] = say(f"evaluation.private_{kind}")
            rows = [*_leaves(report)]
            private.append(
                Section(
                    say("private.title", kind=kind),
                    (say("private.text"),),
                    tables=(Table(cells("private.head"), rows),),
                )
            )
    return Findings(sentences, private)


def _read(kind: str, path: Path, method: str) -> dict[str, Any]:
    way = f"expected the file that `python -m lightning_dpg {_COMMANDS[kind]}` writes"
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CommandError(f"card.{kind} {path}: no JSON ({error})\n{way}") from error
    missing_keys = [
        name for name in _REQUIRED[kind] if not isinstance(report, dict) or name not in report
    ]
    if missing_keys:
        raise CommandError(f"card.{kind} {path}: it has no {missing_keys[0]!r}\n{way}")
    other = report.get("method", method)
    if other != method:
        raise CommandError(
            f"card.{kind} {path}: a result of {other}, while this release is by {method}\n"
            f"name the {kind} of {method}, or leave card.{kind} out"
        )
    return dict(report)


def _public(kind: str, report: dict[str, Any], graph: str) -> str:
    if kind == "audit":
        of = "attributes" if report.get("relation") == "attributes" else "edges"
        return say(
            "evaluation.audit",
            epsilon=say(f"evaluation.epsilon_of_{of}"),
            graph=graph,
            view=report.get("view"),
            correct=report.get("correct"),
            guesses=report.get("guesses"),
            bound=f"{report['epsilon_lower_bound']:.4g}",
            confidence=f"{report['confidence']:.0%}",
            claimed=report.get("claimed_epsilon"),
            verdict=say(f"evaluation.{'refuted' if report.get('refuted') else 'not_refuted'}"),
        )
    lines = [say("evaluation.attack", graph=graph)]
    if rows := report.get("link_stealing"):  # not for sets of graphs
        lines.append(_best(rows))
    if prediction := report.get("link_prediction"):  # not for classes of nodes
        accuracy = percent(prediction["generated"]["value"])
        lines.append(say("evaluation.accuracy", accuracy=accuracy))
    return " ".join(lines)


def _best(rows: list[dict[str, Any]]) -> str:
    """Return the most successful attack on single links."""
    best = max(rows, key=lambda row: row["release"]["found"]["value"])
    base = best.get("baseline")
    return say(
        "evaluation.best",
        attacks=len(rows),
        attack=best["attack"],
        found=percent(best["release"]["found"]["value"]),
        unseen=say("evaluation.unseen", found=percent(base["found"]["value"])) if base else "",
    )


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names and texts of all single values of a report."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}, {key}" if name else str(key))
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            yield from _leaves(inner, f"{name} {number}")
    else:
        yield name, f"{value:.6g}" if isinstance(value, float) else str(value)
