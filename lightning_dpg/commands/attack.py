"""``attack``: success of an attacker on a release, compared with a release without the links."""

import argparse
import json
from pathlib import Path
from typing import Any

from lightning_dpg.errors import CommandError
from lightning_dpg.running.settings import find_config, refuse_foreign_code

DESCRIPTION = """\
Attack a release as those would whom the owner of the data fears. Reads the private graph, to know
who is right: the numbers are not private.

Link stealing: a public random choice of 5 % of the real edges, at most 1,000, against ten times as
many pairs without an edge: any, and such whose ends have the degrees of the edges. The first column
of a release is to be held against the second: the same attack on the same method fitted without these
edges, which knows of them only what the rest of the graph says. Nobody can ask for less.
Re-identification: names are removed, and nodes are looked for by what is known of them.
Link prediction (Yang et al., 2021, figure 3): fitted on 80 % of the edges; nodes are identified by
their degrees; a spectral predictor is asked for the other 20 %.

A release is fitted again by the config.yaml of its run or by --baseline-config. Without either, random
graphs of the published degrees stand in for the second column: what the degrees alone give away.

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
    options = parser.parse_args(args)
    if options.json is not None and not options.json.absolute().parent.is_dir():
        raise CommandError(f"--json {options.json}: its folder does not exist")
    config = None if options.baseline_config is None else find_config(options.baseline_config)
    folders = [Path(name) for name in options.published if Path(name).is_dir()]
    if folders and len(options.published) > 1:
        raise CommandError(f"{folders[0]}: give one release, or files of graphs")
    if folders and config is None:
        config = _config_of(folders[0])
        if config is not None:
            refuse_foreign_code(config)
    report, text = _attacked(options, config)
    if options.json is not None:
        content = json.dumps(report, indent=2, allow_nan=False)
        options.json.write_text(content + "\n", encoding="utf-8")
    print("\n".join(text))


def _attacked(options: argparse.Namespace, config: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Report on a graph or on a set of graphs, as values and as lines."""
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.auditing import attacks
    from lightning_dpg.auditing.graph_set_attacks import attack_set
    from lightning_dpg.benchmark.grid import common_task
    from lightning_dpg.benchmark.tasks import GRAPH_SETS
    from lightning_dpg.running.graph_arguments import load
    from lightning_dpg.running.releases import imported, open_release

    settings = None if config is None else attacks.settings_for_parts(config)
    if settings is not None and common_task({"REAL": settings}) is GRAPH_SETS:
        report = attack_set(GRAPH_SETS.load(options.real, options.undirected), settings)
        return report, set_lines(report)
    real, (first, *_) = load(options.real, options.undirected), options.published
    if Path(first).is_dir():
        method_class = None if options.method is None else imported(options.method)
        published = attacks.published_release(open_release(Path(first), method_class), real)
    else:
        graphs = [load(name, options.undirected) for name in options.published]
        published = attacks.published_graphs(graphs, real)
    report = attacks.attack_graph(real, published, settings)
    return report, lines(report)


def lines(report: dict[str, Any]) -> list[str]:
    """Format the report on a graph.

    Args:
        report: Report of ``attack_graph``.
    """
    by_degrees = report["baseline"] == "degrees alone"
    second, keys = "degrees alone" if by_degrees else "without them", ("auc", "accuracy", "found")
    head = f"{'attack':<31}{'other pairs':<14}{'AUC':>24}{'accuracy':>24}{'found at 1 %':>24}"
    text = [
        f"links: {report['targets']} of {report['edges']} edges; {report['graphs']} graphs",
        f"{head}   {second}: AUC, accuracy, found",
    ]
    for row in report["link_stealing"]:
        cells = "".join(f"{_interval(row['release'][key]):>24}" for key in keys)
        base = row["baseline"]
        other = ", ".join(_share(base[key]["value"]) for key in keys) if base else "-"
        text.append(f"{row['attack']:<31}{row['others']:<14}{cells}   {other}")
    text += [
        "  Of two pairs the AUC is how often the edge scores higher; chance is .5, and degrees alone",
        "  give more unless both have the same. Found: edges named at 1 % false alarms; chance is .01.",
        "",
        f"names: nodes found by what is known of them; {second} in brackets",
    ]
    for row in report["reidentification"]:
        text.append(
            f"{row['knowledge']:<31}{_interval(row['release'])}   [{_share(row['baseline']['value'])}]"
            f"   chance {row['chance']:.4f}"
        )
    text += [
        "  A node that is found in a graph is no link that is told: edges of synthetic graphs were",
        "  drawn. Degrees are published on purpose, and names mostly with them.",
        "",
    ]
    prediction = report["link_prediction"]
    unseen = "seen" if by_degrees else "not seen"
    text += [
        f"prediction: hidden links, {unseen} by the method, nodes identified by their degrees",
        f"{'from the real remaining graph':<31}{_interval(prediction['real'])}",
        f"{'from the generated graphs':<31}{_interval(prediction['generated'])}",
        "  Accuracy over as many pairs without a link; chance is .5. The first line is what the",
        "  structure of the rest gives away of a link that nobody has seen.",
        "",
        "not private: the numbers were computed from the real graph",
    ]
    return text


def set_lines(report: dict[str, Any]) -> list[str]:
    """Format the report on a set of graphs.

    Args:
        report: Report of ``attack_set``.
    """
    names = {
        "real": "from the real remaining graphs",
        "generated": "from the generated graphs",
        "degrees_alone": "from random graphs of equal degrees",
    }
    rows = report["link_prediction"]
    count = f"{report['hidden']} of {report['edges']} links of {report['graphs']} graphs"
    return [
        f"prediction: {count}, not seen by the method; {report['sets']} generated sets",
        *(
            f"{text:<37}{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            for key, text in names.items()
            for row in [rows[key]]
        ),
        "  Accuracy over as many pairs without a link; chance is .5. Nodes of generated graphs are",
        "  identified by their degrees. The first line is what the rest of the links gives away.",
        "",
        "not private: the numbers were computed from the real graphs",
    ]


def _config_of(folder: Path) -> Path | None:
    """Find the configuration in the folder of a run or beside a release; None if there is none."""
    inside = folder if (folder / "release").is_dir() else folder.absolute().parent
    return inside / "config.yaml" if (inside / "config.yaml").is_file() else None


def _interval(estimate: dict[str, float]) -> str:
    low, high = _share(estimate["low"]), _share(estimate["high"])
    return f"{_share(estimate['value'])} ({low} to {high})"


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
