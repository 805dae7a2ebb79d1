"""Reports of private labels by randomized response over k classes, and what they say of the labels."""

import math
from collections.abc import Callable
from decimal import MAX_EMAX, Context, Decimal

import numpy as np
import torch
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity import reported_label_sensitivity

LABEL_REPORTS = "label_reports"
"""Key of the read."""
LABEL_DENOMINATOR = 2**62
"""Probabilities of reports are whole multiples of one over this."""

_DIGITS = Context(prec=60, Emax=MAX_EMAX)
_MARGIN = Decimal("1e-30")  # for the rounding of 60 digits
_MOST_EPSILON = 1000.0  # of a larger one the rates are the same


def label_reports_entry(epsilon: float, num_classes: int) -> LedgerEntry:
    """Entry of the reports of all labels.

    Args:
        epsilon: Cost; infinite reports the labels themselves.
        num_classes: Number k of classes (public).
    """
    return LedgerEntry.proved(
        LABEL_REPORTS,
        "reported labels of nodes",
        Pure(epsilon),
        reported_label_sensitivity,
        relation=Relation.ATTRIBUTES,
        record="label of one node",
        public={"classes": num_classes},
    )


def report_labels(read: LedgerEntry, num_classes: int) -> Callable[[Tensor, NoiseSource], Tensor]:
    r"""Law that reports labels out of k classes, each one by randomized response.

    A label is reported as it is with the probability :math:`e^\epsilon / (e^\epsilon + k - 1)`, and as
    each other class with :math:`1 / (e^\epsilon + k - 1)`, independently of all other labels.

    Proof: neighbors differ in the label of one node, by the read's own proof, and all other reports
    have equal laws. Of the probabilities of a report under two labels, one is at most
    :math:`e^\epsilon` times the other: both are one of two rates, of which the larger is
    :math:`e^\epsilon` times the smaller one. The drawn rates are whole multiples of :math:`2^{-62}`: the
    smaller one is rounded up and k - 1 of it are taken off the larger one, so that their ratio only
    becomes smaller. One fair integer decides on a report. No floating-point number is drawn or
    compared, and the number of draws does not depend on the labels.

    A value that is none of the k classes is reported as each of them with the probability 1 / k. That
    lies between both rates, so that such a value is as hard to tell from a label as labels are from
    each other. Refusing it would show that some node has it.

    The private value holds the labels as integers, shape ``(K,)``: those from 0 to k - 1 are classes.
    The released one holds the reports, of the same shape and all of them classes.

    Args:
        read: Read whose proof says that neighbors differ in one label, see
            :func:`label_reports_entry`; an infinite epsilon changes no label and protects nothing.
        num_classes: Number k of classes (public).

    Raises:
        Refusal: If there are not two classes, or epsilon leaves no signal.

    References:
        Kairouz, Bonawitz, Ramage, "Discrete distribution estimation under local privacy", 2016,
        equation 1.
    """
    if read.sensitivity != 1:
        raise Refusal(f"{read.name}: the sensitivity must be 1, got {read.sensitivity}")
    _, other = report_rates(read.event.pure_epsilon, num_classes)

    def draw(labels: Tensor, noise: NoiseSource) -> Tensor:
        values = labels.numpy()
        coins = noise.integers(LABEL_DENOMINATOR, len(values))
        anything = noise.integers(num_classes, len(values))
        others = coins // max(other, 1)
        others += others >= values  # the other classes are numbered without the own one
        changes = coins < (num_classes - 1) * other
        is_class = (values >= 0) & (values < num_classes)
        reports = np.where(is_class, np.where(changes, others, values), anything)
        return torch.from_numpy(reports)

    return draw


def report_rates(epsilon: float, num_classes: int) -> tuple[int, int]:
    """Probabilities of reporting the own class, and each other one, in units of :math:`2^{-62}`.

    Args:
        epsilon: Cost of a report.
        num_classes: Number k of classes.

    Raises:
        Refusal: If there are not two classes, or epsilon leaves no signal.
    """
    if num_classes < 2:
        raise Refusal(f"labels need two classes or more, got {num_classes}")
    if not epsilon > 0:
        raise Refusal(f"epsilon must be positive, got {epsilon}")
    if math.isinf(epsilon):
        return LABEL_DENOMINATOR, 0
    odds = _DIGITS.exp(Decimal(min(epsilon, _MOST_EPSILON)))
    rate = _DIGITS.divide(Decimal(LABEL_DENOMINATOR), _DIGITS.add(odds, Decimal(num_classes - 1)))
    other = math.ceil(_DIGITS.add(rate, _MARGIN))
    own = LABEL_DENOMINATOR - (num_classes - 1) * other
    if own <= other:
        raise Refusal(f"epsilon {epsilon:g} is too small for reports of {num_classes} classes")
    return own, other


def report_log_likelihoods(epsilon: float, num_classes: int) -> Tensor:
    """Log probability of each report given each class, shape ``(k, k)``; at most 0.

    Args:
        epsilon: Cost of a report; under an infinite one a report is the class.
        num_classes: Number k of classes.
    """
    own, other = (rate / LABEL_DENOMINATOR for rate in report_rates(epsilon, num_classes))
    logs = torch.full((num_classes, num_classes), other, dtype=torch.double)
    return logs.fill_diagonal_(own).log()
