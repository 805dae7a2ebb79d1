"""Nothing but the booked reads touches an edge: without them, runs on any two graphs are equal."""

import pytest
import torch

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.graph.edge_statistics import EdgeStatistics
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import AttributeEncoder, AttributeMoments
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.methods.single_graph import attribute_encoder, attribute_moments
from lightning_dpg.methods.single_graph.degree_release import release_degrees
from lightning_dpg.privacy.noise import NoiseSource
from tests.attributed import AttributedDataModule, attributed_graph
from tests.training import quiet_trainer

EMPTY = torch.empty(0, 2, dtype=torch.long)


def differences(one, other, place=""):
    """Places at which two checkpoints differ."""
    if type(one) is not type(other):
        return [place]
    if isinstance(one, torch.Tensor):
        return [] if torch.equal(one, other) else [place]
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return [place]
        return [
            found for key in one for found in differences(one[key], other[key], f"{place}/{key}")
        ]
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return [place]
        pairs = enumerate(zip(one, other, strict=True))
        return [found for key, two in pairs for found in differences(*two, f"{place}/{key}")]
    return [] if one == other else [place]


@pytest.fixture
def reads_are_constant(monkeypatch):
    """The booked reads read no edge, and the noise, which is secret, is zero."""

    def degrees(owner, source, reads):
        release_degrees(owner, EdgeStatistics(EMPTY, owner.space), reads)
        return torch.tensor(240), torch.full((120,), 4)

    def gradient(model, rows, levels, norm):
        named = model.named_parameters()
        return {name: torch.ones_like(one, dtype=torch.double) for name, one in named}

    def no_noise(self, size, std, *, dtype=torch.float32, device=None):
        return torch.zeros(size, dtype=dtype, device=device)

    monkeypatch.setattr(NoiseSource, "normal", no_noise)
    for module in (attribute_encoder, attribute_moments):
        monkeypatch.setattr(module, "release_degrees", degrees)
    monkeypatch.setattr(attribute_encoder, "clipped_edge_sum", gradient)
    # A constant is no sum of examples, as a trial would find.
    monkeypatch.setattr(PrivateTraining, "dry_run", lambda *_: None)
    monkeypatch.setattr(attribute_moments, "edge_moment", lambda *_, **__: torch.eye(8).double())


def run(make, graph, folder):
    """Checkpoint, logged values, scores of all pairs and a drawn graph of a run."""
    torch.manual_seed(0)
    made, trainer = make(), quiet_trainer(PrivacyAccountant(1.0, 1e-5))
    trainer.fit(made, AttributedDataModule(graph, attributed_graph()[1]))
    trainer.save_checkpoint(folder / "run.ckpt")
    made.eval()
    return {
        "checkpoint": torch.load(folder / "run.ckpt", weights_only=False),
        "logged": dict(trainer.logged_metrics),
        "assumed": made.assumptions,
        "scores": made.score(torch.combinations(torch.arange(120))),
        "drawn": made.sample_edges(torch.Generator().manual_seed(0)),
    }


@pytest.mark.parametrize(
    "make",
    [
        lambda: AttributeEncoder(rank=8, iterations=4, sample_rate=0.5),
        lambda: AttributeMoments(rank=8),
    ],
    ids=["encoder", "moments"],
)
def test_runs_on_two_graphs_are_equal_without_the_booked_reads(make, reads_are_constant, tmp_path):
    full = attributed_graph(inside=0.9)[0]
    runs = [run(make, graph, tmp_path) for graph in (full, make_graph(EMPTY, 120))]
    assert differences(*runs) == []
