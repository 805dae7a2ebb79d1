"""Constraints of single settings of a method: its class declares them, and saving checks them."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, get_args, get_origin

from lightning_dpg.errors import Refusal


@dataclass(frozen=True)
class Constraint:
    """Requirement on one setting.

    Attributes:
        words: The valid values, a phrase to follow "must be".
        allows: Whether a value is valid.
        remedy: Another way out; an empty string if the words are enough.
    """

    words: str
    allows: Callable[[Any], bool]
    remedy: str = ""

    def check(self, name: str, value: object) -> None:
        """Refuse an invalid value.

        Args:
            name: Name of the setting.
            value: Its value.

        Raises:
            Refusal: If the value is invalid, or of a type that cannot be compared.
        """
        try:
            is_valid = self.allows(value)
        except TypeError:
            is_valid = False
        if not is_valid:
            remedy = f"; {self.remedy}" if self.remedy else ""
            raise Refusal(f"{name} must be {self.words}, got {value!r}{remedy}")


Constraints = Mapping[str, Constraint]

POSITIVE = Constraint("positive", lambda value: value > 0)
SHARE = Constraint("in (0, 1)", lambda value: 0 < value < 1)
"""A share of a whole that leaves a rest."""
RATE = Constraint("in (0, 1]", lambda value: 0 < value <= 1)


def at_least(least: int) -> Constraint:
    """Require a number that is not below ``least``."""
    return Constraint(f"{least} or more", lambda value: value >= least)


def one_of(*choices: object) -> Constraint:
    """Require one of the choices."""
    return Constraint(f"one of {', '.join(map(str, choices))}", lambda value: value in choices)


def either(other: str | None, constraint: Constraint) -> Constraint:
    """Allow a word, or None, beside the values of another constraint."""
    return replace(
        constraint,
        words=f"{constraint.words}, or {other}",
        allows=lambda value: value == other or constraint.allows(value),
    )


@cache
def constraints_of(method: type) -> Constraints:
    """Constraints of a method: ``Literal`` arguments and declarations, its own before its bases'."""
    merged: dict[str, Constraint] = {}
    for owner in reversed(method.__mro__):
        own = vars(owner)
        arguments = inspect.signature(own["__init__"]).parameters if "__init__" in own else {}
        for name, argument in arguments.items():
            if get_origin(argument.annotation) is Literal:
                merged[name] = one_of(*get_args(argument.annotation))
        merged |= own.get("constraints", {})
    return merged
