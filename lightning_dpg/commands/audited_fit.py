"""A fit on data with canaries, and what an attacker makes of it."""

import tempfile
from typing import Any, Literal, NamedTuple

import pytorch_lightning as pl
import torch
from torch import Tensor

from lightning_dpg.callbacks import ReleaseWriter
from lightning_dpg.callbacks.statement import privacy_statement
from lightning_dpg.cli import PrivateCLI
from lightning_dpg.commands.canaries import default_count, find_places, spread_non_edges
from lightning_dpg.commands.errors import CommandError
from lightning_dpg.commands.quiet import quiet
from lightning_dpg.methods.base import Synthesizer
from lightning_dpg.methods.graph_learner import GraphLearner
from lightning_dpg.privacy.noise import NoiseSource

View = Literal["released", "transcript"]


class Outcome(NamedTuple):
    """What one fit claims, and how its canaries were scored."""

    method: str
    epsilon: float
    delta: float
    scores: Tensor
    inserted: Tensor


def audited_fit(
    args: list[str], canaries: int | None, view: View, world: bool | None = None
) -> Outcome:
    """Fit as ``fit`` does, but with canaries among the training edges, in a folder that is removed.

    Args:
        args: Command line of ``fit``.
        canaries: Number of canaries; by default half the number of nodes, of a set one for each
            graph, and 1,000 at most.
        view: Whether the attacker sees the release, or every noisy value.
        world: Whether the canaries are in; by default a secret fair coin decides on each.
    """
    with tempfile.TemporaryDirectory() as folder, quiet():
        fit = _AuditedFit(
            ["fit", *args, "--trainer.default_root_dir", folder], canaries, view, world
        )
        method, statement = fit.model, privacy_statement(fit.model)
    with torch.no_grad():
        scores = fit.evidence
        if view == "released":
            scores = method.eval().audit_score(fit.canaries, fit.known).double().cpu()
    return Outcome(
        statement["method"], float(statement["epsilon"]), statement["delta"], scores, fit.inserted
    )


class _AuditedFit(PrivateCLI):
    """``fit`` that leaves nothing behind.

    Attributes:
        canaries: Pairs of shape ``(P, 2)``.
        inserted: Which of them are training edges, shape ``(P,)``.
        known: Graph of the other training edges, on the nodes of all graphs.
        evidence: What the noisy values of the run say about each canary together.
    """

    def __init__(
        self, args: list[str], canaries: int | None, view: View, world: bool | None
    ) -> None:
        """Parse a command line and run it."""
        self._num_canaries, self._view, self._world = canaries, view, world
        super().__init__(args)

    def _read_data(self) -> pl.LightningDataModule:
        data: Any = super()._read_data()
        places = find_places(data)
        self.known, count = places.known, self._num_canaries
        if count is None:
            count = default_count(places)
        # Which pairs are canaries is public; whether they are edges is not.
        self.canaries = spread_non_edges(places, count, torch.Generator().manual_seed(0))
        if self._world is None:
            self.inserted = torch.from_numpy(NoiseSource().integers(2, count) == 1)
        else:
            self.inserted = torch.full((count,), self._world)
        places.insert(self.canaries[self.inserted])
        self.evidence = torch.zeros(count, dtype=torch.double)
        return data

    def before_instantiate_classes(self) -> None:
        """Drop what only a user's run needs."""
        trainer = self._settings.trainer
        trainer.callbacks, trainer.logger = None, False
        trainer.enable_checkpointing = trainer.enable_progress_bar = False
        trainer.enable_model_summary = False
        super().before_instantiate_classes()

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """A trainer that writes no release."""
        trainer = super().instantiate_trainer(**kwargs)
        trainer.callbacks = [  # type: ignore[attr-defined]
            callback
            for callback in trainer.callbacks  # type: ignore[attr-defined]
            if not isinstance(callback, ReleaseWriter)
        ]
        return trainer

    def before_fit(self) -> None:
        """Watch the releases."""
        if not isinstance(self.model, Synthesizer | GraphLearner):
            raise CommandError("audit asks for a method that publishes graphs or their features")
        if self._view == "transcript":
            self.model.ledger.witness = self._observe

    def _observe(self, name: str, noisy: Tensor) -> None:
        score = self.model.transcript_score(name, noisy, self.canaries, self.known)
        self.evidence += score.detach().double().cpu()
