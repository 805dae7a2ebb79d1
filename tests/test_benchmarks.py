"""Benchmarks hand their numbers to the studies."""

from pathlib import Path

import pytest

from benchmarks.__main__ import ALL, NAMES, main
from benchmarks.numbers import Number, ratio, read_numbers, write_numbers
from benchmarks.shape import beside
from lightning_dpg.errors import CommandError
from results import adding, tables

ROOT = Path(__file__).parents[1]


def test_every_benchmark_has_a_name():
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    helpers = {"__init__", "__main__", "embeddings", "gradient_sum", "link_graphs"}
    helpers |= {"numbers", "scores_file", "timing", "wandb_file"}
    assert set(NAMES) == files - helpers
    assert {line.split()[0] for line in ALL} <= set(NAMES)


def test_numbers_of_a_file_replace_those_of_a_study(tmp_path, monkeypatch):
    folder = tmp_path / "speed"
    folder.mkdir()
    for name in ("study.yaml", "results.csv"):
        (folder / name).write_text((tables.FOLDER / "speed" / name).read_text())
    before = tables.read_study(folder).cells
    monkeypatch.setattr(adding, "FOLDER", tmp_path)
    numbers = [
        ratio("generator", 0.123),
        Number("speed", "ratios", "no such row", "ratio", "1"),
        Number("large_graphs", "seconds", "open", "1 million", "2.0"),
    ]
    write_numbers(tmp_path / "numbers.json", numbers)
    assert read_numbers(tmp_path / "numbers.json") == numbers
    line = adding.enter("speed", tmp_path / "numbers.json", "2026-03-04", "two cores", "abc")
    assert line == "1 of 2 numbers entered in results/speed/results.csv"
    after = tables.read_study(folder).cells
    place = ("ratios", "generator", "ratio")
    assert after[place][3:8] == ("0.12", "", "1", "measured", "2026-03-04")
    assert after[place].note.startswith("load ")
    assert {key for key in after if after[key] != before[key]} == {place}
    write_numbers(tmp_path / "numbers.json", numbers[1:2])
    with pytest.raises(CommandError, match="none of its numbers"):
        adding.enter("speed", tmp_path / "numbers.json", "2026-03-04", "two cores", "abc")


def test_without_a_gpu_the_command_measures_the_cpu_and_lists_the_rest(monkeypatch, capfd):
    monkeypatch.chdir(ROOT)  # where it starts the processes of the sum
    assert main(["gpu", "--small"]) == 0
    out = capfd.readouterr().out
    assert "| encoder (AttributeEncoder) | cpu |" in out
    assert "sum over 2 process(es)" in out


def test_a_query_is_won_by_the_best_of_ours_against_the_best_of_theirs():
    def at(method, query, *values):
        return {(method, "Wiki-Vote", "1", str(run), query): v for run, v in enumerate(values)}

    ours = {
        **at("BTER", "triangles", 0.1, 0.3),
        **at("PrivGraph", "triangles", 0.5, 0.5),
        **at("BTER", "community_nmi", 0.2),
        **at("PrivGraph", "community_nmi", 0.4),
        **at("BTER", "num_edges", 9e-5),
        **at("BTER", "modularity", 0.101),
        **at("BTER", "diameter", 0.1),  # not measured by them
    }
    theirs = {
        **at("DGG", "triangles", 0.3),
        **at("DGG", "community_nmi", 0.3),
        **at("DGG", "num_edges", 1e-5),
        **at("DGG", "modularity", 0.1),
        **at("other", "modularity", 0.3),
    }
    lines = {line[:3]: line[3] for line in beside(ours, theirs)}
    counts = {
        column: lines["peers", "Wiki-Vote 1", column] for column in ("better", "equal", "worse")
    }
    assert counts == {"better": 2, "equal": 2, "worse": 0}
    assert lines["peers", "Wiki-Vote 1", "BTER worse"] == 1
    assert lines["peers", "Wiki-Vote 1", "PrivGraph worse"] == 1
    assert lines["peers_queries", "triangles", "better, unseen"] == 1
    assert lines["peers_wiki_vote", "triangles", "BTER"] == "0.2"
