"""Parquet files of a release: equal to its other files, and refused before anything is spent."""

import numpy as np
import pandas as pd
import torch
from pytorch_lightning.loggers import CSVLogger

from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.methods import ChungLu
from tests.training import quiet_trainer


def fit(folder):
    names = [f"p{i}" for i in range(20)]
    people = pd.DataFrame({"id": names, "age": np.arange(20) + 0.5, "y": np.arange(20) % 3})
    edges = [(names[i], names[(i + 1) % 20]) for i in range(20)]
    data = EdgeListDataModule(edges, nodes=Nodes(attributes=people))
    writer = ReleaseWriter(formats=["edges", "parquet"])
    method = ChungLu()
    logger = CSVLogger(folder, name="")
    # With a small epsilon the drawn graph may have no edge.
    trainer = quiet_trainer(PrivacyAccountant(10.0, 1e-6), writer, logger=logger)
    return method, trainer, data


def test_parquet_holds_the_edges_and_attributes_of_the_release(tmp_path):
    method, trainer, data = fit(tmp_path)
    trainer.fit(method, data)
    (folder,) = tmp_path.rglob("release")
    edges = pd.read_parquet(folder / "synthetic-0.parquet")
    listed = pd.read_csv(folder / "synthetic-0.edges", sep="\t", header=None)
    assert edges.values.tolist() == listed.values.tolist()
    again = EdgeListDataModule(
        str(folder / "synthetic-0.edges"),
        nodes=Nodes(method.node_names, attributes=str(folder / "node_attributes.parquet")),
    )
    again.setup("fit")
    assert torch.equal(again.graph.x, data.graph.x) and torch.equal(again.graph.y, data.graph.y)
    assert "node_attributes.parquet" in (folder / "SHA256SUMS").read_text()
