"""NeighborVotes: classes of nodes from public attributes, and noisy votes of neighbors."""

from typing import ClassVar

import torch
from torch import Tensor

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource, as_matrix, as_vector
from lightning_dpg.graph.pair_space import UndirectedPairs
from lightning_dpg.methods.constraints import SHARE, Constraints, at_least
from lightning_dpg.methods.node_classes.base import NODE_CLASS_SETTINGS, NodeClassifier
from lightning_dpg.methods.node_classes.vote_moment import VoteMoment, belief_rows
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.base import num_edges_entry
from lightning_dpg.nn.belief_mixture import Votes, fuse
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry
from lightning_dpg.privacy.sensitivity.neighbor_sums import (
    edge_moment_sensitivity,
    vote_moment_sensitivity,
    vote_sensitivity,
)

# Mean degree over the noise of the mean of all tables, from which on the posteriors of a table
# improve the beliefs of the next one. Fixed on Cora-ML and on synthetic graphs.
_CLEAR = 1.0


class NeighborVotes(NodeClassifier):
    r"""Classes of nodes, learned from public attributes and noisy votes of neighbors.

    1. Maps the attributes of each node to a row z of their principal components, see
       :class:`AttributeRows`. No edge is read.
    2. Releases the number of edges.
    3. Releases the moment :math:`S = Z^T A Z / 2` of these rows over the edges with Gaussian noise.
       Rows are then shortened in directions that links do not follow, see
       :func:`lightning_dpg.nn.linked_rows.link_metric`, and the known classes are learned from them.
    4. Releases the moment :math:`M = Z^T A U` with Gaussian noise, where a row of U is the belief of
       a node, as a direction of length 1. A ridge regression then says which votes a node with such
       attributes can expect, and a student learns classes from both.
    5. Releases the votes :math:`A U + N` of the student's beliefs, in ``rounds`` tables. Where the
       released number of edges promises clear votes, each table has the beliefs that follow from
       those before; else all of them have the same beliefs, and their mean is used.
    6. Fuses the votes with the student by a mixture that knows the noise, see
       :func:`lightning_dpg.nn.belief_mixture.fuse`. The student learns the result.

    The mixture learns which beliefs the neighbors of each class have. They need not be of the same
    class. Votes that do not agree with the student at all are left out: links then say nothing of
    classes, and a mixture would find groups of other origin.

    When to use:
        For classes of nodes, if attributes of all nodes and classes of some are public. Compare it
        with its own public beliefs: on sparse graphs with good attributes, edges add little at an
        epsilon of 1.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge is added or removed. The
        guarantee has no condition. The set of nodes, the attributes and the given classes are
        public. Attributes that were computed from edges, such as a degree, must not be among them.
        Predictions for the nodes of the graph and, from attributes alone, for new nodes are free. A
        new node's own edges are not read: that would be another release. Private labels in place of
        given classes are reported once by randomized response, which costs ``row_epsilon``.

    Cost:
        Time is O(N F r + M C + N C log N), and memory O(N F + M + N C), with no limit on N.

    Differences from the paper:
        There is no paper. Moments are sufficient statistics perturbation; noisy sums over neighbors
        are the aggregation perturbation of Sajadmanesh et al., 2023, of C - 1 numbers instead of an
        embedding, and at the sensitivity of an undirected edge.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of principal components r.
        count_share: Share of epsilon for the number of edges.
        attribute_share: Share of the Gaussian budget, by squared signal to noise, for the moment of
            attributes over edges.
        moment_share: Share of it for the moment of attributes and beliefs; the tables have the rest in
            equal parts.
        rounds: Number of tables of votes.
        restarts: Starts of the mixture, of which the most likely one counts; they are free.
        split_seed: Public seed of a split of the known classes; only those of its training nodes are
            used, 20 of each class. By default all are used.
        train_fraction: Share of the known classes that the split gives to training instead; a split of
            private labels needs it, and draws by a coin.
    """

    learns_private_labels = True
    constraints: ClassVar[Constraints] = {
        **NODE_CLASS_SETTINGS,
        "rank": at_least(1),
        "count_share": SHARE,
        "attribute_share": SHARE,
        "moment_share": SHARE,
        "rounds": at_least(1),
        "restarts": at_least(1),
    }

    def __init__(
        self,
        num_nodes: int | None = None,
        rank: int = 64,
        count_share: float = 0.02,
        attribute_share: float = 0.15,
        moment_share: float = 0.15,
        rounds: int = 3,
        restarts: int = 1,
        split_seed: int | None = None,
        train_fraction: float | None = None,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_shares(
            count_share=count_share, attribute_share=attribute_share, moment_share=moment_share
        )
        self.moments = VoteMoment(rank)
        self.num_edges: Tensor
        self.votes: Tensor
        self.register_buffer("num_edges", torch.tensor(0))
        self.register_buffer("votes", torch.empty(0, 0, 0, dtype=torch.double))

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges, the moments and the tables; the number of steps has no effect."""
        part = budget.split(count=self.hparams["count_share"])["count"]
        count = num_edges_entry(part.epsilon)
        noise = calibrate_noise_multiplier(budget, other=[count])
        first, second = self.hparams["attribute_share"], self.hparams["moment_share"]
        rounds, record = self.hparams["rounds"], UndirectedPairs.record
        attributes = LedgerEntry.proved(
            "attribute_moment",
            "moment of attributes over edges",
            Gaussian(noise / first**0.5),
            edge_moment_sensitivity,
            record=record,
        )
        moment = LedgerEntry.proved(
            "vote_moment",
            "moment of attributes and neighbors' beliefs",
            Gaussian(noise / second**0.5),
            vote_moment_sensitivity,
            record=record,
        )
        tables = [
            LedgerEntry.proved(
                f"neighbor_votes_{number}",
                f"votes of neighbors, table {number}",
                Gaussian(noise / ((1 - first - second) / rounds) ** 0.5),
                vote_sensitivity,
                record=record,
            )
            for number in range(1, rounds + 1)
        ]
        return [*self.label_reads(), count, attributes, moment, *tables]

    def release(self, source: GraphStatisticsSource, attributes: Tensor, reads: Reads) -> Tensor:
        """Release the number of edges, the moments and the votes; fuse them."""
        noisy = self.pay(reads["num_edges"], torch.tensor(source.num_edges()))
        self.num_edges = noisy.clamp(0, self.space.num_pairs)
        degree = 2 * float(self.num_edges) / max(self.num_nodes, 1)
        evidence = self.evidence()
        self.moments.features.fit(attributes)
        rows = self.moments.rows(attributes)
        read = reads["attribute_moment"]
        linked = self.pay(read, as_vector(rows.T @ source.neighbor_sums(rows) / 2))
        self.moments.follow_links(as_matrix(linked), read.scale, attributes, degree)
        rows = self.moments.rows(attributes)
        self.summed = belief_rows(self.moments.public_beliefs(rows, evidence))
        read = reads["vote_moment"]
        moment = self.pay(read, rows.T @ source.neighbor_sums(self.summed))
        posteriors = self.moments.learn(moment, read.scale, rows, evidence, degree)
        log_prior = evidence.added_to(self.moments.log_prior(rows))

        def fused(tables: list[Tensor], noise: float) -> Tensor:
            votes, starts = Votes(tables, noise), self.hparams["restarts"]
            return fuse(votes, log_prior, degree, starts).posteriors

        rounds, tables = self.hparams["rounds"], list[Tensor]()
        scale = reads["neighbor_votes_1"].scale
        is_clear = degree >= _CLEAR * scale / rounds**0.5
        for number in range(1, rounds + 1):
            if is_clear or number == 1:
                self.summed = belief_rows(posteriors)
                sums = source.neighbor_sums(self.summed)
            tables.append(self.pay(reads[f"neighbor_votes_{number}"], sums))
            if is_clear:
                posteriors = fused(tables, scale)
        if not is_clear:  # the sums are the same, and their mean holds all that is known of them
            tables = [torch.stack(tables).mean(0)]
            posteriors = fused(tables, scale / rounds**0.5)
        self.votes = torch.stack(tables)
        self.moments.learn_posteriors(rows, posteriors, evidence)
        return posteriors

    def predict_proba(self, attributes: Tensor) -> Tensor:
        """Predict classes from attributes of shape ``(P, F)`` alone: probabilities ``(P, C)``."""
        found: Tensor = self.moments(attributes)
        return found
