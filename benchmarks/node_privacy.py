"""Quality of eigenvectors under node privacy, on planted partitions of growing size."""

import argparse
import math

import numpy as np
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.graph.graph import adjacency, make_graph
from lightning_dpg.methods import NodePrivCom
from lightning_dpg.running.fit import fit_method

RANK = 2
INSIDE = 5 / 6  # share of the edges within the two blocks, which are the even and the odd nodes


def planted(num_nodes: int, degree: float) -> Data:
    """Draw two equal blocks, with five times as many edges inside as between them."""
    rng = np.random.default_rng(0)
    first = rng.integers(num_nodes, size=int(num_nodes * degree / 2))
    block = np.where(rng.random(len(first)) < INSIDE, first % 2, 1 - first % 2)
    second = 2 * rng.integers(num_nodes // 2, size=len(first)) + block
    return make_graph(torch.from_numpy(np.stack([first, second], axis=1)), num_nodes)


def fitted(graph: Data, epsilon: float, delta: float, max_degree: int) -> NodePrivCom:
    """The method after a fit, with noise of the operating system."""
    method = NodePrivCom(max_degree, graph.num_nodes, rank=RANK)
    fit_method(method, EdgeListDataModule(graph), epsilon, delta)
    return method


def signal_to_noise(method: NodePrivCom, eigenvalue: float) -> float:
    """Length of A times an eigenvector as it is shown, over the spectral norm of a step's noise."""
    noise = next(entry for entry in method.ledger.entries if entry.key == "products")
    std = noise.scale
    size = method.hparams["num_nodes"]
    shown = method.hparams["clip"] * eigenvalue
    return shown / (std * (math.sqrt(size) + math.sqrt(RANK))) if std else math.inf


def overlap(method: NodePrivCom, truth: Tensor) -> float:
    """Share of the true eigenvectors, shape ``(N, K)``, in the span of the private ones."""
    return float((truth.T @ method.vectors.detach()).square().sum()) / RANK


def main(args: list[str]) -> None:
    """Print a line per size and epsilon; random vectors have an overlap of 2 / N."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks node_privacy")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.5, 8, 32, 128, math.inf])
    parser.add_argument("--delta", type=float, default=1e-7, help="below one over the edges")
    parser.add_argument("--degree", type=float, default=40.0)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    print(f"overlap with the true {RANK} eigenvectors, relation node, delta {options.delta:g}")
    print(
        "| nodes | edges | D | eigenvalues | epsilon | mu | SNR of a step | overlap of each run |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for nodes in options.nodes:
        graph = planted(nodes, options.degree)
        matrix = adjacency(graph)
        # A bound that is plausible without reading the graph
        max_degree = 10 * math.ceil(matrix.sum(axis=1).max() / 10)
        values, vectors = eigsh(matrix, k=RANK, which="LA", v0=np.arange(nodes) % 2 + 1.0)
        truth = torch.from_numpy(vectors.copy())
        shown = ", ".join(f"{value:.1f}" for value in values[::-1])
        head = f"| {nodes} | {graph.num_edges // 2} | {max_degree} | {shown}"
        for epsilon in options.epsilons:
            methods = [
                fitted(graph, epsilon, options.delta, max_degree) for _ in range(options.runs)
            ]
            noise = float(methods[0].noise_multipliers[0])
            mu = math.sqrt(methods[0].hparams["iterations"]) / noise if noise else math.inf
            ratio = signal_to_noise(methods[0], float(values.min()))
            found = ", ".join(f"{overlap(method, truth):.3f}" for method in methods)
            print(f"{head} | {epsilon:g} | {mu:.2f} | {ratio:.3f} | {found} |", flush=True)
