"""``evaluate``: similarity of synthetic graphs to the real graph."""

import argparse
import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lightning_dpg.errors import CommandError

if TYPE_CHECKING:
    from lightning_dpg.metrics.queries import Answer

DESCRIPTION = """\
Compare synthetic graphs with the real one. Reads the private graph: the numbers are not private.

Errors are |real - synthetic| / |real|, save those of the queries about both graphs:
  *_kl          divergence KL(real || synthetic); a share that is 0 counts as 2.2e-16
  *_nmi, *_f1   agreement of the Louvain communities, 1 is best
  *_ami         likewise beyond chance, 0 is that of unrelated communities
  *_cosine      similarity of the degrees up to 50, or of the counts of the 29 connected induced
                subgraphs of 3 to 5 nodes, 1 is best
  *_mae         mean absolute error of the largest 1 % of the values
  edge_overlap  share of the real edges that the synthetic graph has; 1 is a copy
community_nmi, community_ami, community_f1 and edge_overlap need the same nodes in both graphs: those
of equal names or, where no name is common, of equal position. Beyond 20,000 nodes distances are sampled and
marked so, and in all but small graphs the subgraphs of 5 nodes."""


def run(args: list[str]) -> None:
    """Print a table for each synthetic graph, and write their numbers to files."""
    parser = argparse.ArgumentParser(
        prog="lightning_dpg evaluate",
        usage="lightning_dpg evaluate REAL SYNTHETIC... [--json FILE] [--csv FILE] [--undirected]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("real", metavar="REAL", help="name of a graph or path of a file")
    parser.add_argument("synthetic", metavar="SYNTHETIC", nargs="+", help="likewise, one or more")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the numbers")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="file for a row per number")
    parser.add_argument(
        "--undirected", action="store_true", help="drop the directions of directed graphs"
    )
    options = parser.parse_args(args)
    inputs = [Path(name).absolute() for name in (options.real, *options.synthetic)]
    for option, path in (("--json", options.json), ("--csv", options.csv)):
        if path is not None:
            _check_output(option, path, inputs)

    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.metrics.queries import compare, profile
    from lightning_dpg.running.graph_arguments import load

    # All graphs are read before any output, so that errors come first.
    real = load(options.real, options.undirected)
    graphs = [(name, load(name, options.undirected)) for name in options.synthetic]

    measured = profile(real)
    answers = [(name, compare(measured, graph)) for name, graph in graphs]
    # Write files before the tables, since a reader may stop early, as in `evaluate ... | head`.
    try:
        if options.json is not None:
            options.json.write_text(to_json(answers), encoding="utf-8")
        if options.csv is not None:
            _write_csv(answers, options.csv)
    finally:  # print the numbers even if the disk is full
        for name, queries in answers:
            print("\n".join(table(options.real, name, queries)), end="\n\n")
        print("not private: the numbers were computed from the real graph", flush=True)


def table(real: str, synthetic: str, answers: "Mapping[str, Answer]") -> list[str]:
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
        numbers = f"{_cell(answer.real):>12}  {_cell(answer.synthetic):>12}"
        row = f"{name:<{width}}  {numbers}  {_cell(answer.score, 4):>10}  {answer.note}"
        lines.append(row.rstrip())
    return lines


def to_json(answers: "list[tuple[str, dict[str, Answer]]]") -> str:
    """Write all answers as strict JSON, with null for nan, and with their notes.

    Args:
        answers: Path of each synthetic graph and its answers.
    """
    graphs = [
        {
            "path": path,
            "queries": {
                name: {
                    key: value for key, value in answer.for_json().items() if key != "note" or value
                }
                for name, answer in queries.items()
            },
        }
        for path, queries in answers
    ]
    return json.dumps({"graphs": graphs}, indent=2, allow_nan=False) + "\n"


def _check_output(option: str, path: Path, inputs: list[Path]) -> None:
    """Refuse an output file that is not writable or that would overwrite a graph."""
    if path.is_dir():
        raise CommandError(f"{option} {path}: a folder")
    if not path.absolute().parent.is_dir():
        raise CommandError(f"{option} {path}: its folder does not exist")
    if path.absolute() in inputs and path.exists():
        raise CommandError(f"{option} {path}: one of the graphs, which it would replace")
    is_new = not path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise CommandError(f"{option} {path}: cannot be written ({error.strerror})") from error
    if is_new:
        path.unlink()


def _write_csv(answers: "list[tuple[str, dict[str, Answer]]]", path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "query", "real", "synthetic", "error", "note"])
        for graph, queries in answers:
            for name, answer in queries.items():
                writer.writerow([graph, name, *answer.for_json().values()])


def _cell(value: float, digits: int = 8) -> str:
    """Format a number: ``-`` for nan, and counts in full."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.0f}" if value.is_integer() else f"{value:.{digits}g}"
