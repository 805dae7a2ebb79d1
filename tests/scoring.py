"""Canary scores of single releases, as in an audit."""

from lightning_dpg.auditing.scores.observation import Observation
from lightning_dpg.auditing.scores.white_box import white_box_score


def scored(method, key, noisy, pairs, known, data=None, earlier=None):
    """White-box score of a noisy value that ``method`` has booked under ``key``."""
    entry = method.ledger.last_entry(key)
    return white_box_score(Observation(method, entry, noisy, earlier or {}, data, pairs, known))
