"""Entries of the ledger: each is a read of the private data under one relation.

An event is one step of a mechanism. Each mechanism has a class of its own, which knows what a step
costs. An entry holds its event, and adds what is read, under which relation and how often. Journals,
checkpoints and statements hold entries as flat values, whose names stay readable for later versions.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Literal, Never

import numpy as np

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy import accounting
from lightning_dpg.privacy.accounting import ORDERS, Curve

_LEAST_NOISE = 1e-150  # the square of the quotient of less is no number

Mechanism = Literal["gaussian", "pure", "approximate", "non_private"]


class Relation(StrEnum):
    """Pair of inputs that a guarantee makes hard to tell apart. The node set is always public."""

    EDGE = "edge"
    """One undirected edge is added or removed."""
    TRANSFER = "transfer"
    """One transfer, with its amount and its time, is added or removed. The edges are the pairs that have
    a transfer, so that it adds or removes one edge at most."""
    NODE = "node"
    """All edges of one node are removed; the node stays."""
    EDGES_OF_NODE = "edges_of_node"
    """At most D edges of one node are added or removed; its entries name the public number D."""
    LOCAL_GRAPH = "local_graph"
    """The graph of one client is exchanged for any other."""
    ATTRIBUTES = "attributes"
    """The private columns of one node, such as its label or age, are exchanged for any other values
    of their public domains. All edges stay. A missing value is one of the domain, but for labels it is
    public which nodes have one. This relation stands beside that of a method, with a budget of its
    own."""

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise Refusal(f"unknown relation {str(value)!r}: this version has {', '.join(cls)}")


RECORDS = {
    Relation.EDGE: "undirected edge",
    Relation.TRANSFER: "transfer with its amount and time",
    Relation.NODE: "edges of a node",
    Relation.EDGES_OF_NODE: "several edges of one node",
    Relation.LOCAL_GRAPH: "graph of one client",
    Relation.ATTRIBUTES: "private columns of one node",
}
"""One unit of protection, by the relation; entries can name it more exactly."""
PROVED_FOR = "proved for"
"""Public fact of a read that protects a transfer: the edge for which its price is proved."""
WITH_TRANSFERS = " with all its transfers"
"""Part of the record of a read of transfers under the relation of edges."""


@dataclass(frozen=True)
class Event(ABC):
    """One step of a mechanism. The fields of a class are the amounts that its cost depends on."""

    mechanism: ClassVar[Mechanism]

    @abstractmethod
    def curve(self) -> Curve:
        """Renyi curve at ``ORDERS``, where the step does not fail."""

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

    @property
    def sample_rate(self) -> float:
        """Probability with which the protected record is drawn."""
        return 1.0


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

    def __post_init__(self) -> None:
        """Refuse what the accountants do not cover."""
        if not self.noise_multiplier >= 0:
            raise Refusal(f"noise must not be negative, got {self.noise_multiplier}")
        if not 0 < self.sample_rate <= 1:
            raise Refusal(f"sample_rate must be in (0, 1], got {self.sample_rate}")

    def curve(self) -> Curve:
        """Renyi curve of the sampled Gaussian mechanism."""
        return accounting.rdp_gaussian(self.noise_multiplier, self.sample_rate)

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

    def __post_init__(self) -> None:
        """Refuse a negative cost."""
        if not self.epsilon >= 0:
            raise Refusal(f"epsilon must not be negative, got {self.epsilon}")

    def curve(self) -> Curve:
        """Renyi curve of randomized response, the largest of its epsilon."""
        return accounting.rdp_pure(self.epsilon)

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

    def __post_init__(self) -> None:
        """Refuse a negative cost, and a delta that is no probability below 1."""
        super().__post_init__()
        if not 0 <= self.delta < 1:
            raise Refusal(f"delta must be in [0, 1), got {self.delta}")

    @property
    def total_delta(self) -> float:
        """Probability at most with which the step fails."""
        return self.delta


@dataclass(frozen=True)
class NonPrivate(Event):
    """A read without any protection; the proof of its entry says why."""

    mechanism: ClassVar[Mechanism] = "non_private"

    def curve(self) -> Curve:
        """Infinite at all orders."""
        return np.full_like(ORDERS, np.inf)

    @property
    def pure_epsilon(self) -> float:
        """Infinite."""
        return math.inf


_EVENTS: dict[str, type[Event]] = {
    event.mechanism: event for event in (Gaussian, Pure, Approximate, NonPrivate)
}
# Flat values of an entry whose event has no such amount.
_AMOUNTS = {"noise_multiplier": 0.0, "epsilon": 0.0, "delta": 0.0, "sample_rate": 1.0}


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One read of the private data, or several equal ones (public).

    A plan holds the entries of a whole run, and the same entries are paid, see
    :func:`lightning_dpg.privacy.pay.pay`.

    Attributes:
        key: Stable name of the read, by which programs find the entry.
        name: What is read, for people.
        relation: Neighboring relation of the guarantee.
        event: Mechanism of one step, with its cost.
        sensitivity: Largest change of the value between neighbors (L2 for Gaussian noise).
        proof: Name of the function that proves the sensitivity, or why the read is not private.
        steps: Number of times.
        record: What is one record; by default it follows from the relation.
        public: Public parameters.
    """

    key: str
    name: str
    relation: Relation
    event: Event
    sensitivity: float
    proof: str
    steps: int = 1
    record: str = ""
    public: dict[str, float | int | str] = field(default_factory=dict)

    @classmethod
    def proved(
        cls,
        key: str,
        name: str,
        event: Event,
        proof: Callable[..., float],
        *arguments: object,
        relation: Relation = Relation.EDGE,
        record: str = "",
        public: dict[str, float | int | str] | None = None,
    ) -> "LedgerEntry":
        """Build the entry of a read whose sensitivity is ``proof(*arguments)``.

        Args:
            key: Stable name of the read.
            name: What is read, for people.
            event: Mechanism of one step, with its cost.
            proof: Function that bounds the sensitivity; its docstring proves the bound.
            *arguments: Arguments of the bound (public).
            relation: Neighboring relation of the guarantee.
            record: What is one record; by default it follows from the relation.
            public: Public parameters.
        """
        return cls(
            key=key,
            name=name,
            relation=relation,
            event=event,
            sensitivity=proof(*arguments),
            proof=proof.__name__,
            record=record,
            public=public or {},
        )

    def __post_init__(self) -> None:
        """Settle the record, and refuse what the accountants do not cover."""
        if not self.record:
            object.__setattr__(self, "record", RECORDS[self.relation])
        if self.steps < 1:
            raise Refusal(f"{self.name}: steps must be positive, got {self.steps}")
        if not self.sensitivity >= 0:
            raise Refusal(f"{self.name}: sensitivity must not be negative, got {self.sensitivity}")
        # A record is in the sample or not: the curve is that of adding or removing one.
        if self.event.sample_rate < 1 and self.relation is not Relation.EDGE:
            raise Refusal(
                f"{self.name}: sampling is accounted for adding or removing one record "
                f"({Relation.EDGE}), not for the relation {self.relation}"
            )

    @property
    def scale(self) -> float:
        """Scale of the noise that the event adds to the value: of Laplace noise, or of normal noise.

        Raises:
            Refusal: If the read is not private.
        """
        event = self.event
        if isinstance(event, Gaussian):
            return self.sensitivity * event.noise_multiplier
        if isinstance(event, Pure):
            return 0.0 if math.isinf(event.epsilon) else self.sensitivity / event.epsilon
        raise Refusal(f"{self.name}: no noise is added")

    @property
    def why_void(self) -> str:
        """Why the read protects nothing, where it does not."""
        event = self.event
        if isinstance(event, NonPrivate):
            return self.proof
        amount = event.noise_multiplier if isinstance(event, Gaussian) else event.pure_epsilon
        return f"{event.mechanism} {amount:g} protects nothing"

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

    def by_transfer(self) -> "LedgerEntry":
        """Return this read of edges as one that protects a transfer, at the same price.

        The value is a function of the edges, and these are the pairs that have a transfer. Add a
        transfer: if its pair had one before, the edges stay, and so does the value; if not, one edge is
        added. A removal takes that back. So neighbors under one transfer have equal edges or differ in
        one, and what is proved for one edge holds for one transfer.

        Raises:
            Refusal: If the read does not protect one edge.
        """
        if self.relation is not Relation.EDGE:
            raise Refusal(f"{self.name}: what protects a transfer is proved for one edge only")
        public = {**self.public, PROVED_FOR: self.record}
        relation = Relation.TRANSFER
        return replace(self, relation=relation, record=RECORDS[relation], public=public)

    def by_edge(self) -> "LedgerEntry":
        """Return the read of edges that :meth:`by_transfer` has turned into one of transfers."""
        public = {**self.public}
        record = str(public.pop(PROVED_FOR))
        return replace(self, relation=Relation.EDGE, record=record, public=public)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return {
            "name": self.name,
            "relation": self.relation.value,
            "mechanism": self.event.mechanism,
            "sensitivity": self.sensitivity,
            "proof": self.proof,
            **(_AMOUNTS | asdict(self.event)),
            "steps": self.steps,
            "record": self.record,
            "public": dict(self.public),
            "key": self.key,
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> "LedgerEntry":
        """Restore an entry from its ``to_dict``, of this version or an earlier one.

        Raises:
            Refusal: If it has a mechanism, a relation or a partition that is not accounted for.
        """
        name, mechanism = state["name"], state["mechanism"]
        if state.get("partition") is not None:  # versions up to 0.1.0 composed parts in parallel
            raise Refusal(
                f"{name}: this version does not account for parts that compose in "
                f"parallel, as those of the partition {state['partition']}"
            )
        if mechanism not in _EVENTS:
            raise Refusal(
                f"{name}: unknown mechanism {mechanism!r}: this version accounts for "
                f"{', '.join(_EVENTS)}"
            )
        names = {value.name for value in fields(cls)} | _AMOUNTS.keys() | {"mechanism", "partition"}
        if unknown := state.keys() - names | state.keys() & {"event"}:
            raise Refusal(
                f"{name}: this version does not account for {', '.join(sorted(unknown))}, which a "
                "later one may have written"
            )
        kind = _EVENTS[mechanism]
        amounts = {amount: state.get(amount, default) for amount, default in _AMOUNTS.items()}
        own = {amount.name: amounts.pop(amount.name) for amount in fields(kind)}
        if amounts.get("delta"):
            raise Refusal(f"{name}: no delta {amounts['delta']} of mechanism {mechanism}")
        if amounts.get("sample_rate", 1.0) < 1 and issubclass(kind, Pure):
            raise Refusal(f"{name}: sampling is accounted for Gaussian noise only")
        try:
            event = kind(**own)
        except Refusal as error:
            raise Refusal(f"{name}: {error}") from error
        rest = ("sensitivity", "proof", "steps", "record", "public")
        return cls(
            key=state["key"],
            name=name,
            relation=Relation(state["relation"]),
            event=event,
            **{value: state[value] for value in rest if value in state},
        )
