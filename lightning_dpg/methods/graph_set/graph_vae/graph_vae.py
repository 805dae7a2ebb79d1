"""GVAE and GGAN: autoencoders of graphs without privacy, one model for a whole set."""

import math
from typing import Any, ClassVar

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, normalize
from torch.optim import Adam, Optimizer

from lightning_dpg.graph.dense_batch import DenseBatch, dense_adjacency, dense_batch
from lightning_dpg.graph.pair_indices import num_pairs, numbered_pairs
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.nn.graph_vae import (
    CONTEXT_DIM,
    GCNEncoder,
    GCNReadout,
    PairDecoder,
    density_logits,
    discriminator_head,
    discriminator_loss,
    generator_loss,
    graph_context,
    kl_divergence,
    reparameterize,
    sample_adjacency,
    sample_prior,
    structure_loss,
)

MAX_ENTRIES = 2**26
"""Largest number of entries of the dense blocks of one step: 256 MB each."""
_ALIKE = 0.9
"""Entry of all features that is the same for all nodes, so that sums of them tell degrees."""


class GraphVAE(GraphSetSynthesizer):
    r"""What the autoencoders share: the decoder, and graphs drawn with it from the prior.

    The log odds of a pair are :math:`f(z_i, g)^\top f(z_j, g) + c + c_g`, where g tells the size and
    the released density of the graph, :math:`c_g` are the log odds of the density, and c is trained.
    The offsets let inner products, whose mean is never negative, describe sparse graphs. They do not
    change how a graph with a given number of edges is drawn, and their gradient reads nothing but
    the released numbers of edges.

    Subclasses name the hyperparameters.
    """

    decoder: PairDecoder
    discriminator: nn.ModuleDict
    features: Tensor

    def _build_decoder(self, context_dim: int = CONTEXT_DIM) -> None:
        self._context_dim = context_dim
        width = self.hparams["latent_dim"] + context_dim
        self.decoder = PairDecoder(width, self.hparams["hidden_dim"])
        self.offset = nn.Parameter(torch.zeros(()))

    def on_fit_start(self) -> None:
        """Take over sizes and features: public random rows, equally long."""
        super().on_fit_start()
        self.features = public_features(int(self.sizes.sum()), self.hparams["feature_dim"]).to(
            self.device
        )

    def configure_optimizers(self) -> list[Optimizer]:
        """Adam for the autoencoder, and one more for a discriminator."""
        optimizers: list[Optimizer] = [Adam(self._autoencoder, self.hparams["learning_rate"])]
        if hasattr(self, "discriminator"):
            parameters = self.discriminator.parameters()
            optimizers.append(Adam(parameters, self.hparams["learning_rate"]))
        return optimizers

    @property
    def _autoencoder(self) -> list[nn.Parameter]:
        """All parameters but those of the discriminator."""
        return [p for name, p in self.named_parameters() if not name.startswith("discriminator")]

    def _kl_weight(self) -> float:
        """Weight of the divergence, which rises from 0 in the first half of the run.

        From the start on, it would be cheapest to let the latent vectors say nothing.
        """
        steps = self.trainer.global_step / len(self.trainer.optimizers)
        share = 2 * steps / self.trainer.estimated_stepping_batches
        return float(self.hparams["kl_weight"]) * min(1.0, share)

    def _logits(self, latent: Tensor, graphs: Tensor) -> Tensor:
        """Log odds of all pairs of graphs with the numbers ``(B,)``: ``(B, n, k)`` to ``(B, n, n)``."""
        told = self._told(latent, self._context(graphs)[:, None])
        return self.decoder.logits(told) + self._offsets(graphs)[:, None, None]

    def _told(self, latent: Tensor, context: Tensor) -> Tensor:
        """Latent vectors, or features, together with what is known of their graphs."""
        context = context[..., : self._context_dim].to(latent)
        return torch.cat([latent, context.expand(*latent.shape[:-1], -1)], -1)

    def _context(self, graphs: Tensor) -> Tensor:
        """Size and released density of graphs: numbers ``(...)`` to ``(..., CONTEXT_DIM)``."""
        # Looked up: a logarithm's last digit may depend on where in a batch it is taken.
        return graph_context(self.sizes, self.num_edges)[graphs]

    def _offsets(self, graphs: Tensor) -> Tensor:
        """Log odds of any pair of graphs with the numbers ``(...)``."""
        return self.offset + density_logits(self.sizes[graphs], self.num_edges[graphs])

    def _prior(self, blocks: DenseBatch) -> Tensor:
        """Latent vectors of the prior, shape ``(B, n, k)``."""
        return torch.randn(*blocks.nodes.shape, self.hparams["latent_dim"], device=self.device)

    def _random_blocks(self) -> DenseBatch:
        """Blocks of different graphs, as large a share of the set as a batch is of the edges."""
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        count = math.ceil(len(self.sizes) * data.sample_rate / self.trainer.world_size)
        graphs = torch.randperm(len(self.sizes), device=self.device)[:count]
        largest = int(self.sizes[graphs].max())
        if count * largest**2 > MAX_ENTRIES:
            raise MisconfigurationException(
                f"{count} graphs of up to {largest} nodes do not fit into dense blocks\n"
                "set data.init_args.sample_rate lower, or leave out the largest graphs"
            )
        return dense_batch(self.sizes, graphs)

    def _adjacency(self, blocks: DenseBatch) -> Tensor:
        """Adjacency matrices of shape ``(B, n, n)`` (private)."""
        edges = self.trainer.datamodule.edges  # type: ignore[attr-defined]
        return dense_adjacency(edges.to(self.device), self.sizes, blocks)

    def _exact_num_edges(self) -> Tensor:
        """Number of edges of each graph (private), shape ``(G,)``."""
        edges = self.trainer.datamodule.edges  # type: ignore[attr-defined]
        return torch.bincount(self.graph_of(edges[:, 0].to(self.device)), minlength=len(self.sizes))

    def _zeroed_optimizers(self) -> list[Any]:
        optimizers = self.optimizers()
        optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
        for optimizer in optimizers:
            optimizer.zero_grad()
        return optimizers

    @torch.no_grad()
    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        r"""Draw latent vectors from the prior, and then edges by their log odds.

        Without a number of edges half of the pairs are taken to be linked. Of independent pairs given
        how many are linked, Pareto sampling is an approximation that is close in all but the smallest
        graphs (Rosen, "On sampling with probability proportional to size", 1997).
        """
        count = num_pairs(size) // 2 if num_edges is None else num_edges
        context = graph_context(torch.tensor(size), torch.tensor(count))
        latent = sample_prior(size, self.hparams["latent_dim"], generator).to(self.device)
        logits = self.decoder.logits(self._told(latent, context)).cpu()
        odds = logits[torch.ones_like(logits, dtype=torch.bool).triu_(1)]
        rings = torch.logit(torch.rand(num_pairs(size), generator=generator), eps=1e-7) - odds
        if num_edges is None:
            chosen = torch.nonzero(rings < float(self.offset)).flatten()
        else:
            chosen = torch.topk(rings, num_edges, largest=False).indices.sort().values
        return numbered_pairs(chosen, size)

    def released_state(self) -> dict[str, Tensor]:
        """The decoder, and sizes and numbers of edges of the graphs."""
        state = self.state_dict()
        kept = ("decoder.", "offset", "sizes", "num_edges")
        return {name: tensor for name, tensor in state.items() if name.startswith(kept)}


class GVAE(GraphVAE):
    """Variational autoencoder of graphs without privacy (Kipf and Welling, 2016; Yang et al., 2021).

    One model learns the whole set, while the paper trains one for each graph. Synthetic graphs come
    from the prior through the decoder and know nothing of the input but numbers of edges and what
    the weights have learned.

    Args:
        feature_dim: Width of the public features of the nodes.
        hidden_dim: Width of the first layers and of the decoder's vectors.
        latent_dim: Width of the latent vectors.
        kl_weight: Weight of the divergence from the prior.
        learning_rate: Learning rate of Adam.
    """

    adds_noise: ClassVar[bool] = False

    def __init__(
        self,
        feature_dim: int = 32,
        hidden_dim: int = 32,
        latent_dim: int = 2,
        kl_weight: float = 0.3,
        learning_rate: float = 1e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self._build_decoder()
        self.encoder = GCNEncoder(feature_dim + CONTEXT_DIM, hidden_dim, latent_dim)

    def on_fit_start(self) -> None:
        """Book the training, which protects nothing; take the exact numbers of edges."""
        super().on_fit_start()
        if not self.ledger.entries:
            why = f"{type(self).__name__} adds no noise"
            self.ledger.spend(self.unprotected("training", why))
        self.num_edges = self._exact_num_edges()

    def training_step(self, batch: Any, batch_idx: int) -> None:
        """One step on some graphs; the edges of the batch are not needed."""
        (optimizer,) = self._zeroed_optimizers()
        blocks = self._random_blocks()
        loss, _ = self._evidence_bound(blocks, self._adjacency(blocks))
        self.public_backward(loss / blocks.mask.sum(), self._autoencoder)
        optimizer.step()

    def _evidence_bound(self, blocks: DenseBatch, adjacency: Tensor) -> tuple[Tensor, Tensor]:
        """Negative evidence lower bound, Eq. (4), and the log odds of the reconstruction."""
        features = self._told(self.features[blocks.nodes], self._context(blocks.graphs)[:, None])
        mean, log_variance = self.encoder(features, adjacency)
        latent = reparameterize(mean, log_variance, torch.randn_like(mean))
        logits, pairs = self._logits(latent, blocks.graphs), blocks.pairs
        error = binary_cross_entropy_with_logits(logits[pairs], adjacency[pairs], reduction="sum")
        divergence = kl_divergence(mean, log_variance)[blocks.mask].sum()
        loss = error + self._kl_weight() * divergence
        self.log_dict(
            {
                "nonprivate/error_per_pair": error.detach() / pairs.sum(),
                "nonprivate/divergence_per_node": divergence.detach() / blocks.mask.sum(),
            },
            batch_size=1,
        )
        return loss, logits


class GGAN(GVAE):
    r"""GVAE with a discriminator of whole graphs, without privacy (Yang et al., 2021).

    To the loss of the autoencoder it adds :math:`\|g'(A) - g'(A')\|^2` between a graph and its
    reconstruction, and the loss of a GAN whose fakes are drawn from the prior. The paper has the
    first in place of the cross entropy of the links; alone it does not teach the decoder which pairs
    are linked.

    Args:
        feature_dim: Width of the public features of the nodes.
        hidden_dim: Width of the first layers and of the decoder's vectors.
        latent_dim: Width of the latent vectors.
        kl_weight: Weight lambda_1 of the divergence from the prior.
        gan_weight: Weight lambda_2 of the GAN and of the distance.
        learning_rate: Learning rate of Adam.
    """

    def __init__(
        self,
        feature_dim: int = 32,
        hidden_dim: int = 32,
        latent_dim: int = 2,
        kl_weight: float = 0.3,
        gan_weight: float = 0.1,
        learning_rate: float = 1e-2,
    ) -> None:
        super().__init__(feature_dim, hidden_dim, latent_dim, kl_weight, learning_rate)
        self.save_hyperparameters()
        self.discriminator = nn.ModuleDict(
            {
                "describe": GCNReadout(feature_dim, hidden_dim, latent_dim),
                "judge": discriminator_head(latent_dim, hidden_dim),
            }
        )

    def training_step(self, batch: Any, batch_idx: int) -> None:
        """One step of the autoencoder and one of the discriminator."""
        optimizer, other = self._zeroed_optimizers()
        blocks = self._random_blocks()
        adjacency = self._adjacency(blocks)
        loss, rebuilt = self._evidence_bound(blocks, adjacency)
        fake = self._logits(self._prior(blocks), blocks.graphs)
        rebuilt, fake = (sample_adjacency(logits, blocks.pairs) for logits in (rebuilt, fake))
        distance = structure_loss(*(self._describe(blocks, x) for x in (adjacency, rebuilt)))
        adversarial = distance / blocks.mask.sum() + generator_loss(self._judge(blocks, fake))
        loss = loss / blocks.mask.sum() + self.hparams["gan_weight"] * adversarial
        self.public_backward(loss, self._autoencoder)
        judged = discriminator_loss(
            self._judge(blocks, adjacency), self._judge(blocks, fake.detach())
        )
        self.public_backward(judged, list(self.discriminator.parameters()))
        optimizer.step()
        other.step()

    def _judge(self, blocks: DenseBatch, adjacency: Tensor) -> Tensor:
        """Logits of graphs to be real, shape ``(B, 1)``."""
        judged: Tensor = self.discriminator["judge"](self._describe(blocks, adjacency))
        return judged

    def _describe(self, blocks: DenseBatch, adjacency: Tensor) -> Tensor:
        """Descriptions g' of shape ``(B, latent_dim)``."""
        described: Tensor = self.discriminator["describe"](
            self.features[blocks.nodes], adjacency, blocks.mask
        )
        return described


def public_features(num_nodes: int, width: int) -> Tensor:
    """Rows that are the same in every run, of norm ``sqrt(width)``: ``(num_nodes, width)``.

    Their random part stands for the paper's one-hot features after a first layer that is not trained.

    Args:
        num_nodes: Number of rows.
        width: At least 2.
    """
    rows = torch.randn(num_nodes, width - 1, generator=torch.Generator().manual_seed(0))
    alike = torch.full((num_nodes, 1), _ALIKE)
    rows = torch.cat([alike, math.sqrt(1 - _ALIKE**2) * normalize(rows)], 1)
    return rows * math.sqrt(width)
