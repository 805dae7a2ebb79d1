"""Beside the link prediction of any method stands that of the attributes alone."""

import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.graph.attributes import PUBLIC_ATTRIBUTES
from lightning_dpg.methods import ChungLu
from lightning_dpg.nn.attribute_rows import attributes_alone
from tests.attributed import AttributedDataModule, attributed_graph
from tests.training import quiet_trainer


def evaluated(**attributes):
    data = EdgeListDataModule("planted_words", val_fraction=0.2, test_fraction=0.2, **attributes)
    trainer = quiet_trainer(PrivacyAccountant(4.0, 0.0))
    method = ChungLu()
    trainer.fit(method, data)
    (validated,) = trainer.validate(method, data, verbose=False)
    (tested,) = trainer.test(method, data, verbose=False)
    return data, validated, tested


def test_the_control_is_the_cosine_of_weighted_components():
    data, validated, tested = evaluated(nodes=Nodes(attributes="from_graph"))
    words = TfidfTransformer().fit_transform(data.graph.x.numpy()).toarray()
    cosines = cosine_similarity(PCA(min(64, *words.shape), svd_solver="full").fit_transform(words))
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


def test_attributes_of_records_of_a_users_own_are_stated_as_public():
    method = ChungLu()
    data = AttributedDataModule(*attributed_graph(num_nodes=30))  # states no assumption itself
    quiet_trainer(PrivacyAccountant(1.0, 0.0)).fit(method, data)
    assert method.attribute_arrays()
    assert method.assumptions.count(PUBLIC_ATTRIBUTES) == 1


def test_of_a_bipartite_graph_it_compares_what_both_sides_have_in_common():
    generator = torch.Generator().manual_seed(0)
    tastes = torch.randint(4, (60,), generator=generator)
    words = torch.nn.functional.one_hot(tastes, 4).float()
    pairs = torch.cartesian_prod(torch.arange(40), torch.arange(40, 60))
    scores = attributes_alone(words, num_left=40)(pairs)
    alike = tastes[pairs[:, 0]] == tastes[pairs[:, 1]]
    assert scores[alike].min() > scores[~alike].max()
