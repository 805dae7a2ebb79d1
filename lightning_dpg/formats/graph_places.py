"""Files of graphs by their names, and refusals where there is none. It needs no PyTorch."""

import difflib
import os
import zipfile
from collections.abc import Collection
from pathlib import Path

from lightning_dpg.formats.edge_columns import column_names
from lightning_dpg.graph.node_names import GraphFormatError, user_path

DATA_VARIABLE = "LIGHTNING_DPG_DATA"
_DATABASES = {"duckdb", "postgresql", "postgres", "spark"}
_MATRICES = {"indptr.npy", "adj_indptr.npy"}


def data_root() -> Path | None:
    """Return the folder of real data, if the environment names one."""
    value = os.environ.get(DATA_VARIABLE)
    return Path(value).expanduser() if value else None


def data_set_file(name: str) -> Path | None:
    """Return the file of a graph in the folder of real data; None if there is none.

    Args:
        name: Name of the graph; a path is none.
    """
    root = data_root()
    if root is None or Path(name).name != name:
        return None
    return next((path for path in _places(root, name) if path.is_file()), None)


def graph_file(name: str, built_in: Collection[str]) -> Path | None:
    """Return the file of a graph; None for a built-in one.

    Args:
        name: Built-in name, name in the folder of real data, or path.
        built_in: Names of the built-in graphs.

    Raises:
        GraphFormatError: If there is no such graph.
    """
    path = user_path(name)
    if name in built_in:
        return None
    if (file := data_set_file(name)) is not None:
        return file
    if path.exists() or path.suffix or path.name != name:
        check_file(path)
        return path
    raise GraphFormatError(_unknown(name, built_in))


def tables_of(folder: Path) -> list[str]:
    """Return patterns of the tables in a folder that come in parts, such as ``monthly/*.csv``.

    Args:
        folder: The folder. The parts of a table end alike and have the same first row, which no other
            file has that the pattern names; no part is a link.
    """
    found = []
    for suffix in (".csv", ".parquet"):
        paths = sorted(folder.glob(f"*{suffix}"))
        parts: dict[tuple[str, ...], list[str]] = {}
        for path in paths:
            first = ("",) if suffix == ".parquet" else tuple(column_names(path))
            parts.setdefault(first, []).append(path.name)
        for names in parts.values():
            apart = (k for k, each in enumerate(zip(*names, strict=False)) if len({*each}) > 1)
            start = "" if len(names) == len(paths) else names[0][: next(apart, 0)]
            together = [path for path in paths if path.name.startswith(start)]
            is_whole = not any(path.is_symlink() for path in together)
            if len(together) == len(names) > 1 and is_whole:
                found.append((folder / f"{start}*{suffix}").as_posix())
    return found


def check_file(path: Path) -> None:
    """Refuse a path that is no file.

    Args:
        path: Path of a graph.

    Raises:
        GraphFormatError: If it is a folder, a URL or nothing.
    """
    if path.is_dir():
        raise GraphFormatError(
            f"{path}: a folder\nexpected an edge list, .npz, .graphml, .gexf or .gml file\n"
            "a folder of TU text files is a set of graphs: for methods of sets, and for compare"
        )
    if not path.is_file():
        scheme, mark, _ = str(path).partition(":/")
        if mark and scheme in _DATABASES:  # without the rest, which may hold a password
            raise GraphFormatError(
                f"{scheme}://...: a database, and this reads files\n"
                "fit and audit read its tables: --data EdgeTableDataModule --data.source URL\n"
                "from Python dpg.evaluate(data.graph, ...) compares with one; for other commands\n"
                "write the table to a Parquet file"
            )
        if mark:
            raise GraphFormatError(
                f"{scheme}://...: a file of another machine, and only files of this one are read\n"
                "download it first, and give the path of the copy"
            )
        form = "an edge list, .npz, .graphml, .gexf or .gml file"
        raise GraphFormatError(f"{path}: no such file\nexpected {form}")


def known_graphs(built_in: Collection[str]) -> list[str]:
    """Return the names of the built-in graphs and of the graphs in the folder of real data.

    Args:
        built_in: Names of the built-in graphs.
    """
    root = data_root()
    names = [*built_in]
    if root is not None:
        names += sorted(p.name.removesuffix(".edges.gz") for p in root.glob("graphs/*.edges.gz"))
        names += sorted(
            path.stem
            for path in root.glob("npz/*.npz")
            if path.stem not in names and _holds_matrix(path)
        )
    return names


def _places(root: Path, name: str) -> tuple[Path, Path]:
    return root / "graphs" / f"{name}.edges.gz", root / "npz" / f"{name}.npz"


def _holds_matrix(path: Path) -> bool:
    """Return whether an archive is a graph; others hold splits."""
    try:
        with zipfile.ZipFile(path) as archive:
            return not _MATRICES.isdisjoint(archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def _unknown(name: str, built_in: Collection[str]) -> str:
    by_folded = {graph.casefold(): graph for graph in known_graphs(built_in)}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=3)
    root = data_root()
    where = (
        f"{DATA_VARIABLE} is not set" if root is None else ", ".join(map(str, _places(root, name)))
    )
    lines = [
        f"unknown graph {name!r}",
        f"built in: {', '.join(built_in)}",
        f"looked for: {where}, and the file {name} in {Path.cwd()}",
    ]
    if near:
        lines.insert(1, f"did you mean {' or '.join(by_folded[match] for match in near)}?")
    return "\n".join(lines)
