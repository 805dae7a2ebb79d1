"""Statistics of samples are logged every n batches, and a switch drops all private figures."""

import csv
from types import SimpleNamespace

import networkx as nx
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import CSVLogger, WandbLogger
from torch.utils.data import DataLoader

from lightning_dpg.callbacks.graph_statistics import GraphStatistics
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics import functional
from lightning_dpg.metrics.functional import Estimate, num_oriented_paths, oriented_adjacency
from lightning_dpg.metrics.pictures import OF_GRAPHS
from tests.training import quiet_trainer

ORIGINAL = from_networkx(nx.karate_club_graph())


class Sampler(pl.LightningModule):
    """Two optimizer steps per batch; samples stars that grow with the training."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.register_buffer("leaves", torch.tensor(0))
        self.seeds = []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch, batch_idx):
        self.leaves += 1
        for _ in range(2):
            self.optimizers().step()

    def sample(self, generator):
        assert not torch.is_grad_enabled()
        self.seeds.append(generator.initial_seed())
        leaves = torch.arange(1, int(self.leaves) + 1)
        return make_graph(torch.stack([torch.zeros_like(leaves), leaves], dim=1), 34)


class Batches(EdgeListDataModule):
    def __init__(self):
        super().__init__(ORIGINAL)

    def train_dataloader(self):
        return DataLoader(torch.arange(5.0))


class ClosedBatches(Batches):
    @property
    def records(self):
        raise AssertionError("the private graph was read")


def fit(folder, callback, data=None, logger=None, epochs=1, ckpt_path=None, module=None):
    module = module or Sampler()
    trainer = quiet_trainer(
        callback,
        max_epochs=epochs,
        logger=logger or CSVLogger(folder, name="", version=""),
        log_every_n_steps=1,
    )
    trainer.fit(module, data or Batches(), ckpt_path=ckpt_path)
    return module, trainer


def read_curves(folder):
    with (folder / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["stat/max_degree"]]
    return {int(row["step"]): row for row in rows}


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.usefixtures("figures_drawn")
def test_logs_sample_and_differences_every_n_batches_and_at_the_end(tmp_path):
    module, _ = fit(tmp_path, GraphStatistics(every_n_steps=2, seed=7))
    curves = read_curves(tmp_path)
    assert list(curves) == [1, 3, 4]  # the batches 2, 4 and 5
    assert module.seeds == [7, 7, 7]
    for step, row in curves.items():
        leaves = step + 1
        assert float(row["stat/max_degree"]) == leaves
        assert float(row["stat/num_components"]) == 34 - leaves
        assert float(row["nonprivate/max_degree_error"]) == leaves - 17
        assert float(row["nonprivate/triangles_error"]) == -45
    star = nx.star_graph(5)
    common = sum(nx.karate_club_graph().has_edge(*edge) for edge in star.edges())
    assert float(curves[4]["nonprivate/edge_overlap"]) == pytest.approx(common / 78)
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        f"nonprivate-{name}-{batches:06d}.png" for name in OF_GRAPHS for batches in (2, 4, 5)
    }


def test_switch_drops_all_that_reads_the_original(tmp_path):
    fit(tmp_path, GraphStatistics(every_n_steps=5, nonprivate=False), ClosedBatches())
    (row,) = read_curves(tmp_path).values()
    assert not any(name.startswith("nonprivate") for name in row)
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        f"stat-{name}-000005.png" for name in ("graph", *OF_GRAPHS)
    }


def test_sampled_statistics_have_their_standard_errors_beside_them(tmp_path, monkeypatch, caplog):
    paths = num_oriented_paths(oriented_adjacency(ORIGINAL))
    monkeypatch.setattr(functional, "EXACT_PATHS", paths - 1)  # the star of the samples has none
    fit(tmp_path / "original", GraphStatistics(every_n_steps=5))
    (row,) = read_curves(tmp_path / "original").values()
    named = {name for name in row if name.endswith("_standard_error")}
    closed = ("triangles", "cluster", "transitivity")
    assert named == {f"nonprivate/{name}_error_standard_error" for name in closed}
    spread = float(row["nonprivate/triangles_error_standard_error"])
    assert abs(float(row["nonprivate/triangles_error"]) + 45) < 4 * spread < 4

    monkeypatch.setattr(functional, "EXACT_PATHS", -1)
    monkeypatch.setattr(functional, "estimate_triangles", lambda *_: Estimate(2.0, 0.5))
    with caplog.at_level("INFO"):
        fit(tmp_path / "sample", GraphStatistics(every_n_steps=4, nonprivate=False))
    row = read_curves(tmp_path / "sample")[4]
    assert not any(name.startswith("nonprivate") for name in row)
    assert float(row["stat/triangles_standard_error"]) == 0.5
    said = [line for line in caplog.messages if "sampled" in line]
    assert said == [
        "GraphStatistics: sampled, standard errors are logged: triangles, cluster, transitivity"
    ]


def test_resumed_run_goes_on_counting(tmp_path):
    _, trainer = fit(tmp_path / "first", GraphStatistics(every_n_steps=4))
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    callback = GraphStatistics(every_n_steps=4)
    fit(tmp_path / "second", callback, epochs=2, ckpt_path=tmp_path / "last.ckpt")
    assert list(read_curves(tmp_path / "second")) == [7, 9]


def test_other_ranks_leave_the_sample_alone():
    trainer = SimpleNamespace(log_dir=None, is_global_zero=False)
    callback = GraphStatistics(every_n_steps=1)
    callback.on_train_batch_end(trainer, None, None, None, 0)
    assert callback.state_dict() == {"batches": 1}


def test_figures_go_to_wandb(tmp_path, monkeypatch):
    images = {}

    def remember(self, key, images_, step=None):
        images[key] = images_

    monkeypatch.setattr(WandbLogger, "log_image", remember)
    monkeypatch.setattr(WandbLogger, "log_metrics", lambda self, metrics, step=None: None)
    monkeypatch.setattr(WandbLogger, "experiment", None)
    logger = WandbLogger(save_dir=tmp_path, offline=True)
    fit(tmp_path, GraphStatistics(every_n_steps=5), logger=logger)
    folder = tmp_path / "figures"
    assert images == {
        f"nonprivate/{name}": [str(folder / f"nonprivate-{name}-000005.png")] for name in OF_GRAPHS
    }


def test_refuses_a_step_that_never_comes():
    with pytest.raises(ValueError, match="every_n_steps must be positive, got 0"):
        GraphStatistics(every_n_steps=0)


class KnownSampler(Sampler):
    """A sampler that has released its number of edges."""

    def __init__(self):
        super().__init__()
        self.register_buffer("num_edges", torch.tensor(5))


@pytest.mark.parametrize(("most_edges", "drawn"), [(5, []), (6, [0, 0])])
def test_large_graphs_are_neither_drawn_nor_read_and_a_line_says_so(
    most_edges, drawn, tmp_path, caplog
):
    caplog.set_level("INFO")
    callback = GraphStatistics(every_n_steps=3, nonprivate=False, most_edges=most_edges)
    module, _ = fit(tmp_path, callback, ClosedBatches(), module=KnownSampler())
    assert module.seeds == drawn
    line = "GraphStatistics: no figures of graphs of 5 edges or more"
    assert caplog.text.count(line) == (not drawn)
