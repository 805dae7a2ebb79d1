"""The page of ``evaluate`` holds the numbers of the table, works offline, and escapes all names."""

import base64
import html
import json
import re
from functools import cache, partial
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from markupsafe import escape

from lightning_dpg.evaluation.evaluate import evaluate
from lightning_dpg.evaluation.evaluation import Evaluation
from lightning_dpg.evaluation.page import MAX_SHOWN, closeness
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.metrics import communities, functional
from lightning_dpg.metrics.figures import Axis, Chart, Series
from lightning_dpg.metrics.functional import degrees, estimate_local_clustering, estimate_triangles
from lightning_dpg.metrics.glossary import glossary
from lightning_dpg.metrics.pictures import clustering_curve, distance_curve
from lightning_dpg.metrics.queries import QUERIES, Answer, profile
from lightning_dpg.pages.charts import inline

EVIL = "</script><script>console.error('evil')</script><img src=x>{{LEAD}}"
KARATE = nx.karate_club_graph()
PROBE = """
<script>
addEventListener("load", () => {
  document.querySelectorAll("details").forEach((box) => { box.open = true; });
  const seen = {
    width: [document.scrollingElement.scrollWidth, innerWidth],
    loaded: performance.getEntriesByType("resource").map((entry) => entry.name).filter((name) => !name.startsWith("data:")),
    unnamed: [...document.querySelectorAll("svg[role=img], img, summary, a")].filter((node) => !(node.getAttribute("aria-label") || node.alt || node.textContent.trim())).length,
    regions: [...document.querySelectorAll(".scroll")].every((box) => box.tabIndex === 0),
  };
  if (parent === window) document.body.dataset.seen = JSON.stringify(seen);
  else parent.postMessage(JSON.stringify(seen), "*");
});
</script>
"""


@cache
def evaluation():
    """Karate with hostile names beside a rewired copy, which has a guarantee, and les_miserables."""
    real = nx.relabel_nodes(KARATE, {0: EVIL})
    rewired = nx.relabel_nodes(nx.gnm_random_graph(34, 80, seed=2), {0: EVIL})
    found = evaluate(real, [rewired, nx.les_miserables_graph()])
    first, second = found.measured
    named = (
        first._replace(name=f"runs/{EVIL}.npz", guarantee="edge-level (1, 0)-DP & more"),
        second,
    )
    return Evaluation(EVIL, found.real, named)


@pytest.fixture
def page(tmp_path):
    evaluation().to_html(tmp_path / "page.html")
    return (tmp_path / "page.html").read_text()


def downloads(page):
    """The files behind the links of a page, by their names."""
    links = re.findall(r'download="([^"]*)" href="data:[^"]*;base64,([^"]*)"', page)
    return {name: base64.b64decode(content).decode() for name, content in links}


def test_numbers_are_those_of_json_csv_and_table(page, tmp_path):
    found = evaluation()
    files = downloads(page)
    assert files["evaluation.json"] == found.to_json()
    found.to_csv(tmp_path / "out.csv")
    assert files["evaluation.csv"].encode() == (tmp_path / "out.csv").read_bytes()
    rows = re.findall(r'<tr data-query="(\w+)">(.*?)</tr>', page)
    assert sorted(name for name, _ in rows) == sorted(QUERIES * 2)
    content = json.loads(files["evaluation.json"])["graphs"]
    for number, (name, row) in enumerate(rows):
        answer = content[number // len(QUERIES)]["queries"][name]
        cells = re.findall(r"<td[^>]*>([^<&]*)", row)
        for shown, key in zip(cells, ("real", "synthetic", "error"), strict=True):
            expected = answer[key]
            if expected is None:
                assert shown == "-"
            else:
                assert float(shown.replace(",", "")) == pytest.approx(expected, rel=5e-3, abs=5e-4)
        assert str(escape(glossary()[name].text)) in row
        assert ("↑" in row) == (glossary()[name].better == "higher")


def test_guarantee_is_said_or_its_absence(page):
    assert "Not private." in page
    assert "<strong>edge-level (1, 0)-DP &amp; more</strong>" in page
    assert "No statement was given" in page


def test_hostile_names_are_text_and_nothing_is_loaded(page):
    assert EVIL not in page
    assert str(escape(EVIL)) in page
    markup = re.sub(r"&\w+;", "", page)
    assert not re.search(
        r'\b(src|href)="(?!data:|#m)|url\(|@import|fetch\(|XMLHttp|WebSocket', markup
    )
    assert "default-src 'none'" in page
    assert page.count("<script") == 1


@pytest.mark.parametrize("name", ["probe.html", "narrow.html"])
def test_in_a_browser(page, tmp_path, probed, name):
    seen = probed(tmp_path, page, PROBE, name)
    assert seen["width"][0] <= seen["width"][1]
    assert name != "narrow.html" or seen["width"][1] == 360
    assert seen["loaded"] == []
    assert seen["unnamed"] == 0
    assert seen["regions"]


def test_few_of_many_graphs_are_drawn():
    graph = from_networkx(nx.barabasi_albert_graph(320, 2, seed=0))
    found = evaluate(graph, graph)
    many = Evaluation("real", found.real, found.measured * (MAX_SHOWN + 3))
    content = many.to_html_text()
    assert content.count("<img ") == MAX_SHOWN + 1
    assert content.count('<details class="block"') == MAX_SHOWN + 3


def test_sampled_figures_and_those_left_out_are_said_on_the_page(monkeypatch):
    monkeypatch.setattr(functional, "EXACT_PATHS", 100)
    monkeypatch.setattr(communities, "MANY_EDGES", 100)
    monkeypatch.setattr(communities, "find_spec", lambda name: None)
    # Fewer wedges, which is faster.
    for estimate in (estimate_triangles, estimate_local_clustering):
        monkeypatch.setattr(functional, estimate.__name__, partial(estimate, num_wedges=20_000))
    graph = from_networkx(nx.gnm_random_graph(320, 1500, seed=0))
    found = evaluate(graph, graph)
    closed = "triangles, global_clustering, avg_clustering, cluster"
    for content in (found.to_html_text(), found._repr_html_(), str(found)):
        text = html.unescape(content)
        assert f"sampled (standard errors in the notes): {closed}" in text
        assert "pip install 'lightning_dpg[fast]'): community_nmi, modularity" in text
    for content in (found.to_html_text(), found.to_json(), str(found)):
        assert "real and synthetic: 2,000,000 wedges sampled, standard errors " in content


def test_summary_for_notebooks_is_short_and_escaped():
    content = evaluation()._repr_html_()
    assert EVIL not in content
    assert "<script" not in content
    assert content.count("<tr><th style") == 2 * len(QUERIES)
    assert "not private" in content
    assert len(content) < 30_000


def test_an_evaluation_shows_its_tables_in_a_terminal():
    assert repr(evaluation()) == str(evaluation())


def test_close_is_an_error_to_a_tenth_or_an_agreement_from_nine_tenths():
    scores = {"max_degree": 0.1, "gini": 0.11, "degree_cosine": 0.9, "wedges": float("nan")}
    answers = {name: Answer(1.0, 1.0, score) for name, score in scores.items()}
    measured = SimpleNamespace(answers=answers)
    assert closeness(measured, "degrees") == "2 of 3 close"
    assert closeness(measured, "paths") == "-"


def test_distributions_against_networkx():
    graph = nx.barabasi_albert_graph(80, 3, seed=1)
    graph.add_edges_from((u, v) for u, v in nx.gnm_random_graph(80, 60, seed=3).edges)
    measured = profile(from_networkx(graph))
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    distances = [d for u in graph for v, d in lengths[u].items() if u != v]
    for distance, share in distance_curve(measured.distances):
        assert share == pytest.approx(np.mean(np.array(distances) == distance))
    clustering = nx.clustering(graph)
    curve = clustering_curve(degrees(measured.graph), measured.clustering)
    alone = {d for _, d in graph.degree if d < 5}  # these degrees have bins of their own
    for degree in alone:
        mean = np.mean([clustering[n] for n, d in graph.degree if d == degree])
        assert dict(curve)[degree] == pytest.approx(mean)


@pytest.mark.parametrize(
    ("points", "is_log"),
    [([], False), ([(1, 1)], True), ([(1, 0), (2, 0)], False), ([(0.001, 5), (1e6, 7e7)], True)],
)
def test_charts_stay_in_their_frame(points, is_log):
    picture = inline(Chart("t", Axis("x", is_log), Axis("y", is_log), [Series("real", points)]))
    assert "nan" not in picture
    assert "inf" not in picture
    drawn = r'd="([^"]*)" style="[^"]*stroke: var\(--real\); stroke-width: 2'
    dots = r'<use x="([^"]*)" y="([^"]*)" style="fill: var\(--real\)'
    lines = [line.replace("M", "L").split("L")[1:] for line in re.findall(drawn, picture)]
    places = [tuple(map(float, place.split())) for line in lines for place in line]
    places += [(float(x), float(y)) for x, y in re.findall(dots, picture)]
    assert len(places) == (2 if len(points) == 1 else len(points))  # a point alone is a dot as well
    assert all(46 <= x <= 343 and 10 <= y <= 190 for x, y in places)
