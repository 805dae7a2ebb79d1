"""Time of a critic step of DP-NetGAN, private, not private, and in textbook form."""

import argparse

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.numbers import Number, ratio
from benchmarks.timing import medians, table
from lightning_dpg.methods import DPNetGAN, DPNetGANAsPublished
from lightning_dpg.methods.base import public_backward

Method = DPNetGAN | DPNetGANAsPublished


def make(
    num_nodes: int,
    batch: int,
    sigma: float,
    device: str,
    method: type[Method] = DPNetGAN,
    **options: object,
) -> Method:
    """A module that can take critic steps without a trainer's loop."""
    module = method(num_nodes, noise_multiplier=sigma, batch_size=batch, **options)  # type: ignore[arg-type]
    module.trainer = pl.Trainer(logger=False, accelerator="cpu", enable_checkpointing=False)
    module.log = lambda *args, **kwargs: None  # type: ignore[method-assign,assignment]
    module.dpsgd.noise_multiplier.fill_(sigma)
    module.num_edges.fill_(10 * batch)
    return module.to(device)


def step(module: Method, edges: Tensor) -> None:
    """Gradient of one critic step, fakes included."""
    module.critic.zero_grad()
    module._critic_backward(edges)


def textbook(module: Method, edges: Tensor) -> None:
    """The same loss on one-hot tokens of shape ``(B, 2, N)``, without privacy."""
    critic, nodes = module.critic, module.generator.up.out_features
    critic.zero_grad()
    fake = F.one_hot(module._fakes(len(edges)), nodes).float() @ critic.table
    real = F.one_hot(edges, nodes).float() @ critic.table
    mix = torch.rand(len(edges), 1, 1, device=edges.device)
    points = torch.lerp(fake, real, mix).detach().requires_grad_()
    (slope,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    penalty = 10 * (slope.flatten(1).norm(dim=1) - 1).square().mean()
    (critic(fake).mean() - critic(real).mean() + penalty).backward()


def main(args: list[str]) -> list[Number]:
    """Print the medians, and return the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks critic")
    parser.add_argument("--nodes", type=int, default=2810)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(args)
    nodes, batch, device = options.nodes, options.batch, options.device
    torch.manual_seed(0)
    edges = torch.randint(nodes, (batch, 2), device=device)
    frozen = make(nodes, batch, 0.0, device)
    trained = make(nodes, batch, 0.0, device, frozen_embedding=False)
    corrected = make(nodes, batch, 1.0, device)
    published = DPNetGANAsPublished
    paper = make(nodes, batch, 1.0, device, published, frozen_embedding=False)
    variants = {
        "no privacy, frozen table": lambda: _nonprivate(frozen, edges),
        "DP, corrected, frozen table": lambda: step(corrected, edges),
        "no privacy, trained table": lambda: step(trained, edges),
        "DP, paper, trained table": lambda: step(paper, edges),
    }
    if nodes * batch < 1e8:
        variants["no privacy, textbook one-hot"] = lambda: textbook(trained, edges)
    times = medians(variants, options.rounds, device)
    print(f"critic step: {nodes} nodes, {batch} edges, {device}")
    targets = {"DP, corrected, frozen table": "<= 1.20"}
    print(table(times, "no privacy, frozen table", targets))
    paper_ratio = times["DP, paper, trained table"] / times["no privacy, trained table"]
    print(f"DP paper / no privacy, trained table: {paper_ratio:.2f}")
    private, plain = times["DP, corrected, frozen table"], times["no privacy, frozen table"]
    numbers = [ratio("critic corrected", private / plain), ratio("critic as printed", paper_ratio)]
    one_hot = times.get("no privacy, textbook one-hot")
    return numbers if one_hot is None else [*numbers, ratio("one-hot critic", one_hot / private)]


def _nonprivate(module: Method, edges: Tensor) -> None:
    """What the corrected step computes, batched and without clipping: the same three terms."""
    module.critic.zero_grad()
    fake = module.critic.embed(module._fakes(len(edges)))
    real = module.critic.embed(edges)
    uniform = torch.randint(len(module.critic.table), edges.shape, device=edges.device)
    mix = torch.rand(len(edges), 1, 1, device=edges.device)
    loss = module.critic(fake).mean() - module.critic(real).mean()
    loss = loss + module._penalty(torch.lerp(fake, module.critic.embed(uniform), mix))
    public_backward(module, loss, list(module.critic.parameters()))
