"""Payment of a read: book it, draw its noise, publish it. Noise has no other source.

A law draws a released value from a private one. It is built from the entry of its read, and refuses
what it cannot draw, before anything is booked.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Pure
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.mechanisms import integer_noise, normal_noise
from lightning_dpg.privacy.noise import NoiseSource

V = TypeVar("V")
_ROUNDING = 1e-9  # relative


def pay(
    read: LedgerEntry,
    value: V,
    ledger: PrivacyLedger,
    noise: NoiseSource,
    law: Callable[[V, NoiseSource], Tensor] | None = None,
    *,
    also: Sequence[LedgerEntry] = (),
) -> Tensor:
    """Book a read, draw its value by a law, and publish it (noisy).

    Args:
        read: The read, as it was planned.
        value: What the law reads (private), for instance exact counts.
        ledger: Ledger that pays; a refused read draws nothing.
        noise: Secret source of the noise.
        law: Law of the released value, built from ``read``; by default that of :func:`noise_of`,
            for which the value is a tensor.
        also: What the same read costs under other relations, entries of the same mechanism with keys
            of their own. All are booked, or none. No law is given with them: one noise serves all, and
            its scale is compared with theirs.

    Returns:
        The released value.

    Raises:
        PrivacyBudgetExceeded: If the budget does not cover it; nothing is booked then.
        Refusal: If the noise of the read cannot be drawn, or if an entry of another relation was
            planned for more noise than that, or another mechanism; nothing is booked then.
    """
    if law is not None:
        if also:
            raise Refusal(
                f"{read.name}: a law of its own does not say what it costs another relation\n"
                "leave the law out: the noise of the read is drawn, and its scale compared"
            )
        draw = partial(law, value)
    elif isinstance(value, Tensor):
        draw = partial(noise_of(read), value)
        _refuse_more_noise(read, also)
    else:
        raise TypeError(f"{read.name}: noise is added to a tensor, not to {type(value).__name__}")
    ledger.spend(read, *also)
    return ledger.publish(read.key, draw(noise))


def _refuse_more_noise(read: LedgerEntry, also: Sequence[LedgerEntry]) -> None:
    """Refuse an entry whose price is that of more noise than the read gets: one noise serves all."""
    for entry in also:
        if type(entry.event) is not type(read.event):
            raise Refusal(
                f"{entry.name}: its price under {entry.relation.value!r} is that of another mechanism "
                f"({entry.event.mechanism}), and the read is {read.event.mechanism}"
            )
        if entry.scale > read.scale * (1 + _ROUNDING):
            raise Refusal(
                f"{entry.name}: its price under {entry.relation.value!r} is that of noise of scale "
                f"{entry.scale:g}, and the read gets {read.scale:g}"
            )


def noise_of(read: LedgerEntry) -> Callable[[Tensor, NoiseSource], Tensor]:
    """Law that adds the noise of a read: normal noise, or discrete Laplace noise to integers.

    Raises:
        Refusal: If the read is not private, or if its noise cannot be drawn.
    """
    if isinstance(read.event, Gaussian):
        return normal_noise(read)
    if isinstance(read.event, Pure):
        return integer_noise(read)
    raise Refusal(f"{read.name}: no noise is added")
