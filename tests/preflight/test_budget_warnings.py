"""Warnings of budgets that protect next to nothing, or whose noise drowns the graph."""

from fractions import Fraction

import pytest

from lightning_dpg.main import main
from lightning_dpg.preflight.budget import budget_warnings
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation

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


def test_a_run_warns_of_its_budget_and_of_its_nodes_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text("a,b\n")
    given = ["--data.name", "one.csv", "--privacy.epsilon", "12", "--trainer.fast_dev_run", "true"]
    with pytest.warns() as caught:
        assert main(["fit", "--config", "erdos_renyi", *given]) == 0
    texts = [str(warning.message) for warning in caught]
    assert [sum(piece in text for text in texts) for piece in (NOTHING, NODES, NOISE)] == [1, 1, 0]
