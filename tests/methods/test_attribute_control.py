"""Beside the link prediction of any method stands that of the attributes alone."""

import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import ChungLu
from lightning_dpg.methods.single_graph.attribute_encoder.rows import AttributeRows
from tests.training import quiet_trainer


def evaluated(**attributes):
    data = EdgeListDataModule("planted_words", val_fraction=0.2, test_fraction=0.2, **attributes)
    trainer = quiet_trainer(PrivacyAccountant(4.0, 0.0))
    method = ChungLu()
    trainer.fit(method, data)
    (validated,) = trainer.validate(method, data, verbose=False)
    (tested,) = trainer.test(method, data, verbose=False)
    return data, validated, tested


def test_the_control_is_the_cosine_of_the_rows_before_any_step():
    data, validated, tested = evaluated(node_attributes="from_graph")
    rows = AttributeRows(64)
    rows.fit(data.graph.x)
    cosines = cosine_similarity(rows.smoothed(data.graph.x).numpy())
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
