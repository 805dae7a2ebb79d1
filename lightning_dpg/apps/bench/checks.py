"""Checks of a benchmark's arguments that need neither data nor PyTorch."""

import math
from collections.abc import Collection, Sequence
from pathlib import Path

from lightning_dpg.apps.bench.study import Arguments
from lightning_dpg.errors import CommandError
from lightning_dpg.run.configurations import find_config, find_configs, read_yaml, shipped_configs
from lightning_dpg.run.source import refuse_missing_graph
from lightning_dpg.run.words import exported_classes


def refuse_mistakes(arguments: Arguments, out: Path) -> None:
    """Refuse arguments out of their range, unknown methods and missing graphs.

    Args:
        arguments: Arguments of the benchmark.
        out: Folder of all results.

    Raises:
        Refusal: If the benchmark would refuse them too; the message is the same.
    """
    check_arguments(arguments, out)
    files = method_files([str(method) for method in arguments.methods])
    if _learn_single_graphs(files.values()):
        for name in arguments.graphs:
            refuse_missing_graph(str(name))


def check_arguments(arguments: Arguments, out: Path) -> None:
    """Refuse arguments whose check needs no data.

    Args:
        arguments: Arguments of the benchmark.
        out: Folder of all results.

    Raises:
        CommandError: If one is out of its range.
    """
    for epsilon in arguments.epsilons:
        if not 0 < epsilon < math.inf:
            raise CommandError(
                f"epsilons must be positive and finite, got {epsilon:g}\n"
                "a method without privacy says so in its configuration: privacy: {epsilon: .inf}"
            )
    if not 0 < arguments.delta < 1:
        raise CommandError(f"delta must be between 0 and 1, got {arguments.delta:g}")
    if not arguments.seeds:
        raise CommandError("there must be a seed, or no fit is made")
    if out.exists() and not out.is_dir():
        raise CommandError(f"{out}: not a folder")


def method_files(names: Sequence[str]) -> dict[str, Path]:
    """Find the configurations of methods, by the labels of their rows.

    Args:
        names: Names of shipped configurations, or files.

    Raises:
        CommandError: If a file is no configuration, or if two labels are equal.
    """
    shipped = {path.resolve(): name for name, path in shipped_configs().items()}
    paths: dict[str, Path] = {}
    for name in dict.fromkeys(names):
        try:
            path = find_config(name).resolve()
            find_configs(["fit", "--config", str(path)])  # refuses files that are no configuration
        except CommandError as error:
            raise CommandError(str(error).replace("--config", "methods")) from error
        label = shipped.get(path, path.stem)
        if paths.setdefault(label, path) != path:
            raise CommandError(f"methods: {paths[label]} and {path} would both be {label}")
    return paths


def _learn_single_graphs(files: Collection[Path]) -> bool:
    """Return whether all configurations are those of shipped methods that learn one graph."""
    models = [read_yaml(path).get("model") for path in files]
    paths = [each.get("class_path") if isinstance(each, dict) else each for each in models]
    names = {f"{path}".rpartition(".")[2] for path in paths}
    families = exported_classes("model", names).values()
    bases = [{base.name for base in family} for family in families]
    return len(bases) == len(names) and all(
        "Synthesizer" in each and "GraphSetSynthesizer" not in each for each in bases
    )
