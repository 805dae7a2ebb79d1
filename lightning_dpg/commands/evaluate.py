"""``evaluate``: similarity of synthetic graphs to the real graph."""

import textwrap
from pathlib import Path
from typing import Literal

from lightning_dpg.commands.arguments import call
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.whole_files import scratch_of, write_whole
from lightning_dpg.graph.kind import Kind
from lightning_dpg.metrics.glossary import GRAPH_GLOSSARY, GROUPS, NODE_GLOSSARY, Query
from lightning_dpg.running.early_files import refuse_missing_graph, refuse_missing_published


def run(args: list[str]) -> None:
    """Run the command, whose help explains all queries."""
    call(evaluate, args, _meanings())


def evaluate(
    real: str,
    synthetic: list[str],
    *,
    json: Path | None = None,
    csv: Path | None = None,
    html: Path | None = None,
    undirected: bool = False,
    kind: Kind | None = None,
    task: Literal["queries", "node-classification"] = "queries",
    book: str | None = None,
    no_book: bool = False,
) -> None:
    """Compare synthetic graphs with the real one. Reads the private graph: the numbers are not private.

    Errors are |real - synthetic| / |real|, save those of the queries about both graphs:
      *_kl          divergence KL(real || synthetic); a share that is 0 counts as 2.2e-16
      *_nmi, *_f1   agreement of the Louvain communities, 1 is best
      *_ami         likewise beyond chance, 0 is that of unrelated communities
      *_cosine      similarity of the degrees up to 50, or of the counts of the 29 connected induced
                    subgraphs of 3 to 5 nodes, 1 is best
      *_mae         mean absolute error of the largest 1 % of the values
      edge_overlap  share of the real edges that the synthetic graph has; 1 is a copy
    Nodes are matched by name. A node that one graph lacks counts as a node without an edge there, in all
    queries. If no name is common, nodes are matched by position, and community_nmi, community_ami,
    community_f1 and edge_overlap need as many nodes in both graphs.

    Figures of large graphs are sampled, from public seeds. These are distances beyond 20,000 nodes, and
    triangles and clustering beyond 200 million paths of two edges towards the larger degree. Subgraphs of
    5 nodes are sampled in all but small graphs, those of 3 and 4 nodes where the smaller degrees of the
    ends of all edges sum to more than 100 million. Notes give the standard errors, and a last line names
    the sampled figures.
    Beyond a million edges communities are left out unless networkit is installed, which the extra
    [fast] brings.

    With --task node-classification a GCN and an SGC learn classes of nodes instead. Attributes and
    classes are public, and those of the first synthetic graph, such as that of a release that was fitted
    with --attributes. A network is trained on the edges of one graph, and predicts the classes
    of the test nodes from the same edges: users of a release have no others. The rows beside the
    synthetic graphs are: no graph; a similarity graph, which links nearest neighbors by attributes, with
    as many edges as the first synthetic graph; degrees alone, a Chung-Lu graph of the real degrees
    without noise; the real graph. The real graph is read in these two rows and for the last column only.
    20 nodes of each class are for training, 500 for validation and 1,000 for the test, fewer in small
    graphs; there are five seeds of the split and of the networks. It takes about half a minute for each
    graph of 3,000 nodes.

    Args:
        real: Name of a graph or path of a file.
        synthetic: Likewise, or the folder of a release or of a run; one or more.
        json: File for the numbers.
        csv: File for a row per number.
        html: File for a page with pictures.
        undirected: See :func:`lightning_dpg.evaluation.evaluate.evaluate`.
        kind: See :func:`lightning_dpg.evaluation.evaluate.evaluate`.
        task: Compare graphs by queries, or by networks that learn classes of nodes from them.
        book: See :func:`lightning_dpg.evaluation.evaluate.evaluate`.
        no_book: Log it in no budget book.
    """
    inputs = [Path(name).absolute() for name in (real, *synthetic)]
    outputs = {"--json": json, "--csv": csv, "--html": html}
    for option, path in outputs.items():
        if path is not None:
            _check_output(option, path, inputs)
    refuse_missing_graph(real)
    for name in synthetic:
        refuse_missing_published(name)

    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.evaluation.evaluate import evaluate_classes, evaluate_graphs
    from lightning_dpg.evaluation.measured import NOT_PRIVATE

    measure = evaluate_graphs if task == "queries" else evaluate_classes
    evaluation = measure(
        real,
        synthetic,
        undirected=undirected,
        kind=kind,
        book="none" if no_book else book,
    )
    # Write files before the tables, since a reader may stop early, as in `evaluate ... | head`.
    try:
        if json is not None:
            write_whole(json, evaluation.to_json())
        if csv is not None:
            evaluation.to_csv(csv)
        if html is not None:
            evaluation.to_html(html)
    finally:  # print the numbers even if the disk is full
        print("\n".join([*evaluation.table(), NOT_PRIVATE]), flush=True)
    for path in outputs.values():
        if path is not None and path.is_file():
            print(path)


def _meanings() -> str:
    """Explain all queries, by groups."""
    lines = []
    for group, title in GROUPS.items():
        entries = [query for query in GRAPH_GLOSSARY.values() if query.group == group]
        lines += [f"\n{title}:"] if entries else []
        lines += [line for query in entries for line in _explain(query)]
    lines += ["\nClasses of nodes, with --task node-classification:"]
    lines += [line for query in NODE_GLOSSARY.values() for line in _explain(query)]
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
