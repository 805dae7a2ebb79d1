"""Time of sampling and of the generator step, against the dense Gumbel softmax."""

import argparse

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.numbers import Number, ratio
from benchmarks.timing import medians, table
from lightning_dpg.papers.zheng2021.walk_lstm import WalkCritic, WalkGenerator, sample_categorical


def dense_walk(generator: WalkGenerator, z: Tensor, temperature: float) -> Tensor:
    """Generate walks as one-hot tokens of shape ``(B, L, N)``, as NetGAN computes them."""
    state, walk = generator.start(z), []
    for _ in range(generator.walk_length):
        token = F.gumbel_softmax(generator.logits(state[0]), temperature, hard=True)
        walk.append(token)
        state = generator.cell(generator.cell.input(token @ generator.table), state)
    return torch.stack(walk, -2)


def main(args: list[str]) -> list[Number]:
    """Print the medians, and return the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks generator")
    parser.add_argument("--nodes", type=int, default=2810)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(args)
    nodes, batch, device = options.nodes, options.batch, options.device
    torch.manual_seed(0)
    generator = WalkGenerator(nodes).to(device)
    critic = WalkCritic(nodes, frozen=True).to(device)
    z = generator.latent(batch)
    logits = generator.logits(generator.start(z)[0]).detach()

    def ours() -> None:
        critic(generator(z, 1.0, critic.table)).sum().backward()

    def dense() -> None:
        critic(dense_walk(generator, z, 1.0) @ critic.table).sum().backward()

    print(f"generator: {nodes} nodes, {batch} walks of 2 tokens, {device}")
    steps = {"step, dense straight-through": dense, "step, two lookups": ours}
    times = medians(steps, options.rounds, device)
    print(table(times, "step, dense straight-through", {"step, two lookups": "<= 0.6"}))
    step = times["step, two lookups"] / times["step, dense straight-through"]
    samplers = {
        "token, Gumbel one-hot": lambda: F.gumbel_softmax(logits, 1.0, hard=True),
        "token, two-level inverse CDF": lambda: sample_categorical(logits.clone()),
    }
    times = medians(samplers, options.rounds, device)
    print(table(times, "token, Gumbel one-hot", {"token, two-level inverse CDF": "<= 0.4"}))
    token = times["token, two-level inverse CDF"] / times["token, Gumbel one-hot"]
    return [ratio("generator", step), ratio("token", token)]
