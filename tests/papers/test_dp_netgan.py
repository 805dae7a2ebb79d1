"""DP-NetGAN books its events, keeps its sensitivity, and learns."""

import pytest
import torch
from opacus.accountants.utils import get_noise_multiplier
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks.privacy_accountant import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import DPNetGAN, DPNetGANAsPublished
from lightning_dpg.privacy.events import Gaussian, Pure
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from tests.training import quiet_trainer

SMALL = {"latent_dim": 4, "generator_dim": 20, "critic_dim": 16, "embedding_dim": 16}


def make_module(method=DPNetGAN, **options):
    torch.manual_seed(0)
    return method(77, **SMALL | {"batch_size": 16, "num_samples": 2000} | options)


def fit(module, epsilon=4.0, delta=1e-4, max_epochs=3, name="les_miserables"):
    trainer = quiet_trainer(PrivacyAccountant(epsilon, delta), max_epochs=max_epochs)
    trainer.fit(module, EdgeListDataModule(name))
    return module


def test_auto_noise_is_solved_for_the_steps_of_the_run():
    module = fit(make_module(num_edges=254), max_epochs=4)
    # No more than Renyi DP asks for, and as little as the budget affords.
    renyi = get_noise_multiplier(
        target_epsilon=4.0, target_delta=1e-4, sample_rate=0.1, steps=40, accountant="rdp"
    )
    assert float(module.dpsgd.noise_multiplier) < renyi
    assert 0.999 * 4.0 < module.ledger.headline(1e-4)[0] <= 4.0
    assert module.ledger.steps == 40
    assert not module.ledger.affords(*module.step_entries())


class Gradients(DPNetGAN):
    """Records the private and the public half of one critic step with public randomness fixed."""

    def halves(self, edges):
        self.ledger = PrivacyLedger(self.relation)
        self._noise = NoiseSource(unsafe_seed=1)
        private = self.critic_gradient(lambda: self._private_term(edges))
        torch.manual_seed(3)
        return private, self.critic_gradient(self._public_terms)

    def critic_gradient(self, backward):
        self.critic.zero_grad()
        backward()
        return torch.cat([p.grad.flatten() for p in self.critic.parameters()]).double()


def prepare(module):
    """Make single steps possible outside a training loop."""
    module.trainer = quiet_trainer()
    module.log = lambda *args, **kwargs: None
    module.dpsgd.noise_multiplier.fill_(1.0)
    module.num_edges.fill_(10)


@pytest.mark.parametrize("frozen_embedding", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_one_edge_moves_the_private_half_by_c_and_the_public_half_not_at_all(
    frozen_embedding, scale
):
    torch.manual_seed(0)
    options = {"noise_multiplier": 1.0, "max_grad_norm": 0.5, "sample_rate": 0.999}
    module = Gradients(20, **options, frozen_embedding=frozen_embedding, **SMALL)
    with torch.no_grad():
        for parameter in module.critic.parameters():
            parameter *= scale
    prepare(module)
    edges = torch.combinations(torch.arange(20))[::17]
    private, public = module.halves(edges)
    for i in range(len(edges)):
        fewer, same = module.halves(torch.cat([edges[:i], edges[i + 1 :]]))
        assert torch.equal(public, same)
        # The sum is divided by the constant 0.999 * 10
        assert (private - fewer).norm() * 9.99 <= 0.5 * (1 + 1e-5)


def test_the_published_variant_reports_both_epsilons():
    module = fit(make_module(DPNetGANAsPublished, frozen_embedding=False), epsilon=8.0)
    assert not isinstance(module, DPNetGAN)
    assert [e.name for e in module.ledger.entries] == ["critic gradient"]
    assert int(module.num_edges) == 254
    assert any("exact number of edges" in text for text in module.assumptions)
    held, claimed = module.ledger.headline(1e-4)[0], module.claimed_epsilon(1e-4)
    # Two records per edge, as the paper counts, look at least twice as cheap.
    assert claimed < held / 1.5


def test_infinite_budget_trains_without_noise_and_without_a_guarantee():
    module = fit(make_module(frozen_embedding=False), epsilon=float("inf"), delta=None)
    assert module.ledger.reasons
    assert int(module.num_edges) == 254


def test_a_resumed_run_follows_the_configuration_and_releases_no_count_again(tmp_path):
    def train(max_epochs, checkpoint=None, **options):
        trainer = quiet_trainer(
            PrivacyAccountant(4.0, 1e-4),
            max_epochs=max_epochs,
            default_root_dir=tmp_path,
            enable_checkpointing=True,
        )
        module = make_module(**options)
        trainer.fit(module, EdgeListDataModule(), ckpt_path=checkpoint)
        rates = [optimizer.param_groups[0]["lr"] for optimizer in trainer.optimizers]
        return module, trainer.checkpoint_callback.best_model_path, rates

    first, checkpoint, _ = train(1, noise_multiplier=2.0)
    second, _, rates = train(2, checkpoint, noise_multiplier=2.0, critic_lr=0.25, generator_lr=0.5)
    assert rates == [0.25, 0.5]
    assert [(e.name, e.event, e.steps) for e in second.ledger.entries] == [
        ("number of edges", Pure(0.05), 1),
        ("critic gradient", Gaussian(2.0, 0.1), 20),
    ]
    assert int(second.num_edges) == int(first.num_edges)
    third, _, _ = train(3, checkpoint, noise_multiplier=2.0, num_edges=200)
    assert int(third.num_edges) == 200


def test_auto_without_a_number_of_steps_is_refused():
    with pytest.raises(MisconfigurationException, match="max_epochs"):
        fit(make_module(), max_epochs=-1)


@pytest.mark.slow
def test_without_noise_it_learns_two_blocks():
    """Two complete blocks of 12 nodes: pairs inside score above pairs across."""
    pairs = torch.combinations(torch.arange(24))
    inside = pairs[:, 0] // 12 == pairs[:, 1] // 12
    torch.manual_seed(0)
    options = SMALL | {"latent_dim": 16}
    options |= {"sample_rate": 0.2, "temperature_decay": 0.998}
    module = DPNetGAN(24, frozen_embedding=False, batch_size=64, **options)
    data = EdgeListDataModule(make_graph(pairs[inside], 24), steps_per_epoch=1000)
    trainer = quiet_trainer(PrivacyAccountant(float("inf")))
    trainer.fit(module, data)
    scores = module.score(pairs)
    auc = (scores[inside][:, None] > scores[~inside]).float().mean()
    assert auc > 0.9


def test_a_graph_has_its_edges_however_few_samples_are_asked_for():
    module = make_module(num_samples=1)
    module.num_edges.fill_(900)
    assert len(module.sample_edges(torch.Generator().manual_seed(0))) == 900
    module.generator.prior[:5] = 20.0  # from now on it draws five nodes only
    with pytest.warns(UserWarning, match="raise num_samples"):
        module.sample_edges(torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("epsilon", "options"),
    [
        (0.5, {"count_epsilon": 0.2, "degree_share": 0.5}),
        (4.0, {"noise_multiplier": 0.1}),
        (float("inf"), {"noise_multiplier": 1.0, "degree_share": 0.5}),
    ],
)
def test_a_plan_that_does_not_fit_spends_nothing(epsilon, options):
    module = make_module(**options)
    with pytest.raises(
        MisconfigurationException, match=r"does not pay for|finite privacy\.epsilon"
    ):
        fit(module, epsilon)
    assert not module.ledger.entries
