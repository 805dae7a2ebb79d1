"""A fit on data with canaries that are rows, and the attacker's scores of their coins."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from torch import Tensor

from lightning_dpg.apps.audit.audit_arguments import View
from lightning_dpg.apps.audit.audited_fit import Outcome, coins_of, outcome_of
from lightning_dpg.apps.audit.canaries import RowCanaries, plant_rows
from lightning_dpg.apps.audit.scores.counts import table_scores
from lightning_dpg.classes import find_class
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.edge_statistics import exact_mixing
from lightning_dpg.graph.rows import count_pairs
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.single_graph.attributed import Attributed
from lightning_dpg.privacy.events import Relation
from lightning_dpg.run.fit import ReadData, fit_without_release

_LEAST_SCALE = 1e-6  # of a read without noise
_TABLES, _MIXING = "row_tables", "column_mixing"
_BOOKED = {_TABLES: _TABLES, _MIXING: "column_mixing_rows"}
"""Key of the entry of rows, by that under which a noisy value is published."""


class RowAttacker:
    """Observer of a ledger that scores the coins of rows by the noisy tables and the noisy mixing.

    It knows all edges, and all rows but those of the canaries. A row that is changed moves some cells
    by known numbers. The scores are the log-likelihood ratios of discrete Laplace noise of the scale
    that the ledger names.

    Attributes:
        scores: Scores of each canary, higher for its second row, by the key of the ledger.
    """

    def __init__(self, method: Attributed, data: Any, canaries: RowCanaries) -> None:
        """Watch a method before its first read.

        Args:
            method: The method.
            data: Data module with the edges of the fit.
            canaries: The canaries, whose coins are secret.
        """
        self.scores: dict[str, Tensor] = {}
        self._method, self._canaries = method, canaries
        self._edges = data.edges.numpy()
        self._degrees = np.bincount(self._edges.ravel(), minlength=len(canaries.known))
        method.ledger.observer = self

    def __call__(self, key: str, noisy: Tensor) -> None:
        """Score a noisy value that is released under ``key``."""
        if key not in _BOOKED:
            return
        before = self._count(key, self._canaries.known)
        changes = []
        for node, second in zip(self._canaries.nodes, self._canaries.second, strict=True):
            rows = self._canaries.known.copy()
            rows[node] = second
            changes.append(csr_array((self._count(key, rows) - before)[None]))
        surplus = noisy.cpu().numpy() - before
        scale = max(self._method.ledger.last_entry(key).scale, _LEAST_SCALE)
        rates = np.full(len(before), 1 / scale)
        found = table_scores(surplus, csr_array(vstack(changes)), rates)
        self.scores[_BOOKED[key]] = torch.from_numpy(found)

    def _count(self, key: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count what is released under a key, of any rows."""
        sizes = [len(values) for values in self._method.hparams["domains"].values()]
        if key == _MIXING:
            weight = self._method.hparams["max_weight"]
            return exact_mixing(self._edges, self._degrees, rows, sizes, weight)
        groups = self._method.released_groups()
        all_sizes = [int(self._method.degree_groups.max()) + 1, *sizes]
        return count_pairs(np.column_stack([groups, rows]), all_sizes)

    def outcome(self, inserted: Tensor) -> Outcome:
        """Return the claims of rows, and the scores by each read.

        Args:
            inserted: Which canaries have their second row, shape ``(P,)``.
        """
        budget = self._method.ledger.budget_of(Relation.ATTRIBUTES)
        assert budget is not None  # a fit without one is refused
        return outcome_of(self._method, Relation.ATTRIBUTES, budget, inserted, self.scores)


def audited_row_fit(
    settings: Mapping[str, Any],
    canaries: int | None,
    view: View,
    world: bool | None = None,
    seed: int = 0,
    read: ReadData | None = None,
) -> Outcome:
    """Fit a configuration whose canaries are rows, and leave nothing behind.

    Args:
        settings: Complete configuration of a fit.
        canaries: Number of canaries; by default four for each two values of a column.
        view: View of the attacker, ``white_box``.
        world: Whether the canaries have their second row; by default a secret fair coin decides on
            each.
        seed: Public seed of the choice of nodes.
        read: Function that reads the data anew; by default they are those of the configuration.

    Raises:
        CommandError: If the method reads no private column, or in another view.
    """
    method_class = find_class(settings["model"]["class_path"])
    if not issubclass(method_class, Attributed):
        raise CommandError(
            f"audit under the relation attributes: {method_class.__name__} draws no private columns\n"
            "take Attributed, or leave --relation out"
        )
    if view != "white_box":
        raise CommandError(
            "audit under the relation attributes scores noisy values: set --view white_box"
        )
    weight = int((settings["model"].get("init_args") or {}).get("max_weight", 4))
    planted: list[tuple[pl.LightningDataModule, RowCanaries, Tensor]] = []
    attackers: list[RowAttacker] = []

    def plant(data: Any) -> None:
        # Nodes and their two rows are public; which of them a node has is secret.
        found = plant_rows(data, weight, canaries, torch.Generator().manual_seed(seed))
        inserted = coins_of(len(found.nodes), world)
        found.insert(data, inserted.numpy())
        planted.append((data, found, inserted))

    def watch(method: PrivateModule) -> None:
        assert isinstance(method, Attributed)
        attackers.append(RowAttacker(method, *planted[0][:2]))

    fit_without_release(settings, on_data=plant, on_start=watch, read=read)
    return attackers[0].outcome(planted[0][2])
