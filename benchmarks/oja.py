"""Time of a step of PrivCom's noisy power method on large graphs, against scipy's eigsh."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.numbers import Number

VARIANTS = ("step", "eigsh")
COMMUNITIES = 8
ROWS = {
    250_000: "PrivCom, a quarter of it",
    500_000: "PrivCom, half of it",
    1_000_000: "PrivCom, a million nodes",
}
INSIDE = 0.7  # share of the edges within communities


def main(args: list[str]) -> list[Number]:
    """Print seconds and peak memory, each in its own process, and return the numbers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks oja")
    parser.add_argument("--nodes", type=int, nargs="+", default=[250_000, 500_000, 1_000_000])
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=VARIANTS, help="run this variant in this process")
    options = parser.parse_args(args)
    if options.only:
        print(*_measure(options.only, options))
        return []
    numbers = list[Number]()
    print(f"rank {options.rank}, {COMMUNITIES} communities, one thread; peak memory of the process")
    print("| nodes | edges | s per step | MiB | eigsh, s | MiB | eigsh / 24 steps |")
    print("|---|---|---|---|---|---|---|")
    for nodes in options.nodes:
        found = {name: _in_its_own_process(name, nodes, options) for name in VARIANTS}
        (step, peak, edges), (whole, other, _) = found["step"], found["eigsh"]
        print(
            f"| {nodes} | {edges:.0f} | {step:.2f} | {peak:.0f} | {whole:.1f} | {other:.0f} "
            f"| {whole / (24 * step):.2f} |",
            flush=True,
        )
        if nodes in ROWS:
            numbers.append(_number(ROWS[nodes], "seconds of a step", step))
        if nodes == 1_000_000:
            numbers.append(_number(ROWS[nodes], "GiB", peak / 1024))
            numbers.append(_number("eigsh of scipy, a million nodes", "seconds of a step", whole))
    return numbers


def _number(row: str, column: str, value: float) -> Number:
    return Number("speed", "privcom", row, column, f"{value:.2g}")


def _in_its_own_process(name: str, nodes: int, options: argparse.Namespace) -> list[float]:
    settings = {
        "--nodes": nodes,
        "--degree": options.degree,
        "--rank": options.rank,
        "--rounds": options.rounds,
        "--only": name,
    }
    words = [str(word) for setting in settings.items() for word in setting]
    command = [sys.executable, "-m", "benchmarks", "oja", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()[-3:]]


def _measure(name: str, options: argparse.Namespace) -> tuple[float, float, int]:
    """Return seconds of a step or of eigsh, the peak in MiB from then on, and the edges."""
    import numpy as np
    import torch
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import eigsh

    from lightning_dpg.methods import PrivCom

    torch.set_num_threads(1)
    (nodes,), rng = options.nodes, np.random.default_rng(0)
    first = rng.integers(nodes, size=nodes * options.degree // 2)
    moved = rng.integers(nodes // COMMUNITIES, size=len(first)) * COMMUNITIES
    within = rng.random(len(first)) < INSIDE
    second = np.where(within, moved + first % COMMUNITIES, rng.integers(nodes, size=len(first)))
    second %= nodes
    half = coo_array((np.ones(len(first)), (first, second)), shape=(nodes, nodes)).tocsr()
    matrix = half + half.T
    del half, moved, within, first, second
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak starts anew
    if name == "eigsh":
        start = time.process_time()
        eigsh(matrix, k=options.rank, which="LA", v0=np.ones(nodes))
        seconds = time.process_time() - start
    else:
        method = PrivCom(nodes, rank=options.rank)
        method.noise_multipliers.fill_(20.0)
        method._adjacency = matrix
        optimizer, times = method.configure_optimizers(), []
        for _ in range(options.rounds):
            start = time.process_time()
            method.vectors.grad = method.direction()
            optimizer.step()
            times.append(time.process_time() - start)
        seconds = sorted(times)[len(times) // 2]
    status = Path("/proc/self/status").read_text().split()
    return seconds, int(status[status.index("VmHWM:") + 1]) / 1024, matrix.nnz // 2
