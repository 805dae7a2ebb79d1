"""Pages written from the numbers: a README for each study, and regions of other Markdown files."""

import re
from collections.abc import Mapping
from pathlib import Path

from lightning_dpg.errors import CommandError
from results import tables
from results.figures import draw
from results.printed import paper_pages
from results.quality import quality_file
from results.tables import FOLDER, Study, read_study, render, study_names

_NUMBER = re.compile(r"\{\{ *results: *([^{}]+?) *\}\}")
_START = re.compile(r"^<!-- results: *([^\s/]+)/([^\n]+?) *-->\n", re.MULTILINE)
_REGION = re.compile(
    rf"({_START.pattern})(?:(?!<!-- results:).)*?^(<!-- end -->)", re.DOTALL | re.MULTILINE
)
_WRITTEN = "<!-- Written by `python -m results` from study.yaml and results.csv. -->"


def fill(text: str) -> str:
    """Replace ``{{ results: STUDY/TABLE/ROW/COLUMN }}`` by a number, ``STUDY/TABLE`` by a table.

    ``STUDY/TABLE/ROW/COLUMN/deviation`` is the standard deviation of the number.

    Args:
        text: Markdown.

    Raises:
        CommandError: If a number or a table does not exist.
    """
    return _NUMBER.sub(lambda match: _named(match[1]), text)


def fill_regions(text: str) -> str:
    """Write the tables between ``<!-- results: STUDY/TABLE -->`` and ``<!-- end -->``.

    Args:
        text: Markdown.

    Raises:
        CommandError: If a table does not exist, or a region has no end.
    """
    filled, count = _REGION.subn(lambda m: f"{m[1]}{fill(tables.table(m[2], m[3]))}\n{m[4]}", text)
    if (starts := len(_START.findall(text))) > count:
        faults = starts - count
        raise CommandError(f"results: {faults} of {starts} regions without <!-- end -->")
    return filled


def page(study: Study) -> str:
    """Content of the README of a study.

    Args:
        study: The study.
    """
    blocks = [_WRITTEN, f"# {study.title}", study.question, study.notes]
    if study.benchmark:
        command = f"python -m lightning_dpg compare --study {study.name}"
        blocks.append(f"```bash\n{command} --out compared\n```")
    if study.commands:
        blocks.append("```bash\n" + "\n".join(study.commands) + "\n```")
    for name, figure in study.figures.items():
        blocks += [f"![{figure['caption']}]({name}.svg)", figure["caption"]]
    for name, text in study.tables.items():
        blocks += [f"## {text.title}", render(study, name), text.notes]
    blocks.append(_provenance(study))
    return fill("\n\n".join(block for block in blocks if block)) + "\n"


def index(studies: list[Study]) -> str:
    """Content of ``results/README.md``: all studies.

    Args:
        studies: The studies.
    """
    lines = ["| study | question | numbers |", "|---|---|---|"]
    for study in studies:
        link = f"[{study.title}]({study.name}/README.md)"
        lines.append(f"| {link} | {study.question} | {len(study.cells)} |")
    return (
        f"{_WRITTEN}\n\n# Results\n\n{(FOLDER / 'about.md').read_text()}\n"
        + "\n".join(lines)
        + "\n"
    )


def all_pages() -> dict[Path, str]:
    """Content of every written Markdown file, and of the numbers that are shipped, by its path."""
    studies = [read_study(FOLDER / name) for name in study_names()]
    pages = {FOLDER / study.name / "README.md": page(study) for study in studies}
    pages |= quality_file()
    pages |= {path: fill(text) for path, text in paper_pages().items()}
    pages[FOLDER / "README.md"] = index(studies)
    root = FOLDER.parent
    for path in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
        text = path.read_text(encoding="utf-8")
        if _START.search(text):
            try:
                pages[path] = fill_regions(text)
            except CommandError as error:
                raise CommandError(f"{path.relative_to(root)}: {error}") from error
    return pages


def all_figures() -> Mapping[Path, str]:
    """Content of every figure by its path."""
    studies = [read_study(FOLDER / name) for name in study_names()]
    return {
        FOLDER / study.name / f"{name}.svg": draw(study, name)
        for study in studies
        for name in study.figures
    }


def _named(name: str) -> str:
    match [part.strip() for part in name.split("/")]:
        case [study, table]:
            return fill(tables.table(study, table))
        case [study, table, row, column]:
            return tables.cell(study, table, row, column)
        case [study, table, row, column, "deviation"]:
            return tables.cell(study, table, row, column, deviation=True)
    raise CommandError(f"results: {name} is neither STUDY/TABLE nor STUDY/TABLE/ROW/COLUMN")


def _provenance(study: Study) -> str:
    own = [cell for cell in study.cells.values() if cell.source == "measured"]
    dates = sorted({cell.date for cell in own})
    machines = sorted({cell.machine for cell in own if cell.machine})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return (
        f"Recorded {span}; machine: {'; '.join(machines) or 'not recorded'}. "
        "[results.csv](results.csv) has date and commit of each record, and runs and seeds if known."
    )
