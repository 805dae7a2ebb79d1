"""Label accuracy of discrepancies of a TU set, with and without local privacy, with baselines.

Table 1 of Jin and Chen, "Gromov-Wasserstein Discrepancy with Local Differential Privacy for
Distributed Structural Graphs", 2022. All rows, also those of untrained encoders, are accuracies on
the test graphs, by support vector machines in ten folds. Another split has another training half,
another start of the encoder and other noise.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray

from benchmarks.embeddings import EXACT, Mode, Release, by_rows, chosen, embedded, fitted
from benchmarks.embeddings import readout_accuracy as readout
from lightning_dpg.datamodules import TUGraphDataModule
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import (
    CentralGromovWasserstein,
    GromovWassersteinFeatures,
    LDPGromovWasserstein,
    LocalScalars,
)
from lightning_dpg.metrics.kernel_svm import (
    clip_spectrum,
    cross_validated_predictions,
    feature_kernels,
    neighbor_accuracy,
    shortest_path_kernel,
)
from lightning_dpg.papers.jin2022.base import GromovWassersteinRelease
from lightning_dpg.papers.jin2022.clients import draw_train_mask
from lightning_dpg.papers.jin2022.gromov import (
    Matrix,
    Space,
    discrepancy_kernels,
    pairwise_discrepancies,
    path_distances,
)
from lightning_dpg.run.fit import fit_method

FOLDS_DEALT = 3
TRAINING = 0.5
MODES: tuple[Mode, ...] = ("paper", "corrected")
ALL_BUT_A_FEW = 0.99  # of each label, since all graphs cannot teach


class Half(NamedTuple):
    """Test graphs of one split, or some of them at random."""

    data: TUGraphDataModule
    labels: NDArray[np.int64]
    split: int
    most: int

    @property
    def tested(self) -> NDArray[np.int64]:
        """Their numbers."""
        train_mask = draw_train_mask(torch.from_numpy(self.labels), TRAINING, self.split)
        return self.some(np.flatnonzero(~train_mask.numpy()))

    def some(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Select at most ``most`` graphs to compare."""
        return np.sort(np.random.default_rng(self.split).permutation(numbers)[: self.most])

    def fitted(
        self,
        kind: type[GromovWassersteinRelease],
        epsilon: float = math.inf,
        **settings: Any,
    ) -> GromovWassersteinRelease:
        """Fit a method on the training half, unless the settings choose the training graphs."""
        pl.seed_everything(self.split, verbose=False)
        settings = {"train_fraction": TRAINING, "seed": self.split} | settings
        return fitted(kind(**settings), self.data, epsilon)

    def accuracy(self, grams: list[Matrix], numbers: NDArray[np.int64] | None = None) -> float:
        """Return the accuracy of kernels between the test graphs, or between other graphs."""
        labels = self.labels[self.tested if numbers is None else numbers]
        found = cross_validated_predictions(grams, labels, repetitions=FOLDS_DEALT)
        return found.accuracy(labels).mean

    def told_by(self, spaces: list[Space], numbers: NDArray[np.int64] | None = None) -> float:
        """Return the accuracy of discrepancies of the test graphs, or of other graphs."""
        found = pairwise_discrepancies(spaces)
        return self.accuracy([clip_spectrum(gram) for gram in discrepancy_kernels(found)], numbers)


ROWS = ("controls", "edge", "central", "local", "reports", "padded", "neighbors")
Row = tuple[str, Callable[[], float]]


def controls(half: Half) -> Iterator[Row]:
    """Yield baselines: features without structure, and kernels of the graphs themselves."""
    graphs = [half.data.graphs[k] for k in half.tested]
    nodes = [graph.num_nodes for graph in graphs]
    edges = [undirected_edges(graph).numpy() for graph in graphs]
    both = [[n, len(e)] for n, e in zip(nodes, edges, strict=True)]
    yield "numbers of nodes", lambda: half.accuracy(feature_kernels([[n] for n in nodes]))
    yield "numbers of nodes and edges", lambda: half.accuracy(feature_kernels(both))
    coins = [torch.randint(2, (n, 8)).double() * 2 - 1 for n in nodes]
    yield "coin flips, as many as nodes", lambda: half.told_by(by_rows(coins))
    yield "shortest path kernel", lambda: half.accuracy([shortest_path_kernel(graphs)])
    paths = [path_distances(e, n) for e, n in zip(edges, nodes, strict=True)]
    yield "discrepancies of paths", lambda: half.told_by([Space(part) for part in paths])
    if graphs[0].x is not None:
        features = [graph.x.double().numpy() for graph in graphs]
        fused = [Space(*pair) for pair in zip(paths, features, strict=True)]
        yield "fused discrepancies", lambda: half.told_by(fused)


def local_releases(
    half: Half, encoder: str, weights: str, rounds: int, epsilons: list[float]
) -> Iterator[Row]:
    """Yield rows of one encoder without protection, as printed, and as multi-bit reports."""
    name = f"{encoder}, {weights}"
    method = half.fitted(GromovWassersteinFeatures, encoder=encoder, weights=weights, rounds=rounds)
    sets = chosen(embedded(method, half.data), half.tested)
    if weights == "trained":
        yield f"{name}: readout of the encoder", lambda: readout(method, half.data)
    releases = (EXACT, Release("paper"), *(Release("corrected", e) for e in epsilons))
    for release in releases:
        yield f"{name}: {release}", lambda release=release: half.told_by(sets.spaces(release))


def centralized(half: Half, encoder: str, steps: int) -> Iterator[Row]:
    """Yield an encoder trained by one client; also one trained with the labels of the test."""
    settings = {"encoder": encoder, "num_clients": 1, "rounds": 1, "local_epochs": steps}
    settings |= {"weights": "trained"}
    method = half.fitted(GromovWassersteinFeatures, **settings)
    yield f"{encoder}, one client: readout of the encoder", lambda: readout(method, half.data)
    sets = chosen(embedded(method, half.data), half.tested)
    yield f"{encoder}, one client: exact", lambda: half.told_by(sets.spaces(EXACT))
    method = half.fitted(GromovWassersteinFeatures, train_fraction=ALL_BUT_A_FEW, **settings)
    everyone = half.some(np.arange(len(half.labels)))
    leaking = chosen(embedded(method, half.data), everyone).spaces(EXACT)
    name = f"{encoder}, taught by all graphs and judged on them: exact"
    yield name, lambda: half.told_by(leaking, everyone)


def edge_releases(half: Half, rounds: int, epsilons: list[float]) -> Iterator[Row]:
    """Yield rows of noisy sums over neighbors, from which training costs no budget."""
    for epsilon in epsilons:

        def told(epsilon: float = epsilon) -> float:
            settings = {"weights": "trained", "rounds": rounds}
            method = half.fitted(CentralGromovWasserstein, epsilon, **settings)
            rows = torch.split(method.embedding["features"], half.data.sizes.tolist())
            return half.told_by(by_rows([rows[k] for k in half.tested]))

        yield f"curated_edge, epsilon {epsilon:g}", told


def neighbors(half: Half, rounds: int, epsilons: list[float]) -> Iterator[Row]:
    """Yield accuracies of the nearest graphs by discrepancies of GIN's rows: Figure 3."""
    method = half.fitted(GromovWassersteinFeatures, encoder="gin", weights="trained", rounds=rounds)
    sets = chosen(embedded(method, half.data), half.tested)
    labels = half.labels[half.tested]
    releases = [Release(mode, e) for mode in MODES for e in (None, *epsilons)]
    for release in (EXACT, *releases):
        found = sets.discrepancies(release)
        for count in (5, 20):
            yield (
                f"{count} neighbors: {release}",
                lambda count=count, found=found: neighbor_accuracy(found, labels, count),
            )
    sizes = np.array([len(part) for part in sets.rows], dtype=float)
    apart = np.abs(sizes[:, None] - sizes)
    for count in (5, 20):
        yield (
            f"{count} neighbors: numbers of nodes",
            lambda n=count: neighbor_accuracy(apart, labels, n),
        )


def padded_releases(half: Half, encoder: str, epsilons: list[float]) -> Iterator[Row]:
    """Yield reports of graphs padded to the rows of the largest graph."""
    bound = int(half.data.sizes.max())
    for epsilon in epsilons:

        def told(epsilon: float = epsilon) -> float:
            method = half.fitted(LDPGromovWasserstein, epsilon, encoder=encoder, max_nodes=bound)
            rows = method.embedding["features"].split(bound)
            return half.told_by(by_rows([rows[k] for k in half.tested]))

        yield f"{encoder}, random: {bound} rows of each, epsilon {epsilon:,g}", told


def reports(half: Half, epsilons: list[float]) -> Iterator[Row]:
    """Yield rows of noisy densities, the baseline of local privacy, which learns nothing before."""
    for epsilon in epsilons:

        def told(epsilon: float = epsilon) -> float:
            method, tested = LocalScalars(), torch.from_numpy(half.tested)
            pl.seed_everything(half.split, verbose=False)
            fit_method(method, half.data, epsilon, 0.0)
            released = {"features": method.embedding["features"][tested]}
            return half.accuracy(method.kernels(released, method.sizes[tested]))

        yield f"densities, epsilon {epsilon:g}", told


def main(args: list[str]) -> None:
    """Print the accuracy of each row as it is known, and a table of all splits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks local_labels")
    parser.add_argument("name", nargs="?", default="planted_sets", help="TU set, or a built-in one")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=200, help="of federated averaging")
    parser.add_argument("--edge-rounds", type=int, default=5, help="of these on noisy sums")
    parser.add_argument(
        "--steps", type=int, default=1000, help="of encoders that one client teaches"
    )
    parser.add_argument("--encoders", nargs="*", default=["gin", "gcn"])
    parser.add_argument("--weights", nargs="*", default=["trained", "random"])
    parser.add_argument("--epsilons", type=float, nargs="*", default=[1, 10, 100, 1e3, 1e4])
    parser.add_argument("--edge-epsilons", type=float, nargs="*", default=[0.5, 1, 2, 5, 8, 20])
    parser.add_argument("--report-epsilons", type=float, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--tested", type=int, default=250, help="graphs at most that are compared")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS[:-2])
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    data = TUGraphDataModule(options.name)
    data.setup("fit")
    labels = data.labels.numpy()
    table: dict[str, list[float]] = {}
    print(
        f"{options.name}: {len(labels)} graphs, majority {np.bincount(labels).max() / len(labels):.3f}"
    )
    for split in range(options.splits):
        half = Half(data, labels, split, options.tested)
        groups = {
            "controls": [controls(half)],
            "edge": [edge_releases(half, options.edge_rounds, options.edge_epsilons)],
            "central": [centralized(half, encoder, options.steps) for encoder in options.encoders],
            "local": [
                local_releases(half, encoder, weights, options.rounds, options.epsilons)
                for encoder in options.encoders
                for weights in options.weights
            ],
            "reports": [reports(half, options.report_epsilons)],
            "neighbors": [neighbors(half, options.rounds, [0.1, 0.5, *options.epsilons])],
            "padded": [
                padded_releases(half, encoder, options.epsilons) for encoder in options.encoders
            ],
        }
        for name, told in (row for kind in options.rows for group in groups[kind] for row in group):
            start = time.perf_counter()
            table.setdefault(name, []).append(told())
            seconds = time.perf_counter() - start
            print(f"split {split}, {name}: {table[name][-1]:.3f} ({seconds:.0f} s)", flush=True)
    print("\n| row | accuracy, mean of splits | sd |\n|---|---|---|")
    for name, found in table.items():
        sd = f"{np.std(found, ddof=1):.3f}" if len(found) > 1 else ""
        print(f"| {name} | {np.mean(found):.3f} | {sd} |")
