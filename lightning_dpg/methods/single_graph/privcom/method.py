"""PrivCom: private eigenvectors of the adjacency matrix, with noise for single edges."""

from torch import Tensor

from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.methods.single_graph.privcom.power_method import (
    DEGREE_SHARES,
    NoisyPowerMethod,
    check_settings,
)
from lightning_dpg.privacy.ledger import LedgerEntry
from lightning_dpg.privacy.sensitivity.matrix_products import (
    edge_product_sensitivity,
    edge_rayleigh_sensitivity,
)


class PrivCom(NoisyPowerMethod):
    r"""Private eigenvectors of the adjacency matrix, and graphs with its communities.

    Edge-level (epsilon, delta)-DP for graphs of any size. The number of edges and the degrees are
    released first (:func:`release_degrees`). The eigenvectors come from a noisy power method
    (:class:`NoisyPowerMethod`), whose products with the adjacency matrix have Gaussian noise at
    their exact sensitivity. Edges are drawn by degrees and communities.

    :class:`RandomizedResponsePrivCom` is better for small graphs. :class:`NodePrivCom` protects all
    edges of a node, and :class:`KatzPrivCom` counts longer walks; both assume a bound on degrees.
    :class:`PrivComAsPublished` follows the published formulas.

    * Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy",
      2020. Hardt, Roth, "Beyond worst-case analysis in private singular vector computation", 2013.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of eigenvectors K.
        iterations: Steps T.
        momentum: Weight of the earlier steps, which averages noise.
        clip: Length to which rows of V are shortened, over that of the rows of a flat basis,
            :math:`\sqrt{K/N}`.
        degree_share: Share of epsilon for the number of edges and the degrees.
        value_share: Share of the rest (of its zCDP parameter) for the eigenvalues.
    """

    def __init__(
        self,
        num_nodes: int | None = None,
        rank: int = 4,
        iterations: int = 24,
        momentum: float = 0.85,
        clip: float = 0.5,
        degree_share: float = 0.2,
        value_share: float = 0.02,
    ) -> None:
        super().__init__(num_nodes, rank, iterations)
        self.save_hyperparameters()
        check_settings(clip, degree_share, value_share)

    def planned_counts(self, epsilon: float) -> list[LedgerEntry]:
        """Plan the number of edges and the degrees."""
        return degree_entries(self.hparams["degree_share"] * epsilon, **DEGREE_SHARES)

    def release_counts(self, edges: Tensor, epsilon: float) -> None:
        """Release the number of edges and the degrees."""
        share = self.hparams["degree_share"]
        self.degrees = release_degrees(self, edges, share * epsilon, **DEGREE_SHARES)

    def product_sensitivity(self, block: Tensor) -> tuple[float, str]:
        """Bound on the change of the product by an edge."""
        return edge_product_sensitivity(block), "edge_product_sensitivity"

    def value_sensitivity(self, basis: Tensor) -> tuple[float, str]:
        """Bound on the change of the two-sided product by an edge."""
        return edge_rayleigh_sensitivity(basis), "edge_rayleigh_sensitivity"
