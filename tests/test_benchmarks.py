"""Benchmarks hand their numbers to the studies."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import ALL, NAMES
from benchmarks.numbers import Number, ratio, read_numbers, write_numbers
from lightning_dpg.errors import CommandError
from results import adding, tables

ROOT = Path(__file__).parents[1]


def test_every_benchmark_has_a_name():
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    helpers = {
        "__init__",
        "__main__",
        "embeddings",
        "link_graphs",
        "numbers",
        "scores_file",
        "timing",
    }
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


@pytest.mark.slow
def test_without_a_gpu_the_command_measures_the_cpu_and_lists_the_rest():
    command = [sys.executable, "-m", "benchmarks", "gpu", "--small"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "| encoder (AttributeEncoder) | cpu |" in done.stdout
    assert "sum over 2 process(es)" in done.stdout
