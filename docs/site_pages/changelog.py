"""The page of changes."""

from site_pages.source import ROOT


def page() -> str:
    """The changelog of the project."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
