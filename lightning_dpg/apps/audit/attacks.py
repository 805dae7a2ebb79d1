"""All attacks on a release of one graph, as a report (reads the private graph)."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.apps.audit.attack_report import AttackReport
from lightning_dpg.apps.audit.graph_set_attacks import attack_set
from lightning_dpg.apps.audit.link_stealing import (
    CONFIDENCE,
    SEED,
    Predictions,
    Published,
    Separation,
    aligned_by_degree,
    beyond_attributes,
    candidates,
    predict_links,
    steal_links,
    with_degrees_alone,
)
from lightning_dpg.apps.audit.reidentification import reidentify
from lightning_dpg.apps.audit.row_guesses import guess_rows
from lightning_dpg.classes import find_class
from lightning_dpg.datamodules import EdgeListDataModule, TUGraphDataModule
from lightning_dpg.datamodules.loading import known_graphs, load_reading
from lightning_dpg.datamodules.node_attributes import FROM_GRAPH, own_attributes
from lightning_dpg.datamodules.nodes import Nodes
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.io import write_graph
from lightning_dpg.graph.attributes import NodeAttributes, attach, encode
from lightning_dpg.graph.graph import places_of
from lightning_dpg.graph.pair_space import Kind, space_of
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.single_graph.attributed import Attributed
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.metrics.alignment import add_nodes, align
from lightning_dpg.release.reader import open_release
from lightning_dpg.release.release import Release
from lightning_dpg.run.configurations import find_config, refuse_foreign_code
from lightning_dpg.run.data import (
    data_of_rows,
    data_of_run,
    load,
    load_set,
    name_of_graph,
    of_known_nodes,
)
from lightning_dpg.run.fit import fit_settings, method_settings, on_data
from lightning_dpg.run.messages import readable_errors
from lightning_dpg.run.source import config_beside


def kind_of(opened: Release | list[Any], kind: Kind | None) -> Kind:
    """Return the kind of the graphs: that of a release, or the argument.

    Raises:
        CommandError: If a release holds graphs of another kind than the argument.
    """
    if not isinstance(opened, Release):
        return kind or "undirected"
    held: Kind = getattr(opened.method, "kind", "undirected")
    if kind not in (None, held):
        raise CommandError(
            f"kind is {kind}, and the release holds {held} graphs\n"
            f"leave it out, or set it to {held} (--kind {held})"
        )
    return held


def on_released_nodes(graph: Data, release: Release | None) -> Data:
    """Add the nodes of a release that an edge list does not name, because they have no edge."""
    method = None if release is None else release.method
    if not isinstance(method, Synthesizer | NodeClassifier) or method.node_names is None:
        return graph
    names = method.node_names
    if not set(graph.node_names) < set(names):
        return on_published_nodes(graph, names)
    number = {name: place for place, name in enumerate(names)}
    places = torch.tensor([number[name] for name in graph.node_names])
    return method.space.graph(places[space_of(graph).edges(graph)], names)


def on_published_nodes(graph: Data, names: Iterable[str]) -> Data:
    """Add published nodes to a graph that names some of them; those of a side are not known."""
    names = list(names)
    if space_of(graph).kind == "bipartite" or {*graph.node_names}.isdisjoint(names):
        return graph
    return add_nodes(graph, dict.fromkeys(names))


def public_attributes(
    release: Release | None, graph: Data, source: Any, settings: Mapping[str, Any] | None
) -> NodeAttributes | None:
    """Find the public attributes of the nodes of a graph, in their order.

    A release has the attributes of its method. Without them, a configuration with
    ``nodes.attributes: from_graph`` takes the attributes of the graph itself, and so does a release of
    classes without a configuration.

    Args:
        release: The attacked release, if it is one.
        graph: The real graph.
        source: The name, the path or the object that the graph was read from.
        settings: Configuration to fit again with, if there is one.

    Returns:
        The attributes; None if the attacker has none, or if they are in a table that the
        configuration names.
    """
    attributes = None if release is None else getattr(release.method, "node_attributes", None)
    if release is not None and attributes is not None:
        order = places_of(graph.node_names, release.method.node_names)
        if order is not None:
            rows: NodeAttributes = attributes.of_nodes(order)
            return rows
    nodes = Nodes.of(None if settings is None else settings["data"]["init_args"].get("nodes"))
    learned = release.method.hparams if release is not None else {}
    if "domains" in learned and [*nodes.value_domains] != [*(learned["domains"] or ())]:
        return None  # a shipped configuration names columns of its own data
    is_of_classes = release is not None and isinstance(release.method, NodeClassifier)
    if nodes.attributes != FROM_GRAPH and not (is_of_classes and settings is None):
        return None
    source = getattr(source, "source", source)  # of a data module
    table = own_attributes(load_reading(source, undirected=True), space_of(graph).kind)
    found = encode(table, graph.node_names, nodes.policies)
    return None if found.is_empty else found  # where all columns are private


def with_own_attributes(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Adapt a configuration to parts of the data whose files hold the attributes of the nodes."""
    section = settings["data"]
    data = dict(section["init_args"])
    if "nodes" in data:
        data["nodes"] = {**data["nodes"], "attributes": FROM_GRAPH, "policy": None, "column": None}
    return {**settings, "data": section | {"init_args": data}}


TARGET_SHARE = 0.05
MOST_TARGETS = 1000
HIDDEN_SHARE = 0.2
NUM_GRAPHS = 10


def attack(
    real: Any,
    published: Any = None,
    *,
    baseline: str | Path | None = None,
    undirected: bool = False,
    kind: Kind | None = None,
) -> AttackReport:
    """Attack a release, and compare with a release that has not seen the targets.

    The attacks are link stealing, re-identification of nodes and link prediction, and of a release with
    drawn rows also guesses of private rows; of a set of graphs link prediction alone, and of a release
    of classes of nodes link stealing alone. Reads the
    private graph: the numbers are not private.

    Args:
        real: The real graph, or the set of graphs, as for :func:`lightning_dpg.fit`; or, alone, the
            folder of a run of one graph, whose config.yaml says where its graph is.
        published: An open release, the folder of a release or of a run, a synthetic graph, or a list
            of synthetic graphs.
        baseline: Name or file of the configuration to fit again with. By default that of the release
            or of its run, if there is one; otherwise random graphs of the published degrees take
            the place of a second release.
        undirected: Whether to drop the directions of directed graphs.
        kind: Kind as which to read the graphs: ``undirected``, ``directed`` or ``bipartite``. By
            default that of the release; graphs in files are undirected.

    Returns:
        All numbers; ``str(report)`` is a text for people.

    Raises:
        CommandError: If a graph or a release is not readable, or if they do not fit together.

    Example:
        >>> import lightning_dpg as dpg
        >>> report = dpg.attack("karate", dpg.fit("karate", "chung_lu", epsilon=1.0))
        >>> report.values["graph"], report.values["targets"]
        ({'name': 'karate', 'is_public': True}, 4)
        >>> report.values["baseline"]
        'fitted without the targets'
    """
    with readable_errors(), warnings.catch_warnings():
        if published is None:
            real, published = data_of_run(real), real
        return attack_published(
            real, published, baseline=baseline, undirected=undirected, kind=kind
        )


def attack_published(
    real: Any,
    published: Any,
    *,
    baseline: str | Path | None = None,
    undirected: bool = False,
    kind: Kind | None = None,
) -> AttackReport:
    """Do what :func:`attack` does, with the errors of the command line."""
    settings = _baseline_settings(published, baseline)
    data_class: type[pl.LightningDataModule] = EdgeListDataModule
    if settings is not None and issubclass(
        find_class(settings["model"]["class_path"]), GraphSetSynthesizer
    ):
        if isinstance(real, str) and real in known_graphs():
            raise CommandError(f"{real}: a single graph, while the methods learn sets of graphs")
        union = load_set(real, undirected)
        values, data_class = attack_set(union, settings), TUGraphDataModule
    else:
        opened = _opened(published)
        kind = kind_of(opened, kind)
        release = opened if isinstance(opened, Release) else None
        graph = load(real, undirected, kind)
        graph = on_released_nodes(graph, release)
        drawn = [] if isinstance(opened, Release) else [load(g, undirected, kind) for g in opened]
        graph = on_published_nodes(graph, (name for each in drawn for name in each.node_names))
        attributes = public_attributes(release, graph, real, settings)
        if isinstance(opened, Release):
            view = published_release(opened, graph)
        else:
            view = published_graphs(drawn, graph)
        if attributes is not None:
            view = view._replace(attributes=attributes.x)
        elif view.predictions is not None:
            raise CommandError(
                "attack compares classes with public attributes of the nodes, which it does not find\n"
                "give data that hold them, and a configuration with nodes: {attributes: from_graph}"
            )
        if release is not None and (
            release.method.reads_private_columns or isinstance(release.method, Attributed)
        ):
            settings = None  # files of parts of the graph would hold no rows and no transfers
        values = attack_graph(graph, view, settings, attributes)
        if release is not None and isinstance(release.method, Attributed):
            data = data_of_rows(real, release)
            guesses = [] if data is None else guess_rows(release, data)
            values |= {"row_guesses": [each.for_json() for each in guesses]}
    return AttackReport({"graph": name_of_graph(real, data_class)._asdict(), **values})


def attack_graph(
    real: Data,
    published: Published,
    settings: Mapping[str, Any] | None = None,
    attributes: NodeAttributes | None = None,
) -> dict[str, Any]:
    """Try link stealing and, where graphs are drawn, re-identification and link prediction.

    Compare each attack with the same attack on a baseline release that has not seen the targets.

    Args:
        real: Real graph.
        published: The release of the graph, as the attacker has it.
        settings: Configuration to fit again with, see :func:`settings_for_parts`; without one,
            random graphs with the published degrees replace the second release.
        attributes: Public attributes of the nodes, for the fits on parts of the graph.

    Returns:
        The report, as plain values.

    Raises:
        CommandError: If the graph has too few or too many edges for the attacks.
    """
    space, count = space_of(real), len(published.graphs)
    edges = space.edges(real)
    order = torch.randperm(len(edges), generator=torch.Generator().manual_seed(SEED))
    num_targets = min(max(round(TARGET_SHARE * len(edges)), 2), MOST_TARGETS)
    num_hidden = max(round(HIDDEN_SHARE * len(edges)), 2)
    if len(edges) <= num_hidden or len(edges) > space.num_pairs - 2:
        raise CommandError(f"the real graph has {len(edges)} edges: nothing to tell apart")
    targets = candidates(real, edges[order[:num_targets]])
    hidden = candidates(real, edges[order[: min(num_hidden, MOST_TARGETS)]])
    visible = space.graph(edges[order[num_hidden:]], real.node_names)
    rest = space.graph(edges[order[num_targets:]], real.node_names)
    if attributes is not None:
        settings = settings and with_own_attributes(settings)
        attach(rest, attributes)
        attach(visible, attributes)

    def fitted(part: Data) -> Published:
        """What the attacker would have of a release of a part of the graph."""
        if settings is None:
            return with_degrees_alone(published)
        return _fit_again(part, settings, count)._replace(attributes=published.attributes)

    without = fitted(rest)
    stolen, stolen_without = (steal_links(each, targets) for each in (published, without))
    blind = None if published.predictions else "degrees alone"
    values = {
        "nodes": real.num_nodes,
        "edges": len(edges),
        **({} if published.predictions else {"graphs": count}),
        "targets": num_targets,
        "baseline": "fitted without the targets" if settings else blind,
        "confidence": CONFIDENCE,
        "link_stealing": [
            {"attack": name, "others": others}
            | {"release": _plain(measured), "baseline": _plain(stolen_without.get((name, others)))}
            for (name, others), measured in stolen.items()
        ],
    }
    predictions, x = published.predictions, published.attributes
    if predictions is not None and x is not None:  # classes have no graphs to look into
        beyond = beyond_attributes(predictions.posteriors, x, targets)
        rows = [{"others": others, "auc": one._asdict()} for others, one in beyond.items()]
        return values | {"beyond_attributes": rows}
    by_release, by_chance = (reidentify(real, each.graphs) for each in (published, without))
    ties = torch.Generator().manual_seed(SEED)
    generated = published if settings is None else fitted(visible)
    aligned = [aligned_by_degree(graph, visible, ties) for graph in generated.graphs]
    return values | {
        "reidentification": [
            {"knowledge": name, "chance": 1 / real.num_nodes}
            | {"release": share._asdict(), "baseline": by_chance[name]._asdict()}
            for name, share in by_release.items()
        ],
        "link_prediction": {
            "real": predict_links([visible], hidden)._asdict(),
            "generated": predict_links(aligned, hidden)._asdict(),
        },
    }


def settings_for_parts(config: Path) -> dict[str, Any]:
    """Read a configuration for fits on parts of the real data, which have all nodes of the whole.

    Args:
        config: Its file.

    Raises:
        CommandError: If it is not the configuration of a method, or fixes a split of the edges.
    """
    return _for_parts(method_settings(config), str(config))


def _for_parts(settings: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Adapt a configuration to parts of the real data."""
    section = settings["data"]
    data = dict(section["init_args"])
    if data.get("split") is not None:
        raise CommandError(
            f"{origin}: its split names fixed edges, and the attack has to leave some out\n"
            "give a configuration without one: --baseline-config CONF"
        )
    data["undirected"] = False
    of_whole = {"nodes": {"ids": None}, "columns": {"source": None, "target": None}}
    for name, unset in of_whole.items():  # of the file of the whole
        if name in data:
            data[name] = data[name] | unset
    if "largest_component" in data:
        data["largest_component"] = False
    return {**settings, "data": section | {"init_args": data}}


def _baseline_settings(published: Any, baseline: str | Path | None) -> dict[str, Any] | None:
    """Return the configuration to fit again with; None if there is none."""
    if baseline is not None:
        return settings_for_parts(find_config(str(baseline)))
    if isinstance(published, Release):
        if published.configuration is not None:
            return _for_parts(published.configuration, "the configuration of the release")
        folder = published.folder
    else:
        folder = _folder_of(published)
    config = None if folder is None else config_beside(folder)
    if config is None:
        return None
    refuse_foreign_code(config)
    return settings_for_parts(config)


def _folder_of(published: Any) -> Path | None:
    """Return the folder of a release, if ``published`` is one."""
    items = published if isinstance(published, list) else [published]
    if not items:
        raise CommandError("published: the list holds no synthetic graph")
    folders = [Path(item) for item in items if isinstance(item, str | Path) and Path(item).is_dir()]
    if folders and len(items) > 1:
        raise CommandError(f"{folders[0]}: give one release, or files of graphs")
    return folders[0] if folders else None


def _opened(published: Any) -> Release | list[Any]:
    """Open a published release; otherwise return the list of published graphs."""
    if isinstance(published, Release):
        return of_known_nodes(published)
    if (folder := _folder_of(published)) is not None:
        return of_known_nodes(open_release(folder))
    return published if isinstance(published, list) else [published]


def published_release(release: Release, real: Data) -> Published:
    """Collect the attacker's view of a release: graphs of the first public seeds and pair scores.

    Of a release of classes, the view is its predictions.

    Args:
        release: A release, opened.
        real: Real graph, whose nodes the drawn graphs share.

    Raises:
        CommandError: If the release draws no graphs and predicts no classes, or is of other nodes.
    """
    if not isinstance(release.method, Synthesizer | NodeClassifier):
        raise CommandError(
            f"{type(release.method).__name__} releases features of graphs, and attack asks for a "
            "release that draws graphs or predicts classes of nodes"
        )
    published = _draw(release, NUM_GRAPHS)
    if isinstance(release.method, NodeClassifier):
        return published._replace(predictions=_on_nodes(published, release.method, real))
    graphs = published_graphs(list(published.graphs), real).graphs
    return Published(graphs, _score_on_nodes(published, release.method, real))


def published_graphs(graphs: list[Data], real: Data) -> Published:
    """Put published graphs on the node numbers of the real graph.

    Raises:
        CommandError: If they have another number of nodes.
    """
    aligned, space = [], space_of(real)
    for graph in graphs:
        alignment = align(graph, real)
        if alignment is None or alignment.reference.num_nodes > real.num_nodes:
            raise CommandError(
                f"the real graph has {real.num_nodes} nodes, what was published {graph.num_nodes}"
                f"{', and no name is in both' if alignment is None else ''}\n"
                "give the graph that the method was fitted on, such as the largest component"
            )
        try:
            aligned.append(space.graph(space_of(alignment.graph).edges(alignment.graph)))
        except ValueError as error:
            raise CommandError(
                f"what was published does not fit the real graph: {error}"
            ) from error
    return Published(aligned)


def _score_on_nodes(
    published: Published, method: Synthesizer, real: Data
) -> Callable[[Tensor], Tensor] | None:
    """Score pairs of nodes of the real graph; None if the release has other nodes."""
    score, order = published.score, places_of(real.node_names, method.node_names)
    if score is None or order is None:
        return None
    is_undirected = method.kind == "undirected"

    def on_nodes(pairs: Tensor) -> Tensor:
        found = order[pairs]
        return score(found.sort(dim=1).values if is_undirected else found)

    return on_nodes


def _on_nodes(published: Published, method: NodeClassifier, real: Data) -> Predictions:
    """Put predictions on the node numbers of the real graph."""
    assert published.predictions is not None
    order = places_of(real.node_names, method.node_names)
    if order is None:
        count = len(published.predictions.posteriors)
        raise CommandError(
            f"the real graph has {real.num_nodes} nodes, what was published {count}, and their "
            "names are not the same\ngive the graph that the method was fitted on"
        )
    return published.predictions._replace(posteriors=published.predictions.posteriors[order])


def _draw(release: Release, num_graphs: int) -> Published:
    """Draw graphs with the first public seeds, and take the scores of the generator."""
    if isinstance(release.method, NodeClassifier):
        found = torch.from_numpy(release.predict_proba())
        # Each node is asked for by its attributes alone, as a new node is.
        ask = lambda nodes, rows: torch.from_numpy(release.predict_proba(rows))
        return Published([], predictions=Predictions(found, ask))
    return Published([release.sample(seed) for seed in range(num_graphs)], release.method.score)


def _fit_again(graph: Data, settings: Mapping[str, Any], num_graphs: int) -> Published:
    """Fit the method of a configuration to another graph."""
    with TemporaryDirectory() as folder:
        part = Path(folder) / "part.npz"
        write_graph(graph, part)
        return _draw(fit_settings(on_data(settings, str(part))), num_graphs)


def _plain(measured: Separation | None) -> dict[str, Any] | None:
    """Convert an attack's numbers to plain values; None where a baseline has no such scores."""
    return measured and {key: value._asdict() for key, value in measured._asdict().items()}
