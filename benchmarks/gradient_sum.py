"""One process of the sum of a gradient: ``python -m benchmarks.gradient_sum RANK SIZE``.

It imports PyTorch alone: the processes of ``benchmarks gpu`` start in seconds.
"""

import sys
import time

import torch
from torch import distributed


def sum_of_gradients(rank: int, size: int) -> None:
    """Measure the sum of 379,000 numbers, as many as a critic of 2,810 nodes has."""
    backend, device = ("nccl", f"cuda:{rank}") if torch.cuda.is_available() else ("gloo", "cpu")
    distributed.init_process_group(backend, rank=rank, world_size=size)
    values, rounds = torch.ones(379_000, device=device), 20
    distributed.all_reduce(values)
    total = float(values[0])
    start = time.perf_counter()
    for _ in range(rounds):
        distributed.all_reduce(values)
    if backend == "nccl":
        torch.cuda.synchronize()
    took = 1000 * (time.perf_counter() - start) / rounds
    distributed.destroy_process_group()
    if total != size:
        raise SystemExit(f"error: {size} ones add up to {total}")
    if not rank:
        print(f"sum over {size} process(es), {backend}: {took:.2f} ms", flush=True)


if __name__ == "__main__":
    sum_of_gradients(*map(int, sys.argv[1:]))
