"""Warnings of budgets that protect next to nothing, or whose noise drowns the graph."""

import warnings
from fractions import Fraction
from functools import partial

import pytest

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.main import main
from lightning_dpg.methods import ChungLu
from lightning_dpg.preflight.budget import budget_warnings
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from lightning_dpg.release.card.sentences import say
from tests.preflight.test_trainer import Reader
from tests.training import quiet_trainer

karate = partial(EdgeListDataModule, "karate", steps_per_epoch=5)
NOTHING, NOISE, NODES = "protects next to nothing", "is too small for", "are too few"


@pytest.mark.parametrize(
    ("epsilon", "num_nodes", "said"),
    [
        (10, 77, []),
        (10.01, 77, [NOTHING]),
        (1e9, 77, [NOTHING]),
        (float("inf"), 77, []),
        (0.2, 77, []),
        (0.1, 77, [NOISE]),
        (1e-9, 20_000, [NOISE]),
        (0.001, 20_000, []),
        (1, 10, []),
        (1, 9, [NODES]),
        (12, 2, [NOTHING, NODES]),
        (1e-9, None, []),
        (12, None, [NOTHING]),
    ],
)
def test_which_budgets_are_doubtful(epsilon, num_nodes, said):
    texts = budget_warnings(Budget(epsilon, 0.0), Relation.EDGE, num_nodes)
    assert [text for text, piece in zip(texts, said, strict=True) if piece in text] == texts


def test_the_belief_is_that_of_bayes():
    (text,) = budget_warnings(Budget(12, 0.0), Relation.NODE, 100)
    odds = Fraction(162_755)  # e^12, rounded up
    assert f"{float(100 * odds / (1 + odds)):.6g} % sure of one node and its relations" in text


def test_a_run_warns_of_its_budget_and_of_its_nodes_once(here):
    (here / "one.csv").write_text("a,b\n")
    given = ["--data.name", "one.csv", "--privacy.epsilon", "12", "--trainer.fast_dev_run", "true"]
    with pytest.warns() as caught:
        assert main(["fit", "--config", "erdos_renyi", *given]) == 0
    texts = [str(warning.message) for warning in caught]
    assert [sum(piece in text for text in texts) for piece in (NOTHING, NODES, NOISE)] == [1, 1, 0]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"fast_dev_run": True}, "spends budget"),
        ({"max_time": "00:01:00:00"}, "how long private batches take"),
        ({"max_steps": 3}, None),
    ],
)
@pytest.mark.parametrize("epsilon", [8.0, float("inf")])
def test_a_trainer_says_what_it_spends_and_makes_public(setting, said, epsilon):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quiet_trainer(PrivacyAccountant(epsilon, 1e-4), **setting).fit(Reader(), karate())
    texts = "".join(str(each.message) for each in caught)
    for piece in ("spends budget", "how long private batches take"):
        assert (piece in texts) == (piece == said and epsilon == 8)


@pytest.mark.parametrize(("method", "is_warned"), [(Reader, True), (ChungLu, False)])
def test_a_fit_says_who_has_proved_a_method(method, is_warned, capsys):
    quiet_trainer(PrivacyAccountant(8.0, 1e-4)).fit(method(), karate())
    assert (say("product.not_shipped") in capsys.readouterr().out) == is_warned
