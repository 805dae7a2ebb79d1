"""Methods are independent of audits; a method without a score of its own is audited as well."""

import inspect

import pytest
import torch

from lightning_dpg import methods
from lightning_dpg.auditing.scores.black_box import black_box_score
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from tests.scoring import scored

KNOWN = make_graph(torch.tensor([[0, 1], [1, 2]]), 4)
PAIRS = torch.tensor([[0, 2], [0, 3]])


def test_no_method_scores_canaries():
    classes = [getattr(methods, name) for name in methods.__all__]
    found = {cls.__name__ for cls in classes if inspect.isclass(cls)}
    for cls in classes:
        assert not hasattr(cls, "audit_score") and not hasattr(cls, "transcript_score"), cls
    assert len(found) > 20


class Own(Synthesizer):
    """A method of a user, which books a release that no score knows."""

    def __init__(self):
        super().__init__()
        self.ledger.spend(
            LedgerEntry(
                key="my_own_number",
                name="my own number",
                relation=Relation.EDGE,
                sensitivity=1,
                proof="by hand",
                event=Pure(1.0),
            )
        )

    def sample_edges(self, generator):
        return torch.empty(0, 2, dtype=torch.long)

    def score(self, pairs):
        return pairs.sum(1).float()

    def released_state(self):
        return {}


def test_a_method_without_a_score_is_scored_by_how_likely_it_makes_pairs():
    method = Own()
    assert method.ledger.entries[0].key == "my_own_number"
    assert black_box_score(method, None, PAIRS, KNOWN).tolist() == [2, 3]
    assert scored(method, "my_own_number", torch.tensor(3), PAIRS, KNOWN).tolist() == [0, 0]


def test_scores_inside_a_method_are_read_for_one_more_version(monkeypatch):
    monkeypatch.setattr(Own, "audit_score", lambda *_: torch.ones(2), raising=False)
    seen = []

    def own(self, name, noisy, pairs, known):
        seen.append(name)
        return noisy.expand(len(pairs))

    monkeypatch.setattr(Own, "transcript_score", own, raising=False)
    method = Own()
    with pytest.warns(match="one more version"):
        assert black_box_score(method, None, PAIRS, KNOWN).tolist() == [1, 1]
    with pytest.warns(match="one more version"):
        found = scored(method, "my_own_number", torch.tensor(3), PAIRS, KNOWN)
    assert (found.tolist(), seen) == ([3, 3], ["my own number"])
