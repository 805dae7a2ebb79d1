"""The recommended method follows measurements, and uses public numbers only."""

import math

import pytest

from lightning_dpg.methods import DPNetGAN, RandomizedResponse
from lightning_dpg.methods.advice import link_hint, link_method

SPECTRAL = "RandomizedResponse with denoise: spectral"


@pytest.mark.parametrize("num_nodes", [500, 2_000, 5_000, 100_000])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.9, 5.0, 8.0])
def test_hint_without_the_number_of_edges_tells_the_choice_with_it(num_nodes, epsilon):
    """Read as a user would: the first bound that a mean degree exceeds names the method."""
    hint = link_hint(epsilon, num_nodes)
    cases = hint.partition(" take ")[2].split(", ")
    for degree in (1, 4, 9, 20, 60, 300):
        method = link_method(num_nodes, degree * num_nodes // 2, epsilon)
        for case in cases:
            name, _, bound = case.partition(" above ")
            if not bound:
                name = case.removesuffix(" below")
            if not bound or degree > 1.05 * float(bound.split()[-1]):
                break
            if degree > 0.95 * float(bound.split()[-1]):  # the hint rounds
                name = method
                break
        assert method == name, hint


def test_choices_where_measurements_are_clear():
    assert link_method(600, 1_000, 1.0) == "ChungLu"
    assert link_method(600, 9_000, 5.0) == SPECTRAL
    assert link_method(4_000, 88_000, 1.0) == "PrivGraph"
    assert link_method(100_000, 2_500_000, 8.0) == "PrivGraph"  # too many pairs for reports
    assert link_method(2, 0, 1.0) == "ChungLu"


def test_private_number_of_edges_is_in_no_hint_before_a_run():
    for method in (DPNetGAN(num_nodes=77), RandomizedResponse(num_nodes=77, denoise="spectral")):
        assert "above a mean degree of" in method.advice(1.0)
        assert method.advice(math.inf) is None
