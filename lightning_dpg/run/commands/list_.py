"""``list``: methods by tier, configurations and data sets, read from files without execution."""

import os
import re
from pathlib import Path
from typing import Annotated, Any

from lightning_dpg.advice import GOALS
from lightning_dpg.entry_points import METHODS, class_path, entry_names
from lightning_dpg.outcome import Outcome
from lightning_dpg.run.configurations import conf_folder, shipped_configs
from lightning_dpg.run.shipped import (
    MethodInfo,
    Tier,
    built_in_graphs,
    built_in_sets,
    list_methods,
    recommended_configurations,
)

Rows = list[tuple[str, str]]
"""Names, and a text for each."""

_TITLES: dict[Tier, str] = {
    "recommended": "the recommended methods",
    "baselines": "baselines and alternatives",
    "papers": "papers, corrected and as published",
    "without privacy": "without privacy",
}


def list_(*, everything: Annotated[bool, "--all"] = False) -> Outcome:
    """List the methods by tier, the recommended ones by goal.

    Args:
        everything: List all configurations and data sets as well.

    Example:
        python -m lightning_dpg list --all
    """
    recommended = {goal: list(recommended_configurations(goal)) for goal in GOALS}
    found = tiers()
    sections = {_TITLES[tier]: rows for tier, rows in found.items()}
    values: dict[str, Any] = {"recommended": recommended}
    values["methods"] = {tier: dict(rows) for tier, rows in found.items()}
    if of_others := [(name, class_path(name)) for name in entry_names(METHODS)]:
        sections["of other packages, which say what they protect"] = of_others
        values["methods"]["other packages"] = dict(of_others)
    if everything:
        of_folders, names = configs(), data_sets()
        sections |= of_folders | {"data sets (data.init_args.name)": names}
        values["configurations"] = {
            name: text for rows in of_folders.values() for name, text in rows
        }
        values["data_sets"] = dict(names)
    lines = [
        "recommended, by goal (plan --goal GOAL --epsilon E --num-nodes N --num-edges M gives the reason):",
        *(f"  {GOALS[goal]}: {', '.join(names)}" for goal, names in recommended.items()),
    ]
    for title, rows in sections.items():
        width = max((len(name) for name, _ in rows), default=0)
        lines.append(f"{title}:")
        lines += [f"  {name:<{width}}  {text}".rstrip() for name, text in rows]
    lines += [
        "fit --method NAME; a name is that of a configuration, of a class without one, or of another package",
        "[edge], [node], [local_graph]: what the guarantee protects; *: it has a condition",
    ]
    if not everything:
        lines.append("all configurations and data sets: python -m lightning_dpg list --all")
    return Outcome(lines, values)


def tiers() -> dict[Tier, Rows]:
    """Configuration of each method of each tier, or its class without one, and what it does."""
    found: dict[Tier, Rows] = {tier: [] for tier in _TITLES}
    methods = {row.name: row for row in list_methods()}
    recommended = [item for goal in GOALS for item in recommended_configurations(goal).items()]
    named = dict(recommended) | {
        row.configuration or row.name: row.name
        for row in methods.values()
        if row.tier != "recommended"
    }
    for name, method in sorted(named.items(), key=lambda item: item[0].lower()):
        row = methods[method]
        found[row.tier].append((name, f"{_text(name, row)}{_protected(row)}"))
    return found


def _text(name: str, row: MethodInfo) -> str:
    """First sentence of a configuration, or of its class."""
    path = shipped_configs().get(name)
    return row.summary.removesuffix(".") if path is None else _sentence(path)


def _protected(row: MethodInfo) -> str:
    """The relation of a guarantee, with a mark where it has a condition."""
    return f" [{row.relation}{'*' * row.is_conditional}]" if row.relation else ""


def data_sets() -> Rows:
    """Built-in graphs and sets of graphs, and the data sets in the folder of real data."""
    rows = [(name, "built in") for name in built_in_graphs()]
    rows += [(name, f"{text}; built in, a set") for name, text in built_in_sets().items()]
    root = os.environ.get("LIGHTNING_DPG_DATA")
    if root is None:
        return [*rows, ("...", "set LIGHTNING_DPG_DATA to a folder with graphs/NAME.edges.gz")]
    files = [*Path(root).glob("graphs/*.edges.gz"), *Path(root).glob("npz/*.npz")]
    rows += [(path.name.split(".")[0], str(path.relative_to(root))) for path in sorted(files)]
    sets = sorted(Path(root).glob("tu/*/"))
    return rows + [(path.name, f"{path.relative_to(root)}, a set") for path in sets]


def configs() -> dict[str, Rows]:
    """Name and first sentence of each shipped configuration, by folder."""
    found: dict[str, Rows] = {}
    for name, path in shipped_configs().items():
        folder = path.relative_to(conf_folder()).parts[0]
        rows = found.setdefault(f"configurations of conf/{folder} (--config)", [])
        rows.append((name, _sentence(path)))
    return found


def _sentence(path: Path) -> str:
    """The first sentence of the comments of a configuration."""
    comments = re.findall(r"^# ?(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return re.split(r"(?<=[\w)])\.(?: |$)", " ".join(comments))[0]
