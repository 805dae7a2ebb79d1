"""Earlier name of the data module that serves random walks; the next version removes it."""

from pytorch_lightning.utilities import rank_zero_info
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.datamodules.edge_list import EdgeListDataModule
from lightning_dpg.datamodules.nodes import ColumnsGiven, Nodes, NodesGiven
from lightning_dpg.formats.columns import Columns
from lightning_dpg.interfaces import BatchRequest


class RandomWalkDataModule(EdgeListDataModule):
    """An :class:`EdgeListDataModule` with settings of walks, which are settings of NetGAN now.

    Args:
        name: Graph, see :class:`EdgeListDataModule`.
        walk_length: Number of nodes of a walk, that of the method.
        batch_size: Number of walks of a batch, in place of the method's.
        steps_per_epoch: Number of batches per epoch, 100 by default.
        p: Return parameter of node2vec, in place of the method's.
        q: In-out parameter of node2vec, in place of the method's.
        undirected: Drop the directions of a directed graph.
        largest_component: Keep the largest connected component only.
        val_fraction: Share of the edges held out for validation.
        test_fraction: Share of the edges held out for the test.
        split: Published split.
        num_graphs: Number of graphs to generate in ``predict``.
        seed: Seed of the split and, with the rank, of the walks.
        nodes: Nodes of the graph.
        columns: Columns of an edge list.
    """

    def __init__(
        self,
        name: str = "les_miserables",
        walk_length: int | None = None,
        batch_size: int | None = None,
        steps_per_epoch: int | None = None,
        p: float | None = None,
        q: float | None = None,
        *,
        undirected: bool = False,
        largest_component: bool = False,
        val_fraction: float = 0.0,
        test_fraction: float = 0.0,
        split: str | None = None,
        num_graphs: int = 1,
        seed: int = 0,
        nodes: NodesGiven = Nodes(),
        columns: ColumnsGiven = Columns(),
    ) -> None:
        super().__init__(
            name,
            steps_per_epoch=steps_per_epoch,
            undirected=undirected,
            largest_component=largest_component,
            val_fraction=val_fraction,
            test_fraction=test_fraction,
            split=split,
            num_graphs=num_graphs,
            seed=seed,
            nodes=nodes,
            columns=columns,
        )
        self.walk_length = walk_length
        self.batch_size = batch_size
        self.p = p
        self.q = q

    def setup(self, stage: str) -> None:
        """Read the graph; name the successor."""
        if stage == "fit" and self.trainer is None:
            rank_zero_info(
                "RandomWalkDataModule is EdgeListDataModule now, and settings of walks are NetGAN's"
            )
        super().setup(stage)

    @property
    def request(self) -> BatchRequest:
        """The request of the method, with the number of walks and the biases that are given here."""
        request = super().request if self.trainer is not None else BatchRequest("walks")
        if request.kind != "walks":
            return request
        return request._replace(
            num_walks=request.num_walks if self.batch_size is None else self.batch_size,
            p=request.p if self.p is None else self.p,
            q=request.q if self.q is None else self.q,
        )

    def check_request(self, request: BatchRequest, max_epochs: int | None) -> None:
        """Also refuse walks of another length than the method learns."""
        super().check_request(request, max_epochs)
        if request.kind == "walks" and self.walk_length not in (None, request.walk_length):
            raise MisconfigurationException(
                f"walk_length is {self.walk_length} in the data module, and {request.walk_length} in "
                "the method\nset it in the method (model.init_args.walk_length) only"
            )
