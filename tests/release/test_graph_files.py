"""Formats of graphs follow their size; large ones are written while they are drawn."""

import errno
import importlib.util
from pathlib import Path

import pytest
import torch
from pytorch_lightning.loggers import CSVLogger

from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.evaluation.evaluate import evaluate
from lightning_dpg.formats import io
from lightning_dpg.formats.io import read_graph
from lightning_dpg.graph import expected_degrees
from lightning_dpg.methods import BTER, ChungLu
from lightning_dpg.release import graph_files
from lightning_dpg.release.graph_files import FORMATS, formats_of_size
from lightning_dpg.release.reader import open_release
from tests.training import quiet_trainer

HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None


@pytest.fixture
def many(monkeypatch):
    """Graphs of 50 edges are large."""
    for module in (expected_degrees, graph_files):
        monkeypatch.setattr(module, "MANY_EDGES", 50)


def fit(folder, method=ChungLu, **options):
    writer = ReleaseWriter(**options)
    trainer = quiet_trainer(PrivacyAccountant(50.0, 0.0), writer, logger=CSVLogger(folder))
    trainer.fit(method(), EdgeListDataModule("les_miserables"))
    return Path(trainer.log_dir) / "release"


def test_text_formats_are_for_graphs_below_a_million_edges(many, tmp_path, capsys):
    assert formats_of_size(49) == FORMATS == ("edges", "graphml", "npz")
    assert formats_of_size(50) == ("parquet",)
    release = fit(tmp_path)
    assert [path.name for path in release.glob("synthetic-*")] == ["synthetic-0.parquet"]
    assert "graphs of 50 edges or more: synthetic-*.parquet" in capsys.readouterr().err
    release = fit(tmp_path, formats=["edges"])
    assert [path.name for path in release.glob("synthetic-*")] == ["synthetic-0.edges"]
    assert "graphs of 50 edges" not in capsys.readouterr().out


@pytest.mark.skipif(not HAS_PYARROW, reason="pyarrow is optional")
@pytest.mark.parametrize("method", [ChungLu, BTER])
def test_a_large_release_is_the_graph_of_its_seed(method, many, tmp_path, capsys):
    release = fit(tmp_path, method, num_graphs=2)
    assert sorted(path.name for path in release.glob("synthetic-*")) == [
        "synthetic-0.parquet",
        "synthetic-1.parquet",
    ]
    assert "synthetic-1.parquet" in (release / "SHA256SUMS").read_text()
    assert capsys.readouterr().err.count("graphs of 50 edges or more: synthetic-*.parquet") == 1
    drawn = open_release(release)
    for seed in range(2):
        names = drawn.method.node_names
        read = read_graph(release / f"synthetic-{seed}.parquet", nodes=names)
        assert torch.equal(read.edge_index, drawn.sample(seed).edge_index)
    # Nodes without edges are in the release, and so the same nodes are compared.
    answers = evaluate("les_miserables", str(release)).measured[0].comparison.answers
    assert answers["num_nodes"].synthetic == 77


def test_a_full_disk_leaves_no_release_and_a_resumed_run_spends_nothing(tmp_path, monkeypatch):
    def fail(graph, file):
        file.write(b"12")
        raise OSError(errno.ENOSPC, "No space left on device")

    def start(folder, **options):
        method = ChungLu()
        trainer = quiet_trainer(
            PrivacyAccountant(1.0, 0.0),
            ReleaseWriter(formats=["npz"]),
            logger=CSVLogger(tmp_path, version=folder),
            enable_checkpointing=True,
        )
        return (
            method,
            trainer,
            lambda: trainer.fit(method, EdgeListDataModule("les_miserables"), **options),
        )

    with monkeypatch.context() as patched:
        patched.setattr(io, "_write_npz", fail)
        method, _, run = start("full")
        with pytest.raises(OSError, match=r"synthetic-0\.npz: the disk is full: .* are free"):
            run()
    assert len(method.ledger.entries) == 3
    assert not list(tmp_path.rglob("*release*")) and not list(tmp_path.rglob("*.part"))
    (checkpoint,) = tmp_path.rglob("*.ckpt")
    again, _, run = start("again", ckpt_path=checkpoint)
    run()
    assert again.ledger.entries == method.ledger.entries
    assert torch.equal(again.degrees, method.degrees)
    assert list(tmp_path.rglob("synthetic-0.npz"))
