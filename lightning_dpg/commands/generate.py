"""``generate``: synthetic graphs from a release, without the private graph."""

import argparse
import re
from pathlib import Path

from lightning_dpg.errors import CommandError


def run(args: list[str]) -> None:
    """Draw graphs and write them in each format."""
    parser = argparse.ArgumentParser(
        prog="lightning_dpg generate",
        description="Draw synthetic graphs from a release. Needs no private data, costs nothing.",
    )
    parser.add_argument("--run", type=Path, required=True, help="folder of a run or of a release")
    parser.add_argument("--num-graphs", type=int, default=1, help="number of graphs")
    parser.add_argument(
        "--seed",
        type=int,
        help="seed of the first graph; by default the first one of which the release holds no graph",
    )
    parser.add_argument(
        "--out", type=Path, help="folder to write to; by default `generated` in the run folder"
    )
    parser.add_argument(
        "--method",
        metavar="MODULE.CLASS",
        help="import the method of the release from here; it is code, and runs",
    )
    options = parser.parse_args(args)
    if options.num_graphs < 1:
        raise CommandError(f"--num-graphs must be positive, got {options.num_graphs}")
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.callbacks.release_writer import FEATURES, LEARNER, write_graphs
    from lightning_dpg.running.releases import (
        first_line,
        imported,
        open_release,
        released_tensors,
    )

    tensors = released_tensors(options.run).absolute()
    if tensors.name == LEARNER:
        raise CommandError(
            f"--run {options.run}: its method learns labels of graphs, and draws none\n"
            f"read {tensors.with_name(FEATURES)}, or use: python -m lightning_dpg predict"
        )
    method_class = None if options.method is None else imported(options.method)
    release = open_release(tensors.parent, method_class)
    out = options.out or tensors.parent.parent / "generated"
    first = _first_new_seed(tensors.parent) if options.seed is None else options.seed
    seeds = range(first, first + options.num_graphs)
    try:
        paths = write_graphs(release.method, seeds, out)
    except OSError:
        raise
    except Exception as error:
        said = f"its tensors draw no graph ({first_line(error)})"
        raise CommandError(f"{tensors}: {said}") from error
    for path in paths:
        print(path)


def _first_new_seed(release: Path) -> int:
    """First seed after the seeds of the graphs in the release."""
    names = (re.fullmatch(r"synthetic-(\d+)\.\w+", path.name) for path in release.iterdir())
    return max((int(name[1]) + 1 for name in names if name), default=0)
