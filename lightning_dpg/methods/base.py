"""Base classes: every method owns a ledger; every synthesizer is evaluated in the same way."""

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch_geometric.data import Data

from lightning_dpg.graph.graph import make_graph
from lightning_dpg.interfaces import BatchRequest, GraphRecords, Records, serves_records
from lightning_dpg.methods.data_check import check_records, data_of, served_records
from lightning_dpg.methods.planning import PlannedModule
from lightning_dpg.metrics.functional import STATISTICS
from lightning_dpg.metrics.link_prediction import degree_product, link_prediction
from lightning_dpg.privacy.dpsgd import accumulate
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation
from lightning_dpg.privacy.noise import NoiseSource


class PrivateModule(PlannedModule):
    """A method with a ledger of all its reads of the private graph.

    Attributes:
        ledger: Releases so far; part of every checkpoint.
        relation: Neighboring relation of the guarantee.
        is_pure: Whether all releases satisfy pure epsilon-DP, so that a delta of 0 suffices.
        adds_noise: Whether the method protects anything.
        is_trained: Whether training steps change the released tensors, so that a run without a step
            is an untrained method, and not an empty one.
        added_tensors: Released tensors that releases of earlier versions lack; a new object's
            values replace them.
        removed_tensors: Released tensors of earlier versions that the method no longer reads.
        renamed_tensors: Current names of released tensors, by their names in earlier versions.
        assumptions: Facts that the guarantee treats as public, one sentence each.
        reads: Protocol of the records: ``GraphRecords`` or ``GraphSetRecords``.
        repeats_edges: Whether the method multiplies its sensitivities by ``max_occurrences`` of a
            set; otherwise data with repeated edges are refused.
        is_inductive: Whether ``predict`` reads graphs, whose labels the method predicts.
    """

    reads: ClassVar[type] = GraphRecords
    repeats_edges: ClassVar[bool] = False
    is_inductive: ClassVar[bool] = False
    relation: Relation = Relation.EDGE
    is_pure: ClassVar[bool] = False
    adds_noise: ClassVar[bool] = True
    is_trained: ClassVar[bool] = True
    added_tensors: ClassVar[frozenset[str]] = frozenset()
    removed_tensors: ClassVar[frozenset[str]] = frozenset()
    renamed_tensors: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.ledger = PrivacyLedger(self.relation)
        self.assumptions: list[str] = []
        self._noise: NoiseSource | None = None

    @classmethod
    def public_path(cls) -> str:
        """Dotted path of the class in a release, valid wherever the modules of the package move.

        The path of a shipped class is in ``lightning_dpg.methods``, that of a user's class in its
        module.
        """
        package = __name__.rpartition(".")[0]
        if cls.__module__.startswith(f"{package}."):
            return f"{package}.{cls.__name__}"
        return f"{cls.__module__}.{cls.__qualname__}"

    @property
    def noise(self) -> NoiseSource:
        """The secret noise source; it is made on first use, so that all ranks can share it."""
        if self._noise is None:
            self._noise = NoiseSource()
        return self._noise

    @property
    def records(self) -> Records:
        """Records of the data module in use (private); subclasses narrow the type."""
        return served_records(type(self).__name__, self.reads, data_of(self.trainer))

    def batch_request(self) -> BatchRequest:
        """Batches that the method needs: by default one batch with all records."""
        return BatchRequest("all", steps_per_epoch=1)

    @classmethod
    def check_data(cls, data: object) -> None:
        """Refuse a data module with records of another kind."""
        check_records(cls.__name__, cls.reads, cls.repeats_edges, data)

    def setup(self, stage: str) -> None:
        """Refuse data of another kind, and batches that the data module cannot serve."""
        data = data_of(self.trainer)
        if data is None or (stage == "predict" and not self.is_inductive):
            return
        self.check_data(data)
        if stage == "fit" and serves_records(data):
            data.check_request(self.batch_request(), self.trainer.max_epochs)

    def check_new(self) -> None:
        """Refuse a second release by one object.

        Raises:
            MisconfigurationException: If it has released something, and the run does not go on from a
                checkpoint.
        """
        if self.ledger.entries and self.trainer.ckpt_path is None:
            raise MisconfigurationException(
                f"this {type(self).__name__} has been fitted already, and its ledger and weights "
                "belong to that release\nmake a new object for another one, or pass ckpt_path to "
                "fit to go on"
            )

    def condition(self) -> str | None:
        """Condition of the guarantee, to follow "if" (public); None if it always holds."""
        return None

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon of the paper for this run; None if the method does not compare with it."""
        return None

    def on_train_batch_start(self, batch: object, batch_idx: int) -> int | None:
        """End the epoch before a step that the budget does not cover."""
        return None if self.ledger.affords(*self.step_entries()) else -1

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the ledger with the weights."""
        checkpoint["privacy_ledger"] = self.ledger.state_dict()
        checkpoint["assumptions"] = self.assumptions

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the ledger.

        Raises:
            MisconfigurationException: If the checkpoint has none: its weights may have cost any
                amount of privacy.
        """
        if "privacy_ledger" not in checkpoint:
            raise MisconfigurationException(
                "the checkpoint holds no privacy ledger, so what it has spent is unknown; "
                "start a new run, or resume from a checkpoint written by this program"
            )
        self.ledger.load_state_dict(checkpoint["privacy_ledger"])
        self.assumptions = list(checkpoint["assumptions"])

    def public_backward(self, loss: Tensor, parameters: list[nn.Parameter]) -> None:
        """Add the gradient of a loss that reads no record to ``.grad``, averaged over ranks.

        Unlike ``manual_backward``, it leaves parameters of other networks unchanged, and it needs
        no reducer with a list of used parameters.
        """
        self.public_gradient(
            parameters, list(torch.autograd.grad(loss, parameters, materialize_grads=True))
        )

    def public_gradient(self, parameters: list[nn.Parameter], gradients: list[Tensor]) -> None:
        """Add gradients that read no record to ``.grad``, averaged over ranks."""
        if self.trainer.world_size > 1:
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            torch.distributed.all_reduce(flat)
            flat /= self.trainer.world_size
            gradients = list(torch.split(flat, [gradient.numel() for gradient in gradients]))
        for parameter, gradient in zip(parameters, gradients, strict=True):
            accumulate(parameter, gradient.view_as(parameter))


class Synthesizer(PrivateModule):
    """A method that learns one graph and draws synthetic ones.

    :meth:`sample` and :meth:`score` read released tensors only; so do ``predict`` and the release.
    Validation and test compare with the private graph, and log under ``nonprivate/``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.node_names: list[str] | None = None

    @abstractmethod
    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw the edges of a synthetic graph, shape ``(M, 2)``; equal for equal generators."""

    @abstractmethod
    def score(self, pairs: Tensor) -> Tensor:
        """Likeliness of pairs of nodes to be linked: ``(P, 2)`` to ``(P,)``, higher is likelier."""

    @abstractmethod
    def released_state(self) -> dict[str, Tensor]:
        """Tensors that :meth:`sample` and :meth:`score` read, by name in the state dict."""

    def sample(self, generator: torch.Generator) -> Data:
        """Draw a synthetic graph on the public nodes."""
        return make_graph(self.sample_edges(generator), self.hparams["num_nodes"], self.node_names)

    def load_released_state(self, state: dict[str, Tensor]) -> None:
        """Restore the result of :meth:`released_state`."""
        self.load_state_dict(state, strict=False)

    def on_fit_start(self) -> None:
        """Copy the public facts of the data."""
        self.check_new()
        records = self.records
        assert isinstance(records, GraphRecords)  # methods for sets copy facts of their own
        if records.num_nodes != self.hparams["num_nodes"]:
            raise MisconfigurationException(
                f"num_nodes is {self.hparams['num_nodes']}, but the graph has {records.num_nodes} "
                f"nodes: set model.init_args.num_nodes to {records.num_nodes}, or leave it out"
            )
        names = list(records.node_names)
        if self.node_names not in (None, names):
            raise MisconfigurationException(
                "the method was trained on nodes of other names, or in another order: resume with "
                "the data and the setting of names that the first run had"
            )
        self.node_names = names
        self.assumptions = list(records.assumptions)
        # Every rank trains on other public randomness; equal randomness would repeat the work.
        torch.manual_seed(torch.initial_seed() + 1 + self.global_rank)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the public node names with the weights."""
        super().on_save_checkpoint(checkpoint)
        checkpoint["node_names"] = self.node_names

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the ledger and the node names."""
        super().on_load_checkpoint(checkpoint)
        self.node_names = checkpoint["node_names"]

    def validation_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> None:
        """Link prediction on held-out edges (reads the private graph)."""
        if self.trainer.sanity_checking:  # nothing is released yet that could be evaluated
            return
        edges, non_edges, _ = batch
        auc, ap = link_prediction(self.score(edges), self.score(non_edges))
        values = {"nonprivate/val_auc": auc, "nonprivate/val_ap": ap, "nonprivate/val": auc + ap}
        self.log_dict(values, batch_size=1, prog_bar=True)

    def test_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> None:
        """Compare link prediction with its baselines, and a sample's statistics with the graph's.

        The degree product is the baseline that explains much of the usual AUC; the second AUC,
        against non-edges whose ends have the degrees of edges, excludes this effect.
        """
        edges, non_edges, matched = batch
        records = self.records
        assert isinstance(records, GraphRecords)
        graph = records.graph
        values: dict[str, float] = {}
        for name, other in (("", non_edges), ("matched_", matched)):
            auc, ap = link_prediction(self.score(edges), self.score(other))
            baseline, _ = link_prediction(
                degree_product(graph, edges), degree_product(graph, other)
            )
            values |= {f"{name}auc": auc, f"{name}ap": ap, f"{name}auc_degree_product": baseline}
        sample = self.sample(torch.Generator().manual_seed(0))
        for name, statistic in STATISTICS.items():
            values |= {name: statistic(sample), f"{name}_original": statistic(graph)}
        self.log_dict({f"nonprivate/test_{k}": v for k, v in values.items()}, batch_size=1)

    def predict_step(self, seed: Tensor, batch_idx: int) -> Data:
        """Draw one synthetic graph per seed."""
        return self.sample(torch.Generator().manual_seed(int(seed)))
