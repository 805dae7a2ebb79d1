"""A page for each method, from its class docstring, its configurations and the measured numbers."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import griffe
import yaml

from lightning_dpg.run.configurations import shipped_configs
from lightning_dpg.run.shipped import MethodInfo, list_methods
from site_pages import results, source

TASKS = {
    "one graph": "One graph",
    "set of graphs": "Sets of graphs",
    "features of graphs": "Features and labels of graphs",
    "classes of nodes": "Classes of nodes",
}
"""Title of each task of ``list_methods``, in the order of the site."""
KINDS = {
    "private": "With a guarantee",
    "as published": "As published, for comparison with a paper",
    "not private": "Without privacy, for comparison",
}
GUARANTEES = {"pure": "epsilon", "approximate": "(epsilon, delta)", "none": "none"}
RELATIONS = {
    "edge": "one edge",
    "node": "all edges of one node",
    "transfer": "one transfer",
    "edges_of_node": "several edges of one node",
    "local_graph": "the graph of one client",
    "": "nothing",
}
# Sections of a class docstring that have a place of their own on the page.
_SECTIONS = ("When to use", "Privacy", "Cost", "Differences from the paper")
_INTRODUCTION = """\
# Methods

[Choosing a method](../choosing.md) says which method to take; this page lists all of them. *Protects* names the
difference that an attacker cannot tell: one edge, all edges of one node, or the whole graph of one client. A guarantee of
*epsilon* alone needs no delta.
"""


@dataclass(frozen=True)
class Method:
    """A method as the site shows it.

    Attributes:
        info: Its row of ``list_methods``.
        configurations: Names of the shipped configurations, those of papers last.
    """

    info: MethodInfo
    configurations: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of its class."""
        return self.info.name

    @property
    def kind(self) -> str:
        """A key of ``KINDS``."""
        if self.name.endswith("AsPublished"):
            return "as published"
        return "not private" if self.info.guarantee == "none" else "private"

    @property
    def guarantee(self) -> str:
        """Its guarantee in a few words."""
        depends = ", under a condition" if self.info.is_conditional else ""
        return GUARANTEES[self.info.guarantee] + depends

    @property
    def protects(self) -> str:
        """Its neighboring relation in a few words."""
        return RELATIONS[self.info.relation]

    @property
    def docstring(self) -> griffe.Object:
        """The class, as its source says it."""
        return source.target(f"methods.{self.name}")

    @property
    def path(self) -> str:
        """Path of its page in the site."""
        return f"methods/{self.name}.md"


@cache
def methods() -> tuple[Method, ...]:
    """All methods that can be run, by task and kind, then by name."""
    names = _configurations()
    found = [Method(info, tuple(names.get(info.name, ()))) for info in list_methods()]
    tasks, kinds = [*TASKS], [*KINDS]
    return tuple(sorted(found, key=lambda one: (tasks.index(one.info.task), kinds.index(one.kind))))


@cache
def _configurations() -> dict[str, list[str]]:
    """Names of the shipped configurations by class: of methods, then of baselines and papers."""
    found: dict[str, list[str]] = {}
    shipped = shipped_configs().items()
    for name, path in sorted(shipped, key=lambda item: item[1].parent.name != "methods"):
        model = _settings(path).get("model") or {}
        found.setdefault(model.get("class_path", ""), []).append(name)
    return found


def _settings(path: Path) -> dict[str, dict[str, str]]:
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def anchors() -> dict[str, str]:
    """Heading of each method."""
    return {one.name: f"lightning_dpg.methods.{one.name}" for one in methods()}


@cache
def pages() -> dict[str, str]:
    """Text of each page by its path."""
    return {"methods/index.md": index(), **{one.path: page(one) for one in methods()}}


def navigation() -> list[dict[str, list[str]]]:
    """Pages of the methods by task, for the navigation."""
    return [
        {title: [one.path for one in methods() if one.info.task == task]}
        for task, title in TASKS.items()
    ]


def index() -> str:
    """The table of all methods, by task."""
    parts = [_INTRODUCTION]
    for task, title in TASKS.items():
        parts.append(f"## {title}")
        for kind, heading in KINDS.items():
            chosen = [one for one in methods() if (one.info.task, one.kind) == (task, kind)]
            if chosen:
                slug = f"{task}-{kind}".replace(" ", "-")
                parts += [f"### {heading} {{ #{slug} }}", _table(chosen)]
    return "\n\n".join(parts)


def _table(chosen: list[Method]) -> str:
    lines = ["| method | guarantee | protects | configuration |", "|---|---|---|---|"]
    for one in chosen:
        summary, _ = source.summary(source.text(one.docstring))
        names = ", ".join(f"`{name}`" for name in _short(one.configurations))
        method = f"[`{one.name}`]({one.name}.md)<br>{summary}"
        lines.append(f"| {method} | {one.guarantee} | {one.protects} | {names} |")
    return "\n".join(lines)


def _short(configurations: tuple[str, ...]) -> list[str]:
    """Names of the configurations, a folder of a paper in place of its many files."""
    return list(dict.fromkeys(_folder(name) for name in configurations))


def _folder(name: str) -> str:
    return f"{name.rpartition('/')[0]}/..." if name.startswith("papers/") else name


def page(one: Method) -> str:
    """The page of a method in Markdown."""
    summary, description = source.summary(source.text(one.docstring))
    titled = source.titled(one.docstring)
    own = [f"## {title}\n\n{titled[title]}" for title in _SECTIONS[:3] if title in titled]
    parts = [
        f"# {one.name} {{ #lightning_dpg.methods.{one.name} }}",
        summary,
        _facts(one),
        *own,
        f"## How it works\n\n{description}" if description else "",
        _differences(titled),
        _papers(one.docstring, titled),
        _examples(one),
        _measured(one.name),
        f"## Arguments\n\n::: lightning_dpg.methods.{one.name}\n{_ARGUMENTS}",
    ]
    return "\n\n".join(part for part in parts if part)


_ARGUMENTS = """\
    options:
      show_root_heading: false
      show_root_toc_entry: false
      show_docstring_description: false
      show_docstring_attributes: false
      members: false
      extra: {show_sections: false}
"""


def _facts(one: Method) -> str:
    rows = {
        "Reads": "one graph" if one.info.task == "one graph" else "a set of graphs",
        "Guarantee": one.guarantee,
        "Protects": one.protects,
        "Configuration": ", ".join(f"`{name}`" for name in _short(one.configurations)) or "none",
    }
    return "\n".join(f"- **{key}:** {text}" for key, text in rows.items())


def _differences(titled: dict[str, str]) -> str:
    title = _SECTIONS[3]
    return f"## {title}\n\n{titled[title]}" if title in titled else ""


def _papers(docstring: griffe.Object, titled: dict[str, str]) -> str:
    """The sources: the list after the sections, or a section of references."""
    later = [
        str(part.value)
        for part in source.sections(docstring)[1:]
        if isinstance(part, griffe.DocstringSectionText)
    ]
    text = "\n\n".join([*later, *([titled["References"]] if "References" in titled else [])])
    return f"## Papers\n\n{text}" if text else ""


def _examples(one: Method) -> str:
    """Command line, Python and configuration, in tabs."""
    if not one.configurations:
        return ""
    name, *others = one.configurations
    path = shipped_configs()[name]
    parts = ["## Run it", *_runs(one, name), _tab("YAML", "yaml", path.read_text("utf-8"))]
    if others:
        parts.append("Other configurations: " + ", ".join(f"`{other}`" for other in others) + ".")
    return "\n\n".join(parts)


def _runs(one: Method, name: str) -> list[str]:
    """A configuration on the reader's data; that of a paper on the data of the paper."""
    command = f"python -m lightning_dpg fit --config {name}"
    if name.startswith("papers/"):
        return [_tab("Command line", "bash", command)]
    epsilon = str(_settings(shipped_configs()[name])["privacy"]["epsilon"])
    budget = ".inf" if epsilon == "inf" else epsilon
    data = "my-graph.csv" if one.info.task == "one graph" else "MY-TU-FOLDER"
    command += f" \\\n    --data.init_args.name {data} --privacy.epsilon {budget}"
    python = f"release = dpg.fit({data!r}, method={name!r}, epsilon={_python(epsilon)})"
    if one.info.task == "one graph":
        python += "\ngraph = release.sample(seed=0)"
    python = "import lightning_dpg as dpg\n\n" + python.replace("'", '"')
    return [_tab("Command line", "bash", command), _tab("Python", "python", python)]


def _python(epsilon: str) -> str:
    return 'float("inf")' if epsilon == "inf" else epsilon


def _tab(title: str, language: str, text: str) -> str:
    lines = "\n".join(f"    {line}".rstrip() for line in text.strip().splitlines())
    return f'=== "{title}"\n\n    ```{language}\n{lines}\n    ```'


def _measured(name: str) -> str:
    """Rows of the results that name the method."""
    numbers = results.measured(name)
    return f"## Measured\n\n{numbers}" if numbers else ""
