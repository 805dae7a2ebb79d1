"""``generate``: synthetic graphs from a release, without the private graph."""

import re
from pathlib import Path

from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome
from lightning_dpg.run.commands.arguments import call
from lightning_dpg.run_folder import LEARNER, released_tensors


def run(args: list[str]) -> Outcome:
    """Run the command; ``--run FOLDER`` is another form of its word."""
    return call(generate, [word.removeprefix("--run=") for word in args if word != "--run"])


def generate(
    run: Path,
    *,
    num_graphs: int = 1,
    seed: int | None = None,
    out: Path | None = None,
    method: str | None = None,
) -> Outcome:
    """Draw synthetic graphs from a release. Needs no private data, costs nothing.

    Args:
        run: Folder of a run or of a release.
        num_graphs: Number of graphs.
        seed: Seed of the first graph; by default the first one of which the release holds no graph.
        out: Folder to write to; by default ``generated`` in the run folder.
        method: Class of the release's method as MODULE.CLASS, if it is not shipped; it is code, and runs.

    Example:
        python -m lightning_dpg generate runs/chung_lu/version_0 --num-graphs 10
    """
    if num_graphs < 1:
        raise CommandError(f"--num-graphs must be positive, got {num_graphs}")
    tensors = released_tensors(run).absolute()
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.release.graph_files import write_graphs
    from lightning_dpg.release.reader import (
        first_line,
        imported,
        open_release,
    )
    from lightning_dpg.release.writer import FEATURES

    if tensors.name == LEARNER:
        raise CommandError(
            f"{run}: its method predicts labels, and draws no graph\n"
            f"read {tensors.with_name(FEATURES)}, or use: python -m lightning_dpg predict"
        )
    method_class = None if method is None else imported(method)
    release = open_release(tensors.parent, method_class)
    out = out or tensors.parent.parent / "generated"
    first = _first_new_seed(tensors.parent) if seed is None else seed
    seeds = range(first, first + num_graphs)
    try:
        paths = write_graphs(release.method, seeds, out)
    except OSError:
        raise
    except Exception as error:
        reason = f"its tensors draw no graph ({first_line(error)})"
        raise CommandError(f"{tensors}: {reason}") from error
    return Outcome(
        [*map(str, paths)],
        {"release": tensors.parent, "seeds": list(seeds), "files": paths},
    )


def _first_new_seed(release: Path) -> int:
    """Return the first seed after the seeds of the graphs in the release."""
    names = (re.fullmatch(r"synthetic-(\d+)\.\w+", path.name) for path in release.iterdir())
    return max((int(name[1]) + 1 for name in names if name), default=0)
