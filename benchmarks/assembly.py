"""Time of assembling a graph from generated edges, against the dense routine of NetGAN."""

import argparse

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.numbers import Number, ratio
from benchmarks.timing import medians, table
from lightning_dpg.graph.edge_sampling import assemble


def dense(pairs: NDArray[np.int64], num_nodes: int, num_edges: int) -> NDArray[np.float64]:
    """Assemble by an N x N matrix of counts, as the paper describes it."""
    rng = np.random.default_rng(0)
    counts = np.zeros((num_nodes, num_nodes))
    np.add.at(counts, (pairs[:, 0], pairs[:, 1]), 1)
    np.fill_diagonal(counts, 0)
    counts = np.maximum(counts, counts.T)
    graph = np.zeros_like(counts)
    for node in np.flatnonzero(counts.sum(1)):
        other = rng.choice(num_nodes, p=counts[node] / counts[node].sum())
        graph[node, other] = graph[other, node] = 1
    rest = np.triu(counts * (1 - graph))
    missing = min(num_edges - int(graph.sum() // 2), np.count_nonzero(rest))
    chosen = rng.choice(rest.size, missing, replace=False, p=rest.ravel() / rest.sum())
    graph.ravel()[chosen] = 1
    return np.maximum(graph, graph.T)


def main(args: list[str]) -> list[Number]:
    """Print the medians, and return the ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks assembly")
    parser.add_argument("--nodes", type=int, default=2810)
    parser.add_argument("--samples", type=int, default=400_000)
    parser.add_argument("--edges", type=int, default=6783)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(args)
    torch.manual_seed(0)
    # Ends with heavy tails, as from a trained generator
    ends = (torch.rand(options.samples, 2) ** 3 * options.nodes).long()
    generator = torch.Generator().manual_seed(0)
    ours = {"ours": lambda: assemble(ends, options.nodes, options.edges, generator)}
    print(f"assembly: {options.nodes} nodes, {options.samples} samples, {options.edges} edges")
    if options.nodes > 20_000:
        print(table(medians(ours, options.rounds), "ours"))
        return []
    variants = {"dense N x N": lambda: dense(ends.numpy(), options.nodes, options.edges), **ours}
    times = medians(variants, options.rounds)
    print(table(times, "ours", {"dense N x N": ">= 10"}))
    return [ratio("assembly", times["dense N x N"] / times["ours"])]
