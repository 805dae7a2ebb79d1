"""README and CONTRIBUTING name configurations, classes, files and options that exist."""

import ast
import inspect
import re
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from lightning_dpg import callbacks, datamodules, interfaces, methods
from lightning_dpg.classes import find_class, is_abstract
from lightning_dpg.commands import audit, compare, evaluate, generate, plan, verify
from lightning_dpg.methods import private_training
from lightning_dpg.privacy import budget, dpsgd
from lightning_dpg.running.settings import find_config, shipped_configs

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXTS = {"README": README, "CONTRIBUTING": (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")}
OWN = {
    "audit": audit,
    "compare": compare,
    "evaluate": evaluate,
    "generate": generate,
    "plan": plan,
    "verify": verify,
}
SECTIONS = {"model": methods, "data": datamodules}
# Classes and options of other libraries, and options of benchmarks/.
FOREIGN_CLASSES = {"Trainer", "WandbLogger"}
FOREIGN_OPTIONS = {"--ckpt_path", "--config", "--extra-index-url", "--help", "--print_config"}
FOREIGN_OPTIONS |= {"--rows", "--splits", "--model", "--data"}


def code(text):
    """Lines of the blocks of code, without comments, and what stands between backticks."""
    blocks = "\n".join(re.findall(r"```(?!mermaid)\w+\n(.*?)```", text, re.DOTALL))
    inline = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [line.partition(" #")[0] for line in blocks.splitlines()] + inline


def named_configurations(text):
    """Every configuration that follows ``--config`` or ``--methods``."""
    for line in code(text):
        yield from re.findall(r"--config[ =](\w[\w./]*)", line)
        for names in re.findall(r"--methods((?:\s+\w[\w./]*)+)", line):
            yield from names.split()


def table_of_methods():
    """First and last cell of each row."""
    section = README.partition("## Methods")[2].partition("\n\nAll guarantees")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if "|" in line]
    return [(row[0], row[-1]) for row in cells[2:]]


def options():
    """Every option of a command line, with its command (or none) and its configuration (or none)."""
    for line in code(README):
        words = re.sub(r"^.*-m lightning_dpg ", "", line).split()
        command = words[0] if words and words[0] in OWN else None
        config = next((b for a, b in pairwise(words) if a == "--config"), None)
        for word in words:
            if word.startswith("--") and word not in FOREIGN_OPTIONS:
                yield command, config, word


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_configurations_are_found(text):
    for name in named_configurations(text):
        assert find_config(name).is_file()


def test_configurations_are_named():
    assert {"dp_netgan.yaml", "papers/yang2021/gvae"} <= set(named_configurations(README))


@pytest.mark.parametrize(("names", "configurations"), table_of_methods())
def test_rows_of_the_table_name_methods_and_configurations(names, configurations):
    for name in re.findall(r"`(\w+)`", names):
        assert name in methods.__all__
    first, *others = re.findall(r"`([^`]+)`", configurations) or [""]
    for name in (first, *(other.replace("...", first) for other in others)):
        assert not name or any(fnmatch(shipped, name) for shipped in shipped_configs()), name


def test_the_table_names_every_method():
    named = set(re.findall(r"`(\w+)`", " ".join(names for names, _ in table_of_methods())))
    classes = {name: getattr(methods, name) for name in methods.__all__}
    released = (methods.Synthesizer, methods.GraphFeatureRelease)
    shipped = {name for name, found in classes.items() if issubclass(found, released)}
    assert named == {name for name in shipped if not is_abstract(classes[name])}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_classes_exist(text):
    for name in re.findall(r"`([A-Z]+[a-z]\w*[A-Za-z])(?:\(.*?\))?`", text):
        places = (methods, datamodules, callbacks, dpsgd, private_training, interfaces, budget)
        assert name in FOREIGN_CLASSES or any(hasattr(place, name) for place in places), name


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_files_exist(text):
    for path in re.findall(r"`((?:lightning_dpg|tests|conf|benchmarks)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize(("command", "config", "option"), sorted(set(options()), key=str))
def test_options_exist(command, config, option, capsys):
    section, _, setting = option.removeprefix("--").partition(".")
    setting = setting.removeprefix("init_args.")
    if section == "privacy":
        owner = callbacks.PrivacyAccountant
    elif section in SECTIONS:
        settings = yaml.safe_load(find_config(config or "dp_netgan").read_text(encoding="utf-8"))
        owner = getattr(SECTIONS[section], settings[section]["class_path"])
    else:
        with pytest.raises(SystemExit):
            OWN[command or "audit"].run(["--help"])
        assert re.search(rf"{option}\b", capsys.readouterr().out)
        return
    assert setting in inspect.signature(owner).parameters, owner


def test_settings_exist():
    places = (methods, datamodules, callbacks)
    owners = [getattr(place, name) for place in places for name in place.__all__]
    known = set().union(*(inspect.signature(owner).parameters for owner in owners))
    named = re.findall(r"`(?:\w+\()?(\w+): [\w.]+\)?`", README)
    assert named
    assert set(named) <= known


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_python_names_classes_and_arguments_that_exist(block):
    nodes = list(ast.walk(ast.parse(block)))
    imported = {
        name.name: find_class(f"{node.module}.{name.name}")
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    known = [node for node in calls if getattr(node.func, "id", "") in imported]
    assert known
    for node in known:
        keywords = dict.fromkeys(str(keyword.arg) for keyword in node.keywords)
        inspect.signature(imported[node.func.id]).bind(*node.args, **keywords)
