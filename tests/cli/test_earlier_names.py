"""Command lines and configurations of version 0.1 still work."""

import pytest
import yaml

from lightning_dpg.cli.earlier_names import with_names_of_today
from lightning_dpg.main import main

EARLIER = {
    "model": {"class_path": "PrivCom", "init_args": {"release": "rr_spectral", "rank": 2}},
    "data": {"class_path": "EdgeListDataModule", "init_args": {"name": "karate"}},
    "privacy": {"epsilon": 2.0, "delta": 0.0},
}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(EARLIER))
    return str(path)


def merged(args):
    """The sections that a command line adds up to."""
    parts = [yaml.safe_load(value) for value in args[args.index("--config") + 1 :: 2]]
    return {key: section for part in parts for key, section in part.items()}


def test_a_configuration_of_the_earlier_version_runs_and_says_the_new_name(
    config, tmp_path, monkeypatch, caplog
):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "--config", config, "--trainer.enable_progress_bar", "false"]) == 0
    line = "PrivCom with release: rr_spectral is now called RandomizedResponsePrivCom"
    assert caplog.text.count(line) == 1
    saved = tmp_path / "runs" / "randomized_response_privcom" / "version_0" / "config.yaml"
    model = yaml.safe_load(saved.read_text())["model"]
    assert model["class_path"].endswith(".RandomizedResponsePrivCom")
    assert model["init_args"]["rank"] == 2


def test_an_option_counts_as_a_configuration_does(config):
    options = [
        "--model.hops=1",
        "--model.release",
        "noisy_oja",
        "--model.init_args.max_degree",
        "20",
    ]
    args, (line,) = with_names_of_today(["fit", "--config", config, *options])
    assert args[0] == "fit"
    assert merged(args) == EARLIER | {
        "model": {
            "class_path": "lightning_dpg.methods.KatzPrivCom",
            "init_args": {"rank": 2, "hops": 1, "max_degree": 20},
        }
    }
    assert "KatzPrivCom" in line


@pytest.mark.parametrize(
    "options",
    [
        ["--model", "BTER"],
        ["--model", "PrivCom", "--model.rank", "2"],
        ["--model", "mine.PrivCom", "--model.release", "rr_spectral"],
        ["--model", "PrivCom", "--config", "{ : not yaml"],
        ["--model", "PrivCom", "--model.init_args", "3", "--config"],
    ],
)
def test_what_has_no_new_name_stays_word_for_word(options):
    assert with_names_of_today(["fit", *options]) == (["fit", *options], [])
