"""Time of exact graphlet counts, against the sampled and random-walk kernels of GraKeL."""

import argparse
import importlib.util
import multiprocessing
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.tu import TUGraphDataModule, known_sets
from lightning_dpg.graph.degrees import truncate
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.papers.dubhashi2015.graphlets import GRAPHLETS, graphlet_counts, walk_counts


def union_of(graphs: list[Data]) -> tuple[Tensor, Tensor, int]:
    """Return edges of all graphs in one sequence of nodes, graph of each node, number of graphs."""
    sizes = torch.tensor([graph.num_nodes for graph in graphs])
    starts = sizes.cumsum(0) - sizes
    parts = zip(graphs, starts, strict=True)
    edges = torch.cat([undirected_edges(graph) + start for graph, start in parts])
    return edges, torch.repeat_interleave(sizes), len(graphs)


def gram(counts: Tensor) -> Tensor:
    """Return the products of all pairs of rows, as a kernel does."""
    return counts.double() @ counts.double().T


def seconds(call: Callable[[], object]) -> float:
    """Return the process time of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def grakel_seconds(graphs: list[Data], kernel: str, limit: float) -> float | None:
    """Return the process time of a GraKeL kernel in its own process; None if it was stopped."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    pairs = [(graph.edge_index.T.tolist(), int(graph.num_nodes)) for graph in graphs]
    process = context.Process(target=_run_grakel, args=(pairs, kernel, sender))
    process.start()
    sender.close()
    # Starting the process and loading the library do not count.
    receiver.recv()
    found: float | None = receiver.recv() if receiver.poll(limit) else None
    process.kill()
    process.join()
    return found


def _run_grakel(pairs: list[tuple[list[list[int]], int]], kernel: str, sender: Connection) -> None:
    from grakel import Graph, kernels

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the random-walk kernel warns when it lowers its decay
    graphs = []
    for edges, num_nodes in pairs:
        matrix = np.zeros((num_nodes, num_nodes), dtype=int)
        matrix[tuple(np.array(edges).reshape(-1, 2).T)] = 1
        graphs.append(Graph(matrix))
    chosen = {
        "graphlets, 300 samples, k 4": kernels.GraphletSampling(
            k=4, sampling={"n_samples": 300}, random_state=0
        ),
        "random walks": kernels.RandomWalk(),
    }[kernel]
    sender.send(0.0)
    sender.send(seconds(lambda: chosen.fit_transform(graphs)))


def main(args: list[str]) -> None:
    """Print seconds, one line per set and kernel."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks graphlets")
    parser.add_argument("--large", help="set that only ours count; by default DD where it is")
    parser.add_argument("--small", help="set for both; by default PROTEINS where it is")
    parser.add_argument("--max-degree", type=int, default=10)
    parser.add_argument(
        "--limit", type=float, default=130.0, help="wall seconds for a kernel of GraKeL"
    )
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    known = known_sets()
    names = {
        "large": options.large or ("DD" if "DD" in known else known[0]),
        "small": options.small or ("PROTEINS" if "PROTEINS" in known else known[0]),
    }
    print("seconds of process time; those after which a kernel was stopped are wall time")
    print("| set | graphs | edges | kernel | seconds | of ours |")
    print("|---|---|---|---|---|---|")
    for role, name in names.items():
        graphs = TUGraphDataModule(name).read_graphs()
        edges, graph_of, num_graphs = union_of(graphs)
        variants = {name: edges}
        if role == "large":
            kept = truncate(edges, len(graph_of), options.max_degree)
            variants[f"{name}, degrees <= {options.max_degree}"] = kept
        for label, chosen in variants.items():
            row = f"| {label} | {num_graphs} | {len(chosen)} |"
            for size in GRAPHLETS:
                ours = _ours(chosen, graph_of, num_graphs, size)
                print(f"{row} all graphlets, k {size} | {seconds(ours):.2f} | |", flush=True)
        if role == "small" and importlib.util.find_spec("grakel") is not None:
            base = {
                "graphlets, 300 samples, k 4": seconds(_ours(edges, graph_of, num_graphs, 4)),
                "random walks": seconds(
                    lambda edges=edges, of=graph_of, n=num_graphs: gram(
                        walk_counts(edges, of, n, 10)
                    )
                ),
            }
            for kernel, ours_took in base.items():
                took = grakel_seconds(graphs, kernel, options.limit)
                # A stopped process has no process time to compare.
                shown = f"> {options.limit:.0f} (stopped)" if took is None else f"{took:.1f}"
                ratio = "" if took is None else f"{took / ours_took:.0f}"
                print(f"{row} GraKeL, {kernel} | {shown} | {ratio} |", flush=True)


def _ours(edges: Tensor, graph_of: Tensor, num_graphs: int, size: int) -> Callable[[], Tensor]:
    return lambda: gram(graphlet_counts(edges, graph_of, num_graphs, size))
