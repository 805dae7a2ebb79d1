"""README, CONTRIBUTING and the pages of docs/ name configurations, classes and options that exist."""

import ast
import contextlib
import inspect
import io
import math
import re
import runpy
from fnmatch import fnmatch
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import pytorch_lightning as pl
import yaml

import lightning_dpg as dpg
from lightning_dpg import advice, callbacks, datamodules, interfaces, methods
from lightning_dpg.classes import find_class
from lightning_dpg.graph import edge_sampling
from lightning_dpg.main import LIGHTNING_COMMANDS, command_names, main
from lightning_dpg.methods import private_training
from lightning_dpg.metrics import kernel_svm, motifs, paths, set_queries
from lightning_dpg.papers.wang2013 import dk2
from lightning_dpg.papers.xiao2014 import dendrogram
from lightning_dpg.papers.yang2021 import networks
from lightning_dpg.privacy import budget, dpsgd
from lightning_dpg.run.configurations import find_config, shipped_configs

ROOT = Path(__file__).parent.parent
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in FILES}
README, CHOOSING, BENCHMARK = TEXTS["README"], TEXTS["choosing"], TEXTS["benchmark"]
SECTIONS = {"model": methods, "data": datamodules}
OWNERS = {"privacy": callbacks.PrivacyAccountant, "card": callbacks.Card, "trainer": pl.Trainer}
# Classes and options of other libraries, and options of benchmarks/ and results/.
FOREIGN_CLASSES = {
    *("Trainer", "WandbLogger", "LightningDataModule"),
    *("EarlyStopping", "LearningRateMonitor", "ModelCheckpoint", "ReduceLROnPlateau"),
}
FOREIGN_CLASSES |= {"DeprecationWarning", "ProcessPoolExecutor", "TemporalData"}
FOREIGN_OPTIONS = {"--ckpt_path", "--config", "--extra-index-url", "--help", "--print_config"}
FOREIGN_OPTIONS |= {"--rows", "--splits", "--model", "--data", "--check", "--strict"}
FOREIGN_OPTIONS |= {"--master-addr", "--node-rank", "--nproc-per-node"}  # of torchrun
FOREIGN_OPTIONS |= {"--folder", "--dpg-method"}  # of benchmarks, and of pytest
# Files of the reader, in examples.
EXAMPLES = {"my_method.yaml"}

# Commands of ours that people call by themselves; of Lightning's only this one.
OWN = {"fit", *command_names()} - {*LIGHTNING_COMMANDS[1:]}


def code(text):
    """Lines of the blocks of code, without comments, and what stands between backticks."""
    found = re.findall(r"```(?!text)\w+\n(.*?)```", text, re.DOTALL)
    blocks = re.sub(r"\\\n\s*", "", "\n".join(found))
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [line.removeprefix("$ ").partition(" #")[0] for line in blocks.splitlines()] + inline


def command_lines():
    """Every line of code with its page."""
    return [(page, line) for page, text in TEXTS.items() for line in code(text)]


def named_configurations(text):
    """Every configuration that follows ``--config`` or ``--methods``."""
    for line in code(text):
        yield from re.findall(r"--config[ =](\w[\w./]*)", line)
        for names in re.findall(r"--methods((?:\s+\w[\w./]*)+)", line):
            yield from names.split()


def rows(text, heading, until="\n## "):
    """Cells of the table below a heading."""
    section = text.partition(f"## {heading}\n")[2].partition(until)[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return cells[2:]


def names_and_configurations():
    """Cells of methods and of configurations, of each table that has both."""
    chosen = [(row[1], row[2]) for row in rows(README, "Which method?")]
    return chosen + [(row[1], row[2]) for row in rows(CHOOSING, "In ten rows")]


def options():
    """Every option of a command line, with its command, configuration and data class (or none)."""
    commands = set(command_names())
    for _, line in command_lines():
        words = re.sub(r"^.*-m lightning_dpg ", "", line).split()
        command = words[0] if words and words[0] in commands else None
        config, data = (
            next((b for a, b in pairwise(words) if a == name), None)
            for name in ("--config", "--data")
        )
        for word in () if re.search("-m (results|benchmarks) ", line) else words:
            if word.startswith("--") and word not in FOREIGN_OPTIONS:
                yield command, config, data, word


@cache
def help_of(command):
    """Options that the help of a command names."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        main([command, "--help-all"])
        parts = re.findall(r"^    (\w+) ", said.getvalue(), re.MULTILINE)  # of a group of commands
        for part in parts if command == "budget" else ():
            main([command, part, "--help-all"])
    return set(re.findall(r"--[\w-]+(?:\.\w+)*", said.getvalue()))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_configurations_are_found(text):
    for name in {*named_configurations(text)} - EXAMPLES:
        assert find_config(name).is_file()


def test_configurations_are_named():
    assert {"dp_netgan", "bter.yaml", "privgraph"} <= set(named_configurations(README))


def test_readme_is_short():
    assert len(README.splitlines()) <= 130


@pytest.mark.parametrize(("names", "configurations"), names_and_configurations())
def test_rows_of_the_tables_name_methods_and_configurations(names, configurations):
    for name in re.findall(r"`([A-Z]\w+)`", names):
        assert name in methods.__all__
    first, *others = re.findall(r"`([^`]+)`", configurations) or [""]
    for name in (first, *(other.replace("...", first) for other in others)):
        assert not name or any(fnmatch(shipped, name) for shipped in shipped_configs()), name


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_classes_exist(text):
    for name in re.findall(r"`([A-Z]+[a-z]\w*[A-Za-z])(?:\([^`]*?\))?`", text):
        places = (methods, datamodules, callbacks, dpsgd, private_training, interfaces, budget)
        assert name in FOREIGN_CLASSES or any(hasattr(place, name) for place in places), name


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_files_exist(text):
    for path in re.findall(r"`((?:lightning_dpg|tests|conf|benchmarks)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path


def test_commands_exist():
    named = [re.search(r"-m lightning_dpg ([\w-]+)", line) for _, line in command_lines()]
    used = {match[1] for match in named if match}
    assert used <= set(command_names())
    assert OWN <= used


@pytest.mark.parametrize(("command", "config", "data", "option"), sorted(set(options()), key=str))
def test_options_exist(command, config, data, option):
    section, _, setting = option.removeprefix("--").partition(".")
    setting = setting.removeprefix("init_args.")
    if section in OWNERS:
        owner = OWNERS[section]
    elif section in SECTIONS:
        settings = yaml.safe_load(find_config(config or "dp_netgan").read_text(encoding="utf-8"))
        chosen = data if section == "data" and data else settings[section]["class_path"]
        owner = getattr(SECTIONS[section], chosen)
    else:
        helps = [help_of(each) for each in sorted(OWN) if command in (each, None)]
        assert option in set().union(*helps)
        return
    argument = setting.partition(".")[0]  # of a dictionary, a key may follow
    assert argument in inspect.signature(owner).parameters, owner


def test_settings_exist():
    places = (methods, datamodules, callbacks)
    owners = [getattr(place, name) for place in places for name in place.__all__]
    known = set().union(*(inspect.signature(owner).parameters for owner in owners))
    named = {
        name
        for text in TEXTS.values()
        for name in re.findall(r"`(?:\w+\()?(\w+): [\w.]+\)?`", text)
    }
    assert named
    assert named <= known | {"strategy", "devices"}


def python_blocks():
    """Each block of Python with its page; those of a page may need the ones before."""
    found = {
        page: re.findall(r"```python\n(.*?)```", text, re.DOTALL) for page, text in TEXTS.items()
    }
    return {
        f"{page}-{i}": block for page, blocks in found.items() for i, block in enumerate(blocks)
    }


@pytest.mark.parametrize("block", python_blocks().values(), ids=python_blocks())
def test_python_names_classes_and_arguments_that_exist(block):
    nodes = list(ast.walk(ast.parse(block)))
    imported = {
        name.name: find_class(f"{node.module}.{name.name}")
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    known = [(imported[node.func.id], node) for node in calls if name_of(node) in imported]
    public = [node for node in calls if getattr(value_of(node), "id", "") == "dpg"]
    known += [(public_function(node.func.attr), node) for node in public]
    assert known
    for function, node in known:
        keywords = dict.fromkeys(str(keyword.arg) for keyword in node.keywords)
        inspect.signature(function).bind(*node.args, **keywords)


def name_of(call):
    return getattr(call.func, "id", "")


def value_of(call):
    return getattr(call.func, "value", None)


def public_function(name):
    """A name of the public interface."""
    assert name in dpg.__all__
    return getattr(dpg, name)


def run_blocks(pages, folder, monkeypatch, capsys):
    """Run the blocks of Python of each page, one after another, in a folder; return the output."""
    monkeypatch.chdir(folder)
    for page in pages:
        names = {}
        for block in [text for key, text in python_blocks().items() if key.startswith(f"{page}-")]:
            script = folder / f"{page}.py"  # what processes import again
            script.write_text(block, encoding="utf-8")
            names = runpy.run_path(str(script), init_globals=names, run_name="__main__")
    return capsys.readouterr().out


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    assert "edge-level (1, 0)-DP" in run_blocks(["README"], tmp_path, monkeypatch, capsys)
    assert (tmp_path / "out" / "privacy.json").is_file()


@pytest.mark.parametrize("page", ["quickstart", "data", "auditing", "benchmark", "CONTRIBUTING"])
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    assert run_blocks([page], tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("path", [path for path in FILES if path.parent == ROOT], ids=str)
def test_links_lead_to_files(path):
    links = re.findall(r"\]\(([\w./-]+)\)", path.read_text(encoding="utf-8"))
    assert not [link for link in links if not (ROOT / link).exists()]


def test_the_belief_table_is_the_bound():
    table = rows(TEXTS["officers"], "What epsilon means for one relation")
    assert len(table) > 5
    for row in table:
        epsilon, *shown = [float(cell.removesuffix(" %")) for cell in row]
        odds = math.exp(epsilon)
        best = min(odds * 0.01, 1 - 0.99 / odds)  # of a test with 1 % false alarms
        exact = [odds / (1 + odds), 0.01 * odds / (0.99 + 0.01 * odds), best]
        digits = [len(cell.partition(".")[2].removesuffix(" %")) for cell in row[1:]]
        assert shown == [rounded_up(100 * x, n) for x, n in zip(exact, digits, strict=True)]


def rounded_up(value, digits):
    return math.ceil(round(value * 10**digits, 9)) / 10**digits


@pytest.mark.parametrize(
    ("shown", "limit"),
    [
        ("6,000 nodes", edge_sampling.MAX_NODES),
        ("100,000 nodes", advice.MAX_REPORT_NODES),
        ("20,000 nodes", dendrogram.MAX_NODES),
        ("20,000 nodes", paths.EXACT_UP_TO),
        ("10,000 graphs", kernel_svm.MAX_GRAPHS),
        ("5,000 nodes", set_queries.MAX_SPECTRUM_NODES),
        ("67 million pairs of degrees", dk2._MOST_CELLS),
        ("67 million entries", networks.MAX_ENTRIES),
        ("a million", motifs.EXACT_UP_TO),
    ],
)
def test_limits_are_those_of_the_code(shown, limit):
    assert shown in BENCHMARK
    number = shown.partition(" ")[0].replace(",", "")
    assert limit // 10**6 in (1, 67) if "million" in shown else limit == int(number)
