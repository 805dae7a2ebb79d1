"""The plan of a benchmark: methods, baselines and untrained methods by graphs, budgets and seeds."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from torch_geometric.data import Data

from lightning_dpg import __version__
from lightning_dpg.apps.bench.checks import method_files
from lightning_dpg.apps.bench.jobs import Job
from lightning_dpg.apps.bench.tasks import Task, task_of
from lightning_dpg.classes import find_class
from lightning_dpg.errors import CommandError
from lightning_dpg.interfaces import AttributedGraphRecords
from lightning_dpg.methods.graph_features import GraphFeatureRelease
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.preflight.data import KIND_METHODS
from lightning_dpg.privacy.events import Relation
from lightning_dpg.run.fit import method_settings, on_data, under_ids


class Grid(NamedTuple):
    """Methods, graphs, budgets and seeds of a benchmark."""

    methods: Mapping[str, dict[str, Any]]
    """Complete configuration of each method by its label, baselines included."""
    data: Mapping[str, Data]
    """Real data by name."""
    epsilons: Sequence[float]
    seeds: Sequence[int]
    delta: float
    """Delta of all methods that are not pure."""
    task: Task
    classify: bool = False
    """Whether to train classifiers on what the runs of seed 0 have drawn."""
    undirected: bool = False
    """Whether to drop the directions of directed graphs."""
    sources: Mapping[str, str] = MappingProxyType({})
    """Name or path that the fits read, of data that are named otherwise in the tables."""

    def jobs(self) -> list[Job]:
        """Return all fits, seed by seed: the duration of each method is known early."""
        rows = [
            row for label, settings in self.methods.items() for row in self._rows(label, settings)
        ]
        contents = {name: _digest_graph(graph) for name, graph in self.data.items()}
        jobs = []
        for seed in self.seeds:
            for graph, real in self.data.items():
                classify = self.classify and seed == 0 and real.get("y") is not None
                for label, role, base in rows:
                    is_private = math.isfinite(base["privacy"]["epsilon"])
                    for epsilon in self.epsilons if is_private else (math.inf,):
                        settings = self._settings(base, graph, epsilon, seed)
                        text = json.dumps(
                            [__version__, self.task.queries, contents[graph], settings, classify],
                            sort_keys=True,
                        )
                        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
                        read = under_ids(on_data(settings, self.sources.get(graph, graph)))
                        jobs.append(Job(label, role, graph, epsilon, seed, read, digest, classify))
        return jobs

    def _rows(self, label: str, settings: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
        """Return the label, role and settings of the rows of one method."""
        if label in (*self.task.baselines, self.task.local_baseline):
            rows = [(f"{label} (baseline)", "baseline", settings)]
            if label == self.task.exact_baseline:
                exact = settings | {"privacy": settings["privacy"] | {"epsilon": math.inf}}
                rows.append((f"{label} (baseline, exact number of edges)", "baseline", exact))
            return rows
        if not method_class(settings).capabilities.is_trained:
            return [(label, "method", settings)]
        untrained = settings | {"trainer": settings["trainer"] | {"max_steps": 0}}
        return [(label, "method", settings), (f"{label} (untrained)", "untrained", untrained)]

    def _settings(
        self, settings: dict[str, Any], graph: str, epsilon: float, seed: int
    ) -> dict[str, Any]:
        budget = settings["privacy"]
        is_undirected = settings["data"]["init_args"].get("undirected", False)
        # A configuration with delta 0 is pure; another delta would only make its guarantee weaker.
        delta = self.delta if budget["delta"] and math.isfinite(epsilon) else budget["delta"]
        kind = {} if self.task.kind == "undirected" else {"kind": self.task.kind}
        return on_data(settings, graph, undirected=self.undirected or is_undirected, **kind) | {
            "seed_everything": seed,
            "privacy": budget | {"epsilon": epsilon, "delta": delta},
        }


def read_methods(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read complete configurations, by the labels of their rows.

    Args:
        names: Names of shipped configurations, or files.

    Raises:
        CommandError: If a file is not a method's configuration, or if two labels are equal.
    """
    return {label: method_settings(path) for label, path in method_files(names).items()}


def common_task(methods: Mapping[str, dict[str, Any]], kind: str = "undirected") -> Task:
    """Find the common task of all methods.

    Args:
        methods: Complete configuration of each method by its label.
        kind: Kind of the graphs, where the methods learn single ones.

    Raises:
        CommandError: If methods have different tasks, one publishes nothing, or one does not learn
            graphs of the kind.
    """
    tasks = {}
    for label, settings in methods.items():
        method = method_class(settings)
        if not issubclass(method, Synthesizer | GraphFeatureRelease):
            raise CommandError(f"methods {label}: {method.__name__} releases nothing to compare")
        if kind not in method.capabilities.kinds:
            raise CommandError(
                f"methods {label}: {method.__name__} does not learn {kind} graphs\n"
                f"those that do: {KIND_METHODS[kind]}"
            )
        tasks[label] = task_of(method, kind)
    (first, task), *rest = tasks.items()
    for label, other in rest:
        if other is not task:
            raise CommandError(
                f"methods: {first} learns a single {task.noun}, {label} a single {other.noun}\n"
                "compare methods of graphs, of sets of graphs and of their labels apart"
            )
    return task


def baselines_beside(methods: Mapping[str, dict[str, Any]], task: Task) -> list[str]:
    """Name the baselines of methods, that of local privacy only where one of them has it.

    Args:
        methods: Complete configuration of each method by its label.
        task: Their task.
    """
    relations = {method_class(settings).relation for settings in methods.values()}
    local = task.local_baseline if Relation.LOCAL_GRAPH in relations else None
    return [*task.baselines, *([local] if local else [])]


def learns_attributes(methods: Mapping[str, dict[str, Any]]) -> bool:
    """Return whether a method reads attributes of the nodes.

    Args:
        methods: Complete configuration of each method by its label.
    """
    reads = (method_class(settings).capabilities.reads for settings in methods.values())
    return any(records is AttributedGraphRecords for records in reads)


def method_class(settings: Mapping[str, Any]) -> Any:
    """Import the class of a configuration's method."""
    return find_class(settings["model"]["class_path"])


def check_delta(
    delta: float, methods: Mapping[str, dict[str, Any]], data: Mapping[str, Data]
) -> None:
    """Refuse a delta that every fit would refuse.

    Args:
        delta: Delta of all methods that are not pure.
        methods: Complete configuration of each method by its label.
        data: Real data by name.

    Raises:
        CommandError: If delta is too large for one of the graphs.
    """
    budgets = [settings["privacy"] for settings in methods.values()]
    if not any(budget["delta"] and math.isfinite(budget["epsilon"]) for budget in budgets):
        return
    for name, graph in data.items():
        if delta * (graph.num_edges // 2) >= 1:
            raise CommandError(
                f"delta {delta:g}: not below one over the number of edges of {name}, so that it "
                "would allow to publish one of them as it is\nleave it out to take the default"
            )


def _digest_graph(graph: Data) -> str:
    content = hashlib.sha256(graph.edge_index.cpu().numpy().tobytes())
    content.update("\n".join(graph.node_names).encode())
    for key in ("sizes", "y"):
        if graph.get(key) is not None:
            content.update(graph[key].numpy().tobytes())
    return content.hexdigest()
