"""``list`` agrees with the imported methods and data sets, although it only reads sources."""

import yaml

import lightning_dpg as dpg
from lightning_dpg.datamodules.loading import known_graphs
from lightning_dpg.datamodules.tu import known_sets
from lightning_dpg.main import main
from lightning_dpg.run.commands.list_ import data_sets
from lightning_dpg.run.configurations import shipped_configs

TIERS = {
    "the recommended methods": "recommended",
    "baselines and alternatives": "baselines",
    "papers, corrected and as published": "papers",
    "without privacy": "without privacy",
}


def sections(capsys, *options):
    """Lines of each section of the output by title; those without one by an empty title."""
    assert main(["list", *options]) == 0
    found, title = {"": []}, ""
    for line in capsys.readouterr().out.splitlines():
        assert len(line) < 100, line
        if line.endswith(":"):
            title = line.removesuffix(":")
            found[title] = []
        else:
            found[title if line.startswith("  ") else ""].append(line.strip())
    return found


def class_of(name):
    """Class of a configuration, or the class itself."""
    path = shipped_configs().get(name)
    return yaml.safe_load(path.read_text())["model"]["class_path"] if path else name


def test_each_method_has_one_line_in_its_tier(capsys):
    found = sections(capsys)
    assert list(found)[2:] == list(TIERS)
    seen = []
    for title, tier in TIERS.items():
        rows = [row for row in dpg.list_methods() if row.tier == tier]
        assert len(found[title]) == len(rows) > 3
        for line in found[title]:
            name, _, text = line.partition("  ")
            found_class = class_of(name)
            (row,) = [row for row in rows if row.name == found_class]
            mark = f"[{row.relation}{'*' * row.is_conditional}]" if row.relation else ""
            assert text.rstrip().endswith(mark) and ("[" in text) == bool(mark)
            seen.append(row.name)
    assert len(seen) == len(set(seen)) == len(dpg.list_methods())


def test_all_configurations_have_one_line_each(capsys):
    found = sections(capsys, "--all")
    named = [
        line.split()[0]
        for title, lines in found.items()
        if title.startswith("configurations of conf/")
        for line in lines
    ]
    assert sorted(named) == sorted(shipped_configs())
    assert "papers/zheng2021/citeseer_eps16" in named
    short = sections(capsys)
    assert list(found)[: len(short)] == list(short)
    assert any(line.endswith("list --all") for line in short[""])
    assert not any(line.endswith("list --all") for line in found[""])


def test_data_sets_are_those_that_can_be_loaded(monkeypatch, tmp_path):
    monkeypatch.setenv("LIGHTNING_DPG_DATA", str(tmp_path))
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "SOME.edges.gz").touch()
    (tmp_path / "tu" / "SOME-SET" / "raw").mkdir(parents=True)
    listed = dict(data_sets())
    assert sorted(listed) == sorted([*known_graphs(), *known_sets()])
    assert {name for name, text in listed.items() if text.endswith("a set")} == set(known_sets())
