"""AttributeMoments: links from public node attributes, by one noisy moment over the edges."""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.graph.pair_space import Kind
from lightning_dpg.interfaces import AttributedGraphRecords
from lightning_dpg.methods.constraints import SHARE, Constraints, at_least, either
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.attribute_encoder.method import DEGREE_SHARES
from lightning_dpg.methods.single_graph.attribute_encoder.moment_scores import MomentScores
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry
from lightning_dpg.privacy.sensitivity.neighbor_sums import edge_moment_sensitivity

_RANK = 64
# Below an epsilon of 1, fewer components carry less noise.
_SMALL_RANK = 32

MOMENT_SETTINGS: Constraints = {"rank": either(None, at_least(1)), "degree_share": SHARE}


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
        adjacency matrix. The links of a drawn graph follow the attributes weakly, since a score
        below the density counts as the density, and triangles are not matched.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of principal components r; by default 64, or 32 below an epsilon of 1.
        degree_share: Share of epsilon for the number of edges and the degrees.
    """

    reads: ClassVar[type] = AttributedGraphRecords
    is_pure: ClassVar[bool] = False
    constraints: ClassVar[Constraints] = MOMENT_SETTINGS
    records: AttributedGraphRecords
    kinds = frozenset({"undirected", "directed", "bipartite"})

    def __init__(
        self, num_nodes: int | None = None, rank: int | None = None, degree_share: float = 0.2
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.scores = MomentScores()
        self.degrees: Tensor
        self.register_buffer("degrees", torch.empty(0, dtype=torch.long))

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
        degrees, num_edges = self.degrees.cpu(), int(self.num_edges)
        return self.scores.sample_edges(self.space, degrees, num_edges, generator)


def moment_entry(
    budget: Budget, counts: list[LedgerEntry], proof: Callable[..., float], *arguments: object
) -> LedgerEntry:
    """Plan the moment with the noise that is left beside the counts.

    Args:
        budget: Budget of the whole run.
        counts: Planned costs of the counts, whose relation and record are those of the moment, too.
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
