"""Mistakes that are refused before PyTorch is imported: only those that the parser refuses too."""

import dataclasses
import functools
import inspect

import pytest
import pytorch_lightning as pl
import yaml

from lightning_dpg import datamodules, methods
from lightning_dpg.classes import is_abstract as is_abstract_class
from lightning_dpg.errors import Refusal, shorten
from lightning_dpg.main import LIGHTNING_COMMANDS
from lightning_dpg.methods import PrivateModule
from lightning_dpg.run import early_check, words
from lightning_dpg.run.configurations import find_configs, shipped_configs
from lightning_dpg.run.lightning_cli import PrivateCLI
from lightning_dpg.run.messages import GROUPS, options_of
from lightning_dpg.run.parser import PrivateParser
from lightning_dpg.run.shipped import is_abstract
from lightning_dpg.run.words import class_options, exported_classes, group_options, shipped_classes

BTER = ("--config", "bter")
# Options, and whether they are refused early.
MISTAKES = [
    ([*BTER, "--privacy.epsilo", "2"], True),
    ([*BTER, "--trainer.max-epochs=2"], True),
    ([*BTER, "--privacy.epsilon", "lots"], True),
    ([*BTER, "--trainer.limit_train_batches", "all"], True),
    ([*BTER, "--model", "BTR"], True),
    ([*BTER, "--data", "Nothing"], True),
    ([*BTER, "--model.count_shar", ".1"], True),
    ([*BTER, "--model.init_args.count_share", "much"], True),
    ([*BTER, "--model", "PrivCom", "--model.release", "rr_spectral"], True),
    ([*BTER, "--data", "EdgeTableDataModule", "--data.sorce", "x"], True),
    ([*BTER, "--data.source", "x", "--data", "EdgeTableDataModule"], True),
    ([*BTER, "--data.nodes.names", "none"], True),
    ([*BTER, "--data.nodes.names", '"a" > b'], True),
    ([*BTER, "--data.nodes.lef", "ids.txt"], True),
    ([*BTER, "--data.left_nodes", "ids.txt"], True),
    ([*BTER, "--config", "group.yaml"], True),
    ([*BTER, "--config", "word.yaml"], True),
    ([*BTER, "--data.name", "nowhere/nothing.csv"], True),
    ([*BTER, "--data.name", "les_mis"], True),
    ([*BTER, "--data.name", "folder"], True),
    ([*BTER, "--data.name", "a" * 3000 + ".csv"], True),
    ([*BTER, "--data.name", "~nobody_here/a.csv"], True),
    ([*BTER, "--data.name", "postgresql://nobody@nowhere/a.csv"], True),
    ([*BTER, "--data.nodes.ids", "nothing.txt"], True),
    ([*BTER, "--ckpt_path", "nothing.ckpt"], True),
    (["--config", "wrong.yaml"], True),
    ([], True),
    (["--privacy.epsilon", "1", "--model", "BTER"], True),
    # The parser refuses these as well, after the import of PyTorch.
    ([*BTER, "--model", "mine.Own"], False),
    ([*BTER, "--trainer.max_epochs.inner", "3"], False),
    ([*BTER, "--data.name"], False),
]
FILES = {
    "wrong.yaml": {"trainer": {"logger": False, "max_epoch": {"a": 1}}},
    "group.yaml": {"data": {"init_args": {"nodes": {"lef": "ids.txt"}}}},
    "word.yaml": {"data": {"init_args": {"nodes": "ids.txt"}}},
}


def refuse(command, args):
    """Refuse mistakes of a command line, as before the import of PyTorch."""
    early_check.refuse_mistakes(command, args, list(words.named_settings(args)))


def parser_of(command):
    """The parser of a command."""

    class Parsed(Exception):
        pass

    class Parser(PrivateParser):
        def parse_args(self, *args, **kwargs):
            raise Parsed(self)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Parsed) as parsed:
        patch.setattr("lightning_dpg.run.lightning_cli.PrivateParser", Parser)
        PrivateCLI([command])
    return parsed.value.args[0]._subcommands_action._name_parser_map[command]


@pytest.fixture(scope="module", autouse=True)
def read_once():
    """Read each source file once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("classes_of", "_imported_names"):
            patch.setattr(words, name, functools.cache(getattr(words, name)))
        yield


@pytest.mark.parametrize("command", LIGHTNING_COMMANDS)
def test_options_of_a_command_are_those_of_its_parser(command):
    known = {action.dest for action in parser_of(command)._actions}
    flag = {"no-book"}  # replaced before parsing
    assert group_options(command).keys() - flag == {x for x in known if not x.endswith(".help")}


@pytest.mark.parametrize(
    ("section", "base"), [("model", PrivateModule), ("data", pl.LightningDataModule)]
)
def test_classes_and_their_options_are_those_of_the_modules(section, base):
    shipped = shipped_classes(section)
    for name in methods.__all__:  # which load at their first use
        getattr(methods, name)
    classes = {x.__name__: x for x in below(base) if x.__module__.startswith("lightning_dpg.")}
    assert shipped.keys() == classes.keys()
    for name, cls in classes.items():
        assert is_abstract(shipped[name]) == is_abstract_class(cls), name
        options = class_options(shipped[name])
        assert options.keys() == {*options_of(cls)}, name


@pytest.mark.parametrize(("section", "module"), [("model", methods), ("data", datamodules)])
def test_an_exported_class_has_all_its_bases(section, module):
    shipped = shipped_classes(section)
    exported = {name for name in module.__all__ if name in shipped}
    found = exported_classes(section, [*exported, "Nothing"])
    assert found.keys() == exported
    for name, family in found.items():
        assert [node.name for node in family] == [node.name for node in shipped[name]]


def below(base):
    """All subclasses."""
    direct = base.__subclasses__()
    return {*direct}.union(*map(below, direct))


def of_other_classes():
    """Shipped configurations by the classes that they name, each pair of classes once."""
    read = {name: yaml.safe_load(path.read_text()) for name, path in shipped_configs().items()}
    classes = lambda name: [read[name].get(key, {}).get("class_path") for key in ("model", "data")]
    return {str(classes(name)): (name, read[name]) for name in read}.values()


@pytest.mark.parametrize(("name", "content"), of_other_classes())
def test_every_option_of_every_configuration_passes(name, content, monkeypatch):
    monkeypatch.setattr(early_check, "refuse_missing_files", lambda *_: None)
    args = find_configs(["--config", "dp_netgan", "--config", name])
    for section, module in (("model", methods), ("data", datamodules)):
        path = content.get(section, {}).get("class_path", "PrivateModule")
        for option in inspect.signature(getattr(module, path, object)).parameters.values():
            fields = dataclasses.fields(option.default) if option.name in GROUPS else ()
            for field in fields:
                default = "null" if field.default is None else field.default
                args.append(f"--data.{option.name}.{field.name}={default}")
            default = {None: "null", option.empty: "1"}.get(option.default, option.default)
            args += [] if fields else [f"--{section}.init_args.{option.name}={default}"]
    refuse("fit", [*args, "--trainer.callbacks+=GraphStatistics", "--no-book"])


@pytest.mark.parametrize(("options", "is_early"), MISTAKES)
def test_a_mistake_has_the_message_of_the_parser(options, is_early, fails, tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_text(yaml.safe_dump(content))
    said = fails("fit", *options).strip()
    try:
        refuse("fit", find_configs(options))
    except Refusal as refusal:
        assert is_early
        assert shorten(str(refusal)) == said
    else:
        assert not is_early


@pytest.mark.parametrize(
    "options",
    [
        ["--help", "--nothing"],
        ["--model", "mine.Own", "--model.anything", "1"],
        ["--model.dict_kwargs.anything", "1"],
        ["--model.init_args", "{anything: 1}"],
        ["--trainer.callbacks+", "mine.Own", "--model", "Own", "--model.anything", "1"],
        ["--trainer.strategy.init_args.anything", "1"],
        ["--trainer.logger+=CSVLogger", "--trainer.logger.anything", "1"],
        ["--card.purpose", "--anything=two words"],
        ["--data", "EdgeTableDataModule", "--data.source", "x", "--data.nodes.ids", "people(id)"],
        ["--data", "SubgraphDataModule", "--data.name", "Cora"],
        ["--config", "dotted.yaml", "--model.num_samples", "1"],
        ["--config", "nested.yaml", "--model.num_samples", "1"],
    ],
)
def test_what_is_uncertain_passes(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dotted.yaml").write_text("model.class_path: DPNetGAN")
    (tmp_path / "nested.yaml").write_text("config: dotted.yaml")
    refuse("fit", find_configs([*BTER, *options]))


def test_predict_reads_no_data(tmp_path):
    (tmp_path / "a.ckpt").touch()
    options = ["--data.name", "gone.csv", "--ckpt_path", str(tmp_path / "a.ckpt")]
    refuse("predict", find_configs([*BTER, *options]))
