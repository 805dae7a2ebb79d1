"""Events of MkDocs: generated pages join the site, and placeholders become numbers."""

import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# `site_pages` and `results` are no installed packages.
sys.path[:0] = [str(ROOT / "docs"), str(ROOT)]

from site_pages import api, changelog, commands, examples, methods, proofs, queries, results
from site_pages.roles import RoleExtension


def on_config(config: MkDocsConfig) -> None:
    """Add the roles of docstrings to Markdown."""
    extension: Any = RoleExtension(anchors())
    config.markdown_extensions.append(extension)


def anchors() -> dict[str, str]:
    """Heading of each name that has one on some page."""
    bounds = {bound.name: bound.name for bound in proofs.every_bound()}
    return {**api.anchors(), **bounds, **methods.anchors()}


def generated() -> dict[str, str]:
    """Text of each generated page by its path in the site."""
    return {
        **methods.pages(),
        **results.pages(),
        **examples.pages(),
        **api.pages(),
        "proofs.md": proofs.page(),
        "queries.md": queries.page(),
        "changelog.md": changelog.page(),
    }


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and name them in the navigation."""
    for path, text in {**generated(), **results.files(), **examples.files()}.items():
        files.append(File.generated(config, path, content=text))
    for section in config.nav or []:
        for title, children in section.items():
            if title == "Methods":
                children += methods.navigation()
            elif title == "Results":
                children += results.navigation()
            elif title == "Examples":
                children += examples.navigation()
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace ``{{ results: STUDY/TABLE }}`` by numbers and ``{{ commands }}`` by all helps."""
    path = page.file.src_uri
    page.meta["search"] = {"boost": _search_boost(path)}
    if path == "commands.md":
        markdown = markdown.replace("{{ commands }}", commands.helps())
    return results.replaced(markdown, path)


def _search_boost(path: str) -> float:
    """Weight of a page in searches: guides come first, then methods, and the history last."""
    if (ROOT / "docs" / path).is_file():
        return 4.0
    return 0.25 if path == "changelog.md" else 1.0
