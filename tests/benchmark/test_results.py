"""Tables of results equal numbers computed by hand."""

import csv
import math
import statistics
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from markupsafe import escape

from lightning_dpg.benchmark import report
from lightning_dpg.benchmark import results as tables
from lightning_dpg.benchmark.results import markdown
from lightning_dpg.benchmark.tasks import SINGLE_GRAPHS
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.metrics.glossary import GLOSSARY
from lightning_dpg.metrics.queries import HIGHER_IS_BETTER, QUERIES
from tests.recorded import result


def markdown_row(lines, title):
    """Values of the row of a method, by column."""
    heads, *rows = ([job.strip() for job in line.split("|")[1:-1]] for line in lines)
    (row,) = (row for row in rows if row[0] == title)
    return dict(zip(heads, row, strict=True))


def test_markdown_against_numbers_by_hand():
    assert {"edge_overlap", "community_nmi"} <= HIGHER_IS_BETTER
    results = [
        result("near", 0, triangles=0.1, edge_overlap=0.2, community_nmi=0.5, cluster=None),
        result("near", 1, triangles=0.3, edge_overlap=0.4, community_nmi=0.5, cluster=0.25),
        result("far", 0, triangles=0.5, edge_overlap=0.7, community_nmi=0.5, cluster=0.5),
        result("far", 1, triangles=2000.0, edge_overlap=0.8, community_nmi=0.5, cluster=0.5),
        result("open", 0, epsilon="inf", spent="inf", edge_overlap=1.0),
        result("beyond", 0, spent=1.5, edge_overlap=0.9),
        result("half", 0, edge_overlap=0.95),
        result("half", 1, failure="for want\nof memory"),
    ]
    text = markdown(results, SINGLE_GRAPHS)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    near, far = markdown_row(lines, "near"), markdown_row(lines, "far")
    # sd of two numbers is their distance over the root of two
    assert near["triangles"] == "0.2 ± 0.14"  # less, but not significantly, at this deviation
    assert far["triangles"] == "1,000 ± 1,414"
    assert near["edge_overlap ↑"] == "0.3 ± 0.14"
    assert far["edge_overlap ↑"] == "**0.75 ± 0.071**"
    assert near["community_nmi ↑"] == far["community_nmi ↑"] == "0.5"  # nothing set apart
    assert near["cluster"] == "0.25 (1 of 2)"  # a number less: not best
    assert far["cluster"] == "0.5"  # and the only one left sets nothing apart
    assert near["num_nodes"] == "0"
    assert near["fit (s)"] == "2.5 ± 0.71"
    for title in ("open (not private)", "beyond (not private)"):
        row = markdown_row(lines, f"*{title}*")
        assert all(job.startswith("*") and not job.startswith("**") for job in row.values())
    assert "**" not in "".join(markdown_row(lines, "half").values())
    assert "- half, run 1 failed: for want of memory" in text
    assert "- near: what near guarantees" in text


def test_rows_of_conditional_guarantees_are_marked_and_the_mark_is_explained():
    results = [result("chain", 0), result("chain", 1), result("plain", 0)]
    assert tables.MARK not in markdown(results, SINGLE_GRAPHS)
    results[1]["privacy"]["conditional"] = True
    text = markdown(results, SINGLE_GRAPHS)
    assert "\n| chain † | " in text
    assert "\n- chain †: " in text
    assert "\n| plain | " in text
    assert text.count(tables.FOOTNOTE) == 1
    assert [row["conditional"] for row in tables.csv_rows(results)][:: len(QUERIES)] == [
        *(False, True, False)
    ]
    page = report.page(
        results, {"karate": from_networkx(nx.karate_club_graph())}, SINGLE_GRAPHS, Path()
    )
    assert '<th data-method="chain" scope=col>chain †</th>' in page
    assert page.count(str(escape(tables.FOOTNOTE))) == 1


def marked(query, **means):
    """Rows that are marked of those with runs at ``mean - 0.1`` and ``mean + 0.1``."""
    roles = {"baseline": "baseline", "untrained": "untrained"}
    results = [
        result(name, run, role=roles.get(name, "method"), **{query: mean + shift})
        for name, mean in means.items()
        for run, shift in enumerate((-0.1, 0.1))
    ]
    (table,) = tables.tables(results)
    return tables.best(table.rows, query, SINGLE_GRAPHS)


def test_ties_are_marked_together_and_baselines_only_alone():
    # Each mean has the variance 0.02 / 2, a difference the standard error 0.1414, two are 0.2828.
    assert marked("triangles", a=1.0, b=1.28, c=1.29) == {"a", "b"}
    assert marked("edge_overlap", a=0.3, b=0.5, c=0.6) == {"b", "c"}
    assert marked("triangles", baseline=1.0, a=1.28, c=1.29) == {"a"}
    assert marked("triangles", baseline=1.0, untrained=1.1, a=1.29) == {"baseline", "untrained"}
    assert marked("triangles", baseline=1.0, a=1.2) == set()
    assert marked("triangles", a=1.0) == set()
    one_run = [result(name, triangles=mean) for name, mean in (("a", 1.0), ("b", 1.01))]
    assert tables.best(tables.tables(one_run)[0].rows, "triangles", SINGLE_GRAPHS) == {"a"}


def test_rows_without_privacy_are_in_every_table():
    results = [result("a", epsilon=eps) for eps in (2.0, 0.5)]
    results.append(result("open", epsilon="inf", spent="inf"))
    found = tables.tables(results)
    assert [table.epsilon for table in found] == [0.5, 2.0]
    assert [[row.method for row in table.rows] for table in found] == [["a", "open"]] * 2


def test_summary_is_that_of_the_standard_library(tmp_path):
    values = np.random.default_rng(0).normal(size=7).tolist()
    mean, sd, runs = tables.summarize([*values, None])
    assert (mean, runs) == (pytest.approx(statistics.mean(values)), 7)
    assert sd == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in values) / 6))
    tables.write_csv([result("a", triangles=None), result("a", 1, "why")], tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == tables.COLUMNS
    assert len(rows) == len(QUERIES) + 1
    assert [row["error"] for row in rows if row["query"] == "triangles"] == [""]
    assert rows[-1]["note"] == "failed: why"


def test_results_have_compact_tables_for_notebooks(tmp_path):
    runs = [
        result("a<b", 0, triangles=0.125),
        result("a<b", 1, triangles=0.125),
        result("worse", 0, triangles=0.5),
        result("gone", 0, failure="broken"),
    ]
    found = tables.Results(runs, {}, SINGLE_GRAPHS, tmp_path, [tmp_path / "report.html"])
    content = found._repr_html_()
    assert "<td><b>0.125</b></td><td>0.5</td><td>-</td>" in content
    assert "<th>a&lt;b</th>" in content
    assert "1 of 4 fits failed" in content
    assert str(tmp_path / "report.html") in content
    assert content.count("<tr>") == len(SINGLE_GRAPHS.win_queries) + 2
    assert str(escape(GLOSSARY["triangles"].text)) in content
    assert repr(found).splitlines() == [
        "Results of 4 fits, 1 of them failed: tables of karate at epsilon 1",
        f"all numbers: {tmp_path / 'report.html'}",
        "not private: the numbers were computed from the real graphs",
    ]
