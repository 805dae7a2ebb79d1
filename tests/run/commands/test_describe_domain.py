"""The file of domains has names of columns and nothing else of the table, and has to be filled in."""

import pytest
import yaml

from lightning_dpg.datamodules import Nodes
from lightning_dpg.errors import Refusal
from lightning_dpg.main import main


def test_a_file_of_domains_says_nothing_of_the_values(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts = []
    for number, rows in enumerate(("ann,31,north", "bob,,\ncarl,999,a: [secret]")):
        (tmp_path / "people.csv").write_text(f"id,age,re: gion\n{rows}\n")
        assert main(["describe-domain", "people.csv", "--out", f"{number}.yaml"]) == 0
        texts.append((tmp_path / f"{number}.yaml").read_text())
    assert texts[0] == texts[1]
    assert yaml.safe_load(texts[0]) == {"age": [], "re: gion": []}
    assert "complete the values of 2 columns" in capsys.readouterr().out
    with pytest.raises(Refusal, match="is no list of values"):
        Nodes(attributes="people.csv", private_columns=["age", "re: gion"], domains="0.yaml")
    assert main(["describe-domain", "people.csv", "--out", "0.yaml"]) == 2
    assert "it is there already" in capsys.readouterr().err
