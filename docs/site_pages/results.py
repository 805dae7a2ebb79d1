"""Pages of the measured numbers, and numbers in other pages."""

import re
from functools import cache
from pathlib import Path

from results import tables
from results.pages import all_figures, fill, index, page
from results.printed import paper_pages
from results.tables import Study, read_study, study_names
from site_pages.source import ROOT

_OTHER_STUDY = re.compile(r"\]\(\.\./(\w+)/README\.md\)")
# Rows and columns that stand beside those of a method, since its numbers mean little alone.
_BESIDE = re.compile(r"\b(baseline|training graph|original|ChungLu|ErdosRenyi|ErdosRenyiSet)\b")


def pages() -> dict[str, str]:
    """Text of each page by its path."""
    studies = _studies()
    links = re.compile(r"\]\((\w+)/README\.md\)")
    found = {"results/index.md": links.sub(r"](\1.md)", index([*studies]))}
    found |= {_path(study): _moved(page(study), study.name) for study in studies}
    return found | {_paper_path(path): _linked(path, text) for path, text in paper_pages().items()}


def files() -> dict[str, str]:
    """Content of the other files that these pages link to, by path."""
    root = ROOT / "results"
    written = {path.relative_to(ROOT).as_posix(): text for path, text in all_figures().items()}
    tables = [root / study.name / "results.csv" for study in _studies()]
    tables.append(root / "papers" / "printed.csv")
    return written | {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in tables
    }


def navigation() -> list[dict[str, str]]:
    """Title and path of the page of each study and paper, for the navigation."""
    papers = {_paper_path(path): text for path, text in paper_pages().items()}
    titles = [{text.split("\n")[0].removeprefix("# "): path} for path, text in papers.items()]
    return [{study.title: _path(study)} for study in _studies()] + titles


def _path(study: Study) -> str:
    return f"results/{study.name}.md"


def _paper_path(path: Path) -> str:
    return "results/papers.md" if path.name == "README.md" else f"results/papers/{path.name}"


def _linked(path: Path, text: str) -> str:
    """Links from the page of a paper, or from their index, which lies beside their folder."""
    if path.name == "README.md":
        return re.sub(r"\]\((\w+\.(?:md|csv))\)", r"](papers/\1)", fill(text))
    return re.sub(r"\]\(\.\./(\w+)/README\.md\)", r"](../\1.md)", fill(text))


def _moved(text: str, study: str) -> str:
    """Links from the page of a study, which lies beside its folder, to its files and to others."""
    text = re.sub(r"\]\(([\w.-]+\.(?:svg|csv))\)", rf"]({study}/\1)", text)
    return _OTHER_STUDY.sub(r"](\1.md)", text)


@cache
def _studies() -> tuple[Study, ...]:
    return tuple(read_study(ROOT / "results" / name) for name in study_names())


def replaced(markdown: str, path: str) -> str:
    """Put numbers and tables in place of ``{{ results: STUDY/TABLE }}``.

    Args:
        markdown: Text of a page.
        path: Its path in the site, for messages.

    Raises:
        ValueError: If there is no such number.
    """
    try:
        return fill(markdown)
    except Exception as error:
        raise ValueError(f"docs/{path}: {error}") from error


def measured(method: str) -> str:
    """The parts of all tables that name a method, by study, in Markdown.

    Args:
        method: Name of the class.
    """
    found = []
    for study in _studies():
        parts = [part for table in study.tables if (part := part_of(study, table, method))]
        if parts:
            found += [f"### [{study.title}](../{_path(study)})", *parts]
    return _OTHER_STUDY.sub(r"](../results/\1.md)", "\n\n".join(found))


def part_of(study: Study, table: str, method: str) -> str:
    """Rows, or columns, of a table that name a method, beside the baselines; empty if none does.

    Args:
        study: The study.
        table: Name of its table.
        method: Name of the class.
    """
    text = study.tables[table]
    name = re.compile(rf"\b{method}\b")
    if rows := _kept(text.rows, name):
        text = text._replace(rows=rows)
    elif columns := _kept(text.columns, name):
        text = text._replace(columns=columns)
    else:
        return ""
    cells = {
        key: cell
        for key, cell in study.cells.items()
        if cell.table == table and cell.row in text.rows and cell.column in text.columns
    }
    text = text._replace(
        rows=_filled(text.rows, {cell.row for cell in cells.values()}),
        columns=_filled(text.columns, {cell.column for cell in cells.values()}),
    )
    return tables.render(study._replace(tables={table: text}, cells=cells), table)


def _filled(labels: dict[str, str], used: set[str]) -> dict[str, str]:
    """Labels of rows or columns with a number."""
    return {key: label for key, label in labels.items() if key in used}


def _kept(labels: dict[str, str], name: re.Pattern[str]) -> dict[str, str]:
    """Labels that match, and those to compare them with; empty if none matches."""
    texts = {key: f"{key} {label}" for key, label in labels.items()}
    if not any(map(name.search, texts.values())):
        return {}
    return {
        key: labels[key] for key, text in texts.items() if name.search(text) or _BESIDE.search(text)
    }
