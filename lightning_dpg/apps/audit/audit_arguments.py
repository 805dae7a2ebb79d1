"""Arguments of an audit, checked before PyTorch is imported."""

from typing import Literal, NamedTuple, get_args

from lightning_dpg.errors import CommandError

View = Literal["black_box", "white_box"]
"""Whether the attacker has the release alone, or each noisy value of the run as well."""

RelationOfAudit = Literal["edge", "attributes"]
"""What a canary is: edges, as the relation of the method says, or a row of private columns."""


class Design(NamedTuple):
    """Design of an audit, see :func:`lightning_dpg.apps.audit.audits.audit`.

    Attributes:
        canaries: Number of canaries of each fit.
        runs: Number of fits.
        view: View of the attacker.
        relation: Relation of the canaries; None for edges.
        confidence: Probability with which all bounds hold together.
    """

    canaries: int | None = None
    runs: int | None = None
    view: View = "black_box"
    relation: RelationOfAudit | None = None
    confidence: float = 0.95


def check_design(design: Design, mark: str = "") -> None:
    """Refuse a design whose check needs no data.

    Args:
        design: The design.
        mark: Characters before the names of arguments in messages, such as ``--``.

    Raises:
        CommandError: If a part of it is out of its range.
    """
    canaries, runs, view, relation, confidence = design
    if canaries is not None and canaries * (runs or 1) < 4:
        raise CommandError(
            f"{mark}canaries must be at least 4 in all fits together, got {canaries}"
        )
    if runs is not None and runs < 4:
        raise CommandError(f"{mark}runs must be at least 4, got {runs}")
    if not 0 < confidence < 1:
        raise CommandError(f"{mark}confidence must be between 0 and 1, got {confidence:g}")
    if view not in get_args(View):
        raise CommandError(f"{mark}view must be {' or '.join(get_args(View))}, got {view!r}")
    if relation is not None and relation not in get_args(RelationOfAudit):
        known = " or ".join(get_args(RelationOfAudit))
        raise CommandError(f"{mark}relation must be {known}, got {relation!r}")
