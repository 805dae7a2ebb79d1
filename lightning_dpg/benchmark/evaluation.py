"""Comparison of synthetic graphs with the real one (reads the private graph)."""

import csv
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch_geometric.data import Data

from lightning_dpg.callbacks.release_writer import FEATURES, FORMATS, STATEMENT
from lightning_dpg.errors import CommandError
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.metrics import queries
from lightning_dpg.metrics.queries import Answer, Comparison, Profile
from lightning_dpg.running.graph_arguments import load
from lightning_dpg.running.releases import Release

NOT_PRIVATE = "not private: the numbers were computed from the real graph"


class Measured(NamedTuple):
    """One synthetic graph, compared with the real graph."""

    name: str
    """Path or name of the graph."""
    comparison: Comparison
    guarantee: str
    """Guarantee of its release in one sentence; empty if no statement was given."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Synthetic graphs beside the real graph. All numbers are private: the real graph was read.

    Attributes:
        name: Name of the real graph.
        real: Measurements of the real graph.
        measured: Synthetic graphs in the given order, with their answers.
    """

    name: str
    real: Profile
    measured: tuple[Measured, ...]

    @property
    def answers(self) -> dict[str, dict[str, Answer]]:
        """Answer to each query, by the name of the synthetic graph and by the query."""
        return {found.name: found.comparison.answers for found in self.measured}

    def table(self) -> list[str]:
        """Lines of a table for each synthetic graph, with an empty line after each."""
        return [
            line
            for found in self.measured
            for line in (*table(self.name, found.name, found.comparison.answers), "")
        ]

    def __str__(self) -> str:
        """All tables, and a reminder that they are not private."""
        return "\n".join([*self.table(), NOT_PRIVATE])

    def to_json(self) -> str:
        """Return all answers as strict JSON, with null for nan, and with their notes."""
        graphs = [
            {
                "path": found.name,
                "queries": {
                    name: {
                        key: value
                        for key, value in answer.for_json().items()
                        if key != "note" or value
                    }
                    for name, answer in found.comparison.answers.items()
                },
            }
            for found in self.measured
        ]
        return json.dumps({"graphs": graphs}, indent=2, allow_nan=False) + "\n"

    def to_csv(self, path: str | Path) -> None:
        """Write a row for each synthetic graph and query.

        Args:
            path: File to write.
        """
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["path", "query", "real", "synthetic", "error", "note"])
            for found in self.measured:
                for name, answer in found.comparison.answers.items():
                    writer.writerow([found.name, name, *answer.for_json().values()])


def evaluate(real: Any, synthetic: Any, *, undirected: bool = False) -> Evaluation:
    """Compare synthetic graphs with the real graph. Reads the private graph: nothing is private.

    A graph is a name, a path, or an object of networkx, PyTorch Geometric, scipy or numpy.

    Args:
        real: The real graph.
        synthetic: A graph, an open release, the folder of a release or of a run, or a list of
            these. Of a folder all released graphs are taken, of an open release the graph of
            seed 0.
        undirected: Whether to drop the directions of directed graphs.

    Raises:
        CommandError: If a graph is not readable, or if a release holds no graph.

    Example:
        >>> found = evaluate("karate", "karate")
        >>> found.answers["karate"]["triangles"].real
        45.0
        >>> found.answers["karate"]["edge_overlap"].score
        1.0
    """
    # All graphs are read before anything is measured, so that errors come first.
    original = load(real, undirected)
    sources = synthetic if isinstance(synthetic, list) else [synthetic]
    if not sources:
        raise CommandError("evaluate: no synthetic graph is given")
    graphs = [
        drawn
        for number, source in enumerate(sources)
        for drawn in _graphs(source, f"synthetic-{number}", undirected)
    ]
    profile = queries.profile(original)
    measured = (
        Measured(name, queries.compare_measured(profile, graph), guarantee)
        for name, graph, guarantee in graphs
    )
    return Evaluation(_name(real, "real"), profile, tuple(measured))


def table(real: str, synthetic: str, answers: Mapping[str, Answer]) -> list[str]:
    """Lines of the table for one synthetic graph.

    Args:
        real: Name of the real graph.
        synthetic: Name of the synthetic graph.
        answers: Answer to each query.
    """
    width = max(map(len, answers))
    lines = [
        f"{synthetic} against {real}",
        f"{'query':<{width}}  {'real':>12}  {'synthetic':>12}  {'error':>10}",
    ]
    for name, answer in answers.items():
        numbers = f"{cell(answer.real):>12}  {cell(answer.synthetic):>12}"
        row = f"{name:<{width}}  {numbers}  {cell(answer.score, 4):>10}  {answer.note}"
        lines.append(row.rstrip())
    return lines


def cell(value: float, digits: int = 8) -> str:
    """Format a number: ``-`` for nan, and counts in full."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.0f}" if value.is_integer() else f"{value:.{digits}g}"


def _name(source: object, otherwise: str) -> str:
    return str(source) if isinstance(source, (str, Path)) else otherwise


def _graphs(source: Any, otherwise: str, undirected: bool) -> Iterator[tuple[str, Data, str]]:
    """Yield name, graph and guarantee of each graph that a source stands for."""
    if isinstance(source, Release):
        yield otherwise, _draw(source), str(source.statement.get("guarantee", ""))
        return
    folder = release_folder(source) if isinstance(source, (str, Path)) else None
    if folder is None:
        yield _name(source, otherwise), load(source, undirected), ""
        return
    guarantee = read_guarantee(folder)
    for path in released_graphs(folder):
        yield str(path), load(str(path), undirected), guarantee


def _draw(release: Release) -> Data:
    """Draw the graph of seed 0 from an open release."""
    if not isinstance(release.method, Synthesizer):
        raise CommandError(
            f"evaluate: {type(release.method).__name__} releases features, and draws no graph"
        )
    return release.sample(0)


def release_folder(source: str | Path) -> Path | None:
    """Folder with the privacy statement of a release; None if the source is no release or run."""
    places = (Path(source) / "release", Path(source))
    return next((place for place in places if (place / STATEMENT).is_file()), None)


def released_graphs(folder: Path) -> list[Path]:
    """Files of the graphs of a release, one for each seed, in the order of the seeds.

    Args:
        folder: Folder of the release.

    Raises:
        CommandError: If there is none.
    """
    # Reversed, since an edge list, the first format, loses nodes without edges.
    for suffix in reversed(FORMATS):
        paths = list(folder.glob(f"synthetic-*.{suffix}"))
        if paths:
            return sorted(paths, key=lambda path: (len(path.name), path.name))
    features = f": it holds {FEATURES}" if (folder / FEATURES).is_file() else ""
    raise CommandError(f"{folder}: a release without synthetic graphs{features}")


def read_guarantee(folder: Path) -> str:
    """Sentence of the guarantee of a release.

    Args:
        folder: Folder of the release.

    Raises:
        CommandError: If its statement is damaged.
    """
    path = folder / STATEMENT
    try:
        statement = json.loads(path.read_text(encoding="utf-8"))
        return str(statement["guarantee"])
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(f"{path}: no privacy statement ({error})") from error
