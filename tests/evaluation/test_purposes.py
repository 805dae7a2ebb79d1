"""A release is judged beside baselines at its epsilon, for each purpose."""

import html
import json
import math

import networkx as nx
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.advice import GOALS, OF_COLUMNS, OF_SETS
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.evaluation.baselines import BASELINES
from lightning_dpg.evaluation.evaluate import evaluate
from lightning_dpg.evaluation.purposes import LINK_AUC, PURPOSES, judge
from lightning_dpg.methods import ChungLu, ErdosRenyi
from lightning_dpg.metrics.glossary import glossary
from lightning_dpg.release.release import Release
from lightning_dpg.run.fit import fit_method

COMMUNITIES = ("modularity", "community_nmi", "community_ami", "community_f1")


def rivals(**scores):
    """Two baselines with equal scores of two fits each."""
    return {name: {query: [*found] for query, found in scores.items()} for name in BASELINES}


def verdict(goal, scores, baselines):
    (found,) = (one for one in judge(scores, baselines) if one.goal == goal)
    return found.is_served, found.reason


def test_every_goal_of_one_graph_has_queries():
    of_held_out_links = {"links-beyond-degrees"}
    assert PURPOSES.keys() == GOALS.keys() - OF_SETS - OF_COLUMNS - of_held_out_links
    groups = [group for groups in PURPOSES.values() for group in groups]
    assert sorted(groups) == sorted({query.group for query in glossary("graphs").values()})


def test_nearer_than_each_fit_in_most_queries_serves():
    scores = dict(zip(COMMUNITIES, (0.3, 0.7, 0.6, 0.1), strict=True))
    baselines = rivals(
        modularity=(0.5, 0.6), community_nmi=(0.2, 0.3), community_ami=(0, 0), community_f1=(0, 0.1)
    )
    expected = (True, "nearer than both baselines in 3 of 4 queries")
    assert verdict("communities", scores, baselines) == expected
    baselines["ErdosRenyi"]["modularity"] = [0.32, 0.9]  # 0.3 is no tenth nearer than the first fit
    baselines["ErdosRenyi"]["community_nmi"] = [0.8, 0.2]
    expected = (False, "ErdosRenyi is as near or nearer in 3 of 4 queries")
    assert verdict("communities", scores, baselines) == expected


def test_nearer_but_far_off_serves_nothing():
    scores = dict.fromkeys(COMMUNITIES, 0.2) | {"modularity": 0.8}
    baselines = rivals(**dict.fromkeys(COMMUNITIES, (0.0,)) | {"modularity": (0.95,)})
    is_served, reason = verdict("communities", scores, baselines)
    assert not is_served
    only = "nearer than both baselines in only 0 of 4 queries"
    assert reason == f"{only}; 4 more are nearer, but off by more than half"


def test_close_answers_of_a_baseline_tell_nothing():
    scores = {"num_edges": 0.01, "diameter": 0.05, "triangles": 0.3, "avg_clustering": 0.9}
    baselines = rivals(num_edges=(0.1,), diameter=(0,), triangles=(0.8,), avg_clustering=(1,))
    start = "close in 2 of 4 queries, as a baseline is; "
    # One of two is not most.
    is_served, reason = verdict("shape", scores, baselines)
    assert not is_served
    assert reason.startswith(start)
    scores["avg_clustering"] = 0.5
    expected = (True, f"{start}nearer than both baselines in 2 of 2 others")
    assert verdict("shape", scores, baselines) == expected
    # Nearly all are close: the release serves, and the baselines would, too.
    scores = dict.fromkeys(scores, 0.0)
    baselines = rivals(**dict.fromkeys(scores, (0.1,)))
    expected = (True, "close in 4 of 4 queries; a baseline is, too, in 4")
    assert verdict("shape", scores, baselines) == expected


def test_links_are_judged_by_scores_of_pairs_or_by_repeated_edges():
    scores = {"edge_overlap": 0.3, LINK_AUC.name: 0.85}
    baselines = rivals(edge_overlap=(0.05,), link_auc=(0.8,))
    assert verdict("links", scores, baselines) == (
        True,
        "scores of pairs rank links with AUC 0.85 (ErdosRenyi 0.80, ChungLu 0.80)",
    )
    scores[LINK_AUC.name] = math.nan
    is_served, reason = verdict("links", scores, baselines)
    assert is_served
    assert reason.startswith("0.30 of the real edges are repeated (ErdosRenyi 0.05, ChungLu 0.05)")


def test_queries_without_a_number_count_nowhere():
    assert not judge({"modularity": math.nan}, rivals(modularity=(0.5,)))
    assert not judge({"modularity": 0.1}, rivals(modularity=(math.nan,)))
    found = judge(
        {"modularity": 0.1, "community_ami": 0.9}, rivals(modularity=(math.nan, 0.5)) | {}
    )
    assert found[0].reason == "close in 1 of 1 queries"


def release_of(method_class, graph, epsilon):
    method = method_class()
    fit_method(method, EdgeListDataModule(graph), epsilon, 0.0)
    statement = {"relation": "edge", "epsilon": epsilon, "guarantee": "stated"}
    return Release(method, statement | {"method": method_class.__name__})


KARATE = nx.karate_club_graph()


@pytest.fixture(scope="module")
def judged():
    """Releases of degrees without noise to speak of, and of a number of edges, beside a graph."""
    releases = [release_of(ChungLu, KARATE, 1e4), release_of(ErdosRenyi, KARATE, 1e4)]
    torch.manual_seed(7)
    found = evaluate(KARATE, [*releases, KARATE])
    assert torch.initial_seed() == 7  # the fits leave the generator of the user alone
    assert torch.equal(torch.rand(1), torch.rand(1, generator=torch.Generator().manual_seed(7)))
    return found


def test_a_baseline_serves_no_more_than_it_knows(judged):
    of_degrees, of_edges, graph = (one.purposes for one in judged.measured)
    assert graph is None
    assert of_degrees.num_fits == 3
    assert {len(fits) for scores in of_degrees.scores.values() for fits in scores.values()} == {3}
    served = {one.goal: one.is_served for one in of_edges.verdicts}
    assert served == dict.fromkeys(PURPOSES, False)
    # It is compared with ErdosRenyi alone, not with itself.
    served = {one.goal: one.is_served for one in of_degrees.verdicts}
    assert served["degrees"] and served["links"] and not served["communities"]
    assert of_degrees.lines()[-2].startswith("beside ErdosRenyi, fitted 3 times to the real graph")
    auc = of_degrees.scores["ChungLu"]["link_auc"]
    # Pairs of larger degrees are likelier, and without noise all fits are equal.
    assert auc[0] == pytest.approx(auc[1]) and auc[0] > 0.6
    assert of_degrees.scores["ErdosRenyi"]["link_auc"] == [0.5] * 3


def test_purposes_are_in_every_form_of_the_evaluation(judged):
    lines = judged.measured[1].purposes.lines()
    assert lines[0].startswith("serves: no purpose better than a baseline; does not serve: degrees")
    assert "plan --goal GOAL --epsilon 10000 --num-nodes 34 " in lines[-1]
    texts = (str(judged), html.unescape(judged.to_html_text()), html.unescape(judged._repr_html_()))
    for text in texts:  # of a page, purposes and reasons are the cells of a table
        for line in lines:
            parts = line.split(": ", maxsplit=1) if line.startswith("  ") else [line]
            assert all(part.strip() in " ".join(text.split()) for part in parts)
    assert str(judged).index("serves:") > str(judged).rindex("motif_cosine")
    graphs = json.loads(judged.to_json())["graphs"]
    assert graphs[1]["purposes"]["degrees"]["served"] is False
    assert len(graphs[1]["baselines"]["ChungLu"]["max_degree"]) == 3
    assert "purposes" not in graphs[2]


def test_a_data_frame_has_a_row_for_each_query_and_the_errors_of_baselines(judged):
    frame = judged.to_dataframe().set_index(["graph", "query"])
    row = frame.loc["synthetic-1", "max_degree"]
    assert (row.group, row.real, row.better) == ("degrees", 17, "lower")
    fits = judged.measured[1].purposes.scores["ErdosRenyi"]["max_degree"]
    assert row.error_ErdosRenyi == pytest.approx(sum(fits) / 3)
    assert frame.loc["synthetic-2"].error_ChungLu.isna().all()
    assert len(frame) == 3 * len(judged.measured[0].answers)


@pytest.mark.parametrize(
    "statement",
    [{"relation": "node", "epsilon": 1.0}, {"relation": "edge", "epsilon": "inf"}, {}],
)
def test_releases_without_an_epsilon_for_an_edge_are_not_judged(statement):
    release = release_of(ErdosRenyi, KARATE, 1.0)
    found = evaluate(KARATE, Release(release.method, statement))
    assert found.measured[0].purposes is None
    assert "serves" not in str(found)


def test_baselines_are_left_out_on_demand():
    release = release_of(ErdosRenyi, KARATE, 1.0)
    assert evaluate(KARATE, release, baselines=False).measured[0].purposes is None


@pytest.mark.parametrize("edges", [[(0, 1)], [(0, 1), (1, 2), (0, 2)], [(0, 1), (2, 3)]])
def test_tiny_graphs_are_judged_or_not_without_an_error(edges):
    graph = nx.Graph(edges)
    found = evaluate(graph, release_of(ChungLu, graph, 0.1))
    assert found.measured[0].purposes is not None
    assert str(found)


def test_directed_graphs_have_directed_baselines():
    graph = nx.gnp_random_graph(30, 0.1, seed=1, directed=True)
    release = dpg.fit(EdgeListDataModule(graph, kind="directed"), "chung_lu", epsilon=2.0)
    purposes = evaluate(graph, release).measured[0].purposes
    assert purposes.kind == "directed"
    assert "reciprocity" in purposes.scores["ChungLu"]
    assert " --kind directed" in purposes.lines()[-1]


def test_customers_without_a_transfer_count_for_the_release_and_the_baselines():
    graph = KARATE.copy()
    graph.add_nodes_from(["rich", "poor"])
    release = release_of(ErdosRenyi, graph, 5.0)
    found = evaluate(KARATE, release)
    assert found.measured[0].purposes.num_nodes == 36
    answers = found.answers["synthetic-0"]
    assert all(not math.isnan(answers[name].score) for name in (*COMMUNITIES, "edge_overlap"))
    assert answers["num_nodes"][:2] == (36, 36)
