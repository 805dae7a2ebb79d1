"""Scores of node pairs by a noisy moment of public attributes over the edges."""

import torch
from torch import Tensor, nn

from lightning_dpg.graph.edge_moments import (
    as_matrix,
    as_vector,
    bilinear_form,
    edge_moment,
)
from lightning_dpg.graph.expected_degrees import edges_by_degrees
from lightning_dpg.graph.pair_space import Kind, PairSpace
from lightning_dpg.graph.scored_swaps import score_of_images, swap_by_scores
from lightning_dpg.methods.single_graph.attribute_encoder.method import SWAP_ROUNDS
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.nn.attribute_rows import AttributeRows, fit_rows, rows_of_pairs
from lightning_dpg.nn.resized_buffers import resize_on_loading
from lightning_dpg.privacy.events import LedgerEntry

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
        self.rows: Tensor
        self.form: Tensor
        self.register_buffer("rows", torch.empty(0, 0))
        self.register_buffer("form", torch.empty(0, 0, dtype=torch.double))
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
            # Where it is below that of a random pair, the noise is larger than the estimate.
            return score(pairs).clamp(min=density).log()

        return swap_by_scores(start, space.num_nodes, log_odds, SWAP_ROUNDS, generator, space=space)
