"""Classes of nodes with noise for several edges of one node together."""

from typing import ClassVar

import torch
from torch import Tensor

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.methods.constraints import POSITIVE, SHARE, Constraints, at_least, either
from lightning_dpg.methods.node_classes.base import NODE_CLASS_SETTINGS, NodeClassifier
from lightning_dpg.methods.node_classes.vote_moment import VoteMoment, belief_rows
from lightning_dpg.methods.planning import Reads
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.meaning import CLIP, MAX_EDGES
from lightning_dpg.privacy.sensitivity.neighbor_sums import node_vote_moment_sensitivity

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
        set of nodes, the attributes and the given classes are public, those of the protected node
        among them. Private labels in place of given classes are reported once by randomized
        response, which costs ``row_epsilon``.

    Cost:
        Time is O(N F r + M C), and memory O(N F + M + N C), with no limit on N.

    Differences from the paper:
        There is no paper. The neighbors are those of k-neighbor-level privacy in Chien et al.,
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
    learns_private_labels = True
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
        self.summed = belief_rows(self.moments.public_beliefs(rows, evidence))
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
