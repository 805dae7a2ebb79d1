"""``evaluate``: similarity of synthetic graphs to the real graph."""

import textwrap
from pathlib import Path
from typing import Annotated, Literal

from lightning_dpg.errors import CommandError, explain
from lightning_dpg.formats.whole_files import scratch_of
from lightning_dpg.metrics.glossary import GROUPS, Query, glossary
from lightning_dpg.outcome import FINE, REFUSED, Outcome
from lightning_dpg.progress import following
from lightning_dpg.run.source import Reading, refuse_missing_inputs


def evaluate(
    real: Annotated[str, "RUN|REAL"],
    synthetic: list[str] | None = None,
    *,
    html: Path | None = None,
    csv: Path | None = None,
    reading: Reading = Reading(),
    task: Literal["queries", "node-classification", "ranking"] | None = None,
    num_seeds: int | None = None,
    train_fraction: float | None = None,
    no_baselines: bool = False,
) -> Outcome:
    """Compare releases with the real graph. Reads the private graph: the numbers are not private.

    The folder of a RUN is enough: its config.yaml says where the real graph is, and how it is read. Other
    synthetic graphs and releases stand behind the real graph, whose columns and nodes are then options.

    Errors are |real - synthetic| / |real|, save those of the queries about both graphs:
      *_kl          divergence KL(real || synthetic); a share that is 0 counts as 2.2e-16
      *_nmi, *_f1   agreement of the Louvain communities, 1 is best
      *_ami         likewise beyond chance, 0 is that of unrelated communities
      *_cosine      similarity of the degrees up to 50, or of the counts of the 29 connected induced
                    subgraphs of 3 to 5 nodes, 1 is best
      *_mae         mean absolute error of the largest 1 % of the values
      edge_overlap  share of the real edges that the synthetic graph has; 1 is a copy
    Nodes are matched by name. A node that one graph lacks counts as a node without an edge there, in all
    queries. If no name is common, community_nmi, community_ami, community_f1 and edge_overlap are left out.
    Numbers in a secret order, which a release has in place of ids, are names by the key in the folder of its
    run.

    Figures of large graphs are sampled, from public seeds. These are distances beyond 20,000 nodes, and
    triangles and clustering beyond 50 million paths of two edges towards the larger degree. Subgraphs of
    5 nodes are sampled in all but small graphs, those of 3 and 4 nodes where the smaller degrees of the
    ends of all edges sum to more than 100 million. Notes give the standard errors, and a last line names
    the sampled figures.
    Beyond a million edges communities are left out unless networkit is installed, which the extra
    [fast] brings, and beyond 50 million in any case.

    Of a release with drawn rows, a second table compares its private columns with those of the RUN. The column
    "independent" has the same rows in a random order. An association is marked by < if the real one is not
    above what the noise of the release shows without any. A column is predicted from the values of neighbors,
    the other columns and the degree, by a logistic regression that learned on the synthetic graph and is
    tested on the real one.

    With --task node-classification classes of nodes are predicted instead. That is the task by itself if
    a release predicts classes, such as one of NeighborVotes. It is scored by its posteriors, and by its
    student, which predicts from attributes alone. Beside it a GCN and an SGC learn classes on the edges
    of each synthetic graph, and predict those of the test nodes from the same edges: users of a release
    have no others. Attributes and classes are those of the first synthetic graph, such as that of a
    release that was fitted with --attributes, or else those of the real graph.
    Controls read no edge of the real graph: no graph; a similarity graph, which links nearest neighbors by
    attributes, with as many edges as the first synthetic graph, or as the real one; self-training;
    a logistic regression of all columns by tf-idf; each method that predicts, without noise on the
    similarity graph. The real graph is read in the rows "degrees alone", a Chung-Lu graph of its degrees
    without noise, and "real graph", and in the column of its edges. The last column is the difference in
    accuracy from the best control.
    20 nodes of each class are for training, 500 for validation and 1,000 for the test, fewer in small
    graphs; there are five seeds of the split and of the networks. The first split is that of a release,
    if it has one (split_seed). For all others its method is fitted again within its budget, to measure
    it. If it has learned all classes, these fits are scored alone. Where labels are private, 75 % of them
    are reported again in each of these fits.
    It takes about 20 seconds for each seed on 3,000 nodes.

    With --task ranking eight models learn classes of nodes, and links, from each graph: logistic regression,
    MLP, label propagation, LINK, SGC, GCN, GraphSAGE and GAT. They are tested on nodes and links that are
    held out of the real graph. Kendall's tau says how far they stand in the order of those that learned
    from the real graph, with an interval of a bootstrap: with the edges of the training in the
    test, and with the real edges. Controls are no graph, the similarity graph and degrees alone; "real graph
    again" has other initial weights. Attributes, classes and splits are as above.

    Args:
        real: Folder of a run, or the real graph in any form that ``fit`` takes.
        synthetic: Graphs in files, or folders of releases or of runs.
        html: File for a page with pictures.
        csv: File for a row per number.
        reading: See :class:`lightning_dpg.run.source.Reading`.
        task: Compare graphs by queries, or predictions of classes of nodes; by default what is released.
        num_seeds: Number of seeds of node classification and of rankings, 5 by default.
        train_fraction: Share of the nodes of each class for training in both, such as .75.
        no_baselines: Do not say which purposes a release serves beside baselines.

    Example:
        python -m lightning_dpg evaluate runs/bter/version_0 --html quality.html
    """
    inputs = [Path(name).absolute() for name in (real, *(synthetic or ()))]
    outputs = {"--csv": csv, "--html": html}
    for option, path in outputs.items():
        if path is not None:
            _check_output(option, path, inputs)
    refuse_missing_inputs(real, synthetic, reading, "evaluate")
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.evaluation.evaluate import evaluate_releases
    from lightning_dpg.run.data import data_of_run, real_graph

    with following("evaluate", "graphs"):
        original = real_graph(real, reading.given()) if synthetic else data_of_run(real)
        evaluation = evaluate_releases(
            original,
            synthetic or [real],
            undirected=reading.undirected,
            kind=reading.kind,
            task="node_classification" if task == "node-classification" else task,
            baselines=not no_baselines,
            num_seeds=num_seeds,
            train_fraction=train_fraction,
        )
    problem = None
    try:
        if csv is not None:
            evaluation.to_csv(csv)
        if html is not None:
            evaluation.to_html(html)
    except OSError as error:  # the numbers are printed even if the disk is full
        problem = explain(error)
    files = [path for path in outputs.values() if path is not None and path.is_file()]
    return Outcome(
        [evaluation.text(), *map(str, files)],
        evaluation.values | {"files": files},
        FINE if problem is None else REFUSED,
        problem or "",
    )


def meanings() -> str:
    """Explain all queries, by groups, at the end of the help."""
    lines = []
    for group, title in GROUPS.items():
        entries = [query for query in glossary("graphs").values() if query.group == group]
        lines += [f"\n{title}:"] if entries else []
        lines += [line for query in entries for line in _explain(query)]
    lines += ["\nClasses of nodes, with --task node-classification:"]
    lines += [line for query in glossary("nodes").values() for line in _explain(query)]
    return "\n".join(["meaning of the queries:", *lines])


def _explain(query: Query) -> list[str]:
    return textwrap.wrap(f"  {query.name}: {query.text}", 100, subsequent_indent="    ")


def _check_output(option: str, path: Path, inputs: list[Path]) -> None:
    """Refuse an output file that is not writable or that would overwrite a graph."""
    if path.is_dir():
        raise CommandError(f"{option} {path}: a folder")
    if not path.absolute().parent.is_dir():
        raise CommandError(f"{option} {path}: its folder does not exist")
    if path.absolute() in inputs and path.exists():
        raise CommandError(f"{option} {path}: one of the graphs, which it would replace")
    is_device = path.exists() and not path.is_file()
    # A file is written beside its place, and then replaces what is there.
    for place in [path] if is_device else [path, scratch_of(path)]:
        is_new = not place.exists()
        try:
            place.open("ab").close()
        except OSError as error:
            raise CommandError(f"{option} {path}: cannot be written ({error.strerror})") from error
        if is_new:
            place.unlink()
