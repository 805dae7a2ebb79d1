"""What a white-box attacker has at the moment of a release."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.privacy.events import LedgerEntry


class Observation(NamedTuple):
    """One noisy value, and what the attacker knows when it is released.

    Attributes:
        method: The method, with its public settings, its released tensors, and its networks as they
            are in the step.
        entry: The ledger entry that paid for the value.
        noisy: What was released.
        earlier: Noisy values that were released before, the last one of each key.
        data: The data module, of which a score reads public facts only.
        pairs: Canaries of shape ``(P, 2)``; a fair coin has decided on each.
        known: Graph of all other edges, which the attacker knows.
    """

    method: Any
    entry: LedgerEntry
    noisy: Tensor
    earlier: Mapping[str, Tensor]
    data: Any
    pairs: Tensor
    known: Data
