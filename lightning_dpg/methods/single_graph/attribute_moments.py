"""AttributeMoments: links from public node attributes, by one noisy moment over the edges."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from lightning_dpg.graph.edge_statistics import (
    GraphStatisticsSource,
    as_matrix,
    as_vector,
    bilinear_form,
    edge_moment,
)
from lightning_dpg.graph.expected_degrees import edges_by_degrees
from lightning_dpg.graph.pair_space import Kind, PairSpace
from lightning_dpg.graph.swaps import score_of_images, swap_by_scores
from lightning_dpg.interfaces import ALL_KINDS, AttributedGraphRecords
from lightning_dpg.methods.constraints import SHARE, Constraints, at_least, either
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.attribute_encoder import DEGREE_SHARES, SWAP_ROUNDS
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer, noisy_num_edges
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.methods.single_graph.max_degree import (
    MAX_DEGREE,
    degree_assumption,
    degree_condition,
)
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.nn.attribute_rows import AttributeRows, fit_rows, rows_of_pairs
from lightning_dpg.nn.resized_buffers import resize_on_loading
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.sensitivity.matrix_products import node_edge_count_sensitivity
from lightning_dpg.privacy.sensitivity.neighbor_sums import (
    edge_moment_sensitivity,
    node_moment_sensitivity,
)

RIDGE = 30.0
"""Ridge of the regression, tuned on Citeseer."""
_PAIRS_AT_ONCE = 65_536


class MomentScores(nn.Module):
    r"""Scores :math:`y_i^T W y_j` of pairs, with weights W from the released moment of the edges.

    Attributes:
        rows: Public rows y of all nodes, shape ``(N, r)``.
        form: Released weights W, shape ``(r, r)``.
        features: Map from attributes to rows, of all nodes or of the left ones.
        right_features: Map of the right nodes of a bipartite graph.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kind: Kind = "undirected"
        self.num_left: int | None = None
        self.features = AttributeRows(1)  # fitted to the rank that the budget affords
        self.right_features: AttributeRows | None
        self.register_module("right_features", None)
        self.rows: Tensor = nn.Buffer(torch.empty(0, 0))
        self.form: Tensor = nn.Buffer(torch.empty(0, 0, dtype=torch.double))
        resize_on_loading(self, "rows", "form")

    def take_kind(self, kind: Kind, num_left: int | None) -> None:
        """Give each side of a bipartite graph rows of its own."""
        self.kind, self.num_left = kind, num_left
        if (self.right_features is None) == (kind == "bipartite"):
            self.right_features = AttributeRows(1) if kind == "bipartite" else None

    @property
    def _is_two_sided(self) -> bool:
        return self.kind != "undirected"

    def fit(self, attributes: Tensor, rank: int) -> None:
        """Compute the public rows; no edge is read.

        Args:
            attributes: Attributes of shape ``(N, F)`` (public).
            rank: Number of components r.
        """
        device = self.rows.device
        self.features = AttributeRows(rank).to(device)
        if self.right_features is not None:
            self.right_features = AttributeRows(rank).to(device)
        self.rows = fit_rows(self.features, self.right_features, attributes, self.num_left)

    def release(self, edges: Tensor, read: LedgerEntry, method: Synthesizer) -> None:
        """Release the moment, and keep the weights.

        Args:
            edges: Training records of shape ``(M, 2)`` (private).
            read: Planned read of the moment.
            method: The method, which pays.
        """
        rows = self.rows.cpu().double()
        rows = rows / rows.norm(dim=1, keepdim=True).clamp(min=1.0)  # at most 1 long in doubles
        moment = edge_moment(edges, rows, two_sided=self._is_two_sided)
        noisy = method.pay(read, moment.flatten() if self._is_two_sided else as_vector(moment))
        if not self._is_two_sided:
            self.form = bilinear_form(as_matrix(noisy), rows, RIDGE)
            return
        start = self.num_left or 0  # of a directed graph all nodes are both
        first, second = rows[: self.num_left], rows[start:]
        self.form = bilinear_form(noisy.view_as(moment), first, RIDGE, second)

    def forward(self, pairs: Tensor) -> Tensor:
        """Score pairs of shape ``(P, 2)``: shape ``(P,)``."""
        parts = torch.split(pairs.to(self.rows.device), _PAIRS_AT_ONCE)
        return torch.cat([self._form_of(self.rows[part]) for part in parts])

    def of_attributes(self, first: Tensor, second: Tensor) -> Tensor:
        """Score pairs of new nodes with attributes of shape ``(P, F)`` each: shape ``(P,)``."""
        return self._form_of(rows_of_pairs(self.features, self.right_features, first, second))

    def _form_of(self, rows: Tensor) -> Tensor:
        first, second = rows.double().unbind(1)
        return ((first @ self.form) * second).sum(1)

    def sample_edges(
        self, space: PairSpace, degrees: Tensor, num_edges: int, generator: torch.Generator
    ) -> Tensor:
        """Draw a graph of given degrees, then swap ends in favor of high scores.

        Args:
            space: Pairs that may be linked.
            degrees: Degree vector, see :attr:`PairSpace.parts`.
            num_edges: Number of edges.
            generator: Source of the draws.

        Returns:
            Edges of shape ``(num_edges, 2)``.
        """
        start = edges_by_degrees(space, degrees, num_edges, generator)
        density = max(1, num_edges) / max(1, space.num_pairs)
        # The symmetric moment estimates half the entry of the adjacency matrix.
        scale = 1 if self._is_two_sided else 2
        rows = self.rows.cpu().double()
        images = rows @ self.form.cpu()
        score = score_of_images(images.float(), rows.float(), scale)  # in half the time

        def log_odds(pairs: Tensor) -> Tensor:
            # Where a score is below a random pair's, the noise is larger than the estimate.
            return score(pairs).clamp(min=density).log()

        return swap_by_scores(start, space.num_nodes, log_odds, SWAP_ROUNDS, generator, space=space)


_RANK = 64
# Below an epsilon of 1, fewer components carry less noise.
_SMALL_RANK = 32

MOMENT_SETTINGS: Constraints = {"rank": either(None, at_least(1)), "degree_share": SHARE}


class MomentLinks(OneShotSynthesizer):
    """Links by the scores of a released moment; a subclass plans its reads, and has the degrees.

    Attributes:
        scores: Scores of pairs.
    """

    capabilities = replace(
        OneShotSynthesizer.capabilities, reads=AttributedGraphRecords, is_pure=False
    )
    records: AttributedGraphRecords
    scores: MomentScores

    def score(self, pairs: Tensor) -> Tensor:
        """Score pairs of shape ``(P, 2)``: shape ``(P,)``."""
        scores: Tensor = self.scores(pairs)
        return scores

    def score_attributes(self, first: Tensor, second: Tensor) -> Tensor:
        """Score pairs of new nodes by their attributes.

        Args:
            first: Attributes of the first nodes, shape ``(P, F)``: senders, or left nodes.
            second: Attributes of the second nodes, shape ``(P, F)``.

        Returns:
            Scores of shape ``(P,)``.
        """
        return self.scores.of_attributes(first, second)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw a graph of the released degrees, then swap ends in favor of high scores."""
        return self.scores.sample_edges(
            self.space, self.drawn_degrees(), int(self.num_edges), generator
        )

    @abstractmethod
    def drawn_degrees(self) -> Tensor:
        """Degrees of a drawn graph, functions of releases, see :attr:`PairSpace.parts`."""


class AttributeMoments(MomentLinks):
    r"""Links from public node attributes: one noisy moment, and a ridge regression in closed form.

    1. Maps the attributes of each node to a row y of their principal components, see
       :class:`AttributeRows`. No edge is read.
    2. Releases the number of edges and the degree of each node, see :func:`release_degrees`. They
       serve the drawn graphs only.
    3. Releases the moment :math:`S = \sum_{(i,j)} (y_i y_j^T + y_j y_i^T) / 2` over the edges with
       Gaussian noise.
    4. Scores a pair by :math:`y_i^T W y_j` with :math:`W = (Y^T Y + 30 I)^{-1} S (Y^T Y + 30
       I)^{-1}`.

    A graph has the released degrees. It begins with random edges, whose ends are then swapped in
    favor of high scores.

    Of a directed or a bipartite graph the moment is :math:`S = \sum_{(i,j)} y_i y_j^T`, and
    :math:`W = (Y^T Y + 30 I)^{-1} S (Z^T Z + 30 I)^{-1}` with the rows Y of the first ends and Z of
    the second ones. The sides of a bipartite graph have components of their own.

    When to use:
        As a baseline of :class:`AttributeEncoder`: it is the simplest method that learns from
        attributes, and it has no step to tune. Without public attributes take :class:`PrivGraph` or
        :class:`ChungLu`.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge is added or removed; of a
        directed graph one ordered pair, of a bipartite one an edge between the sides. The guarantee
        has no condition. The set of nodes, the side of each, and the attributes are public.
        Attributes that were computed from edges, such as a degree, must not be among them.

    Cost:
        Time is O(N F r + (N + M) r^2) and memory O(N F + M), with no limit on N. A graph of M edges
        takes O(M r) for each round of swaps.

    Differences from the paper:
        There is no paper. It is sufficient statistics perturbation for the ridge regression of the
        adjacency matrix. The links of a drawn graph follow the attributes weakly, since a score
        below the density counts as the density, and triangles are not matched.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of principal components r; by default 64, or 32 below an epsilon of 1.
        degree_share: Share of epsilon for the number of edges and the degrees.
    """

    constraints: ClassVar[Constraints] = MOMENT_SETTINGS
    capabilities = replace(MomentLinks.capabilities, kinds=ALL_KINDS)

    def __init__(
        self, num_nodes: int | None = None, rank: int | None = None, degree_share: float = 0.2
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.scores = MomentScores()
        self.degrees: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))

    def take_kind(self, kind: Kind, num_left: int | None) -> None:
        """Give each side of a bipartite graph rows of its own."""
        super().take_kind(kind, num_left)
        self.scores.take_kind(kind, num_left)

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the counts and the moment; the number of steps has no effect."""
        part = budget.split(counts=self.hparams["degree_share"])["counts"]
        counts = degree_entries(part, self.edge_record, **DEGREE_SHARES)
        return [*counts, moment_entry(budget, counts, edge_moment_sensitivity)]

    def on_fit_start(self) -> None:
        """Compute the public rows."""
        super().on_fit_start()
        if not self.is_released:
            own = _RANK if self.budget.epsilon >= 1 else _SMALL_RANK
            self.scores.fit(self.records.attributes, self.hparams["rank"] or own)

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the counts, then the moment."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)
        self.scores.release(source.edges, reads["attribute_moment"], self)

    def drawn_degrees(self) -> Tensor:
        """The released degrees."""
        return self.degrees.cpu()


def moment_entry(
    budget: Budget, counts: list[LedgerEntry], proof: Callable[..., float], *arguments: object
) -> LedgerEntry:
    """Plan the moment with the noise that is left beside the counts.

    Args:
        budget: Budget of the whole run.
        counts: Planned costs of the counts, with the relation and the record of the moment.
        proof: Function that proves its L2 sensitivity.
        *arguments: Arguments of the proof.
    """
    return LedgerEntry.proved(
        "attribute_moment",
        "moment of attributes over edges",
        Gaussian(calibrate_noise_multiplier(budget, other=counts)),
        proof,
        *arguments,
        relation=counts[0].relation,
        record=counts[0].record,
    )


# The noise of a node leaves room for few components.
_NODE_RANK = 16


class NodeAttributeMoments(MomentLinks):
    r"""Links from public node attributes under node-level privacy, by one noisy moment.

    All edges of a node are one record. The moment of :class:`AttributeMoments` changes by D times
    as much, so it has fewer components. The degrees are not released: all nodes of a drawn graph
    have nearly the same degree.

    When to use:
        For links under node-level privacy, if attributes of the nodes are public, linked nodes have
        similar attributes, and a small bound on the degrees is known. For the protection of single
        edges take :class:`AttributeEncoder` or :class:`AttributeMoments`.

    Privacy:
        (epsilon, delta)-DP at the level of nodes (all edges of one node are removed; the node
        stays), **if** no node has more than ``max_degree`` edges, in the graph and in its neighbors
        ("restricted" DP). A larger degree is refused, and this refusal is not protected. Leaving
        edges out, as :class:`NodeDegrees` does, would not replace the bound: one node can change
        which edges are left all over the graph, and the moment with them. The set of nodes and the
        attributes are public, also of the protected node.

    Cost:
        Time is O(N F r + (N + M) r^2) and memory O(N F + M), with no limit on N. A graph of M edges
        takes O(M r) for each round of swaps.

    Differences from the paper:
        There is no paper. See :class:`AttributeMoments`, also for the limits of drawn graphs.

    Args:
        max_degree: Largest degree D (public, assumed).
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of principal components r; by default 16.
        degree_share: Share of epsilon for the number of edges.
    """

    constraints: ClassVar[Constraints] = {**MOMENT_SETTINGS, "max_degree": MAX_DEGREE}
    relation = Relation.NODE

    def __init__(
        self,
        max_degree: int,
        num_nodes: int | None = None,
        rank: int | None = None,
        degree_share: float = 0.2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.scores = MomentScores()

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges and the moment; the number of steps has no effect."""
        part = budget.split(counts=self.hparams["degree_share"])["counts"]
        bound = self.hparams["max_degree"]
        count = self.read("num_edges", "number of edges", part, node_edge_count_sensitivity, bound)
        return [count, moment_entry(budget, [count], node_moment_sensitivity, bound)]

    def condition(self) -> str:
        """Condition of the guarantee: the bound on the degrees."""
        return degree_condition(self.hparams["max_degree"])

    def on_fit_start(self) -> None:
        """Compute the public rows; refuse degrees beyond the bound, and state the bound."""
        super().on_fit_start()
        if not self.is_released:
            self.scores.fit(self.records.attributes, self.hparams["rank"] or _NODE_RANK)
        bound = self.hparams["max_degree"]
        self.assumptions.append(degree_assumption(self.records.edges, bound))

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges, then the moment."""
        self.num_edges = noisy_num_edges(self, source, reads)
        self.scores.release(source.edges, reads["attribute_moment"], self)

    def drawn_degrees(self) -> Tensor:
        """Degrees that differ by 1 at most, shape ``(N,)``."""
        num_nodes = self.hparams["num_nodes"]
        lower, rest = divmod(2 * int(self.num_edges), num_nodes)
        return lower + (torch.arange(num_nodes) < rest).long()
