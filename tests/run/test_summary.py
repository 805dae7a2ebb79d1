"""What a fit of a trained method prints to programs: its last lines, and no table of rich."""

import yaml

from lightning_dpg.main import main
from tests.run.test_ends import CONFIG


def test_the_model_summary_is_plain(tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.chdir(tmp_path)
    trainer = {"max_epochs": 1, "accelerator": "cpu", "enable_progress_bar": False}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(CONFIG | {"trainer": trainer}))
    assert main(["fit", "--config", "small.yaml"]) == 0
    assert capsys.readouterr().out.startswith("run folder: ")
    assert "Total params" in caplog.text
    assert "already configured" not in caplog.text
