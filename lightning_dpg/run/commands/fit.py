"""``fit``: from a file and an epsilon to the options of Lightning's command line."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from lightning_dpg.advice import GOALS, Facts, Goal, cases, recommend
from lightning_dpg.entry_points import class_path
from lightning_dpg.errors import CommandError, nearest
from lightning_dpg.outcome import note
from lightning_dpg.run.commands.arguments import Parser, add_arguments, in_groups
from lightning_dpg.run.configurations import find_config, find_configs, refuse_foreign_code
from lightning_dpg.run.shipped import configuration_of, configured_classes, list_methods
from lightning_dpg.run.source import (
    Form,
    Reading,
    config_beside,
    data_settings,
    form_of,
    is_run,
    long_options,
    section_of,
)
from lightning_dpg.run.words import Setting, group_options, named_settings

_SAME = {
    "epsilon": "privacy.epsilon",
    "delta": "privacy.delta",
    "row-epsilon": "privacy.row_epsilon",
    "seed": "seed_everything",
    "book": "privacy.book",
    "dataset": "privacy.dataset",
}
"""Options of Lightning's command line by their short names; those of the data are in ``source``."""
_FLAGS = ("--help", "-h", "--no-book", "--print_config")
_VALUE = re.compile(r"(?!-)|-[\d.]")
_FORMS: dict[str, Form] = {
    "EdgeTableDataModule": "table",
    "TUGraphDataModule": "set",
    "GraphSetDataModule": "set",
}
"""Form of the data of the data modules that read no graph into memory."""
_PRIVATE = "data.nodes.private_columns"
_OF_COLUMNS = ("data.columns.", _PRIVATE, "data.nodes.right_columns", "data.nodes.domains")
_MANY_NODES = 10**9
_RANKS = ("LOCAL_RANK", "NODE_RANK", "GROUP_RANK")
"""Variables in which launchers number the processes of a run."""


class LongForm(NamedTuple):
    """A command line of Lightning."""

    words: list[str]
    """Its options; configurations are paths."""
    settings: list[Setting]
    """Settings of these options and of the configurations."""
    out: Path | None
    """Folder of the run, if the user has chosen one."""
    notes: list[str]
    """Lines for the user, on the choice of the method."""

    def check(self, command: str) -> None:
        """Refuse mistakes before PyTorch is imported, and print the notes.

        Args:
            command: Command of Lightning that takes the options.
        """
        if "torch" not in sys.modules:  # a process that has it may know more classes
            # Start-up time: only these commands need the parser's library.
            from lightning_dpg.run.early_check import refuse_mistakes

            refuse_mistakes(command, self.words, self.settings)
        for line in self.notes:
            note(line)


def long_form(args: Sequence[str], command: str = "fit", meant: Iterable[str] = ()) -> LongForm:
    """Replace short options by those of Lightning, which a command line may mix.

    Args:
        args: The command line.
        command: ``fit``, or another command that takes its options.
        meant: Further options that the user may have meant, such as ``--canaries`` of ``audit``.

    Raises:
        CommandError: If a word has no meaning, or if an option has another type.
    """
    parser = parser_of(command)
    file, own, others = _parted(args, parser)
    if file is not None and is_run(file):
        others = [*_words_of_run(Path(file), command), *others]
        file = None
    _refuse_unknown(others, parser, meant)
    options = in_groups(fit, vars(parser.parse_args(own)))
    return fit(file, *others, **{name: options[name] for name in options if name != "file"})


def in_short_words(text: str, args: Sequence[str]) -> str:
    """Name options in a message as the command line does.

    Args:
        text: The message.
        args: The command line.
    """
    given = {word.partition("=")[0] for word in args}
    for name, path in _SAME.items():
        if f"--{name}" in given:
            text = re.sub(rf"(?:--)?{re.escape(path)}", f"--{name}", text)
    return text


def parser_of(command: str) -> Parser:
    """Return the parser of the short options.

    Args:
        command: Name of the command.
    """
    parser = Parser(prog=f"lightning_dpg {command}")
    add_arguments(parser, fit)
    return parser


def _words_of_run(run: Path, command: str) -> list[str]:
    """Return the configuration of a run, and its newest checkpoint for commands that read one."""
    config = config_beside(run)
    assert config is not None  # of a run
    refuse_foreign_code(config, "--config {}")
    source = str((section_of(config, "data").get("init_args") or {}).get("name"))
    if source.startswith("given in Python"):
        raise CommandError(f"{run}: its data were {source}\ncall {command} in Python as well")
    if command in ("fit", "audit"):
        return [f"--config={config}"]
    # Start-up time: checkpoints are read by PyTorch.
    from lightning_dpg.run.checkpoints import newest_checkpoint

    checkpoint = newest_checkpoint(run / "checkpoints")
    if checkpoint is None:
        raise CommandError(f"{run}: no checkpoint of this run, which {command} reads")
    return [f"--config={config}", f"--ckpt_path={checkpoint}"]


def fit(
    file: str | None = None,
    *other_options: str,
    epsilon: float | None = None,
    method: str | None = None,
    goal: Goal | None = None,
    delta: float | None = None,
    out: Path | None = None,
    reading: Reading = Reading(),
    names: Literal["auto", "ids", "numbers"] | None = None,
    seed: int | None = None,
    book: str | None = None,
    dataset: str | None = None,
    row_epsilon: float | None = None,
) -> LongForm:
    """Fit a method to a private graph within a budget, and write a release.

    FILE is an edge list (any separator, CSV), .npz, .graphml, .gexf, .gml, .parquet, a database
    (duckdb:///FILE, postgresql://USER@HOST/DATABASE), a folder of a set of graphs, a built-in name, or the
    folder of a run, which stands for its configuration.
    Without --method the recommended one for the goal is taken, by public facts alone.

    All other settings stand in configurations (--config FILE, once or more, later ones win), or are
    options by their full names, such as --trainer.max_epochs or --data.val_fraction. Both can be mixed
    with the options above, which win over configurations.

    Args:
        file: The private data.
        *other_options: Options by their full names, and configurations.
        epsilon: Budget.
        method: Configuration or class of a method, also of another package; by default the recommended one, see ``list``.
        goal: Purpose of the release, for the choice of a method; by default ``shape``, for a set
            ``graphs``, with a column of amounts or times ``transfers``.
        delta: Budget; by default that of the configuration, 0 for a pure method.
        out: New or empty folder of the run; by default ``runs/METHOD/version_K``.
        reading: See :class:`lightning_dpg.run.source.Reading`.
        names: What the release calls the nodes: ``ids``, or ``numbers`` in a secret order, whose key stays
            in the folder of the run. ``auto``, the default, takes numbers for ids that were read off the
            edges, and ids if all nodes are listed.
        seed: Public seed, which the noise does not follow.
        book: URL of the budget book; by default that of LIGHTNING_DPG_BOOK.
        dataset: Name of the data in the book; by default they are recognized.
        row_epsilon: Budget of the private columns of one node, for a method that reads such columns.

    Example:
        python -m lightning_dpg fit transfers.csv --epsilon 1 --source payer --target payee
    """
    if method is not None and goal is not None:
        raise CommandError("--method and --goal: give one of them, a goal chooses a method")
    if is_first_process := not any(int(os.environ.get(name, "0")) for name in _RANKS):
        _check_new(out)
    words = find_configs([*other_options])
    given = list(named_settings(words))
    of_model = [each for each in given if each.section == "model"]
    # What names a method stands before its settings.
    of_model.sort(key=lambda each: each.name not in ("", "class_path"))
    model = next(iter(of_model), None)
    if method is not None and model is not None and model.name in ("", "class_path"):
        place = f"--{model.path}" if model.is_word else "a configuration"
        raise CommandError(f"--method {method}: {place} names a method, too; give one of them")
    budget = epsilon if epsilon is not None else _configured(given, "privacy", "epsilon")
    if file is not None and budget is None and method is None:
        raise CommandError(
            f"--epsilon is missing: every run states its budget, and {file} is no folder of a run\n"
            f"such as: python -m lightning_dpg fit {file} --epsilon 1"
        )
    data_class = f"{_configured(given, 'data', 'class_path') or ''}".rpartition(".")[2]
    form = _FORMS.get(data_class, form_of(file, reading.given()))
    notes: list[str] = []
    if method is None and model is None and (file is not None or goal is not None):
        facts = _facts(file, reading, form, goal, float(f"{budget or 1}"), delta)
        method, reason = _recommended(facts)
        notes = [reason, "another one: --method NAME, or --goal GOAL"]
    chosen = [] if method is None else _method_words(method)
    if file is not None:
        chosen += _without_columns(named_settings(chosen), given)
    options = {
        "epsilon": epsilon,
        "delta": delta,
        "row-epsilon": row_epsilon,
        "seed": seed,
        "book": book,
        "dataset": dataset,
    }
    added = [f"--{_SAME[name]}={value}" for name, value in options.items() if value is not None]
    of_data = reading.given() | ({} if names is None else {"names": names})
    if file is not None or of_data:
        section = data_settings(file, of_data, form)
        is_configured = form == "graph" and any("--config" in word for word in (*chosen, *words))
        has_class = bool(data_class) or is_configured
        added += [] if has_class else [f"--data={section['class_path']}"]
        added += long_options(section)
    of_short = list(named_settings(added))
    _refuse_repeated(given, of_short)
    settings = [*named_settings(chosen), *given, *of_short]
    return LongForm([*chosen, *words, *added], settings, out, notes * is_first_process)


def _check_new(out: Path | None) -> None:
    """Refuse a folder of a run that has files already."""
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CommandError(
            f"--out {out}: there is a file or a folder with files already\ngive a new folder"
        )


def _parted(args: Sequence[str], parser: Parser) -> tuple[str | None, list[str], list[str]]:
    """Part a command line into FILE, words of short options, and all other words.

    An option that the parser does not know takes the next word as its value, as those of Lightning do.
    """
    takes_value = {
        name: action.nargs != 0 for action in parser._actions for name in action.option_strings
    }
    file: str | None = None
    own, others = list[str](), list[str]()
    words = list(args)
    while words:
        word = words.pop(0)
        name, equals, _ = word.partition("=")
        if _VALUE.match(word):
            if file is not None:
                raise CommandError(
                    f"unknown word {word}: {file} is FILE already\n"
                    "all options: python -m lightning_dpg fit --help"
                )
            file = word
            continue
        place = own if name in takes_value else others
        place.append(word)
        if name in takes_value and not takes_value[name] and words[:1] in (["true"], ["false"]):
            raise CommandError(f"{name} is a flag: give it alone, or leave it out")
        is_alone = equals or word in _FLAGS or not takes_value.get(name, True)
        if not is_alone and words and _VALUE.match(words[0]):
            place.append(words.pop(0))
    return file, own, others


def _refuse_unknown(words: Sequence[str], parser: Parser, meant: Iterable[str]) -> None:
    """Refuse an option that neither this command nor Lightning has, before something seems missing."""
    known = group_options("fit").keys()
    short = [name for action in parser._actions for name in action.option_strings]
    for word in words:
        name = word.partition("=")[0]
        is_option = re.fullmatch(r"--\w[\w-]*", name) is not None
        if is_option and name[2:] not in known and name not in _FLAGS:
            near = nearest(name, [*short, *meant, *(f"--{each}" for each in known)])
            raise CommandError(
                f"unknown option {name}{near}\nall options: python -m {parser.prog} --help-all"
            )


def _configured(given: Sequence[Setting], section: str, name: str) -> object:
    """Return the last value of a setting; None without one."""
    return next(
        (each.value for each in reversed(given) if (each.section, each.name) == (section, name)),
        None,
    )


def _facts(
    file: str | None,
    reading: Reading,
    form: Form,
    goal: Goal | None,
    epsilon: float,
    delta: float | None,
) -> Facts:
    """Collect the public facts by which a method is chosen; nodes are counted if it depends on them."""
    is_set = form == "set"
    facts = Facts(
        goal or _default_goal(reading, is_set),
        epsilon,
        kind="set" if is_set else reading.kind or "undirected",
        allows_delta=bool(delta),
        has_attributes=reading.attributes is not None,
    )
    large = replace(facts, num_nodes=_MANY_NODES)
    if file is None or cases(facts) == cases(large):
        return facts
    # Start-up time: the graph is read before the choice of a method in this case only.
    from lightning_dpg.run.data import data_of

    return replace(facts, num_nodes=data_of(file, reading.given(), form).num_nodes)


def _default_goal(reading: Reading, is_set: bool) -> Goal:
    if is_set:
        return "graphs"
    return "shape" if reading.weight is None and reading.time is None else "transfers"


def _recommended(facts: Facts) -> tuple[str, str]:
    """Return the configuration of the recommended method, and the reason in one line."""
    *above, _ = cases(facts)
    best = recommend(facts)
    name = configuration_of(best)
    others = "".join(
        f"; from a mean degree of {case.bound} on {configuration_of(case)}" for case in above
    )
    return name, f"method {name}, {GOALS[facts.goal]}: {best.reason}{others}"


def _method_words(method: str) -> list[str]:
    """Name a method in words of Lightning: a configuration by its path, or else a class."""
    configuration = configured_classes().get(method, method)
    if configuration == method and "." in method and not method.endswith((".yaml", ".yml")):
        return [f"--model={method}"]
    if configuration == method and method in {row.name for row in list_methods()}:
        return [f"--model={method}"]
    try:
        return [f"--config={find_config(configuration)}"]
    except CommandError as error:
        if (path := class_path(method)) != method:
            return [f"--model={path}"]
        raise CommandError(str(error).replace("--config", "--method")) from error


def _without_columns(of_method: Iterable[Setting], given: Iterable[Setting]) -> list[str]:
    """Unset the columns that a configuration names for its own data, where other data take their place.

    Args:
        of_method: Settings of the configuration.
        given: Settings of the user, which stay.
    """
    asked = {f"{each.section}.{each.name}" for each in given}
    named = [f"{each.section}.{each.name}" for each in of_method]
    columns = [name for name in named if name.startswith(_OF_COLUMNS)]
    if _PRIVATE in columns and _PRIVATE not in asked:
        columns += ["data.nodes.attributes", "privacy.row_epsilon"]  # which are of these columns
    return [f"--{name}=null" for name in columns if name not in asked]


def _refuse_repeated(given: Sequence[Setting], added: Sequence[Setting]) -> None:
    """Refuse an option that the command line has in both spellings."""
    paths = {each.path.replace(".init_args", ""): each.path for each in given if each.is_word}
    for each in added:
        if each.path in paths:
            raise CommandError(
                f"--{paths[each.path]} stands beside its short form\ngive one of them"
            )
