"""AttributeMoments: links from public node attributes, by one noisy moment over the edges."""

from typing import ClassVar

import torch
from torch import Tensor

from lightning_dpg.graph.expected_degrees import edges_by_degrees
from lightning_dpg.graph.pair_space import Kind
from lightning_dpg.graph.scored_swaps import swap_by_scores
from lightning_dpg.interfaces import AttributedGraphRecords
from lightning_dpg.methods.single_graph.attribute_encoder.method import DEGREE_SHARES, SWAP_ROUNDS
from lightning_dpg.methods.single_graph.attribute_encoder.moments import (
    as_matrix,
    as_vector,
    bilinear_form,
    edge_moment,
)
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.nn.attribute_rows import AttributeRows
from lightning_dpg.nn.sided_rows import fit_rows, rows_of_pairs
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.ledger import LedgerEntry
from lightning_dpg.privacy.mechanisms import gaussian
from lightning_dpg.privacy.sensitivity import edge_moment_sensitivity

RIDGE = 30.0
"""Ridge of the regression, tuned on Citeseer."""
_RANK = 64
# Below an epsilon of 1, fewer components carry less noise.
_SMALL_RANK = 32
_PAIRS_AT_ONCE = 65_536


class AttributeMoments(OneShotSynthesizer):
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
        adjacency matrix.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of principal components r; by default 64, or 32 below an epsilon of 1.
        degree_share: Share of epsilon for the number of edges and the degrees.
    """

    reads: ClassVar[type] = AttributedGraphRecords
    is_pure: ClassVar[bool] = False
    records: AttributedGraphRecords
    kinds = frozenset({"undirected", "directed", "bipartite"})

    def __init__(
        self, num_nodes: int | None = None, rank: int | None = None, degree_share: float = 0.2
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self._build(rank, degree_share)

    def _build(self, rank: int | None, degree_share: float) -> None:
        if rank is not None and rank < 1:
            raise ValueError(f"rank must be 1 or more, got {rank}")
        if not 0 < degree_share < 1:
            raise ValueError(f"degree_share must lie in (0, 1), got {degree_share}")
        self.features = AttributeRows(1)  # fitted to the rank that the budget affords
        self.right_features: AttributeRows | None
        self.register_module("right_features", None)
        self.rows: Tensor
        self.form: Tensor
        self.degrees: Tensor
        self.register_buffer("rows", torch.empty(0, 0))
        self.register_buffer("form", torch.empty(0, 0, dtype=torch.double))
        self.register_buffer("degrees", torch.empty(0, dtype=torch.long))

    @property
    def record(self) -> str:
        """Unit of protection in words."""
        return self.edge_record

    def take_kind(self, kind: Kind, num_left: int | None) -> None:
        """Give each side of a bipartite graph rows of its own."""
        super().take_kind(kind, num_left)
        if (self.right_features is None) == (kind == "bipartite"):
            self.right_features = AttributeRows(1) if kind == "bipartite" else None

    @property
    def _is_two_sided(self) -> bool:
        return self.kind != "undirected"

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the counts and the moment; the number of steps has no effect."""
        counts = self.planned_counts(self._count_epsilon(budget.epsilon))
        sensitivity, proof = self.moment_sensitivity()
        moment = LedgerEntry(
            key="attribute_moment",
            name="moment of attributes over edges",
            relation=self.relation,
            mechanism="gaussian",
            sensitivity=sensitivity,
            proof=proof,
            noise_multiplier=calibrate_noise_multiplier(budget, other=counts),
            record=self.record,
        )
        return [*counts, moment]

    def _count_epsilon(self, epsilon: float) -> float:
        share = self.hparams["degree_share"]
        return Budget(epsilon, 0.0).split(counts=share)["counts"].epsilon

    def planned_counts(self, epsilon: float) -> list[LedgerEntry]:
        """Plan the number of edges and the degrees."""
        return degree_entries(epsilon, self.record, **DEGREE_SHARES)

    def release_counts(self, edges: Tensor, epsilon: float) -> None:
        """Release the number of edges and the degrees of edges of shape ``(M, 2)`` (private)."""
        self.degrees = release_degrees(self, edges, epsilon, **DEGREE_SHARES)

    def moment_sensitivity(self) -> tuple[float, str]:
        """Sensitivity of the moment, and the name of its proof."""
        return edge_moment_sensitivity(), "edge_moment_sensitivity"

    def default_rank(self, epsilon: float) -> int:
        """Number of principal components for a budget."""
        return _RANK if epsilon >= 1 else _SMALL_RANK

    def on_fit_start(self) -> None:
        """Compute the public rows."""
        super().on_fit_start()
        if not self.is_released:
            rank = self.hparams["rank"] or self.default_rank(self.budget.epsilon)
            self.features = AttributeRows(rank).to(self.device)
            if self.right_features is not None:
                self.right_features = AttributeRows(rank).to(self.device)
            attributes = self.records.attributes
            self.rows = fit_rows(self.features, self.right_features, attributes, self.num_left)

    def release(self, edges: Tensor, epsilon: float) -> None:
        """Release the counts, then the moment."""
        planned = self.plan(self.budget, 1)[-1]
        self.release_counts(edges, self._count_epsilon(epsilon))
        rows = self.rows.cpu().double()
        rows = rows / rows.norm(dim=1, keepdim=True).clamp(min=1.0)  # at most 1 long in doubles
        moment = edge_moment(edges, rows, two_sided=self._is_two_sided)
        noisy = gaussian(
            moment.flatten() if self._is_two_sided else as_vector(moment),
            self.ledger,
            self.noise,
            key=planned.key,
            name=planned.name,
            sensitivity=planned.sensitivity,
            noise_multiplier=planned.noise_multiplier,
            proof=planned.proof,
            record=self.record,
        )
        if not self._is_two_sided:
            self.form = bilinear_form(as_matrix(noisy), rows, RIDGE)
            return
        left = self.num_left or 0  # of a directed graph all nodes are both
        first, second = rows[: self.num_left], rows[left:]
        self.form = bilinear_form(noisy.view_as(moment), first, RIDGE, second)

    def score(self, pairs: Tensor) -> Tensor:
        """Score pairs of shape ``(P, 2)``: shape ``(P,)``."""
        parts = torch.split(pairs.to(self.rows.device), _PAIRS_AT_ONCE)
        return torch.cat([self._form_of(self.rows[part]) for part in parts])

    def score_attributes(self, first: Tensor, second: Tensor) -> Tensor:
        """Score pairs of new nodes by their attributes.

        Args:
            first: Attributes of the first nodes, shape ``(P, F)``: senders, or left nodes.
            second: Attributes of the second nodes, shape ``(P, F)``.

        Returns:
            Scores of shape ``(P,)``.
        """
        return self._form_of(rows_of_pairs(self.features, self.right_features, first, second))

    def _form_of(self, rows: Tensor) -> Tensor:
        first, second = rows.double().unbind(1)
        return ((first @ self.form) * second).sum(1)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw a graph of the released degrees, then swap ends in favor of high scores."""
        space = self.space
        start = edges_by_degrees(space, self.degrees.cpu(), int(self.num_edges), generator)
        density = max(1, int(self.num_edges)) / max(1, space.num_pairs)
        # The symmetric moment estimates half the entry of the adjacency matrix.
        scale = 1 if self._is_two_sided else 2

        def log_odds(pairs: Tensor) -> Tensor:
            # Where it is below that of a random pair, the noise is larger than the estimate.
            return (scale * self.score(pairs)).clamp(min=density).log().cpu()

        return swap_by_scores(start, space.num_nodes, log_odds, SWAP_ROUNDS, generator, space=space)
