"""Times on a GPU beside those on the CPU, in one run; without a GPU those on the CPU, and a list.

``python -m benchmarks gpu --small`` takes a minute on a CPU, for tests of the command itself. Seconds are
wall time between synchronizations on a GPU, and process time of one thread on the CPU.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import pytorch_lightning as pl
import torch
from torch import Tensor

from benchmarks.attributes import planted
from benchmarks.critic import make, step
from benchmarks.timing import medians
from lightning_dpg import methods
from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.datamodules.tu import TUGraphDataModule
from lightning_dpg.graph.attributes import NodeAttributes, attach
from lightning_dpg.papers.jin2022.gromov import Space, pairwise_discrepancies
from lightning_dpg.run.quiet import quiet

FITS: dict[str, Callable[[int], pl.LightningModule]] = {
    "critic (DPNetGAN)": methods.DPNetGAN,
    "edges of sets (DPGVAE)": lambda nodes: methods.DPGVAE(),
    "encoder (AttributeEncoder)": methods.AttributeEncoder,
    "Oja (PrivCom)": methods.PrivCom,
}
ON_A_GPU = """\
no GPU is visible; with one this command also measures, in the same run:
- each row on the GPU, and its ratio to the CPU
- the critic step with TF32 off and on: milliseconds, and the largest relative difference of gradients
- critic examples a second by batch until memory ends, and peak memory of each batch
- NCCL: the sum of a gradient over one process, and over two where there are two devices
- tests/privacy/test_dpsgd.py with the GPU as default device (LIGHTNING_DPG_TEST_DEVICE=cuda)"""


def main(args: list[str]) -> None:
    """Print a table of each part."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks gpu")
    parser.add_argument("--small", action="store_true", help="tiny graphs and batches")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    nodes, rounds = (300, 1) if options.small else (2810, options.rounds)
    batches = (64, 256) if options.small else (256, 1024, 4096, 16384, 65536)
    print(f"devices: {', '.join(devices)}; torch {torch.__version__}")
    _print_batches(devices, nodes, batches, rounds)
    _print_fits(devices, nodes)
    _print_discrepancies(20 if options.small else 188)
    if "cuda" in devices:
        _print_tf32(nodes, batches[-2], rounds)
    else:
        print(ON_A_GPU)
    for size in range(1, 3 if torch.cuda.device_count() > 1 or devices == ["cpu"] else 2):
        _print_sum(size)
    if "cuda" in devices:
        _run_tests()


def _run_tests() -> None:
    """Run the tests of DP-SGD with the GPU as default device."""
    command = [sys.executable, "-m", "pytest", "tests/privacy/test_dpsgd.py", "-q", "-n", "0"]
    environment = {**os.environ, "LIGHTNING_DPG_TEST_DEVICE": "cuda"}
    if subprocess.run(command, env=environment, check=False).returncode:
        raise SystemExit("error: tests of DP-SGD fail on the GPU")


def _print_batches(devices: list[str], nodes: int, batches: tuple[int, ...], rounds: int) -> None:
    """Critic step with DP by batch: milliseconds, examples a second, ratio to no privacy, memory."""
    print("| critic, batch | device | ms | examples/s | to no privacy | peak, MiB |")
    print("|---|---|---|---|---|---|")
    for batch in batches:
        for device in devices:
            if device == "cuda":
                torch.cuda.reset_peak_memory_stats()
            edges = torch.randint(nodes, (batch, 2), device=device)
            private, plain = (make(nodes, batch, sigma, device) for sigma in (1.0, 0.0))
            variants = {"DP": _step(private, edges), "no privacy": _step(plain, edges)}
            times = medians(variants, rounds, device)
            ratio = times["DP"] / times["no privacy"]
            rate = 1000 * batch / times["DP"]
            peak = f"{torch.cuda.max_memory_allocated() / 2**20:.0f}" if device == "cuda" else ""
            line = f"| {batch} | {device} | {times['DP']:.2f} | {rate:.0f} | {ratio:.2f} | {peak} |"
            print(line, flush=True)


def _step(module: methods.DPNetGAN, edges: Tensor) -> Callable[[], None]:
    return lambda: step(module, edges)


def _print_fits(devices: list[str], nodes: int) -> None:
    """Seconds of a whole private run of each method that trains."""
    print("| run | device | s | to the CPU |\n|---|---|---|---|")
    for name, build in FITS.items():
        seconds: dict[str, float] = {}
        for device in devices:
            method, data = build(nodes), _data(name, nodes)
            start = time.perf_counter()
            _fit(method, data, device)
            seconds[device] = time.perf_counter() - start
            ratio = seconds[device] / seconds["cpu"]
            print(f"| {name} | {device} | {seconds[device]:.2f} | {ratio:.2f} |", flush=True)


def _data(name: str, nodes: int) -> pl.LightningDataModule:
    if "sets" in name:
        return TUGraphDataModule("planted_sets")
    graph, attributes = planted(nodes, 50, "sparse")
    columns = [f"x{k}" for k in range(attributes.shape[1])]
    attach(graph, NodeAttributes(attributes, columns, None))
    uses_attributes = "encoder" in name
    return EdgeListDataModule(
        graph, nodes=Nodes(attributes="from_graph") if uses_attributes else None
    )


def _fit(method: pl.LightningModule, data: pl.LightningDataModule, device: str) -> None:
    """Fit a method for one epoch; the first row has the time of imports, too."""
    with quiet(), warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        pl.Trainer(
            max_epochs=1,
            accelerator=device,
            devices=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[PrivacyAccountant(4.0, 1e-5, book=NO_BOOK)],
        ).fit(method, data)


def _print_discrepancies(count: int) -> None:
    """Gromov-Wasserstein discrepancies of all pairs, which have no code for a GPU."""
    source = torch.Generator().manual_seed(0)
    places = [torch.rand(10 + k % 19, 3, generator=source).double() for k in range(count)]
    spaces = [Space(torch.cdist(each, each).numpy(), None) for each in places]
    start = time.process_time()
    pairwise_discrepancies(spaces, workers=1)
    print(f"GW, {count} graphs, cpu only: {time.process_time() - start:.2f} s")


@contextlib.contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _print_tf32(nodes: int, batch: int, rounds: int) -> None:
    """Milliseconds of a critic step with TF32 off and on, and what it changes."""
    edges = torch.randint(nodes, (batch, 2), device="cuda")
    module, gradients = make(nodes, batch, 0.0, "cuda"), []
    for allowed in (False, True):
        with _tf32(allowed):
            took = medians({"step": _step(module, edges)}, rounds, "cuda")["step"]
            torch.manual_seed(0)
            step(module, edges)
        parts = [p.grad.flatten() for p in module.critic.parameters() if p.grad is not None]
        gradients.append(torch.cat(parts))
        print(f"TF32 {'on' if allowed else 'off'}: {took:.2f} ms")
    difference = (gradients[1] - gradients[0]).norm() / gradients[0].norm()
    print(f"TF32: relative difference of gradients {float(difference):.2g}")


def _print_sum(size: int) -> None:
    """Sum of a gradient over processes; each one is started anew."""
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29500 + size)}
    words = [sys.executable, "-m", "benchmarks.gradient_sum"]
    others = [
        subprocess.Popen([*words, str(rank), str(size)], env=environment) for rank in range(1, size)
    ]
    done = subprocess.run([*words, "0", str(size)], env=environment, check=False)
    if any([done.returncode, *(other.wait() for other in others)]):
        raise SystemExit(f"error: the sum over {size} process(es) failed")
