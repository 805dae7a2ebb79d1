"""Folders of synthetic graphs that other programs open: PyTorch Geometric, Croissant, the Hub, Neo4j."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.attributes import LABELS, attributes_of
from lightning_dpg.graph.drawn_tables import edge_values, rows_of
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.release import pyg_dataset
from lightning_dpg.release.card.document import in_markdown
from lightning_dpg.release.checksums import digest
from lightning_dpg.release.graph_files import num_edges
from lightning_dpg.release.writer import today, write_statement
from lightning_dpg.tables import as_csv

_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")
"""Sizes that the Hub knows; n is the number of edges of all graphs."""
_LICENCES = ("CC0-1.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "MIT", "Apache-2.0")
"""Licences of SPDX that the Hub knows by the same name in small letters."""
_TYPES = {"amount": "double", "first_time": "localdatetime"}


def write_pyg_dataset(graphs: Sequence[Data], content: dict[str, Any], folder: Path) -> None:
    """Write graphs, the file that opens them, ``privacy.json``, a data card and Croissant metadata.

    Args:
        graphs: Synthetic graphs. Tables of drawn rows and transfers are left out, since their values
            are attributes of nodes and edges as well.
        content: Content of ``privacy.json`` with topics.
        folder: Empty folder.
    """
    arrays = {
        f"{number}/{name}": value.numpy(force=True)
        if isinstance(value, Tensor)
        else np.array(value)
        for number, graph in enumerate(graphs)
        for name, value in graph.to_dict().items()
        if isinstance(value, Tensor | int | str | list)
    }
    np.savez_compressed(folder / "graphs.npz", **arrays)  # type: ignore[arg-type]
    shutil.copyfile(pyg_dataset.__file__, folder / "dataset.py")
    write_statement(content, folder)
    count, edges = len(graphs), sum(map(num_edges, graphs))
    nodes, licence = (
        sum(int(graph.num_nodes) for graph in graphs),
        content["administrative"]["licence"],
    )
    facts = {
        "content": content,
        "graph": graphs[0].to_dict(),
        "counts": f"{count:,} synthetic graph{'s' * (count > 1)} of {nodes:,} nodes and {edges:,} edges.",
        "size": _SIZES[min(max(len(str(edges)) - 3, 0), len(_SIZES) - 1)],
        "licence": next((each for each in _LICENCES if each.lower() == licence.lower()), None),
        "tags": ["graph", "synthetic", *["differential-privacy"] * (content["epsilon"] != "inf")],
        "today": today(),
    }
    loader = FileSystemLoader(Path(__file__).parent)
    templates = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True)
    templates.filters |= {"markdown": in_markdown, "digest": digest}
    for name, template in (("README.md", "dataset.md"), ("croissant.json", "croissant.json")):
        facts["files"] = sorted(folder.iterdir())
        text = templates.get_template(f"{template}.jinja").render(facts)
        (folder / name).write_text(text + "\n", encoding="utf-8")


def write_neo4j(graph: Data, content: dict[str, Any], folder: Path) -> None:
    """Write ``nodes.csv`` and ``relationships.csv`` for ``neo4j-admin database import``.

    Args:
        graph: A synthetic graph. An undirected edge is one relationship, whose direction says nothing.
        content: Content of ``privacy.json``, which is written beside them.
        folder: Empty folder.
    """
    names, sides = np.array(graph.node_names, dtype=object), getattr(graph, "sides", None)
    labels = ["Node"] * len(names) if sides is None else np.array(["Left", "Right"])[sides]
    source, target = names[space_of(graph).edges(graph).numpy()].reshape(-1, 2).T
    values = [(f"{name}:{_TYPES[name]}", cells) for name, cells in edge_values(graph).items()]
    related = [(":START_ID", source), (":END_ID", target), (":TYPE", ["RELATED"] * len(source))]
    nodes = [("node:ID", names), (":LABEL", labels), *_properties(graph)]
    for name, columns in (("nodes", nodes), ("relationships", [*related, *values])):
        heads, cells = zip(*columns, strict=True)
        text = as_csv(heads, zip(*cells, strict=True))
        (folder / f"{name}.csv").write_text(text, encoding="utf-8", newline="")
    write_statement(content, folder)


def _properties(graph: Data) -> list[tuple[str, Sequence[Any]]]:
    """Return the cells of the nodes by heads with a type: drawn rows, public attributes and classes."""
    rows, public = rows_of(graph), attributes_of(graph)
    found: list[tuple[str, Sequence[Any], str]] = []
    if rows is not None:
        found += [(*each, "string") for each in zip(rows.domains, rows.texts(), strict=True)]
    if public is not None:
        # Columns of 0 and 1 for the values of drawn rows follow the public ones.
        count = len(public.names) - sum(map(len, rows.domains.values() if rows else ()))
        numbers = public.x[:, :count].T.tolist()
        found += [(*each, "double") for each in zip(public.names[:count], numbers, strict=True)]
    if public is not None and public.y is not None:
        found.append((LABELS, ["" if each < 0 else each for each in public.y.tolist()], "long"))
    # The last colon of a head begins the type.
    return [(f"{name.replace(':', '_')}:{kind}", cells) for name, cells, kind in found]
