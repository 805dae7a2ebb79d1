"""The report of ``compare`` works in a browser: charts, choices, narrow screens, no network."""

import re

import networkx as nx
import numpy as np
import pytest
import torch
from markupsafe import escape

from lightning_dpg.apps.bench import report
from lightning_dpg.apps.bench.tasks import SINGLE_GRAPHS
from lightning_dpg.formats.io import from_networkx, write_graph
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.glossary import glossary
from lightning_dpg.metrics.pictures import adjacency_pixels, degree_curve
from lightning_dpg.metrics.queries import QUERIES

METHODS = {
    "private_gan": "method",
    "private_gan (untrained)": "untrained",
    "open_gan": "method",
    "erdos_renyi (baseline)": "baseline",
}
EPSILONS = (0.5, 1.0, 2.0)
EVIL = "</script><script>console.error('evil')</script><img src=x>"
# Run in a copy of the page: says what it finds in an attribute, which the browser prints.
PROBE = """
<script>
addEventListener("load", () => {
  const chart = () => document.querySelector("#chart svg");
  const lines = () => [...document.querySelectorAll("#chart polyline")].map((line) => line.getAttribute("points"));
  const seen = { first: chart().dataset.query, lines: lines(), width: [document.documentElement.scrollWidth, innerWidth] };
  const select = document.getElementById("query");
  select.value = "triangles";
  select.dispatchEvent(new Event("change"));
  Object.assign(seen, { second: chart().dataset.query, redrawn: lines(), hash: location.hash });
  const count = () => document.querySelectorAll("#chart g[data-method]").length;
  seen.groups = count();
  document.querySelector("#legend button").click();
  seen.without = count();
  seen.rows = shownRows();
  const heads = [...document.querySelectorAll("section.result:not([hidden]) table:not(.cost) thead th")];
  seen.heads = heads.filter((head) => head.offsetWidth > 0).map((head) => head.dataset.method ?? head.textContent);
  const cost = document.querySelector("section.result:not([hidden]) table.cost");
  const order = () => [...cost.tBodies[0].rows].map((row) => row.dataset.method);
  cost.querySelector("thead button").click();
  seen.up = order();
  cost.querySelector("thead button").click();
  seen.down = order();
  const meaning = document.querySelector("section.result:not([hidden]) tr[data-query=triangles] details");
  seen.closed = meaning.querySelector("p").checkVisibility();
  meaning.querySelector("summary").click();
  seen.opened = meaning.querySelector("p").checkVisibility();
  seen.focusable = meaning.querySelector("summary").tabIndex;
  seen.scrolled = [document.documentElement.scrollWidth, innerWidth];
  seen.loaded = performance.getEntriesByType("resource").map((entry) => entry.name).filter((name) => !name.startsWith("data:"));
  seen.sections = [...document.querySelectorAll("section.result")].filter((section) => !section.hidden).map((section) => section.dataset.graph + section.dataset.epsilon);
  seen.degrees = document.querySelectorAll("section.result:not([hidden]) .degrees svg").length;
  const shapes = [...document.querySelectorAll("section.result:not([hidden]) figure img")].map((image) => image.getBoundingClientRect());
  seen.square = shapes.length > 0 && shapes.every((box) => Math.abs(box.width - box.height) < 1);
  seen.footer = document.querySelector("footer").getBoundingClientRect().left - document.querySelector("h1").getBoundingClientRect().left;
  seen.unnamed = [...document.querySelectorAll("svg[role=img], img, select, button")].filter((node) => !(node.getAttribute("aria-label") || node.alt || node.labels?.length || node.textContent.trim())).length;
  if (parent === window) document.body.dataset.seen = JSON.stringify(seen);
  else parent.postMessage(JSON.stringify(seen), "*");
});
</script>
"""


def recorded(method, graph, epsilon, run, error):
    is_open = method == "open_gan"
    answers = {
        query: {"real": 3.0, "synthetic": 2.0, "error": error * (1 + i), "note": ""}
        for i, query in enumerate(QUERIES)
    }
    spent = "inf" if is_open else epsilon
    return {
        "name": f"{method}-{graph}-{epsilon}",
        "method": method,
        "role": METHODS[method],
        "graph": graph,
        "epsilon": "inf" if is_open else epsilon,
        "run": run,
        "digest": "",
        "failure": None,
        "seconds": {"fit": 1.0, "draw": 0.1, "total": 1.2},
        "privacy": {
            "relation": "edge",
            "mode": "plain",
            "epsilon": spent,
            "delta": 1e-6,
            "accountant": "PRV",
            "guarantee": f"what {method} guarantees",
        },
        "answers": answers,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report on two graphs, of which one has a name that must not be taken for HTML."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    graphs = {name: from_networkx(nx.karate_club_graph()) for name in ("karate", EVIL)}
    runs = []
    for graph in graphs:
        for method in METHODS:
            for epsilon in EPSILONS if method != "open_gan" else EPSILONS[:1]:
                errors = rng.uniform(0.1, 0.5, 2)
                runs += [recorded(method, graph, epsilon, run, errors[run]) for run in range(2)]
        failure = {"run": 2, "failure": f"for want of {EVIL}", "privacy": None, "answers": None}
        runs.append(runs[-1] | failure)
    for method in METHODS:
        place = folder / "runs" / f"{method}-karate-0.5" / "release"
        place.mkdir(parents=True)
        drawn = from_networkx(nx.gnm_random_graph(34, 78, seed=1))
        write_graph(drawn, place / "synthetic-0.npz")
    (folder / "report.html").write_text(report.page(runs, graphs, SINGLE_GRAPHS, folder))
    return folder


def probe(folder, probed, page, fragment=""):
    return probed(folder, (folder / "report.html").read_text(), PROBE, page, fragment)


def test_page_draws_without_complaint(folder, browser):
    dom, said = browser(f"{(folder / 'report.html').as_uri()}#query=modularity&epsilon=2")
    assert not said
    chart = dom[dom.index('id="chart"') : dom.index('id="legend"')]
    assert 'data-query="modularity"' in chart
    for method in METHODS:
        assert f'data-method="{method}"' in chart
    assert chart.count("<polyline") == 3
    assert EVIL not in dom


def test_choices_redraw(folder, probed):
    seen = probe(folder, probed, "probe.html", "#query=modularity&graph=karate&epsilon=0.5")
    assert (seen["first"], seen["second"]) == ("modularity", "triangles")
    assert seen["lines"] != seen["redrawn"]
    assert "query=triangles" in seen["hash"]
    assert (seen["groups"], seen["without"]) == (len(METHODS), len(METHODS) - 1)
    assert seen["sections"] == ["karate0.5"]
    assert seen["degrees"] == 1 + len(METHODS)  # the real graph's, too
    assert seen["unnamed"] == 0
    assert seen["square"]
    assert abs(seen["footer"]) < 1  # also of a page that is wider than its content


def test_queries_open_their_meaning(folder, probed):
    for page in ("probe.html", "narrow.html"):
        seen = probe(folder, probed, page)
        assert (seen["closed"], seen["opened"]) == (False, True)
        assert seen["focusable"] == 0
        assert seen["loaded"] == []
        assert seen["scrolled"][0] <= seen["scrolled"][1]
    content = (folder / "report.html").read_text()
    assert all(str(escape(glossary()[query].text)) in content for query in QUERIES)


def test_page_is_complete_without_network_and_script(folder):
    page = (folder / "report.html").read_text()
    # A link to the file beside the page loads nothing.
    loading = page.replace('href="results.csv"', "")
    assert not re.search(r'(src|href)="(?!data:)|url\(|@import|fetch\(', loading)
    assert "default-src 'none'" in page
    assert "{{" not in page
    assert EVIL not in page
    body = page[: page.index('<script type="application/json"')]
    assert "Not private." in body
    assert body.count('<tr data-query="triangles">') == 2 * len(EPSILONS)
    for method in METHODS:
        assert f"what {method} guarantees" in body
    assert body.count('class="failed"') == 2
    assert body.count("data:image/png;base64,") == 2 * len(EPSILONS) + len(METHODS) + 2


def test_adjacency_pixels_against_the_matrix():
    graph = nx.gnm_random_graph(40, 90, seed=3)
    order = np.random.default_rng(0).permutation(40)
    picture = adjacency_pixels(from_networkx(graph), order, 320)
    matrix = nx.to_numpy_array(graph, nodelist=list(order))
    np.testing.assert_array_equal(picture[..., 3] > 0, matrix > 0)
    shown = adjacency_pixels(from_networkx(graph), order[:10], 320)
    np.testing.assert_array_equal(shown[..., 3] > 0, matrix[:10, :10] > 0)
    empty = make_graph(torch.empty(0, 2, dtype=torch.long), 3)
    assert not adjacency_pixels(empty, np.arange(3), 320)[..., 3].any()
    assert degree_curve(empty) == []


def test_degree_curve_counts_nodes_of_at_least_each_degree():
    graph = from_networkx(nx.barabasi_albert_graph(3000, 3, seed=0))
    degree = degrees(graph)
    curve = degree_curve(graph)
    assert len(curve) <= 60
    assert all(count == (degree >= value).sum() for value, count in curve)
    assert curve[0][0] == degree.min()
    assert curve[-1][0] == degree.max()
