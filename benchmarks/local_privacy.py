"""Discrepancies of ego graphs of Citeseer or Cora under local privacy: tables and three figures.

Figures 2, 4 (with 11) and 5 of Jin and Chen, "Gromov-Wasserstein Discrepancy with Local
Differential Privacy for Distributed Structural Graphs", 2022. In the paper a large epsilon means
much protection and 0 means none. Here a small epsilon protects, and ``exact`` is without
protection.
"""

import argparse
from itertools import combinations

import networkx as nx
import numpy as np
import pytorch_lightning as pl
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_mutual_info_score
from torch_geometric.data import Data

from benchmarks.embeddings import (
    EXACT,
    Embedded,
    Mode,
    Release,
    chosen,
    embedded,
    fitted,
    off_diagonal,
    readout_accuracy,
)
from lightning_dpg.datamodules import SubgraphDataModule
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import GromovWassersteinFeatures
from lightning_dpg.metrics.kernel_svm import neighbor_accuracy
from lightning_dpg.papers.jin2022.gromov import (
    Matrix,
    Space,
    gromov_kmeans,
    pairwise_discrepancies,
    path_distances,
)

AXIS = "epsilon (smaller: more protection)"
SMALL = (4, 5, 6, 7, 8)  # nodes of the five graphs, few enough for exact edit distances
DRAWS = 20  # of the noise, to average rank correlations of so few pairs
CLUSTERED = (
    *(Release("corrected", epsilon) for epsilon in (1.0, 100.0, 10_000.0)),
    *(Release("paper", epsilon) for epsilon in (None, 1.0)),
)


def egos(name: str, count: int, hops: int) -> SubgraphDataModule:
    """Cut ego graphs of the largest component, with all edges among their nodes."""
    data = SubgraphDataModule(
        name,
        largest_component=True,
        kind="ego",
        hops=hops,
        num_subgraphs=count,
        max_occurrences=count,
    )
    data.setup("fit")
    return data


def show_clusters(sets: Embedded, labels: NDArray[np.int64]) -> None:
    """Draw Figure 2: k-means of test graphs, laid out by t-SNE."""
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
        spaces = sets.spaces(release)
        found = pairwise_discrepancies(spaces)
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
    """Return the fewest insertions and deletions of nodes and edges between two graphs."""
    drawn = []
    for graph in graphs:
        drawn.append(nx.empty_graph(graph.num_nodes))
        drawn[-1].add_edges_from(undirected_edges(graph).tolist())
    matrix = np.zeros((len(graphs), len(graphs)))
    for i, j in combinations(range(len(graphs)), 2):
        matrix[i, j] = matrix[j, i] = nx.graph_edit_distance(drawn[i], drawn[j])
    return matrix


def rank_correlation(first: Matrix, second: Matrix) -> float:
    """Return Spearman's rank correlation; 0 where one side is constant up to rounding."""
    first, second = first.round(9), second.round(9)
    if not (np.ptp(first) and np.ptp(second)):
        return 0.0
    return float(spearmanr(first, second).statistic)


def show_five_graphs(sets: Embedded) -> None:
    """Draw Figures 4 and 11: distances of five small graphs, of several kinds."""
    sizes = [len(part) for part in sets.rows]
    five = chosen(sets, np.array([sizes.index(size) for size in SMALL]))
    bare = [path_distances(undirected_edges(g).numpy(), g.num_nodes) for g in five.graphs]
    features = [graph.x.double().numpy() for graph in five.graphs]
    fused = [Space(*pair) for pair in zip(bare, features, strict=True)]
    found = {
        "edit distance": [edit_distances(five.graphs)],
        "GW of paths": [pairwise_discrepancies([Space(part) for part in bare])],
        "fused GW": [pairwise_discrepancies(fused)],
        "exact": [five.discrepancies(EXACT)],
    }
    found |= {str(r): [five.discrepancies(r) for _ in range(DRAWS)] for r in CLUSTERED}
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
    """Draw Figure 5: mean discrepancy of all pairs."""
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
    parser.add_argument("--name", choices=("CiteSeer", "Cora"), default="CiteSeer")
    parser.add_argument("--graphs", type=int, default=300, help="1-hop ego graphs; half teach")
    parser.add_argument("--rounds", type=int, default=200, help="of federated averaging")
    parser.add_argument("--pairs-of", type=int, default=40, help="graphs of figure 5")
    parser.add_argument(
        "--epsilons", type=float, nargs="+", default=[0.1, 1, 10, 100, 1e3, 1e4, 1e5]
    )
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    pl.seed_everything(0, verbose=False)
    data = egos(options.name, options.graphs, 1)
    method = fitted(GromovWassersteinFeatures(weights="trained", rounds=options.rounds), data)
    tested = np.flatnonzero(method.test_mask)
    others = chosen(embedded(method, data), tested)
    show_five_graphs(others)
    wider = embedded(method, egos(options.name, options.pairs_of, 2))
    few = chosen(others, np.arange(min(options.pairs_of, len(tested))))
    show_means({1: few, 2: wider}, options.epsilons)
    show_clusters(others, method.labels.numpy()[tested])
    print(f"classes by the readout of the encoder: {readout_accuracy(method, data):.3f}")
