"""LSTM generator and critic of walks (Bojchevski et al., "NetGAN", ICML 2018; Zheng et al., 2021).

Letters in shapes: B walks, L tokens per walk (2 for an edge), N nodes, d embedding width, H hidden
width, Z latent width. No tensor of shape ``(B, L, N)`` is ever made: tokens are looked up, and the
straight-through gradient keeps one ``(B, N)`` tensor per token.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

BLOCK = 64  # width of the blocks of the two-level inverse CDF


class LSTMCell(nn.Module):
    """LSTM cell of linear maps, which has a double backward on every device.

    Args:
        input_dim: Width d of the input.
        hidden_dim: Width H of the state.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.input = nn.Linear(input_dim, 4 * hidden_dim)
        self.hidden = nn.Linear(hidden_dim, 4 * hidden_dim, bias=False)

    def forward(
        self, projected: Tensor, state: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        """Advance one token.

        Args:
            projected: ``self.input(x)`` of shape ``(..., 4H)``.
            state: Hidden and cell state of shape ``(..., H)``; None stands for zeros.
        """
        gates = projected if state is None else projected + self.hidden(state[0])
        i, f, g, o = gates.chunk(4, -1)
        cell = i.sigmoid() * g.tanh()
        if state is not None:
            cell = cell + f.sigmoid() * state[1]
        return o.sigmoid() * cell.tanh(), cell


class WalkCritic(nn.Module):
    """Wasserstein critic of walks: embedding table, LSTM, linear score.

    Args:
        num_nodes: Number of nodes N.
        embedding_dim: Width d of the table.
        hidden_dim: Width H of the LSTM.
        frozen: Keep the table as a public random projection. Noise is then added to the weights of
            the LSTM alone, and a step costs the same for every N.
    """

    def __init__(
        self, num_nodes: int, embedding_dim: int = 128, hidden_dim: int = 30, frozen: bool = False
    ) -> None:
        super().__init__()
        self.cell = LSTMCell(embedding_dim, hidden_dim)
        self.score = nn.Linear(hidden_dim, 1)
        table = torch.empty(num_nodes, embedding_dim)
        self.table: Tensor
        if frozen:
            self.register_buffer("table", table.normal_(std=embedding_dim**-0.5))
        else:
            self.table = nn.Parameter(nn.init.xavier_uniform_(table))

    def embed(self, walks: Tensor) -> Tensor:
        """Look up walks of shape ``(..., L)`` in the table: shape ``(..., L, d)``."""
        return F.embedding(walks, self.table)

    def forward(self, embedded: Tensor) -> Tensor:
        """Score embedded walks of shape ``(..., L, d)``: shape ``(...)``."""
        state = None
        for projected in self.cell.input(embedded).unbind(-2):
            state = self.cell(projected, state)
        assert state is not None  # a walk has at least one token
        return self.score(state[0]).squeeze(-1)


class WalkGenerator(nn.Module):
    """LSTM that turns a latent vector into a walk.

    Args:
        num_nodes: Number of nodes N.
        walk_length: Number of tokens L; 2 makes the walk an edge.
        latent_dim: Width Z of the latent vector.
        hidden_dim: Width H of the LSTM.
        embedding_dim: Width d of the input table.
    """

    def __init__(
        self,
        num_nodes: int,
        walk_length: int = 2,
        latent_dim: int = 16,
        hidden_dim: int = 40,
        embedding_dim: int = 128,
    ) -> None:
        super().__init__()
        self.walk_length = walk_length
        self.latent_dim = latent_dim
        self.initial = nn.ModuleList(
            nn.Sequential(
                nn.Linear(latent_dim, hidden_dim),
                nn.Tanh(),
                nn.Linear(hidden_dim, hidden_dim),
                nn.Tanh(),
            )
            for _ in ("hidden", "cell")
        )
        self.cell = LSTMCell(embedding_dim, hidden_dim)
        self.table = nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_nodes, embedding_dim)))
        self.up = nn.Linear(hidden_dim, num_nodes)
        self.prior: Tensor = nn.Buffer(torch.zeros(num_nodes))
        nn.init.xavier_uniform_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def latent(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw standard normal latent vectors of shape ``(count, Z)``."""
        z = torch.randn(count, self.latent_dim, generator=generator)
        return z.to(self.up.weight.device)

    def start(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state after the empty first input, for latent vectors ``(B, Z)``."""
        state = (self.initial[0](z), self.initial[1](z))
        return self.cell(self.cell.input.bias, state)

    def step(self, tokens: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the state after tokens of shape ``(B,)``."""
        return self.cell(self.cell.input(F.embedding(tokens, self.table)), state)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return unnormalized log-probabilities of the next token, shape ``(B, N)``."""
        return F.linear(hidden, self.up.weight, self.up.bias + self.prior)

    def forward(self, z: Tensor, temperature: float, critic_table: Tensor) -> Tensor:
        """Generate walks in the critic's embedding, with straight-through gradients.

        Args:
            z: Latent vectors of shape ``(B, Z)``.
            temperature: Temperature of the Gumbel softmax that the gradient goes through.
            critic_table: The critic's embedding table of shape ``(N, d)``; no gradient reaches it.

        Returns:
            Embedded walks of shape ``(B, L, d)``.
        """
        state, walk = self.start(z), []
        for position in range(self.walk_length):
            own, other = _StraightThroughGumbel.apply(  # type: ignore[no-untyped-call]
                state[0],
                self.up.weight,
                self.up.bias + self.prior,
                self.table,
                critic_table,
                temperature,
            )
            walk.append(other)
            if position + 1 < self.walk_length:
                state = self.cell(self.cell.input(own), state)
        return torch.stack(walk, -2)

    @torch.no_grad()
    def sample(self, z: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw walks of shape ``(B, L)`` for latent vectors of shape ``(B, Z)``."""
        state, walk = self.start(z), []
        for _ in range(self.walk_length):
            tokens = sample_categorical(self.logits(state[0]), generator)
            walk.append(tokens)
            state = self.step(tokens, state)
        return torch.stack(walk, -1)

    @torch.no_grad()
    def pair_probability(self, pairs: Tensor, z: Tensor) -> Tensor:
        """Return the mean probability that the first two tokens are a pair, in either order.

        Args:
            pairs: Pairs of nodes of shape ``(P, 2)``.
            z: Latent vectors of shape ``(B, Z)``.

        Returns:
            Probabilities of shape ``(P,)``.
        """
        sources, index = torch.unique(pairs.T.flatten(), return_inverse=True)  # (S,), (2P,)
        targets = torch.cat([pairs[:, 1], pairs[:, 0]])
        order = torch.argsort(index)
        index, targets = index[order], targets[order]
        splits = torch.searchsorted(index, torch.arange(len(sources) + 1, device=index.device))
        total = z.new_zeros(len(order))
        rows = max(1, 2**24 // self.up.out_features)  # of width N, which take about 64 MiB
        for latent in z:
            state = self.start(latent[None])
            first = self.logits(state[0]).log_softmax(-1)[0]
            for low in range(0, len(sources), rows):
                chunk = sources[low : low + rows]
                copies = (state[0].expand(len(chunk), -1), state[1].expand(len(chunk), -1))
                after = self.step(chunk, copies)
                log_norm = self.logits(after[0]).logsumexp(-1) - first[chunk]
                ends = slice(int(splits[low]), int(splits[min(low + rows, len(sources))]))
                at, to = index[ends] - low, targets[ends]
                logit = (after[0][at] * self.up.weight[to]).sum(-1) + self.up.bias[to]
                total[ends] += (logit + self.prior[to] - log_norm[at]).exp()
        probability = torch.empty_like(total)
        probability[order] = total / len(z)
        return probability.view(2, -1).sum(0)

    @torch.no_grad()
    def transition_frequency(
        self, pairs: Tensor, z: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Estimate expected transitions over pairs, in either direction, from sampled walks.

        Each visited node adds the whole distribution of its successor, not one draw of it. Far
        fewer walks are needed than for counting.

        Args:
            pairs: Pairs of nodes of shape ``(P, 2)``.
            z: Latent vectors of shape ``(B, Z)``, one walk each.
            generator: Source of the walks.

        Returns:
            Frequencies of shape ``(P,)``.
        """
        source = pairs.T.flatten()
        target = torch.cat([pairs[:, 1], pairs[:, 0]])
        order = torch.argsort(source)
        ends = torch.bincount(source, minlength=self.up.out_features).cumsum(0)
        starts = F.pad(ends, (1, 0))[:-1]
        target, total = target[order], z.new_zeros(len(order))
        state = self.start(z)
        tokens = sample_categorical(self.logits(state[0]), generator)
        for _ in range(self.walk_length - 1):
            state = self.step(tokens, state)
            probability = self.logits(state[0]).softmax(-1)
            counts = (ends - starts)[tokens]
            row = torch.repeat_interleave(counts)
            offset = torch.arange(len(row), device=z.device) - (counts.cumsum(0) - counts)[row]
            at = starts[tokens][row] + offset
            total.index_add_(0, at, probability[row, target[at]])
            tokens = sample_categorical(probability.log_(), generator)
        frequency = torch.empty_like(total)
        frequency[order] = total
        return frequency.view(2, -1).sum(0)


class _StraightThroughGumbel(Function):
    """Hard Gumbel-softmax token, looked up in two tables, with the gradient of the soft token.

    Equal to ``y @ table`` with the one-hot ``y`` of :func:`torch.nn.functional.gumbel_softmax`, but
    saves only the soft token of shape ``(B, N)``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        table: Tensor,
        critic_table: Tensor,
        temperature: float,
    ) -> tuple[Tensor, Tensor]:
        logits = torch.addmm(bias, hidden, weight.T)
        uniform = torch.rand_like(logits).clamp_(1e-20, 1 - 1e-7)
        logits -= uniform.log_().neg_().log_()
        tokens = logits.argmax(-1)
        soft = logits.div_(temperature).softmax(-1)
        ctx.save_for_backward(hidden, weight, table, critic_table, soft, tokens)
        ctx.temperature = temperature
        return F.embedding(tokens, table), F.embedding(tokens, critic_table)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        own, other = gradients
        hidden, weight, table, critic_table, soft, tokens = ctx.saved_tensors
        upstream = (other @ critic_table.T).addmm_(own, table.T)  # dL/dy, (B, N)
        table_grad = torch.zeros_like(table).index_add_(0, tokens, own)
        upstream *= soft
        upstream -= soft * upstream.sum(-1, keepdim=True)
        upstream /= ctx.temperature
        return upstream @ weight, upstream.T @ hidden, upstream.sum(0), table_grad, None, None


@torch.no_grad()
def sample_categorical(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw one index per row from ``softmax(logits)`` by a two-level inverse CDF.

    One uniform number per row, and cumulative sums over blocks only: three times faster than a
    Gumbel argmax over N columns.

    Args:
        logits: Unnormalized log-probabilities of shape ``(B, N)``; overwritten.
        generator: Source of the uniform numbers.

    Returns:
        Indices of shape ``(B,)``.
    """
    batch, width = logits.shape
    weight = logits.sub_(logits.amax(-1, keepdim=True)).exp_()
    whole = width - width % BLOCK
    sums = weight[:, :whole].view(batch, -1, BLOCK).sum(-1)
    if whole < width:  # the last block is shorter; to fill it up would copy all weights
        sums = torch.cat([sums, weight[:, whole:].sum(-1, keepdim=True)], 1)
    block_cdf = sums.cumsum(-1)
    uniform = torch.rand(batch, 1, generator=generator, dtype=logits.dtype).to(logits.device)
    target = uniform * block_cdf[:, -1:]
    block = torch.searchsorted(block_cdf, target, right=True).clamp_(max=sums.shape[1] - 1)
    below = F.pad(block_cdf, (1, 0)).gather(1, block)
    columns = block * BLOCK + torch.arange(BLOCK, device=logits.device)
    # Columns beyond the last one repeat it; the last line below takes them for it.
    cdf = weight.gather(1, columns.clamp(max=width - 1)).cumsum(-1)
    inner = torch.searchsorted(cdf, target - below, right=True).clamp_(max=BLOCK - 1)
    return (block * BLOCK + inner).squeeze(1).clamp_(max=width - 1)
