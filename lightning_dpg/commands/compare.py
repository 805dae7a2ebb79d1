"""``compare``: methods side by side on the same graphs, budgets and queries."""

import argparse
import contextlib
import hashlib
import importlib
import io
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import yaml

from lightning_dpg import __version__
from lightning_dpg.benchmark.jobs import Cell, check_delta, read_result, run_cells, write_result
from lightning_dpg.benchmark.result_folder import locked, way_on
from lightning_dpg.errors import CommandError
from lightning_dpg.running.settings import find_config, find_configs, shipped_configs

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from lightning_dpg.benchmark.tasks import Kind
    from lightning_dpg.methods.base import PrivateModule

DESCRIPTION = """\
Fit methods on graphs within several budgets, and compare their synthetic graphs with the real ones.
Reads the private graphs: the results are not private.

A method is a configuration: a shipped one by its name, or a file. One without privacy is fitted
once per graph and run. The controls erdos_renyi (no more than the number of edges) and chung_lu (no
more than degrees) are always there, and each method that is trained also appears untrained. Run K
has the seed K. The same command line again does what is missing or failed.

With methods of sets of graphs, or of their labels, --graphs names sets, built in, under $LIGHTNING_DPG_DATA/tu or folders
of TU text files. Their control is erdos_renyi_set, also with exact numbers of edges. Each drawn graph
is compared with the one that it stands for. With --classify networks learn from the graphs of run 0
to tell the labels of the real ones: 10,000 steps for each row, which can take a quarter of an hour.

Methods that learn labels are compared by the accuracy of a support vector machine on what they have
released, in ten folds, drawn anew for each run. Their controls are node_kernel, which knows the public
numbers of nodes, and size_kernel, which also knows of edges. --classify adds a network on the real
graphs, which is not private.

DIR holds results.csv, results.md, report.html, the numbers of each fit (cells/), its output (logs/)
and, of each fit, privacy.json and the synthetic graph or set of run 0 (runs/)."""


def run(args: list[str]) -> None:
    """Fit and evaluate what is missing, then write tables and report.

    Raises:
        SystemExit: If a fit failed (2) or the user interrupted (130).
    """
    options = _parse(args)
    try:
        with contextlib.ExitStack() as held:
            _run(options, args, held)
    except KeyboardInterrupt:
        print(f"interrupted: {way_on(options.out, args)}", file=sys.stderr)
        raise SystemExit(130) from None


def _run(options: argparse.Namespace, args: list[str], held: contextlib.ExitStack) -> None:
    is_there = options.out.is_dir()
    if is_there:  # else it is made when the command line has proved to be right
        held.enter_context(locked(options.out))
    methods = {label: parse_settings(path) for label, path in _find(options.methods).items()}
    kind = common_kind(methods)
    for label, path in _find((*options.methods, *kind.controls)).items():
        if label not in methods:
            methods[label] = parse_settings(path)
    graphs = {name: kind.load(name, options.undirected) for name in dict.fromkeys(options.graphs)}
    if options.classify and all(graph.get("y") is None for graph in graphs.values()):
        raise CommandError("--classify: none of --graphs is a set of graphs with labels")
    check_delta(options.delta, methods, graphs)
    cells = plan_cells(methods, graphs, kind, options)
    if not is_there:  # another process may have made it by now
        options.out.mkdir(parents=True, exist_ok=True)
        held.enter_context(locked(options.out))
    try:
        _fit_and_report(cells, graphs, kind, options)
    except OSError as error:
        raise CommandError(f"--out {options.out}: {error}\n{way_on(options.out, args)}") from error


def _fit_and_report(
    cells: Sequence[Cell], graphs: "dict[str, Data]", kind: "Kind", options: argparse.Namespace
) -> None:
    recorded = ((cell.name, read_result(options.out, cell)) for cell in cells)
    results = {name: result for name, result in recorded if result and not result["failure"]}
    missing = [cell for cell in cells if cell.name not in results]
    print(f"{len(cells)} fits, {len(results)} of them done already", flush=True)
    with contextlib.closing(run_cells(missing, options.jobs, options.out)) as outcomes:
        for line, name, result in _followed(outcomes, missing, options.jobs):
            write_result(options.out, name, result)
            results[name] = result
            print(line, flush=True)

    from lightning_dpg.benchmark import html as report  # brings PyTorch

    ordered = [results[cell.name] for cell in cells]
    for path in report.write(ordered, graphs, kind, options.out):
        print(path)
    if options.wandb:
        report.track(ordered, graphs, kind, options.out)
    print("not private: the numbers were computed from the real graphs")
    failed = sum(result["failure"] is not None for result in ordered)
    if failed:
        print(f"{failed} of {len(cells)} fits failed, see {options.out / 'logs'}", file=sys.stderr)
        raise SystemExit(2)


def plan_cells(
    methods: dict[str, dict[str, Any]],
    graphs: "dict[str, Data]",
    kind: "Kind",
    options: argparse.Namespace,
) -> list[Cell]:
    """All fits, those of run 0 first: soon it is known how long each method takes.

    Args:
        methods: Parsed configuration of each method by its label.
        graphs: Real data by name.
        kind: What they are.
        options: The command line.
    """
    rows = [row for label, settings in methods.items() for row in _rows(label, settings, kind)]
    contents = {name: _digest_graph(graph) for name, graph in graphs.items()}
    cells = []
    for seed in range(options.runs):
        for graph in graphs:
            classify = options.classify and seed == 0 and graphs[graph].get("y") is not None
            for label, role, base in rows:
                is_private = math.isfinite(base["privacy"]["epsilon"])
                for epsilon in options.epsilons if is_private else (math.inf,):
                    settings = _with_cell(base, graph, epsilon, seed, options)
                    text = json.dumps(
                        [__version__, kind.queries, contents[graph], settings, classify],
                        sort_keys=True,
                    )
                    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
                    cell = Cell(label, role, graph, epsilon, seed, settings, digest, classify)
                    cells.append(cell)
    return cells


def parse_settings(config: Path) -> dict[str, Any]:
    """A configuration with all defaults, as ``fit`` understands it.

    Args:
        config: Its file.
    """
    from lightning_dpg.cli import PrivateCLI

    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
            PrivateCLI(["fit", "--config", str(config), "--print_config"])
    except CommandError as error:
        raise CommandError(f"{config}: {error}") from error
    settings: dict[str, Any] = yaml.safe_load(text.getvalue())
    if settings["model"] is None or settings["data"] is None:
        raise CommandError(f"{config}: an overlay, while a method is a model and its data")
    if "name" not in settings["data"].get("init_args", {}):
        raise CommandError(f"{config}: its data have no name, by which compare exchanges them")
    # Curves and pictures of every fit are not looked at, and would be paid for in its seconds.
    callbacks = [
        callback
        for callback in settings["trainer"]["callbacks"] or ()
        if callback["class_path"].rpartition(".")[2] not in ("GraphStatistics", "ReleaseWriter")
    ]
    if settings["data"]["class_path"].rpartition(".")[2] == "GraphSetDataModule":
        # Reads the same sets, and those in files.
        settings["data"]["class_path"] = "TUGraphDataModule"
    writer = {"class_path": "ReleaseWriter", "init_args": {"formats": ["npz"]}}
    settings["trainer"] |= {
        "callbacks": [*callbacks, writer],
        "enable_model_summary": False,
        "enable_progress_bar": False,
        "logger": False,
    }
    return settings


def _parse(args: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="lightning_dpg compare",
        usage="lightning_dpg compare --methods M... --graphs G... --epsilons E... --out DIR [...]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--methods", nargs="+", required=True, metavar="M", help="names or files")
    add("--graphs", nargs="+", required=True, metavar="G", help="names or files")
    add("--epsilons", nargs="+", required=True, type=float, metavar="E", help="budgets")
    add("--delta", type=float, default=1e-6, help="of methods that are not pure (%(default)s)")
    add("--runs", type=int, default=5, help="fits of each kind (%(default)s)")
    add("--jobs", type=int, default=1, help="processes, of one thread each (%(default)s)")
    add("--out", type=Path, required=True, metavar="DIR", help="folder of all results")
    add("--classify", action="store_true", help="also train classifiers of labelled sets")
    add("--undirected", action="store_true", help="drop the directions of directed graphs")
    add("--wandb", action="store_true", help="log results and pictures to Weights & Biases")
    options = parser.parse_args(args)
    options.epsilons = sorted(set(options.epsilons))
    for epsilon in options.epsilons:
        if not 0 < epsilon < math.inf:
            raise CommandError(
                f"--epsilons must be positive and finite, got {epsilon:g}\n"
                "a method without privacy says so in its configuration: privacy: {epsilon: .inf}"
            )
    if not 0 < options.delta < 1:
        raise CommandError(f"--delta must be between 0 and 1, got {options.delta:g}")
    for name in ("runs", "jobs"):
        if getattr(options, name) < 1:
            raise CommandError(f"--{name} must be positive, got {getattr(options, name)}")
    if options.out.exists() and not options.out.is_dir():
        raise CommandError(f"--out {options.out}: not a folder")
    return options


def _find(names: Sequence[str]) -> dict[str, Path]:
    """Files of the configurations by the labels of their rows."""
    shipped = {path.resolve(): name for name, path in shipped_configs().items()}
    found: dict[str, Path] = {}
    for name in dict.fromkeys(names):
        try:
            path = find_config(name).resolve()
            find_configs(["fit", "--config", str(path)])  # refuses what is no configuration
        except CommandError as error:
            raise CommandError(str(error).replace("--config", "--methods")) from error
        label = shipped.get(path, path.stem)
        if found.setdefault(label, path) != path:
            raise CommandError(f"--methods: {found[label]} and {path} would both be {label}")
    return found


def common_kind(methods: dict[str, dict[str, Any]]) -> "Kind":
    """What all methods learn, single graphs or sets.

    Args:
        methods: Parsed configuration of each method by its label.

    Raises:
        CommandError: If some learn one and some the other, or one draws no graphs.
    """
    from lightning_dpg.benchmark.tasks import kind_of
    from lightning_dpg.methods.base import Synthesizer
    from lightning_dpg.methods.graph_features.base import GraphFeatureRelease

    kinds = {}
    for label, settings in methods.items():
        method = _class(settings["model"])
        if not issubclass(method, Synthesizer | GraphFeatureRelease):
            raise CommandError(f"--methods {label}: {method.__name__} releases nothing to compare")
        kinds[label] = kind_of(method)
    (first, kind), *rest = kinds.items()
    for label, other in rest:
        if other is not kind:
            raise CommandError(
                f"--methods: {first} learns a single {kind.noun}, {label} a single {other.noun}\n"
                "compare methods of graphs, of sets of graphs and of their labels apart"
            )
    return kind


def _rows(
    label: str, settings: dict[str, Any], kind: "Kind"
) -> list[tuple[str, str, dict[str, Any]]]:
    """Label, role and settings of the rows of one method."""
    if label in kind.controls:
        rows = [(f"{label} (control)", "control", settings)]
        if label == kind.exact_control:
            exact = settings | {"privacy": settings["privacy"] | {"epsilon": math.inf}}
            rows.append((f"{label} (control, exact number of edges)", "control", exact))
        return rows
    if not _class(settings["model"]).is_trained:
        return [(label, "method", settings)]
    untrained = settings | {"trainer": settings["trainer"] | {"max_steps": 0}}
    return [(label, "method", settings), (f"{label} (untrained)", "untrained", untrained)]


def _class(section: dict[str, Any]) -> "type[PrivateModule]":
    module, _, name = section["class_path"].rpartition(".")
    found: type[PrivateModule] = getattr(importlib.import_module(module), name)
    return found


def _with_cell(
    settings: dict[str, Any], graph: str, epsilon: float, seed: int, options: argparse.Namespace
) -> dict[str, Any]:
    data, budget = settings["data"], settings["privacy"]
    undirected = options.undirected or data["init_args"].get("undirected", False)
    # A method whose configuration says delta 0 is pure and would only look weaker with another.
    delta = options.delta if budget["delta"] and math.isfinite(epsilon) else budget["delta"]
    return settings | {
        "seed_everything": seed,
        "data": data | {"init_args": data["init_args"] | {"name": graph, "undirected": undirected}},
        "privacy": budget | {"epsilon": epsilon, "delta": delta},
    }


def _digest_graph(graph: "Data") -> str:
    content = hashlib.sha256(graph.edge_index.cpu().numpy().tobytes())
    content.update("\n".join(graph.node_names).encode())
    for key in ("sizes", "y"):
        if graph.get(key) is not None:
            content.update(graph[key].numpy().tobytes())
    return content.hexdigest()


def _followed(
    outcomes: Iterator[tuple[Cell, dict[str, Any]]], cells: Sequence[Cell], jobs: int
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Progress line, name and content of each result."""
    left = {cell.name: (cell.method, cell.graph) for cell in cells}
    seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for done, (cell, result) in enumerate(outcomes, 1):
        seconds[left.pop(cell.name)].append(result["seconds"]["total"])
        overall = mean(value for values in seconds.values() for value in values)
        rest = sum(mean(seconds[row]) if row in seconds else overall for row in left.values())
        line = f"[{done}/{len(cells)}] {cell}: {result['seconds']['total']:.1f} s"
        if left:
            line += f"; about {_duration(rest / min(jobs, len(left)))} left"
        if result["failure"] is not None:
            line = "\n    ".join([line, *result["failure"].splitlines()])
        yield line, cell.name, result


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
