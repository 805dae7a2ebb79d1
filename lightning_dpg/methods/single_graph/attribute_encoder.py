r"""AttributeEncoder: links from public node attributes, by a metric learned with DP-SGD.

Gradients of the edge term :math:`\log(1 + e^{-l})` are clipped in closed form: the gradient of the log odds
is :math:`8 (y_i (y_j W)^T + y_j (y_i W)^T)` by W and
:math:`L_i + L_j` by c. Norms and sums follow without a matrix for each edge. With a matrix for each
end the same holds for rows that are filled up with zeros, see :meth:`AttributeLogits.placed`. A
record is one pair of ends in every kind of graph, and its gradient by all parameters together is
clipped: the sensitivity does not depend on the kind.
"""

from dataclasses import replace
from typing import ClassVar, Literal, NamedTuple

import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.optim import Adam
from torch.optim.lr_scheduler import LinearLR
from torch.optim.swa_utils import AveragedModel

from lightning_dpg.graph.expected_degrees import edges_by_degrees
from lightning_dpg.graph.pair_space import Kind
from lightning_dpg.graph.swaps import score_of_images, swap_by_scores
from lightning_dpg.interfaces import ALL_KINDS, AttributedGraphRecords, BatchRequest
from lightning_dpg.methods.base import add_public_gradient, public_backward
from lightning_dpg.methods.constraints import SHARE, Constraints, at_least
from lightning_dpg.methods.planning import by_key
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.methods.single_graph.base import statistics_of
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.nn.attribute_logits import SHARPNESS, AttributeLogits, degree_levels
from lightning_dpg.nn.attribute_rows import (
    AttributeRows,
    common_directions,
    fit_rows,
    rows_of_pairs,
)
from lightning_dpg.nn.resized_buffers import resize_on_loading
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.dpsgd import clip_factor
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.sampling import PoissonBatch
from lightning_dpg.privacy.sensitivity.fitting import edge_gradient_sensitivity

# Sums in chunks keep the rounding error within that of the ordinary clipped sum.
_CHUNK = 1024
# Share of its positive terms by which a squared norm is enlarged, far above its rounding error.
_MARGIN = 1e-12


class _Terms(NamedTuple):
    """Parts of the clipped gradients of some edges, in double precision.

    Attributes:
        ends: Rows y of both ends, filled up with zeros, shape ``(B, 2, sides * r)``.
        images: Rows y W of both ends, shape ``(B, 2, r)``.
        level: Sums of the levels of both ends, shape ``(B,)``.
        factor: Slope of the edge term times the factor of the clipping, shape ``(B,)``.
    """

    ends: Tensor
    images: Tensor
    level: Tensor
    factor: Tensor


def clipped_edge_sum(
    model: AttributeLogits, rows: Tensor, levels: Tensor, max_grad_norm: float
) -> dict[str, Tensor]:
    """Sum the clipped gradients of the edge term, in O(B r^2).

    Args:
        model: Log odds in their state at the step.
        rows: Rows y of both ends of each edge, shape ``(B, 2, r)``; B may be 0.
        levels: Levels of both ends, shape ``(B, 2)``.
        max_grad_norm: Clipping norm C of one edge, over all parameters together.

    Returns:
        Sum by parameter name, in double precision.
    """
    weight = torch.zeros_like(model.weight, dtype=torch.double)
    degree_weight = torch.zeros_like(model.degree_weight, dtype=torch.double)
    for low in range(0, len(rows), _CHUNK):
        part = slice(low, low + _CHUNK)
        terms = _terms(model, rows[part], levels[part], max_grad_norm)
        scaled = SHARPNESS * terms.factor[:, None, None] * terms.images.flip(1)
        weight += terms.ends.flatten(0, 1).T @ scaled.flatten(0, 1)
        degree_weight += terms.factor @ terms.level
    return {"weight": weight, "degree_weight": degree_weight}


def clipped_edge_gradients(
    model: AttributeLogits, rows: Tensor, levels: Tensor, max_grad_norm: float
) -> Tensor:
    """The single clipped gradients, W first: a row for each edge, ``(B, sides * r * r + 1)``."""
    terms = _terms(model, rows, levels, max_grad_norm)
    by_weight = SHARPNESS * torch.einsum("bki,bkj->bij", terms.ends, terms.images.flip(1))
    both = torch.cat([by_weight.flatten(1), terms.level[:, None]], 1)
    return both * terms.factor[:, None]


def _terms(model: AttributeLogits, rows: Tensor, levels: Tensor, max_grad_norm: float) -> _Terms:
    ends, level = model.placed(rows).double(), levels.double().sum(1)
    images = ends @ model.weight.detach().double()
    with torch.no_grad():
        slope = -torch.sigmoid(-model.from_images(images, level))
    ends_product, images_product = ends.prod(1).sum(1), images.prod(1).sum(1)
    ends_squared, images_squared = ends.square().sum(2), images.square().sum(2)
    positive = (ends_squared * images_squared.flip(1)).sum(1)
    crossed = 2 * ends_product * images_product
    # Both sums can cancel; the margin keeps a rounded norm from being too small.
    by_weight = positive + crossed + _MARGIN * (positive + crossed.abs())
    squared = slope.square() * (SHARPNESS**2 * by_weight + level.square())
    scale = clip_factor(squared, max_grad_norm)
    images = torch.where((scale != 0)[:, None, None], images, 0.0)
    return _Terms(ends, images, level, torch.where(scale != 0, slope * scale, 0.0))


# Shares of the cost of the degrees.
DEGREE_SHARES = {"count_share": 0.2, "sequence_share": 0.2}
# Rounds of swaps that link the stubs of a graph.
SWAP_ROUNDS = 200
# Factor of the last learning rate.
LAST_RATE = 0.1
# Pairs whose rows are in memory at a time.
_PAIRS_AT_ONCE = 65_536


class AttributeEncoder(Synthesizer):
    r"""Links from public node attributes: a metric of attributes, learned by DP-SGD on edges.

    1. Maps the attributes of each node to a row y of their principal components, see
       :class:`AttributeRows`. No edge is read.
    2. Releases the number of edges and the degree of each node, see :func:`release_degrees`.
    3. Learns the log odds :math:`l_{ij} = 8 \langle y_i W, y_j W \rangle + c (L_i + L_j) - 6`,
       with L half the logarithm of the released degree, centered. The loss of an edge is
       :math:`\log(1 + e^{-l})`; its gradients are clipped, summed over a Poisson sample, and
       noised. The loss of a uniform pair is :math:`\log(1 + e^l)`; it reads no edge and is free.
    4. Keeps the means of W and c over the second half of the steps.

    A graph has the released degrees. It begins with random edges, whose ends are then swapped in
    favor of high log odds. Its triangles are those that similar attributes make: no number of
    triangles is released.

    In a directed or a bipartite graph each end has a matrix and degrees of its own. The log
    odds are :math:`l_{ij} = 8 \langle y_i U, y_j V \rangle + c (L_i + L_j) - 6`, with the out-degree
    of i and the in-degree of j, or the degrees of both sides. Both matrices start at I. The sides of a
    bipartite graph have components of their own, and V starts at the products of both: the first
    log odds know the cosine in the columns that the sides share. If they share none, ``iterations:
    0`` knows nothing beyond the degrees, and all that links the columns is learned from edges.

    When to use:
        For links, if attributes of the nodes are public and linked nodes have similar attributes.
        It also scores nodes that the graph does not contain, by their attributes. Compare it with
        the attributes alone (``iterations: 0``) and with :class:`AttributeMoments`. Without public
        attributes take :class:`PrivGraph` or :class:`ChungLu`.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge is added or removed; of a
        directed graph one ordered pair, of a bipartite one an edge between the sides. A record has
        one gradient by all parameters together, which is clipped, so the sensitivity is the same.
        The guarantee has no condition; the run stops before the budget is exceeded. The set of
        nodes, the side of each, and the attributes are public. Attributes that were computed from
        edges, such as a degree, must not be among them.

    Cost:
        A step takes time O(q M r^2) on average, and the components take O(N F r) once. Memory is
        O(N F + M), with no limit on N. A graph of M edges takes O(M r) for each round of swaps.

    Differences from the paper:
        There is no paper. The parts are known: DP-SGD on relations with pairs drawn apart from the
        edges, and a metric of attributes.

    * Abadi et al., "Deep Learning with Differential Privacy", 2016.
    * Yin et al., "Privately Learning from Graphs with Applications in Fine-tuning Large Language
      Models", 2024, for pairs that are drawn apart from the edges.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of principal components r.
        iterations: Steps T; 0 learns nothing beyond the degrees.
        noise_multiplier: Noise scale sigma relative to ``max_grad_norm``; ``auto`` solves it from
            the budget and the number of steps.
        max_grad_norm: Clipping norm C of one edge's gradient.
        sample_rate: Probability q that a batch contains an edge.
        degree_share: Share of epsilon for the number of edges and the degrees.
        public_pairs: Uniform pairs of a step.
        learning_rate: First learning rate of Adam; it falls linearly to a tenth.
    """

    capabilities = replace(Synthesizer.capabilities, reads=AttributedGraphRecords, kinds=ALL_KINDS)
    curve_names: ClassVar[tuple[str, ...]] = ("train/pairs_loss",)
    constraints: ClassVar[Constraints] = {
        "iterations": at_least(0),
        "degree_share": SHARE,
        "public_pairs": at_least(1),
    }
    records: AttributedGraphRecords

    def __init__(
        self,
        num_nodes: int | None = None,
        rank: int = 64,
        iterations: int = 200,
        noise_multiplier: float | Literal["auto"] = "auto",
        max_grad_norm: float = 1.0,
        sample_rate: float = 0.1,
        degree_share: float = 0.2,
        public_pairs: int = 2048,
        learning_rate: float = 0.01,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.features = AttributeRows(rank)
        self.right_features: AttributeRows | None
        self.register_module("right_features", None)
        self.model = AttributeLogits(rank)
        self.averaged = AveragedModel(self.model)
        self.dpsgd = PrivateTraining(
            "attribute_gradient",
            "gradient of edges by attributes",
            edge_gradient_sensitivity,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            sample_rate=sample_rate,
        )
        self.rows: Tensor = nn.Buffer(torch.empty(0, rank))
        self.degrees: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.num_edges: Tensor = nn.Buffer(torch.tensor(0))
        resize_on_loading(self, "rows", "degrees")

    def take_kind(self, kind: Kind, num_left: int | None) -> None:
        """Give each end of a pair a matrix, and each side rows of its own, where they differ."""
        super().take_kind(kind, num_left)
        rank, sides = self.hparams["rank"], 1 if kind == "undirected" else 2
        if self.model.sides != sides:
            self.model = AttributeLogits(rank, sides).to(self.device)
            self.averaged = AveragedModel(self.model)
        if (self.right_features is None) == (kind == "bipartite"):
            is_bipartite = kind == "bipartite"
            self.right_features = AttributeRows(rank).to(self.device) if is_bipartite else None
        self.dpsgd.take_record(self.edge_record)

    def batch_request(self) -> BatchRequest:
        """Poisson samples of edges, one for each step of the run."""
        steps = max(1, self.hparams["iterations"])
        return BatchRequest("poisson", self.hparams["sample_rate"], steps_per_epoch=steps)

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the degrees and the steps, whose number is a setting."""
        counts = self._counts(budget)
        if self.dpsgd.is_noiseless(budget):
            return [*counts, self.ledger.unprotected("training", "training", "no noise is added")]
        return [*counts, *self.dpsgd.planned(budget, self.hparams["iterations"], counts)]

    def _counts(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the number of edges and the degrees."""
        part = budget.split(degrees=self.hparams["degree_share"])["degrees"]
        return degree_entries(part, self.edge_record, **DEGREE_SHARES)

    def on_fit_start(self) -> None:
        """Compute the public rows, fix the noise of the steps, then release the degrees."""
        super().on_fit_start()
        is_new = self.dpsgd.begin(self)
        if is_new:
            attributes = self.records.attributes
            self.rows = fit_rows(self.features, self.right_features, attributes, self.num_left)
            if self.right_features is not None:
                self._start_at(common_directions(self.features, self.right_features))
            self._release_degrees()

    @torch.no_grad()
    def _start_at(self, second: Tensor) -> None:
        """Begin with a matrix V of shape ``(r, r)`` (public) for the second end."""
        for logits in (self.model, self.averaged.module):
            assert isinstance(logits, AttributeLogits)
            logits.weight[len(second) :] = second

    def _release_degrees(self) -> None:
        """Release the number of edges and the degrees."""
        source = statistics_of(self.records, self.space)
        reads = by_key(self._counts(self.budget))
        num_edges, degrees = release_degrees(self, source, reads)
        self.num_edges, self.degrees = num_edges.to(self.device), degrees.to(self.device)
        if self.dpsgd.adds_none:
            self.ledger.spend(self.ledger.unprotected("training", "training", "no noise is added"))

    def step_entries(self) -> list[LedgerEntry]:
        """One sampled Gaussian per step; nothing without noise."""
        return [] if self.dpsgd.adds_none else [self.dpsgd.entry]

    def configure_optimizers(self) -> tuple[list[Adam], list[LinearLR]]:
        """Build Adam, with a learning rate that falls linearly to a tenth."""
        optimizer = Adam(self.model.parameters(), self.hparams["learning_rate"])
        steps = max(1, self.hparams["iterations"])
        return [optimizer], [LinearLR(optimizer, 1.0, LAST_RATE, steps)]

    def on_train_batch_start(self, batch: object, batch_idx: int) -> int | None:
        """End the run after its steps, or before a step that the budget does not cover."""
        if self.trainer.global_step >= self.hparams["iterations"]:
            return -1
        return super().on_train_batch_start(batch, batch_idx)

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> None:
        """Take one step.

        Args:
            batch: Poisson sample of records of shape ``(B, 2)``, B may be 0.
            batch_idx: Number of the batch.
        """
        edges = self.dpsgd.drawn(batch).to(self.device)
        optimizer, scheduler = self.optimizers(), self.lr_schedulers()
        assert isinstance(optimizer, LightningOptimizer) and isinstance(scheduler, LinearLR)
        optimizer.zero_grad()
        levels = self._levels()
        self._private_term(edges, levels)
        self._public_term(levels)
        optimizer.step()
        scheduler.step()
        if 2 * self.trainer.global_step > self.hparams["iterations"]:
            self.averaged.update_parameters(self.model)

    def _levels(self) -> Tensor:
        """Levels of all entries of the degree vector, shape ``(num_ends,)``."""
        return degree_levels(self.degrees, [part.start for part in self.space.parts])

    def _private_term(self, edges: Tensor, levels: Tensor) -> None:
        """Clipped, noised and booked gradient of the term of the edges ``(B, 2)``."""

        def clipped_sum(edges: Tensor, max_grad_norm: float) -> dict[str, Tensor]:
            ends = levels[self.space.ends(edges)]
            return clipped_edge_sum(self.model, self.rows[edges], ends, max_grad_norm)

        parameters = dict(self.model.named_parameters())
        expected = self.dpsgd.sample_rate * max(1, int(self.num_edges))
        if not self.dpsgd.adds_none:
            self.dpsgd.backward(
                clipped_sum,
                parameters,
                edges,
                ledger=self.ledger,
                noise=self.noise,
                expected_size=expected,
            )
            return
        sums = clipped_sum(edges, self.dpsgd.max_grad_norm)
        share = self.trainer.world_size / expected
        add_public_gradient(
            self, list(parameters.values()), [sums[name] * share for name in parameters]
        )

    def _public_term(self, levels: Tensor) -> None:
        """Gradient of the term of uniform pairs, which reads no record."""
        pairs = self._uniform_pairs(self.hparams["public_pairs"])
        loss = softplus(self.model(self.rows[pairs], levels[self.space.ends(pairs)])).mean()
        public_backward(self, loss, list(self.model.parameters()))
        self.log_curve("train/pairs_loss", loss)

    def _uniform_pairs(self, count: int) -> Tensor:
        """Draw pairs that may be linked, shape ``(count, 2)``."""
        num_nodes = self.hparams["num_nodes"]
        if self.kind == "bipartite":
            return self.space.pairs(torch.randint(self.space.num_pairs, (count,)).to(self.device))
        first = torch.randint(num_nodes, (count,), device=self.device)
        further = torch.randint(max(1, num_nodes - 1), first.shape, device=self.device)
        return torch.stack([first, (first + 1 + further) % num_nodes], 1)

    @torch.no_grad()
    def score(self, pairs: Tensor) -> Tensor:
        """Log odds of pairs of shape ``(P, 2)``: shape ``(P,)``."""
        levels, ends = self._levels(), self.space.ends
        parts = torch.split(pairs.to(self.rows.device), _PAIRS_AT_ONCE)
        return torch.cat([self.averaged(self.rows[part], levels[ends(part)]) for part in parts])

    @torch.no_grad()
    def score_attributes(self, first: Tensor, second: Tensor) -> Tensor:
        """Log odds of pairs of new nodes of mean degree levels, by their attributes alone.

        Args:
            first: Attributes of the first nodes, shape ``(P, F)``: senders, or left nodes.
            second: Attributes of the second nodes, shape ``(P, F)``.

        Returns:
            Log odds of shape ``(P,)``.
        """
        rows = rows_of_pairs(self.features, self.right_features, first, second)
        return self.averaged(rows, torch.zeros_like(rows[..., 0]))

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw a graph of the released degrees, then swap ends in favor of high log odds."""
        space, rank = self.space, self.hparams["rank"]
        start = edges_by_degrees(space, self.degrees.cpu(), int(self.num_edges), generator)
        logits = self.averaged.module
        assert isinstance(logits, AttributeLogits)
        rows, weight = self.rows.cpu(), logits.weight.detach().cpu()
        # The levels of the degrees cancel in each swap, since they belong to one end.
        score = score_of_images(rows @ weight[:rank], rows @ weight[-rank:], SHARPNESS)
        return swap_by_scores(start, space.num_nodes, score, SWAP_ROUNDS, generator, space=space)

    def released_state(self) -> dict[str, Tensor]:
        """The means of W and c, the degrees, and the public rows with their components."""
        shown = ("averaged.", "features.", "right_features.", "rows", "degrees", "num_edges")
        return {name: value for name, value in self.state_dict().items() if name.startswith(shown)}
