"""Quality of graphs with amounts and times of transfers, beside amounts and times without their ties.

``python -m benchmarks transfers --data berka --out measured`` appends each score to
``measured/scores.csv`` as it comes; what is there is not measured again. It then writes the mean and
the deviation of each row to ``measured/cells.csv``. Noise comes from the operating system.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

import lightning_dpg as dpg
from benchmarks.scores_file import ScoresFile, mean_cells
from lightning_dpg.datamodules import Columns, EdgeListDataModule, Nodes
from lightning_dpg.graph.drawn_tables import CENTS
from lightning_dpg.graph.kind import Kind
from lightning_dpg.graph.transfer_counts import (
    Counted,
    Window,
    count_days,
    count_gaps,
    count_hours,
    count_new_pairs,
    largest_amount,
    node_sums,
    window_of,
)
from lightning_dpg.interfaces import Transfers
from lightning_dpg.methods.single_graph.protected_unit import counted as counted_of
from lightning_dpg.metrics.transfers import (
    curve_distance,
    growth_distance,
    relative_error,
    strength_distance,
    top_found,
    top_share,
)

EPSILONS = (0.5, 1.0, 2.0, 4.0)
FIELDS = ("data", "row", "epsilon", "seed", "score", "value", "seconds")
ROWS = ("private", "real edges", "pooled amounts", "independent stamps", "no data")
_AGES = [0, 30, 40, 50, 60, 150]
_YEAR = 2018  # of the export


class Real(NamedTuple):
    """Transfers, as the benchmark knows them and as methods read them.

    Attributes:
        transfers: The transfers, all of which count.
        classes: Public class of each node.
        kind: Kind of the graph.
        data: Data module.
        settings: Settings of the method.
    """

    transfers: Transfers
    classes: NDArray[np.int64]
    kind: Kind
    data: EdgeListDataModule
    settings: dict[str, Any]


def berka() -> Real:
    """Read the standing orders of accounts to banks, with the ages of the owners as public classes."""
    folder = Path(os.environ["LIGHTNING_DPG_DATA"]) / "tables" / "berka"
    read = partial(pd.read_csv, sep="\t", header=None, dtype=str)
    orders, clients, owners = (read(folder / f"{name}.tsv") for name in ("order", "client", "disp"))
    birth = clients.set_index(0)[1]
    owner = owners[owners[3] == "O"].set_index(2)[1]
    accounts, banks = sorted(set(orders[1])), sorted(set(orders[2]))
    ages = _YEAR - pd.to_datetime(owner[accounts].map(birth)).dt.year
    people = pd.DataFrame({"id": [f"a{account}" for account in accounts]})
    people["group"] = np.digitize(ages, _AGES).astype(str)
    table = pd.DataFrame({"payer": "a" + orders[1], "payee": orders[2], "amount": orders[4]})
    people = pd.concat([people, pd.DataFrame({"id": banks, "group": "bank"})])
    nodes = Nodes(
        left=list(people["id"][: len(accounts)]),
        right=banks,
        attributes=people,
        policy={"group": "label"},
    )
    columns = Columns(weight="amount", weight_max=1000.0)
    data = EdgeListDataModule(
        table.astype({"amount": float}), kind="bipartite", nodes=nodes, columns=columns
    )
    return _held(data, {"structure": "chung_lu"})


def college() -> Real:
    """Read the messages of students of a college, of half a year."""
    path = Path(os.environ["LIGHTNING_DPG_DATA"]) / "tables" / "college" / "messages.txt"
    table = pd.read_csv(path, sep=" ", header=None, names=["from", "to", "at"])
    ids = sorted({*map(str, table["from"]), *map(str, table["to"])}, key=int)
    columns = Columns(
        time="at",
        time_window="2004-04-15,2004-10-26",
        time_format="unix",
        time_zone="America/Los_Angeles",
    )
    data = EdgeListDataModule(
        table.astype({"from": str, "to": str}),
        undirected=True,
        nodes=Nodes(ids=ids),
        columns=columns,
    )
    return _held(data, {"unit": "transfer"})


def small_bank() -> Real:
    """Read the built-in bank, on which settings were fixed."""
    columns = Columns(weight="amount", time="at")
    data = EdgeListDataModule("small_bank", undirected=True, columns=columns)
    return _held(data, {"unit": "transfer"})


def _held(data: EdgeListDataModule, settings: dict[str, Any]) -> Real:
    data.setup("fit")
    records = data.records
    transfers, classes = records.transfers, records.classes
    assert transfers is not None
    own = np.zeros(records.num_nodes, dtype=np.int64) if classes is None else classes.numpy() + 1
    return Real(transfers, own, data.kind, data, settings)


DATA: dict[str, Callable[[], Real]] = {
    "berka": berka,
    "college": college,
    "small_bank": small_bank,
}


class Drawn(NamedTuple):
    """Drawn transfers, and others of the same release on the real edges, which have no guarantee."""

    synthetic: Transfers
    on_real_edges: Transfers


def fitted(real: Real, settings: dict[str, Any], epsilon: float) -> Drawn:
    """Fit the method, and draw transfers from the release.

    On the real edges they have the errors of amounts and times without those of the structure.
    """
    release = dpg.fit(real.data, "attributed", epsilon=epsilon, **(real.settings | settings))
    method = release.method
    drawn = method.sample(torch.Generator().manual_seed(0)).drawn_transfers
    rng, edges = np.random.default_rng(0), real.data.records.edges
    given = method.transfers.draw(edges, method.space, method.facts, int(method.num_edges), rng)
    bounds = real.transfers.bounds
    found = (Transfers(each.pairs, each.amounts, each.times, bounds) for each in (drawn, given))
    return Drawn(*found)


def without_ties(drawn: Transfers, part: str, rng: np.random.Generator) -> Transfers:
    """Exchange the amounts, or the times, of all transfers at random."""
    order = torch.from_numpy(rng.permutation(len(drawn.pairs)))
    if part == "pooled amounts":
        return drawn if drawn.amounts is None else drawn._replace(amounts=drawn.amounts[order])
    return drawn if drawn.times is None else drawn._replace(times=drawn.times[order])


def of_no_data(drawn: Transfers, rng: np.random.Generator) -> Transfers:
    """Draw amounts up to the bound, and times in the window, without a look at the data."""
    bounds, count = drawn.bounds, len(drawn.pairs)
    amounts = times = None
    if bounds.weight_max is not None:
        amounts = torch.from_numpy(rng.integers(0, largest_amount(bounds.weight_max) + 1, count))
    if bounds.window is not None:
        times = torch.from_numpy(rng.integers(0, window_of(*bounds.window).days * 86_400, count))
    return drawn._replace(amounts=amounts, times=times)


def rows_of_seed(
    real: Real, settings: dict[str, Any], epsilon: float, seed: int
) -> Iterator[tuple[str, Callable[[], Transfers]]]:
    """Yield the rows of one budget and seed. All but one have the same drawn edges."""
    made: list[Drawn] = []

    def drawn() -> Drawn:
        if not made:
            made.append(fitted(real, settings, epsilon))
        return made[0]

    def private() -> Transfers:
        return drawn().synthetic

    rng = np.random.default_rng(seed)
    yield "private", private
    yield "real edges", lambda: drawn().on_real_edges
    if real.transfers.amounts is not None:
        yield "pooled amounts", lambda: without_ties(private(), "pooled amounts", rng)
    if real.transfers.times is not None:
        yield "independent stamps", lambda: without_ties(private(), "independent stamps", rng)
    yield "no data", lambda: of_no_data(private(), rng)


def compared(real: Real, drawn: Transfers) -> dict[str, float]:
    """Scores of synthetic transfers; all but ``top_found`` are errors."""
    scores = {"number": abs(len(drawn.pairs) / len(real.transfers.pairs) - 1)}
    num_nodes = len(real.classes)
    if real.transfers.amounts is not None and drawn.amounts is not None:
        ours, theirs = (
            node_sums(each.pairs.numpy(), each.amounts.numpy(), num_nodes)
            for each in (drawn, real.transfers)
        )
        totals = [totals_by_class(each, real.classes) for each in (drawn, real.transfers)]
        is_there = totals[1] > 0
        scores |= {
            "strength": strength_distance(ours, theirs),
            "top_share": abs(top_share(ours) - top_share(theirs)),
            "top_found": top_found(theirs, ours),
            "totals": relative_error(totals[1], totals[0]),
            "mean_total": float(np.mean(np.abs(totals[0][is_there] / totals[1][is_there] - 1))),
            "all_money": abs(float(totals[0].sum() / totals[1].sum()) - 1),
        }
    if real.transfers.bounds.window is not None:
        window = window_of(*real.transfers.bounds.window)
        mine, yours = (
            curves(counted_of(each, real.kind, None), window) for each in (drawn, real.transfers)
        )
        scores |= {name: curve_distance(yours[name], mine[name]) for name in mine}
        scores["growth"] = growth_distance(yours["days"], mine["days"])
        scores["growth_of_pairs"] = growth_distance(yours["new_pairs"], mine["new_pairs"])
    return scores


def totals_by_class(transfers: Transfers, classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum amounts by the classes of payer and payee."""
    assert transfers.amounts is not None
    size, ends = int(classes.max()) + 1, classes[transfers.pairs.numpy()]
    amounts = transfers.amounts.numpy() / CENTS
    return np.bincount(ends[:, 0] * size + ends[:, 1], amounts, minlength=size**2)


def curves(counted: Counted, window: Window) -> dict[str, NDArray[np.float64]]:
    """Count days, hours of the week, gaps and new pairs."""
    found = {
        "days": count_days(counted, window),
        "hours": count_hours(counted, window),
        "gaps": count_gaps(counted, window).sum(axis=0),
        "new_pairs": count_new_pairs(counted, window),
    }
    return {name: curve.astype(np.float64) for name, curve in found.items()}


def main(args: list[str]) -> None:
    """Measure what the file lacks, and write the table.

    Args:
        args: Command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks transfers", description=__doc__)
    parser.add_argument("--data", nargs="+", choices=[*DATA], default=["berka", "college"])
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of scores.csv and cells.csv"
    )
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (5)")
    parser.add_argument("--first-seed", type=int, default=0, help="first seed (0)")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[*EPSILONS])
    parser.add_argument("--rows", nargs="+", choices=ROWS, help="rows to measure; all by default")
    parser.add_argument(
        "--unit", choices=["relation", "transfer"], help="that of the data by default"
    )
    parser.add_argument("--structure", help="method of the edges; that of the data by default")
    parser.add_argument("--max-transfers", type=int, help="that of the method by default")
    parser.add_argument("--amount-share", type=float, help="that of the method by default")
    parser.add_argument("--time-share", type=float, help="that of the method by default")
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    file = ScoresFile(options.out, FIELDS)
    for name in options.data:
        measure(name, options, file)
    file.write_cells(cells(file.lines()))


def measure(name: str, options: argparse.Namespace, file: ScoresFile) -> None:
    """Append the scores of a data set that the file lacks."""
    real = DATA[name]()
    keys = ("unit", "structure", "max_transfers", "amount_share", "time_share")
    given = {key: getattr(options, key) for key in keys}
    settings = {key: value for key, value in given.items() if value is not None}
    label = ", ".join([name, *(f"{key} {value}" for key, value in settings.items())])
    known = {(row["data"], row["row"], row["epsilon"], row["seed"]) for row in file.lines()}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for epsilon in options.epsilons:
            for row, draw in rows_of_seed(real, settings, epsilon, seed):
                place = (label, row, f"{epsilon:g}", str(seed))
                if place in known or (options.rows and row not in options.rows):
                    continue
                start = time.process_time()
                drawn = draw()
                seconds = f"{time.process_time() - start:.1f}"
                scores = [(score, f"{value:.4f}") for score, value in compared(real, drawn).items()]
                file.append([*place, *item, seconds] for item in scores)
                print(*place, *(f"{key} {value}" for key, value in scores), seconds, flush=True)


def cells(scores: Sequence[dict[str, str]]) -> Iterator[list[Any]]:
    """Mean and standard deviation over the seeds of each row, budget and score."""
    values: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for line in scores:
        place = line["data"], f"{line['row']} at {line['epsilon']}"
        values[*place, line["score"]][line["seed"]] = float(line["value"])
        values[*place, "seconds"][line["seed"]] = float(line["seconds"])
    yield from mean_cells(values)
