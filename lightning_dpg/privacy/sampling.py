"""Poisson sampling: the batch sampling that the accountants assume."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor
from torch.utils.data import Sampler

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.noise import NoiseSource

_UNREAD = 256  # more than the workers of a loader draw ahead; a method without noise reads none


class PoissonBatch(NamedTuple):
    """A batch with its sample rate (private).

    Attributes:
        data: The drawn records, possibly none: edges of shape ``(B, 2)``.
        sample_rate: Probability of each record to be drawn: a constant of the configuration.
    """

    data: Tensor
    sample_rate: float


class PoissonSampler(Sampler[Tensor]):
    """Sampler that draws each record into each batch independently with the same probability.

    Batches differ in size and may be empty; an empty one is still a step. All ranks share each
    draw and keep every ``world_size``-th index of it. Their union is one Poisson batch.

    Args:
        num_records: Number of records M.
        sample_rate: Probability q that a record is in a batch.
        steps: Number of batches in one pass.
        noise: Secret source of the draws. By default it is made at the first pass, which is after
            the initialization of the process group.
        rank: Rank of this process.
        world_size: Number of processes.

    Attributes:
        unread: Indices of this rank's shares that no private step has read yet, oldest first
            (private). Workers of a loader draw ahead, hence there may be several.
    """

    def __init__(
        self,
        num_records: int,
        sample_rate: float,
        steps: int,
        noise: NoiseSource | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """Check the arguments, without any draw."""
        # Zero is valid: a refusal would reveal that the graph has lost its last edge.
        if num_records < 0:
            raise ValueError(f"num_records must be 0 or more, got {num_records}")
        if not 0 < sample_rate <= 1:
            raise Refusal(f"sample_rate must lie in (0, 1], got {sample_rate}")
        if steps < 1:
            raise Refusal(f"steps must be positive, got {steps}")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank must lie in [0, {world_size}), got {rank}")
        self.num_records = num_records
        self.sample_rate = sample_rate
        self.steps = steps
        self.noise = noise
        self.rank = rank
        self.world_size = world_size
        self.unread: deque[Tensor] = deque(maxlen=_UNREAD)

    @property
    def is_secret(self) -> bool:
        """Whether the draws are unknown to every user and attacker."""
        return self.noise is None or self.noise.is_secret

    def __len__(self) -> int:
        """Number of batches in one pass."""
        return self.steps

    def __iter__(self) -> Iterator[Tensor]:
        """Yield the indices of this rank's share of each batch, long tensors of shape ``(B,)``."""
        if self.noise is None or not self.noise.is_shared:
            self.noise = NoiseSource()
        self.unread.clear()
        for _ in range(self.steps):
            indices = self.noise.bernoulli(self.num_records, self.sample_rate)
            self.unread.append(indices[self.rank :: self.world_size])
            yield self.unread[-1]
