"""The records that data modules serve (private); see :mod:`lightning_dpg.interfaces`.

They are plain objects: Lightning, which copies data classes and tuples to a device, leaves them alone.
"""

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.data import Data


class OneGraph:
    """The training records of one graph.

    Args:
        graph: Graph of the training edges, with all nodes (private).
        edges: Its edges, shape ``(M, 2)``, rows ``i < j`` that occur once (private).
        assumptions: What a guarantee takes as public.
        private_attributes: Names of attributes of nodes that the owner has marked as private.
    """

    def __init__(
        self,
        graph: Data,
        edges: Tensor,
        assumptions: list[str],
        private_attributes: Sequence[str] = (),
    ) -> None:
        self.private_attributes = list(private_attributes)
        self.graph = graph
        self.edges = edges
        self.num_nodes = int(graph.num_nodes)
        self.node_names: list[str] = list(graph.node_names)
        self.assumptions = assumptions


class AttributedGraph(OneGraph):
    """The training records of one graph whose nodes have public attributes.

    Args:
        graph: Graph of the training edges (private), with ``x`` of shape ``(N, F)`` and
            ``attribute_names`` (both public).
        edges: Its edges, shape ``(M, 2)``, rows ``i < j`` that occur once (private).
        assumptions: What a guarantee takes as public.
        private_attributes: Names of attributes of nodes that the owner has marked as private.
    """

    def __init__(
        self,
        graph: Data,
        edges: Tensor,
        assumptions: list[str],
        private_attributes: Sequence[str] = (),
    ) -> None:
        super().__init__(graph, edges, assumptions, private_attributes)
        self.attributes: Tensor = graph.x
        self.attribute_names: list[str] = list(graph.attribute_names)


class GraphSet:
    """The training records of a set of graphs.

    Args:
        graphs: The G graphs (private).
        edges: Edges of all of them (private), shape ``(M, 2)``, in the numbers of all nodes.
        sizes: Number of nodes of each graph (public), shape ``(G,)``.
        graph_of: Number of each node's graph (public), shape ``(N,)``.
        labels: Label of each graph (public), shape ``(G,)``; None without labels.
        max_occurrences: Largest number of rows of ``edges`` that are one edge of the private data.
        assumptions: What a guarantee takes as public.
        preparation: The assumptions because of the preparation of the data.
    """

    def __init__(
        self,
        graphs: Sequence[Data],
        edges: Tensor,
        sizes: Tensor,
        graph_of: Tensor,
        labels: Tensor | None,
        *,
        max_occurrences: int,
        assumptions: list[str],
        preparation: list[str],
    ) -> None:
        self.graphs = graphs
        self.edges = edges
        self.sizes = sizes
        self.graph_of = graph_of
        self.labels = labels
        self.max_occurrences = max_occurrences
        self.assumptions = assumptions
        self.preparation = preparation
