"""Pages of the Python interface: mkdocstrings writes them from the names in ``__all__``."""

import griffe

from site_pages import source

# Modules of `privacy` with public functions and classes, in the order of a reader.
_PRIVACY = (
    "budget",
    "ledger",
    "events",
    "calibration",
    "accounting",
    "composition",
    "loss_distributions",
    "dpsgd",
    "sampling",
    "noise",
)
# Names that most readers look for, before the others of the interface.
_FIRST = ("fit", "open_release", "Release")
_INTERFACE = """\
# Python interface

`import lightning_dpg as dpg` loads nothing else; each name is imported on first use. These names are
the public interface: they stay where they are.
The methods have [pages of their own](../methods/index.md).
"""
_DATAMODULES = """\
# Data modules

A data module reads a graph or a set of graphs and serves the records that a method asks for. See [your own data](../data.md).
"""
_CALLBACKS = """\
# Callbacks

Callbacks of a Lightning `Trainer`: the budget, the release, curves and figures.
"""
_PRIVACY_TEXT = """\
# Privacy

The package `lightning_dpg.privacy`: budget, ledger, accounting, noise. [Proofs](../proofs.md) holds
the sensitivities and the mechanisms.
"""


def pages() -> dict[str, str]:
    """Text of each page by its path."""
    privacy = [f"## {name}\n\n{_module(f'privacy.{name}')}" for name in _PRIVACY]
    return {
        "api/index.md": "\n".join([_INTERFACE, *_directives("", _exported(""))]),
        "api/datamodules.md": "\n".join([_DATAMODULES, *_directives("datamodules")]),
        "api/callbacks.md": "\n".join([_CALLBACKS, *_directives("callbacks")]),
        "api/privacy.md": "\n".join([_PRIVACY_TEXT, *privacy]),
    }


def anchors() -> dict[str, str]:
    """Heading of each name on these pages."""
    found: dict[str, str] = {}
    for package in ("", "datamodules", "callbacks"):
        found |= {name: _dotted(package, name) for name in _exported(package)}
    for name in _PRIVACY:
        found |= {one: _dotted(f"privacy.{name}", one) for one in _defined(f"privacy.{name}")}
    return found


def _directives(package: str, names: list[str] | None = None) -> list[str]:
    """Directives of mkdocstrings for the exported names of a package."""
    return [
        f"::: {_dotted(package, name)}\n"
        for name in (names if names is not None else _exported(package))
    ]


def _module(path: str) -> str:
    """A module's docstring, and a directive for each class and function that it defines."""
    directives = "\n".join(
        f"::: {_dotted(path, name)}\n    options: {{heading_level: 3}}\n" for name in _defined(path)
    )
    return f"{source.text(source.target(path))}\n\n{directives}"


def _exported(package: str) -> list[str]:
    """Names in ``__all__`` of a package; ``""`` is the whole one."""
    module = source.package()[package] if package else source.package()
    names = [str(name) for name in module.exports or []]
    return sorted(names, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))


def _defined(path: str) -> list[str]:
    """Public classes and functions with a docstring that a module defines."""
    return [
        name
        for name, member in source.package()[path].members.items()
        if isinstance(member, griffe.Class | griffe.Function)
        and member.docstring
        and not name.startswith("_")
    ]


def _dotted(package: str, name: str) -> str:
    """Dotted path of a name; of the function where a package and its function share the name."""
    path = ".".join(part for part in (package, name) if part)
    is_both = isinstance(source.package()[path], griffe.Module)
    return f"lightning_dpg.{path}.{name}" if is_both else f"lightning_dpg.{path}"
