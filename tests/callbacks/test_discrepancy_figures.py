"""Discrepancy figures go to the run folder and to W&B, grouped by label."""

import math

import numpy as np
import pytest
import torch
from pytorch_lightning.demos.boring_classes import BoringDataModule, BoringModel
from pytorch_lightning.loggers import CSVLogger, WandbLogger
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import DiscrepancyFigures
from lightning_dpg.callbacks.discrepancy_figures import heat_map, layout_figure
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation
from tests.entries import entry
from tests.training import quiet_trainer

LABELS = np.array([1, 0, 2, 1, 0, 2, 2, 1])
APART = np.where(LABELS[:, None] == LABELS, 0.1, 5.0) * (1 - np.eye(8))


class Compared(BoringModel):
    """A learner that has released the discrepancies of eight graphs."""

    def __init__(self):
        super().__init__()
        self.register_buffer("discrepancies", torch.from_numpy(APART))
        self.register_buffer("labels", torch.from_numpy(LABELS))
        self.ledger = PrivacyLedger(Relation.LOCAL_GRAPH)


def compare(folder, module, logger=None):
    quiet_trainer(
        DiscrepancyFigures(),
        logger=logger or CSVLogger(folder, name="", version=""),
        limit_test_batches=1,
    ).test(module, BoringDataModule(), verbose=False)


pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.usefixtures("figures_drawn"),
]


@pytest.mark.parametrize("is_exact", [False, True])
def test_figures_go_to_the_run_folder_and_to_wandb(tmp_path, monkeypatch, is_exact):
    images = {}
    module = Compared()
    if is_exact:
        read = entry(
            "non_private", name="embeddings", relation=Relation.LOCAL_GRAPH, sensitivity=math.inf
        )
        module.ledger.spend(read)
    monkeypatch.setattr(
        WandbLogger, "log_image", lambda self, key, paths, step: images.update({key: paths})
    )
    monkeypatch.setattr(WandbLogger, "log_metrics", lambda self, metrics, step=None: None)
    monkeypatch.setattr(WandbLogger, "experiment", None)
    compare(tmp_path, module, WandbLogger(save_dir=tmp_path, offline=True))
    paths = sorted((tmp_path / "figures").iterdir())
    names = ["discrepancies-heat_map.png", "discrepancies-tsne.png"]
    assert [path.name for path in paths] == [f"nonprivate-{n}" if is_exact else n for n in names]
    place = "nonprivate/discrepancies" if is_exact else "discrepancies"
    assert images == {f"{place}/heat_map": [str(paths[0])], f"{place}/tsne": [str(paths[1])]}


def test_heat_map_has_equal_labels_side_by_side():
    axes = heat_map(APART, LABELS).axes[0]
    shown = axes.images[0].get_array()
    blocks = [range(2), range(2, 5), range(5, 8)]
    near = np.zeros((8, 8), dtype=bool)
    for block in blocks:
        near[np.ix_(block, block)] = True
    assert np.array_equal(shown < 1, near)
    assert sorted(
        line.get_xdata()[0] for line in axes.lines if len(set(line.get_xdata())) == 1
    ) == [
        1.5,
        4.5,
    ]


def test_layout_shows_graphs_of_one_label_in_its_color():
    shown = layout_figure(APART, LABELS).axes[0].collections
    assert [len(points.get_offsets()) for points in shown] == [2, 3, 3]
    assert len({tuple(points.get_facecolor()[0]) for points in shown}) == 3
    assert all(math.isfinite(x) for points in shown for x in points.get_offsets().flatten())


def test_refuses_a_method_that_compares_no_graphs(tmp_path):
    with pytest.raises(MisconfigurationException, match="BoringModel releases none"):
        compare(tmp_path, BoringModel())
