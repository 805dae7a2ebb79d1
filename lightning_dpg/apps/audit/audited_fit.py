"""A fit on data with canaries, and the attacker's scores of the canaries."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.apps.audit.audit_arguments import View
from lightning_dpg.apps.audit.canaries import (
    CanarySites,
    default_count,
    find_sites,
    make_twins,
    plant_stars,
    spread_non_edges,
    star_of,
)
from lightning_dpg.apps.audit.scores.attackers import black_box_score, white_box_score
from lightning_dpg.apps.audit.scores.columns import COUNTS
from lightning_dpg.apps.audit.scores.observation import Observation, scored_part
from lightning_dpg.classes import find_class
from lightning_dpg.errors import CommandError
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.graph_features import GraphFeatureRelease
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.single_graph.attributed import Attributed
from lightning_dpg.methods.single_graph.protected_unit import transfers_of
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.composition import tight_delta
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.release.statement import privacy_statement
from lightning_dpg.run.fit import ReadData, fit_without_release

_PUBLISHES = Synthesizer | GraphFeatureRelease | NodeClassifier
# Delta of interest at an epsilon of 0.
_RESOLUTION = 1e-3


class Claim(NamedTuple):
    """What a ledger claims of a release and all earlier ones, on which it may depend.

    Attributes:
        epsilon: Claimed epsilon.
        share: Largest expected share of right guesses of a fair coin: (1 + delta) / 2, where delta
            is that of an epsilon of 0.
    """

    epsilon: float
    share: float


class CanaryScores(NamedTuple):
    """Scores of the canaries by one read, or by all reads together.

    Attributes:
        name: Name of the release, for people.
        claim: Claim that the scores test.
        scores: Score of each canary, higher for an edge, shape ``(P,)``.
    """

    name: str
    claim: Claim
    scores: Tensor

    @property
    def is_scored(self) -> bool:
        """Whether any canary has a score."""
        return bool((self.scores != 0).any())


class Outcome(NamedTuple):
    """Claims of the fits, and the scores of their canaries.

    Attributes:
        method: Name of the method.
        delta: Delta of all claims.
        inserted: Which canaries were in, shape ``(P,)``.
        together: Scores by all reads together.
        apart: Scores by each release, by its key in the ledger; none in the view ``black_box``.
    """

    method: str
    delta: float
    inserted: Tensor
    together: CanaryScores
    apart: dict[str, CanaryScores]


class WhiteBoxAttacker:
    """Observer of a ledger that scores the canaries by every noisy value when it is released.

    Attributes:
        scores: Sums of the scores by all values of each key, each sum of shape ``(P,)``.
    """

    def __init__(
        self, method: PrivateModule, data: pl.LightningDataModule, pairs: Tensor, known_graph: Data
    ) -> None:
        """Watch a method.

        Args:
            method: The method, before its first release.
            data: Its data module.
            pairs: Canaries of shape ``(P, 2)``, or of D edges each, shape ``(P, D, 2)``; a fair coin
                has decided on each.
            known_graph: Graph of all other edges, which the attacker knows.
        """
        self.scores: dict[str, Tensor] = {}
        self._method, self._data, self._pairs, self._known_graph = method, data, pairs, known_graph
        self._earlier: dict[str, Tensor] = {}
        method.ledger.observer = self

    def __call__(self, key: str, noisy: Tensor) -> None:
        """Score a noisy value that is released under ``key``."""
        entry = self._method.ledger.last_entry(key)
        others = self._earlier, self._data, self._pairs, self._known_graph
        part = self._method if key in COUNTS else scored_part(self._method)
        score = white_box_score(Observation(part, entry, noisy, *others))
        self.scores[key] = self.scores.get(key, 0) + score.detach().double().cpu()
        self._earlier[key] = noisy

    def outcome(self, inserted: Tensor, delta: float, epsilon: float) -> Outcome:
        """Return the claim of the method, and the scores by each of its releases.

        Args:
            inserted: Which canaries were in, shape ``(P,)``.
            delta: Delta of the claim.
            epsilon: Epsilon of all releases.
        """
        budget = Budget(epsilon, delta)
        return outcome_of(self._method, self._method.relation, budget, inserted, self.scores)


def outcome_of(
    method: PrivateModule,
    relation: Relation,
    budget: Budget,
    inserted: Tensor,
    scores: Mapping[str, Tensor],
) -> Outcome:
    """Return the claims of all reads of a relation, and the scores by each.

    Args:
        method: The method after its fit.
        relation: Relation of the canaries.
        budget: Claim of all reads together.
        inserted: Which canaries were in, shape ``(P,)``.
        scores: Scores by the keys of the reads, each of shape ``(P,)``.
    """
    entries = method.ledger.of(relation)
    nothing = torch.zeros(len(inserted), dtype=torch.double)
    apart = {}
    for place, entry in enumerate(entries, 1):
        prefix = PrivacyLedger(relation)
        prefix.entries = entries[:place]
        is_all = place == len(entries)
        so_far = budget.epsilon if is_all else min(prefix.epsilon(budget.delta), budget.epsilon)
        claim = Claim(so_far, largest_share(prefix.entries))
        apart[entry.key] = CanaryScores(entry.name, claim, scores.get(entry.key, nothing))
    total = Claim(budget.epsilon, largest_share(entries))
    together = CanaryScores("all reads together", total, sum(scores.values(), nothing))
    return Outcome(type(method).__name__, budget.delta, inserted, together, apart)


def coins_of(count: int, world: bool | None) -> Tensor:
    """Decide which canaries are in: by secret fair coins, or all of them or none."""
    if world is not None:
        return torch.full((count,), world)
    return torch.from_numpy(NoiseSource().integers(2, count) == 1)


def audited_fit(
    settings: Mapping[str, Any],
    canaries: int | None,
    view: View,
    world: bool | None = None,
    seed: int = 0,
    read: ReadData | None = None,
) -> Outcome:
    """Fit a configuration with canaries among the training edges, and leave nothing behind.

    Args:
        settings: Complete configuration of a fit.
        canaries: Number of canaries; by default half the number of nodes, of a set one for each
            graph, and 1,000 at most. Stars take half of the nodes by default.
        view: View of the attacker, ``black_box`` or ``white_box``.
        world: Whether the canaries are in; by default a secret fair coin decides on each.
        seed: Public seed that selects the canary pairs.
        read: Function that reads the data anew; by default they are those of the configuration.
    """
    planted: list[tuple[pl.LightningDataModule, Data, Tensor, Tensor]] = []
    attackers: list[WhiteBoxAttacker] = []

    def plant(data: pl.LightningDataModule) -> None:
        # The pairs are public; their presence as edges is secret.
        sites, pairs = _choose(settings, data, canaries, torch.Generator().manual_seed(seed))
        inserted = coins_of(len(pairs), world)
        sites.insert(pairs[inserted].view(-1, 2))
        planted.append((data, sites.known_graph, pairs, inserted))

    def watch(method: PrivateModule) -> None:
        if not isinstance(method, _PUBLISHES):
            raise CommandError(
                "audit asks for a method that publishes graphs, their features or classes of nodes"
            )
        if view == "white_box":
            data, known_graph, pairs, _ = planted[0]
            attackers.append(WhiteBoxAttacker(method, data, pairs, known_graph))

    method = fit_without_release(settings, on_data=plant, on_start=watch, read=read)
    assert isinstance(method, _PUBLISHES)  # watch has refused others
    (data, known_graph, pairs, inserted), statement = planted[0], privacy_statement(method)
    epsilon, delta = float(statement["epsilon"]), float(statement["delta"])
    if view == "white_box":
        return attackers[0].outcome(inserted, delta, epsilon)
    with torch.no_grad():
        part = scored_part(method.eval())
        scores = black_box_score(part, data, pairs, known_graph).double().cpu()
    claim = Claim(epsilon, largest_share(method.ledger.of(method.relation)))
    together = CanaryScores("all reads together", claim, scores)
    return Outcome(statement["method"], delta, inserted, together, {})


def _choose(
    settings: Mapping[str, Any], data: Any, canaries: int | None, generator: torch.Generator
) -> tuple[CanarySites, Tensor]:
    """Choose the canaries that a method hides, each with the public data that show it best."""
    section, privacy = settings["model"], settings["privacy"]
    method: Any = find_class(section["class_path"])
    arguments, num_transfers = section.get("init_args") or {}, 1
    held = transfers_of(data.records) if issubclass(method, Attributed) else None
    if held is not None:
        num_transfers = method(**arguments).facts._replace(bounds=held.bounds).changes
    sites = find_sites(data, num_transfers)
    if method.relation is Relation.EDGES_OF_NODE:
        budget = Budget(float(privacy["epsilon"]), float(privacy["delta"] or 0.0))
        stars = plant_stars(data, star_of(method(**arguments), budget), canaries, generator)
        return find_sites(data), stars
    count = default_count(sites) if canaries is None else canaries
    pairs = spread_non_edges(sites, count, generator)
    make_twins(data, pairs)
    return sites, pairs


def pooled(outcomes: list[Outcome]) -> Outcome:
    """Pool the canaries of independent fits, each with its own coins, as canaries of one mechanism.

    Each coin concerns one fit only, so the pooled claim is the largest claim of a fit.
    """

    def joined(parts: list[CanaryScores]) -> CanaryScores:
        claim = Claim(*(max(each) for each in zip(*(part.claim for part in parts), strict=True)))
        names = [part.name for part in parts if part.name]
        return CanaryScores(names[0], claim, torch.cat([part.scores for part in parts]))

    keys = dict.fromkeys(key for one in outcomes for key in one.apart)

    def part(one: Outcome, key: str) -> CanaryScores:
        nothing = CanaryScores("", Claim(0.0, 0.0), torch.zeros_like(one.together.scores))
        return one.apart.get(key, nothing)

    return Outcome(
        outcomes[0].method,
        max(one.delta for one in outcomes),
        torch.cat([one.inserted for one in outcomes]),
        joined([one.together for one in outcomes]),
        {key: joined([part(one, key) for one in outcomes]) for key in keys},
    )


def largest_share(entries: Sequence[LedgerEntry]) -> float:
    """Largest expected share of right guesses of a fair coin that the reads allow."""
    return (1 + tight_delta(entries, 0.0, _RESOLUTION)) / 2
