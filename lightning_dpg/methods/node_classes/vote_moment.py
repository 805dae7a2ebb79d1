r"""Classes from attributes, by one noisy moment of attributes against the beliefs of neighbors."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from lightning_dpg.nn.attribute_rows import AttributeRows
from lightning_dpg.nn.class_student import ClassEvidence, ClassStudent, confidence, self_trained
from lightning_dpg.nn.linked_rows import link_metric
from lightning_dpg.nn.resized_buffers import resize_on_loading

_RIDGES = tuple(10 ** (power / 2) for power in range(-2, 8))
_TINY = 1e-9


class VoteMoment(nn.Module):
    r"""Public rows of nodes, the votes that nodes with such rows expect, and a student of both.

    Attributes:
        features: Map from attributes to principal components, fitted to public attributes.
        metric: Map from them to rows z, see :func:`link_metric`, shape ``(r, r)``; empty before
            :meth:`follow_links`.
        moment: Released moment :math:`Z^T A U` of rows and beliefs of neighbors, shape ``(r, k)``.
        expected: Map from a row to the votes that it expects, up to a factor, shape ``(r, k)``.
        student: Classes by both.
    """

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.features = AttributeRows(rank)
        self.student = ClassStudent()
        self.metric: Tensor
        self.moment: Tensor
        self.expected: Tensor
        self.register_buffer("metric", torch.empty(0, 0, dtype=torch.double))
        self.register_buffer("moment", torch.empty(0, 0, dtype=torch.double))
        self.register_buffer("expected", torch.empty(0, 0, dtype=torch.double))
        resize_on_loading(self, "metric", "moment", "expected")

    def rows(self, attributes: Tensor) -> Tensor:
        """Rows z of nodes in double precision, at most 1 long: ``(P, F)`` to ``(P, r)``."""
        rows: Tensor = self.features(attributes).double()
        if self.metric.numel():
            rows = normalize(rows @ self.metric)
        return rows / rows.norm(dim=1, keepdim=True).clamp(min=1.0)

    def follow_links(
        self, moment: Tensor, noise: float, attributes: Tensor, degree: float = 0.0
    ) -> None:
        """Let rows be close where nodes link; rows from before this call are no longer valid.

        Args:
            moment: Released symmetric moment of the rows over edges, shape ``(r, r)``.
            noise: Standard deviation of the noise on its diagonal.
            attributes: Attributes of all nodes, shape ``(N, F)``.
            degree: Released mean degree; 0 takes the links as given, and not as drawn.
        """
        self.metric = link_metric(moment, self.rows(attributes), noise, degree)

    def public_beliefs(self, rows: Tensor, evidence: ClassEvidence) -> Tensor:
        """Probabilities of classes before any vote, shape ``(N, C)``.

        Args:
            rows: Rows of all nodes, shape ``(N, r)``.
            evidence: What is known of classes (public or released).
        """
        self.student = self_trained(rows, evidence, confidence(rows, evidence))
        return _beliefs(self.student(rows), evidence)

    def learn(
        self,
        moment: Tensor,
        noise: float,
        rows: Tensor,
        evidence: ClassEvidence,
        degree: float = 0.0,
    ) -> Tensor:
        """Learn from the released moment, which reads no edge.

        Args:
            moment: The released moment, shape ``(r, k)``.
            noise: Standard deviation of the noise of a number in it.
            rows: Rows of all nodes, shape ``(N, r)``.
            evidence: What is known of classes (public or released).
            degree: Released mean degree; 0 takes the links as given, and not as drawn.

        Returns:
            Probabilities of the classes of all nodes, shape ``(N, C)``.
        """
        factor, public = float(self.student.factor), self.student(rows)
        # The targets are as sure as the mean of an unsure student and of a public one of this factor.
        factor = 2 * factor / (1 + factor)
        self.moment, self.expected = moment, expected_votes(moment, rows, noise, degree)
        self.student = self_trained(self._both(rows), evidence, factor, public)
        return _beliefs(self.log_prior(rows), evidence)

    def log_prior(self, rows: Tensor) -> Tensor:
        """Log probabilities of classes by the student, shape ``(N, C)``."""
        logs: Tensor = self.student(self._both(rows))
        return logs

    def learn_posteriors(self, rows: Tensor, posteriors: Tensor, evidence: ClassEvidence) -> None:
        """Let the student learn released probabilities of all nodes, shape ``(N, C)``."""
        self.student.fit(self._both(rows), posteriors, 1.0, len(evidence.nodes))

    def forward(self, attributes: Tensor) -> Tensor:
        """Probabilities of classes from attributes alone: ``(P, F)`` to ``(P, C)``."""
        return self.log_prior(self.rows(attributes)).exp().float()

    def _both(self, rows: Tensor) -> Tensor:
        return torch.cat([rows, rows @ self.expected], 1)


def _beliefs(logs: Tensor, evidence: ClassEvidence) -> Tensor:
    return torch.softmax(evidence.added_to(logs), 1)


def belief_rows(beliefs: Tensor) -> Tensor:
    """Directions of probabilities from the uniform ones: ``(N, C)`` to ``(N, C - 1)``, length 1.

    Rows of uniform probabilities have the length 0.
    """
    count = beliefs.shape[1]
    square = torch.cat([torch.ones(count, 1), torch.eye(count)[:, : count - 1]], 1).double()
    basis = torch.linalg.qr(square).Q[:, 1:]
    return normalize((beliefs - 1 / count) @ basis)


def expected_votes(moment: Tensor, rows: Tensor, noise: float, degree: float = 0.0) -> Tensor:
    r"""Coefficients of a ridge regression of votes on rows, from their noisy moment, shape ``(r, k)``.

    They are :math:`(Z^T Z + \lambda I)^{-1} M`. The noise is known and the rows are public, so that
    Stein's unbiased estimate of the risk chooses the ridge. The expected votes are scaled to a root
    mean square length of the share of their squares that is not noise: a student then gives less
    weight to a moment that is mostly noise. Chance is noise, too: the votes of d drawn neighbors have
    the variance d / k beside what a row expects of them.

    Args:
        moment: Noisy moment M of rows and votes, shape ``(r, k)``.
        rows: Rows of all nodes, shape ``(N, r)``.
        noise: Standard deviation of the noise of a number in the moment.
        degree: Released mean degree d; 0 takes the links as given, and not as drawn.
    """
    values, vectors = torch.linalg.eigh(rows.T @ rows)
    values = values.clamp(min=_TINY * float(values.max().clamp(min=1.0)))
    turned = vectors.T @ moment
    errors = noise**2 / values * moment.shape[1] + degree
    squares = turned.square().sum(1) / values

    def risk(ridge: float) -> float:
        kept = values / (values + ridge)
        return float(((1 - kept) ** 2 * squares + 2 * kept * errors).sum())

    ridge = min(_RIDGES, key=risk)
    kept = values / (values + ridge)
    total, drawn = float((kept**2 * squares).sum()), float((kept**2 * errors).sum())
    share = max(0.0, 1 - drawn / max(total, _TINY))
    size = (total / max(len(rows), 1)) ** 0.5
    return vectors @ (turned / (values + ridge)[:, None]) * share / max(size, _TINY)
