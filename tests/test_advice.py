"""Recommendations: no method that refuses the data, one rule everywhere, public numbers only."""

import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.advice import (
    GOALS,
    OF_COLUMNS,
    OF_LINKS,
    OF_SETS,
    Facts,
    cases,
    choices,
    hint,
    noise_of_reports,
    recommend,
)
from lightning_dpg.datamodules import EdgeListDataModule, GraphSetDataModule, Nodes
from lightning_dpg.errors import Refusal
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.edge_sampling import MAX_NODES
from lightning_dpg.interfaces import AttributedGraphRecords, GraphSetRecords
from lightning_dpg.main import main
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.run.configurations import shipped_configs
from lightning_dpg.run.lightning_cli import better_method
from lightning_dpg.run.shipped import configuration_of
from tests.small_methods import METHODS, SHORT, made

ROOT = Path(__file__).parent.parent
CLASS = re.compile(r"`([A-Z]\w+)`")
KINDS = ["undirected", "directed", "bipartite"]


@st.composite
def known_facts(draw):
    """Everything that can be known of data and budget."""
    goal = draw(st.sampled_from(sorted(GOALS)))
    kinds = ["set"] if goal in OF_SETS else ["undirected"] if goal in OF_COLUMNS else KINDS
    num_nodes = draw(st.integers(2, 200_000) | st.sampled_from([MAX_NODES, MAX_NODES + 1]))
    return Facts(
        goal,
        math.exp(draw(st.floats(-3, 5))),
        num_nodes,
        draw(st.none() | st.integers(0, num_nodes * (num_nodes - 1) // 2)),
        draw(st.sampled_from(kinds)),
        goal == "classes" or draw(st.booleans()),
        goal == "classes" or draw(st.booleans()),
    )


@cache
def data_of(kind, has_attributes, goal="links"):
    """Small data of a kind for a goal, set up for a fit."""
    if kind == "set":
        graphs = [from_networkx(nx.cycle_graph(n)) for n in range(4, 12)]
        for number, graph in enumerate(graphs):
            graph.y = torch.tensor([number % 2])
        data = GraphSetDataModule(graphs)
    else:
        graph = nx.complete_bipartite_graph(4, 8)
        graph = graph.to_directed() if kind == "directed" else graph
        nx.set_node_attributes(graph, {node: node % 3 for node in graph}, "age")
        nx.set_node_attributes(graph, {node: node % 2 for node in graph}, "side")
        columns = {
            "classes": {"policy": {"side": "label"}},
            "rows": {"private_columns": ["side"], "domains": {"side": ["0", "1"]}},
        }.get(goal, {"policy": {"side": "drop"}})
        has_columns = has_attributes or goal in OF_COLUMNS
        given = {"nodes": Nodes(attributes="from_graph", **columns)} if has_columns else {}
        if goal == "transfers":
            rows = [(a, b, a + b) for a, b in graph.edges]
            graph = pd.DataFrame(rows, columns=["source", "target", "euro"])
            given = {"columns": {"weight": "euro", "weight_max": 20}}
        data = EdgeListDataModule(graph, kind=kind, **given)
    data.setup("fit")
    return data


def small(case, num_nodes=12):
    """The recommended method with small settings."""
    setting = {"denoise": case.denoise} if case.denoise else {}
    small_ones = SHORT | {"num_nodes": num_nodes, "noise_multiplier": "auto"}
    return made(case.method, small_ones | setting)


@cache
def offer(case, kind, has_attributes, goal):
    """Offer data to a method as ``fit`` does; a refusal is an error."""
    small(case).accept_data(data_of(kind, has_attributes, goal))


@given(known_facts())
@settings(max_examples=300)
def test_no_recommended_method_refuses_the_data(facts):
    for case in cases(facts):
        method = METHODS[case.method]
        offer(case._replace(least_degree=0.0), facts.kind, facts.has_attributes, facts.goal)
        assert (method.capabilities.reads is GraphSetRecords) == (facts.kind == "set")
        assert facts.has_attributes or method.capabilities.reads is not AttributedGraphRecords
        assert facts.kind == "set" or facts.kind in method.capabilities.kinds
        assert facts.allows_delta or method.capabilities.is_pure
        if case.denoise:  # the constructor knows the limit
            small(case, facts.num_nodes)
    assert recommend(facts) in cases(facts)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("goal", GOALS)
def test_no_recommended_method_refuses_the_budget(goal, epsilon, delta):
    kind = "set" if goal in OF_SETS else "undirected"
    for has_attributes in (True, False):
        if goal == "classes" and not (has_attributes and delta):
            continue
        facts = Facts(goal, epsilon, 12, None, kind, delta > 0, has_attributes)
        for case in cases(facts):
            small(case).accept_budget(Budget(epsilon, delta))


@pytest.mark.parametrize("kind", KINDS)
def test_public_attributes_are_used_where_the_encoder_learns_the_kind(kind):
    able = kind in METHODS["AttributeEncoder"].capabilities.kinds
    facts = Facts("links", 1.0, 100, kind=kind, has_attributes=True)
    assert (recommend(facts).method == "AttributeEncoder") == able


@given(known_facts())
def test_a_line_without_the_number_of_edges_holds_the_choice_with_it(facts):
    """Read it as a user would: the first bound that the mean degree reaches names the method."""
    line, best = hint(replace(facts, num_edges=None)), recommend(facts)
    if len(cases(facts)) == 1:
        assert f" take {best}: {best.reason}" in line
        return
    for part in line.partition(" take ")[2].split(", "):
        name, _, bound = part.removesuffix(" on").partition(" from a mean degree of ")
        if bound and abs((facts.mean_degree or 0) / float(bound) - 1) < 0.06:
            return  # the line rounds
        if not bound or (facts.mean_degree or 0) >= float(bound):
            break
    assert name.removesuffix(" below") == str(best)


@pytest.mark.parametrize(
    ("known", "method"),
    [
        ((0.5, 2_810, 7_981, "undirected", True, True), "AttributeEncoder"),
        ((2.9, 2_810, 7_981, "undirected", False, True), "ChungLu"),  # no delta, no encoder
        ((0.5, 4_039, 88_234), "ChungLu"),
        ((0.7, 4_039, 88_234), "PrivGraph"),
        ((5.0, 4_039, 88_234), "RandomizedResponse with denoise: spectral"),
        ((5.0, 81_306, 1_342_296), "PrivGraph"),
        ((6.0, 33_696, 257_660), "PrivGraph"),  # 5 + ln(33,696 / 6,000) = 6.73
        ((8.0, 33_696, 257_660), "RandomizedResponse with denoise: spectral"),
        ((20.0, 100_001, 999_999), "PrivGraph"),
        ((1.0, 1_224, 16_715), "ChungLu"),  # where the rule was mended
    ],
)
def test_the_rule_for_links_on_graphs_where_it_was_made(known, method):
    assert str(recommend(Facts("links", *known))) == method


@pytest.mark.parametrize(
    ("known", "method"),
    [
        ((0.5, 2_810, 7_981, "undirected", True, True), "AttributeEncoder"),
        ((2.0, 1_224, 16_715), "RandomizedResponse with denoise: spectral"),  # 14.9 < 30 / 2
        ((2.0, 5_201, 198_353), "RandomizedResponse with denoise: spectral"),  # 76 > 2 x 30.7
        ((5.0, 9_000, 50_000), "PrivGraph"),  # 11 < 2 x 7.8
        ((5.0, 9_000, 90_000), "RandomizedResponse with denoise: spectral"),
        ((8.0, 200_000, 2_000_000), "PrivGraph"),  # all pairs do not fit
    ],
)
def test_the_rule_for_links_beyond_degrees(known, method):
    assert str(recommend(Facts("links-beyond-degrees", *known))) == method


@given(known_facts())
def test_degrees_alone_are_never_taken_for_links_beyond_degrees(facts):
    if facts.goal in OF_LINKS:
        beyond = cases(replace(facts, goal="links-beyond-degrees"))
        assert "ChungLu" not in {case.method for case in beyond}
        assert beyond[-1].least_degree == 0
        bounds = [case.least_degree for case in beyond]
        assert bounds == sorted(set(bounds), reverse=True)


@pytest.mark.parametrize("goal", sorted(OF_LINKS))
@pytest.mark.parametrize(("epsilon", "num_nodes"), [(0.5, 3_000), (2.0, 5_000), (5.0, 20_000)])
def test_reports_need_a_mean_degree_that_grows_with_their_noise(goal, epsilon, num_nodes):
    """The noise is the root of N times the deviation of an unbiased report, counted by hand."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    deviation = math.sqrt(truth * (1 - truth)) / (2 * truth - 1)
    noise = math.sqrt(num_nodes) * deviation
    assert noise_of_reports(num_nodes, epsilon) == pytest.approx(noise)
    first = cases(Facts(goal, epsilon, num_nodes))[0]
    assert first.method == "RandomizedResponse"
    assert first.least_degree == pytest.approx((2.5 if goal == "links" else 2) * noise)


def test_reports_that_do_not_fit_are_not_recommended():
    for goal in OF_LINKS:
        dense = [Facts(goal, epsilon, 60_000, 10**9) for epsilon in (0.5, 5.0)]
        assert [recommend(facts).method for facts in dense] == ["PrivGraph", "RandomizedResponse"]


@pytest.mark.parametrize(
    ("epsilon", "num_graphs", "num_edges", "method"),
    [
        (1.0, None, None, "PrivateGraphKernel"),  # fit knows no edges
        (1.0, 1113, None, "PrivateGraphKernel"),
        (1.0, 99, None, "node_kernel"),
        (1.0, 1178, 843_046, "PrivateGraphKernel"),  # 716 edges a graph
        (0.1, 1178, 843_046, "node_kernel"),
        (10.0, 188, 3_721, "node_kernel"),  # 20 edges a graph, of molecules
        (10.0, 600, 37_282, "PrivateGraphKernel"),
        (10.0, 99, 99_000, "node_kernel"),
    ],
)
def test_public_features_are_named_where_private_counts_add_nothing(
    epsilon, num_graphs, num_edges, method
):
    facts = Facts("labels", epsilon, num_edges=num_edges, kind="set", num_graphs=num_graphs)
    assert str(recommend(facts)) == configuration_of(recommend(facts)).replace(
        "private_kernel", "PrivateGraphKernel"
    )
    assert str(recommend(facts)) == method
    assert METHODS[recommend(facts).method].capabilities.reads is GraphSetRecords


def test_plan_says_from_which_graphs_and_edges_on_private_counts_add_something(capsys):
    plan = ["plan", "--goal", "labels", "--epsilon", "2"]
    assert main(plan) == 0
    said = capsys.readouterr().out
    assert " take PrivateGraphKernel: " in said
    assert "from 100 graphs of about 200 edges on average on, and of 30 where" in said
    assert main([*plan, "--num-graphs", "4110", "--num-edges", "132000"]) == 0
    said = capsys.readouterr().out
    assert " take node_kernel (32.1 edges a graph): it reads public features alone" in said
    assert main([*plan, "--num-edges", "9"]) == 2
    assert "--num-edges of a set needs --num-graphs" in capsys.readouterr().err
    assert main([*plan, "--num-graphs", "0"]) == 2
    assert "--num-graphs must be 1 or more, got 0" in capsys.readouterr().err
    assert main(["plan", "--goal", "links", "--epsilon", "2", "--num-graphs", "9"]) == 2
    assert "--num-graphs needs a goal of sets: clients, graphs, labels" in capsys.readouterr().err


@pytest.mark.parametrize("goal", GOALS)
def test_other_data_have_other_goals(goal):
    with pytest.raises(ValueError, match=f"{goal} is no goal of"):
        Facts(goal, 1.0, kind="directed" if goal in OF_SETS else "set")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"goal": "classes"}, "classes is a goal of nodes with public attributes"),
        ({"goal": "classes", "has_attributes": True, "allows_delta": False}, "with a delta"),
        ({"goal": "classes", "kind": "bipartite"}, "undirected graphs, and this one is bipartite"),
    ],
)
def test_goals_of_columns_name_what_they_need(facts, words):
    with pytest.raises(Refusal, match=words):
        Facts(epsilon=1.0, **facts)


def test_the_hint_before_a_run_does_not_follow_the_edges():
    lines = set()
    for edges in ([(0, 1)], [(i, j) for i in range(12) for j in range(i)]):
        data = EdgeListDataModule(edges, nodes=[str(node) for node in range(12)])
        data.setup("fit")
        for name in ("DPNetGAN", "RandomizedResponse"):
            method = made(name, SHORT | {"num_nodes": 12, "denoise": "spectral"})
            lines.add(better_method(method, data.records, Budget(1.0, 1e-6)))
    ends = {line.partition(";")[0] for line in lines}
    assert ends == {
        "for links at epsilon 1 on 12 nodes take RandomizedResponse with denoise: spectral "
        + "from a mean degree of 8.3 on, ChungLu below"
    }


def test_the_hint_knows_public_attributes_and_the_delta():
    data = data_of("undirected", True)
    method = made("DPNetGAN", SHORT | {"num_nodes": 12})
    assert " take AttributeEncoder" in better_method(method, data.records, Budget(1.0, 1e-6))
    assert "AttributeEncoder" not in better_method(method, data.records, Budget(1.0, 0.0))
    assert better_method(method, data.records, Budget(math.inf, 1e-6)) is None
    for epsilon, better in ((5.0, "PooledSet"), (0.5, "ErdosRenyiSet")):
        budget = Budget(epsilon, 1e-6)
        hint = better_method(made("DPGVAE", SHORT), data_of("set", False).records, budget)
        assert better in hint


def test_plan_of_a_goal_needs_no_training(capsys):
    goal = ["plan", "--epsilon", "2", "--goal", "links", "--nodes", "5000"]
    assert main(goal) == 0
    assert (
        capsys.readouterr().out == f"hint: {hint(Facts('links', 2.0, 5000, allows_delta=False))}\n"
    )
    assert main([*goal, "--delta", "1e-6", "--attributes"]) == 0
    assert "take AttributeEncoder" in capsys.readouterr().out
    assert main([*goal, "--steps", "3"]) == 2
    assert "required: --delta, --sample-rate\n" in capsys.readouterr().err


def test_hubs_lower_the_bound_of_reports_beyond_degrees_alone(capsys):
    # An encyclopedia of 5,201 pages: reports have the larger AUC beyond degrees at .5 and at 1.
    for epsilon in (0.5, 1.0):
        facts = Facts("links-beyond-degrees", epsilon, 5201, 198_353)
        assert recommend(facts).method == "PrivGraph"
        assert recommend(replace(facts, has_hubs=True)).method == "RandomizedResponse"
        all_pairs = replace(facts, goal="links")
        assert recommend(all_pairs) == recommend(replace(all_pairs, has_hubs=True))
    words = "plan --epsilon 1 --goal links-beyond-degrees --nodes 5201 --edges 198353 --hubs"
    assert main(words.split()) == 0
    assert "take RandomizedResponse" in capsys.readouterr().out


def test_plan_says_how_many_reports_fit(capsys):
    plan = ["plan", "--epsilon", "6", "--goal", "links", "--nodes"]
    assert main([*plan, "33696"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == (  # 567,693,360 / (1 + exp(5.7)) pairs
        "hint: RandomizedResponse with denoise: spectral: about 1,893,148 false reports at epsilon "
        "6; at most 50,000,000 fit, from an epsilon of 2.47 on"
    )
    assert main([*plan, "9000"]) == 0
    assert "at most 50,000,000 fit, at any epsilon" in capsys.readouterr().out
    assert main([*plan, "100001"]) == 0
    assert "takes at most 100,000 nodes" in capsys.readouterr().out


def test_plan_and_list_print_the_rule(capsys):
    options = ["--epsilon", "2", "--delta", "1e-6", "--sample-rate", ".05", "--steps", "100"]
    assert main(["plan", *options, "--nodes", "4039", "--edges", "88234"]) == 0
    assert hint(Facts("links", 2.0, 4039, 88234)) in capsys.readouterr().out
    assert main(["plan", *options, "--nodes", "99", "--kind", "directed", "--attributes"]) == 0
    expected = hint(Facts("links", 2.0, 99, kind="directed", has_attributes=True))
    assert expected in capsys.readouterr().out
    assert main(["plan", *options, "--goal", "graphs"]) == 0
    assert hint(Facts("graphs", 2.0, kind="set")) in capsys.readouterr().out
    assert main(["plan", *options, "--nodes", "99", "--goal", "graphs", "--kind", "directed"]) == 2
    assert "graphs is no goal of one graph" in capsys.readouterr().err
    assert main(["plan", "--epsilon", "0", "--goal", "links", "--nodes", "99"]) == 2
    assert "epsilon must be positive, got 0" in capsys.readouterr().err


def test_list_names_a_configuration_of_each_recommended_method(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("recommended, by goal")
    for line, (goal, words) in zip(lines[1 : 1 + len(GOALS)], GOALS.items(), strict=True):
        start, _, names = line.partition(": ")
        assert start == f"  {words}"
        for case, name in zip(choices(goal), names.split(", "), strict=True):
            model = yaml.safe_load(shipped_configs()[name].read_text())["model"]
            assert model["class_path"] == case.method
            assert model.get("init_args", {}).get("denoise", "") == case.denoise
            assert (name, case.method) != ("node_kernel", "PrivateGraphKernel")  # a baseline


def methods_in(page, heading):
    """Classes that a table names."""
    section = (ROOT / page).read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return {name for row in section.splitlines() if row[:1] == "|" for name in CLASS.findall(row)}


def test_tables_name_the_recommended_methods():
    recommended = {case.method for goal in GOALS for case in choices(goal)}
    assert methods_in("docs/choosing.md", "In ten rows") == recommended
    assert methods_in("README.md", "Which method?") == recommended


def test_pages_name_the_bound_of_the_rule():
    """PrivGraph begins where the mean degree times epsilon reaches the number of the pages."""
    (signal,) = {  # of more nodes than the reports take
        round(cases(Facts("links", epsilon, 200_000))[0].least_degree * epsilon)
        for epsilon in (0.5, 1.0, 2.9, 8.0)
    }
    texts = [METHODS[name].__doc__ for name in ("PrivGraph", "ChungLu", "RandomizedResponse")]
    assert all(f"{signal} / epsilon on" in " ".join(text.split()) for text in texts)
    assert f"d = {signal} / epsilon on" in (ROOT / "docs/choosing.md").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_a_method_of_sets_names_one_that_learns_the_graph(kind):
    data = data_of(kind, False)
    with pytest.raises(MisconfigurationException) as refused:
        made("ErdosRenyiSet", SHORT).accept_data(data)
    named = str(refused.value).rpartition(": ")[2]
    made(named, SHORT | {"num_nodes": 12}).accept_data(data)


def test_the_page_on_kinds_names_the_methods_that_learn_them():
    page = " ".join((ROOT / "docs/data.md").read_text().split())
    sentence = page.partition(" learn all three kinds.")[0].rpartition(". ")[2]
    for kind in ("directed", "bipartite"):
        assert {*CLASS.findall(sentence)} == {
            n for n in METHODS if kind in METHODS[n].capabilities.kinds
        }
