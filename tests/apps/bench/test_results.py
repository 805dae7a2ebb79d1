"""Tables of results equal numbers computed by hand."""

import csv
import math
import statistics
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

from lightning_dpg.apps.bench import report
from lightning_dpg.apps.bench import results as tables
from lightning_dpg.apps.bench.tasks import (
    GRAPH_LABELS,
    GRAPH_SETS,
    OF_KIND,
    SINGLE_GRAPHS,
    chosen_queries,
)
from lightning_dpg.apps.bench.views import Benchmark
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.metrics.queries import HIGHER_IS_BETTER, QUERIES
from tests.recorded import result


def table_of(runs, queries, task=SINGLE_GRAPHS):
    """Values of the one table by method and column."""
    ((*_, head, rows, _, _),) = Benchmark(runs, {}, task, Path(), [], queries).sections()
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def test_tables_against_numbers_by_hand():
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
    table = table_of(results, QUERIES)
    near, far = table["near"], table["far"]
    # sd of two numbers is their distance over the root of two
    assert near["triangles"] == "0.2 ± 0.14"  # less, but not significantly, at this deviation
    assert far["triangles"] == "1,000 ± 1,414"
    assert near["edge_overlap ↑"] == "0.3 ± 0.14"
    assert far["edge_overlap ↑"] == "<b>0.75 ± 0.071</b>"
    assert near["community_nmi ↑"] == far["community_nmi ↑"] == "0.5"  # nothing set apart
    assert near["cluster"] == "0.25 (1 of 2)"  # a number less: not best
    assert far["cluster"] == "0.5"  # and the only one left sets nothing apart
    assert near["num_nodes"] == "0"
    for title in ("open (not private)", "beyond (not private)"):
        assert all(each.startswith("<i>") for each in table[f"<i>{title}</i>"].values())
    assert "<b>" not in "".join(table["half"].values())


@pytest.mark.parametrize("task", [*OF_KIND.values(), GRAPH_SETS, GRAPH_LABELS])
def test_tables_have_ten_columns_or_the_named_ones(task):
    runs = [result("a", number) for number in (0, 1)]
    for run in runs:
        run["answers"] |= dict.fromkeys(task.queries, run["answers"]["triangles"])
    names = [name.strip(" ↑") for name in table_of(runs, task.headline, task)["a"]]
    ends = [f"beats {task.baselines[0]}", "epsilon proved"]
    assert names == ["method", *task.headline, *ends]
    assert len(names) == (5 if task is GRAPH_LABELS else 10)
    assert {*task.headline} <= {*task.queries}
    assert chosen_queries(None, task) == task.headline
    assert chosen_queries(["all"], task) == task.queries


def shown(tmp_path, runs, *queries):
    files = [tmp_path / "report.html"]
    return Benchmark(runs, {}, SINGLE_GRAPHS, tmp_path, files, queries or SINGLE_GRAPHS.headline)


def test_a_data_frame_is_the_csv_file(tmp_path):
    runs = [result("a", triangles=None), result("b", epsilon="inf", spent="inf")]
    frame = shown(tmp_path, [*runs, result("a", 1, "why")]).to_dataframe()
    (tmp_path / "r.csv").write_text(tables.csv_text([*runs, result("a", 1, "why")]), newline="")
    read = pd.read_csv(tmp_path / "r.csv")
    for column in frame.select_dtypes("number"):
        np.testing.assert_array_equal(frame[column].astype(float), read[column].astype(float))
    assert (frame["query"].fillna("") == read["query"].fillna("")).all()
    assert frame["epsilon"].unique().tolist() == [1.0, math.inf]


def test_without_pandas_the_way_out_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(CommandError, match="pip install pandas"):
        shown(tmp_path, [result("a")]).to_dataframe()


def test_rows_of_conditional_guarantees_are_marked_and_the_mark_is_explained():
    results = [result("chain", 0), result("chain", 1), result("plain", 0)]
    assert {"chain", "plain"} < {*table_of(results, SINGLE_GRAPHS.headline)}
    results[1]["privacy"]["conditional"] = True
    assert {"chain †", "plain"} < {*table_of(results, SINGLE_GRAPHS.headline)}
    assert [row[tables.COLUMNS.index("conditional")] for row in tables.csv_rows(results)][
        :: len(QUERIES)
    ] == [*(False, True, False)]
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


def test_nothing_is_bold_and_no_win_counted_of_one_run(tmp_path):
    chung_lu = {"role": "baseline", "triangles": 9.0}

    def forms(num_runs):
        """Notebook and page of two methods and the baseline of the wins."""
        baseline = tables.baseline_label(SINGLE_GRAPHS)
        runs = [
            *(result("a", run, triangles=1.0, num_edges=0.5) for run in range(num_runs)),
            *(result("b", run, triangles=2.0) for run in range(num_runs)),
            *(result(baseline, run, **chung_lu) for run in range(num_runs)),
        ]
        graphs = {"karate": from_networkx(nx.karate_club_graph())}
        (tmp_path / "runs").mkdir(exist_ok=True)
        page = report.page(runs, graphs, SINGLE_GRAPHS, tmp_path)
        page = page[: page.index('<script type="application/json"')]
        drawn = shown(tmp_path, runs, "triangles")
        return drawn._repr_html_(), page

    notebook, page = forms(1)
    assert "beats" not in notebook + page
    assert "<b>" not in notebook and "<td><b>" not in page
    assert all(tables.ONE_RUN in form for form in (notebook, page))

    notebook, page = forms(2)
    assert "<b>1</b>" in notebook and "<b>1</b>" in page
    assert "beats erdos_renyi" in notebook and "beats erdos_renyi" in page
    assert not any(tables.ONE_RUN in form for form in (notebook, page))


def test_a_query_of_the_first_run_only_sets_nothing_apart():
    baseline = tables.baseline_label(SINGLE_GRAPHS)
    runs = [
        result(name, run, role=role, triangles=mean)
        for name, role, mean in (("a", "method", 1.0), (baseline, "baseline", 9.0))
        for run in (0, 1)
    ]
    for run in runs:
        if run["run"]:
            del run["answers"]["triangles"]
    rows = tables.tables(runs)[0].rows
    assert tables.best(rows, "triangles", SINGLE_GRAPHS) == set()
    assert tables.wins(rows, rows[0], SINGLE_GRAPHS).startswith("0 of ")


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
    runs = [result("a", triangles=None), result("a", 1, "why")]
    (tmp_path / "r.csv").write_text(tables.csv_text(runs), newline="")
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
    found = shown(tmp_path, runs)
    content = found._repr_html_()
    assert "<td><b>0.125</b></td>" in content and "a&lt;b" in content
    assert "<td>0.5</td>" in content and "<i>gone</i>" in content
    assert "1 of 4 fits failed" in content
    assert str(tmp_path / "report.html") in content
    assert content.count("<tr>") == 5
    assert repr(found).splitlines() == [
        "Benchmark of 4 fits: tables of karate at epsilon 1",
        "1 of 4 fits failed.",
        f"all numbers: {tmp_path / 'report.html'}",
        "to_dataframe()",
        "not private: the numbers were computed from the real graphs",
    ]
