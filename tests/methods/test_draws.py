"""A private step reads what the sampler drew, once, at the price that was planned."""

from functools import partial

import pytest
import torch
from pytorch_lightning import Callback
from torch.nn.functional import logsigmoid
from torch.utils.data import DataLoader

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.dpsgd import clipped_gradient_sum
from lightning_dpg.privacy.sampling import PoissonBatch
from tests.methods.test_private_training import EdgeScorer, edge_loss, two_blocks
from tests.training import quiet_trainer

GRAPH, _, _ = two_blocks()


class Scorer(EdgeScorer):
    """A method whose private step can be called in other ways than once on its draw."""

    def __init__(self, habit=None):
        super().__init__(24, 132)
        self.habit = habit
        self.embedding = torch.nn.Embedding(24, 8)

    def private_step(self, edges, size=13.2):
        parameters = {"table": self.table}
        self.dpsgd.backward(
            partial(clipped_gradient_sum, edge_loss, parameters),
            parameters,
            (edges,),
            ledger=self.ledger,
            noise=self.noise,
            expected_size=size,
        )

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        if self.habit is None:
            self.private_step(self.dpsgd.drawn(batch))
        else:
            self.habit(self, batch)
        optimizer.step()


def fit(method, data=None, *callbacks):
    trainer = quiet_trainer(PrivacyAccountant(4.0, 1e-4), *callbacks, max_epochs=1)
    trainer.fit(method, data or EdgeListDataModule(GRAPH))
    return method


class OtherLoader(EdgeListDataModule):
    """Data whose loader is made anew from the data set and the sampler of ours."""

    def __init__(self, wrap=lambda records: records, **options):
        super().__init__(GRAPH)
        self.wrap, self.options = wrap, options

    def train_dataloader(self):
        ours = super().train_dataloader()
        records = self.wrap(ours.dataset)
        return DataLoader(records, sampler=ours.sampler, batch_size=None, **self.options)


def repeated(batch):
    return batch._replace(data=batch.data.repeat(5, 1))


def made_anew(batch):
    return PoissonBatch(torch.cat([batch.data, batch.data.flip(1)]), batch.sample_rate)


def permuted(batch):
    return batch._replace(data=batch.data.flip(0))


def substituted(batch):
    """As many records, none of which was drawn."""
    return batch._replace(data=torch.tensor([[0, 1]]).expand(len(batch.data), 2))


KEPT = []


def of_an_earlier_step(batch):
    KEPT.append(batch)
    return KEPT[0]


CHANGES = (repeated, made_anew, permuted, substituted, of_an_earlier_step)
HOOKS = ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer")


def with_hook(kind, hook, change):
    """A class whose hook changes each batch of the training."""

    def changed(self, batch, *_):
        return change(batch)

    return type("Changes", (kind,), {hook: changed})


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("of_data", [True, False], ids=["data", "method"])
def test_a_batch_that_a_hook_changes_is_refused(of_data, hook, change):
    KEPT.clear()
    kind = with_hook(EdgeListDataModule if of_data else Scorer, hook, change)
    method = Scorer() if of_data else kind()
    with pytest.raises(Refusal, match="not what its sampler drew"):
        fit(method, kind(GRAPH) if of_data else None)
    assert method.ledger.steps == (change is of_an_earlier_step)


class InPlace(Callback):
    """Repeats the first record of a batch in its own tensor."""

    def on_train_batch_start(self, trainer, method, batch, batch_idx):
        batch.data.copy_(batch.data[:1].expand_as(batch.data))


def test_a_batch_that_a_callback_changes_in_place_is_refused():
    method = Scorer()
    with pytest.raises(Refusal, match="not what its sampler drew"):
        fit(method, None, InPlace())
    assert not method.ledger.entries


class BothWays(torch.utils.data.Dataset):
    """A data set that returns each edge in both directions."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, indices):
        return made_anew(self.records[indices])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (OtherLoader(collate_fn=repeated), "not what its sampler drew"),
        (OtherLoader(BothWays), "more examples than records"),
    ],
)
def test_a_loader_that_returns_more_than_was_drawn_is_refused(data, message):
    method = Scorer()
    with pytest.raises(Refusal, match=message):
        fit(method, data)
    assert not method.ledger.entries


def critic_steps(method, batch):
    edges = method.dpsgd.drawn(batch)
    for _ in range(5):
        method.private_step(edges)


def closure(method, batch):
    edges = method.dpsgd.drawn(batch)
    optimizer = torch.optim.LBFGS([method.table], max_iter=4)
    optimizer.step(lambda: method.private_step(edges) or torch.zeros(()))


def micro_batches(method, batch):
    for part in method.dpsgd.drawn(batch).split(4):
        method.private_step(part)


def drawn_twice(method, batch):
    for _ in range(2):
        method.private_step(method.dpsgd.drawn(batch))


def both_directions(method, batch):
    edges = method.dpsgd.drawn(batch)
    method.private_step(torch.cat([edges, edges.flip(1)]))


def whole_graph(method, batch):
    method.dpsgd.drawn(batch)
    method.private_step(method.records.edges)


def unpacked(method, batch):
    edges, _ = batch
    method.private_step(edges)


def network_step(method, edges, loss):
    method.dpsgd.backward_network(
        method.embedding,
        loss,
        (edges,),
        ledger=method.ledger,
        noise=method.noise,
        expected_size=13.2,
    )


def over_all_edges(method, batch):
    """The loss of an edge reads all edges, as a graph network over the whole graph does."""
    all_edges = method.records.edges
    edges = method.dpsgd.drawn(batch)

    def loss(network, pairs):
        rows = network.weight.index_add(0, all_edges[:, 0], network.weight[all_edges[:, 1]])
        return -logsigmoid(rows[pairs].prod(1).sum(1))

    network_step(method, edges, loss)


def neighbors_of_the_draw(method, batch):
    """A table of all edges that is computed in the step: the loss itself reads no record."""
    edges = method.dpsgd.drawn(batch)
    adjacency = torch.zeros(24, 24).double()
    adjacency[tuple(method.trainer.datamodule.records.graph.edge_index)] = 1

    def loss(network, pairs):
        return -logsigmoid((adjacency @ network.weight)[pairs].prod(1).sum(1))

    network_step(method, edges, loss)


def beside_the_step(method, batch):
    edges = method.dpsgd.drawn(batch)
    method.manual_backward(-logsigmoid(method.score(edges)).sum())


def another_size(method, batch):
    edges = method.dpsgd.drawn(batch)
    method.private_step(edges, 13.2 + method.global_step)


@pytest.mark.parametrize(
    ("habit", "message", "booked"),
    [
        (critic_steps, "without a draw", 1),
        (closure, "without a draw", 1),
        (micro_batches, "without a draw", 1),
        (drawn_twice, "not what its sampler drew", 1),
        (both_directions, "more examples than records", 0),
        (whole_graph, "reads the records of the data module beside its draw", 0),
        (unpacked, "without a draw", 0),
        (over_all_edges, "reads the records of the data beside", 0),
        (neighbors_of_the_draw, "reads the records of the data module beside its draw", 0),
        (beside_the_step, "a gradient that nobody pays for", 0),
        (another_size, "expected_size has changed", 1),
    ],
)
def test_a_draw_is_read_once_with_an_example_for_each_record(habit, message, booked):
    method = Scorer(habit)
    with pytest.raises(Refusal, match=message):
        fit(method)
    assert method.ledger.steps == booked


def test_a_gradient_that_is_used_again_costs_one_step():
    def used_again(method, batch):
        method.private_step(method.dpsgd.drawn(batch))
        for _ in range(5):
            method.optimizers().step()

    assert fit(Scorer(used_again)).ledger.steps == 10


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_a_method_leaves_out_are_no_fault(workers):
    def every_second(method, batch):
        if method.trainer.fit_loop.epoch_loop.batch_idx % 2:
            method.private_step(method.dpsgd.drawn(batch))

    assert fit(Scorer(every_second), OtherLoader(num_workers=workers)).ledger.steps == 5


class Sets(Callback):
    """Changes a value between two steps."""

    def __init__(self, change):
        self.change = change

    def on_train_batch_start(self, trainer, method, batch, batch_idx):
        if batch_idx == 1:
            self.change(method)


def larger_norm(method):
    method.dpsgd.max_grad_norm *= 10


def larger_rate(method):
    method.dpsgd.sample_rate = 0.5


def larger_rate_of_the_sampler(method):
    method.trainer.train_dataloader.sampler.sample_rate = 0.5


def more_noise(method):
    method.dpsgd.noise_multiplier.mul_(1.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (larger_norm, "max_grad_norm cannot be set anew"),
        (larger_rate, "sample_rate cannot be set anew"),
        (larger_rate_of_the_sampler, r"drawn at 0\.5, booked at 0\.1"),
        (more_noise, "noise_multiplier has changed"),
    ],
)
def test_what_is_booked_cannot_change_in_a_run(change, message):
    method = Scorer()
    with pytest.raises(Refusal, match=message):
        fit(method, None, Sets(change))
    assert method.ledger.steps == 1
