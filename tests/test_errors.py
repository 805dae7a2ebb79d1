"""Each user error gives its message and exit code 2, and leaves no files."""

import errno
import subprocess
import sys
import traceback

import pytest
import yaml

from lightning_dpg.errors import REPORT, Refusal, explain
from lightning_dpg.main import CORE_COMMANDS, main, run
from lightning_dpg.run.configurations import refuse_repeated_keys
from lightning_dpg.run.lightning_cli import PrivateCLI

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
        ("--model.init_args.mode", "corected", ["has no option 'mode'"]),
        ("--model.init_args.num_nodes", "5", ["num_nodes is 5", "the graph has 77 nodes"]),
        ("--data.class_path", "EdgeDataModule", ["data", "did you mean EdgeListDataModule?"]),
        ("--trainer.max_epochs", "two", ["trainer.max_epochs", "int", "two"]),
        ("--trainer.min_steps", "3", ["min_steps", "budget", "remove"]),
        ("--trainer.strategy", "fsdp", ["fsdp", "set it to ddp"]),
        ("--trainer.precision", "16-mixed", ["16-mixed", "set it to 32-true"]),
        ("--privacy.lost_steps", "2", ["lost_steps 2: ", "applies only to a resumed run"]),
        ("--privacy.delta", "0.004", ["1e-04 or less", "public"]),
        ("--privacy.delta", "null", ["privacy.delta is missing"]),
        ("--privacy.delta", "0", ["privacy.delta 0", "pure epsilon"]),
        ("--model.init_args.degree_share", "1.5", ["degree_share must be in [0, 1), got 1.5"]),
        ("--seed_everything", "-1", ["seed_everything: -1 is not in bounds"]),
        ("--privacy.epsilon", "0", ["privacy.epsilon must be positive"]),
        ("--privacy.epsilon", "lots", ["privacy.epsilon", "lots"]),
        ("--data.init_args.name", "null", ["name is null"]),
        ("--trainer.logger", "WandbLoger", ["trainer.logger", "did you mean WandbLogger?"]),
        ("--trainer.callbacks", "os.system", ["expected a Callback", "os.system"]),
        ("--privacy", "{epsilon: 1, delta: 1.0e-6, epsilon: 9}", ["'epsilon'", "line 1 already"]),
    ],
)
def test_bad_setting(fails, config, option, value, said):
    message = fails("fit", "--config", str(config), option, value)
    assert not [piece for piece in said if piece not in message], message


TWO_WRAPPED = [
    *("dp_netgan", "--config", "ddp", "--trainer.devices", "2", "--trainer.accelerator", "cpu"),
    *("--trainer.use_distributed_sampler", "true"),
]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (TWO_WRAPPED, "wraps the Poisson sampler"),
        (
            ["bter", "--data.class_path", "GraphSetDataModule", "--data.name", "planted_sets"],
            "BTER learns a single graph, and GraphSetDataModule holds a set of graphs",
        ),
        (
            ["dpggan", "--data.class_path", "EdgeListDataModule", "--data.name", "karate"],
            "DPGGAN learns a set of graphs, and EdgeListDataModule holds a single graph",
        ),
        (["privcom", "--trainer.max_steps", "10"], "makes 24 steps, and trainer.max_steps 10"),
        (["privcom", "--data.steps_per_epoch", "10"], "steps_per_epoch 10 would cut them"),
        (["chung_lu", "--trainer.max_steps", "0"], "max_steps 0 makes no step"),
        (["chung_lu", "--privacy.epsilon", "1e308"], "1e+308 protects nothing"),
        (
            ["dp_netgan", "--privacy.epsilon", "0.5"],
            "set it to 0.547 or more, or lower count_epsilon",
        ),
        (["dp_netgan", "--trainer.max_epochs", "-1"], "max_epochs -1 has no end"),
        (["dp_netgan", "--model.init_args.batch_size", "0"], "batch_size must be 1 or more, got 0"),
        (["dp_netgan", "--model.init_args.noise_multiplier", "-1"], "got -1.0"),
        (["erdos_renyi_set", "--trainer.max_epochs", "0"], "max_epochs 0 makes no step"),
    ],
)
def test_a_run_that_cannot_be_is_refused_before_it_has_a_folder(fails, args, said):
    assert said in fails("fit", "--config", *args)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("ldp_gw_curated", ["--privacy.delta", "0"], "suits methods of pure epsilon only"),
        ("ldp_gw", ["--model.init_args.weights", "private"], "suits methods of pure epsilon only"),
        ("ldp_gw_exact", ["--privacy.epsilon", "8"], "GromovWassersteinFeatures protects nothing"),
        ("dpgvae", ["--model", "DPGVAEAsPublished"], "DPGVAEAsPublished protects nothing"),
        ("private_kernel", ["--model.init_args.truncation", "none"], "by any amount"),
    ],
)
def test_a_budget_that_the_settings_cannot_keep(fails, name, options, said):
    assert said in fails("fit", "--config", name, *options)


def test_methods_without_privacy_take_no_finite_budget(fails):
    budget = ["--privacy.epsilon", "1", "--privacy.delta", "1e-6"]
    message = fails("fit", "--config", "netgan", *budget)
    assert "protects nothing" in message
    assert "take another method, or set privacy.epsilon to .inf" in message


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


TABLE = ["fit", "--config", "chung_lu", "--data", "EdgeTableDataModule"]
TABLE_HAS_NO = "EdgeTableDataModule has no option"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["fit", "--data.init_args.name", "a.csv"],
            ["data.class_path is missing", "give a configuration"],
        ),
        (
            ["fit", "--config", "chung_lu", "--data.source", "a.parquet"],
            ["EdgeListDataModule has no option 'source'", "EdgeTableDataModule has it"],
        ),
        ([*TABLE, "--data.source", "a.parquet", "--data.name", "b"], [f"{TABLE_HAS_NO} 'name'"]),
        (
            [
                *(*TABLE, "--data.source", "a.parquet", "--data.kind", "bipartite"),
                *("--data.nodes.side_column", "side"),
            ],
            ["a.parquet: no such file"],
        ),
        (TABLE, ["data.source is missing"]),
        (["fit", "--config", "bter", "--data.names", "numbers"], ["did you mean nodes.names?"]),
        (["fit", "--config", "bter", "--data.source_column", "a"], ["mean columns.source?"]),
        (["fit", "--config", "bter", "--data.columns", "a"], ["data.columns: expected", "'a'"]),
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


REPEATED = """\
privacy:
  epsilon: 1
  delta: 1.0e-6
  epsilon: 9
"""


def test_repeated_key_names_file_and_line(fails, config, tmp_path):
    config.write_text("privacy: {epsilon: 9}\n" + config.read_text())
    message = fails("fit", "--config", str(config))
    assert f"{config}, line " in message
    assert "'privacy' stands in line 1 already" in message
    config.write_text(yaml.safe_dump(CONFIG))
    (tmp_path / "overlay.yaml").write_text(REPEATED)
    message = fails("fit", "--config", str(config), "--config=overlay.yaml")
    assert "overlay.yaml, line 4: the key 'epsilon' stands in line 2 already" in message
    (tmp_path / "privacy.yaml").write_text("epsilon: 1\ndelta: 1.0e-6\nepsilon: 9\n")
    message = fails("fit", "--config", str(config), "--privacy", "privacy.yaml")
    assert "privacy.yaml, line 3: the key 'epsilon' stands in line 1 already" in message
    config.write_text(yaml.safe_dump(CONFIG | {"privacy": "privacy.yaml"}))
    assert "line 3: the key 'epsilon'" in fails("fit", "--config", str(config))
    config.write_text(REPEATED + config.read_text().partition("privacy:")[0])
    options = ["--graphs", "karate", "--epsilons", "1", "--out", "out"]
    message = fails("compare", "--methods", str(config), *options)
    assert "'epsilon' stands in line 2 already" in message


def test_the_same_mapping_twice_is_no_repeated_key(config):
    text = "trainer: &same {max_epochs: 1}\nother: [*same, *same, {<<: *same, max_epochs: 2}]\n"
    refuse_repeated_keys(text, "x.yaml")


OWN = {
    "broken.py": "import nonexistent_package\n",
    "unclosed.py": "class Mine(\n",
    "mine.py": "from lightning_dpg.methods import ErdosRenyi\nclass Mine(ErdosRenyi): pass\n",
}


@pytest.mark.parametrize(
    ("option", "class_path", "said"),
    [
        (
            "--model",
            "broken.Mine",
            "broken cannot be imported: there is no module 'nonexistent_package'",
        ),
        ("--model", "unclosed.Mine", "'(' was never closed (unclosed.py, line 1)"),
        ("--model.class_path", "absent.Mine", "there is no module 'absent' to take Mine from"),
        ("--model.class_path", "mine.Mien", "mine has no class Mien, did you mean Mine?"),
        ("--model", "lightning_dpg.methods.BTR", "has no class BTR, did you mean BTER?"),
    ],
)
def test_class_that_cannot_be_imported(
    fails, config, tmp_path, monkeypatch, option, class_path, said
):
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in OWN.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    sections = {key: value for key, value in CONFIG.items() if key != "model"}
    config.write_text(yaml.safe_dump(sections))
    assert said in fails("fit", "--config", str(config), option, class_path).splitlines()[0]


FAULTS = """\
import torch
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import DPNetGAN, ErdosRenyi
class Stacks(DPNetGAN):
    def training_step(self, batch, batch_idx):
        torch.stack([])
class Casts(ErdosRenyi):
    def training_step(self, batch, batch_idx):
        raise ValueError("no message for users")
class Wide(ErdosRenyi):
    def __init__(self, width: int, num_nodes: int | None = None):
        if width < 0:
            raise ValueError("width must be 0 or more")
        torch.zeros(width - 3)
        super().__init__(num_nodes)
class Few(EdgeListDataModule):
    def __init__(self, name: str, most: int = -1):
        raise ValueError("most must be 0 or more")
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Classes of a user in a file of the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "faults", raising=False)
    (tmp_path / "faults.py").write_text(FAULTS)
    return tmp_path / "faults.py"


@pytest.mark.parametrize(
    ("config", "options", "kind", "line", "notes"),
    [
        ("dp_netgan", ["--model", "faults.Stacks"], RuntimeError, 6, ["spent for good"]),
        ("erdos_renyi", ["--model", "faults.Casts"], ValueError, 9, []),
        ("erdos_renyi", ["--model", "faults.Wide", "--model.width=2"], RuntimeError, 14, []),
    ],
)
def test_faults_keep_file_and_line_and_ask_for_a_report(own, config, options, kind, line, notes):
    with pytest.raises(kind) as fault:
        main(["fit", "--config", config, *options, "--privacy.epsilon", "4"])
    place = traceback.extract_tb(fault.value.__traceback__)[-1]
    assert (place.filename, place.lineno) == (str(own), line)
    *before, last = fault.value.__notes__
    assert last == REPORT and len(last.splitlines()) == 1
    assert len(before) == len(notes) and all(map(str.__contains__, before, notes))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "faults.Wide", "--model.width=-1"], ["width must be 0 or more", "line 13"]),
        (["--data", "faults.Few"], ["most must be 0 or more", "line 18"]),
    ],
)
def test_a_constructor_refuses_its_settings_in_a_line(own, fails, options, said):
    message = fails("fit", "--config", "erdos_renyi", *options, "--privacy.epsilon", "1")
    assert all(part in message for part in [*said, "faults.py"]), message


def test_a_fault_has_an_exit_code_of_its_own(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["lightning_dpg", "list"])
    monkeypatch.setitem(CORE_COMMANDS, "list", lambda: [].pop())
    with pytest.raises(SystemExit) as stop:
        run()
    said = capsys.readouterr().err.splitlines()
    assert stop.value.code == 70
    assert said[0].startswith("Traceback") and said[-2:] == [
        "IndexError: pop from empty list",
        REPORT,
    ]


def test_messages_keep_their_traceback_on_demand(config, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIGHTNING_DPG_DEBUG", "1")
    with pytest.raises(Refusal, match="positive"):
        main(["fit", "--config", str(config), "--privacy.epsilon", "-1"])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.EROFS, "Read-only file system", "runs"),
            ["runs: Read-only", "another folder"],
        ),
        (
            OSError(errno.ENOSPC, "No space left", "/tmp/x"),
            ["/tmp/x: No space", "bytes are free in"],
        ),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 3000), ["give a shorter path"]),
        (
            OSError(errno.ENOENT, "No such file or directory", "/proc/x"),
            ["/proc/x: No such", "give"],
        ),
        (OSError(errno.ENOTDIR, "Not a directory", "a.txt/b"), ["a.txt/b: Not", "is a file"]),
        (OSError("a message"), ["a message"]),
        (RuntimeError("No space left on device (os error 28)"), ["bytes are free in"]),
        (Refusal("y" * 3000), ["error: yyy"]),
    ],
)
def test_errors_of_the_system_name_the_place_and_the_way_out(error, said):
    text = explain(error)
    assert all(part in text for part in said), text
    assert len(text.splitlines()) <= 5 and max(map(len, text.splitlines())) < 700
    assert "Errno" not in text


NASTY = [
    *(
        "",
        '"',
        "'",
        "{",
        "[",
        "|",
        ">",
        "!!python/name:os.system",
        "&a",
        "*a",
        "%",
        "@",
        "`",
        "- a",
    ),
    *("x" * 3000, "[" * 1000, "\U0001f600\u00e9", "3 GB", "1e400", "nan", "null", "true"),
    *("{{a: {b: }", "a: b: c", "{? [a]: b}", "{1: 2}", "{a: 1, a: 2}", "2024-13-45"),
    *('"Amount (EUR)" > 10', "\ufeff"),
]


class ParserMadeError(Exception):
    """The parser is made; nothing is run."""


def test_no_value_of_an_option_gives_a_traceback(tmp_path, monkeypatch):
    """All options with some values, and options of each sort with all of them; one parser serves."""
    monkeypatch.chdir(tmp_path)
    parsers = []

    class Parsed(PrivateCLI):
        def parse_arguments(self, parser, args):
            parsers.append(parser)
            raise ParserMadeError

    with pytest.raises(ParserMadeError):
        Parsed(["fit"])
    (parser,) = parsers
    actions = parser._subcommands_action._name_parser_map["fit"]._actions
    names = [each.option_strings[-1] for each in actions if each.option_strings]
    names = [name for name in names if not name.endswith(("help", "print_config"))]
    tried = {(name, NASTY[place % len(NASTY)]) for place, name in enumerate(names)}
    tried |= {("--data", value) for value in NASTY} | {("--trainer.plugins+", "*a")}
    for name, value in sorted(tried):
        try:
            parser.parse_args(["fit", name, value])
        except Exception as error:  # noqa: BLE001  any kind may come
            text = explain(error)
            assert text is not None, (name, value)
            assert len(text.splitlines()) <= 5, text
    table = ["--data", "EdgeTableDataModule", "--data.source", "a.csv"]
    args = ["fit", *table, "--privacy.epsilon", "1", "--model", "BTER"]
    for value in ("&a", "*a", "# a", "2024-13-45", "'a' = b", '"Amount (EUR)" > 10'):
        data = parser.parse_args([*args, "--data.where", value, "--data.table", value]).fit.data
        assert data.init_args.where == data.init_args.table == value


def test_the_end_of_a_process_calls_what_others_have_registered():
    code = (
        "import atexit, sys; from lightning_dpg import main\n"
        "main.main = lambda: atexit.register(print, 'called') and 3\n"
        "print('written', end=' '); main.run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("written called\n", "", 3)
