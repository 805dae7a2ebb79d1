"""Audits detect mistakes planted in the methods that learn from public attributes.

The rows are those of ``test_planted_bugs.py``, which names the bugs that no audit can find.
"""

from functools import partial

import pytest

from lightning_dpg.methods import AttributeEncoder, AttributeMoments, NodeAttributeMoments
from tests.apps.audit.test_planted_bugs import Row, is_caught, off
from tests.attributed import twins
from tests.planting import plant, plant_in_steps, plant_no_clipping

# Canaries between nodes of equal attributes move the moment, and the first gradient, by all that an
# edge can, and each in a direction of its own. A rate that is not booked is refused before the fit.
COUNT = 16
PAIRS = [[2 * pair, 2 * pair + 1] for pair in range(COUNT)]
TWINS = partial(twins, COUNT)
MOMENTS = partial(AttributeMoments, rank=COUNT)
FEW_STEPS = {"rank": COUNT, "iterations": 6, "sample_rate": 0.9, "public_pairs": 64}
ENCODER = partial(AttributeEncoder, degree_share=0.05, **FEW_STEPS)


ROWS = {
    "AttributeMoments moment quarter": Row(
        partial(MOMENTS, degree_share=0.02),
        *(1, PAIRS, 40, partial(plant, factor=0.25, keys=["attribute_moment"])),
        delta=1e-5,
        read=TWINS,
    ),
    "NodeAttributeMoments moment off": Row(
        partial(NodeAttributeMoments, 1, rank=COUNT),
        *(1, PAIRS, 4, off("attribute_moment")),
        delta=1e-5,
        read=TWINS,
    ),
    "AttributeEncoder degrees off": Row(
        ENCODER, 1, PAIRS, 8, off("degrees", "ordered_degrees"), 1e-5, TWINS
    ),
    "AttributeEncoder steps quarter": Row(
        ENCODER, 1, PAIRS, 60, partial(plant_in_steps, factor=0.25), 1e-5, TWINS
    ),
    "AttributeEncoder clipping off": Row(
        partial(ENCODER, max_grad_norm=0.1), 1, PAIRS, 8, plant_no_clipping, 1e-5, TWINS
    ),
}


@pytest.mark.parametrize("name", list(ROWS))
def test_a_planted_bug_is_caught(name):
    assert is_caught(ROWS[name])
