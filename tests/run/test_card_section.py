"""The section ``card`` of a configuration, and the options of the command line."""

import hashlib
import json

import yaml

from lightning_dpg.callbacks import Card, PrivacyProgressBar, ReleaseWriter
from lightning_dpg.main import main
from lightning_dpg.run.lightning_cli import with_release_writer


def test_texts_reach_the_writer_that_is_there_or_a_new_one():
    bar, mine = PrivacyProgressBar(), ReleaseWriter(2, card={"operator": "A"})
    assert with_release_writer([bar, mine], {"operator": None}) == [bar, mine]
    assert mine.card == Card(operator="A")
    with_release_writer([mine], {"operator": "B"})
    assert (mine.card, mine.num_graphs) == (Card(operator="B"), 2)
    _, added = with_release_writer([bar], {"purpose": "C"})
    assert added.card == Card(purpose="C")


def test_a_run_states_owner_version_date_and_configuration(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795000000")
    (tmp_path / "card.yaml").write_text(yaml.safe_dump({"card": {"operator": "Bank X"}}))
    options = ["--card.settings_chosen_on", "les_miserables", "--trainer.enable_progress_bar=false"]
    assert main(["fit", "--config", "chung_lu", "--config", "card.yaml", *options]) == 0
    run = tmp_path / "runs" / "chung_lu" / "version_0"
    facts = json.loads((run / "release" / "privacy.json").read_text())
    administrative = facts["administrative"]
    assert administrative["operator"] == "Bank X"
    assert administrative["date"] == "2026-11-18"
    assert administrative["method"] == "lightning_dpg.methods.ChungLu"
    assert facts["data"]["settings_chosen_on"] == "les_miserables"
    digest = hashlib.sha256((run / "config.yaml").read_bytes()).hexdigest()
    assert administrative["configuration_sha256"] == digest


def test_an_unknown_text_and_a_missing_file_leave_no_run(fails):
    assert "card.purpos" in fails("fit", "--config", "chung_lu", "--card.purpos", "x")
    assert "audit.json" in fails("fit", "--config", "chung_lu", "--card.audit", "audit.json")
