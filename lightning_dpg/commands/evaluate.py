"""``evaluate``: similarity of synthetic graphs to the real graph."""

import argparse
import textwrap
from pathlib import Path

from lightning_dpg.commands.book_options import add_book_options
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.whole_files import scratch_of, write_whole
from lightning_dpg.metrics.glossary import GRAPH_GLOSSARY, GROUPS, NODE_GLOSSARY, Query

DESCRIPTION = """\
Compare synthetic graphs with the real one. Reads the private graph: the numbers are not private.

Errors are |real - synthetic| / |real|, save those of the queries about both graphs:
  *_kl          divergence KL(real || synthetic); a share that is 0 counts as 2.2e-16
  *_nmi, *_f1   agreement of the Louvain communities, 1 is best
  *_ami         likewise beyond chance, 0 is that of unrelated communities
  *_cosine      similarity of the degrees up to 50, or of the counts of the 29 connected induced
                subgraphs of 3 to 5 nodes, 1 is best
  *_mae         mean absolute error of the largest 1 % of the values
  edge_overlap  share of the real edges that the synthetic graph has; 1 is a copy
community_nmi, community_ami, community_f1 and edge_overlap need the same nodes in both graphs: those
of equal names or, where no name is common, of equal position.

Figures of large graphs are sampled, from public seeds: distances beyond 20,000 nodes, triangles and
clustering beyond 200 million paths of two edges towards the larger degree, subgraphs of 5 nodes in
all but small graphs, those of 3 and 4 nodes where the smaller degrees of the ends of all edges sum
to more than 100 million. Notes give the standard errors, and a last line names the sampled figures.
Beyond a million edges communities are left out unless networkit is installed, which the extra
[fast] brings.

With --task node-classification a GCN and an SGC learn classes of nodes instead. Attributes and
classes are public, and those of the first synthetic graph, such as that of a release that was fitted
with --data.nodes.attributes. A network is trained on the edges of one graph, and predicts the classes
of the test nodes from the same edges: users of a release have no others. The rows beside the
synthetic graphs are: no graph; a similarity graph, which links nearest neighbors by attributes, with
as many edges as the first synthetic graph; degrees alone, a Chung-Lu graph of the real degrees
without noise; the real graph. The real graph is read in these two rows and for the last column only.
20 nodes of each class are for training, 500 for validation and 1,000 for the test, fewer in small
graphs; there are five seeds of the split and of the networks. It takes about half a minute for each
graph of 3,000 nodes."""


def run(args: list[str]) -> None:
    """Print a table for each synthetic graph, and write their numbers to files."""
    parser = argparse.ArgumentParser(
        prog="lightning_dpg evaluate",
        usage="lightning_dpg evaluate REAL SYNTHETIC... [--json FILE] [--csv FILE] [--html FILE] "
        "[--undirected] [--kind KIND] [--task TASK]",
        description=DESCRIPTION,
        epilog=_meanings(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("real", metavar="REAL", help="name of a graph or path of a file")
    parser.add_argument(
        "synthetic",
        metavar="SYNTHETIC",
        nargs="+",
        help="likewise, or the folder of a release or of a run; one or more",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the numbers")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="file for a row per number")
    parser.add_argument("--html", type=Path, metavar="FILE", help="file for a page with pictures")
    parser.add_argument(
        "--undirected", action="store_true", help="drop the directions of directed graphs"
    )
    parser.add_argument(
        "--kind",
        choices=("undirected", "directed", "bipartite"),
        help="kind as which to read all graphs, by default that of the first release; it adds "
        "queries of its own",
    )
    parser.add_argument(
        "--task",
        choices=("queries", "node-classification"),
        default="queries",
        help="compare graphs by queries, or by networks that learn classes of nodes from them",
    )
    add_book_options(parser)
    options = parser.parse_args(args)
    inputs = [Path(name).absolute() for name in (options.real, *options.synthetic)]
    outputs = {"--json": options.json, "--csv": options.csv, "--html": options.html}
    for option, path in outputs.items():
        if path is not None:
            _check_output(option, path, inputs)

    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.benchmark.evaluation import evaluate_classes, evaluate_graphs
    from lightning_dpg.benchmark.measured import NOT_PRIVATE

    measure = evaluate_graphs if options.task == "queries" else evaluate_classes
    found = measure(
        options.real,
        options.synthetic,
        undirected=options.undirected,
        kind=options.kind,
        book=options.book,
    )
    # Write files before the tables, since a reader may stop early, as in `evaluate ... | head`.
    try:
        if options.json is not None:
            write_whole(options.json, found.to_json())
        if options.csv is not None:
            found.to_csv(options.csv)
        if options.html is not None:
            found.to_html(options.html)
    finally:  # print the numbers even if the disk is full
        print("\n".join([*found.table(), NOT_PRIVATE]), flush=True)
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
