"""The matrix whose eigenvectors PrivCom releases, and how far a neighbour's one is away."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from lightning_dpg.graph.katz import katz, katz_product
from lightning_dpg.privacy.ledger import Relation
from lightning_dpg.privacy.sensitivity.matrix_products import (
    edge_product_sensitivity,
    edge_rayleigh_sensitivity,
    katz_sensitivity,
    node_product_sensitivity,
    node_rayleigh_sensitivity,
    paper_sensitivity,
    rounded_up,
)


class PrivateMatrix(NamedTuple):
    r"""The adjacency matrix or a Katz matrix :math:`\sum_{l \le 2h+1} \beta^l A^l`, by public facts.

    Attributes:
        relation: Neighbouring relation, edge or node.
        num_nodes: Number of nodes N.
        rank: Number K of vectors it is multiplied with.
        hops: Hops h; 0 is the adjacency matrix.
        max_degree: Largest degree D where it is assumed.
        is_paper: Whether the decay is the one of the paper's Lemma 3.
    """

    relation: Relation
    num_nodes: int
    rank: int
    hops: int
    max_degree: int | None
    is_paper: bool

    @property
    def decay(self) -> float:
        r"""Decay :math:`\beta`."""
        if self.is_paper:
            return 1 / ((self.num_nodes - 1) * (self.num_nodes**1.5 * self.rank**0.5 + 1))
        return 0.5 / self._bound if self.hops else 1.0

    @property
    def terms(self) -> int:
        """Number of terms; an odd one, so that eigenvalues tell those of the adjacency matrix."""
        return 2 * self.hops + 1

    def times(self, adjacency: csr_array, block: Tensor) -> Tensor:
        """Product with a block of vectors of shape ``(N, K)`` (private)."""
        product = katz_product(adjacency, block.cpu().numpy(), self.decay, self.terms)
        return torch.from_numpy(product).to(block.device)

    @property
    def record(self) -> str:
        """What is one record."""
        return "edges of a node" if self.relation is Relation.NODE else "undirected edge"

    def product_terms(self, block: Tensor, noise_multiplier: float) -> dict[str, Any]:
        """Terms on which the product with a public block of shape ``(N, K)`` is released."""
        if self.is_paper or self.hops:
            bound, proof = self._sensitivity()
        elif self.relation is Relation.EDGE:
            bound, proof = edge_product_sensitivity(block), "edge_product_sensitivity"
        else:
            bound, proof = node_product_sensitivity(block, self._bound), "node_product_sensitivity"
        return self._terms("products", bound, proof, noise_multiplier)

    def value_terms(self, basis: Tensor, noise_multiplier: float) -> dict[str, Any]:
        """Terms on which the product with a public basis from both sides is released."""
        if self.is_paper or self.hops:
            bound, proof = self._sensitivity()
        elif self.relation is Relation.EDGE:
            bound, proof = edge_rayleigh_sensitivity(basis), "edge_rayleigh_sensitivity"
        else:
            bound = node_rayleigh_sensitivity(basis, self._bound)
            proof = "node_rayleigh_sensitivity"
        return self._terms("eigenvalues", bound, proof, noise_multiplier)

    def outlook(self, std: float) -> str | None:
        """What noise of a standard deviation leaves of any such graph, where that is little.

        The signal is the largest eigenvalue that a graph can have, the noise a spectral norm.
        """
        if not std or not (self.is_paper or self.relation is Relation.NODE):
            return None
        most = self.num_nodes - 1 if self.max_degree is None else self.max_degree
        signal = float(katz(np.array([float(most)]), self.decay, self.terms)[0])
        ratio = signal / (std * (math.sqrt(self.num_nodes) + math.sqrt(self.rank)))
        line = f"signal-to-noise ratio of a step: at most {ratio:.2g}, whatever the graph"
        if self.is_paper:
            return (
                f"{line}\nfar below 1 noise alone decides: this graph and one without edges give the "
                "same releases, and what communities they show are those of noise"
            )
        return (
            f"{line}\nrelation: node finds nothing at an epsilon of 8 and below, however large the "
            "graph, and protects within max_degree only (restricted node-level DP)"
        )

    def _sensitivity(self) -> tuple[float, str]:
        """Sensitivity that holds whatever the Katz matrix is multiplied with."""
        if self.is_paper:
            return paper_sensitivity(), "paper_sensitivity"
        changed = 1 if self.relation is Relation.EDGE else self._bound
        bound = katz_sensitivity(self.decay, self.terms, self._bound, changed)
        return bound, "katz_sensitivity"

    def _terms(
        self, name: str, sensitivity: float, proof: str, noise_multiplier: float
    ) -> dict[str, Any]:
        return {
            "key": name,
            "name": name,
            "sensitivity": rounded_up(sensitivity),
            "proof": proof,
            "noise_multiplier": noise_multiplier,
            "record": self.record,
        }

    @property
    def _bound(self) -> int:
        if self.max_degree is None:
            raise ValueError("the node relation and Katz matrices need max_degree")
        return self.max_degree
