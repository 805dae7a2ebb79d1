"""``evaluate`` prints and writes its numbers, and refuses bad input."""

import csv
import errno
import json
from pathlib import Path

import networkx as nx
import pytest

from lightning_dpg.formats.io import from_networkx, write_graph
from lightning_dpg.main import main
from lightning_dpg.metrics import queries
from lightning_dpg.metrics.glossary import glossary
from lightning_dpg.metrics.queries import QUERIES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIGHTNING_DPG_DATA", raising=False)
    write_graph(from_networkx(nx.cycle_graph(34)), tmp_path / "cycle.edges")
    return tmp_path


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def test_table_json_and_csv(folder, capsys):
    args = ["karate", "cycle.edges", "les_miserables", "--csv", "out.csv"]
    assert main(["evaluate", *args, "--json"]) == 0
    content = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert list(content) == ["command", "graphs", "files"]
    assert content["files"] == ["out.csv"]
    assert [graph["path"] for graph in content["graphs"]] == ["cycle.edges", "les_miserables"]
    for graph in content["graphs"]:
        assert list(graph) == ["path", "queries"]
        assert tuple(graph["queries"]) == QUERIES
        keys = ["real", "synthetic", "error", "note"]
        assert all(list(q) in (keys[:3], keys) for q in graph["queries"].values())
    cycle, novel = (graph["queries"] for graph in content["graphs"])
    assert cycle["num_edges"] == {"real": 78, "synthetic": 34, "error": pytest.approx(44 / 78)}
    assert cycle["assortativity"]["synthetic"] is cycle["assortativity"]["error"] is None
    assert cycle["community_nmi"]["real"] is cycle["community_nmi"]["synthetic"] is None
    assert 0 <= cycle["community_nmi"]["error"] <= 1
    assert novel["community_nmi"] == {
        "real": None,
        "synthetic": None,
        "error": None,
        "note": "no node has a name in both graphs",
    }

    with (folder / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(QUERIES)
    for row, (name, answer) in zip(rows, cycle.items(), strict=False):
        assert (row["graph"], row["query"]) == ("cycle.edges", name)
        texts = {"note": row["note"]} if row["note"] else {}
        numbers = {key: float(row[key]) if row[key] else None for key in keys[:3]}
        assert numbers | texts == answer
    assert rows[QUERIES.index("motif_cosine")]["note"] == "all motifs counted"

    assert main(["evaluate", *args]) == 0
    printed = capsys.readouterr().out
    assert "cycle.edges against karate" in printed
    lines = [line.split() for line in printed.splitlines()]
    assert ["max_degree", "17", "2", "0.8824"] in lines
    assert "no node has a name in both graphs" in printed
    assert "not private" in printed


def test_help_explains_every_query(capsys):
    assert main(["evaluate", "--help-all"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert all(f" {name}: {glossary('graphs')[name].text}" in said for name in QUERIES)


def test_the_folder_of_a_release_stands_for_its_graphs(folder, capsys):
    (folder / "release").mkdir()
    (folder / "release" / "privacy.json").write_text('{"guarantee": "edge-level (1, 0)-DP"}')
    write_graph(from_networkx(nx.path_graph(34)), folder / "release" / "synthetic-0.edges")
    assert main(["evaluate", "karate", ".", "--html", "out.html"]) == 0
    assert "release/synthetic-0.edges against karate" in capsys.readouterr().out
    assert "<strong>edge-level (1, 0)-DP</strong>" in (folder / "out.html").read_text()


def test_a_release_ends_with_its_purposes_unless_they_are_left_out(folder, capsys):
    (folder / "release").mkdir()
    statement = {"guarantee": "edge-level (1, 0)-DP", "relation": "edge", "epsilon": 1.0}
    (folder / "release" / "privacy.json").write_text(json.dumps(statement))
    write_graph(from_networkx(nx.path_graph(34)), folder / "release" / "synthetic-0.edges")
    assert main(["evaluate", "karate", "release"]) == 0
    printed = capsys.readouterr().out
    assert "\nserves: " in printed
    # Without its tensors the release scores no pairs. A path has few edges of the real graph.
    assert "0.09 of the real edges are repeated (ErdosRenyi " in printed
    assert main(["evaluate", "karate", "release", "--no-baselines"]) == 0
    assert "serves: " not in capsys.readouterr().out


def test_directions_are_dropped_on_demand(folder, capsys):
    nx.write_graphml(nx.DiGraph([("0", "1"), ("1", "2")]), folder / "directed.graphml")
    assert main(["evaluate", "karate", "directed.graphml"]) == 2
    message = capsys.readouterr().err
    assert "--undirected" in message
    assert "--data" not in message
    assert main(["evaluate", "karate", "directed.graphml", "--undirected"]) == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["karate"], "evaluate REAL RELEASE"),
        (["karate", "cycle.edges", "none.npz"], "none.npz: no such file"),
        (["karate", "cycle.edges", "--csv", "none/out.csv"], "--csv none/out.csv"),
        (["karate", "cycle.edges", "--html", "cycle.edges"], "one of the graphs"),
        (["karate", "cycle.edges", "--csv", "."], "--csv .: a folder"),
        (["karate", "cycle.edges", "--html", "none/out.html"], "--html none/out.html: its folder"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_mistakes(fails, args, said):
    options = [] if {"--csv", "--html"} & set(args) else ["--html", "out.html", "--csv", "out.csv"]
    assert said in fails("evaluate", *args, *options)


@pytest.mark.parametrize("option", ["--csv", "--html"])
def test_files_that_cannot_be_written_are_refused_before_the_work(
    folder, fails, monkeypatch, option
):
    (folder / "lost").symlink_to(folder / "nowhere" / "out")
    (folder / "other.part").mkdir()  # the place of the scratch file is taken
    with monkeypatch.context() as patch:
        patch.setattr(queries, "profile", None)
        for name in ("lost", "other"):
            assert f"{option} {name}" in fails("evaluate", "karate", "cycle.edges", option, name)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
@pytest.mark.parametrize("option", ["--csv", "--html"])
def test_a_full_disk_leaves_the_numbers_on_the_screen(folder, capsys, option):
    assert main(["evaluate", "karate", "cycle.edges", option, "/dev/full"]) == 2
    out, err = capsys.readouterr()
    assert "community_ami" in out
    assert "No space left" in err


def test_a_write_that_breaks_off_leaves_the_earlier_file(folder, monkeypatch):
    (folder / "out.html").write_text("earlier")

    def half(path, content, **_):
        with path.open("w") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", half)
        assert main(["evaluate", "karate", "cycle.edges", "--html", "out.html"]) == 2
    assert (folder / "out.html").read_text() == "earlier"
    assert sorted(path.name for path in folder.iterdir()) == ["cycle.edges", "out.html"]


def test_a_page_is_written_on_demand_only(folder, capsys):
    assert main(["evaluate", "karate", "cycle.edges", "--html", "out.html"]) == 0
    assert "Not private" in (folder / "out.html").read_text()
    with_page = capsys.readouterr().out
    (folder / "out.html").unlink()
    assert main(["evaluate", "karate", "cycle.edges"]) == 0
    assert with_page == capsys.readouterr().out + "out.html\n"
    assert [path.name for path in folder.iterdir()] == ["cycle.edges"]
