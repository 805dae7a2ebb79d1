"""Comparison of synthetic graphs with the real one (reads the private graph)."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from torch_geometric.data import Data

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.transfers import renumbered
from lightning_dpg.errors import CommandError
from lightning_dpg.evaluation.baselines import QUICK, Baselines, epsilon_of
from lightning_dpg.evaluation.evaluation import Evaluation
from lightning_dpg.evaluation.given_graphs import (
    NamedSource,
    all_graphs,
    kind_of,
    name_of,
    opened,
    predicting,
    sources_of,
    under_own_names,
)
from lightning_dpg.evaluation.node_classification import (
    NamedGraph,
    NamedPredictions,
    evaluate_nodes,
)
from lightning_dpg.evaluation.node_evaluation import NodeEvaluation
from lightning_dpg.evaluation.purposes import Measured
from lightning_dpg.evaluation.ranking import Ranking, rank_models
from lightning_dpg.evaluation.row_quality import GraphRows, RowFigure, noise_of, row_figures
from lightning_dpg.evaluation.transfer_quality import TransferFigure, transfer_figures
from lightning_dpg.formats.row_tables import read_rows
from lightning_dpg.formats.transfer_tables import read_transfers
from lightning_dpg.graph.drawn_tables import DrawnTransfers, rows_of, transfers_of
from lightning_dpg.graph.graph import narrow, places_of
from lightning_dpg.graph.pair_space import Kind, space_of, without_directions
from lightning_dpg.graph.transfer_counts import window_of
from lightning_dpg.methods.single_graph.attributed import Attributed
from lightning_dpg.metrics import queries
from lightning_dpg.metrics.communities import return_freed_memory
from lightning_dpg.metrics.figures import Draw
from lightning_dpg.metrics.pictures import REAL, GraphTransfers, row_pictures, transfer_pictures
from lightning_dpg.metrics.queries import Comparison, Profile, compare_kinds
from lightning_dpg.progress import counted
from lightning_dpg.release.graph_files import table_beside, transfers_beside
from lightning_dpg.release.release import Release
from lightning_dpg.run.data import NO_KEY, data_of_rows, data_of_run, load
from lightning_dpg.run.messages import readable_errors

_PREDICTS = (
    "its method predicts classes of nodes, and draws no graph\n"
    "score the classes: leave the task out, or give --task node-classification"
)


Task: TypeAlias = Literal["queries", "node_classification", "ranking"]


def evaluate(
    real: Any,
    synthetic: Any = None,
    *,
    undirected: bool = False,
    kind: Kind | None = None,
    task: Task | None = None,
    baselines: bool = True,
    labels: str | None = None,
    num_seeds: int | None = None,
    train_fraction: float | None = None,
) -> Any:
    """Compare releases with the real graph. Reads the private graph: nothing is private.

    A graph is a name, a path, or an object of networkx, PyTorch Geometric, scipy or numpy.
    A release with drawn rows is also compared by its private columns, see
    :func:`lightning_dpg.evaluation.row_quality.row_figures`, if ``real`` is the data module of the fit
    or its run says where they are.

    Args:
        real: The real graph, also as :func:`lightning_dpg.read` returns it; or, alone, the folder
            of a run, whose config.yaml says where its graph is.
        synthetic: A graph, an open release, the folder of a release or of a run, or a list of
            these. Of a folder all released graphs are taken, of an open release the graph of
            seed 0. Releases of classes of nodes predict, and have no graphs.
        undirected: Whether to drop the directions of directed graphs.
        kind: Kind as which to read the graphs: ``undirected``, ``directed`` or ``bipartite``; by
            default that of the first release, or ``undirected``. The queries beyond those of the
            kind look at directed graphs without their directions.
        task: ``queries``, or ``node_classification``: a GCN and an SGC predict classes of nodes from
            attributes and classes, and from the edges of each graph, and releases of classes of
            nodes predict themselves. See
            :class:`lightning_dpg.evaluation.node_evaluation.NodeEvaluation`. By default it is
            ``node_classification`` if such a release is given. ``ranking``: eight models learn classes
            and links from each graph; see :class:`lightning_dpg.evaluation.ranking.Ranking`.
        baselines: Whether to say which purposes a release serves, beside ``ErdosRenyi`` and
            ``ChungLu`` at its epsilon. They are fitted to the real graph for this measurement, about
            doubling its time. A release without an epsilon for one edge, and a graph without a
            statement, are not judged.
        labels: Attribute of the nodes of the real graph that holds their classes, as in the fit of a
            release; by default ``y`` of whole numbers. Data modules and synthetic graphs name their
            own.
        num_seeds: Number of public seeds of node classification, each with a split of its own; 5 by
            default. The methods of releases of classes are fitted again for the further seeds.
        train_fraction: Share of the nodes of each class for training in node classification, such as
            .75, unless a release has a split; by default 20 nodes of each class, and .75 of all nodes
            if their labels are private.

    Returns:
        :class:`Evaluation` with the answers to all queries, ``NodeEvaluation`` with the scores of
        predictions, or ``Ranking``; ``str(evaluation)`` is a text for people.

    Raises:
        CommandError: If a graph is not readable, or if a release holds no graph, or no attributes
            and classes where networks need them.

    Example:
        >>> import lightning_dpg as dpg
        >>> evaluation = dpg.evaluate("karate", "karate")
        >>> evaluation.answers["karate"]["triangles"].real
        45.0
        >>> evaluation.answers["karate"]["edge_overlap"].score
        1.0
    """
    with readable_errors():
        if synthetic is None:
            real, synthetic = data_of_run(real), real
        return evaluate_releases(
            real,
            synthetic,
            undirected=undirected,
            kind=kind,
            task=task,
            baselines=baselines,
            labels=labels,
            num_seeds=num_seeds,
            train_fraction=train_fraction,
        )


def evaluate_releases(
    real: Any,
    synthetic: Any,
    *,
    undirected: bool = False,
    kind: Kind | None = None,
    task: Task | None = None,
    baselines: bool = True,
    labels: str | None = None,
    num_seeds: int | None = None,
    train_fraction: float | None = None,
) -> Evaluation | NodeEvaluation | Ranking:
    """Do what :func:`evaluate` does, with the errors of the command line."""
    graphs, predictions = list[NamedSource](), list[NamedPredictions]()
    for number, source in enumerate(sources_of(synthetic)):
        release = predicting(source)
        if release is None:
            graphs.append((source, f"synthetic-{number}"))
        else:
            predictions.append(
                NamedPredictions(_name_of_release(release, source, predictions), release)
            )
    if task is None:
        task = "node_classification" if predictions else "queries"
    of_classes = {"labels": labels, "num_seeds": num_seeds, "train_fraction": train_fraction}
    if predictions and task != "node_classification":
        raise CommandError(f"{predictions[0].name}: {_PREDICTS}")
    if task != "queries":
        learn = (
            rank_models if task == "ranking" else partial(evaluate_nodes, predictions=predictions)
        )
        return _evaluate_learning(learn, real, graphs, undirected, kind, **of_classes)
    if names := [name for name, value in of_classes.items() if value is not None]:
        raise CommandError(
            f"evaluate: {names[0]} is a setting of node classification and of rankings\n"
            "ask for it: --task node-classification, in Python task='node_classification'"
        )
    return _evaluate_queries(real, graphs, undirected, kind, baselines)


def _evaluate_queries(
    real: Any, sources: Sequence[NamedSource], undirected: bool, kind: Kind | None, baselines: bool
) -> Evaluation:
    """Compare synthetic graphs with the real one, and their drawn tables with the private ones."""
    kind = kind or kind_of(sources, undirected)
    # All graphs are read before anything is measured: errors come first.
    original = narrow(load(real, undirected, kind))
    graphs = all_graphs(sources, undirected, kind, attributes=False)
    return_freed_memory()
    profile = queries.profile(without_directions(original))
    return_freed_memory()
    real_rows = cache(lambda release: data_of_rows(real, release))
    judge = Baselines(original, lambda drawn: _compared(profile, original, drawn, QUICK).answers)
    open_once = cache(opened)  # for all graphs of a folder
    measured = []
    for published in counted(graphs):
        rows, transfers = _drawn_tables(published, open_once)
        graph = under_own_names(published)
        compared = _compared(profile, original, graph.graph)
        epsilon, purposes = epsilon_of(graph.statement), None
        if baselines and epsilon is not None:
            method, release = graph.statement.get("method", ""), open_once(graph.release)
            purposes = judge.judge(epsilon, method, release, graph.graph, compared.answers)
        has_tables = rows is not None or transfers is not None
        private = real_rows(graph.release) if has_tables else None
        row_quality = transfer_quality = None
        of_rows, of_transfers = dict[str, Draw](), dict[str, Draw]()
        if rows is not None:
            row_quality, of_rows = _figures(private, rows, open_once(graph.release), kind)
        if transfers is not None:
            transfer_quality, of_transfers = _transfer_figures(private, transfers, graph.graph)
        measured.append(
            Measured(
                graph.name,
                compared,
                graph.guarantee,
                purposes,
                row_quality,
                transfer_quality,
                of_rows | of_transfers,
                has_key=not str(graph.graph.node_names[0]).endswith(NO_KEY),
            )
        )
    return Evaluation(name_of(real, "real"), profile, tuple(measured))


def _drawn_tables(
    graph: NamedGraph, open_once: Callable[[Release | Path | None], Release | None]
) -> tuple[GraphRows | None, DrawnTransfers | None]:
    """Return the drawn rows with the edges, and the drawn transfers, as far as a release has them."""
    rows, transfers = rows_of(graph.graph), transfers_of(graph.graph)
    if isinstance(graph.release, Path):
        people, sent = table_beside(Path(graph.name)), transfers_beside(Path(graph.name))
        has_files = people.is_file() or sent.is_file()
        release = open_once(graph.release) if has_files else None
        names, method = graph.graph.node_names, None if release is None else release.method
        if isinstance(method, Attributed):
            if rows is None and people.is_file():
                rows = read_rows(people, names, method.hparams["domains"])
            if transfers is None and sent.is_file():
                window = method.facts.bounds.window
                transfers = read_transfers(sent, names, None if window is None else window[0])
    if rows is None:
        return None, transfers
    edges = space_of(graph.graph).edges(graph.graph).long().numpy()
    return GraphRows(edges, rows.values), transfers


def _transfer_figures(
    real: EdgeListDataModule | None, drawn: DrawnTransfers, graph: Data
) -> tuple[tuple[TransferFigure, ...], dict[str, Draw]]:
    """Compare drawn transfers with those of a data module, if it has those of the fit."""
    private = None if real is None else real.transfers
    if real is None or private is None or real.graph.num_nodes != graph.num_nodes:
        return (), {}
    window = private.bounds.window
    if (window is None) != (drawn.times is None) or (
        window is not None and window[0] != drawn.first_day
    ):
        return (), {}
    numbers = places_of(real.graph.node_names, graph.node_names)
    if numbers is not None:
        private = renumbered(private, numbers)
    both = [GraphTransfers.of(*each[:3]) for each in (private, drawn)]
    num_nodes = int(graph.num_nodes)
    figures = transfer_figures(
        *both,
        kind=real.kind,
        num_nodes=num_nodes,
        window=None if window is None else window_of(*window),
        has_names=numbers is not None,
    )
    sent = dict(zip((REAL, "synthetic"), both, strict=True))
    return figures, transfer_pictures(sent, real.kind, num_nodes, drawn.first_day)


def _figures(
    real: EdgeListDataModule | None, drawn: GraphRows, release: Release | None, kind: Kind
) -> tuple[tuple[RowFigure, ...], dict[str, Draw]]:
    """Compare the drawn rows with the private columns of a data module, if it has those of the fit."""
    columns = None if real is None else real.private_columns
    if real is None or columns is None or release is None:
        return (), {}
    space, method = space_of(real.graph), release.method
    if columns.domains != method.hparams["domains"] or not space.kind == method.kind == kind:
        return (), {}
    rows = columns.shown(space.num_left).numpy()
    known = GraphRows(space.edges(real.graph).numpy(), rows, method.pairs)
    figures = row_figures(known, drawn, columns.domains, noise_of(method, release.statement))
    tables = {REAL: rows, "synthetic": drawn.rows}
    return figures, row_pictures(columns.domains, tables)


def _evaluate_learning(
    learn: Callable[..., NodeEvaluation | Ranking],
    real: Any,
    graphs: Sequence[NamedSource],
    undirected: bool,
    kind: Kind | None,
    *,
    labels: Any,
    num_seeds: Any,
    train_fraction: Any,
) -> NodeEvaluation | Ranking:
    """Learn from graphs under the names of their owner, and from nodes with their true classes."""
    kind = kind or kind_of(graphs, undirected)
    if kind != "undirected":
        raise CommandError(
            f"evaluate: node classification and rankings are for undirected graphs, and kind is {kind}\n"
            "leave kind out, and drop the directions of directed graphs: --undirected"
        )
    if num_seeds is not None and num_seeds < 1:
        raise CommandError(f"evaluate: the number of seeds must be 1 or more, got {num_seeds}")
    if train_fraction is not None and not 0 < train_fraction < 1:
        raise CommandError(
            f"evaluate: train_fraction must be between 0 and 1, got {train_fraction:g}"
        )
    if labels is not None and (graphs or isinstance(real, EdgeListDataModule)):
        raise CommandError(
            f"labels {labels}: the classes are those of the "
            + ("first synthetic graph" if graphs else "data module")
            + "\nleave labels out"
        )
    original = load(real, undirected, attributes=not graphs, labels=labels)
    if isinstance(real, EdgeListDataModule) and real.private_labels is not None:
        original = original.clone()  # the true labels are for this measurement only
        original.y = real.private_labels.class_numbers()
    drawn = [*map(under_own_names, all_graphs(graphs, undirected, kind, attributes=True))]
    return learn(
        name_of(real, "real"), original, drawn, num_seeds=num_seeds, train_fraction=train_fraction
    )


def _name_of_release(release: Release, source: Any, others: Sequence[NamedPredictions]) -> str:
    """Name a release by its folder, or by its method and epsilon."""
    epsilon = float(release.statement["epsilon"])
    name = name_of(source, f"{type(release.method).__name__} at {epsilon:g}")
    same = sum(one.name.split(" (")[0] == name for one in others)
    return f"{name} ({same + 1})" if same else name


def _compared(
    profile: Profile, real: Data, synthetic: Data, networkx_edges: int | None = None
) -> Comparison:
    """Answer the common queries, and behind them those of the kind of both graphs."""
    drawn = without_directions(synthetic)
    comparison = queries.compare_measured(profile, drawn, networkx_edges)
    return comparison._replace(answers=comparison.answers | compare_kinds(real, synthetic))
