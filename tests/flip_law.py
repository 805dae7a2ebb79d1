"""Law of permute and flip by an independent computation."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def flip_law(utilities: Sequence[float], rate: float) -> NDArray[np.float64]:
    """Law of permute and flip by enumeration of all orders."""
    law = np.zeros(len(utilities))
    for order in itertools.permutations(range(len(utilities))):
        left = 1.0
        for candidate in order:
            takes = math.exp(-rate * (max(utilities) - utilities[candidate]))
            law[candidate] += left * takes
            left *= 1 - takes
    return law / math.factorial(len(utilities))
