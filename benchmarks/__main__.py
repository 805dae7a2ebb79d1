"""Run benchmarks: ``python -m benchmarks NAME [options]``, or ``--all`` for those of two studies.

``--json FILE`` also writes the numbers that belong to ``results/speed`` and ``results/large_graphs``;
``python -m results speed --from FILE`` enters them. The file has the load of the machine.
"""

import argparse
import importlib
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.numbers import Number, read_numbers, write_numbers
from lightning_dpg.formats.graph_places import data_root

NAMES = (
    "assembly",
    "attributed",
    "attributes",
    "book",
    "book_filters",
    "communities",
    "critic",
    "engines",
    "generator",
    "gpu",
    "graphlets",
    "gromov",
    "label_features",
    "large_classes",
    "large_graphs",
    "large_links",
    "large_rows",
    "link_methods",
    "links",
    "local_labels",
    "local_privacy",
    "memory",
    "netgan_steps",
    "node_classification",
    "node_degrees",
    "node_learning",
    "oja",
    "posterior",
    "private_labels",
    "processes",
    "ranking",
    "sampling",
    "shape",
    "small_graphs",
    "startup",
    "statistics",
    "tracked_runs",
    "transfers",
)
# Those of the studies of speed and of large graphs; {folder} is a temporary one.
ALL = (
    "assembly",
    "attributes --draw",
    "critic",
    "generator",
    "gromov",
    "large_classes --folder {folder}",
    "large_graphs --edges 1000000 10000000 --steps edges ChungLu BTER evaluate --folder {folder}",
    "memory",
    "netgan_steps",
    "oja",
    "startup --rounds 5",
    "statistics",
)
NEED_DATA = ("gromov", "large_classes", "netgan_steps")  # real graphs of $LIGHTNING_DPG_DATA


def main(args: list[str]) -> int:
    """Run one benchmark or all, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, add_help=False, allow_abbrev=False
    )
    parser.add_argument("name", nargs="?", choices=NAMES)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options, others = parser.parse_known_args(args)
    if options.all:
        if options.name or others:
            parser.error("--all takes --json FILE and nothing else")
        return _run_all(options.json)
    if not options.name:
        parser.error("a NAME or --all is missing")
    numbers = importlib.import_module(f"benchmarks.{options.name}").main(others) or []
    if options.json:
        write_numbers(options.json, numbers)
    return 0


def _run_all(path: Path | None) -> int:
    """Run each benchmark of the studies in a process of its own; go on where one fails."""
    numbers, failed = list[Number](), []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "numbers.json"
        for line in ALL:
            words = line.format(folder=folder).split()
            if words[0] in NEED_DATA and data_root() is None:
                print(f"== {words[0]}: left out, LIGHTNING_DPG_DATA is not set")
                continue
            print(f"== {words[0]}", flush=True)
            command = [sys.executable, "-m", "benchmarks", *words, "--json", str(file)]
            if subprocess.run(command, check=False).returncode:
                failed.append(words[0])
            else:
                numbers += read_numbers(file)
    if path:
        write_numbers(path, numbers, failed)
    if failed:
        print(f"error: failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
