"""Private parts of DPGVAE and DPGGAN: noisy sums over neighbors, and steps with clipped edges."""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from lightning_dpg.advice import Facts, hint
from lightning_dpg.errors import Refusal
from lightning_dpg.graph.dense_batch import random_pairs
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.graph_set.base import NUM_EDGES
from lightning_dpg.methods.graph_set.graph_vae.decoding import (
    GraphOdds,
    annealed,
    parameters_but_of,
    with_context,
)
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.nn.graph_vae import CONTEXT_DIM, RowEncoder, kl_divergence, reparameterize
from lightning_dpg.nn.resized_buffers import resized
from lightning_dpg.privacy.aggregation_perturbation import noisy_aggregation
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.ghost import ghost_clipped_gradient_sum
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource, secret_generator
from lightning_dpg.privacy.sensitivity import (
    aggregation_sensitivity,
    edge_gradient_sensitivity,
    edges_per_graph_sensitivity,
)

DIVERGENCE_CURVE = "train/divergence_per_node"
"""Curve of the divergence from the prior, which reads released rows only."""


def edge_training(
    noise_multiplier: float | Literal["auto"], max_grad_norm: float, sample_rate: float
) -> PrivateTraining:
    """Build the private steps of an autoencoder, on Poisson samples of edges.

    Raises:
        Refusal: If there is no noise.
    """
    if noise_multiplier != "auto" and not noise_multiplier > 0:
        raise Refusal(
            f"noise_multiplier must be positive or auto, got {noise_multiplier}; to train "
            "without noise set privacy.epsilon to .inf"
        )
    return PrivateTraining(
        "edge_gradient",
        "gradient of edges",
        proof="edge_gradient_sensitivity",
        sensitivity=edge_gradient_sensitivity(max_grad_norm),
        noise_multiplier=noise_multiplier,
        max_grad_norm=max_grad_norm,
        sample_rate=sample_rate,
    )


def check_shares(count_share: float, aggregation_share: float) -> None:
    """Refuse shares that leave nothing of a budget.

    Raises:
        Refusal: If they are out of range.
    """
    if not (count_share > 0 and aggregation_share > 0 and count_share + aggregation_share < 1):
        raise Refusal(
            "count_share and aggregation_share must be positive and their sum below 1, "
            f"got {count_share} and {aggregation_share}"
        )


def num_edges_entry(epsilon: float) -> LedgerEntry:
    """Plan the cost of the number of edges of each graph."""
    return LedgerEntry(
        key="num_edges_per_graph",
        name=NUM_EDGES,
        relation=Relation.EDGE,
        mechanism="pure",
        sensitivity=edges_per_graph_sensitivity(1),
        proof="edges_per_graph_sensitivity",
        epsilon=epsilon,
    )


class NoisySums(nn.Module):
    """Sums over neighbors, released once with noise; later reads are free.

    Args:
        hops: Number of released sums, each over the previous sums of the neighbors.
        feature_dim: Width of the features that are summed up.
        share: Share of the budget (of its zCDP parameter) for all sums.

    Attributes:
        rows: All hops side by side (released), shape ``(N, hops * feature_dim)``.
        noise_multiplier: Noise of each hop.
    """

    def __init__(self, hops: int, feature_dim: int, share: float) -> None:
        super().__init__()
        if hops < 1:
            raise Refusal(f"hops must be positive, got {hops}")
        self.hops = hops
        self.share = share
        self.rows: Tensor
        self.noise_multiplier: Tensor
        self.register_buffer("rows", torch.empty(0, hops * feature_dim))
        self.register_buffer("noise_multiplier", torch.tensor(float("nan"), dtype=torch.float64))
        self.register_load_state_dict_pre_hook(resized("rows"))  # type: ignore[no-untyped-call]

    def planned(self, budget: Budget) -> list[LedgerEntry]:
        """Plan one release for each hop."""
        one_release = 0.0 if math.isinf(budget.epsilon) else calibrate_gaussian(budget)
        return [
            LedgerEntry(
                key=f"neighbor_sums_{hop}",
                name=f"sums over neighbors, hop {hop}",
                relation=Relation.EDGE,
                mechanism="gaussian",
                sensitivity=aggregation_sensitivity(),
                proof="aggregation_sensitivity",
                noise_multiplier=one_release * math.sqrt(self.hops / self.share),
            )
            for hop in range(1, self.hops + 1)
        ]

    def release(
        self,
        edges: Tensor,
        features: Tensor,
        budget: Budget,
        *,
        ledger: PrivacyLedger,
        noise: NoiseSource,
    ) -> None:
        """Release the sums of public features of shape ``(N, d)`` over edges ``(M, 2)`` (private)."""
        self.noise_multiplier.fill_(self.planned(budget)[0].noise_multiplier)
        rows = noisy_aggregation(
            edges,
            features.cpu(),
            self.hops,
            ledger,
            noise,
            noise_multiplier=float(self.noise_multiplier),
        )
        self.rows = rows.to(features.device)

    def scaled(self, rows: Tensor) -> Tensor:
        """Scale rows to entries of about 1; the scale is a function of the released rows."""
        return rows / self.rows.square().mean().sqrt()


class RowAutoencoder(NamedTuple):
    """Encoder of released sums and decoder of pairs, with the gradients of their loss.

    Attributes:
        encoder: Network of the sums of a node and of the context of its graph.
        odds: Decoder, and its context of the graphs.
        sums: The released sums.
        latent_dim: Width of the latent vectors.
    """

    encoder: RowEncoder
    odds: GraphOdds
    sums: NoisySums
    latent_dim: int

    @property
    def networks(self) -> nn.ModuleDict:
        """The networks trained on edges."""
        return nn.ModuleDict({"encoder": self.encoder, "decoder": self.odds.decoder})

    @property
    def total_edges(self) -> int:
        """Released number of edges of the set, at least 1."""
        return max(1, int(self.odds.num_edges.sum()))

    def graph_of(self, nodes: Tensor) -> Tensor:
        """Number of the graph of each node, of the same shape."""
        return torch.searchsorted(self.odds.sizes.cumsum(0), nodes.contiguous(), right=True)

    def inputs(self, nodes: Tensor) -> Tensor:
        """Encoder inputs of nodes: their rows, and the context of their graphs."""
        rows = self.sums.scaled(self.sums.rows[nodes])
        return with_context(rows, self.odds.context(self.graph_of(nodes)))

    def latent(self, inputs: Tensor, normal: Tensor) -> Tensor:
        """Latent vectors of the posterior, from standard normal vectors."""
        mean, log_variance = self.encoder(inputs)
        return reparameterize(mean, log_variance, normal)

    def pair_logits(self, inputs: Tensor, normal: Tensor) -> Tensor:
        """Log odds of pairs without the offset: inputs ``(P, 2, d)`` of their ends to ``(P,)``."""
        latent = self.latent(inputs, normal)
        return self.odds.decoder.pair_logits(with_context(latent, inputs[..., -CONTEXT_DIM:]))

    def clipped_sum(
        self, inputs: Tensor, normal: Tensor, max_grad_norm: float
    ) -> dict[str, Tensor]:
        """Sum of the clipped gradients of l over pairs whose ends have inputs ``(P, 2, d)``."""
        return ghost_clipped_gradient_sum(
            self.networks,
            self.pair_logits,
            inputs,
            max_grad_norm,
            others=(normal.to(inputs.device),),
        )

    def edge_sum(self, edges: Tensor, max_grad_norm: float) -> dict[str, Tensor]:
        """Sum of the clipped gradients of :math:`-l_{ij}` over edges of shape ``(B, 2)``."""
        normal = torch.randn(len(edges), 2, self.latent_dim, generator=secret_generator())
        total = self.clipped_sum(self.inputs(edges), normal, max_grad_norm)
        return {name: -gradient for name, gradient in total.items()}

    def drawn_sum(self, count: int, max_grad_norm: float) -> tuple[dict[str, Tensor], Tensor]:
        r"""Gradient of :math:`\sum \log(1 + e^{l_{ij}})` over all pairs, per edge of the graphs.

        It is the mean gradient of :math:`l_{ij}` over edges that the model draws. They are clipped
        as the real edges are; otherwise they would outweigh the real edges, and all pairs would
        become alike.

        Args:
            count: Number of uniform pairs for the estimate.
            max_grad_norm: Clipping norm C.

        Returns:
            Gradients of the networks by name, and the gradient of the offset.
        """
        odds = self.odds
        pairs = random_pairs(odds.sizes, count)
        inputs = self.inputs(pairs)
        normal = torch.randn(count, 2, self.latent_dim, device=inputs.device)
        with torch.no_grad():
            logits = self.pair_logits(inputs, normal) + odds.offsets(self.graph_of(pairs[:, 0]))
        drawn = torch.rand_like(logits) < logits.sigmoid()
        total = self.clipped_sum(inputs[drawn], normal[drawn], max_grad_norm)
        num_pairs = int((odds.sizes * (odds.sizes - 1) // 2).sum())
        per_edge = num_pairs / count / self.total_edges
        # The edges' part of the offset's gradient is the negative released number of edges.
        surplus = logits.sigmoid().sum() * per_edge - 1
        return {name: gradient * per_edge for name, gradient in total.items()}, surplus

    def divergence(self, count: int) -> Tensor:
        """Estimate the divergence from the prior per node, from uniform nodes."""
        rows = self.sums.rows
        nodes = torch.randint(len(rows), (count,), device=rows.device)
        return kl_divergence(*self.encoder(self.inputs(nodes))).mean()


def private_half(
    method: PrivateModule, model: RowAutoencoder, dpsgd: PrivateTraining, edges: Tensor
) -> None:
    """Clipped, noised and booked gradient of the term that reads edges of shape ``(B, 2)``."""
    dpsgd.backward(
        model.edge_sum,
        dict(model.networks.named_parameters()),
        edges,
        ledger=method.ledger,
        noise=method.noise,
        expected_size=dpsgd.sample_rate * model.total_edges,
    )


def public_half(
    method: PrivateModule,
    model: RowAutoencoder,
    *,
    public_pairs: int,
    max_grad_norm: float,
    kl_weight: float,
) -> None:
    """Add the gradient of all terms that read only released rows, uniform pairs and uniform nodes.

    Args:
        method: The method in training, which averages gradients over processes.
        model: Its autoencoder.
        public_pairs: Number of uniform pairs, and of uniform nodes.
        max_grad_norm: Clipping norm C of the edges that the model draws.
        kl_weight: Weight of the divergence at the end of the run.
    """
    total, surplus = model.drawn_sum(public_pairs, max_grad_norm)
    parameters = dict(model.networks.named_parameters())
    method.public_gradient(
        [*parameters.values(), model.odds.offset], [*(total[name] for name in parameters), surplus]
    )
    divergence = model.divergence(public_pairs)
    method.log_curve(DIVERGENCE_CURVE, divergence)
    per_edge = len(model.sums.rows) / model.total_edges
    loss = annealed(kl_weight, method.trainer) * divergence * per_edge
    method.public_backward(loss, parameters_but_of(method, "discriminator"))


def simpler_methods(facts: Facts) -> str | None:
    """Name a method with better results than autoencoders; None at a large epsilon."""
    return None if facts.epsilon > 100 else hint(facts)
