"""``list`` agrees with the imported methods and data sets, although it only reads sources."""

from lightning_dpg.commands.list_ import data_sets
from lightning_dpg.datamodules.loading import known_graphs
from lightning_dpg.datamodules.tu import known_sets


def test_data_sets_are_those_that_can_be_loaded(monkeypatch, tmp_path):
    monkeypatch.setenv("LIGHTNING_DPG_DATA", str(tmp_path))
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "SOME.edges.gz").touch()
    (tmp_path / "tu" / "SOME-SET" / "raw").mkdir(parents=True)
    listed = dict(data_sets())
    assert sorted(listed) == sorted([*known_graphs(), *known_sets()])
    assert {name for name, text in listed.items() if text.endswith("a set")} == set(known_sets())
