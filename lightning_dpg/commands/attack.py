"""``attack``: what an attacker gets out of a release, beside what it would get without the links."""

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from lightning_dpg.cli.quiet import quiet
from lightning_dpg.errors import CommandError
from lightning_dpg.running.settings import find_config, refuse_foreign_code

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from lightning_dpg.auditing.link_stealing import Published, Separation

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

TARGET_SHARE = 0.05
MOST_TARGETS = 1000
HIDDEN_SHARE = 0.2
NUM_GRAPHS = 10


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
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.running.graph_arguments import load

    folders = [Path(name) for name in options.published if Path(name).is_dir()]
    if folders and len(options.published) > 1:
        raise CommandError(f"{folders[0]}: give one release, or files of graphs")
    if folders and config is None:
        config = _config_of(folders[0])
        if config is not None:
            refuse_foreign_code(config)
    settings = None if config is None else settings_of(config)
    if settings is not None and _learns_sets(settings):
        from lightning_dpg.auditing import graph_set_attacks as attack_sets
        from lightning_dpg.benchmark.tasks import GRAPH_SETS

        real = GRAPH_SETS.load(options.real, options.undirected)
        report = attack_sets.attack_set(real, settings)
        text = attack_sets.set_lines(report)
    else:
        real = load(options.real, options.undirected)
        if folders:
            published = _open_release(folders[0], real, options.method)
        else:
            graphs = [load(name, options.undirected) for name in options.published]
            from lightning_dpg.auditing.link_stealing import Published

            published = Published([_aligned(g, real) for g in graphs])
        report = attack(real, published, settings)
        text = lines(report)
    if options.json is not None:
        content = json.dumps(report, indent=2, allow_nan=False)
        options.json.write_text(content + "\n", encoding="utf-8")
    print("\n".join(text))


def attack(real: "Data", published: "Published", settings: dict[str, Any] | None) -> dict[str, Any]:
    """All attacks, as plain values.

    Args:
        real: Real graph.
        published: What was released of it.
        settings: Configuration to fit again with; None where there is none.
    """
    import torch

    from lightning_dpg.auditing import link_stealing as attacks
    from lightning_dpg.graph.graph import make_graph, undirected_edges
    from lightning_dpg.graph.pair_indices import num_pairs

    edges, count = undirected_edges(real), len(published.graphs)
    order = torch.randperm(len(edges), generator=torch.Generator().manual_seed(attacks.SEED))
    num_targets = min(max(round(TARGET_SHARE * len(edges)), 2), MOST_TARGETS)
    num_hidden = max(round(HIDDEN_SHARE * len(edges)), 2)
    if len(edges) <= num_hidden or len(edges) > num_pairs(real.num_nodes) - 2:
        raise CommandError(f"the real graph has {len(edges)} edges: nothing to tell apart")
    targets = attacks.candidates(real, edges[order[:num_targets]])
    hidden = attacks.candidates(real, edges[order[: min(num_hidden, MOST_TARGETS)]])
    kept = make_graph(edges[order[num_hidden:]], real.num_nodes, real.node_names)
    if settings is None:
        without, generated = attacks.with_degrees_alone(published), published
    else:
        rest = make_graph(edges[order[num_targets:]], real.num_nodes, real.node_names)
        without = _fit_again(rest, settings, count)
        generated = _fit_again(kept, settings, count)
    stolen, known = (attacks.steal_links(each, targets) for each in (published, without))
    found, by_chance = (attacks.reidentify(real, each.graphs) for each in (published, without))
    ties = torch.Generator().manual_seed(attacks.SEED)
    aligned = [attacks.aligned_by_degree(graph, kept, ties) for graph in generated.graphs]
    return {
        "nodes": real.num_nodes,
        "edges": len(edges),
        "graphs": count,
        "targets": num_targets,
        "baseline": "degrees alone" if settings is None else "fitted without the targets",
        "confidence": attacks.CONFIDENCE,
        "link_stealing": [
            {"attack": name, "others": others}
            | {"release": _plain(measured), "baseline": _plain(known.get((name, others)))}
            for (name, others), measured in stolen.items()
        ],
        "reidentification": [
            {"knowledge": name, "chance": 1 / real.num_nodes}
            | {"release": share._asdict(), "baseline": by_chance[name]._asdict()}
            for name, share in found.items()
        ],
        "link_prediction": {
            "real": attacks.predict_links([kept], hidden)._asdict(),
            "generated": attacks.predict_links(aligned, hidden)._asdict(),
        },
    }


def settings_of(config: Path) -> dict[str, Any]:
    """A configuration to fit parts of the graph with, which have all nodes of the whole.

    Args:
        config: Its file.
    """
    from lightning_dpg.running.complete import method_settings

    settings = method_settings(config)
    data = settings["data"]["init_args"]
    if data.get("split") is not None:
        raise CommandError(
            f"{config}: its split names fixed edges, and the attack has to leave some out\n"
            "give a configuration without one: --baseline-config CONF"
        )
    data["undirected"] = False
    if not _learns_sets(settings):
        data["largest_component"] = False
    return settings


def fit_again(name: str, settings: dict[str, Any]) -> Any:
    """The method of a configuration, fitted on other data and rebuilt from its release.

    Args:
        name: What its data module is to read.
        settings: The configuration.
    """
    from lightning_dpg.commands.generate import load_generator
    from lightning_dpg.main import main

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        data = settings["data"]
        data = data | {"init_args": data["init_args"] | {"name": name}}
        config = place / "settings.yaml"
        config.write_text(yaml.safe_dump(settings | {"data": data}), encoding="utf-8")
        with quiet():
            code = main(["fit", "--config", str(config), "--trainer.default_root_dir", folder])
        if code:
            raise CommandError("the method could not be fitted without the edges, see above")
        (release,) = place.glob("*/*/release")
        return load_generator(release)


def lines(report: dict[str, Any]) -> list[str]:
    """The report for reading.

    Args:
        report: What :func:`attack` gives.
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


def _config_of(folder: Path) -> Path | None:
    """The configuration in the folder of a run or beside that of a release, if there is one."""
    inside = folder if (folder / "release").is_dir() else folder.absolute().parent
    return inside / "config.yaml" if (inside / "config.yaml").is_file() else None


def _learns_sets(settings: dict[str, Any]) -> bool:
    from lightning_dpg.benchmark.grid import common_task
    from lightning_dpg.benchmark.tasks import GRAPH_SETS

    return common_task({"REAL": settings}) is GRAPH_SETS


def _open_release(folder: Path, real: "Data", named: str | None) -> "Published":
    """Generator and graphs of a release, whose method may be named by the user."""
    from lightning_dpg.commands.generate import load_generator
    from lightning_dpg.running.releases import imported

    release = folder / "release" if (folder / "release").is_dir() else folder
    if not (release / "generator.safetensors").is_file():
        raise CommandError(f"{folder}: no release/generator.safetensors in it")
    from lightning_dpg.auditing.link_stealing import Published

    method = load_generator(release, None if named is None else imported(named))
    published = _draw(method, NUM_GRAPHS)
    graphs = [_aligned(graph, real) for graph in published.graphs]
    # Its scores are by numbers of nodes, which are those of the graph that it was fitted on.
    same_numbers = method.node_names == list(real.node_names)
    return Published(graphs, published.score if same_numbers else None)


def _draw(method: Any, num_graphs: int) -> "Published":
    """Graphs of the first public seeds, and the scores of the generator."""
    import torch

    from lightning_dpg.auditing.link_stealing import Published

    with torch.no_grad():
        seeds = (torch.Generator().manual_seed(seed) for seed in range(num_graphs))
        return Published([method.eval().sample(seed) for seed in seeds], method.score)


def _aligned(graph: "Data", real: "Data") -> "Data":
    from lightning_dpg.metrics.queries import align

    alignment = align(graph, real)
    if alignment is None:
        raise CommandError(
            f"the real graph has {real.num_nodes} nodes, what was published {graph.num_nodes}\n"
            "give the graph that the method was fitted on, such as the largest component"
        )
    return alignment.graph


def _fit_again(graph: "Data", settings: dict[str, Any], num_graphs: int) -> "Published":
    """The method of a configuration, fitted on another graph."""
    from lightning_dpg.graph.io import write_graph

    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part.npz"
        write_graph(graph, part)
        return _draw(fit_again(str(part), settings), num_graphs)


def _plain(measured: "Separation | None") -> dict[str, Any] | None:
    """Numbers of an attack; None where a baseline has no such scores."""
    return measured and {key: value._asdict() for key, value in measured._asdict().items()}


def _interval(estimate: dict[str, float]) -> str:
    low, high = _share(estimate["low"]), _share(estimate["high"])
    return f"{_share(estimate['value'])} ({low} to {high})"


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
