"""BlockSampler: its law, its steps, its guard and both of its numbers hold by enumeration."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import special, stats

from lightning_dpg.cli.ends import spent_so_far
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph import label_blocks
from lightning_dpg.graph.block_rates import fewer_degrees, true_links
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.label_blocks import GroupedLabels, independent_blocks
from lightning_dpg.graph.stubs import count_links
from lightning_dpg.methods import BlockSampler
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.guard import flip_rate, guard_epsilon, guarded
from lightning_dpg.privacy.label_sampling import sample_labels
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity import label_utility_sensitivity
from lightning_dpg.release.statement import privacy_statement
from lightning_dpg.research import label_groups
from tests.scoring import scored
from tests.training import release_edges

N = 5
PAIRS = np.array(list(itertools.combinations(range(N), 2)))
WEIGHTS = np.array([0.6, 1.0, 1.7, 2.5, 3.0])


class Pairwise(GroupedLabels):
    """The law with blocks of two nodes, where a graph of five nodes would have blocks of one."""

    _block_size = 2


def states(num_labels, size=N):
    return np.array(list(itertools.product(range(num_labels), repeat=size)))


def log_h(every, weights, num_edges, rate):
    totals = np.stack([(every == k) @ weights for k in range(every.max() + 1)])
    return -num_edges * np.log(weights.sum() ** 2 + math.expm1(rate) * (totals**2).sum(axis=0))


def law(edges, num_labels, num_edges, rate):
    """The law that the class states, for nodes with the weights above."""
    every = states(num_labels)
    utility = (every[:, edges[:, 0]] == every[:, edges[:, 1]]).sum(axis=1)
    return special.softmax(rate * utility + log_h(every, WEIGHTS, num_edges, rate))


def step(model, block, power=1.0):
    """Transition matrix of one step, from the proposal and the ratio of each pair of states."""
    every = states(model.num_labels, model.num_nodes)
    number = {tuple(state): row for row, state in enumerate(every)}
    matrix, nodes = np.zeros((len(every), len(every))), model.blocks[block]
    for row, state in enumerate(every):
        model.reset(state)
        cumulative = model.propose(block, power)
        chances = np.diff(cumulative / cumulative[:, -1:], axis=1, prepend=0)
        for new in states(model.num_labels, len(nodes)):
            proposed = chances[np.arange(len(nodes)), new].prod()
            taken = proposed * min(1, math.exp(min(model.log_ratio(new), 0)))
            other = state.copy()
            other[nodes] = new
            matrix[row, number[tuple(other)]] += taken
            matrix[row, row] += proposed - taken
    return matrix


def chain_law(model, sweeps):
    """Exact law of the labels after so many sweeps from a uniform start."""
    count = model.num_labels**model.num_nodes
    now = np.full(count, 1 / count)
    for sweep in range(sweeps):
        for block in range(len(model.blocks)):
            now = now @ step(model, block, min(1, (sweep + 1) / (0.7 * sweeps)))
    return now


def test_stationary_laws_of_all_neighbors_are_within_epsilon():
    """All graphs of five nodes and all their edges; the utility never falls."""
    rate, every = 2.0, states(3)
    bits = np.arange(2 ** len(PAIRS))[:, None] >> np.arange(len(PAIRS)) & 1
    equal = every[:, PAIRS[:, 0]] == every[:, PAIRS[:, 1]]
    utilities = equal.astype(int) @ bits.T
    logs = rate * utilities + log_h(every, WEIGHTS, 6, rate)[:, None]
    logs -= np.log(np.exp(logs).sum(axis=0))
    graphs, losses = np.arange(2 ** len(PAIRS)), []
    for k in range(len(PAIRS)):
        without = graphs[graphs >> k & 1 == 0]
        growth = utilities[:, without | 1 << k] - utilities[:, without]
        assert set(np.unique(growth)) == {0, label_utility_sensitivity()}
        losses.append(np.abs(logs[:, without | 1 << k] - logs[:, without]).max())
    assert 0.7 * rate < max(losses) <= rate


@pytest.mark.parametrize("make", [GroupedLabels, Pairwise])
def test_each_step_is_reversible_and_a_sweep_reaches_all_labels(make):
    edges, rest = PAIRS[[0, 1, 4, 5, 8]], (3, 7, 1.3)
    model = make(edges, WEIGHTS, *rest)
    assert make is GroupedLabels or max(map(len, model.blocks)) > 1
    stationary, sweep = law(edges, *rest), np.eye(3**N)
    for block, nodes in enumerate(model.blocks):
        matrix = step(model, block)
        flow = stationary[:, None] * matrix
        assert np.allclose(flow, flow.T, atol=1e-14)
        # A block of one node is a heat bath: it forgets the node's label.
        state = np.zeros(N, dtype=int)
        others = np.delete(states(3), nodes, axis=1)
        same = (others == np.delete(state, nodes)).all(axis=1)
        if len(nodes) == 1:
            assert np.allclose(matrix[same], matrix[same][0])
        sweep = sweep @ matrix
    assert (sweep > 0).all()
    model.reset(states(3)[100])
    for node, chances in enumerate(model.laws()):
        same = (np.delete(states(3), node, 1) == np.delete(states(3)[100], node)).all(axis=1)
        assert np.allclose(chances, stationary[same] / stationary[same].sum())


def test_chain_draws_from_the_product_of_its_steps():
    model = Pairwise(PAIRS[[0, 1, 4, 9]], WEIGHTS, 2, 5, 1.0)
    expected, noise = chain_law(model, 2), NoiseSource(unsafe_seed=5)
    law = sample_labels(2)
    found = np.zeros(2**N)
    for _ in range(1500):
        drawn = law(model, noise)
        found[int("".join(map(str, drawn.tolist())), 2)] += 1
    assert stats.chisquare(found, expected * found.sum()).pvalue > 1e-3


BITS = np.arange(2 ** len(PAIRS))[:, None] >> np.arange(len(PAIRS)) & 1


def laws_of_all_graphs(rate, sweeps):
    """Exact laws of two labels on all graphs of five nodes, drawn in turn, shape (1024, 32)."""
    every = states(2)
    linked = np.zeros((len(BITS), N, N))
    linked[:, PAIRS[:, 0], PAIRS[:, 1]] = linked[:, PAIRS[:, 1], PAIRS[:, 0]] = BITS
    totals = np.stack([(every == k) @ WEIGHTS for k in range(2)])
    log_h = -6 * np.log(WEIGHTS.sum() ** 2 + math.expm1(rate) * (totals**2).sum(axis=0))
    digits = 2 ** np.arange(N)[::-1]
    flipped = np.arange(2**N) ^ digits[:, None]
    gains = np.einsum("gij,sj->igs", linked, 2 * every - 1) * rate
    gains += ((log_h[flipped] - log_h) * (1 - 2 * every.T))[:, None]
    found = np.full((len(BITS), 2**N), 2.0**-N)
    for sweep in range(sweeps):
        power = min(1, (sweep + 1) / (0.7 * sweeps))
        for node in range(N):
            taken = special.expit(power * gains[node] * (2 * every[:, node] - 1))
            found = (found + found[:, flipped[node]]) * taken
    return found


def largest_loss(rate, sweeps):
    """Largest loss over all graphs of five nodes, all of their edges and all labels."""
    logs, graphs = np.log(laws_of_all_graphs(rate, sweeps)), np.arange(len(BITS))
    pairs = [(graphs[graphs >> k & 1 == 0], 1 << k) for k in range(len(PAIRS))]
    return max(float(np.abs(logs[less | bit] - logs[less]).max()) for less, bit in pairs)


def test_the_enumerated_laws_are_those_of_the_chain(monkeypatch):
    monkeypatch.setattr(
        label_blocks, "independent_blocks", lambda *_: list(np.arange(N).reshape(N, 1))
    )
    for graph in (1, 545, 407):
        model = GroupedLabels(PAIRS[BITS[graph] == 1], WEIGHTS, 2, 6, 3.0)
        assert np.allclose(laws_of_all_graphs(3.0, 2)[graph], chain_law(model, 2), atol=1e-13)


@pytest.mark.parametrize(
    ("sweeps", "lost"), [(1, 5.1652), (2, 4.0793), (10, 3.1653), (150, 2.9993)]
)
def test_short_chains_lose_more_than_their_claim(sweeps, lost):
    """The reason for the condition: exact losses at a claim of 3, on all graphs of five nodes."""
    assert largest_loss(3.0, sweeps) == pytest.approx(lost, abs=5e-4)
    assert BlockSampler().hparams["sweeps"] == 150


def test_a_chain_of_blocks_can_lose_more_than_its_claim():
    """The class with blocks of its own choice, on three graphs and all of their neighbors."""
    rate, sweeps = 3.0, 2
    worst = 0.0
    for bits in (0b0000000001, 0b1000010001, 0b0110010111):
        chosen = [bool(bits >> k & 1) for k in range(len(PAIRS))]
        first = chain_law(GroupedLabels(PAIRS[chosen], WEIGHTS, 2, 6, rate), sweeps)
        for k in range(len(PAIRS)):
            other = [bit != (j == k) for j, bit in enumerate(chosen)]
            second = chain_law(GroupedLabels(PAIRS[other], WEIGHTS, 2, 6, rate), sweeps)
            worst = max(worst, float(np.abs(np.log(first / second)).max()))
    assert worst == pytest.approx(3.526, abs=0.005)


def test_blocks_hold_no_edge_and_all_nodes():
    graph = nx.barabasi_albert_graph(60, 4, seed=1)
    edges = np.array(graph.edges)
    model = GroupedLabels(edges, np.ones(60), 4, 10, 0.5)
    assert sorted(np.concatenate(model.blocks).tolist()) == list(range(60))
    assert all(not graph.subgraph(block.tolist()).edges for block in model.blocks)
    assert max(map(len, model.blocks)) > 1
    complete = np.array(list(itertools.combinations(range(6), 2)))
    starts, ends = np.arange(7) * 5, np.concatenate([np.delete(np.arange(6), i) for i in range(6)])
    assert len(independent_blocks(starts, ends, 6)) == 6
    assert len(GroupedLabels(complete, np.ones(6), 2, 1, 0.1).blocks) == 6


def test_guard_flips_every_bit_alike_and_neighbors_stay_neighbors():
    present, rate = torch.arange(0, 20_000, 4), flip_rate(1.0)
    assert rate == pytest.approx(1 / (1 + math.e))
    answers = guarded(present, 20_000, NoiseSource(unsafe_seed=0), 1.0)
    truths = int(torch.isin(present, answers).sum())
    assert stats.binomtest(truths, 5_000, 1 - rate).pvalue > 1e-3
    assert stats.binomtest(len(answers) - truths, 15_000, rate).pvalue > 1e-3
    fewer = guarded(present[present != 400], 20_000, NoiseSource(unsafe_seed=0), 1.0)
    assert set(answers.tolist()) ^ set(fewer.tolist()) == {400}
    assert torch.equal(guarded(present, 20_000, NoiseSource(), math.inf), present)
    assert guard_epsilon(100) == guard_epsilon(10_000) == 8
    false = [n * (n - 1) / 2 * flip_rate(guard_epsilon(n)) for n in (10_000, 81_306, 10**6)]
    assert max(false) < 17_000


def unfitted(size, epsilon, seed=0, **settings):
    method = BlockSampler(size, **settings)
    method._noise = NoiseSource(unsafe_seed=seed)
    method.ledger.budget = Budget(epsilon, 0.0)
    return method


def fitted(graph, epsilon, seed=0, **settings):
    method = unfitted(graph.num_nodes, epsilon, seed, **settings)
    release_edges(method, undirected_edges(graph))
    return method


@pytest.mark.parametrize("guard", [8.0, 2.0])
def test_behind_the_guard_nothing_reads_the_edges(monkeypatch, guard):
    """The second number: another graph whose guard gives the same result has the same release."""
    answers = torch.arange(0, 190, 7)
    monkeypatch.setattr(label_groups, "guarded", lambda *_: answers)
    graphs = [from_networkx(nx.gnm_random_graph(20, m, seed=m)) for m in (15, 60)]
    settings = {"sweeps": 3, "guard_epsilon": guard}
    one, other = (fitted(graph, 2.0, **settings).released_state() for graph in graphs)
    assert all(torch.equal(one[name], other[name]) for name in one)


def loss_behind_a_guard(degrees, rate, guard):
    """Exact loss of an edge by labels of one sweep behind a guard: all graphs, and all flips."""
    pairs = np.array(list(itertools.combinations(range(len(degrees)), 2)))
    weights, graphs = np.array(degrees) ** 0.7, np.arange(2 ** len(pairs))
    chosen = graphs[:, None] >> np.arange(len(pairs)) & 1
    models = (GroupedLabels(pairs[of == 1], weights, 2, sum(degrees) // 2, rate) for of in chosen)
    laws = np.array([chain_law(model, 1) for model in models])
    flips, flip = (chosen[:, None] != chosen).sum(axis=2), flip_rate(guard)
    seen = np.log((flip**flips * (1 - flip) ** (len(pairs) - flips)) @ laws)
    return max(np.abs(seen - seen[graphs ^ 1 << k]).max() for k in range(len(pairs)))


def test_a_run_that_stops_behind_its_labels_has_spent_its_guard(monkeypatch):
    """The labels of one sweep lose almost twice the epsilon of all that was released by then."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(label_groups, "fewer_degrees", stop)
    said = []
    for guard in (8.0, 9.0):
        shares = {"degree_share": 0.01, "block_share": 0.49}
        method = unfitted(20, 8.0, sweeps=1, guard_epsilon=guard, **shares)
        ledger, seen = method.ledger, {}
        ledger.observer = seen.__setitem__
        with pytest.raises(KeyboardInterrupt):
            release_edges(method, torch.tensor([[0, 1], [2, 3]]))
        assert method.ledger is ledger
        said.append((ledger.epsilon(0.0), list(seen), spent_so_far(method)))
    lost = loss_behind_a_guard((1, 1, 0, 0), 4.0, 8.0)
    (spent, keys, text), (of_reads, reads, conditional) = said
    assert lost == pytest.approx(7.642, abs=1e-3)
    assert of_reads == pytest.approx(0.51 * 8) and of_reads < lost < spent == 8
    assert keys == ["edge_reports"] and reads[-1] == "block_labels"
    assert text == "spent for good: epsilon 8 of 8, delta 0"
    # A guard beyond the budget is not paid for: its reads are, under the condition.
    assert conditional.startswith("spent for good: epsilon 4.08 of 8, delta 0, if the Markov chain")
    assert "in any case edge-level (9, 0)-DP" in conditional


def test_statement_has_both_numbers_and_no_condition_where_the_guard_is_as_good():
    graph = from_networkx(nx.gnm_random_graph(20, 40, seed=0))
    method = fitted(graph, 2.5, sweeps=3)
    method._noise = NoiseSource()
    statement = privacy_statement(method)
    assert statement["conditional"] and statement["epsilon"] == 2.5
    assert "(2.5, 0)-DP if the Markov chain" in statement["guarantee"]
    assert "in any case edge-level (8, 0)-DP" in statement["guarantee"]
    (labels,) = [entry for entry in statement["entries"] if entry["key"] == "block_labels"]
    assert labels["public"] == {
        "sweeps of the chain": 3,
        "epsilon without the chain, by the guard": 8.0,
    }
    assert math.fsum(entry["epsilon"] for entry in statement["entries"]) == pytest.approx(2.5)
    booked = method.ledger.last_entry("block_labels")
    assert LedgerEntry.from_dict(booked.to_dict()) == booked
    for guard in (2.5, 2.0):
        free = fitted(graph, 2.5, sweeps=3, guard_epsilon=guard)
        free._noise = NoiseSource()
        assert free.condition() is None
        stated = privacy_statement(free)
        assert stated["guarantee"].startswith(f"edge-level ({guard:g}, 0)-DP (add/remove one")
        assert [entry["key"] for entry in stated["entries"]] == ["edge_reports"]
        assert free.plan(Budget(2.5, 0.0), 1) == free.ledger.entries
        # An audit knows the odds of each answer.
        pairs = torch.combinations(torch.arange(20))
        answers = torch.arange(0, 190, 2)
        scores = scored(free, "edge_reports", answers, pairs, graph)
        assert scores.abs().tolist() == pytest.approx([guard] * 190)
        assert int((scores > 0).sum()) == len(answers)
    bare = fitted(graph, 2.5, sweeps=3, guard_epsilon=math.inf)
    assert "nothing else is guaranteed" in bare.condition()


def test_false_edges_are_taken_off_in_expectation():
    graph = nx.gnm_random_graph(200, 900, seed=0)
    degrees = np.array([degree for _, degree in graph.degree])
    rate = 0.01
    noisy = np.rint(degrees * (1 - 2 * rate) + rate * 199).astype(int)
    noisy[0] += noisy.sum() % 2
    cleaned, total = fewer_degrees(noisy, int(noisy.sum()) // 2, rate)
    assert cleaned.sum() == 2 * total
    assert total == pytest.approx(900, rel=0.05)
    assert np.abs(cleaned - degrees).max() <= 2
    sizes = np.array([100, 100])
    linked = np.array([400, 100, 400]) * (1 - 2 * rate) + rate * np.array([4950, 10_000, 4950])
    links = true_links(np.rint(linked).astype(int), np.ones(3), sizes, rate, math.inf, 900)
    assert np.abs(links - [400, 100, 400]).max() <= 1


@pytest.mark.parametrize("guard", [None, math.inf])
def test_planted_groups_are_found(guard):
    graph = from_networkx(nx.planted_partition_graph(2, 60, 0.4, 0.02, seed=0))
    method = fitted(graph, 3.0, num_communities=2, sweeps=30, guard_epsilon=guard)
    halves = method.communities.view(2, 60).double().mean(dim=1)
    assert abs(float(halves[0] - halves[1])) > 0.95
    drawn = method.sample_edges(torch.Generator().manual_seed(0))
    within = (drawn[:, 0] < 60) == (drawn[:, 1] < 60)
    assert float(within.double().mean()) > 0.85
    scores = method.score(torch.tensor([[0, 1], [0, 100]]))
    assert scores[0] > scores[1]


def test_drawn_links_between_groups_are_the_released_ones():
    graph = from_networkx(nx.planted_partition_graph(3, 80, 0.3, 0.03, seed=0))
    method = fitted(graph, 4.0, num_communities=3, sweeps=20)
    drawn = method.sample(torch.Generator().manual_seed(0))
    assert torch.equal(torch.bincount(drawn.edge_index[0], minlength=240), method.degrees)
    released = method.links.numpy()
    found = count_links(method.communities.numpy(), undirected_edges(drawn).numpy())
    change = np.abs(np.tril(found - released, -1))
    assert released[1, 0] > 50 and change.max() <= 1  # where the rest of a group is odd


def test_groups_order_pairs_of_released_degree_zero():
    method = BlockSampler(num_nodes=6)
    method.degrees = torch.tensor([2, 3, 3, 0, 0, 0])
    method.communities = torch.tensor([0, 0, 1, 0, 0, 1])
    method.links = torch.tensor([[2, 0], [1, 1]])
    for node in (0, 3):
        same, other = method.score(torch.tensor([[node, 4], [node, 5]]))
        assert same > other > 0


@pytest.mark.parametrize("epsilon", [40.0, 800.0, 0.0, math.nan])
def test_a_guard_whose_flips_cannot_be_drawn_is_refused(epsilon: float) -> None:
    # The flip rate at 800 is 0 in the program, and at 40 the chance that none of 10 bits flips is 1 in
    # double precision: that the guard holds in any case would be false.
    with pytest.raises(ValueError, match="guard"):
        BlockSampler(30, guard_epsilon=epsilon)
    with pytest.raises(ValueError, match="guard"):
        guarded(torch.arange(3), 10, NoiseSource(), epsilon)
