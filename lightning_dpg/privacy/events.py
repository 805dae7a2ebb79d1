"""What the ledger books: entries, each a read of the private data under one relation.

An event is one step of a mechanism. Each mechanism has a class of its own, which knows what a step
costs. An entry adds what is released, under which relation and how often. Journals, checkpoints and
statements hold entries as flat values, whose names stay readable for later versions.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Literal, Never

import numpy as np

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy import accounting
from lightning_dpg.privacy.accounting import ORDERS, Curve
from lightning_dpg.privacy.entry_keys import key_of_name

_LEAST_NOISE = 1e-150  # the square of the quotient of less is no number

Mechanism = Literal["gaussian", "pure", "approximate", "non_private"]


class Relation(StrEnum):
    """Which two inputs a guarantee makes hard to tell apart. The node set is public throughout."""

    EDGE = "edge"
    """One undirected edge is added or removed."""
    NODE = "node"
    """All edges of one node are removed; the node stays."""
    LOCAL_GRAPH = "local_graph"
    """The graph of one client is exchanged for any other."""

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise Refusal(f"unknown relation {str(value)!r}: this version has {', '.join(cls)}")


@dataclass(frozen=True)
class Event(ABC):
    """One step of a mechanism. The fields of a class are the amounts that its cost depends on."""

    mechanism: ClassVar[Mechanism]

    @abstractmethod
    def curve(self) -> Curve:
        """Renyi curve at ``ORDERS``, where the step does not fail."""

    @property
    @abstractmethod
    def why_void(self) -> str:
        """Why the step protects nothing, where it does not."""

    @property
    def protects(self) -> bool:
        """Whether the Renyi divergence of some order is finite."""
        return bool(np.isfinite(self.curve()).any())

    @property
    def pure_epsilon(self) -> float:
        """Epsilon at any delta; 0 for Gaussian noise, which is accounted beside it."""
        return 0.0

    @property
    def total_delta(self) -> float:
        """Probability at most with which the step fails and gives all away."""
        return 0.0

    @property
    def squared_mu(self) -> float:
        """Square of the Gaussian-DP parameter without sampling; 0 for other noise."""
        return 0.0


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise on a Poisson sample of the records, or on all of them.

    Attributes:
        noise_multiplier: Standard deviation over the L2 sensitivity; 0 is no privacy.
        sample_rate: Probability with which the protected record is drawn.
    """

    noise_multiplier: float
    sample_rate: float = 1.0
    mechanism: ClassVar[Mechanism] = "gaussian"

    def curve(self) -> Curve:
        """Renyi curve of the sampled Gaussian mechanism."""
        return accounting.rdp_gaussian(self.noise_multiplier, self.sample_rate)

    @property
    def why_void(self) -> str:
        """That the noise is none, or too little for a finite curve."""
        return f"{self.mechanism} {self.noise_multiplier:g} protects nothing"

    @property
    def squared_mu(self) -> float:
        """Square of the Gaussian-DP parameter without sampling."""
        # The square of the quotient: that of a huge multiplier alone would overflow.
        if self.noise_multiplier < _LEAST_NOISE:
            return math.inf
        squared = (1 / self.noise_multiplier) ** 2
        return squared if math.isinf(self.noise_multiplier) else max(squared, accounting.LEAST)


@dataclass(frozen=True)
class Pure(Event):
    """Any epsilon-DP mechanism: discrete Laplace noise, randomized response, a private choice.

    Attributes:
        epsilon: Cost; infinite is no privacy.
    """

    epsilon: float
    mechanism: ClassVar[Mechanism] = "pure"

    def curve(self) -> Curve:
        """Renyi curve of randomized response, the largest of its epsilon."""
        return accounting.rdp_pure(self.epsilon)

    @property
    def why_void(self) -> str:
        """That epsilon is infinite."""
        return f"{self.mechanism} {self.epsilon:g} protects nothing"

    @property
    def pure_epsilon(self) -> float:
        """Epsilon at any delta, where the step does not fail."""
        return self.epsilon


@dataclass(frozen=True)
class Approximate(Pure):
    """A mechanism that is epsilon-DP unless it fails; it composes as that, and its delta is added.

    Attributes:
        epsilon: Cost where it does not fail.
        delta: Probability at most with which it fails.
    """

    delta: float
    mechanism: ClassVar[Mechanism] = "approximate"

    @property
    def total_delta(self) -> float:
        """Probability at most with which the step fails."""
        return self.delta


@dataclass(frozen=True)
class NonPrivate(Event):
    """A read without any protection.

    Attributes:
        proof: Why the read is not private.
    """

    proof: str
    mechanism: ClassVar[Mechanism] = "non_private"

    def curve(self) -> Curve:
        """Infinite at all orders."""
        return np.full_like(ORDERS, np.inf)

    @property
    def why_void(self) -> str:
        """The proof, which says it."""
        return self.proof

    @property
    def pure_epsilon(self) -> float:
        """Infinite."""
        return math.inf


_EVENTS = {event.mechanism: event for event in (Gaussian, Pure, Approximate, NonPrivate)}


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One read of the private data, or several equal ones (public).

    Attributes:
        name: What is released, for people.
        relation: Neighboring relation of the guarantee.
        mechanism: Class of the event; ``pure`` is any epsilon-DP mechanism, and ``approximate`` one
            that is so unless it fails, with probability ``delta``.
        sensitivity: Largest change of the released value between neighbors (L2 for ``gaussian``).
        proof: Where the sensitivity is proved, or why the read is not private.
        noise_multiplier: Standard deviation of ``gaussian`` noise over the sensitivity.
        epsilon: Cost of one step of a ``pure`` or an ``approximate`` mechanism.
        delta: Probability with which one step of an ``approximate`` mechanism fails.
        sample_rate: Probability with which Poisson sampling draws the protected record.
        steps: Number of times.
        record: What is one record.
        public: Public parameters.
        key: Stable name of the release, by which programs find the entry. Entries that version 0.1.0
            wrote have none: theirs follows from ``name``.
    """

    name: str
    relation: Relation
    mechanism: Mechanism
    sensitivity: float
    proof: str
    noise_multiplier: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0
    sample_rate: float = 1.0
    steps: int = 1
    record: str = "undirected edge"
    public: dict[str, float | int | str] = field(default_factory=dict)
    key: str = ""

    def __post_init__(self) -> None:
        """Settle the key, and refuse what the accountants do not cover."""
        if not self.key:
            object.__setattr__(self, "key", key_of_name(self.name))
        if self.mechanism not in _EVENTS:
            raise Refusal(
                f"{self.name}: unknown mechanism {self.mechanism!r}: this version accounts for "
                f"{', '.join(_EVENTS)}"
            )
        if self.steps < 1:
            raise Refusal(f"{self.name}: steps must be positive, got {self.steps}")
        if not self.sensitivity >= 0 or not self.noise_multiplier >= 0 or not self.epsilon >= 0:
            raise Refusal(f"{self.name}: sensitivity, noise and epsilon must not be negative")
        if not 0 <= self.delta < 1 or self.delta != self.event.total_delta:
            raise Refusal(f"{self.name}: no delta {self.delta} of mechanism {self.mechanism}")
        if not 0 < self.sample_rate <= 1:
            raise Refusal(f"{self.name}: sample_rate must be in (0, 1], got {self.sample_rate}")
        if self.sample_rate < 1 and isinstance(self.event, Pure):
            raise Refusal(f"{self.name}: sampling is accounted for Gaussian noise only")
        # A record is in the sample or not: the curve is that of adding or removing one.
        is_sampled = self.sample_rate < 1 and isinstance(self.event, Gaussian)
        if is_sampled and self.relation is not Relation.EDGE:
            raise Refusal(
                f"{self.name}: sampling is accounted for adding or removing one record "
                f"({Relation.EDGE}), not for the relation {self.relation}"
            )

    @cached_property
    def event(self) -> Event:
        """One step; its amounts are those of the entry that have the same names."""
        kind = _EVENTS[self.mechanism]
        return kind(**{amount.name: getattr(self, amount.name) for amount in fields(kind)})

    def curve(self) -> Curve:
        """Renyi curve of all steps, where none of them fails."""
        return self.steps * self.event.curve()

    @property
    def pure_epsilon(self) -> float:
        """Sum of the epsilons of all steps; 0 for Gaussian noise, which is accounted beside it."""
        return self.steps * self.event.pure_epsilon

    @property
    def total_delta(self) -> float:
        """Probability at most with which some step fails."""
        return self.steps * self.event.total_delta

    @property
    def squared_mu(self) -> float:
        """Square of the Gaussian-DP parameter of all steps without sampling; 0 for other noise."""
        return self.steps * self.event.squared_mu

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return asdict(self) | {"relation": self.relation.value}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> "LedgerEntry":
        """The entry that ``to_dict`` was called on, here or by an earlier version.

        Raises:
            Refusal: If it has a mechanism, a relation or a partition that is not accounted for.
        """
        values = {key: value for key, value in state.items() if key != "partition"}
        if state.get("partition") is not None:  # versions up to 0.1.0 composed parts in parallel
            raise Refusal(
                f"{state['name']}: this version does not account for parts that compose in "
                f"parallel, as those of the partition {state['partition']}"
            )
        return cls(**values | {"relation": Relation(state["relation"])})
