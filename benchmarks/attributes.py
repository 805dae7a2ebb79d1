"""Time of a step of AttributeEncoder, and seconds and memory of whole fits, on planted graphs."""

import argparse
import resource
import subprocess
import sys
import time
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import softplus
from torch_geometric.data import Data

from benchmarks.numbers import Number, ratio
from benchmarks.timing import medians, table
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.graph.attributes import NodeAttributes, attach
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import AttributeEncoder, AttributeMoments
from lightning_dpg.nn.attribute_logits import degree_levels
from lightning_dpg.run.fit import fit_method

METHODS = {"encoder": AttributeEncoder, "moments": AttributeMoments}
EDGES_PER_NODE = 5
NODES_PER_TOPIC = 100
INSIDE = 0.8  # share of the edges within a topic
DELTA = 1e-6


def planted(nodes: int, columns: int, kind: str) -> tuple[Data, Tensor]:
    """Graph and attributes: words of topics, 5 % filled, or numbers around means of topics."""
    source = torch.Generator().manual_seed(0)
    topics = max(2, nodes // NODES_PER_TOPIC)
    topic = torch.arange(nodes) % topics
    if kind == "sparse":
        attributes = torch.zeros(nodes, columns)
        words = torch.randint(columns, (topics, columns // 40), generator=source)
        attributes.scatter_(1, words[topic], 1.0)
        others = torch.randint(columns, (nodes, columns // 40), generator=source)
        attributes.scatter_(1, others, 1.0)
    else:
        attributes = torch.randn(nodes, columns, generator=source)
        means = torch.randn(topics, columns, generator=source)
        for part in torch.arange(nodes).split(4096):
            attributes[part] += means[topic[part]] / 2
    first = torch.randint(nodes, (EDGES_PER_NODE * nodes,), generator=source)
    near = topic[first] + topics * torch.randint(nodes // topics, first.shape, generator=source)
    far = torch.randint(nodes, first.shape, generator=source)
    second = torch.where(torch.rand(first.shape, generator=source) < INSIDE, near, far)
    return make_graph(torch.stack([first, second], 1), nodes), attributes


def fit_on(
    method: AttributeEncoder | AttributeMoments, graph: Data, attributes: Tensor, epsilon: float
) -> None:
    """Fit a method on a graph whose nodes have these attributes."""
    attach(graph, NodeAttributes(attributes, [f"x{i}" for i in range(attributes.shape[1])], None))
    fit_method(
        method, EdgeListDataModule(graph, nodes=Nodes(attributes="from_graph")), epsilon, DELTA
    )


def main(args: list[str]) -> list[Number]:
    """Print a line for each method and kind of attributes, then the ratio of a step; return the numbers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks attributes")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs=2, help="fit this method on these attributes only")
    parser.add_argument("--draw", action="store_true", help="draw a graph as well (minutes)")
    options = parser.parse_args(args)
    if options.only:
        print(_fit(*options.only, options.nodes, options.columns, options.draw))
        return []
    print("| method | attributes | seconds of a fit | GiB of attributes | GiB beyond the data |")
    print("|---|---|---|---|---|")
    size = ["--nodes", str(options.nodes), "--columns", str(options.columns)]
    size += ["--draw"] * options.draw
    numbers = list[Number]()
    for kind in ("sparse", "dense"):
        for name, method in METHODS.items():
            command = [sys.executable, "-m", "benchmarks", "attributes", *size]
            command += ["--only", name, kind]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            line = done.stdout.splitlines()[-1]
            print(f"| {name} | {kind} | {line} |", flush=True)
            row = f"{method.__name__}, {options.nodes:,}{', numbers' * (kind == 'dense')}"
            seconds, *memory = line.split(" | ")
            values = dict(zip(("fit", "draw"), seconds.split(" + "), strict=False))
            values |= dict(zip(("attributes", "peak"), memory, strict=True))
            numbers += [Number("speed", "attributes", row, *each) for each in values.items()]
    return [*numbers, ratio("attribute encoder", _step(options.rounds))]


def _fit(name: str, kind: str, nodes: int, columns: int, is_drawn: bool) -> str:
    """Seconds of process time of a fit, and the rise of the peak above graph and attributes.

    Where a graph is drawn, its seconds follow behind a plus sign, and the peak is that of both.
    """
    torch.set_num_threads(1)
    graph, attributes = planted(nodes, columns, kind)
    fit_on(
        AttributeMoments(100), *planted(100, 50, kind), 1.0
    )  # imports and caches are no part of the fit
    before, start = _peak(), time.process_time()
    method = METHODS[name](nodes)
    fit_on(method, graph, attributes, 1.0)
    seconds = f"{time.process_time() - start:.1f}"
    if is_drawn:
        start = time.process_time()
        with torch.no_grad():
            method.eval().sample(torch.Generator().manual_seed(0))
        seconds += f" + {time.process_time() - start:.1f}"
    return f"{seconds} | {attributes.numel() * 4 / 2**30:.2f} | {_peak() - before:.2f}"


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _step(rounds: int) -> float:
    """Ratio of the gradient of a step on 678 edges, as many as a step on Cora-ML has."""
    graph, attributes = planted(3000, 1000, "sparse")
    method = AttributeEncoder(3000, noise_multiplier=2.0)
    fit_on(method, graph, attributes, 1000.0)  # a budget for the further steps
    method.log = lambda *args, **kwargs: None  # type: ignore[method-assign,assignment]
    # Outside of a run, where a step needs no draw of the sampler.
    method.dpsgd._method = [torch.nn.Module()]
    # A run composes its plan once, before its steps; further ones would be composed one by one.
    assert method.ledger.affords(replace(method.dpsgd.entry, steps=rounds + 1))
    edges = torch.randint(3000, (678, 2))
    levels = degree_levels(method.degrees)
    variants = {
        "no privacy": lambda: _nonprivate(method, edges, levels),
        "DP": lambda: _private(method, edges, levels),
    }
    times = medians(variants, rounds)
    print(table(times, "no privacy"))
    return times["DP"] / times["no privacy"]


def _private(method: AttributeEncoder, edges: Tensor, levels: Tensor) -> None:
    method.model.zero_grad()
    method._private_term(edges, levels)
    method._public_term(levels)


def _nonprivate(method: AttributeEncoder, edges: Tensor, levels: Tensor) -> None:
    """The same step without clipping and noise."""
    method.model.zero_grad()
    softplus(-method.model(method.rows[edges], levels[edges])).mean().backward()
    method._public_term(levels)
