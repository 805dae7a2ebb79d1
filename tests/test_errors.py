"""Each mistake of a user gives its message, exit code 2, and leaves nothing behind."""

import pytest
import yaml

from lightning_dpg.main import main

CONFIG = {
    "model": {"class_path": "DPNetGAN", "init_args": {"num_samples": 100}},
    "data": {"class_path": "EdgeListDataModule", "init_args": {"name": "les_miserables"}},
    "trainer": {"max_epochs": 1, "accelerator": "cpu", "devices": 1},
    "privacy": {"epsilon": 4.0, "delta": 1e-4},
}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    return path


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--model.class_path", "DPNetGANN", ["DPNetGANN", "did you mean DPNetGAN?"]),
        ("--model.init_args.num_sample", "3", ["model", "num_sample", "did you mean num_samples?"]),
        ("--model.init_args.mode", "corected", ["model.mode", "did you mean corrected?"]),
        ("--model.init_args.num_nodes", "5", ["num_nodes is 5", "the graph has 77 nodes"]),
        ("--data.class_path", "EdgeDataModule", ["data", "did you mean EdgeListDataModule?"]),
        ("--data.init_args.name", "les_mis", ["unknown graph", "did you mean les_miserables?"]),
        ("--trainer.max_epochs", "two", ["trainer.max_epochs", "int", "two"]),
        ("--trainer.max_epoch", "2", ["did you mean trainer.max_epochs?"]),
        ("--trainer.min_steps", "3", ["min_steps", "budget", "remove"]),
        ("--trainer.min_epochs", "1", ["min_epochs", "budget", "remove"]),
        ("--trainer.strategy", "fsdp", ["fsdp", "set it to ddp"]),
        ("--trainer.precision", "16-mixed", ["16-mixed", "set it to 32-true"]),
        ("--trainer.precision", "bf16", ["bf16", "set it to 32-true"]),
        ("--privacy.delta", "0.004", ["1e-04 or less", "public"]),
        ("--privacy.delta", "null", ["privacy.delta is missing"]),
        ("--privacy.delta", "0", ["privacy.delta 0", "pure epsilon"]),
        ("--model.init_args.degree_share", "1.5", ["degree_share must be in [0, 1), got 1.5"]),
        ("--privacy.epsilon", "0", ["privacy.epsilon must be positive"]),
        ("--privacy.epsilon", "lots", ["privacy.epsilon", "lots"]),
        ("--ckpt_path", "none.ckpt", ["none.ckpt", "no such file"]),
    ],
)
def test_bad_setting(fails, config, option, value, said):
    message = fails("fit", "--config", str(config), option, value)
    assert not [piece for piece in said if piece not in message], message


PRINTED = ["--model.init_args.mode", "paper"]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("hrg_gaussian", ["--privacy.delta", "0"], "noise: gaussian spends a delta"),
        ("dk2_uniform", ["--privacy.delta", "0"], "noise: uniform spends a delta"),
        ("ldp_gw_curated", ["--privacy.delta", "0"], "release: curated_edge spends a delta"),
        ("ldp_gw", ["--model.init_args.weights", "private"], "weights: private spends a delta"),
        ("ldp_gw", ["--model.init_args.weights", "trained"], "weights: trained protects nothing"),
        ("ldp_gw", ["--model.init_args.release", "exact"], "release: exact protects nothing"),
        ("dpgvae", [*PRINTED, "--model.init_args.noise_multiplier", "5"], "mode: paper protects"),
        ("private_kernel", ["--model.init_args.truncation", "none"], "by any amount"),
    ],
)
def test_a_budget_that_the_settings_cannot_keep(fails, name, options, said):
    assert said in fails("fit", "--config", name, *options)


OPEN = ["cell", "ggan", "graphrnn", "gromov_kernel", "gvae", "netgan", "shortest_path"]


@pytest.mark.parametrize("name", OPEN)
def test_methods_without_privacy_take_no_finite_budget(fails, name):
    budget = ["--privacy.epsilon", "1", "--privacy.delta", "1e-6"]
    message = fails("fit", "--config", name, *budget)
    assert "protects nothing" in message
    assert "take another method, or set privacy.epsilon to .inf" in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, ["graph.edges", "no such file"]),
        ("", ["graph.edges"]),
        ("# only a comment\n", ["graph.edges"]),
        ("a b\nthis_is_text\n", ["graph.edges", "line 2", "this_is_text", "two node ids"]),
        ("0 1\n1 -2\n", ["graph.edges", "line 2", "-2"]),
        ("7 7\n", ["graph.edges"]),
        ("1 1\n2 2\n", ["graph.edges"]),
    ],
    ids=["missing", "empty", "comment", "text", "negative id", "one node", "no edges"],
)
def test_bad_edge_list(fails, config, tmp_path, text, said):
    path = tmp_path / "graph.edges"
    if text is not None:
        path.write_text(text)
    message = fails("fit", "--config", str(config), "--data.init_args.name", str(path))
    assert not [piece for piece in said if piece not in message], message


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("model", ["model is missing", "--config dp_netgan.yaml"]),
        ("privacy", ["privacy.epsilon is missing", "privacy: {epsilon:"]),
    ],
)
def test_missing_section(fails, config, section, said):
    config.write_text(yaml.safe_dump({k: v for k, v in CONFIG.items() if k != section}))
    message = fails("fit", "--config", str(config))
    assert not [piece for piece in said if piece not in message], message


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["fits"], ["unknown command 'fits'", "did you mean fit?"]),
        (["fit", "--config", "dp_netgann.yaml"], ["no such file", "did you mean dp_netgan?"]),
        (["generate", "--run", "nowhere"], ["nowhere", "generator.safetensors"]),
        (["plan", "--epsilon", "1", "--delta", "1e-5"], ["--sample-rate, --steps"]),
        (["plan", "--epsilon=1", "--delta=1e-5", "--sample-rate=5", "--steps=9"], ["sample rate"]),
    ],
)
def test_bad_command(fails, args, said):
    message = fails(*args)
    assert not [piece for piece in said if piece not in message], message


@pytest.mark.parametrize(
    ("text", "said"), [("", "an empty file"), ("a: 1\nb: [\n", "line 3"), ("- 1\n", "got list")]
)
def test_config_that_is_none(fails, config, text, said):
    config.write_text(text)
    message = fails("fit", "--config", str(config))
    assert "run.yaml" in message
    assert said in message


def test_checkpoint_without_a_ledger_is_refused(fails, config, tmp_path):
    import torch

    torch.save({"state_dict": {}, "hyper_parameters": {}}, tmp_path / "foreign.ckpt")
    message = fails("fit", "--config", str(config), "--ckpt_path", "foreign.ckpt")
    assert "no privacy ledger" in message


def test_evaluation_needs_a_checkpoint(fails, config):
    assert "--ckpt_path" in fails("predict", "--config", str(config))


def test_faults_of_the_program_keep_their_traceback(config, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIGHTNING_DPG_DEBUG", "1")
    with pytest.raises(Exception, match="positive"):
        main(["fit", "--config", str(config), "--privacy.epsilon", "-1"])
