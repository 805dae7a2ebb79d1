"""What the ledger books: entries, each a read of the private data under one relation."""

import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal

import numpy as np

from lightning_dpg.privacy import accounting
from lightning_dpg.privacy.accounting import ORDERS, Curve
from lightning_dpg.privacy.entry_keys import key_of_name


class Relation(StrEnum):
    """Which two inputs a guarantee makes hard to tell apart. The node set is public throughout."""

    EDGE = "edge"
    """One undirected edge is added or removed."""
    EDGE_REPLACE = "edge_replace"
    """One undirected edge is moved; the number of edges is public."""
    NODE = "node"
    """All edges of one node are removed; the node stays."""
    GRAPH = "graph"
    """One graph of a set of graphs is added or removed."""
    LOCAL_GRAPH = "local_graph"
    """The graph of one client is exchanged for any other."""
    LOCAL_NODE = "local_node"
    """What one node holds is exchanged for anything else."""


# A record is in the sample or not: the curve of the sampled Gaussian is for adding or removing it.
_SAMPLED = frozenset({Relation.EDGE, Relation.GRAPH})
# One change may fall into two parts of a partition, so that these would pay for both.
_STRADDLING = frozenset({Relation.EDGE_REPLACE, Relation.NODE})


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One read of the private data, or several equal ones (public).

    Attributes:
        name: What is released, for people.
        relation: Neighboring relation of the guarantee.
        mechanism: How noise was added; ``pure`` is any epsilon-DP mechanism, and ``approximate`` one
            that is so but for an event of probability ``delta``.
        sensitivity: Largest change of the released value between neighbors (L2 for ``gaussian``,
            L1 for ``laplace``).
        proof: Where the sensitivity is proved, or why the read is not private.
        noise_multiplier: Standard deviation (gaussian) or scale (laplace) over the sensitivity.
        epsilon: Cost of one step of a ``pure`` or an ``approximate`` mechanism.
        delta: Probability with which one step of an ``approximate`` mechanism fails.
        sample_rate: Probability with which Poisson sampling draws the protected record.
        steps: Number of times.
        record: What is one record.
        partition: Group and part: the parts of one group read disjoint records, which are assigned
            to parts without looking at other records, and compose in parallel.
        public: Public parameters.
        key: Stable name of the release, by which programs find the entry. Entries that version 0.1.0
            wrote have none: theirs follows from ``name``.
    """

    name: str
    relation: Relation
    mechanism: Literal["gaussian", "laplace", "pure", "approximate", "non_private"]
    sensitivity: float
    proof: str
    noise_multiplier: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0
    sample_rate: float = 1.0
    steps: int = 1
    record: str = "undirected edge"
    partition: tuple[str, str] | None = None
    public: dict[str, float | int | str] = field(default_factory=dict)
    key: str = ""

    def __post_init__(self) -> None:
        """Settle the key, and refuse what the accountants do not cover."""
        if not self.key:
            object.__setattr__(self, "key", key_of_name(self.name))
        if self.mechanism not in ("gaussian", "laplace", "pure", "approximate", "non_private"):
            raise ValueError(f"{self.name}: unknown mechanism {self.mechanism!r}")
        if self.steps < 1:
            raise ValueError(f"{self.name}: steps must be positive, got {self.steps}")
        if not self.sensitivity >= 0 or not self.noise_multiplier >= 0 or not self.epsilon >= 0:
            raise ValueError(f"{self.name}: sensitivity, noise and epsilon must not be negative")
        if not 0 <= self.delta < 1 or (self.delta and self.mechanism != "approximate"):
            raise ValueError(f"{self.name}: no delta {self.delta} of mechanism {self.mechanism}")
        if not 0 < self.sample_rate <= 1:
            raise ValueError(f"{self.name}: sample_rate must be in (0, 1], got {self.sample_rate}")
        if self.sample_rate < 1 and self.mechanism in ("laplace", "pure", "approximate"):
            raise ValueError(f"{self.name}: sampling is accounted for Gaussian noise only")
        if self.sample_rate < 1 and self.mechanism == "gaussian" and self.relation not in _SAMPLED:
            raise ValueError(
                f"{self.name}: sampling is accounted for adding or removing one record "
                f"({', '.join(sorted(_SAMPLED))}), not for the relation {self.relation}"
            )
        if self.partition is not None and self.relation in _STRADDLING:
            raise ValueError(
                f"{self.name}: the relation {self.relation} can change two parts of a partition "
                "at once, which then do not compose in parallel"
            )

    def curve(self) -> Curve:
        """Renyi curve of all steps, where none of them fails."""
        match self.mechanism:
            case "gaussian":
                return self.steps * accounting.rdp_gaussian(self.noise_multiplier, self.sample_rate)
            case "laplace":
                return self.steps * accounting.rdp_laplace(self.noise_multiplier)
            case "pure" | "approximate":
                return self.steps * accounting.rdp_pure(self.epsilon)
            case _:
                return np.full_like(ORDERS, np.inf)

    def pure_epsilon(self) -> float:
        """Sum of the epsilons of all steps; 0 for Gaussian noise, which is accounted beside it."""
        match self.mechanism:
            case "gaussian":
                return 0.0
            case "laplace":
                return self.steps / self.noise_multiplier if self.noise_multiplier else math.inf
            case "pure" | "approximate":
                return self.steps * self.epsilon
            case _:
                return math.inf

    def failure(self) -> float:
        """Probability at most with which some step of an ``approximate`` mechanism fails."""
        return self.steps * self.delta

    def squared_mu(self) -> float:
        """Square of the Gaussian-DP parameter of all steps without sampling; 0 for other noise."""
        if self.mechanism != "gaussian":
            return 0.0
        if self.noise_multiplier == 0:
            return math.inf
        return self.steps / self.noise_multiplier**2

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        partition = None if self.partition is None else list(self.partition)
        return asdict(self) | {"relation": self.relation.value, "partition": partition}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> "LedgerEntry":
        """The entry that ``to_dict`` was called on."""
        partition = state["partition"]
        return cls(
            **state
            | {
                "relation": Relation(state["relation"]),
                "partition": None if partition is None else (partition[0], partition[1]),
            }
        )
