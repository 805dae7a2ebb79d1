"""A release is complete, and a function of released tensors and the ledger only."""

import json

import networkx as nx
import pytest
import torch
from pytorch_lightning.loggers import CSVLogger
from safetensors import safe_open

from lightning_dpg import methods
from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.formats.io import read_graph
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.pair_space import apart
from lightning_dpg.interfaces import public_path
from lightning_dpg.methods import BTER, DPNetGAN, DPNetGANAsPublished
from lightning_dpg.privacy.ledger import LedgerEntry
from lightning_dpg.release.card.topics import TOPICS
from lightning_dpg.release.recipe import RECIPE, SCHEMA_VERSION
from lightning_dpg.release.writer import write_folder
from tests.training import quiet_trainer

KEYS = {
    "schema_version",
    "method",
    "mode",
    "relation",
    "epsilon",
    "delta",
    "conditional",
    "accountant",
    "steps",
    "guarantee",
    "assumptions",
    "entries",
    "noise_source",
}


def fit(folder, method=DPNetGAN, **options):
    torch.manual_seed(0)
    sizes = {"latent_dim": 4, "generator_dim": 8, "critic_dim": 8, "embedding_dim": 8}
    module = method(77, batch_size=8, num_samples=500, sample_rate=0.5, **sizes | options)
    trainer = quiet_trainer(
        PrivacyAccountant(4.0, 1e-4), ReleaseWriter(num_graphs=2), default_root_dir=folder
    )
    trainer.fit(module, EdgeListDataModule("les_miserables"))
    return trainer


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return fit(folder), folder / "release"


def test_release_is_complete(run):
    trainer, release = run
    graphs = {f"synthetic-{i}.{suffix}" for i in (0, 1) for suffix in ("edges", "graphml", "npz")}
    files = {
        "privacy.json",
        "MODEL_CARD.md",
        "MODEL_CARD.html",
        "generator.safetensors",
        "SHA256SUMS",
    }
    assert set(contents(release)) == graphs | files
    assert [path.name for path in release.parent.iterdir()] == ["release"]
    statement = json.loads((release / "privacy.json").read_text())
    assert set(statement) == KEYS | {*TOPICS}
    assert statement["epsilon"] <= 4.0
    assert statement["steps"] == 2
    entries = [LedgerEntry.from_dict(entry) for entry in statement["entries"]]
    assert entries == trainer.lightning_module.ledger.entries
    assert {e["mechanism"]: "noise_multiplier" in e for e in statement["entries"]} == {
        "pure": False,
        "gaussian": True,
    }
    assert statement["guarantee"] in (release / "MODEL_CARD.md").read_text()


def test_three_formats_hold_one_graph_with_the_names_of_the_input(run):
    _, release = run
    names = set(nx.les_miserables_graph())
    edges = {
        suffix: {
            frozenset((graph.node_names[i], graph.node_names[j]))
            for i, j in graph.edge_index.T.tolist()
        }
        for suffix in ("edges", "graphml", "npz")
        for graph in [read_graph(release / f"synthetic-0.{suffix}")]
    }
    assert edges["edges"] == edges["graphml"] == edges["npz"]
    assert set().union(*edges["edges"]) <= names


def test_only_released_tensors_are_in_the_generator(run):
    trainer, release = run
    with safe_open(release / "generator.safetensors", framework="pt") as file:
        assert set(file.keys()) == set(trainer.lightning_module.released_state())
        assert not [name for name in file.keys() if "critic" in name]  # noqa: SIM118


def test_recipe_names_the_public_path_and_its_schema(run):
    _, release = run
    with safe_open(release / "generator.safetensors", framework="pt") as file:
        recipe = json.loads(file.metadata()[RECIPE])
    assert recipe["method"] == "lightning_dpg.methods.DPNetGAN"
    assert recipe["schema_version"] == recipe["privacy"]["schema_version"] == SCHEMA_VERSION


def test_shipped_classes_have_public_paths_and_others_their_own():
    for name in methods.__all__:
        assert public_path(getattr(methods, name)) == f"lightning_dpg.methods.{name}"
    own = type("BTER", (methods.BTER,), {"__module__": "mine"})
    assert public_path(own) == "mine.BTER"


def test_release_does_not_depend_on_unreleased_state(run):
    trainer, release = run
    before = contents(release)
    module, data = trainer.lightning_module, trainer.datamodule
    released = module.released_state()
    for name, tensor in module.state_dict().items():
        if name not in released and tensor.is_floating_point() and tensor.dim():
            tensor.add_(torch.randn_like(tensor))
    for optimizer in trainer.optimizers:
        for state in optimizer.state.values():
            state["exp_avg"].add_(1.0)
    data.edges = data.edges[:1]
    data.train_graph.edge_index = data.train_graph.edge_index[:, :2]
    data._read, data.graph = apart(data.train_graph), data.train_graph
    torch.manual_seed(5)
    next(c for c in trainer.callbacks if isinstance(c, ReleaseWriter)).on_fit_end(trainer, module)
    assert contents(release) == before


def test_the_printed_sentence_names_reads_and_assumptions(tmp_path, capsys):
    trainer = quiet_trainer(
        PrivacyAccountant(1.0, 1e-5), ReleaseWriter(), default_root_dir=tmp_path
    )
    trainer.fit(BTER(77), EdgeListDataModule("les_miserables"))
    lines = capsys.readouterr().out.splitlines()
    (said,) = [line for line in lines if line.startswith("guarantee: ")]
    assert said == (
        "guarantee: edge-level (1, 0)-DP (add/remove one undirected edge), sum of pure epsilons "
        "accountant, 5 reads. Assumed public: the 77 nodes and their names (built-in graph); that "
        "there are fewer than 100000 edges (one over delta: a run on as many is refused)."
    )


def test_paper_mode_reports_both_epsilons(tmp_path):
    fit(tmp_path, method=DPNetGANAsPublished)
    statement = json.loads((tmp_path / "release" / "privacy.json").read_text())
    assert set(statement) == KEYS | {*TOPICS, "claimed_epsilon"}
    assert statement["claimed_epsilon"] < statement["epsilon"]


def test_folder_appears_complete_or_not_at_all(tmp_path):
    def fill(folder):
        (folder / "part").write_text("new")

    def fail(folder):
        fill(folder)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_folder(tmp_path / "release", fail)
    assert not list(tmp_path.iterdir())
    write_folder(tmp_path / "release", fill)
    with pytest.raises(RuntimeError):
        write_folder(tmp_path / "release", fail)
    assert [path.read_text() for path in (tmp_path / "release").iterdir()] == ["new"]


def test_names_that_a_format_cannot_hold_are_refused_before_anything_is_spent(tmp_path):
    graph = make_graph(torch.tensor([[0, 1], [1, 2]]), 3, ["a\tb", "c", "d"])
    module = DPNetGAN(3, num_samples=10)
    for formats, fits in ((("edges",), False), (("npz",), True)):
        trainer = quiet_trainer(
            PrivacyAccountant(4.0, 1e-4), ReleaseWriter(formats=formats), logger=CSVLogger(tmp_path)
        )
        data = EdgeListDataModule(graph, steps_per_epoch=1)
        if fits:
            trainer.fit(module, data)
        else:
            with pytest.raises(ValueError, match="edge list cannot hold"):
                trainer.fit(module, data)
        assert bool(module.ledger.entries) is fits


def test_a_date_that_is_none_is_refused_before_anything_is_spent(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    with pytest.raises(ValueError, match="SOURCE_DATE_EPOCH must be a number of seconds"):
        fit(tmp_path)
    assert not list(tmp_path.iterdir())
