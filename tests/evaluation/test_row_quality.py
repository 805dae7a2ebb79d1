"""Private columns in ``evaluate``: figures by hand, the mark of noise, and all forms of output."""

import csv
import json
import math
import re

import networkx as nx
import numpy as np
import pytest

import lightning_dpg as dpg
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.errors import CommandError
from lightning_dpg.evaluation.row_quality import (
    NOT_COMPARED,
    GraphRows,
    RowNoise,
    row_answers,
    row_figures,
)
from lightning_dpg.formats.row_tables import read_rows
from tests.documented_objects import PAGE, keys_of

BLOCK = {"attributes": "from_graph", "private_columns": "block", "domains": {"block": list("0123")}}
KEY = "private_columns"


def planted():
    """A graph whose edges follow a column of two values, and a second column like the first one."""
    graph = nx.planted_partition_graph(2, 60, 0.2, 0.01, seed=0)
    block = np.repeat([0, 1], 60)
    other = np.where(np.arange(120) % 10 == 0, 1 - block, block)
    return GraphRows(np.array(graph.edges), np.stack([block, other], 1))


DOMAINS = {"age": ["young", "old"], "region": ["north", "south"]}


def by_name(figures):
    return {(each.figure, each.of): each for each in figures}


def test_a_copy_has_no_error_and_its_control_has_no_relation_with_edges():
    real = planted()
    found = row_figures(real, real, DOMAINS, None)
    assert all(each.error == 0 for each in found)
    named = by_name(found)
    linked = named["assortativity", "age"]
    assert linked.real > 0.8 and abs(linked.independent) < 0.1
    prediction = named["prediction", "age"]
    assert prediction.synthetic > 0.99
    control = [named["prediction", "age"].independent, named["degree", "age = old"].independent]
    assert not math.isnan(sum(control))
    # Rows stay whole in the control.
    pair = named["association", "age and region"]
    assert pair.real == pytest.approx(pair.independent) and pair.real == pytest.approx(
        0.8, abs=0.05
    )
    assert not any(each.is_below_noise for each in found)


def test_figures_of_another_graph_by_hand():
    real = GraphRows(np.array([[0, 1], [1, 2], [2, 3]]), np.array([[0], [0], [1], [1]]))
    star = GraphRows(np.array([[0, 1], [0, 2], [0, 3]]), np.array([[0], [1], [1], [1]]))
    named = by_name(row_figures(real, star, {"age": ["young", "old"]}, None))
    assert named["marginal", "age"].error == 0.25
    assert named["degree", "age = young"][3:6] == (1.5, 3.0, 1.0)
    assert named["degree", "age = old"][3:6] == (1.5, 1.0, pytest.approx(1 / 3))
    assert named["assortativity", "age"][3:5] == (pytest.approx(1 / 3), -1.0)


def test_an_association_below_the_noise_is_marked():
    real = planted()
    loud, quiet = RowNoise(40.0, 200.0, [500, 500]), RowNoise(0.5, 1.0, [500, 500])
    for noise, is_lost in ((loud, True), (quiet, False)):
        named = by_name(row_figures(real, real, DOMAINS, noise))
        for key in (("assortativity", "age"), ("association", "age and region")):
            assert named[key].is_below_noise == is_lost, (key, named[key].noise)
            assert named[key].cells()[-1].startswith("<") == is_lost
        assert not named["degree", "age = old"].is_below_noise
        answer = row_answers(named.values())["assortativity of age"]
        assert answer.note.startswith("not above" if is_lost else "above")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Data, a release of them, and the folder of its run."""
    data = EdgeListDataModule("planted_partition", nodes=Nodes(**BLOCK))
    out = tmp_path_factory.mktemp("run") / "run"
    release = dpg.fit(data, "attributed", epsilon=20.0, row_epsilon=20.0, out=out)
    return data, release, out


@pytest.fixture(scope="module")
def found(fitted):
    """An evaluation of the folder, and of the same release when it is open."""
    data, release, out = fitted
    return dpg.evaluate(data, [out, release], baselines=False)


def test_a_release_shows_its_private_columns_in_all_forms(found, tmp_path):
    assert re.search(r"assortativity +block +0\.789 ", str(found))
    graph, _ = json.loads(found.to_json())["graphs"]
    assert [*graph[KEY][0]] == keys_of("`private_columns` of such a graph")
    assert all(f"`{each['figure']}`" in PAGE for each in graph[KEY])
    found.to_csv(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        queries = {line["query"]: line for line in csv.DictReader(file)}
    assert float(queries["assortativity of block"]["real"]) == pytest.approx(0.789, abs=1e-3)
    assert float(queries["assortativity of block, independent rows"]["error"]) > 0.5
    frame = found.to_dataframe()
    assert len(frame[frame.group == "private columns"]) == 2 * 2 * len(graph[KEY])
    for page in (found.to_html_text(), found._repr_html_()):
        assert "prediction without links" in page


def test_the_released_table_is_compared_and_not_another_draw(fitted, found):
    data, _, out = fitted
    in_folder, opened = (each.rows for each in found.measured)
    assert str(in_folder) == str(opened)  # nan differs from itself
    path = out / "release" / "people-0.csv"
    before = path.read_text()
    try:
        path.write_text(
            re.sub(r",\w+$", ",0", before, flags=re.MULTILINE).replace(",0", ",block", 1)
        )
        marginal = dpg.evaluate(data, out, baselines=False).measured[0].rows[0]
        assert (marginal.figure, marginal.error) == ("marginal", 0.75)
        path.write_text(before.replace(",1\n", ",north\n", 1))
        with pytest.raises(CommandError, match="no table of drawn rows"):
            read_rows(path, list(map(str, range(200))), {"block": ["0", "1", "2", "3", "other"]})
    finally:
        path.write_text(before)


def test_without_the_private_columns_nothing_is_compared(fitted):
    found = dpg.evaluate("planted_partition", fitted[2], baselines=False)
    assert found.measured[0].rows == ()
    assert NOT_COMPARED[0] in str(found) and "not compared" in found.to_html_text()
    assert dpg.evaluate("karate", "karate").measured[0].rows is None
