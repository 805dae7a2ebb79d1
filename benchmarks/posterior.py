"""Shortcuts of Yang et al. switched back one by one: whose latent vectors draw the graphs, and from what.

``python -m benchmarks posterior --out measured`` trains ``DPGVAEAsPublished`` on DPGGAN-DBLP: one model of
the set for a claimed epsilon of 1, and, as in the paper, a model of each graph, for .1. Features are public,
or those of the code of the paper: eigenvectors of each private graph, with self loops. Graphs are drawn
from the prior, and from the posterior of each private graph.
Needs $LIGHTNING_DPG_DATA.
"""

import argparse
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch_geometric.data import Data

from benchmarks.scores_file import ScoresFile, mean_cells
from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import GraphSetDataModule, TUGraphDataModule
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import DPGVAEAsPublished
from lightning_dpg.metrics.functional import edge_overlap
from lightning_dpg.metrics.graph_sets import set_differences
from lightning_dpg.metrics.set_queries import TABLE_1
from lightning_dpg.papers.yang2021.dense_batch import dense_adjacency, dense_batch
from lightning_dpg.papers.yang2021.networks import draw_pairs, reparameterize
from lightning_dpg.run.quiet import quiet

MODELS = ("one", "own")
FIELDS = ("seed", "row", "column", "value")
# Those of papers/yang2021/dblp_dpgvae_eps1.
SETTINGS: dict[str, Any] = {
    "sample_rate": 0.01,
    "noise_multiplier": 5.0,
    "max_grad_norm": 5.0,
    "latent_dim": 16,
    "kl_weight": 0.1,
    "learning_rate": 1e-3,
}


class SpectralDPGVAE(DPGVAEAsPublished):
    """The published variant with the features and the self loops of the code of the paper."""

    def on_fit_start(self) -> None:
        """Replace the public features."""
        super().on_fit_start()
        for number in range(len(self.sizes)):
            nodes, adjacency = private_graph(self, number)
            values, vectors = torch.linalg.eigh(adjacency[0])
            largest = values.abs().argsort(descending=True)[: self.features.shape[1]]
            self.features[nodes[0]] = 0.0  # a small graph has fewer eigenvectors than features
            self.features[nodes[0], : len(largest)] = vectors[:, largest] * math.sqrt(len(values))
        self.encoder.register_forward_pre_hook(
            lambda _, inputs: (inputs[0], inputs[1] + torch.eye(inputs[1].shape[-1]))
        )


def private_graph(method: DPGVAEAsPublished, number: int) -> tuple[Tensor, Tensor]:
    """Nodes ``(1, n)`` and adjacency matrix ``(1, n, n)`` of a graph of the set."""
    blocks = dense_batch(method.sizes, torch.tensor([number]))
    return blocks.nodes, dense_adjacency(method.records.edges, method.sizes, blocks)


@torch.no_grad()
def posterior_set(method: DPGVAEAsPublished, generator: torch.Generator) -> list[Data]:
    """Draw each graph as from the prior, by latent vectors that the encoder makes of the original."""
    graphs = []
    for number, num_edges in enumerate(method.num_edges.tolist()):
        nodes, adjacency = private_graph(method, number)
        mean, log_variance = method.encoder(method.features[nodes], adjacency)
        normal = torch.randn(mean.shape, generator=generator)
        latent = reparameterize(mean, log_variance, normal)[0]
        edges = draw_pairs(method.decoder, method.offset, latent, num_edges, generator)
        graphs.append(make_graph(edges, len(latent)))
    return graphs


KINDS = {"": DPGVAEAsPublished, "spectral, ": SpectralDPGVAE}
DRAWS: dict[str, Callable[..., list[Data]]] = {
    "prior": DPGVAEAsPublished.sample_set,
    "posterior": posterior_set,
}


def fitted(kind: type[DPGVAEAsPublished], data: TUGraphDataModule, models: str) -> list[Any]:
    """Fit one model to the set for a claimed epsilon of 1, or a model to each graph for .1."""
    if models == "one":
        return [fit(kind(**SETTINGS), data, 54)]
    graphs = [GraphSetDataModule([graph], steps_per_epoch=54) for graph in data.records.graphs]
    return [fit(kind(**SETTINGS | {"sample_rate": 1.0}), graph, 1) for graph in graphs]


def fit(method: DPGVAEAsPublished, data: GraphSetDataModule, epochs: int) -> DPGVAEAsPublished:
    """Fit a model without files."""
    with quiet():
        pl.Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[PrivacyAccountant(math.inf, 1e-5, book=NO_BOOK)],
        ).fit(method, data)
    return method.eval()


def main(args: list[str]) -> None:
    """Append the scores of each seed, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks posterior", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of all files")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    file = ScoresFile(options.out, FIELDS)
    data = TUGraphDataModule("DPGGAN-DBLP")
    data.setup("fit")
    originals = data.records.graphs
    for seed, models, (features, kind) in product(options.seeds, options.models, KINDS.items()):
        row = f"{models} model, {features}"
        if any(line["seed"] == str(seed) and line["row"].startswith(row) for line in file.lines()):
            continue
        torch.manual_seed(seed)
        methods = fitted(kind, data, models)
        for name, draw in DRAWS.items():
            generator = torch.Generator().manual_seed(seed)
            graphs = [graph for method in methods for graph in draw(method, generator)]
            differences = set_differences(originals, graphs)
            scores = {name: differences[name].value for name in TABLE_1}
            scores["edges"] = 100 * fmean(map(edge_overlap, graphs, originals))
            print(seed, row + name, scores, flush=True)
            file.append([seed, row + name, column, value] for column, value in scores.items())
    values: dict[tuple[str, str, str], dict[str, float]] = {}
    for line in file.lines():
        place = ("dblp_shortcuts", line["row"], line["column"])
        values.setdefault(place, {})[line["seed"]] = float(line["value"])
    file.write_cells(mean_cells(values))
