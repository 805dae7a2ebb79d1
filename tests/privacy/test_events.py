import math

import pytest

from lightning_dpg.privacy.composition import entry_of
from lightning_dpg.privacy.events import Approximate, Gaussian, NonPrivate, Pure

INF = math.inf


@pytest.mark.parametrize(
    ("event", "pure_epsilon", "total_delta", "squared_mu", "protects"),
    [
        (Gaussian(2.0), 0, 0, 0.25, True),
        (Gaussian(2.0, 0.1), 0, 0, 0.25, True),
        (Gaussian(0.0), 0, 0, INF, False),
        (Pure(0.5), 0.5, 0, 0, True),
        (Pure(INF), INF, 0, 0, False),
        (Approximate(0.5, 1e-6), 0.5, 1e-6, 0, True),
        (Approximate(INF, 1e-6), INF, 1e-6, 0, False),
        (NonPrivate(), INF, 0, 0, False),
    ],
    ids=str,
)
def test_an_entry_has_the_event_and_costs_as_much_as_its_steps(
    event, pure_epsilon, total_delta, squared_mu, protects
):
    entry = entry_of(event, 3)
    assert (entry.event, entry.event.mechanism) == (event, event.mechanism)
    assert entry.pure_epsilon == pytest.approx(3 * pure_epsilon)
    assert entry.total_delta == pytest.approx(3 * total_delta)
    assert entry.squared_mu == pytest.approx(3 * squared_mu)
    assert event.protects is protects


def test_an_approximate_release_is_not_taken_for_a_pure_one():
    assert Approximate(0.5, 0.0) != Pure(0.5)
    assert len({Approximate(0.5, 0.0), Pure(0.5), Gaussian(0.5)}) == 3
