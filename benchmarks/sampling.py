"""Error of graphlet shares of four nodes that are estimated from few edges."""

import argparse

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.graphlets import union_of
from lightning_dpg.datamodules.tu import TUGraphDataModule, known_sets
from lightning_dpg.papers.dubhashi2015.graphlet_samples import rescale, sampled_graphlets
from lightning_dpg.papers.dubhashi2015.graphlets import graphlet_counts

SIZE = 4
STEP = 10
MOST = 200
PICTURE = "sampling.png"


def shares(counts: Tensor) -> Tensor:
    """Return the share of each type, shape ``(G, F)``; 0 without any graphlet."""
    return normalize(counts.double(), p=1)


def errors(name: str, rounds: int) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation over the graphs of a set of their mean L1 errors.

    Edges are drawn with replacement, :data:`STEP` more at a time.

    Returns:
        Both for every number of edges, over graphs with graphlets of four nodes.
    """
    edges, graph_of, num_graphs = union_of(TUGraphDataModule(name).read_graphs())
    exact = graphlet_counts(edges, graph_of, num_graphs, SIZE)
    num_edges = torch.bincount(graph_of[edges[:, 0]], minlength=num_graphs)
    generator, found = torch.Generator().manual_seed(0), []
    for _ in range(rounds):
        sums, curve = torch.zeros_like(exact), []
        for drawn in range(STEP, MOST + 1, STEP):
            chances = torch.rand(num_graphs, STEP, generator=generator, dtype=torch.double)
            draws = (chances * num_edges[:, None]).long()
            sums += sampled_graphlets(edges, graph_of, num_graphs, SIZE, draws)
            estimates = rescale(sums, num_edges, SIZE, drawn)
            curve.append((shares(estimates) - shares(exact)).abs().sum(dim=1))
        found.append(torch.stack(curve))
    of_graphs = torch.stack(found).mean(dim=0)[:, exact.sum(dim=1) > 0]
    return of_graphs.mean(dim=1), of_graphs.std(dim=1)


def main(args: list[str]) -> None:
    """Print a line per number of edges, and draw the figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks sampling")
    wanted = ["planted_sets", "road_sets"]
    if {"DD", "PROTEINS"} <= {*known_sets()}:  # the folder of real data is there
        wanted = ["DD", "PROTEINS", "ego_sets"]
    parser.add_argument("--sets", nargs="+", default=wanted)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    curves = {name: errors(name, options.rounds) for name in options.sets}
    numbers = range(STEP, MOST + 1, STEP)
    print(f"L1 error of the shares of {SIZE}-graphlets: mean (deviation) over the graphs of a set")
    print(f"| edges | {' | '.join(curves)} |")
    print(f"|---|{'---|' * len(curves)}")
    for row, drawn in enumerate(numbers):
        cells = [f"{mean[row]:.4f} ({deviation[row]:.4f})" for mean, deviation in curves.values()]
        print(f"| {drawn} | {' | '.join(cells)} |")
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for place, (name, (mean, deviation)) in enumerate(curves.items()):
        beside = [drawn + 1.5 * place for drawn in numbers]  # bars must not hide each other
        axes.errorbar(beside, mean, deviation, label=name, capsize=2)
    axes.set(xlabel="sampled edges", ylabel="L1 error of the shares", yscale="log")
    axes.legend()
    figure.savefig(PICTURE, dpi=150)
    print(f"figure: {PICTURE}")
