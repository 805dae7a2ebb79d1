"""The page of proofs: each bound with its statement, its proof and the tests that try it."""

import re
from dataclasses import dataclass
from functools import cache

import griffe

from site_pages import source
from site_pages.bound_tests import TestFunction, tests_of

INTRODUCTION = """\
# Proofs

Each private read has a *sensitivity*: the most that it changes between two neighboring data sets.
The noise is scaled to it. This page is generated from the source code: a statement and its proof are the
docstring of the function that computes the bound, and the ledger of a run names this function
(the field `proof` of `privacy.json`). Below each proof stand the tests that try it, most of them by brute force on
all small graphs.

For readers of [the privacy model](privacy.md) who want to check a claim.
"""
MECHANISMS = """\
## Mechanisms

A mechanism turns a bound into a guarantee. `pay` books a read, then draws its value by a law, then publishes it. A law
refuses what it cannot draw before the read is booked.
"""
PROJECTIONS = """\
## Projections

These functions limit what one edge can change. The bounds above rest on them.
"""
# The proof of the sum that DP-SGD noises; it takes no ledger, since its caller pays.
_SUMS = ("privacy.dpsgd.clipped_gradient_sum",)
# The proof of `wedge_sensitivity` names it without its module.
_WEDGES = "graph.wedges.count_wedges"
_MOST_TESTS = 6


@dataclass(frozen=True)
class Bound:
    """A function whose docstring is a statement and its proof.

    Attributes:
        path: Dotted path inside the package.
        function: The function, as its source says it.
    """

    path: str
    function: griffe.Object

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.function.name


@cache
def bounds() -> dict[str, list[Bound]]:
    """The declared sensitivities, by the file that holds them."""
    folder = source.package()["privacy.sensitivity"]
    files = [name for name, member in folder.members.items() if isinstance(member, griffe.Module)]
    return {name: _functions(f"privacy.sensitivity.{name}") for name in sorted(files)}


@cache
def mechanisms() -> list[Bound]:
    """Functions of ``privacy`` that pay, laws of noise, and what a ledger names as a proof."""
    paying = [
        bound
        for name, member in source.package()["privacy"].members.items()
        if isinstance(member, griffe.Module) and name != "sensitivity"
        for bound in _functions(f"privacy.{name}")
        if _pays(bound.function) or bound.path in _SUMS or bound.name in _named_proofs()
    ]
    order = {"pay": 0, "mechanisms": 1, "selection": 2, "multi_bit": 3}
    return sorted(paying, key=lambda bound: order.get(bound.path.split(".")[1], len(order)))


@cache
def projections() -> list[Bound]:
    """Functions that a proof names by their dotted path."""
    docstrings = "".join(_docstring(bound) for group in bounds().values() for bound in group)
    paths = re.findall(r":func:`lightning_dpg\.(graph[\w.]+)`", docstrings)
    return [Bound(path, source.target(path)) for path in dict.fromkeys([*paths, _WEDGES])]


def every_bound() -> list[Bound]:
    """All that the page holds."""
    return [*(one for group in bounds().values() for one in group), *mechanisms(), *projections()]


def page() -> str:
    """The page in Markdown."""
    parts = [INTRODUCTION]
    for name, group in bounds().items():
        title, rest = source.summary(source.text(source.target(f"privacy.sensitivity.{name}")))
        parts += [f"## {_heading(title)}\n", rest, *map(entry, group)]
    parts += [MECHANISMS, *map(entry, mechanisms()), PROJECTIONS, *map(entry, projections())]
    return "\n\n".join(part for part in parts if part)


def entry(bound: Bound) -> str:
    """Statement, proof, and tests of one bound, in Markdown."""
    statement, proof = source.summary(source.text(bound.function))
    parts = [f"### `{bound.name}` {{ #{bound.name} }}", f"**Statement.** {statement}"]
    if proof:
        parts.append(f"**Proof.** {proof}")
    parts += [f"**{title}:** {' '.join(text.split())}" for title, text in _titled(bound)]
    parts.append(_parameters(bound.function))
    parts.append(tried(tests_of(bound.name)))
    return "\n\n".join(part for part in parts if part)


def tried(tests: list[TestFunction]) -> str:
    """The tests of a bound: the code of the first one, and the names of all."""
    if not tests:
        return ""
    names = [f"- `{test.path}::{test.name}`" for test in tests]
    if len(names) > _MOST_TESTS:
        names[_MOST_TESTS:] = [f"- and {len(names) - _MOST_TESTS} more"]
    code = "\n".join(f"    {line}".rstrip() for line in tests[0].code.splitlines())
    listed = "\n".join(names)
    return (
        f"**Tried by**\n\n{listed}\n\n"
        f'??? example "Code of {tests[0].name}"\n\n    ```python\n{code}\n    ```'
    )


def _titled(bound: Bound) -> list[tuple[str, str]]:
    return list(source.titled(bound.function).items())


def _parameters(function: griffe.Object) -> str:
    """List of the parameters with their meaning, but not of a mechanism's many."""
    for part in source.sections(function):
        if isinstance(part, griffe.DocstringSectionParameters):
            rows = [f"- `{one.name}`: {' '.join(one.description.split())}" for one in part.value]
            return "**With**\n\n" + "\n".join(rows)
    return ""


def _heading(title: str) -> str:
    """A short heading from a module's first line."""
    short = re.split(r"[:;]", title)[0].removesuffix(".")
    short = short.removeprefix("Declared ")
    return short[:1].upper() + short[1:]


def _functions(path: str) -> list[Bound]:
    """Public functions that a module defines, in the order of the file."""
    return [
        Bound(f"{path}.{name}", member)
        for name, member in source.package()[path].members.items()
        if isinstance(member, griffe.Function) and not name.startswith("_")
    ]


def _pays(function: griffe.Object) -> bool:
    """Whether a function takes a ledger and draws noise, or returns a law that draws it."""
    if not isinstance(function, griffe.Function):
        return False
    return "NoiseSource], Tensor]" in str(function.returns) or {"ledger", "noise"} <= {
        parameter.name for parameter in function.parameters
    }


@cache
def _named_proofs() -> frozenset[str]:
    """Names that the source gives to a ledger entry as its proof."""
    files = (source.ROOT / "lightning_dpg").rglob("*.py")
    texts = [path.read_text(encoding="utf-8") for path in files]
    found = re.findall(r'proof=f?"([a-z_, ]+)|proof=(\w+)\.__name__', "\n".join(texts))
    return frozenset(name for names in found for part in names for name in part.split(", "))


def _docstring(bound: Bound) -> str:
    return bound.function.docstring.value if bound.function.docstring else ""
