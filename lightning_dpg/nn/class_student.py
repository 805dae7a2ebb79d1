"""Multinomial regression of classes on rows of nodes: from facts about them, or probabilities of them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from lightning_dpg.nn.class_evidence import ClassEvidence
from lightning_dpg.nn.resized_buffers import resize_on_loading

# Penalties of the squared weights: of known classes, and of probabilities of all nodes that follow from
# few known ones. The more nodes are known for each number of a row, from 2.5 to 25, the smaller the second
# one is. Fixed on Cora-ML, with 20 labels of each class and with those of 75 % of the nodes. Few nodes
# bear a small one only, as fixed on synthetic graphs of 250 nodes.
_KNOWN_PENALTY, _ALL_PENALTY = 1.0, 10.0
_KNOWN_PER_NUMBER = 25
_NODES_PER_PENALTY = 250
_STEPS = 60
_FOLDS = 5
_FACTORS = tuple(2 ** (power / 2) for power in range(-2, 9))
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

    def forward(self, rows: Tensor) -> Tensor:
        """Compute log probabilities of rows of shape ``(P, r)``: shape ``(P, C)``."""
        return log_softmax(self.factor * (rows.double() @ self.weight + self.bias), 1)

    def fit(self, rows: Tensor, targets: Tensor, factor: float, num_known: int) -> None:
        """Learn the probabilities of nodes.

        Args:
            rows: Rows of shape ``(N, r)``.
            targets: Probabilities of the classes, shape ``(N, C)``.
            factor: Factor of the log odds that are learned, see :func:`confidence`.
            num_known: Number of nodes with known classes, from which the targets follow.
        """
        penalty = _KNOWN_PER_NUMBER * rows.shape[1] / max(num_known, 1)
        most = min(_ALL_PENALTY, len(rows) / _NODES_PER_PENALTY)
        penalty = max(_KNOWN_PENALTY, min(most, penalty))
        if len(rows) > _MOST_NODES:
            source = torch.Generator().manual_seed(_PUBLIC_SEED)
            some = torch.randperm(len(rows), generator=source)[:_MOST_NODES]
            rows, targets = rows[some], targets[some]
        self.weight, self.bias = _regression(
            rows, targets.shape[1], lambda logs: -(targets * logs).sum(), penalty
        )
        self.factor.fill_(factor)


def known_student(rows: Tensor, evidence: ClassEvidence) -> ClassStudent:
    """Learn what is known of classes, by its likelihood; unknown nodes are not used.

    Args:
        rows: Rows of all nodes, shape ``(N, r)``.
        evidence: What is known of classes.
    """
    nodes, log_likelihoods = evidence
    student = ClassStudent()
    student.weight, student.bias = _regression(
        rows[nodes],
        log_likelihoods.shape[1],
        lambda logs: -torch.logsumexp(logs + log_likelihoods, 1).sum(),
        _KNOWN_PENALTY,
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
    student.fit(rows, torch.softmax(evidence.added_to(mean), 1), factor, len(evidence.nodes))
    return student


def confidence(rows: Tensor, evidence: ClassEvidence) -> float:
    """Choose the factor of log odds that predicts what is known of classes best, by cross-validation.

    A student that has learned soft probabilities ranks classes well, and is far too unsure: its log
    odds are too small by a factor. Votes of neighbors would then outweigh it.

    Args:
        rows: Rows of all nodes, shape ``(N, r)`` (public).
        evidence: What is known of classes (public or released).
    """
    count, likeliest = len(evidence.nodes), evidence.likeliest
    folds = min(_FOLDS, count)
    source = torch.Generator().manual_seed(_PUBLIC_SEED)
    fold_of = torch.randperm(count, generator=source) % folds
    losses = torch.zeros(len(_FACTORS), dtype=torch.double)
    for fold in range(folds):
        out = fold_of == fold
        if not torch.isin(likeliest[out], likeliest[~out]).all():
            continue  # a class without a node is no class of a student
        student = self_trained(rows, evidence.some(~out), 1.0)
        left_out = evidence.some(out)
        odds = rows[left_out.nodes] @ student.weight + student.bias
        for place, factor in enumerate(_FACTORS):
            logs = log_softmax(factor * odds, 1) + left_out.log_likelihoods
            losses[place] -= torch.logsumexp(logs, 1).sum()
    return _FACTORS[int(losses.argmin())] if losses.any() else 1.0


def _regression(
    rows: Tensor, count: int, cost: Callable[[Tensor], Tensor], penalty: float
) -> tuple[Tensor, Tensor]:
    """Weights and biases of ``count`` classes that minimize a cost, and half the penalty of squared weights.

    The cost is a function of the log probabilities of the rows, shape ``(P, C)``.
    """
    parameters = torch.zeros(rows.shape[1] + 1, count, dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [parameters], max_iter=_STEPS, tolerance_grad=1e-6, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        weight, bias = parameters[:-1], parameters[-1]
        total = cost(log_softmax(rows @ weight + bias, 1)) + penalty / 2 * weight.square().sum()
        torch.autograd.backward(total)
        return total

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    result = parameters.detach()
    return result[:-1].contiguous(), result[-1].contiguous()
