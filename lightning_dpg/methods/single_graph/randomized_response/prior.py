"""Probabilities of pairs before the reports, from a model of the reports and from degrees."""

from collections.abc import Iterable, Iterator

from torch import Tensor

from lightning_dpg.graph.edge_sampling import above_diagonal, probabilities, sum_of
from lightning_dpg.nn import InnerProductDecoder, LowRankLogits

# Minimal part of the prior of a pair that uses degrees only. A model then excludes no pair.
_DEGREE_PRIOR = 0.1


def prior_probabilities(
    model: InnerProductDecoder | LowRankLogits, ends: Tensor, num_edges: int
) -> Iterator[Tensor]:
    """Yield the probability of each pair to be an edge, in blocks in the order of pair numbers.

    Args:
        model: Model of the reports.
        ends: Degrees over their sum, shape ``(N,)``.
        num_edges: Expected number of edges.
    """
    # The matrix of the logits is small and takes long; that of the products is large.
    held = list(model.likelihood_rows()) if isinstance(model, LowRankLogits) else None

    def rows() -> Iterable[Tensor]:
        return model.likelihood_rows() if held is None else held

    total, structure = sum_of(lambda: above_diagonal(rows())), 1 - _DEGREE_PRIOR
    if isinstance(model, InnerProductDecoder):
        # The model estimates edges, and finds few where noise hides most structure.
        structure = min(structure, total / max(num_edges, 1))
    by_model = structure / max(total, 1e-30)
    of_degrees = (1 - float(ends.double().square().sum())) / 2
    by_degrees = (1 - structure) / max(of_degrees, 1e-30)

    def blend() -> Iterator[Tensor]:
        start = 0
        for block in rows():
            first = ends[start : start + len(block), None]
            yield block.mul(by_model).add_(by_degrees * first * ends[start:])
            start += len(block)

    shares = (structure if total else 0.0) + (1 - structure if of_degrees > 0 else 0.0)
    return probabilities(lambda: above_diagonal(blend()), shares, num_edges)
