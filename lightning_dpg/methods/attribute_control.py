"""Control of link prediction that reads no edge: the similarity of public attributes."""

from functools import partial

from torch import Tensor

from lightning_dpg.metrics.link_prediction import Score

_RANK = 64


def attributes_alone(attributes: Tensor) -> Score:
    """Build the score of pairs by the cosine of their rows, see :class:`AttributeRows`.

    It reads no edge, so that its epsilon is 0: a method has learned from edges what it ranks better.

    Args:
        attributes: Public attributes of shape ``(N, F)``.
    """
    # The package of the rows imports the base class of methods, which imports this module.
    from lightning_dpg.methods.single_graph.attribute_encoder.rows import AttributeRows

    rows = AttributeRows(_RANK)
    rows.fit(attributes)
    return partial(_cosines, rows(attributes))


def _cosines(rows: Tensor, pairs: Tensor) -> Tensor:
    first, second = rows[pairs.to(rows.device)].unbind(1)
    return (first * second).sum(1)
