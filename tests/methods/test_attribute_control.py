"""Beside the link prediction of any method stands that of the attributes alone."""

import pytest
import torch
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import ChungLu
from lightning_dpg.methods.single_graph.attribute_encoder.rows import AttributeRows
from lightning_dpg.metrics.link_prediction import attributes_alone
from tests.training import quiet_trainer


def evaluated(**attributes):
    data = EdgeListDataModule("planted_words", val_fraction=0.2, test_fraction=0.2, **attributes)
    trainer = quiet_trainer(PrivacyAccountant(4.0, 0.0))
    method = ChungLu()
    trainer.fit(method, data)
    (validated,) = trainer.validate(method, data, verbose=False)
    (tested,) = trainer.test(method, data, verbose=False)
    return data, validated, tested


def test_the_control_is_the_cosine_of_weighted_and_centered_words():
    data, validated, tested = evaluated(node_attributes="from_graph")
    words = TfidfTransformer().fit_transform(data.graph.x.numpy()).toarray()
    cosines = cosine_similarity(words - words.mean(0))
    links = data.test_links
    for prefix, others in (("", links.non_edges), ("matched_", links.matched_non_edges)):
        scores = [cosines[i, j] for pairs in (links.edges, others) for i, j in pairs.tolist()]
        truth = [1] * len(links.edges) + [0] * len(others)
        auc = roc_auc_score(truth, scores)
        assert tested[f"nonprivate/test_{prefix}auc_attributes_alone"] == pytest.approx(auc)
        ap = average_precision_score(truth, scores)
        assert tested[f"nonprivate/test_{prefix}ap_attributes_alone"] == pytest.approx(ap)
    assert 0.5 < validated["nonprivate/val_auc_attributes_alone"] < 1


def test_without_attributes_there_is_no_control():
    _, validated, tested = evaluated()
    assert not [name for name in (*validated, *tested) if "attributes" in name]


def test_of_many_words_it_is_the_cosine_of_the_rows_of_the_encoder():
    words = (torch.rand(150, 90, generator=torch.Generator().manual_seed(0)) < 0.1).float()
    rows = AttributeRows(64)
    rows.fit(words)
    pairs = torch.combinations(torch.arange(150))
    expected = (rows(words)[pairs[:, 0]] * rows(words)[pairs[:, 1]]).sum(1)
    torch.testing.assert_close(attributes_alone(words)(pairs), expected, atol=1e-4, rtol=0)
