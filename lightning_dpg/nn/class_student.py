"""Multinomial regression of classes on rows of nodes: from facts about them, or probabilities of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from lightning_dpg.nn.resized_buffers import resize_on_loading


class ClassEvidence(NamedTuple):
    """Facts about the classes of K of the N nodes.

    Attributes:
        nodes: Numbers of these nodes, each once, shape ``(K,)``.
        log_likelihoods: Log probability of what is known of a node, given each class, shape
            ``(K, C)``. Of a known class it is 0, and minus infinity of all others.
    """

    nodes: Tensor
    log_likelihoods: Tensor

    @property
    def likeliest(self) -> Tensor:
        """The class that each fact speaks for: known or reported, shape ``(K,)``."""
        return self.log_likelihoods.argmax(1)

    def some(self, chosen: Tensor) -> "ClassEvidence":
        """Return the facts about some of the K nodes, by a mask of shape ``(K,)``."""
        return ClassEvidence(self.nodes[chosen], self.log_likelihoods[chosen])

    def added_to(self, logs: Tensor) -> Tensor:
        """Add the facts to log probabilities of the classes of all nodes, shape ``(N, C)``.

        The result has no norm: by Bayes' rule, ``softmax`` makes the probabilities of it.
        """
        total = logs.clone()
        total[self.nodes] += self.log_likelihoods
        return total


def known_classes(nodes: Tensor, places: Tensor, count: int) -> ClassEvidence:
    """Build the evidence of known classes.

    Args:
        nodes: Nodes with known classes, shape ``(K,)``.
        places: Their classes, from 0 to ``count - 1``, shape ``(K,)``.
        count: Number C of classes.
    """
    return ClassEvidence(nodes, torch.eye(count, dtype=torch.double).log()[places])


# Penalties of the squared weights: of known classes, and of probabilities of all nodes that follow from
# few known ones. The more nodes are known for each number of a row, from 2.5 to 25, the smaller the second
# one is. Fixed on Cora-ML, with 20 labels of each class and with those of 75 % of the nodes. Few nodes
# bear a small one only, as fixed on synthetic graphs of 250 nodes.
_KNOWN_PENALTY, _ALL_PENALTY = 1.0, 10.0
_KNOWN_PER_NUMBER = 25
_NODES_PER_PENALTY = 250
_STEPS = 60
_FOLDS = 5
# Bounds of factors of log odds. Beside a better student, the first one keeps what votes teach it.
_LEAST_FACTOR, _MOST_FACTOR = 0.25, 20.0
# Penalties of the squared weights of all columns. Fixed on seeds 20 and 21 of all graphs.
_COLUMN_PENALTIES = 1 / 4, 1 / 16
# Nodes whose probabilities a student learns; more do not change so few weights.
_MOST_NODES = 50_000
_PUBLIC_SEED = 0


class ClassStudent(nn.Module):
    """Log probabilities of C classes, linear in rows of r numbers, up to a factor of confidence.

    Attributes:
        weight: Weights, shape ``(r, C)``.
        bias: Biases, shape ``(C,)``.
        factor: Factor of all log odds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight: Tensor = nn.Buffer(torch.empty(0, 0, dtype=torch.double))
        self.bias: Tensor = nn.Buffer(torch.empty(0, dtype=torch.double))
        self.factor: Tensor = nn.Buffer(torch.tensor(1.0, dtype=torch.double))
        resize_on_loading(self, "weight", "bias")

    def forward(self, rows: Tensor, others: Tensor | float = 0.0) -> Tensor:
        """Compute log probabilities of rows of shape ``(P, r)``: shape ``(P, C)``.

        Args:
            rows: The rows.
            others: Log odds by other students, which are added, shape ``(P, C)``.
        """
        return log_softmax(self.factor * (rows.double() @ self.weight + self.bias) + others, 1)

    def fit(
        self, rows: Tensor, targets: Tensor, factor: float, num_known: int, others: Tensor
    ) -> None:
        """Learn the probabilities of nodes.

        Args:
            rows: Rows of shape ``(N, r)``.
            targets: Probabilities of the classes, shape ``(N, C)``.
            factor: Factor of the log odds that are learned, see :func:`confidence`.
            num_known: Number of nodes with known classes, from which the targets follow.
            others: Log odds by other students, beside which this one learns, shape ``(N, C)``.
        """
        penalty = _KNOWN_PER_NUMBER * rows.shape[1] / max(num_known, 1)
        most = min(_ALL_PENALTY, len(rows) / _NODES_PER_PENALTY)
        penalty = max(_KNOWN_PENALTY, min(most, penalty))
        if len(rows) > _MOST_NODES:
            source = torch.Generator().manual_seed(_PUBLIC_SEED)
            some = torch.randperm(len(rows), generator=source)[:_MOST_NODES]
            rows, targets, others = rows[some], targets[some], others[some]
        self.weight, self.bias = _regression(
            rows,
            targets.shape[1],
            lambda odds: -(targets * log_softmax(odds + others, 1)).sum(),
            penalty,
        )
        self.factor.fill_(factor)


def known_student(
    rows: Tensor, evidence: ClassEvidence, penalty: float = _KNOWN_PENALTY
) -> ClassStudent:
    """Learn what is known of classes, by its likelihood; unknown nodes are not used.

    Args:
        rows: Rows of all nodes, shape ``(N, r)``, dense or sparse.
        evidence: What is known of classes.
        penalty: Penalty of half the squared weights.
    """
    nodes, log_likelihoods = evidence
    student = ClassStudent()
    student.weight, student.bias = _regression(
        rows.index_select(0, nodes).double(),
        log_likelihoods.shape[1],
        lambda odds: -torch.logsumexp(log_softmax(odds, 1) + log_likelihoods, 1).sum(),
        penalty,
    )
    return student


def self_trained(
    rows: Tensor, evidence: ClassEvidence, factor: float, others: Tensor | None = None
) -> ClassStudent:
    """Learn what is known of classes, and then the probabilities that follow for all nodes (self-training).

    Args:
        rows: Rows of all nodes, shape ``(N, r)``.
        evidence: What is known of classes.
        factor: Factor of the log odds.
        others: Log probabilities by another student, shape ``(N, C)``; the geometric mean with them
            is learned.
    """
    logs: Tensor = known_student(rows, evidence)(rows)
    mean = logs if others is None else (logs + others) / 2
    student = ClassStudent()
    targets = torch.softmax(evidence.added_to(mean), 1)
    student.fit(rows, targets, factor, len(evidence.nodes), torch.zeros_like(targets))
    return student


def column_student(columns: Tensor, evidence: ClassEvidence) -> tuple[ClassStudent, Tensor]:
    """Learn what is known of classes from all columns; cross-validation chooses the penalty.

    Args:
        columns: Columns of all nodes (public), shape ``(N, F)``, sparse.
        evidence: What is known of classes (public or released).

    Returns:
        The student, and log probabilities of all nodes, shape ``(N, C)``. Those of a known node are
        by students that do not know its class.
    """
    nodes, facts = evidence
    tried = []
    for penalty in _COLUMN_PENALTIES:
        logs = torch.zeros_like(facts)
        for out in _folds(evidence):
            student = known_student(columns, evidence.some(~out), penalty)
            logs[out] = student(columns.index_select(0, nodes[out]))
        tried.append((float(_mixed([logs], facts).fun), penalty, logs))
    _, penalty, left_out = min(tried, key=lambda one: one[0])
    student = known_student(columns, evidence, penalty)
    found = student(columns)
    found[nodes] = left_out
    return student, found


def confidence(rows: Tensor, evidence: ClassEvidence, others: Tensor) -> tuple[float, float]:
    """Choose the factors of log odds that predict what is known of classes best, by cross-validation.

    A student that has learned soft probabilities ranks classes well, and is far too unsure: its log
    odds are too small by a factor. Votes of neighbors would then outweigh it.

    Args:
        rows: Rows of all nodes, shape ``(N, r)`` (public).
        evidence: What is known of classes (public or released).
        others: Log probabilities by another student, shape ``(N, C)``; see :func:`column_student`.

    Returns:
        The factors of a self-trained student of the rows, and of the other student.
    """
    nodes, facts = evidence
    odds = torch.zeros_like(facts)
    for out in _folds(evidence):
        student = self_trained(rows, evidence.some(~out), 1.0)
        odds[out] = rows[nodes[out]] @ student.weight + student.bias
    factor, share = _mixed([odds, others[nodes]], facts).x.tolist() if odds.any() else (1.0, 0.0)
    return factor, share


def _folds(evidence: ClassEvidence) -> Iterator[Tensor]:
    """Yield masks of the facts that are left out, unless all facts of a class are among them."""
    count, likeliest = len(evidence.nodes), evidence.likeliest
    folds = min(_FOLDS, count)
    source = torch.Generator().manual_seed(_PUBLIC_SEED)
    fold_of = torch.randperm(count, generator=source) % folds
    for fold in range(folds):
        out = fold_of == fold
        if torch.isin(likeliest[out], likeliest[~out]).all():
            yield out


def _mixed(odds: Sequence[Tensor], log_likelihoods: Tensor) -> OptimizeResult:
    """Factors of log odds of shape ``(K, C)`` each, by the largest likelihood of what is known."""

    def loss(factors: NDArray[np.float64]) -> tuple[float, list[float]]:
        logs = log_softmax(torch.stack([*odds], 2) @ torch.from_numpy(factors), 1)
        joint = logs + log_likelihoods
        gap = logs.exp() - torch.softmax(joint, 1)
        value = float(-torch.logsumexp(joint, 1).sum())
        return value, [float((gap * each).sum()) for each in odds]

    bounds = [(_LEAST_FACTOR, _MOST_FACTOR), (0.0, _MOST_FACTOR)][: len(odds)]
    return minimize(loss, [1.0, 0.0][: len(odds)], jac=True, bounds=bounds)


def _regression(
    rows: Tensor, count: int, cost: Callable[[Tensor], Tensor], penalty: float
) -> tuple[Tensor, Tensor]:
    """Weights and biases of ``count`` classes that minimize a cost, and half the penalty of squared weights.

    The cost is a function of the log odds of the rows, shape ``(P, C)``.
    """
    parameters = torch.zeros(rows.shape[1] + 1, count, dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [parameters], max_iter=_STEPS, tolerance_grad=1e-6, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        weight, bias = parameters[:-1], parameters[-1]
        total = cost(rows @ weight + bias) + penalty / 2 * weight.square().sum()
        torch.autograd.backward(total)
        return total

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    result = parameters.detach()
    return result[:-1].contiguous(), result[-1].contiguous()
