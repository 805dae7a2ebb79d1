"""Weights that were paid for keep their price wherever they are loaded, in any process."""

import copy
import json

import networkx as nx
import pytest
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from safetensors.torch import load, save

from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import Refusal
from lightning_dpg.methods import ChungLu, DPNetGAN
from lightning_dpg.methods.base import share_ledger
from lightning_dpg.preflight.trainer import check_processes
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.paid_weights import load_released
from lightning_dpg.release.draws import save_generator
from lightning_dpg.release.statement import privacy_statement
from tests.processes import ends, start
from tests.training import quiet_trainer

LEDGER = "_extra_state"  # as PyTorch names it


def gan():
    return DPNetGAN(
        num_nodes=20,
        num_edges=40,
        embedding_dim=2,
        critic_dim=2,
        generator_dim=2,
        num_samples=20,
        sample_rate=0.1,
    )


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.edges"
    nx.write_edgelist(nx.gnm_random_graph(20, 40, seed=0), path, data=False)
    return str(path)


def fit(method, graph, epsilon=4.0, steps=3, ckpt_path=None, callbacks=(), **options):
    data = EdgeListDataModule(name=graph, steps_per_epoch=steps)
    trainer = quiet_trainer(PrivacyAccountant(epsilon, 1e-4), *callbacks, **options)
    trainer.fit(method, datamodule=data, ckpt_path=ckpt_path)
    return method


@pytest.fixture(scope="module")
def trained(graph, tmp_path_factory):
    """A fitted method, and its checkpoint."""
    keep = ModelCheckpoint(save_last=True)
    folder = tmp_path_factory.mktemp("run")
    options = {"logger": CSVLogger(folder), "enable_checkpointing": True}
    method = fit(gan(), graph, callbacks=[keep], **options)
    return method, keep.last_model_path


def entries(method):
    return method.ledger.state_dict()["entries"]


def on_disk(state, path, *, is_safe=True):
    torch.save(state, path)
    return torch.load(path, weights_only=is_safe)


def without_ledger(state):
    return {name: tensor for name, tensor in state.items() if name != LEDGER}


# Ways to put the weights of a whole method into a new one.
WHOLE = {
    "state dict": lambda new, old, path: new.load_state_dict(old.state_dict()),
    "not strict": lambda new, old, path: new.load_state_dict(old.state_dict(), strict=False),
    "file": lambda new, old, path: new.load_state_dict(on_disk(old.state_dict(), path)),
    "pickled": lambda new, old, path: new.load_state_dict(
        on_disk(old.state_dict(), path, is_safe=False)
    ),
    "safetensors": lambda new, old, path: new.load_state_dict(load(save(dict(old.state_dict())))),
    "copied tensors": lambda new, old, path: new.load_state_dict(
        {name: tensor.clone() for name, tensor in old.state_dict().items()}, assign=True
    ),
    "part of it": lambda new, old, path: new.load_state_dict(
        {n: t for n, t in old.state_dict().items() if n == LEDGER or "critic" in n}, strict=False
    ),
}
# Ways that lose the ledger: what the weights have cost is unknown.
LOST = {
    "left out": lambda new, old, path: new.load_state_dict(without_ledger(old.state_dict())),
    "one network": lambda new, old, path: new.load_state_dict(
        {name: tensor for name, tensor in old.state_dict().items() if "critic" in name},
        strict=False,
    ),
}
# Ways to put the weights of one part into a new method.
PARTS = {
    "network": lambda new, old, path: new.critic.load_state_dict(old.critic.state_dict()),
    "not strict": lambda new, old, path: new.critic.load_state_dict(
        old.critic.state_dict(), strict=False
    ),
    "file": lambda new, old, path: new.critic.load_state_dict(
        on_disk(old.critic.state_dict(), path)
    ),
    "layer": lambda new, old, path: next(new.critic.children()).load_state_dict(
        next(old.critic.children()).state_dict()
    ),
    "object": lambda new, old, path: setattr(new, "critic", old.critic),
    "copy": lambda new, old, path: setattr(new, "critic", copy.deepcopy(old.critic)),
    "pickle": lambda new, old, path: setattr(
        new, "critic", on_disk(old.critic, path, is_safe=False)
    ),
    "tensors": lambda new, old, path: new.critic.load_state_dict(dict(old.critic.state_dict())),
    "of a checkpoint": lambda new, old, path: new.critic.load_state_dict(
        {
            name.removeprefix("critic."): tensor
            for name, tensor in on_disk(old.state_dict(), path).items()
            if name.startswith("critic.")
        }
    ),
    "noise": lambda new, old, path: new.dpsgd.load_state_dict(old.dpsgd.state_dict()),
}


@pytest.mark.parametrize("way", [*(WHOLE | LOST).items(), *PARTS.items()], ids=lambda way: way[0])
def test_a_new_fit_does_not_begin_with_weights_that_were_paid_for(way, trained, graph, tmp_path):
    """Its statement would leave out what they have cost."""
    old, _ = trained
    new = gan()
    way[1](new, old, tmp_path / "weights.pt")
    before = entries(new)
    with pytest.raises(MisconfigurationException, match="has loaded the weights of a fit"):
        fit(new, graph)
    assert entries(new) == before


@pytest.mark.parametrize("way", WHOLE)
def test_loaded_weights_have_their_ledger_and_assumptions(way, trained, tmp_path):
    old, _ = trained
    new = gan()
    WHOLE[way](new, old, tmp_path / "weights.pt")
    assert entries(new) == entries(old) and new.assumptions == old.assumptions
    new.ledger.budget = old.ledger.budget
    assert privacy_statement(new) == privacy_statement(old)


@pytest.mark.parametrize("way", LOST)
def test_weights_without_a_ledger_have_no_guarantee(way, trained, tmp_path):
    old, _ = trained
    new, third = gan(), gan()
    LOST[way](new, old, tmp_path / "weights.pt")
    third.load_state_dict(new.state_dict())  # which does not make them better
    third.ledger.budget = old.ledger.budget
    assert privacy_statement(third)["guarantee"].startswith("none: loaded weights: ")


def test_public_weights_are_taken(trained, graph, tmp_path):
    """Of an untrained method, of a release, of a network, and tensors that were public elsewhere."""
    old, _ = trained
    new = gan()
    new.load_state_dict(gan().state_dict())
    load_released(new, old.released_state())
    new.generator.load_state_dict(on_disk(gan().generator.state_dict(), tmp_path / "public.pt"))
    network = torch.nn.Linear(2, 2)
    network.load_state_dict(dict(torch.nn.Linear(2, 2).state_dict()))
    new.further = network
    assert not new.ledger.entries
    assert fit(new, graph).ledger.steps == 3


def test_noise_that_was_loaded_is_calibrated_anew(graph):
    new = gan()
    new.dpsgd.noise_multiplier.fill_(9.0)  # of another budget
    fit(new, graph)
    (planned,) = (e for e in gan().plan(new.budget, 3) if e.key == new.dpsgd.entry.key)
    assert new.ledger.last_entry(planned.key) == planned
    assert float(new.dpsgd.noise_multiplier) == planned.event.noise_multiplier != 9.0


def test_a_checkpoint_goes_on_with_its_ledger_and_its_noise(trained, graph):
    old, path = trained
    content = torch.load(path, weights_only=True)
    assert "privacy_ledger" not in content  # one place
    assert DPNetGAN.load_from_checkpoint(path).ledger.state_dict() == old.ledger.state_dict()
    resumed = fit(gan(), graph, ckpt_path=path)
    assert entries(resumed) == entries(old)  # which was at its end
    assert torch.equal(resumed.dpsgd.noise_multiplier, old.dpsgd.noise_multiplier)


class OwnState(DPNetGAN):
    """Hooks without super, as many users write them."""

    def on_save_checkpoint(self, checkpoint):
        checkpoint["mine"] = 1

    def on_load_checkpoint(self, checkpoint):
        pass


def test_hooks_of_a_user_do_not_lose_the_ledger(trained):
    _, path = trained
    method = OwnState.load_from_checkpoint(path)
    assert method.ledger.steps == 3


@pytest.mark.parametrize("is_whole", [True, False])
def test_checkpoints_of_earlier_versions_resume(trained, graph, tmp_path, is_whole):
    """They have the ledger under a key of its own."""
    old, path = trained
    content = torch.load(path, weights_only=True)
    del content["state_dict"][LEDGER]
    if is_whole:
        content["privacy_ledger"] = old.ledger.state_dict()
        content["assumptions"] = old.assumptions
    torch.save(content, tmp_path / "old.ckpt")
    if is_whole:
        assert entries(DPNetGAN.load_from_checkpoint(tmp_path / "old.ckpt")) == entries(old)
    else:
        with pytest.raises(MisconfigurationException, match="no privacy ledger"):
            DPNetGAN.load_from_checkpoint(tmp_path / "old.ckpt")


def test_a_method_does_not_forget_its_releases(trained, graph):
    """Neither by an earlier state of its run, nor by weights of another one."""
    old, _ = trained
    new, other = gan(), fit(gan(), graph, epsilon=1.0)
    new.load_state_dict(old.state_dict())
    new.load_state_dict(gan().state_dict())
    assert entries(new) == entries(old)
    with pytest.raises(Refusal, match="weights of another run"):
        other.load_state_dict(old.state_dict())


def test_a_part_that_was_paid_for_is_booked_with_its_whole():
    whole, part = ChungLu(), ChungLu()
    (read, *_) = part.plan(Budget(1.0, 0.0), 1)
    part.ledger.spend(read)
    share_ledger(whole, part)
    assert whole.ledger.entries == [read] and part.ledger is whole.ledger


def test_a_release_has_its_ledger_in_its_statement_alone(graph, tmp_path):
    method = ChungLu()
    trainer = quiet_trainer(PrivacyAccountant(1.0, 0.0))
    trainer.fit(method, datamodule=EdgeListDataModule(name=graph))
    assert LEDGER in method.released_state()
    save_generator(method, privacy_statement(method), tmp_path / "generator.safetensors")
    tensors = load((tmp_path / "generator.safetensors").read_bytes())
    assert set(tensors) == set(method.released_state()) - {LEDGER}
    with pytest.raises(MisconfigurationException, match="has been fitted already"):
        trainer.fit(method, datamodule=EdgeListDataModule(name=graph))


def fit_anew(method, graph, devices, **options):
    accountant = PrivacyAccountant(4.0, 1e-4)
    callbacks = [accountant, ReleaseWriter()]
    trainer = quiet_trainer(*callbacks, logger=CSVLogger("."), devices=devices, **options)
    trainer.fit(method, datamodule=EdgeListDataModule(name=graph, steps_per_epoch=3))
    return accountant


def fit_in_children(graph):
    """Fit in two processes, and once more in their parent."""
    method = gan()
    before = [parameter.clone() for parameter in method.parameters()]
    strategy = "ddp_fork_find_unused_parameters_true"
    accountant = fit_anew(method, graph, 2, strategy=strategy, use_distributed_sampler=False)
    said = {"entries": entries(method)}
    said["changed"] = sum(
        int((p != q).sum()) for p, q in zip(before, method.parameters(), strict=True)
    )
    with pytest.raises(MisconfigurationException) as error:
        fit_anew(method, graph, 1)
    print(json.dumps(said | {"error": str(error.value), "statement": accountant.statement(method)}))


def test_ledgers_come_back_from_child_processes(graph, tmp_path):
    """The weights came back without them, and a second fit was let in."""
    (code,), (said,) = ends([start(tmp_path, fit_in_children, graph)])
    assert code == 0, said
    said = json.loads(said.splitlines()[-1])
    (path,) = tmp_path.glob("lightning_logs/*/release/privacy.json")
    released = json.loads(path.read_text())
    assert said["changed"] and len(said["entries"]) == len(released["entries"]) > 0
    assert said["statement"].items() <= released.items()
    assert "has been fitted already" in said["error"]


def test_runs_that_end_in_child_processes_are_refused_where_they_are_checked():
    """A command and ``dpg.fit`` print what has happened, and only the children know it."""
    with pytest.raises(MisconfigurationException, match="child processes"):
        check_processes(quiet_trainer(strategy="ddp_fork", devices=2))
    check_processes(quiet_trainer(strategy="ddp", devices=2))
