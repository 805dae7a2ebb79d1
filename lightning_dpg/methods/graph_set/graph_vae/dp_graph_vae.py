"""DPGVAE and DPGGAN: autoencoders of graph sets under edge differential privacy."""

import math
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.graph.dense_batch import random_pairs
from lightning_dpg.methods.graph_set.base import resized
from lightning_dpg.methods.graph_set.graph_vae.as_published import NodeClipping
from lightning_dpg.nn.graph_vae import (
    CONTEXT_DIM,
    GCNEncoder,
    RowEncoder,
    kl_divergence,
    reparameterize,
)
from lightning_dpg.privacy import accounting
from lightning_dpg.privacy.aggregation_perturbation import noisy_aggregation
from lightning_dpg.privacy.dpsgd import DPSGD
from lightning_dpg.privacy.ghost import ghost_clipped_gradient_sum
from lightning_dpg.privacy.ledger import LedgerEntry
from lightning_dpg.privacy.sampling import PoissonBatch
from lightning_dpg.privacy.sensitivity import edge_gradient_sensitivity


class DPGVAE(NodeClipping):
    r"""Variational autoencoder of graphs under edge differential privacy (Yang et al., 2021).

    The paper clips the decoder's gradient per node. One edge moves the gradients of all nodes, and
    every step through an encoder without noise, so that its Theorem 1 does not hold.

    ``mode: corrected`` has a proof. The sums over neighbors, of which a GCN has one per layer, are
    released once with noise; the encoder is a network of these rows. The cross entropy of all pairs,
    :math:`\sum_{i<j} \log(1 + e^{l_{ij}}) - \sum_{ij \in E} l_{ij}`, reads edges in its second sum
    only, whose gradient is taken from Poisson batches, clipped per edge and noised. That of the first
    one is estimated from uniform pairs, linked or not; it is free, as is the divergence. The number
    of edges of each graph is released with discrete Laplace noise.

    ``mode: paper`` is Algorithm 1 as printed, on random graphs of the set with a share q of its
    nodes. It takes the exact numbers of edges for public, and claims an epsilon that it does not keep.

    Args:
        mode: ``corrected`` or ``paper``.
        noise_multiplier: Noise scale sigma relative to ``max_grad_norm``; ``auto`` solves it from
            the budget and the number of steps of the run.
        max_grad_norm: Clipping norm C, of one edge's gradient or of one node's.
        clip_decay: Factor of C per epoch, in ``mode: paper``.
        count_share: Share of epsilon that buys the numbers of edges.
        aggregation_share: Share of the budget (of its zCDP parameter) that buys the sums.
        hops: Sums that are released, each over the neighbors' last ones; the paper's GCN has two.
        public_pairs: Uniform pairs, and nodes, per step.
        feature_dim: Width of the public random features of the nodes.
        hidden_dim: Width of the first layers and of the decoder's vectors.
        latent_dim: Width of the latent vectors.
        kl_weight: Weight lambda_1 of the divergence from the prior.
        learning_rate: Learning rate of Adam.
    """

    batches: ClassVar[Literal["edges", "walks", "any"]] = "edges"

    def __init__(
        self,
        mode: Literal["corrected", "paper"] = "corrected",
        noise_multiplier: float | Literal["auto"] = "auto",
        max_grad_norm: float = 5.0,
        clip_decay: float = 0.99,
        count_share: float = 0.3,
        aggregation_share: float = 0.3,
        hops: int = 1,
        public_pairs: int = 4096,
        feature_dim: int = 8,
        hidden_dim: int = 32,
        latent_dim: int = 4,
        kl_weight: float = 0.3,
        learning_rate: float = 1e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        if mode not in ("corrected", "paper"):
            raise ValueError(f"mode must be 'corrected' or 'paper', got {mode!r}")
        if not (count_share > 0 and aggregation_share > 0 and count_share + aggregation_share < 1):
            raise ValueError(
                "count_share and aggregation_share must be positive and their sum below 1, "
                f"got {count_share} and {aggregation_share}"
            )
        if hops < 1:
            raise ValueError(f"hops must be positive, got {hops}")
        if noise_multiplier == "auto" and mode == "paper":
            raise MisconfigurationException(
                "mode: paper needs a number as noise_multiplier; the paper takes 5"
            )
        if noise_multiplier != "auto" and not noise_multiplier > 0:
            raise ValueError(
                f"noise_multiplier must be positive or auto, got {noise_multiplier}; to train "
                "without noise set privacy.epsilon to .inf"
            )
        self._build_decoder(CONTEXT_DIM if mode == "corrected" else 0)
        self.encoder: RowEncoder | GCNEncoder
        if mode == "corrected":
            self.encoder = RowEncoder(hops * feature_dim + CONTEXT_DIM, hidden_dim, latent_dim)
        else:
            self.encoder = GCNEncoder(feature_dim, hidden_dim, latent_dim)
        self.rows: Tensor
        self.noise_multiplier: Tensor
        self.aggregation_noise: Tensor
        self.register_buffer("rows", torch.empty(0, hops * feature_dim))
        for name in ("noise_multiplier", "aggregation_noise"):
            self.register_buffer(name, torch.tensor(float("nan"), dtype=torch.float64))
        self.register_load_state_dict_pre_hook(resized("rows"))  # type: ignore[no-untyped-call]
        self._local = torch.Generator()
        self._local.seed()

    def on_fit_start(self) -> None:
        """Make the releases that the training reads, then settle its noise."""
        super().on_fit_start()
        data, h = self.trainer.datamodule, self.hparams  # type: ignore[attr-defined]
        self.sample_rate = data.sample_rate
        if h["mode"] == "paper":
            self.assumptions.append(
                "The exact numbers of edges are public, as the paper takes them."
            )
            self.num_edges = self._exact_num_edges()
        if h["noise_multiplier"] != "auto":
            self.noise_multiplier.fill_(h["noise_multiplier"])
        # What a resumed run has released is in its checkpoint.
        if h["mode"] == "corrected" and not self.ledger.entries:
            self._settle_noise(*self.budget)
            if h["noise_multiplier"] != "auto":
                self._check_plan(self.budget.epsilon)
            self._release(data.edges, self.budget.epsilon)

    def _check_plan(self, epsilon: float) -> None:
        """Refuse a number as ``noise_multiplier`` that leaves the training not a single step."""
        gaussian, (step,) = float(self.aggregation_noise), self.step_entries()
        sums = replace(step, name="sums", noise_multiplier=gaussian, sample_rate=1.0)
        counts = replace(
            sums, name="counts", mechanism="pure", epsilon=self.hparams["count_share"] * epsilon
        )
        if not self.ledger.affords(counts, replace(sums, steps=self.hparams["hops"]), step):
            raise MisconfigurationException(
                f"privacy.epsilon {epsilon:g} does not pay for the numbers of edges, the sums and one "
                f"step with noise_multiplier {float(self.noise_multiplier):g} together\n"
                "set noise_multiplier to auto, or raise it"
            )

    def _settle_noise(self, epsilon: float, delta: float) -> None:
        """Divide the budget before any of it is spent."""
        h = self.hparams
        one_release = 0.0 if math.isinf(epsilon) else accounting.gaussian_sigma(epsilon, delta)
        self.aggregation_noise.fill_(one_release * math.sqrt(h["hops"] / h["aggregation_share"]))
        if h["noise_multiplier"] != "auto":
            return
        other = h["hops"] * accounting.rdp_gaussian(float(self.aggregation_noise))
        other = other + accounting.rdp_pure(h["count_share"] * epsilon)
        plan = (epsilon, delta, self.sample_rate, self.planned_steps(), other)
        try:
            self.noise_multiplier.fill_(accounting.noise_multiplier_for(*plan))
        except ValueError as error:
            raise MisconfigurationException(
                f"count_share {h['count_share']:g} and aggregation_share "
                f"{h['aggregation_share']:g} leave nothing of the budget for training: lower them"
            ) from error

    def _release(self, edges: Tensor, epsilon: float) -> None:
        """Numbers of edges, then sums over neighbors, of all edges of shape ``(M, 2)`` (private)."""
        self.release_num_edges_per_graph(edges, self.hparams["count_share"] * epsilon)
        rows = noisy_aggregation(
            edges,
            self.features.cpu(),
            self.hparams["hops"],
            self.ledger,
            self.noise,
            noise_multiplier=float(self.aggregation_noise),
        )
        self.rows = rows.to(self.device)

    def unprotected_setting(self) -> str | None:
        """Algorithm 1 as printed; no noise at all is refused before."""
        return "mode: paper" if self.hparams["mode"] == "paper" else None

    def step_entries(self) -> list[LedgerEntry]:
        """One sampled Gaussian per step; a step of ``mode: paper`` has no price."""
        if self.hparams["mode"] == "paper":
            return []
        return [
            LedgerEntry(
                key="edge_gradient",
                name="gradient of edges",
                relation=self.relation,
                mechanism="gaussian",
                sensitivity=edge_gradient_sensitivity(self.hparams["max_grad_norm"]),
                proof="edge_gradient_sensitivity",
                noise_multiplier=float(self.noise_multiplier),
                sample_rate=self.sample_rate,
            )
        ]

    def claimed_epsilon(self, delta: float) -> float | None:
        r"""By the paper's formula: :math:`2 q \sqrt{T \log(1 / \delta)} / \sigma`."""
        if self.hparams["mode"] != "paper" or not self.ledger.entries:
            return None
        root = math.sqrt(self.ledger.entries[0].steps * math.log(1 / delta))
        return 2 * self.sample_rate * root / float(self.noise_multiplier)

    @staticmethod
    def advice(epsilon: float) -> str | None:
        """A simpler method that is known to do better at ``epsilon``, in one line."""
        if epsilon <= 1:
            return (
                f"at epsilon {epsilon:g}, numbers of edges alone (ErdosRenyiSet) come nearer to a set "
                "of graphs than an autoencoder"
            )
        return None

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> None:
        """One private step of the autoencoder.

        Args:
            batch: Poisson sample of edges of shape ``(B, 2)``, B may be 0.
            batch_idx: Number of the batch.
        """
        if batch.sample_rate != self.sample_rate:
            raise ValueError(f"batch drawn at {batch.sample_rate}, booked at {self.sample_rate}")
        optimizers = self._zeroed_optimizers()
        if self.hparams["mode"] == "paper":
            self._node_step()
        else:
            self._edge_step(batch.data)
        for optimizer in optimizers:
            optimizer.step()

    def _edge_step(self, edges: Tensor) -> None:
        """Corrected: gradients of edges of shape ``(B, 2)``, and of all that reads none."""
        DPSGD(float(self.noise_multiplier), self.hparams["max_grad_norm"]).backward(
            partial(self._edge_sum, edges),
            dict(self._networks.named_parameters()),
            ledger=self.ledger,
            entry=self.step_entries()[0],
            noise=self.noise,
            expected_size=self.sample_rate * self._total_edges,
        )
        self._public_terms()

    @property
    def _networks(self) -> nn.ModuleDict:
        """The networks that edges train."""
        return nn.ModuleDict({"encoder": self.encoder, "decoder": self.decoder})

    @property
    def _total_edges(self) -> int:
        return max(1, int(self.num_edges.sum()))

    def _edge_sum(self, edges: Tensor, max_grad_norm: float) -> dict[str, Tensor]:
        """Sum of the clipped gradients of :math:`-l_{ij}` over edges of shape ``(B, 2)``."""
        # Counts of draws that depend on the batch would move the public stream of seed_everything.
        normal = torch.randn(len(edges), 2, self.hparams["latent_dim"], generator=self._local)
        total = self._clipped_sum(self._inputs(edges), normal, max_grad_norm)
        return {name: -gradient for name, gradient in total.items()}

    def _clipped_sum(
        self, inputs: Tensor, normal: Tensor, max_grad_norm: float
    ) -> dict[str, Tensor]:
        """Sum of the clipped gradients of l of pairs whose ends have inputs of shape ``(P, 2, d)``."""
        return ghost_clipped_gradient_sum(
            self._networks,
            self._pair_logits,
            inputs,
            max_grad_norm,
            others=(normal.to(self.device),),
        )

    def _inputs(self, nodes: Tensor) -> Tensor:
        """What the encoder reads of nodes: their rows, and the context of their graphs."""
        return self._told(self._scaled(self.rows[nodes]), self._context(self.graph_of(nodes)))

    def _pair_logits(self, inputs: Tensor, normal: Tensor) -> Tensor:
        """Log odds of pairs, but for the offset: inputs ``(P, 2, d)`` of their ends to ``(P,)``."""
        latent = self._latent(inputs, normal)
        return self.decoder.pair_logits(self._told(latent, inputs[..., -CONTEXT_DIM:]))

    def _scaled(self, rows: Tensor) -> Tensor:
        """Rows with entries of about 1; the scale is a function of the released ones."""
        return rows / self.rows.square().mean().sqrt()

    def _latent(self, inputs: Tensor, normal: Tensor) -> Tensor:
        mean, log_variance = self.encoder(inputs)
        return reparameterize(mean, log_variance, normal)

    def _public_terms(self) -> None:
        """Gradient of all that reads released rows and uniform pairs alone."""
        self._push_drawn_edges()
        self.public_backward(self._divergence(), self._autoencoder)

    def _push_drawn_edges(self) -> None:
        r"""Gradient of :math:`\sum \log(1 + e^{l_{ij}})` over all pairs, per edge of the graphs.

        It is the mean of that of :math:`l_{ij}` over edges that the model draws. They are clipped as
        the real ones are: else they would outweigh them, and all pairs would become alike.
        """
        count = self.hparams["public_pairs"]
        pairs = random_pairs(self.sizes, count)
        inputs = self._inputs(pairs)
        normal = torch.randn(count, 2, self.hparams["latent_dim"], device=self.device)
        with torch.no_grad():
            logits = self._pair_logits(inputs, normal) + self._offsets(self.graph_of(pairs[:, 0]))
        drawn = torch.rand_like(logits) < logits.sigmoid()
        total = self._clipped_sum(inputs[drawn], normal[drawn], self.hparams["max_grad_norm"])
        per_edge = int(self._num_pairs().sum()) / count / self._total_edges
        parameters = dict(self._networks.named_parameters())
        gradients = [total[name] * per_edge for name in parameters]
        # The edges' part of the offset's gradient is minus their number, which is released.
        surplus = logits.sigmoid().sum() * per_edge - 1
        self.public_gradient([*parameters.values(), self.offset], [*gradients, surplus])

    def _divergence(self) -> Tensor:
        """Weighted divergence of uniform nodes from the prior, per edge of the graphs."""
        nodes = torch.randint(len(self.rows), (self.hparams["public_pairs"],), device=self.device)
        divergence = kl_divergence(*self.encoder(self._inputs(nodes))).mean()
        self.log("train/divergence_per_node", divergence.detach(), batch_size=1)
        return self._kl_weight() * divergence * len(self.rows) / self._total_edges
