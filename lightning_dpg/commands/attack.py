"""``attack``: success of an attacker on a release, compared with a release without the links."""

import argparse
from pathlib import Path
from typing import Any

from lightning_dpg.commands.book_options import add_book_options
from lightning_dpg.errors import CommandError
from lightning_dpg.running.settings import find_config

DESCRIPTION = """\
Attack a release: look for relations and names in it. Reads the private graph, to know which guesses
are right: the numbers are not private.

Link stealing: a public random choice of 5 % of the real edges, at most 1,000, against ten times as
many pairs without an edge: any, and such whose ends have the degrees of the edges. The first column
of a release is compared with the second: the same attack on the same method fitted without these
edges, which knows of them only what the rest of the graph says. The difference is due to the release.
Attributes of nodes in a release are public: both columns have them, and attributes alone are an attack
without a release.
Re-identification: names are removed, and nodes are looked for by what is known of them.
Link prediction (Yang et al., 2021, figure 3): fitted on 80 % of the edges; nodes are identified by
their degrees; a spectral predictor is asked for the other 20 %.

A release is fitted again by the config.yaml of its run or by --baseline-config. Without either, random
graphs of the published degrees stand in for the second column: what the degrees alone give away.

A directed or bipartite graph is attacked as such: targets and other pairs are ordered pairs, or pairs
between the sides. Common neighbors, names and link prediction look at it without directions.

Of a method of sets of graphs REAL is the name of a set, and link prediction all that is tried."""


def run(args: list[str]) -> None:
    """Print tables of all attacks, and write their numbers to a file."""
    parser = argparse.ArgumentParser(
        prog="lightning_dpg attack",
        usage="lightning_dpg attack REAL RELEASE|SYNTHETIC... [--baseline-config CONF] [...]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("real", metavar="REAL", help="name of a graph or path of a file")
    add("published", metavar="RELEASE|SYNTHETIC", nargs="+", help="folder of a run, or graphs")
    add("--baseline-config", metavar="CONF", help="configuration to fit again with")
    add("--method", metavar="MODULE.CLASS", help="import the method of the release from here")
    add("--json", type=Path, metavar="FILE", help="file for the numbers")
    add("--undirected", action="store_true", help="drop the directions of a directed graph")
    add(
        "--kind",
        choices=("undirected", "directed", "bipartite"),
        help="kind as which to read the graphs (that of the release)",
    )
    add_book_options(parser)
    options = parser.parse_args(args)
    if options.json is not None and not options.json.absolute().parent.is_dir():
        raise CommandError(f"--json {options.json}: its folder does not exist")
    if options.baseline_config is not None:
        find_config(options.baseline_config)
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.auditing.attacks import attack_published
    from lightning_dpg.running.releases import imported, open_release

    published: Any = options.published
    if options.method is not None:
        published = open_release(Path(published[0]), imported(options.method))
    report = attack_published(
        options.real,
        published,
        baseline=options.baseline_config,
        undirected=options.undirected,
        kind=options.kind,
        book=options.book,
    )
    if options.json is not None:
        options.json.write_text(report.to_json(), encoding="utf-8")
    print(report)
