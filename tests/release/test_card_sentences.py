"""The file of sentences of the model card: every one is used, with all of its values."""

import json
from string import Formatter

import pytest

from lightning_dpg.graph.node_names import SECRET_NUMBERS
from lightning_dpg.privacy.composition import APPROXIMATE, PURE
from lightning_dpg.privacy.events import Relation
from lightning_dpg.release.card import sentences
from lightning_dpg.release.card.document import nonprivate_page, pages, registry_record
from lightning_dpg.release.card.evaluations import findings
from lightning_dpg.release.card.texts import Card
from lightning_dpg.release.card.topics import topics, with_texts
from tests.cards import FACTS, card_of, entry, statement, with_rows

# Sentences on one fact, of which a card holds one.
TOGETHER = {relation.value: "relation" for relation in Relation}


class Recorded(str):
    """A sentence that records by which values it was said."""

    def format(self, **values):
        self.values.append(set(values))
        return super().format(**values)


@pytest.fixture
def said(monkeypatch):
    """All sentences by their names, of which each records its values."""
    recorded = {name: Recorded(text) for name, text in sentences.sentences().items()}
    for text in recorded.values():
        text.values = []
    monkeypatch.setattr(sentences, "sentences", lambda: recorded)
    return recorded


def placeholders(text):
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def write_cards_of_all_kinds(folder):
    """Write cards that hold each sentence at least once."""
    rounding = {"mechanism": "gaussian", "noise_multiplier": 1.5}
    reads = [
        entry("non_private"),
        entry(sensitivity=0, epsilon=0.0),
        entry(epsilon="inf"),
        entry("gaussian", noise_multiplier=0.0),
        entry("gaussian", noise_multiplier=1.5, sample_rate=0.1, steps=20),
        entry("approximate", epsilon=1.0, delta=1e-6, steps=20),
        entry(key="something", epsilon=1.0),
        *(
            entry(key=name.partition(".")[2], epsilon=1.0)
            for name in sentences.sentences()
            if name.startswith("released.")
        ),
    ]
    none = {"epsilon": "inf", "noise_source": "none"}
    card_of(statement(entries=reads, **none), date=None)
    card_of(statement("local_graph", **none), is_set=True)
    for record in ("undirected edge", "directed edge", "edge between the two sides"):
        card_of(statement(entries=[entry(record=record, epsilon=1.0)]), num_graphs=3)
    card_of(statement(assumptions=[SECRET_NUMBERS]))
    card_of(statement(assumptions=["the node attributes, as given"]), other_runs="not added up")
    card_of(statement(delta=1e-5, entries=[entry(**rounding)]), is_set=True, max_occurrences=1)
    card_of(statement(claimed_epsilon=0.1, entries=[]), is_set=True, max_occurrences=2)
    card_of(statement("node", condition="they agree", conditional=True))
    card_of(statement("node", epsilon=500.0, delta=1e-5, entries=[]), method_path="my.Method")
    updates = entry(key="client_updates", relation="local_graph", epsilon=1.0)
    card_of(statement("local_graph", entries=[updates]), is_set=True, num_graphs=None)
    card_of(statement(), num_graphs=None)
    several = {"relation": "edges_of_node", "record": "at most 20 edges of one node"}
    facts = {"public": {"edges of one node": 20, "length of clipped votes": 3.5}}
    moment = entry("gaussian", noise_multiplier=1.5, **several, **facts)
    card_of(statement("edges_of_node", delta=1e-5, entries=[moment]), num_graphs=None)
    for relation in ("transfer", "node", "edges_of_node", "local_graph"):
        card_of(with_rows(relation))
    whole = "directed edge with all its transfers and their amounts"
    records = [entry(record=record, epsilon=0.5) for record in ("directed edge", whole)]
    card = card_of(statement(entries=records))
    assert "directed edge from one node to another with all its transfers and their amounts" in card
    assert "reads only whether" not in card
    card_of(with_rows())
    assert "Which nodes have values" in card_of(with_rows(key="label_reports"))
    card_of(with_rows(epsilon=20.0, delta=1e-5))
    for accountant in (PURE, APPROXIMATE, "PLD", "PRV", "GDP", "RDP", "a sum of our own"):
        card_of(statement(accountant=accountant))
    content = statement() | topics(statement(), FACTS)
    pages(with_texts(content, Card(unit="a payment", purpose="much " * 50), {}))
    registry_record(content)
    audit = {"method": "Any", "epsilon_lower_bound": 0.3, "confidence": 0.95}
    attack = {"confidence": 0.95, "link_prediction": {"generated": {"value": 0.6}}}
    shares = {"attack": "nearest", "release": {"found": {"value": 0.2}}}
    attack["link_stealing"] = [shares | {"baseline": {"found": {"value": 0.1}}}]
    for is_public in (False, True):
        for refuted in (False, True):
            graph = {"graph": {"is_public": is_public, "name": "karate"}}
            relation = {"relation": "attributes"} if refuted else {}
            result = json.dumps(audit | graph | relation | {"refuted": refuted})
            (folder / "audit.json").write_text(result)
            (folder / "attack.json").write_text(json.dumps(attack | graph))
            card = Card(audit=str(folder / "audit.json"), attack=str(folder / "attack.json"))
            found = findings(card, "Any")
            content = with_texts(statement() | topics(statement(), FACTS), card, found.topic)
            text = "".join(pages(content).values())
            assert "karate" in text or not is_public
            assert ("epsilon of the private columns" in text) == (is_public and refuted)
            nonprivate_page(content, found.private)


def test_each_sentence_is_used_and_has_all_of_its_values(said, tmp_path):
    write_cards_of_all_kinds(tmp_path)
    assert not [name for name, text in said.items() if not text.values]
    values, used = {}, {}
    for name, text in said.items():
        section = name.partition(".")[0]
        section = TOGETHER.get(section, section)
        values[section] = values.get(section, set()).union(*text.values)
        used[section] = used.get(section, set()) | placeholders(text)
    # Each value is in the file: a sentence that lost its number would still be a sentence.
    assert values == used


def test_sentences_are_lines_of_text():
    for name, text in sentences.sentences().items():
        assert isinstance(text, str), name
        assert text and "  " not in text and "\n" not in text, name
