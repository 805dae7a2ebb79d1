"""A fit on data with canaries, and what an attacker makes of it."""

import tempfile
from typing import Any, Literal, NamedTuple

import pytorch_lightning as pl
import torch
from torch import Tensor

from lightning_dpg.auditing.canaries import default_count, find_places, spread_non_edges
from lightning_dpg.callbacks import ReleaseWriter
from lightning_dpg.callbacks.statement import privacy_statement
from lightning_dpg.cli import PrivateCLI
from lightning_dpg.cli.quiet import quiet
from lightning_dpg.errors import CommandError
from lightning_dpg.methods.base import Synthesizer
from lightning_dpg.methods.graph_features.base import GraphFeatureRelease
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource

View = Literal["released", "transcript"]


class Evidence(NamedTuple):
    """What an attacker makes of one release, or of all of them together.

    Attributes:
        epsilon: What is claimed. A release may depend on those before it, so that the claim is for
            all of these.
        scores: How much speaks for each canary being in, shape ``(P,)``.
    """

    epsilon: float
    scores: Tensor

    @property
    def is_scored(self) -> bool:
        """Whether the attacker makes anything of it."""
        return bool((self.scores != 0).any())


class Outcome(NamedTuple):
    """What fits claim, and how their canaries were scored.

    Attributes:
        method: Name of the method.
        delta: Delta of all claims.
        inserted: Which canaries were in, shape ``(P,)``.
        together: Evidence of all releases together.
        apart: Evidence of each release by its name in the ledger; none in the view ``released``.
    """

    method: str
    delta: float
    inserted: Tensor
    together: Evidence
    apart: dict[str, Evidence]


def audited_fit(
    args: list[str],
    canaries: int | None,
    view: View,
    world: bool | None = None,
    seed: int = 0,
) -> Outcome:
    """Fit as ``fit`` does, but with canaries among the training edges, in a folder that is removed.

    Args:
        args: Command line of ``fit``.
        canaries: Number of canaries; by default half the number of nodes, of a set one for each
            graph, and 1,000 at most.
        view: Whether the attacker sees the end result, or each noisy value that a method scores.
        world: Whether the canaries are in; by default a secret fair coin decides on each.
        seed: Public seed of which pairs are canaries.
    """
    with tempfile.TemporaryDirectory() as folder, quiet():
        fit = _AuditedFit(
            ["fit", *args, "--trainer.default_root_dir", folder], canaries, view, world, seed
        )
        method, statement = fit.model, privacy_statement(fit.model)
    epsilon, delta = float(statement["epsilon"]), float(statement["delta"])
    apart: dict[str, Evidence] = {}
    if view == "released":
        with torch.no_grad():
            scores = method.eval().audit_score(fit.canaries, fit.known).double().cpu()
    else:
        nothing = torch.zeros(len(fit.canaries), dtype=torch.double)
        scores = sum(fit.scores.values(), nothing)
        apart = {
            name: Evidence(claim, fit.scores.get(name, nothing))
            for name, claim in _claims_so_far(method.ledger, delta, epsilon).items()
        }
    together = Evidence(epsilon, scores)
    return Outcome(statement["method"], delta, fit.inserted, together, apart)


def pooled(outcomes: list[Outcome]) -> Outcome:
    """The canaries of independent fits, each with coins of its own, as those of one mechanism.

    A coin concerns one of the fits only, so that all together claim no more than the largest claim.
    """

    def joined(parts: list[Evidence]) -> Evidence:
        return Evidence(max(p.epsilon for p in parts), torch.cat([p.scores for p in parts]))

    nothing = [Evidence(0.0, torch.zeros_like(one.together.scores)) for one in outcomes]
    names = dict.fromkeys(name for one in outcomes for name in one.apart)
    pairs = list(zip(outcomes, nothing, strict=True))
    return Outcome(
        outcomes[0].method,
        max(one.delta for one in outcomes),
        torch.cat([one.inserted for one in outcomes]),
        joined([one.together for one in outcomes]),
        {name: joined([one.apart.get(name, empty) for one, empty in pairs]) for name in names},
    )


def _claims_so_far(ledger: PrivacyLedger, delta: float, epsilon: float) -> dict[str, float]:
    """Epsilon of each release and all before it, by name; that of all releases is ``epsilon``."""
    claims: dict[str, float] = {}
    for place, entry in enumerate(ledger.entries, 1):
        prefix = PrivacyLedger(ledger.relation)
        prefix.entries = ledger.entries[:place]
        is_all = place == len(ledger.entries)
        claims[entry.name] = epsilon if is_all else min(prefix.epsilon(delta), epsilon)
    return claims


class _AuditedFit(PrivateCLI):
    """``fit`` that leaves nothing behind.

    Attributes:
        canaries: Pairs of shape ``(P, 2)``.
        inserted: Which of them are training edges, shape ``(P,)``.
        known: Graph of the other training edges, on the nodes of all graphs.
        scores: What the noisy values of each name say about each canary.
    """

    def __init__(
        self, args: list[str], canaries: int | None, view: View, world: bool | None, seed: int
    ) -> None:
        """Parse a command line and run it."""
        self._num_canaries, self._view, self._world, self._seed = canaries, view, world, seed
        self.scores: dict[str, Tensor] = {}
        super().__init__(args)

    def _read_data(self) -> pl.LightningDataModule:
        data: Any = super()._read_data()
        places = find_places(data)
        self.known, count = places.known, self._num_canaries
        if count is None:
            count = default_count(places)
        # Which pairs are canaries is public; whether they are edges is not.
        self.canaries = spread_non_edges(places, count, torch.Generator().manual_seed(self._seed))
        if self._world is None:
            self.inserted = torch.from_numpy(NoiseSource().integers(2, count) == 1)
        else:
            self.inserted = torch.full((count,), self._world)
        places.insert(self.canaries[self.inserted])
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
        if not isinstance(self.model, Synthesizer | GraphFeatureRelease):
            raise CommandError("audit asks for a method that publishes graphs or their features")
        if self._view == "transcript":
            self.model.ledger.observer = self._observe

    def _observe(self, key: str, noisy: Tensor) -> None:
        score = self.model.transcript_score(key, noisy, self.canaries, self.known)
        name = self.model.ledger.last_entry(key).name
        self.scores[name] = self.scores.get(name, 0) + score.detach().double().cpu()
