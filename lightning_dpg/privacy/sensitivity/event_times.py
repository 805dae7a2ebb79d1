"""Sensitivities of the times of transfers, counted in public bins of a public window.

The units of protection, and the k transfers of a pair that count, are those of
:mod:`lightning_dpg.privacy.sensitivity.amounts`. A time outside of the window is no part of the data.
"""


def event_count_sensitivity(most: int) -> int:
    """L1 sensitivity of the number of transfers by day, or by hour of the week: k.

    A counted transfer is part of one cell, which its own time decides, and k of them come or go.

    Args:
        most: Number k of counted transfers at most that come or go (public).
    """
    return most


def relation_gap_sensitivity(most: int) -> int:
    """L1 sensitivity of the gaps within pairs by length and reply, under one relation: k - 1.

    A gap lies between two successive counted transfers of one pair. A pair that comes or goes has k
    of them at most, hence k - 1 gaps, and each is part of one cell. The gaps of other pairs stay. With
    k = 1 there is no gap, and nothing to read.

    Args:
        most: Number k of transfers of a pair that count (public), 2 or more.
    """
    return most - 1


def transfer_gap_sensitivity() -> int:
    """L1 sensitivity of the gaps within pairs by length and reply, under one transfer: 3.

    Transfers of a pair are ordered by time, payer and amount, and another one keeps the order of the
    rest. If it comes between two transfers, their gap leaves its cell, and two gaps enter theirs: 3.
    Before the first one, behind the last one, or alone, it makes one gap at most. A removal takes that
    back. Whether a gap is a reply depends on its own two transfers.
    """
    return 3


def relation_contact_sensitivity() -> int:
    """L1 sensitivity of the number of pairs by the day of their first transfer, under one relation: 1.

    A pair that comes or goes is part of one cell, which its own transfers decide.
    """
    return 1


def transfer_contact_sensitivity() -> int:
    """L1 sensitivity of the number of pairs by the day of their first transfer, under one transfer: 2.

    A transfer that is earlier than all others of its pair moves the pair from one day to another. Any
    other one moves nothing, and the only one of its pair adds or removes 1.
    """
    return 2
