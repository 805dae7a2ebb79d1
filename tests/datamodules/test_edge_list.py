"""Edge batches are Poisson draws of canonical records, and held-out links stay apart."""

import hashlib
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import pytorch_lightning as pl
import torch
import yaml
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy.sparse import csr_array

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.held_out import public_coin
from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.datamodules.records import EdgeRecords
from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.pair_space import BipartitePairs, DirectedPairs
from lightning_dpg.methods import ChungLu
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sampling import PoissonBatch, PoissonSampler
from lightning_dpg.run.configurations import find_config
from tests.training import asked, quiet_trainer


def set_up(*args, **kwargs):
    datamodule = EdgeListDataModule(*args, **kwargs)
    datamodule.setup("fit")
    return datamodule


def pairs(edges):
    return set(map(tuple, edges.tolist()))


def test_batches_are_poisson_draws_of_canonical_records():
    datamodule = asked(set_up("les_miserables"), 0.3)
    loader = datamodule.train_dataloader()
    batches = list(loader)
    assert len(loader) == len(batches) == 4  # 1 / 0.3 rounded up
    for batch in batches:
        assert isinstance(batch, PoissonBatch) and batch.sample_rate == 0.3
        assert batch.data.dtype == torch.long and batch.data.shape[1:] == (2,)
        assert bool((batch.data[:, 0] < batch.data[:, 1]).all())
        assert pairs(batch.data) <= pairs(datamodule.edges)
        assert len(pairs(batch.data)) == len(batch.data)
    assert datamodule.edges.shape == (254, 2)
    assert torch.equal(undirected_edges(datamodule.train_graph), datamodule.edges)


def test_batch_size_varies_as_a_binomial_and_may_be_zero():
    loader = asked(set_up("karate", steps_per_epoch=600), 0.02).train_dataloader()
    sizes = np.array([len(batch.data) for batch in loader])
    assert sizes.min() == 0
    assert sizes.mean() == pytest.approx(78 * 0.02, abs=4 * np.sqrt(78 * 0.02 * 0.98 / 600))


@pytest.mark.parametrize(("rate", "steps"), [(0.1, 10), (1 / 49, 49), (0.07, 15), (1.0, 1)])
def test_default_steps(rate, steps):
    assert len(asked(set_up("karate"), rate).train_dataloader()) == steps


@pytest.mark.parametrize("rows", [[[1, 0]], [[0, 1], [1, 0]], [[2, 2]], [[0, 1], [0, 1]]])
def test_refuses_records_that_count_an_edge_twice(rows):
    with pytest.raises(ValueError, match="once"):
        EdgeRecords(torch.tensor(rows), 0.5)
    datamodule = set_up("karate")
    datamodule.edges = torch.tensor(rows)
    with pytest.raises(ValueError, match="once"):
        datamodule.train_dataloader()


@pytest.mark.parametrize(
    ("space", "good", "bad"),
    [
        (DirectedPairs(3), [[2, 0], [0, 2]], [[[1, 1]], [[0, 3]], [[-1, 0]], [[2, 0], [2, 0]]]),
        (BipartitePairs(5, 2), [[0, 2], [1, 4]], [[[2, 0]], [[0, 1]], [[0, 5]], [[1, 4], [1, 4]]]),
    ],
)
def test_records_of_other_kinds_are_pairs_of_the_kind_that_occur_once(space, good, bad):
    batch = EdgeRecords(torch.tensor(good), 0.5, space)[torch.tensor([1])]
    assert batch.data.tolist() == good[1:]
    for rows in bad:
        with pytest.raises(ValueError, match=f"each {space.record} once"):
            EdgeRecords(torch.tensor(rows), 0.5, space)


def test_ranks_share_one_batch():
    datamodule = set_up("les_miserables")
    records = EdgeRecords(datamodule.edges, 0.4)
    whole, *parts = (
        [records[index].data for index in PoissonSampler(254, 0.4, 5, noise, rank, world_size)]
        for rank, world_size in [(0, 1), (0, 2), (1, 2)]
        for noise in [NoiseSource(unsafe_seed=3)]
    )
    for batch, first, second in zip(whole, *parts, strict=True):
        assert pairs(batch) == pairs(first) | pairs(second)
        assert len(batch) == len(first) + len(second)


def test_loader_takes_rank_and_world_size_of_the_trainer():
    datamodule = set_up("karate")
    datamodule.trainer = SimpleNamespace(global_rank=1, world_size=2, lightning_module=None)
    sampler = datamodule.train_dataloader().sampler
    assert (sampler.rank, sampler.world_size) == (1, 2)


def test_coin_flips_only_the_edge_that_changes():
    whole = nx.les_miserables_graph()
    edge = list(whole.edges)[40]
    without = whole.copy()
    without.remove_edge(*edge)
    options = {"val_fraction": 0.2, "test_fraction": 0.1, "seed": 5}
    parts = [
        [pairs(part) for part in (m.edges, m.val_links.edges, m.test_links.edges)]
        for m in (set_up(whole, **options), set_up(without, **options))
    ]
    changed = [one ^ other for one, other in zip(*parts, strict=True)]
    assert sorted(map(len, changed)) == [0, 0, 1]
    assert sum(map(len, parts[0])) == 254


def test_coin_is_uniform_and_depends_on_names_and_seed_only():
    names = [f"node {i}" for i in range(400)]
    i, j = np.triu_indices(400, 1)
    edges = torch.from_numpy(np.stack([i, j], axis=1))
    coin = public_coin(names, edges, 0)
    counts = np.histogram(coin, bins=50, range=(0, 1))[0]
    expected = len(edges) / 50
    assert counts.sum() == len(edges)
    # Chi-squared with 49 degrees of freedom: 99.9 % quantile.
    assert ((counts - expected) ** 2 / expected).sum() < 85.4
    assert torch.equal(coin, public_coin(names, edges.flip(1), 0))
    assert torch.equal(coin, public_coin(names[::-1], 399 - edges, 0))
    assert abs(np.corrcoef(coin, public_coin(names, edges, 1))[0, 1]) < 0.015


def test_coin_step_by_step():
    def mix(word):
        word = (word + 0x9E3779B97F4A7C15) % 2**64
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        return word ^ word >> 31

    low, high = sorted(
        int.from_bytes(hashlib.blake2b(name, digest_size=8, key=b"7").digest(), "little")
        for name in (b"a", b"b")
    )
    expected = (mix(mix(low) ^ high) >> 11) / 2**53
    assert public_coin(["b", "a"], torch.tensor([[0, 1]]), 7).item() == expected


def test_held_out_links():
    datamodule = set_up("planted_partition", val_fraction=0.2)
    (links,) = datamodule.val_dataloader()
    graph_edges = pairs(undirected_edges(datamodule.graph))
    assert datamodule.test_dataloader() == []
    assert len(links.edges) == len(links.non_edges) == len(links.matched_non_edges)
    assert pairs(links.edges) == graph_edges - pairs(datamodule.edges)
    for non_edges in (links.non_edges, links.matched_non_edges):
        assert not pairs(non_edges) & graph_edges
        assert bool((non_edges[:, 0] < non_edges[:, 1]).all())
    again = set_up("planted_partition", val_fraction=0.2)
    assert torch.equal(links.non_edges, again.val_links.non_edges)
    assert "public coin" in " ".join(datamodule.assumptions)


def test_published_split(data_root):
    datamodule = set_up("CORA-ML", split="CORA-ML_netgan_split")
    validation, test = datamodule.val_links, datamodule.test_links
    sizes = [len(part) for part in (datamodule.edges, validation.edges, test.edges)]
    assert sizes == [6783, 798, 400]
    assert [len(validation.non_edges), len(test.non_edges)] == [798, 400]
    with np.load(data_root / "npz" / "CORA-ML_netgan_split.npz") as archive:
        published = {tuple(sorted(pair)) for pair in archive["test_zeros"].tolist()}
    assert pairs(test.non_edges) == published
    train = load_graph("CORA-ML-TRAIN85")
    assert torch.equal(datamodule.train_graph.edge_index, train.edge_index)
    assert len(test.matched_non_edges) == 400
    with pytest.raises(ValueError, match="other edges than"):
        set_up("CA-GrQc", split="CORA-ML_netgan_split")


def test_published_split_of_a_file_with_attributes(data_root):
    """The split numbers the nodes as they come in the file, and words follow their names."""
    of_graph = set_up("CORA-ML", split="CORA-ML_netgan_split")
    settings = yaml.safe_load(find_config("data/cora_ml_attributes").read_text())
    datamodule = set_up(**settings["data"]["init_args"])
    with np.load(data_root / "npz" / "cora_ml.npz") as archive:
        in_file = [str(name).strip() for name in archive["node_names"]]
        parts = [archive[f"attr_{part}"] for part in ("data", "indices", "indptr")]
        rows = csr_array(tuple(parts), shape=archive["attr_shape"]).toarray()
    names = datamodule.graph.node_names
    assert np.array_equal(datamodule.records.attributes, rows[[in_file.index(n) for n in names]])
    kept = [name for name in in_file if name in set(names)]
    for ours, theirs in (
        (datamodule.edges, of_graph.edges),
        (datamodule.test_links.edges, of_graph.test_links.edges),
        (datamodule.test_links.non_edges, of_graph.test_links.non_edges),
    ):
        by_name = {frozenset((names[i], names[j])) for i, j in ours.tolist()}
        assert by_name == {frozenset((kept[i], kept[j])) for i, j in theirs.tolist()}


def test_split_that_is_not_there(tmp_path):
    with pytest.raises(Refusal, match="'nowhere' is neither a file"):
        set_up("karate", split="nowhere")
    (tmp_path / "text.npz").write_text("1 2\n")
    pair = np.array([[0, 99]])  # of a graph of 34 nodes
    keys = ("train_ones", "val_ones", "val_zeros", "test_ones", "test_zeros")
    np.savez(tmp_path / "other.npz", **dict.fromkeys(keys, pair))
    for name in ("text.npz", "other.npz"):
        with pytest.raises(Refusal, match=f"{name}: no split of this graph"):
            set_up("karate", split=str(tmp_path / name))


def test_largest_component_is_an_assumption():
    graph = nx.disjoint_union(nx.path_graph(3), nx.cycle_graph(5))
    datamodule = set_up(graph, largest_component=True)
    assert datamodule.num_nodes == 5
    assert datamodule.graph.node_names == list("34567")
    assert any("largest component, 5 of 8 nodes" in text for text in datamodule.assumptions)
    assert set_up(graph).num_nodes == 8


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"steps_per_epoch": 0}, ValueError, "steps_per_epoch"),
        ({"val_fraction": -0.1}, ValueError, "val_fraction"),
        ({"val_fraction": 0.6, "test_fraction": 0.4}, ValueError, "below 1"),
        ({"split": "x", "val_fraction": 0.1}, MisconfigurationException, "split"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        set_up("karate", **options)


def test_prediction_reads_no_data():
    datamodule = EdgeListDataModule("no/such/file.edges", num_graphs=3)
    datamodule.prepare_data()
    datamodule.setup("predict")
    seeds = list(datamodule.predict_dataloader())
    assert [int(seed) for seed in seeds] == [0, 1, 2] and seeds[0].shape == ()


def test_nothing_is_read_before_it_is_needed(tmp_path):
    path = tmp_path / "g.edges"
    datamodule = EdgeListDataModule(str(path))
    path.write_text("1 2\n2 3\n")
    assert datamodule.num_nodes == 3
    path.unlink()
    datamodule.setup("fit")
    datamodule.setup("test")
    assert len(datamodule.edges) == 2 and len(datamodule.assumptions) == 2


class Recorder(pl.LightningModule):
    """Notes what arrives in each stage."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.layer = torch.nn.Linear(1, 1)
        self.batches = {"train": [], "validate": [], "predict": []}

    def training_step(self, batch, batch_idx):
        self.batches["train"].append(batch)

    def validation_step(self, batch, batch_idx):
        self.batches["validate"].append(batch)

    def predict_step(self, batch, batch_idx):
        self.batches["predict"].append(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


@pytest.mark.parametrize("val_fraction", [0.0, 0.2])
def test_with_a_trainer(tmp_path, val_fraction):
    trainer = quiet_trainer(use_distributed_sampler=False)
    model = Recorder()
    datamodule = EdgeListDataModule("karate", val_fraction=val_fraction, num_graphs=2)
    trainer.fit(model, datamodule)
    trainer.predict(model, datamodule)
    assert [len(batches) for batches in model.batches.values()] == [10, int(val_fraction > 0), 2]


SPLIT = {"val_fraction": 0.2, "test_fraction": 0.2, "seed": 3}


@pytest.fixture
def checkpoint(tmp_path):
    """Path of a checkpoint of a method that was trained without the held-out edges of SPLIT."""
    return fitted(tmp_path, **SPLIT)


def accounted(**options):
    return quiet_trainer(PrivacyAccountant(1.0, 0.0), **options)


def fitted(folder, **split):
    trainer = accounted(num_sanity_val_steps=2)
    trainer.fit(ChungLu(34), EdgeListDataModule("karate", **split))
    trainer.save_checkpoint(folder / "run.ckpt")
    return folder / "run.ckpt"


@pytest.mark.parametrize("changed", [{"test_fraction": 0.3}, {"val_fraction": 0.0}, {"seed": 4}])
def test_held_out_edges_of_another_split_are_refused(checkpoint, changed):
    """They are among those that the method was trained on."""
    (name,) = changed
    other = EdgeListDataModule("karate", **SPLIT | changed)
    for run in (accounted().test, accounted().validate):
        with pytest.raises(MisconfigurationException, match=f"trained with {name} {SPLIT[name]}"):
            run(ChungLu(34), other, ckpt_path=checkpoint)
    quiet_trainer().predict(ChungLu(34), other, ckpt_path=checkpoint)  # reads no edge
    same = EdgeListDataModule("karate", **SPLIT)
    assert accounted().test(ChungLu(34), same, ckpt_path=checkpoint)
