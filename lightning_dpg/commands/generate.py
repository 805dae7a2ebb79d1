"""``generate``: synthetic graphs from a release alone."""

import argparse
import re
from pathlib import Path
from typing import Any

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
    release = _release_of(options.run)
    out = options.out or release.parent / "generated"

    # Imported late: they bring PyTorch, while a wrong folder is told at once.
    from lightning_dpg.callbacks.release_writer import GENERATOR, write_graphs
    from lightning_dpg.running.releases import first_line, imported

    method_class = None if options.method is None else imported(options.method)
    method = load_generator(release, method_class)
    first = _first_new_seed(release) if options.seed is None else options.seed
    seeds = range(first, first + options.num_graphs)
    try:
        paths = write_graphs(method, seeds, out)
    except OSError:
        raise
    except Exception as error:
        said = f"its tensors draw no graph ({first_line(error)})"
        raise CommandError(f"{release / GENERATOR}: {said}") from error
    for path in paths:
        print(path)


def _first_new_seed(release: Path) -> int:
    """Seed after those of the graphs that the release holds."""
    names = (re.fullmatch(r"synthetic-(\d+)\.\w+", path.name) for path in release.iterdir())
    return max((int(name[1]) + 1 for name in names if name), default=0)


def _release_of(folder: Path) -> Path:
    """The folder that holds the generator: the given one or ``release/`` in it."""
    for release in (folder / "release", folder):
        if (release / "generator.safetensors").is_file():
            return release.absolute()
        if (release / "learner.safetensors").is_file():
            raise CommandError(
                f"--run {folder}: its method learns labels of graphs, and draws none\n"
                f"read {release / 'features.npz'}, or use: python -m lightning_dpg predict"
            )
    runs = sorted(path.parent.parent for path in Path().glob("runs/*/*/release/privacy.json"))
    near = f"\nruns with a release here: {', '.join(map(str, runs[-3:]))}" if runs else ""
    raise CommandError(f"--run {folder}: no release/generator.safetensors in it{near}")


def load_generator(release: Path, method_class: type | None = None) -> Any:
    """Rebuild a trained synthesizer around its released tensors.

    Args:
        release: Folder of a release.
        method_class: Class of its method; by default the shipped or the already imported class that
            the release names. No module that it names is imported.
    """
    from lightning_dpg.callbacks.release_writer import GENERATOR
    from lightning_dpg.methods.base import Synthesizer
    from lightning_dpg.running.releases import rebuild

    _refuse_changes(release, GENERATOR)
    return rebuild(release / GENERATOR, Synthesizer, method_class)


def load_release(release: Path, method_class: type | None = None) -> Any:
    """Rebuild a trained synthesizer, or a learner of graphs, around its released tensors.

    Args:
        release: Folder of a release.
        method_class: Class of its method, as in :func:`load_generator`.
    """
    from lightning_dpg.callbacks.release_writer import LEARNER
    from lightning_dpg.methods.graph_features.base import GraphFeatureRelease
    from lightning_dpg.running.releases import rebuild

    if not (release / LEARNER).is_file():
        return load_generator(release, method_class)
    _refuse_changes(release, LEARNER)
    return rebuild(release / LEARNER, GraphFeatureRelease, method_class)


def _refuse_changes(release: Path, name: str) -> None:
    """Refuse tensors that are not those of the checksums, where the release has some."""
    from lightning_dpg.callbacks.checksums import SUMS, digest, read_sums

    path = release / SUMS
    if not path.is_file():  # a release of an earlier version
        return
    if read_sums(path).get(name) != digest(release / name):
        raise CommandError(
            f"{release / name}: not the file of which {SUMS} has the checksum\n"
            f"see what else differs: python -m lightning_dpg verify {release}\n"
            "ask for the release again, or remove its checksums to draw from what is there"
        )
