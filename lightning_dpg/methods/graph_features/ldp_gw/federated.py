"""Learners of graphs whose encoder is trained by rounds of federated averaging, or not at all."""

import copy
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.methods.graph_features.base import GraphLearner
from lightning_dpg.methods.graph_features.ldp_gw.clients import (
    dealt,
    holdings,
    share_of,
    teaching_graphs,
    weighted_update,
)
from lightning_dpg.methods.graph_features.ldp_gw.flower import (
    FlowerClients,
    SendHome,
    check_installed,
)
from lightning_dpg.methods.graph_set.base import resized
from lightning_dpg.nn.node_encoders import NodeEncoder
from lightning_dpg.privacy.calibration import remaining_noise_multiplier
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.ledger import Budget, PrivacyLedger
from lightning_dpg.privacy.mechanisms import gaussian
from lightning_dpg.privacy.sensitivity import client_update_sensitivity

UPDATES = "sum of client updates"
"""Name of the releases of the rounds."""


class FederatedLearner(GraphLearner):
    """A learner that embeds graphs by an encoder with weights which are random or trained by rounds.

    One training step of Lightning is one round: each client trains on what it holds, and the server
    takes a step of length 1 along the sum of their updates. Processes share the clients. Half of the
    graphs teach the encoder their labels; the others alone tell the accuracy, since rows that were
    trained on a graph's label would give it away.

    A subclass says what the clients' encoders read, and releases the rows in :meth:`embed`, which
    follows the last round.

    Attributes:
        network: The encoder; None before ``fit`` or the loading of a release.
        teaching: Which graphs taught the encoder (public), shape ``(G,)``.
        updates_are_free: Whether the clients' encoders read nothing but what was released.
    """

    updates_are_free: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.network: NodeEncoder | None = None
        self.dims: Tensor
        self.teaching: Tensor
        self.rounds_made: Tensor
        self.rounds_planned: Tensor
        self.update_noise: Tensor
        self.register_buffer("dims", torch.zeros(2, dtype=torch.long))
        self.register_buffer("teaching", torch.empty(0, dtype=torch.bool))
        self.register_buffer("rounds_made", torch.tensor(0))
        self.register_buffer("rounds_planned", torch.tensor(0))
        self.register_buffer("update_noise", torch.tensor(0.0, dtype=torch.double))
        self.register_load_state_dict_pre_hook(resized("teaching"))  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_built)  # type: ignore[no-untyped-call]
        self._updates: Callable[[NodeEncoder], Tensor] | None = None
        self._flower: FlowerClients | None = None

    @abstractmethod
    def encoder_class(self) -> Callable[[int, int, int], NodeEncoder]:
        """Kind of the encoder: of widths of features and rows, and of the number of labels."""

    @abstractmethod
    def input_width(self, data: Any) -> int:
        """Width of what the encoder reads of each node (public)."""

    @abstractmethod
    def client_inputs(self, data: Any) -> tuple[Tensor, Tensor]:
        """What the encoder reads of all nodes, ``(N, d)``, and of the edges, ``(M, 2)``."""

    @abstractmethod
    def reserved_epsilon(self, epsilon: float) -> float:
        """Pure epsilon, out of the whole budget, that rounds leave for what follows them."""

    def unprotected_setting(self) -> str | None:
        """Updates of clients as they are."""
        is_open = self.hparams["weights"] == "trained" and not self.updates_are_free
        return "weights: trained" if is_open else None

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Also refuse Flower where there is none."""
        super().check_budget(budget, steps)
        if self.hparams["flower_processes"]:
            check_installed()

    def setup(self, stage: str) -> None:
        """Make the encoder for the public widths of features and labels."""
        super().setup(stage)
        data: Any = getattr(self.trainer, "datamodule", None)
        if self.network is None and stage == "fit" and hasattr(data, "graphs"):
            num_classes = 1 if data.labels is None else int(data.labels.max()) + 1
            self.build(self.input_width(data), num_classes)

    def build(self, feature_dim: int, num_classes: int) -> None:
        """Make the encoder, with weights of the public random numbers.

        Args:
            feature_dim: Width of what it reads of each node.
            num_classes: Number of labels.
        """
        self.dims = torch.tensor([feature_dim, num_classes])
        self.network = self.encoder_class()(feature_dim, self.hparams["width"], num_classes)

    def configure_optimizers(self) -> torch.optim.Optimizer | None:
        """The server's; none where nothing is trained."""
        if self.hparams["weights"] == "random" or self.network is None:
            return None
        return torch.optim.SGD(self.network.parameters(), lr=1.0)

    def configure_callbacks(self) -> list[Callback]:
        """Of processes that nobody may forget."""
        return [SendHome()] if self.hparams["flower_processes"] else []

    def on_fit_start(self) -> None:
        """Take over the public facts of the data, and plan the rounds."""
        super().on_fit_start()
        h = self.hparams
        self.teaching = torch.zeros(len(self.sizes), dtype=torch.bool, device=self.device)
        if h["weights"] == "random":
            return
        if h["flower_processes"] and self.trainer.world_size > 1:
            raise MisconfigurationException(
                "flower_processes takes one process of Lightning, whose clients have their own: "
                "set trainer.devices to 1"
            )
        self._check_labels()
        chosen = teaching_graphs(self.labels.cpu(), h["teaching_fraction"], h["split_seed"])
        if not chosen.any() or chosen.all():
            raise MisconfigurationException(
                f"teaching_fraction {h['teaching_fraction']:g} lets {int(chosen.sum())} of {len(chosen)} "
                "graphs teach: some must teach and some be judged"
            )
        self.teaching = chosen.to(self.device)
        if not self.rounds_planned:
            self.rounds_planned.fill_(min(h["rounds"], self.planned_steps()))
            if h["weights"] == "private":
                self.update_noise.fill_(self._planned_noise())

    def step_entries(self) -> list[LedgerEntry]:
        """Cost of the next round; what follows is paid when it is made."""
        if self.hparams["weights"] != "private" or self.rounds_made >= self.rounds_planned:
            return []
        return [
            LedgerEntry(
                key="client_updates",
                name=UPDATES,
                relation=self.relation,
                mechanism="gaussian",
                sensitivity=self._update_sensitivity(),
                noise_multiplier=float(self.update_noise),
                proof="client_update_sensitivity",
                record="graph of one client",
            )
        ]

    def training_step(self, batch: Any, batch_idx: int) -> None:
        """One round; the last one is followed by the release."""
        if not self.is_released and self.rounds_made < self.rounds_planned:
            self._round(self.trainer.datamodule)  # type: ignore[attr-defined]
        if self.rounds_made >= self.rounds_planned:
            self.send_home()
            super().training_step(batch, batch_idx)

    def encoded(self, inputs: Tensor, edges: Tensor) -> Tensor:
        """Rows of all nodes, on the CPU.

        Args:
            inputs: What the encoder reads of each node, shape ``(N, d)``.
            edges: Edges of shape ``(M, 2)``.

        Returns:
            Shape ``(N, h)``, in double precision.
        """
        edge_index = torch.cat([edges, edges.flip(1)]).T.to(self.device)
        with torch.no_grad():
            rows: Tensor = self._encoder()(inputs.to(self.device), edge_index)
        return rows.double().cpu()

    @property
    def judged(self) -> NDArray[np.bool_]:
        """The graphs that did not teach the encoder."""
        judged: NDArray[np.bool_] = (~self.teaching).cpu().numpy()
        return judged

    def _round(self, data: Any) -> None:
        """All clients of this process train; the server adds up what all send."""
        h, network = self.hparams, self._encoder()
        private = h["weights"] == "private"
        if not private and not self.updates_are_free:
            self.ledger.spend(self.unprotected(UPDATES, "the weights of clients are not protected"))
        if self._updates is None:
            self._updates = self._asked(data)
        total = self._updates(network)
        if self.trainer.world_size > 1:
            total = total.to(self.device)
            torch.distributed.all_reduce(total)
        if private:
            total = gaussian(
                total,
                self.ledger,
                self.noise,
                key="client_updates",
                name=UPDATES,
                sensitivity=self._update_sensitivity(),
                noise_multiplier=float(self.update_noise),
                proof="client_update_sensitivity",
                record="graph of one client",
            )
        optimizer: Any = self.optimizers()
        parameters = list(network.parameters())
        pieces = torch.split(total, [parameter.numel() for parameter in parameters])
        for parameter, moved in zip(parameters, pieces, strict=True):
            parameter.grad = -moved.view_as(parameter).to(parameter)
        optimizer.step()
        self.rounds_made += 1

    def send_home(self) -> None:
        """End the processes of the clients, if there are any."""
        if self._flower is not None:
            self._flower.close()
            self._flower = self._updates = None

    def _asked(self, data: Any) -> Callable[[NodeEncoder], Tensor]:
        """What asks the clients, those of this process or in processes of their own, for a round."""
        processes = self.hparams["flower_processes"]
        inputs, edges = self.client_inputs(data)
        device = torch.device("cpu") if processes else self.device
        clients = holdings(self._parts(), inputs, edges, data.graph_of, self.labels.cpu(), device)
        settings = self._client_settings()
        if processes:
            shares = [clients[number::processes] for number in range(processes)]
            copied = copy.deepcopy(self._encoder()).cpu()
            self._flower = FlowerClients(shares, copied, settings)
            return self._flower.weighted_update
        mine = clients[self.global_rank :: self.trainer.world_size]
        return lambda network: weighted_update(network, mine, **settings)

    def updates_of(self, inputs: Tensor, edges: Tensor, graph_of: Tensor) -> Tensor:
        """What all clients would send if they held other records, as an audit supposes.

        Args:
            inputs: What the encoder reads of each node, shape ``(N, d)``.
            edges: Edges of shape ``(M, 2)``.
            graph_of: Number of each node's graph, shape ``(N,)``.

        Returns:
            Clipped updates times the weights of the clients, shape ``(C, K)``.
        """
        labels, settings, network = self.labels.cpu(), self._client_settings(), self._encoder()
        clients = holdings(self._parts(), inputs, edges, graph_of, labels, self.device)
        return torch.stack([weighted_update(network, [client], **settings) for client in clients])

    def client_of(self, graphs: Tensor) -> Tensor:
        """Number of the client that holds each graph, -1 where it teaches nothing: same shape."""
        owners = torch.full((len(self.sizes),), -1)
        for number, part in enumerate(self._parts()):
            owners[part] = number
        return owners[graphs]

    def _client_settings(self) -> dict[str, Any]:
        h = self.hparams
        return {
            "epochs": h["local_epochs"],
            "learning_rate": h["learning_rate"],
            "proximal": h["proximal"],
            "max_norm": h["max_update_norm"] if h["weights"] == "private" else None,
        }

    def _parts(self) -> list[Tensor]:
        """Numbers of the graphs of each client (public)."""
        h = self.hparams
        settings = (h["num_clients"], h["concentration"], h["split_seed"])
        return dealt(self.labels.cpu(), self.teaching.cpu(), *settings)

    def _update_sensitivity(self) -> float:
        parts = self._parts()
        largest = max(share_of(part, parts) for part in parts)
        return client_update_sensitivity(self.hparams["max_update_norm"], largest)

    def _planned_noise(self) -> float:
        """Noise multiplier of each round, so that all of them spend what the rest leaves."""
        planned = PrivacyLedger(self.relation)
        planned.budget = self.ledger.budget
        epsilon = self.budget.epsilon
        reserved = self.reserved_epsilon(epsilon)
        if math.isfinite(epsilon) and reserved:
            planned.spend(
                LedgerEntry(
                    name="reserved",
                    relation=self.relation,
                    mechanism="pure",
                    sensitivity=1,
                    epsilon=reserved,
                    proof="none: it is not released",
                )
            )
        return remaining_noise_multiplier(planned) * math.sqrt(int(self.rounds_planned))

    def _encoder(self) -> NodeEncoder:
        if self.network is None:
            raise MisconfigurationException("the encoder is made in fit, or loaded from a release")
        return self.network


def _built(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Hook of loading that makes the encoder for the widths of the state."""
    if isinstance(module, FederatedLearner) and module.network is None:
        feature_dim, num_classes = state[prefix + "dims"].tolist()
        module.build(feature_dim, num_classes)
