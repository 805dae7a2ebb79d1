"""``generate``: synthetic graphs from a release alone."""

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

from lightning_dpg.commands.errors import CommandError


def run(args: list[str]) -> None:
    """Draw graphs and write them in each format."""
    parser = argparse.ArgumentParser(
        prog="lightning_dpg generate",
        description="Draw synthetic graphs from a release. Needs no private data, costs nothing.",
    )
    parser.add_argument("--run", type=Path, required=True, help="folder of a run or of a release")
    parser.add_argument("--num-graphs", type=int, default=1, help="number of graphs")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first graph")
    parser.add_argument(
        "--out", type=Path, help="folder to write to; by default `generated` in the run folder"
    )
    options = parser.parse_args(args)
    if options.num_graphs < 1:
        raise CommandError(f"--num-graphs must be positive, got {options.num_graphs}")
    release = _release_of(options.run)
    out = options.out or release.parent / "generated"

    # Imported late: they bring PyTorch, while a wrong folder is told at once.
    from lightning_dpg.callbacks.release_writer import write_graphs

    method = load_generator(release)
    out.mkdir(parents=True, exist_ok=True)
    seeds = range(options.seed, options.seed + options.num_graphs)
    for path in write_graphs(method, seeds, out):
        print(path)


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


def load_generator(release: Path) -> Any:
    """Rebuild a trained synthesizer around its released tensors.

    Args:
        release: Folder of a release.
    """
    from lightning_dpg.callbacks.release_writer import GENERATOR
    from lightning_dpg.methods.base import Synthesizer

    return _rebuilt(release / GENERATOR, Synthesizer)


def load_release(release: Path) -> Any:
    """Rebuild a trained synthesizer, or a learner of graphs, around its released tensors.

    Args:
        release: Folder of a release.
    """
    from lightning_dpg.callbacks.release_writer import LEARNER
    from lightning_dpg.methods.graph_learner import GraphLearner

    if (release / LEARNER).is_file():
        return _rebuilt(release / LEARNER, GraphLearner)
    return load_generator(release)


def _rebuilt(path: Path, expected: type) -> Any:
    from safetensors import SafetensorError, safe_open

    from lightning_dpg.callbacks.release_writer import RECIPE

    try:
        with safe_open(path, framework="pt") as file:
            recipe = json.loads((file.metadata() or {}).get(RECIPE, "{}"))
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
    module, _, name = recipe.get("method", "").rpartition(".")
    try:
        method_class = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise CommandError(f"{path}: its method {module}.{name} is not installed") from error
    if not issubclass(method_class, expected):
        raise CommandError(f"{path}: {module}.{name} is not a {expected.__name__}")
    method: Any = method_class(**recipe["hparams"])
    method.load_released_state(state)
    method.node_names = recipe["node_names"]
    return method
