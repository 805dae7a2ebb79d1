"""The secret source of all randomness of a guarantee."""

import math
import os
import secrets
from typing import NoReturn

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.errors import Refusal

# Beyond a twentieth of its range NumPy's choice holds the whole range in memory.
_INDICES_AT_ONCE = 2**24
# Of the state of torch's Mersenne Twister: three words of 8 bytes come first, and each of its 624
# words of 32 bits takes 8 bytes.
_STATE_START, _STATE_WORDS = 24, 624


def _num_processes() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def _shared_key() -> int:
    """A fresh 128-bit key of the operating system, the same one on all ranks."""
    keys = [secrets.randbits(128)]
    if _num_processes() > 1:
        dist.broadcast_object_list(keys, src=0)
    return keys[0]


def secret_generator() -> torch.Generator:
    """Make a generator of this process alone, for draws whose number depends on private records.

    The public stream of ``seed_everything`` would reveal that number, and the noise source that all
    ranks share would no longer draw the same on all of them. The whole state comes from the
    operating system: ``Generator.seed`` keeps 32 bits on the CPU, few enough to try them all. The
    proof of a sum over records needs coins that are independent of the position in the batch, and
    a known seed would fix them by position. Make one for each use, and keep none.
    """
    generator = torch.Generator()
    key = secrets.randbits(32 * _STATE_WORDS).to_bytes(4 * _STATE_WORDS, "little")
    words = np.frombuffer(key, dtype="<u4").astype(np.int64)
    state = generator.get_state()
    state[_STATE_START : _STATE_START + 8 * _STATE_WORDS] = torch.from_numpy(words).view(
        torch.uint8
    )
    return generator.set_state(state)


class NoiseSource:
    """Random numbers for noise and sampling, from a key that no user or attacker knows.

    An attacker with the seed can subtract the noise. The key therefore comes from the operating
    system, is independent of ``seed_everything``, and is never logged, copied or saved: a resumed
    run draws a new one. Under ``torch.distributed`` all ranks receive the key of rank 0. Ranks
    which make the same calls in the same order then draw the same numbers; construct it on all
    ranks together, after the process group. A forked process cannot use it: parent and child would
    draw the same noise.

    NumPy's Philox takes all 128 bits of the key. ``torch.Generator`` does not serve: on the CPU it
    is a Mersenne Twister that keeps the lower 32 bits of its seed, few enough to try them all, and
    whose outputs reveal its state. Philox is a counter-based generator that passes statistical
    tests; it is not a certified cipher. Normal variates are floating-point numbers, and the
    guarantee of the Gaussian mechanism is for real ones: the gaps between the representable sums
    can in principle distinguish neighboring inputs (Mironov, "On significance of the least
    significant bits for differential privacy", 2012). Counts use an exact integer sampler instead.

    Args:
        unsafe_seed: Fixed key for tests. Values drawn with it carry no guarantee.
    """

    def __init__(self, *, unsafe_seed: int | None = None) -> None:
        """Draw the key."""
        self.is_secret = unsafe_seed is None
        self._num_processes = _num_processes()
        key = _shared_key() if unsafe_seed is None else unsafe_seed
        self._of_process = os.getpid()
        self._draws = np.random.Generator(np.random.Philox(key=key))

    @property
    def _generator(self) -> np.random.Generator:
        """The generator, in the process that has made it."""
        if os.getpid() != self._of_process:
            raise Refusal(
                "a forked process cannot draw from the NoiseSource of its parent: both would draw "
                "the same noise\nmake a new method, or sampler, in the process that trains it"
            )
        return self._draws

    @property
    def is_shared(self) -> bool:
        """Whether all ranks draw the same numbers; not if the source precedes the process group."""
        return not self.is_secret or self._num_processes >= _num_processes()

    def __getstate__(self) -> NoReturn:
        """Refuse pickling and copying: a saved key undoes the noise, a copied one repeats it."""
        raise TypeError("a NoiseSource is secret and can be neither pickled nor copied")

    def normal(
        self,
        size: int | tuple[int, ...],
        std: float,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> Tensor:
        """Independent normal variates of mean 0, drawn in double precision.

        Args:
            size: Shape of the result.
            std: Standard deviation.
            dtype: Type of the result.
            device: Device of the result.
        """
        if not (math.isfinite(std) and std >= 0):
            raise Refusal(f"std must be finite and not negative, got {std}")
        shape = (size,) if isinstance(size, int) else size
        draws = self._generator.standard_normal(shape)
        draws *= std
        return torch.from_numpy(draws).to(device=device, dtype=dtype)

    def bernoulli(self, n: int, p: float) -> Tensor:
        """Indices out of ``range(n)``, each chosen independently with probability ``p``.

        Memory is linear in the number of chosen indices, whatever n: consecutive parts of the range
        are drawn one after the other, and are independent, as coins are.

        Returns:
            Sorted long tensor of shape ``(K,)`` where K is Binomial(n, p).
        """
        if not 0 <= p <= 1:
            raise Refusal(f"p must lie in [0, 1], got {p}")
        starts = range(0, n, _INDICES_AT_ONCE)
        parts = [start + self._coins(min(_INDICES_AT_ONCE, n - start), p) for start in starts]
        return torch.from_numpy(np.concatenate([np.empty(0, dtype=np.int64), *parts]))

    def _coins(self, n: int, p: float) -> NDArray[np.int64]:
        """Ascending indices of the heads among ``n`` coins with probability ``p`` of heads."""
        # A binomial number of distinct indices has the same law as n coins, in O(K) for small p.
        count = int(self._generator.binomial(n, p))
        if count == 0:
            return np.empty(0, dtype=np.int64)
        chosen = self._generator.choice(n, size=count, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int64)

    def integers(self, high: int, size: int) -> NDArray[np.int64]:
        """Draw uniform integers of ``range(high)`` without bias, of shape ``(size,)``.

        NumPy rejects the draws that would favor some of them.

        Args:
            high: Upper bound, at most 2**63.
            size: Number of integers.
        """
        if not 1 <= high <= 2**63:
            raise Refusal(f"high must lie in [1, 2**63], got {high}")
        return self._generator.integers(high, size=size, dtype=np.int64)
