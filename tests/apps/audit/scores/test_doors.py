"""A method whose releases no score knows is audited as well."""

import torch

from lightning_dpg.apps.audit.scores.attackers import black_box_score
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods.synthesizer import Synthesizer
from tests.entries import entry
from tests.scoring import scored

KNOWN = make_graph(torch.tensor([[0, 1], [1, 2]]), 4)
PAIRS = torch.tensor([[0, 2], [0, 3]])


class Own(Synthesizer):
    """A method of a user, which books a release that no score knows."""

    def __init__(self):
        super().__init__()
        self.ledger.spend(entry("pure", name="my own number", epsilon=1.0))

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
