"""Expected errors of noisy numbers, which depend on the mechanism alone and are public."""

import math
from typing import NamedTuple

LEVEL = 0.95
_NORMAL_QUANTILE = 1.959963984540054  # of (1 + LEVEL) / 2


class NoiseError(NamedTuple):
    """Error of one noisy number before it is processed further.

    Attributes:
        mean: Mean absolute error.
        half_width: Smallest number that the absolute error does not exceed with probability
            ``LEVEL``.
    """

    mean: float
    half_width: float


def discrete_laplace_error(rate: float) -> NoiseError:
    r"""Error by integer noise with :math:`P(k) = \tanh(t / 2) e^{-t |k|}`.

    With :math:`p = e^{-t}` the mean is :math:`2 p / (1 - p^2) = 1 / \sinh t`, and :math:`|k|`
    exceeds h with probability :math:`2 p^{h + 1} / (1 + p)`.

    Args:
        rate: Rate t: epsilon over the sensitivity; infinite without noise.
    """
    if math.isinf(rate):
        return NoiseError(0.0, 0.0)
    mean = 2 * math.exp(-rate) / -math.expm1(-2 * rate)
    tail = (1 - LEVEL) * (1 + math.exp(-rate)) / 2
    return NoiseError(mean, float(max(0, math.ceil(-math.log(tail) / rate) - 1)))


def gaussian_error(std: float) -> NoiseError:
    r"""Error by normal noise, of mean :math:`\sigma \sqrt{2 / \pi}`.

    Args:
        std: Standard deviation.
    """
    return NoiseError(std * math.sqrt(2 / math.pi), std * _NORMAL_QUANTILE)
