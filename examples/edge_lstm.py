"""A method of your own, trained by DP-SGD: an embedding and an LSTM score pairs of nodes.

The record is one edge, so ``edge_gradient_sensitivity`` is the proof. Run it with ``python -m examples.edge_lstm``.
"""

import pytorch_lightning as pl
import torch
from opacus.layers import DPLSTM
from pytorch_lightning.core.optimizer import LightningOptimizer
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Adam, Optimizer

import lightning_dpg as dpg
from lightning_dpg.interfaces import BatchRequest
from lightning_dpg.methods.base import public_backward
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.sampling import PoissonBatch
from lightning_dpg.privacy.sensitivity.fitting import edge_gradient_sensitivity


class PairNetwork(nn.Module):
    """Log odds of pairs of nodes, shape ``(B, 2)`` to ``(B,)``."""

    def __init__(self, num_nodes: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_nodes, width)
        self.lstm = DPLSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, pairs: Tensor) -> Tensor:
        """Score pairs."""
        states, _ = self.lstm(self.embedding(pairs))
        odds: Tensor = self.out(states[:, -1])[:, 0]
        return odds


def edge_loss(network: nn.Module, edges: Tensor) -> Tensor:
    """One loss for each edge; the network is a copy in double precision."""
    return -functional.logsigmoid(network(edges))


class EdgeLSTM(Synthesizer):
    """An embedding and an LSTM, trained on edges by DP-SGD."""

    def __init__(
        self, num_nodes: int, num_edges: int, width: int = 8, sample_rate: float = 0.1
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.network = PairNetwork(num_nodes, width)
        self.dpsgd = PrivateTraining(
            "edge_gradient",
            "gradient of edges",
            edge_gradient_sensitivity,
            noise_multiplier="auto",
            max_grad_norm=1.0,
            sample_rate=sample_rate,
        )

    def batch_request(self) -> BatchRequest:
        """Ask for Poisson samples of edges."""
        return BatchRequest("poisson", self.hparams["sample_rate"])

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """All reads of a run of ``steps`` steps."""
        return self.dpsgd.planned(budget, steps)

    def on_fit_start(self) -> None:
        """Begin the private training."""
        super().on_fit_start()
        self.dpsgd.begin(self)

    def step_entries(self) -> list[LedgerEntry]:
        """What one step costs."""
        return [self.dpsgd.entry]

    def configure_optimizers(self) -> Optimizer:
        """Adam."""
        return Adam(self.network.parameters(), 0.05)

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> None:
        """Learn edges at a cost, and random pairs at none."""
        edges = self.dpsgd.drawn(batch)
        optimizer = self.optimizers()
        assert isinstance(optimizer, LightningOptimizer)  # configure_optimizers returns one
        optimizer.zero_grad()
        self.dpsgd.backward_network(
            self.network,
            edge_loss,
            (edges,),
            ledger=self.ledger,
            noise=self.noise,
            expected_size=self.hparams["sample_rate"] * self.hparams["num_edges"],
        )
        pairs = torch.randint(self.hparams["num_nodes"], (64, 2))
        loss = -functional.logsigmoid(-self.network(pairs)).mean()
        public_backward(self, loss, list(self.network.parameters()))
        optimizer.step()

    def score(self, pairs: Tensor) -> Tensor:
        """Scores of pairs, whose order does not matter."""
        scores: Tensor = self.network(pairs) + self.network(pairs.flip(1))
        return scores

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """The pairs with the largest scores."""
        pairs = torch.combinations(torch.arange(self.hparams["num_nodes"]))
        return pairs[self.score(pairs).topk(self.hparams["num_edges"]).indices]

    def released_state(self) -> dict[str, Tensor]:
        """The weights of the network."""
        return {f"network.{name}": p.detach() for name, p in self.network.named_parameters()}


def release() -> dpg.Release:
    """Fit the method on the karate club."""
    trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False)
    return dpg.fit(
        "karate", EdgeLSTM, epsilon=4.0, delta=1e-4, trainer=trainer, num_nodes=34, num_edges=78
    )


if __name__ == "__main__":
    print(release())
