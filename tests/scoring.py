"""Canary scores of single releases, as in an audit."""

from lightning_dpg.apps.audit.scores.attackers import white_box_score
from lightning_dpg.apps.audit.scores.counts import degrees_score
from lightning_dpg.apps.audit.scores.observation import Observation


def scored(method, key, noisy, pairs, known, data=None, earlier=None):
    """White-box score of a noisy value that ``method`` has booked under ``key``."""
    entry = method.ledger.last_entry(key)
    return white_box_score(Observation(method, entry, noisy, earlier or {}, data, pairs, known))


def observed(noisy, pairs, known, entry, method=None):
    """A noisy value of an entry, of which a score reads no more than the method."""
    return Observation(method, entry, noisy, {}, None, pairs, known)


def degrees_of(method, pairs, known):
    """Score of the degrees that a method has released."""
    entry = method.ledger.last_entry("degrees")
    return degrees_score(observed(method.degrees, pairs, known, entry))
