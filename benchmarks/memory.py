"""Peak resident memory of a critic step, each variant in its own process."""

import argparse
import resource
import subprocess
import sys

from benchmarks.numbers import Number, ratio

VARIANTS = {
    "no privacy, trained table": ("DPNetGAN", 0.0, {"frozen_embedding": False}),
    "DP, corrected, frozen table": ("DPNetGAN", 1.0, {}),
    "DP, paper, trained table": ("DPNetGANAsPublished", 1.0, {"frozen_embedding": False}),
}


def main(args: list[str]) -> list[Number]:
    """Print the rise of the peak over the state before the first step, and return the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks memory")
    parser.add_argument("--nodes", type=int, default=2810)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--only", help="run this variant in this process")
    options = parser.parse_args(args)
    if options.only:
        print(_rise(options.only, options.nodes, options.batch))
        return []
    print(f"peak memory of a critic step: {options.nodes} nodes, {options.batch} edges, CPU")
    rises = {}
    for name in VARIANTS:
        size = ["--nodes", str(options.nodes), "--batch", str(options.batch)]
        command = [sys.executable, "-m", "benchmarks", "memory", *size, "--only", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rises[name] = float(done.stdout.splitlines()[-1])
    base = rises["no privacy, trained table"]
    print("| variant | MiB | ratio |\n|---|---|---|")
    for name, rise in rises.items():
        print(f"| {name} | {rise:.0f} | {rise / base:.2f} |")
    rows = {
        "memory corrected": "DP, corrected, frozen table",
        "memory as printed": "DP, paper, trained table",
    }
    return [ratio(row, rises[name] / base) for row, name in rows.items()]


def _rise(name: str, nodes: int, batch: int) -> float:
    import torch

    from benchmarks.critic import make, step
    from lightning_dpg import methods

    torch.set_num_threads(1)
    method, sigma, options = VARIANTS[name]
    module = make(nodes, batch, sigma, "cpu", getattr(methods, method), **options)
    step(module, torch.randint(nodes, (8, 2)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        step(module, torch.randint(nodes, (batch, 2)))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
