"""NeighborVotes: classes of nodes from public attributes, and noisy votes of neighbors."""

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource, as_matrix, as_vector
from lightning_dpg.graph.pair_space import UndirectedPairs
from lightning_dpg.methods.constraints import POSITIVE, SHARE, Constraints, at_least, either
from lightning_dpg.methods.node_classes import NODE_CLASS_SETTINGS, NodeClassifier
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.base import num_edges_entry
from lightning_dpg.nn.attribute_rows import AttributeRows
from lightning_dpg.nn.belief_mixture import Votes, fuse
from lightning_dpg.nn.class_student import (
    ClassEvidence,
    ClassStudent,
    column_student,
    confidence,
    self_trained,
)
from lightning_dpg.nn.linked_rows import link_metric
from lightning_dpg.nn.resized_buffers import resize_on_loading
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.meaning import CLIP, MAX_EDGES
from lightning_dpg.privacy.sensitivity.neighbor_sums import (
    edge_moment_sensitivity,
    node_vote_moment_sensitivity,
    vote_moment_sensitivity,
    vote_sensitivity,
)

_RIDGES = tuple(10 ** (power / 2) for power in range(-2, 8))
_TINY = 1e-9


class VoteMoment(nn.Module):
    r"""Public rows of nodes, the votes that nodes with such rows expect, and a student of both.

    Attributes:
        features: Map from attributes to principal components, fitted to public attributes.
        metric: Map from them to rows z, see :func:`link_metric`, shape ``(r, r)``; empty before
            :meth:`follow_links`.
        moment: Released moment :math:`Z^T A U` of rows and beliefs of neighbors, shape ``(r, k)``.
        expected: Map from a row to the votes that it expects, up to a factor, shape ``(r, k)``.
        student: Classes by both.
        column_weights: Weights of all weighted columns and, last, the biases of log odds that are
            added to those of the student, shape ``(F + 1, C)``.
        by_columns: These log odds of all nodes, shape ``(N, C)``. Those of a known node do not depend
            on its class. They are no part of the release.
    """

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.features = AttributeRows(rank)
        self.student = ClassStudent()
        self.by_columns: Tensor
        self.column_weights: Tensor | None
        self.register_buffer("column_weights", None)  # older releases have none
        self.metric: Tensor = nn.Buffer(torch.empty(0, 0, dtype=torch.double))
        self.moment: Tensor = nn.Buffer(torch.empty(0, 0, dtype=torch.double))
        self.expected: Tensor = nn.Buffer(torch.empty(0, 0, dtype=torch.double))
        resize_on_loading(self, "metric", "moment", "expected", "column_weights")

    def rows(self, attributes: Tensor) -> Tensor:
        """Rows z of nodes in double precision, at most 1 long: ``(P, F)`` to ``(P, r)``."""
        rows: Tensor = self.features(attributes).double()
        if self.metric.numel():
            rows = normalize(rows @ self.metric)
        return rows / rows.norm(dim=1, keepdim=True).clamp(min=1.0)

    def follow_links(
        self, moment: Tensor, noise: float, attributes: Tensor, degree: float = 0.0
    ) -> None:
        """Let rows be close where nodes link; rows from before this call are no longer valid.

        Args:
            moment: Released symmetric moment of the rows over edges, shape ``(r, r)``.
            noise: Standard deviation of the noise on its diagonal.
            attributes: Attributes of all nodes, shape ``(N, F)``.
            degree: Released mean degree; 0 takes the links as given, and not as drawn.
        """
        self.metric = link_metric(moment, self.rows(attributes), noise, degree)

    def public_beliefs(self, attributes: Tensor, rows: Tensor, evidence: ClassEvidence) -> Tensor:
        """Probabilities of classes before any vote, shape ``(N, C)``.

        Args:
            attributes: Attributes of all nodes, shape ``(N, F)``.
            rows: Rows of all nodes, shape ``(N, r)``.
            evidence: What is known of classes (public or released).
        """
        columns = self.features.weighted(attributes)
        student, others = column_student(columns, evidence)
        factor, share = confidence(rows, evidence, others)
        self.column_weights = share * torch.cat([student.weight, student.bias[None]])
        self.by_columns = share * others
        self.student = self_trained(rows, evidence, factor)
        return _beliefs(self.student(rows, self.by_columns), evidence)

    def learn(
        self,
        moment: Tensor,
        noise: float,
        rows: Tensor,
        evidence: ClassEvidence,
        degree: float = 0.0,
    ) -> Tensor:
        """Learn from the released moment, which reads no edge.

        Args:
            moment: The released moment, shape ``(r, k)``.
            noise: Standard deviation of the noise of a number in it.
            rows: Rows of all nodes, shape ``(N, r)``.
            evidence: What is known of classes (public or released).
            degree: Released mean degree; 0 takes the links as given, and not as drawn.

        Returns:
            Probabilities of the classes of all nodes, shape ``(N, C)``.
        """
        factor, public = float(self.student.factor), self.student(rows)
        # The targets are as sure as the mean of an unsure student and of a public one of this factor.
        factor = 2 * factor / (1 + factor)
        self.moment, self.expected = moment, expected_votes(moment, rows, noise, degree)
        self.student = self_trained(self._both(rows), evidence, factor, public)
        return _beliefs(self.log_prior(rows), evidence)

    def log_prior(self, rows: Tensor) -> Tensor:
        """Log probabilities of classes by the student, shape ``(N, C)``."""
        logs: Tensor = self.student(self._both(rows), self.by_columns)
        return logs

    def learn_posteriors(self, rows: Tensor, posteriors: Tensor, evidence: ClassEvidence) -> None:
        """Let the student learn released probabilities of all nodes, shape ``(N, C)``."""
        self.student.fit(self._both(rows), posteriors, 1.0, len(evidence.nodes), self.by_columns)

    def forward(self, attributes: Tensor) -> Tensor:
        """Probabilities of classes from attributes alone: ``(P, F)`` to ``(P, C)``."""
        both, others = self._both(self.rows(attributes)), torch.zeros(1, dtype=torch.double)
        if self.column_weights is not None:
            columns = self.features.weighted(attributes).double()
            others = columns @ self.column_weights[:-1] + self.column_weights[-1]
        logs: Tensor = self.student(both, others)
        return logs.exp().float()

    def _both(self, rows: Tensor) -> Tensor:
        return torch.cat([rows, rows @ self.expected], 1)


def _beliefs(logs: Tensor, evidence: ClassEvidence) -> Tensor:
    return torch.softmax(evidence.added_to(logs), 1)


def belief_rows(beliefs: Tensor) -> Tensor:
    """Directions of probabilities from the uniform ones: ``(N, C)`` to ``(N, C - 1)``, length 1.

    Rows of uniform probabilities have the length 0.
    """
    count = beliefs.shape[1]
    square = torch.cat([torch.ones(count, 1), torch.eye(count)[:, : count - 1]], 1).double()
    basis = torch.linalg.qr(square).Q[:, 1:]
    return normalize((beliefs - 1 / count) @ basis)


def expected_votes(moment: Tensor, rows: Tensor, noise: float, degree: float = 0.0) -> Tensor:
    r"""Coefficients of a ridge regression of votes on rows, from their noisy moment, shape ``(r, k)``.

    They are :math:`(Z^T Z + \lambda I)^{-1} M`. The noise is known and the rows are public, so that
    Stein's unbiased estimate of the risk chooses the ridge. The expected votes are scaled to a root
    mean square length of the share of their squares that is not noise: a student then gives less
    weight to a moment that is mostly noise. Chance is noise, too: the votes of d drawn neighbors have
    the variance d / k beside what a row expects of them.

    Args:
        moment: Noisy moment M of rows and votes, shape ``(r, k)``.
        rows: Rows of all nodes, shape ``(N, r)``.
        noise: Standard deviation of the noise of a number in the moment.
        degree: Released mean degree d; 0 takes the links as given, and not as drawn.
    """
    values, vectors = torch.linalg.eigh(rows.T @ rows)
    values = values.clamp(min=_TINY * float(values.max().clamp(min=1.0)))
    turned = vectors.T @ moment
    errors = noise**2 / values * moment.shape[1] + degree
    squares = turned.square().sum(1) / values

    def risk(ridge: float) -> float:
        kept = values / (values + ridge)
        return float(((1 - kept) ** 2 * squares + 2 * kept * errors).sum())

    ridge = min(_RIDGES, key=risk)
    kept = values / (values + ridge)
    total, drawn = float((kept**2 * squares).sum()), float((kept**2 * errors).sum())
    share = max(0.0, 1 - drawn / max(total, _TINY))
    size = (total / max(len(rows), 1)) ** 0.5
    return vectors @ (turned / (values + ridge)[:, None]) * share / max(size, _TINY)


# Share of D at which votes are clipped: the sensitivity is then 4/3 D.
_CLIP_SHARE = 1 / 6


class NodeNeighborVotes(NodeClassifier):
    r"""Classes of nodes from public attributes, with noise for many edges of a node together.

    1. Maps the attributes of each node to a row z of their principal components, as
       :class:`NeighborVotes`. No edge is read.
    2. Clips the sum of the rows of each node's neighbors to a length of c, and releases the moment of
       rows and clipped sums with Gaussian noise. Rows are then shortened in directions that links do
       not follow, and the known classes are learned from them.
    3. Clips the votes of each node, which are the sum of its neighbors' beliefs, to the length c, and
       releases the moment of rows and clipped votes with Gaussian noise. A ridge regression then says
       which votes a node with such attributes can expect, and a student learns classes from both.

    No table of votes is released: noise for many edges of a node would drown the votes of a node, and
    a moment is no property of a single one.

    When to use:
        For classes of nodes, if many relations of a person together are the secret, on graphs of
        thousands of nodes. For the protection of single edges take :class:`NeighborVotes`.

    Privacy:
        (epsilon, delta)-DP for at most ``max_edges`` edges D of one node together: they are added or
        removed, at once. The guarantee has no condition: the degrees of this node and of all others
        are arbitrary, no edge is left out, and none is sampled. All edges of a node with more than D
        edges cost more than epsilon; the statement says how much for several numbers of edges. The
        set of nodes, the attributes and the given classes are public, also of the protected node.
        Private labels in place of given classes are reported once by randomized response, which costs ``row_epsilon``.

    Cost:
        Time is O(N F r + M C), and memory O(N F + M + N C), with no limit on N.

    Differences from the paper:
        There is no paper. Neighboring graphs are defined as in k-neighbor-level privacy of Chien et al.,
        "Differentially private decoupled graph convolutions for multigranular topology protection",
        2023.

    Args:
        max_edges: Number D of edges of one node that are hidden together (public).
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of principal components r.
        clip: Bound c on the length of sums over neighbors; by default D / 6.
        attribute_share: Share of the budget, by squared signal to noise, for the moment of rows.
        split_seed: Public seed of a split of the known classes; only those of its training nodes are
            used, 20 of each class. By default all are used.
        train_fraction: Share of the known classes that the split gives to training instead; a split of
            private labels needs it, and draws by a coin.
    """

    relation = Relation.EDGES_OF_NODE
    capabilities = replace(NodeClassifier.capabilities, learns_private_labels=True)
    constraints: ClassVar[Constraints] = {
        **NODE_CLASS_SETTINGS,
        "max_edges": at_least(1),
        "rank": at_least(1),
        "clip": either(None, POSITIVE),
        "attribute_share": SHARE,
    }

    def __init__(
        self,
        max_edges: int = 20,
        num_nodes: int | None = None,
        rank: int = 64,
        clip: float | None = None,
        attribute_share: float = 0.3,
        split_seed: int | None = None,
        train_fraction: float | None = None,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.moments = VoteMoment(rank)

    @property
    def clip(self) -> float:
        """Bound c on the length of votes."""
        given: float | None = self.hparams["clip"]
        return _CLIP_SHARE * self.hparams["max_edges"] if given is None else given

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan both moments; the number of steps has no effect."""
        most, share = self.hparams["max_edges"], self.hparams["attribute_share"]
        noise = calibrate_noise_multiplier(budget)
        moments = [
            LedgerEntry.proved(
                f"clipped_{key}_moment",
                f"moment of attributes and clipped {name} of neighbors",
                Gaussian(noise / part**0.5),
                node_vote_moment_sensitivity,
                most,
                self.clip,
                relation=Relation.EDGES_OF_NODE,
                record=f"at most {most} edges of one node",
                public={MAX_EDGES: most, CLIP: self.clip},
            )
            for key, name, part in (
                ("attribute", "attributes", share),
                ("vote", "votes", 1 - share),
            )
        ]
        return [*self.label_reads(), *moments]

    def release(self, source: GraphStatisticsSource, attributes: Tensor, reads: Reads) -> Tensor:
        """Release the moments, and let the student learn from them."""
        evidence = self.evidence()
        self.moments.features.fit(attributes)
        rows = self.moments.rows(attributes)
        read = reads["clipped_attribute_moment"]
        linked = self.pay(read, rows.T @ clipped(source.neighbor_sums(rows), self.clip))
        # The mean of both halves has less noise beside the diagonal, by the root of 2.
        self.moments.follow_links((linked + linked.T) / 2, read.scale, attributes)
        rows = self.moments.rows(attributes)
        self.summed = belief_rows(self.moments.public_beliefs(attributes, rows, evidence))
        read = reads["clipped_vote_moment"]
        votes = clipped(source.neighbor_sums(self.summed), self.clip)
        moment = self.pay(read, rows.T @ votes)
        return self.moments.learn(moment, read.scale, rows, evidence)

    def predict_proba(self, attributes: Tensor) -> Tensor:
        """Predict classes from attributes of shape ``(P, F)`` alone: probabilities ``(P, C)``."""
        found: Tensor = self.moments(attributes)
        return found


def clipped(votes: Tensor, clip: float) -> Tensor:
    """Scale rows that are longer than ``clip`` to this length: ``(N, k)`` to ``(N, k)``."""
    lengths = votes.norm(dim=1, keepdim=True)
    return votes * (clip / lengths.clamp(min=torch.finfo(votes.dtype).tiny)).clamp(max=1.0)


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
       :func:`lightning_dpg.nn.linked_rows.link_metric`, and the known classes are learned from them,
       and by another student from all columns. Beliefs add the log odds of both, with the factors that
       predict known classes best, which each student has not seen.
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
        restarts: Starts of the mixture, which are free; the most likely one counts.
        split_seed: Public seed of a split of the known classes; only those of its training nodes are
            used, 20 of each class. By default all are used.
        train_fraction: Share of the known classes that the split gives to training instead; a split of
            private labels needs it, and draws by a coin.
    """

    capabilities = replace(NodeClassifier.capabilities, learns_private_labels=True)
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
        self.num_edges: Tensor = nn.Buffer(torch.tensor(0))
        self.votes: Tensor = nn.Buffer(torch.empty(0, 0, 0, dtype=torch.double))

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
        self.summed = belief_rows(self.moments.public_beliefs(attributes, rows, evidence))
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
