"""The chosen folder, which is the current one: its data files and runs, and nothing outside."""

import io
import itertools
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from lightning_dpg.formats.graph_places import tables_of
from lightning_dpg.formats.text_rows import is_edge_list
from lightning_dpg.run_folder import NOT_PRIVATE, RELEASE, STATEMENT

STUDIO = Path(".studio")
"""Answers, messages and locks of the studio, for the owner alone (private)."""
RUNS = Path("runs")
_GRAPHS = (".npz", ".graphml", ".gexf", ".gml", ".parquet", ".duckdb")
_SET = "_graph_indicator.txt"
_DEPTH = 3
_MOST = 500
_MOST_LOOKED_AT = 20_000


def is_inside(path: Path) -> bool:
    """Return whether a path leads to something in the folder; a link may lead out of it.

    Args:
        path: Path relative to the folder.
    """
    return not path.is_absolute() and path.resolve().is_relative_to(Path.cwd())


def data_files() -> list[str]:
    """Return graphs, tables, tables in parts such as ``monthly/*.csv`` and sets of graphs, by name."""
    found, folders = set[str](), set[Path]()
    for path in itertools.islice(_walk(Path(), _DEPTH), _MOST_LOOKED_AT):
        name = path.name.lower()
        if name.endswith(_SET):
            found.add(path.parent.as_posix())
        elif path.parent not in folders:
            folders.add(path.parent)
            found.update(tables_of(path.parent))
        if is_edge_list(name) or name.removesuffix(".gz").endswith(_GRAPHS):
            found.add(path.as_posix())
    sets = {name for name in found if Path(name).is_dir()}
    files = {name for name in found if Path(name).parent.as_posix() not in sets}
    return sorted((files | sets) - {"."})[:_MOST]


def run_folders() -> list[str]:
    """Return the folders of runs with a release, the newest first."""
    found = {
        path.parent.parent
        for depth in ("*", "*/*", "*/*/*")
        for part in (RELEASE, NOT_PRIVATE)
        for path in Path().glob(f"{depth}/{part}/{STATEMENT}")
    }
    inside = [path for path in found if is_inside(path)]
    newest = sorted(inside, key=lambda path: (-path.stat().st_mtime, path.as_posix()))
    return [path.as_posix() for path in newest]


def archive(folder: Path) -> bytes:
    """Pack the files of a folder: no folder beside it, and nothing that a link leads to.

    Args:
        folder: Folder of a release.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.iterdir()):
            if path.is_file() and not path.is_symlink():
                packed.write(path, f"{folder.name}/{path.name}")
    return content.getvalue()


def own_folder() -> Path:
    """Make the folder of the studio, which only its owner can read."""
    STUDIO.mkdir(mode=0o700, exist_ok=True)
    return STUDIO


def write_private(path: Path, text: str) -> None:
    """Write a file as a whole that only its owner can read.

    Args:
        path: Its path.
        text: Its content.
    """
    own_folder()
    scratch = path.with_name(f"{path.name}.{os.getpid()}.{id(text)}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    scratch.replace(path)


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the files of a folder and of those inside; links, hidden ones and runs are left out."""
    for path in sorted(folder.iterdir()):
        if path.name[0] in ".-" or path.is_symlink() or path == RUNS:
            continue
        if path.is_file():
            yield path
        elif path.is_dir() and depth > 1 and not (path / RELEASE).is_dir():
            yield from _walk(path, depth - 1)
