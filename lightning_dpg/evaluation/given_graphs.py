"""Releases and graphs that an evaluation compares, from objects, files and folders."""

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.evaluation.node_classification import NamedGraph
from lightning_dpg.graph.attributes import attach
from lightning_dpg.graph.graph import narrow
from lightning_dpg.graph.node_names import NoEdgesError
from lightning_dpg.graph.pair_space import Kind, pair_space, space_of
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.release.card.topics import kind_of as stated_kind
from lightning_dpg.release.graph_files import FORMATS
from lightning_dpg.release.reader import open_release, read_attributes
from lightning_dpg.release.recipe import read_recipe
from lightning_dpg.release.release import Release
from lightning_dpg.release.writer import ATTRIBUTES, FEATURES
from lightning_dpg.run.data import load, of_known_nodes, own_names
from lightning_dpg.run.data import under_own_names as named
from lightning_dpg.run_folder import GENERATOR, LEARNER, STATEMENT, release_folder, statement_in


def sources_of(synthetic: Any) -> list[Any]:
    """Return the graphs and releases that were given."""
    sources = synthetic if _holds_several(synthetic) else [synthetic]
    if not sources:
        raise CommandError("evaluate: no synthetic graph is given")
    return sources


NamedSource = tuple[Any, str]
"""A graph or a release, and a name of it where it has none of its own."""


def all_graphs(
    sources: Sequence[NamedSource], undirected: bool, kind: Kind, *, attributes: bool
) -> list[NamedGraph]:
    """Read all synthetic graphs; those without attributes are for measurements alone."""
    return [
        graph if attributes else graph._replace(graph=narrow(graph.graph))
        for source, name in sources
        for graph in graphs_of(source, name, undirected, kind, attributes)
    ]


def predicting(source: Any) -> Release | None:
    """Return the open release of a source that predicts classes; None if it draws graphs."""
    if isinstance(source, Release):
        return of_known_nodes(source) if isinstance(source.method, NodeClassifier) else None
    folder = release_folder(source) if isinstance(source, (str, Path)) else None
    if folder is None or not (folder / LEARNER).is_file():
        return None
    release = open_release(folder)
    return of_known_nodes(release) if isinstance(release.method, NodeClassifier) else None


def kind_of(sources: Sequence[NamedSource], undirected: bool) -> Kind:
    """Return the kind of the first release among the synthetic graphs, if directions are kept."""
    for source, _ in [] if undirected else sources:
        if isinstance(source, Release):
            kind: Kind = getattr(source.method, "kind", "undirected")
            return kind
        folder = release_folder(source) if isinstance(source, (str, Path)) else None
        if folder is not None:
            return stated_kind({"entries": read_statement(folder).get("entries") or []})
    return "undirected"


def opened(release: Release | Path | None) -> Release | None:
    """Open a release, to score pairs; None if it cannot be opened."""
    if isinstance(release, Release):
        return named(release)
    try:
        return None if release is None else named(open_release(release))
    except Refusal:  # its class is not shipped, or it has graphs only
        return None


def _holds_several(synthetic: Any) -> bool:
    """Return whether a list holds graphs and releases; a list of pairs is one graph."""
    return isinstance(synthetic, list) and not (synthetic and all(map(_is_pair, synthetic)))


def _is_pair(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and not isinstance(item, Release)


def name_of(source: object, otherwise: str) -> str:
    """Name a graph by its file or built-in name, or else as ``otherwise`` says."""
    source = getattr(source, "source", source)  # of a data module
    return str(source) if isinstance(source, (str, Path)) else otherwise


def graphs_of(
    source: Any, otherwise: str, undirected: bool, kind: Kind, attributes: bool
) -> Iterator[NamedGraph]:
    """Yield each graph that a source stands for, with the names of nodes that were published."""
    if isinstance(source, NamedGraph):
        yield source
        return
    if isinstance(source, Release):
        guarantee = str(source.statement.get("guarantee", ""))
        graph = _draw(source, kind)
        yield NamedGraph(otherwise, graph, guarantee, source.statement, source)
        return
    folder = release_folder(source) if isinstance(source, (str, Path)) else None
    if folder is None:
        graph = load(source, undirected, kind, attributes=attributes)
        yield NamedGraph(name_of(source, otherwise), graph, "")
        return
    statement = read_statement(folder)
    for path in released_graphs(folder):
        nodes = _names_of_nodes(folder) if path.suffix == ".parquet" else None
        try:
            if not path.stat().st_size:
                raise NoEdgesError(f"{path}: empty")
            graph = load(str(path), undirected, kind, attributes=attributes, nodes=nodes)
        except NoEdgesError:  # drawn without edges, which can be judged
            if not (folder / GENERATOR).is_file():
                raise
            graph = _without_edges(folder, kind)
        yield NamedGraph(str(path), graph, statement["guarantee"], statement, folder)


def under_own_names(one: NamedGraph) -> NamedGraph:
    """Name the nodes of a graph as their owner does, where its release has numbers in their place."""
    release, statement = one.release, one.statement
    if release is None and (Path(one.name).parent / STATEMENT).is_file():  # a file of a release
        release = Path(one.name).parent
        statement = read_statement(release)
    folder = release.folder if isinstance(release, Release) else release
    graph = copy.copy(one.graph)
    graph.node_names = own_names(graph.node_names, statement, folder)
    return one._replace(graph=graph)


def _without_edges(folder: Path, kind: Kind) -> Data:
    """Return the nodes of a release, with their public attributes, as a graph without edges."""
    recipe = read_recipe(folder / GENERATOR)[0]
    names = recipe["node_names"]
    space = pair_space(kind, len(names), recipe.get("num_left"))
    graph = space.graph(torch.empty(0, 2, dtype=torch.long), names)
    known = read_attributes(folder / ATTRIBUTES, names)
    if known is not None:
        attach(graph, known)
    return graph


def _names_of_nodes(folder: Path) -> list[str] | None:
    """Return the names of all nodes of a release; its Parquet files lack those without edges."""
    path = folder / GENERATOR
    return read_recipe(path)[0]["node_names"] if path.is_file() else None


def _draw(release: Release, kind: Kind) -> Data:
    """Draw the graph of seed 0 from an open release."""
    if not isinstance(release.method, Synthesizer):
        raise CommandError(
            f"evaluate: {type(release.method).__name__} releases features, and draws no graph"
        )
    graph = release.sample(0)
    if space_of(graph).kind != kind:
        raise CommandError(
            f"evaluate: the graph of the release is {space_of(graph).kind}, and the real one is "
            f"read as {kind}\nset kind to {space_of(graph).kind}"
        )
    return graph


def released_graphs(folder: Path) -> list[Path]:
    """Return the files of the graphs of a release, one for each seed, in the order of the seeds.

    Args:
        folder: Folder of the release.

    Raises:
        CommandError: If there is none.
    """
    # Reversed, since an edge list, the first format, loses nodes without edges.
    for suffix in (*reversed(FORMATS), "parquet"):
        paths = list(folder.glob(f"synthetic-*.{suffix}"))
        if paths:
            return sorted(paths, key=lambda path: (len(path.name), path.name))
    features = f": it holds {FEATURES}" if (folder / FEATURES).is_file() else ""
    raise CommandError(f"{folder}: a release without synthetic graphs{features}")


def read_statement(folder: Path) -> dict[str, Any]:
    """Read the privacy statement of a release, with the sentence of its guarantee.

    Args:
        folder: Folder of the release.

    Raises:
        CommandError: If its statement is damaged.
    """
    path = folder / STATEMENT
    try:
        statement = statement_in(folder)
        return statement | {"guarantee": str(statement["guarantee"])}
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(f"{path}: no privacy statement ({error})") from error
