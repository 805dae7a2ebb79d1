"""What DPNetGAN means to spend: its counts and a step of training, before any of it is spent."""

import math
from typing import Any

from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.privacy.accounting import gaussian_sigma, smallest
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.ledger import Budget, PrivacyLedger
from lightning_dpg.privacy.sensitivity import (
    degree_sensitivity,
    edge_count_sensitivity,
    edge_gradient_sensitivity,
)

# A step at the largest noise that is looked for costs nothing, at whatever rate below 1.
_MOST_NOISE = 1e9
_ANY_RATE = 0.5


def step_entry(h: Any, noise_multiplier: float, sample_rate: float) -> LedgerEntry:
    """Cost of one critic step.

    Args:
        h: The hyperparameters.
        noise_multiplier: Its noise.
        sample_rate: Rate of its batch.
    """
    return LedgerEntry(
        key="critic_gradient",
        name="critic gradient",
        relation=Relation.EDGE,
        mechanism="gaussian",
        sensitivity=edge_gradient_sensitivity(h["max_grad_norm"]),
        proof="edge_gradient_sensitivity",
        noise_multiplier=noise_multiplier,
        sample_rate=sample_rate,
    )


def count_entries(h: Any, budget: Budget | None) -> list[LedgerEntry]:
    """Cost of the number of edges and of the degrees, where they are released.

    Args:
        h: The hyperparameters.
        budget: That of the run, of which the degrees take a share.

    Raises:
        MisconfigurationException: If there is nothing that they could take a share of.
    """
    entries = []
    if h["mode"] != "paper" and h["num_edges"] is None:
        entries.append(
            LedgerEntry(
                key="num_edges",
                name="number of edges",
                relation=Relation.EDGE,
                mechanism="pure",
                sensitivity=edge_count_sensitivity(),
                proof="edge_count_sensitivity",
                epsilon=h["count_epsilon"],
            )
        )
    if h["degree_share"]:
        if budget is None or math.isinf(budget.epsilon):
            raise MisconfigurationException("degree_share needs a finite privacy.epsilon")
        entries.append(
            LedgerEntry(
                key="degrees",
                name="degrees",
                relation=Relation.EDGE,
                mechanism="gaussian",
                sensitivity=degree_sensitivity(),
                proof="degree_sensitivity",
                noise_multiplier=gaussian_sigma(*budget) / h["degree_share"] ** 0.5,
            )
        )
    return entries


def check_counts(
    h: Any,
    budget: Budget | None,
    noise_multiplier: float = _MOST_NOISE,
    sample_rate: float = _ANY_RATE,
) -> None:
    """Refuse a budget that does not pay for the counts and one step together.

    Args:
        h: The hyperparameters.
        budget: That of the run.
        noise_multiplier: Noise of the step; by default so much that it costs next to nothing.
        sample_rate: Rate of its batch.

    Raises:
        MisconfigurationException: If it is too small; it names the smallest one that is not.
    """

    def fits(budget: Budget) -> bool:
        ledger = PrivacyLedger(Relation.EDGE)
        ledger.budget = budget
        return ledger.affords(
            *count_entries(h, budget), step_entry(h, noise_multiplier, sample_rate)
        )

    if budget is None or fits(budget):
        return
    found, enough = "far more", budget.epsilon
    while enough < 1000 * budget.epsilon:
        enough *= 2
        if fits(Budget(enough, budget.delta)):
            least = smallest(lambda epsilon: fits(Budget(epsilon, budget.delta)), enough, 1e-3)
            found = f"{math.ceil(100 * least) / 100:g} or more"
            break
    lower = [f"{name} {h[name]:g}" for name in ("count_epsilon", "degree_share") if h[name]]
    raised = "" if h["noise_multiplier"] == "auto" else ", or raise noise_multiplier"
    raise MisconfigurationException(
        f"privacy.epsilon {budget.epsilon:g} does not pay for the number of edges, the degrees and "
        f"one step of training together\nset it to {found}, or lower {' or '.join(lower)}{raised}"
    )
