r"""Sensitivities of amounts and times of transfers, in public bins, by public or released classes of both ends.

There are two units of protection.

* **One relation**: a pair with all its transfers is added or removed. Of each pair the first k
  transfers count, in an order that only its own transfers decide; without times, a pair counts as one
  transfer of the sum of its amounts, so that k is 1. So k counted transfers at most come or go, and
  those of all other pairs stay as they are. A rule that looks at other pairs, such as a limit on the
  number of all transfers, would void the bounds.
* **One transfer**: one row is added or removed, and all rows count: k is 1.

Amounts are in whole units, and clipped to the public bound C before anything else, and the classes of
payer and payee are public or functions of earlier releases. Classes of the true degrees would be
different: a new relation moves all amounts of both of its ends into other cells. A time outside of the
public window is no part of the data.
"""


def amount_count_sensitivity(most: int) -> int:
    """L1 sensitivity of the number of transfers by bins of amounts and classes: k.

    A counted transfer is part of one cell, which its own amount and the classes of its ends decide. So
    each of the k transfers that come or go changes one cell by 1, see
    :mod:`lightning_dpg.privacy.sensitivity.transfers`.

    Args:
        most: Number k of counted transfers at most that come or go (public).
    """
    return most


def amount_sum_sensitivity(most: int, largest: int) -> int:
    """L1 sensitivity of the sums of amounts by classes, in units: k C.

    A counted transfer is part of one sum, and its amount is a whole number of units from 0 to C. So
    each of the k transfers that come or go changes one sum by C at most. Sums of whole numbers are
    exact, so that rounding adds nothing.

    Args:
        most: Number k of counted transfers at most that come or go (public).
        largest: Largest amount C in units (public).
    """
    return most * largest


def pair_number_sensitivity() -> int:
    """L1 sensitivity of the number of pairs by the number of their transfers, under one relation: 1.

    A pair that comes or goes is part of one cell, which its own transfers decide.
    """
    return 1


def transfer_number_sensitivity() -> int:
    """L1 sensitivity of the number of pairs by the number of their transfers, under one transfer: 2.

    The pair of the transfer leaves the cell of its old number, if that was not 0, and enters the cell
    of its new number, if that is not 0. No other pair moves.
    """
    return 2


def strength_sensitivity(ends: int) -> int:
    """L1 sensitivity of the number of nodes by degree and strength, in classes: 2 for each counted end.

    The strength of a node is the sum of the amounts that it pays and gets, and its degree the number of
    its relations. One relation, or one transfer, changes both of its two ends only. Each of these
    leaves one cell at most and enters one other at most. So the degrees may be true ones here, the
    number of transfers of a relation has no effect, and no amount needs a bound.

    Args:
        ends: Ends of a relation that are counted (public): both, or of a bipartite graph the one of the
            side whose nodes are counted.
    """
    return 2 * ends


def event_count_sensitivity(most: int) -> int:
    """L1 sensitivity of the number of transfers by day or a longer time, or by hour of the week: k.

    A counted transfer is part of one cell, which its own time decides, and k of them come or go. The cells
    may be any division of the window that is public or follows from earlier releases.

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

    Likewise by a longer time, in cells as those of :func:`event_count_sensitivity`.

    A pair that comes or goes is part of one cell, which its own transfers decide.
    """
    return 1


def transfer_contact_sensitivity() -> int:
    """L1 sensitivity of the number of pairs by the day of their first transfer, under one transfer: 2.

    Likewise by a longer time, in cells as those of :func:`event_count_sensitivity`.

    A transfer that is earlier than all others of its pair moves the pair from one day to another. Any
    other one moves nothing, and the only one of its pair adds or removes 1.
    """
    return 2
