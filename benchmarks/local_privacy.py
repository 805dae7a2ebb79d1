"""What discrepancies of ego graphs of Citeseer keep under local privacy: tables and three figures.

Figures 2, 4 (with 11) and 5 of Jin and Chen, "Gromov-Wasserstein Discrepancy with Local Differential
Privacy for Distributed Structural Graphs", 2022, which take a large epsilon for much protection and
0 for none. Here a small one protects, and ``exact`` is without protection.
"""

import argparse
import math
import warnings
from itertools import combinations
from typing import Literal, NamedTuple

import networkx as nx
import numpy as np
import pytorch_lightning as pl
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_mutual_info_score
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.commands.quiet import quiet
from lightning_dpg.datamodules import SubgraphDataModule
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.gromov import Space, pairwise_discrepancies, path_distances, row_distances
from lightning_dpg.graph.gromov_kmeans import gromov_kmeans
from lightning_dpg.methods import LDPGromovWasserstein
from lightning_dpg.methods.embedding_release import node_inputs, reported
from lightning_dpg.metrics.discrepancies import neighbor_accuracy
from lightning_dpg.privacy.entries import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource

AXIS = "epsilon (smaller: more protection)"
SMALL = (4, 5, 6, 7, 8)  # nodes of the five graphs, few enough for exact edit distances
DRAWS = 20  # of the noise, over which what ranks of so few pairs tell is averaged
Mode = Literal["exact", "corrected", "paper"]
Matrix = NDArray[np.float64]


class Release(NamedTuple):
    """What is told of the embeddings."""

    mode: Mode
    epsilon: float | None = None
    """Of each graph; None is one over its number of nodes."""

    def __str__(self) -> str:
        """Short name."""
        if self.mode == "exact":
            return "exact"
        budget = "1 / nodes" if self.epsilon is None else f"{self.epsilon:,g}"
        return f"{'as printed' if self.mode == 'paper' else 'corrected'}, epsilon {budget}"


EXACT = Release("exact")
CLUSTERED = (
    *(Release("corrected", epsilon) for epsilon in (1.0, 100.0, 10_000.0)),
    *(Release("paper", epsilon) for epsilon in (None, 1.0)),
)


class Embedded(NamedTuple):
    """Some graphs with the rows of their nodes (private)."""

    graphs: list[Data]
    rows: list[Tensor]

    def discrepancies(self, release: Release) -> tuple[list[Space], Matrix]:
        """What a server compares, and the discrepancies of all pairs, shape ``(G, G)``."""
        sizes = torch.tensor([len(part) for part in self.rows])
        rows = torch.cat(self.rows)
        if release.mode != "exact":
            settings = {
                "mode": release.mode,
                "report_epsilon": release.epsilon,
                "reports_per_row": None,
                "weights": "random",  # they cost nothing here
            }
            ledger = PrivacyLedger(Relation.LOCAL_GRAPH)
            rows = reported(settings, rows, sizes, math.inf, ledger, NoiseSource())
        parts = torch.split(rows, sizes.tolist())
        spaces = [Space(row_distances(part.numpy(), "euclidean")) for part in parts]
        return spaces, pairwise_discrepancies(spaces)

    def mean(self, release: Release) -> float:
        """Mean discrepancy of all pairs."""
        return float(off_diagonal(self.discrepancies(release)[1]).mean())


def egos(count: int, hops: int) -> SubgraphDataModule:
    """Ego graphs of the largest component, with all edges among their nodes."""
    data = SubgraphDataModule(
        "CiteSeer",
        largest_component=True,
        kind="ego",
        hops=hops,
        num_subgraphs=count,
        max_occurrences=count,
    )
    data.setup("fit")
    return data


def fitted(data: SubgraphDataModule, rounds: int) -> LDPGromovWasserstein:
    """The encoder of the paper, trained on half of the graphs without protection."""
    method = LDPGromovWasserstein(release="exact", weights="trained", rounds=rounds)
    data.steps_per_epoch = rounds
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pl.seed_everything(0, verbose=False)
        pl.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[PrivacyAccountant(math.inf, 1e-5)],
        ).fit(method, data)
    return method


def embedded(method: LDPGromovWasserstein, data: SubgraphDataModule) -> Embedded:
    """All graphs with the rows that the encoder gives their nodes."""
    rows = method.encoded(node_inputs(data, data.edges), data.edges)
    return Embedded(data.graphs, list(torch.split(rows, data.sizes.tolist())))


def readout_accuracy(method: LDPGromovWasserstein, data: SubgraphDataModule) -> float:
    """Share of the graphs that did not teach whose class the encoder's own readout tells."""
    edge_index = torch.cat([data.edges, data.edges.flip(1)]).T
    inputs = node_inputs(data, data.edges)
    logits = method.network.logits(inputs, edge_index, data.graph_of, len(data.graphs))
    right = (logits.argmax(1) == method.labels).numpy()
    return float(right[method.judged].mean())


def chosen(sets: Embedded, numbers: NDArray[np.int64]) -> Embedded:
    """Some of the graphs."""
    return Embedded(*([part[k] for k in numbers] for part in sets))


def off_diagonal(matrix: Matrix) -> Matrix:
    """Entries of all pairs."""
    return matrix[np.triu_indices(len(matrix), 1)]


def show_clusters(sets: Embedded, labels: NDArray[np.int64]) -> None:
    """Figure 2: k-means of graphs that did not teach the encoder, laid out by t-SNE."""
    print(f"\nFigure 2: {len(labels)} graphs, classes of their centers, as many clusters")
    print("clusters have adjusted mutual information with")
    print("| release | classes | exact clusters | numbers of nodes | 5 neighbors tell the class |")
    print("|---|---|---|---|---|")
    sizes = [len(part) for part in sets.rows]
    releases = (EXACT, *CLUSTERED)
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    panels = figure.subplots(2, 4).flatten()
    panels[-1].axis("off")
    first = np.empty(0)
    for panel, release in enumerate(releases, start=1):
        spaces, found = sets.discrepancies(release)
        clusters = gromov_kmeans(spaces, found, len(np.unique(labels))).labels
        first = first if len(first) else clusters
        scores = [adjusted_mutual_info_score(x, clusters) for x in (labels, first, sizes)]
        told = " | ".join(f"{score:.3f}" for score in scores)
        print(f"| {release} | {told} | {neighbor_accuracy(found, labels):.3f} |", flush=True)
        layout = TSNE(metric="precomputed", init="random", random_state=0)
        places = layout.fit_transform(found)
        pictures = [(panels[panel], clusters, str(release))]
        if release == EXACT:
            pictures.append((panels[0], labels, "exact, colored by classes"))
        for axes, colors, title in pictures:
            axes.scatter(*places.T, c=colors, cmap="tab10", s=8)
            axes.set(title=title, xticks=[], yticks=[])
    share = np.bincount(labels).max() / len(labels)
    print(f"most frequent class: {share:.3f}")
    print(f"numbers of nodes with classes: {adjusted_mutual_info_score(labels, sizes):.3f}")
    figure.supxlabel(f"{AXIS}; exact: none at all", fontsize="medium")
    figure.savefig("local_privacy-clusters.png", dpi=150)


def edit_distances(graphs: list[Data]) -> Matrix:
    """Fewest insertions and deletions of nodes and edges that turn one graph into the other."""
    drawn = []
    for graph in graphs:
        drawn.append(nx.empty_graph(graph.num_nodes))
        drawn[-1].add_edges_from(undirected_edges(graph).tolist())
    matrix = np.zeros((len(graphs), len(graphs)))
    for i, j in combinations(range(len(graphs)), 2):
        matrix[i, j] = matrix[j, i] = nx.graph_edit_distance(drawn[i], drawn[j])
    return matrix


def rank_correlation(first: Matrix, second: Matrix) -> float:
    """Spearman's, 0 where one is constant but for rounding."""
    first, second = first.round(9), second.round(9)
    if not (np.ptp(first) and np.ptp(second)):
        return 0.0
    return float(spearmanr(first, second).statistic)


def show_five_graphs(sets: Embedded) -> None:
    """Figures 4 and 11: distances of five small graphs, of several kinds."""
    sizes = [len(part) for part in sets.rows]
    five = chosen(sets, np.array([sizes.index(size) for size in SMALL]))
    bare = [path_distances(undirected_edges(g).numpy(), g.num_nodes) for g in five.graphs]
    features = [graph.x.double().numpy() for graph in five.graphs]
    fused = [Space(*pair) for pair in zip(bare, features, strict=True)]
    found = {
        "edit distance": [edit_distances(five.graphs)],
        "GW of paths": [pairwise_discrepancies([Space(part) for part in bare])],
        "fused GW": [pairwise_discrepancies(fused)],
        "exact": [five.discrepancies(EXACT)[1]],
    }
    found |= {str(r): [five.discrepancies(r)[1] for _ in range(DRAWS)] for r in CLUSTERED}
    told = ", ".join(f"{g.num_nodes} {g.num_edges // 2}" for g in five.graphs)
    print(f"\nFigures 4 and 11: five graphs (nodes, edges: {told}), {DRAWS} draws of the noise")
    print(
        "| distance | mean and sd of 10 pairs | rank correlation with exact | with edit distance |"
    )
    print("|---|---|---|---|")
    figure = Figure(figsize=(13, 6), layout="constrained")
    panels = figure.subplots(2, 5).flatten()
    panels[-1].axis("off")
    for axes, (name, matrices) in zip(panels, found.items(), strict=False):
        pairs = np.array([off_diagonal(matrix) for matrix in matrices])
        ranks = [
            np.mean([rank_correlation(row, off_diagonal(found[other][0])) for row in pairs])
            for other in ("exact", "edit distance")
        ]
        mean = f"{pairs.mean():.3g} +- {pairs.std(axis=1).mean():.2g}"
        print(f"| {name} | {mean} | {ranks[0]:.2f} | {ranks[1]:.2f} |", flush=True)
        matrix = matrices[0].round(9)
        axes.imshow(matrix, cmap="Blues")
        for i, j in np.ndindex(matrix.shape):
            dark = matrix[i, j] > matrix.max() / 2
            color = "white" if dark else "black"
            value = f"{matrix[i, j]:.2g}"
            axes.text(j, i, value, ha="center", va="center", color=color, fontsize=6)
        axes.set(title=name, xticks=[], yticks=[])
    figure.supxlabel(f"{AXIS}; exact: none at all", fontsize="medium")
    figure.savefig("local_privacy-five_graphs.png", dpi=150)


def show_means(by_hops: dict[int, Embedded], epsilons: list[float]) -> None:
    """Figure 5: mean discrepancy of all pairs."""
    columns = " | ".join(f"{epsilon:g}" for epsilon in epsilons)
    print("\nFigure 5: mean discrepancy of all pairs")
    print(f"| hops | graphs | mean nodes | release | exact | {columns} |")
    print("|---" * (5 + len(epsilons)) + "|")
    figure = Figure(figsize=(4.5 * len(by_hops), 3.6), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(by_hops)))
    modes: tuple[Mode, ...] = ("corrected", "paper")
    for axes, (hops, sets) in zip(panels, by_hops.items(), strict=True):
        size = np.mean([len(part) for part in sets.rows])
        exact = sets.mean(EXACT)
        axes.axhline(exact, ls="--", color="0.4", label="exact")
        for mode, color in zip(modes, ("#1f5fa8", "#d9822b"), strict=True):
            label = "as printed" if mode == "paper" else mode
            means = [sets.mean(Release(mode, epsilon)) for epsilon in epsilons]
            told = " | ".join(f"{mean:.3g}" for mean in means)
            head = f"| {hops} | {len(sets.rows)} | {size:.1f} | {label}"
            print(f"{head} | {exact:.3g} | {told} |", flush=True)
            axes.plot(epsilons, means, ".-", color=color, label=label)
        axes.set(xscale="log", yscale="log", xlabel=AXIS, title=f"{hops}-hop subgraphs")
        axes.set_ylabel("mean discrepancy")
        axes.legend(frameon=False)
    figure.savefig("local_privacy-discrepancies.png", dpi=150)


def main(args: list[str]) -> None:
    """Write three figures into the current folder. Needs $LIGHTNING_DPG_DATA."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks local_privacy")
    parser.add_argument("--graphs", type=int, default=300, help="1-hop ego graphs; half teach")
    parser.add_argument("--rounds", type=int, default=200, help="of federated averaging")
    parser.add_argument("--pairs-of", type=int, default=40, help="graphs of figure 5")
    parser.add_argument(
        "--epsilons", type=float, nargs="+", default=[0.1, 1, 10, 100, 1e3, 1e4, 1e5]
    )
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    data = egos(options.graphs, 1)
    method = fitted(data, options.rounds)
    judged = np.flatnonzero(method.judged)
    others = chosen(embedded(method, data), judged)
    show_five_graphs(others)
    wider = embedded(method, egos(options.pairs_of, 2))
    few = chosen(others, np.arange(min(options.pairs_of, len(judged))))
    show_means({1: few, 2: wider}, options.epsilons)
    show_clusters(others, method.labels.numpy()[judged])
    print(f"classes by the readout of the encoder: {readout_accuracy(method, data):.3f}")
