"""``attack`` on sets of graphs: links that were not there when the method was fitted."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lightning_dpg.auditing import reidentification as set_attacks
from lightning_dpg.auditing.link_stealing import CONFIDENCE, Published, with_degrees_alone
from lightning_dpg.commands.attack import fit_again
from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.graph import undirected_edges

if TYPE_CHECKING:
    from torch_geometric.data import Data

NUM_SETS = 10


def attack_set(real: "Data", settings: dict[str, Any]) -> dict[str, Any]:
    """Link prediction of Yang et al., 2021, figure 3, as plain values.

    Args:
        real: Real set, as ``GRAPH_SETS`` loads it.
        settings: Configuration to fit with.
    """
    import torch

    graphs = split_graphs(real, real.sizes.tolist())
    if real.y is not None:
        for graph, label in zip(graphs, torch.split(real.y, 1), strict=True):
            graph.y = label
    hidden = set_attacks.hide_links(graphs)
    if not sum(map(len, hidden.links)):
        raise CommandError("no graph of the set has links to hide and pairs without one")
    with TemporaryDirectory() as folder:
        write_tu_folder(hidden.graphs, Path(folder))
        method = fit_again(folder, settings)
    with torch.no_grad():
        seeds = [torch.Generator().manual_seed(seed) for seed in range(NUM_SETS)]
        drawn = [method.eval().sample_set(seed) for seed in seeds]
    by_chance = list(with_degrees_alone(Published(hidden.graphs)).graphs)
    sets: dict[str, list[list[Data]]] = {
        "real": [hidden.graphs],
        "generated": [set_attacks.identified_by_degrees(each, hidden.graphs) for each in drawn],
        "degrees_alone": [by_chance],
    }
    return {
        "graphs": len(graphs),
        "edges": real.num_edges // 2,
        "hidden": sum(map(len, hidden.links)),
        "sets": NUM_SETS,
        "confidence": CONFIDENCE,
        "link_prediction": {
            name: set_attacks.predict_hidden_links(found, hidden)._asdict()
            for name, found in sets.items()
        },
    }


def set_lines(report: dict[str, Any]) -> list[str]:
    """The report for reading.

    Args:
        report: What :func:`attack_set` gives.
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


def write_tu_folder(graphs: "list[Data]", folder: Path) -> None:
    """Write graphs and their labels in the text format of TU Dortmund.

    Args:
        graphs: Graphs of one node or more, of which some have a link.
        folder: An empty folder.
    """
    links, owners, labels, start = [], [], [], 1
    for number, graph in enumerate(graphs, start=1):
        for first, second in (undirected_edges(graph) + start).tolist():
            links += [f"{first}, {second}", f"{second}, {first}"]
        owners += [str(number)] * int(graph.num_nodes)
        labels += [] if graph.y is None else [str(int(graph.y))]
        start += int(graph.num_nodes)
    files = {"A": links, "graph_indicator": owners, "graph_labels": labels}
    for name, rows in files.items():
        if rows:
            (folder / f"set_{name}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
