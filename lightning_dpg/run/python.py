"""The fit of the Python interface: from a graph to an open release, in one call."""

import contextlib
import copy
import io
import json
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, get_args

import pytorch_lightning as pl
import yaml
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.loggers import CSVLogger, WandbLogger
from pytorch_lightning.utilities.seed import isolate_rng

from lightning_dpg.callbacks import Card, PrivacyAccountant, PrivacyProgressBar, ReleaseWriter
from lightning_dpg.classes import find_class
from lightning_dpg.datamodules import EdgeTableDataModule
from lightning_dpg.errors import CommandError, is_interrupt
from lightning_dpg.graph.attributes import LABELS, PRIVATE_LABEL
from lightning_dpg.interfaces import Account, GraphSetRecords
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.preflight import check_data, preflight
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.privacy.ledger import JOURNAL
from lightning_dpg.progress import at_terminal
from lightning_dpg.release.draws import check_settings
from lightning_dpg.release.reader import open_release
from lightning_dpg.release.release import Release, refuse_foreign_folder
from lightning_dpg.run.ends import spent_so_far, spent_too_early
from lightning_dpg.run.fit import ReadData, under_ids
from lightning_dpg.run.loggers import (
    TrackingMode,
    close_trackers,
    describe_run,
    prepare_wandb,
    run_facts,
    wandb_arguments,
)
from lightning_dpg.run.messages import in_words_of_python, readable_errors
from lightning_dpg.run.method_choice import Method, MethodChoice, choose_method
from lightning_dpg.run.parser import PrivateParser
from lightning_dpg.run.quiet import mute_known_warnings, quiet, without_messages
from lightning_dpg.run_folder import NOT_PRIVATE, RELEASE, owner_only


def data_module(
    data: object,
    chosen: MethodChoice,
    labels: str | None = None,
    classes: Sequence[object] | None = None,
) -> pl.LightningDataModule:
    """Set up data for a fit.

    Args:
        data: Name, path, graph, set of graphs, Ibis table, or a data module, which is used as it is.
        chosen: Method of the fit, whose data section says how its configuration reads them.
        labels: Attribute of the nodes that holds their classes.
        classes: All classes (public), if the labels are private.

    Raises:
        MisconfigurationException: If the method reads other data.
        CommandError: If ``labels`` are given to data that name their own.
    """
    is_table = hasattr(data, "get_backend")  # of Ibis
    labels = LABELS if labels is None and classes is not None else labels
    policy = "label" if classes is None else PRIVATE_LABEL
    if labels is not None and (is_table or isinstance(data, pl.LightningDataModule)):
        raise CommandError(
            f"labels {labels}: name them in the data module\n"
            f'EdgeListDataModule(..., nodes=Nodes(attributes=..., policy={{"{labels}": "{policy}"}}'
            + ("))" if classes is None else ", classes=[...]))")
        )
    if isinstance(data, pl.LightningDataModule):
        module = data
    elif is_table:
        module = EdgeTableDataModule(data)
    else:
        section = chosen.sections["data"]
        if labels is not None:
            nodes = {"policy": {labels: policy}} | ({} if classes is None else {"classes": classes})
            section = _with_labels(chosen, labels, nodes)
        is_folder = isinstance(data, Path) and chosen.method.capabilities.reads is GraphSetRecords
        source = str(data) if is_folder else data
        module = find_class(section["class_path"])(**section["init_args"] | {"name": source})
    module.prepare_data()
    module.setup("fit")
    check_data(chosen.method, module)
    return module


def _with_labels(chosen: MethodChoice, labels: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the data section of a method, with settings of nodes that name their labels."""
    section = chosen.sections["data"]
    nodes = section["init_args"].get("nodes") or {}
    if nodes.get("attributes") is None:
        raise CommandError(
            f"labels {labels}: {chosen.method.__name__} uses no attributes of nodes\nleave labels away"
        )
    policy = (nodes.get("policy") or {}) | given["policy"]
    nodes = nodes | given | {"policy": policy}
    return section | {"init_args": section["init_args"] | {"nodes": nodes}}


def reader(data: object, chosen: MethodChoice) -> ReadData:
    """Return a function that reads data anew, for fits that change them and publish nothing.

    A node has one number in all of them.

    Args:
        data: As for :func:`data_module`.
        chosen: Method of the fits.
    """
    chosen = chosen._replace(sections=under_ids(chosen.sections))
    if isinstance(data, pl.LightningDataModule):
        data_module(data, chosen)  # which numbers its nodes, maybe in a secret order

    def read() -> pl.LightningDataModule:
        if not isinstance(data, pl.LightningDataModule):
            return data_module(data, chosen)
        alone = copy.copy(data)
        alone.trainer = None  # that of an earlier fit holds noise, which is not copied
        return data_module(copy.deepcopy(alone), chosen)

    return read


def fit(
    data: object,
    method: Method = "bter",
    *,
    epsilon: float,
    delta: float | None = None,
    seed: int = 0,
    trainer: pl.Trainer | None = None,
    out: str | Path | None = None,
    card: Mapping[str, str] | None = None,
    progress: bool | None = None,
    wandb: TrackingMode | None = None,
    book: str | Account | None = None,
    dataset: str | None = None,
    labels: str | None = None,
    classes: Sequence[object] | None = None,
    row_epsilon: float | None = None,
    **settings: Any,
) -> Release:
    """Fit a method to a private graph within a budget, and open its release.

    Args:
        data: The private graph: name of a built-in graph, path of a file, graph of networkx or
            PyTorch Geometric, square matrix of numpy or scipy, DataFrame with the columns ``source``
            and ``target``, array of shape ``(M, 2)`` or list of pairs with an edge each, or a data
            module. For a method of sets of graphs: name of a set, path of a folder, data set of
            PyTorch Geometric, or a list of graphs.
        method: Name of a configuration such as ``"bter"`` (:func:`lightning_dpg.list_methods` lists
            them) or of a method of another package, class of a method, or a method object that was not
            fitted.
        epsilon: Budget; ``float("inf")`` for a method without noise.
        delta: Budget; by default that of the method's configuration, 0 for a pure method.
        seed: Public seed of the training. The noise is secret, and does not follow it.
        trainer: Lightning trainer to use as it is, with a PrivacyAccountant and a ReleaseWriter
            added for this fit if it has none; by default one with the settings of the configuration.
        out: New or empty folder of the run, for its release, log and checkpoints; by default the
            run leaves no files.
        card: Texts of the owner for the model card by name, such as ``operator``, ``purpose`` and
            ``contact``. They are published with the release.
        progress: Whether to show a progress bar of a method that trains, on stderr; by default in a
            terminal.
        wandb: ``"offline"`` tracks the curves by Weights & Biases into ``out``, for ``wandb sync``;
            ``"online"`` also sends them, or says why it cannot. Curves that read the private graph
            are left out. By default nothing is tracked.
        book: URL of the budget book that adds up all runs on the data, such as
            ``sqlite:///book.db``; by default that of the environment variable
            ``LIGHTNING_DPG_BOOK``. ``none`` leaves both out. Or the account of a run of which this one
            is a part.
        dataset: Name of the data in the book; by default they are recognized.
        labels: Attribute of the nodes that holds their classes, for a method that learns them; by
            default whole numbers ``y``. They are public unless ``classes`` are given.
        classes: All classes that a label can have, if the labels are private: they cost
            ``row_epsilon``. The list is public and must not be collected from the labels.
        row_epsilon: Budget of the private columns of one node, for a method that reads such columns.
        **settings: Arguments of the method's constructor.

    Returns:
        The open release.

    Raises:
        CommandError: If the data, the method or a setting is refused. Nothing is spent then, and no
            folder is left.

    Example:
        >>> import networkx as nx
        >>> import lightning_dpg as dpg
        >>> release = dpg.fit(nx.karate_club_graph(), method="bter", epsilon=1.0)
        >>> print(release)
        Release of BTER: one graph of 34 nodes
        edge-level (1, 0)-DP (add/remove one undirected edge), sum of pure epsilons accountant, ...
        sample(seed), sample_many(n), to_networkx(seed), to_pandas(seed), plot(kind), edge_score(pairs), ...
        >>> release.to_networkx(seed=0).number_of_nodes()
        34
    """
    with readable_errors(), isolate_rng(), owner_only(), warnings.catch_warnings():
        mute_known_warnings()
        _check_numbers(epsilon=epsilon, delta=delta, row_epsilon=row_epsilon)
        chosen = choose_method(method, settings)
        pl.seed_everything(seed, verbose=False)
        writer = ReleaseWriter(card=card)
        budget = PrivacyAccountant(
            epsilon,
            chosen.delta(delta, epsilon),
            book=book if isinstance(book, str) else None,
            dataset=dataset,
            row_epsilon=row_epsilon,
        )
        budget.account = book if isinstance(book, Account) else None
        stated = chosen.configuration(epsilon, delta, seed, row_epsilon)
        config = stated | _stated_source(data, chosen)
        if wandb is not None:
            _check_tracking(wandb, out, trainer)
        if trainer is not None:
            if out is not None:
                raise CommandError(
                    f"out {out}: the trainer has a folder of its own\n"
                    "leave out away, or set default_root_dir of the trainer"
                )
            _check_budgets(trainer, budget, has_delta=delta is not None)
            return _fit_with(trainer, budget, writer, chosen, data, config, labels, classes)
        if config["trainer"]["max_epochs"] is None:
            raise CommandError(
                f"{chosen.method.__name__} has no shipped configuration that sets its epochs\n"
                "give trainer=pytorch_lightning.Trainer(max_epochs=...)"
            )
        module = data_module(data, chosen, labels, classes)
        model = chosen.build(module)
        check_settings(model)
        is_silent = progress is False or not model.capabilities.is_trained
        shows_bar = not is_silent and (at_terminal() if progress is None else progress)
        with _run_folder(out) as folder:
            if out is not None:
                plain = json.loads(json.dumps(config))  # YAML refuses the float64 of numpy
                text = yaml.safe_dump(plain, sort_keys=False)
                (folder / "config.yaml").write_text(text, encoding="utf-8")
            tracker = None if wandb is None else _tracker(wandb, folder, data, model, budget)
            with quiet() if is_silent else without_messages():
                callbacks = [budget, _Quietly(writer)]
                own = _trainer(config["trainer"], folder, out is not None, callbacks, shows_bar)
                if tracker is not None:
                    own.loggers = [*own.loggers, tracker]
                try:
                    _run(own, model, module, budget)
                finally:
                    close_trackers(own)
            release = replace(open_release(folder, type(model)), configuration=config)
        if out is None:
            weakref.finalize(release, shutil.rmtree, folder, ignore_errors=True)
        return release


def _check_numbers(**numbers: float | None) -> None:
    """Refuse a budget that is no number, by the name of its argument."""
    for name, value in numbers.items():
        is_default = name != "epsilon" and value is None
        if not is_default and (isinstance(value, bool) or not isinstance(value, Real)):
            raise CommandError(f"{name} must be a number, got {value!r}")


def _check_tracking(mode: str, out: str | Path | None, trainer: pl.Trainer | None) -> None:
    """Refuse a mode that is none, and tracking without a folder that keeps its files."""
    if mode not in get_args(TrackingMode):
        raise CommandError(f'wandb must be "offline" or "online", got {mode!r}')
    if trainer is not None:
        raise CommandError(
            "wandb: the trainer has loggers of its own\n"
            "leave wandb away, and give a WandbLogger to the trainer"
        )
    if out is None:
        raise CommandError("wandb needs a folder for its files: give out, the folder of the run")


def _tracker(
    mode: TrackingMode, folder: Path, data: object, method: PrivateModule, budget: PrivacyAccountant
) -> WandbLogger:
    """Build a tracker into the folder of a run, with the public facts of the run."""
    arguments = wandb_arguments(mode)
    prepare_wandb(arguments, str(folder))
    logger = WandbLogger(**vars(arguments))
    source = data if isinstance(data, str | Path) else type(data).__name__
    describe_run(logger, run_facts(method, source, budget.budget, budget.row_budget))
    return logger


def _fit_with(
    trainer: pl.Trainer,
    accountant: PrivacyAccountant,
    writer: ReleaseWriter,
    chosen: MethodChoice,
    data: object,
    config: dict[str, Any],
    labels: str | None,
    classes: Sequence[object] | None,
) -> Release:
    """Fit with the caller's trainer, and restore its callbacks."""
    if trainer.current_epoch or trainer.global_step:
        raise CommandError("this trainer has made a run already: give a new one")
    before = typed(trainer).callbacks
    if typed(trainer).fast_dev_run:
        raise CommandError(
            "trainer.fast_dev_run writes no release, and spends budget\nleave it out"
        )
    added = [each for each in (accountant, writer) if not _has(trainer, type(each))]
    if writer not in added and writer.card != Card():
        raise CommandError("card: give it to the ReleaseWriter of the trainer")
    folder = Path(trainer.log_dir or trainer.default_root_dir)
    for name in (RELEASE, NOT_PRIVATE):
        refuse_foreign_folder(folder / name)
    module = data_module(data, chosen, labels, classes)
    model = chosen.build(module)
    active = next(each for each in (*before, accountant) if isinstance(each, PrivacyAccountant))
    typed(trainer).callbacks = [*added, *before]
    try:
        _run(trainer, model, module, active)
    finally:
        typed(trainer).callbacks = before
    epochs = {"max_epochs": trainer.max_epochs, "max_steps": trainer.max_steps}
    budgets = active.budget._asdict() | {"row_epsilon": active.row_epsilon}
    config = config | {
        "trainer": config["trainer"] | epochs,
        "privacy": config["privacy"] | {key: v for key, v in budgets.items() if v is not None},
    }
    return replace(open_release(folder, type(model)), configuration=config)


def _has(trainer: pl.Trainer, kind: type[Callback]) -> bool:
    """Return whether a trainer has a callback of a class or of one derived from it."""
    return any(isinstance(callback, kind) for callback in typed(trainer).callbacks)


def _check_budgets(trainer: pl.Trainer, budget: PrivacyAccountant, *, has_delta: bool) -> None:
    """Refuse a trainer whose accountant has another budget."""
    for own in typed(trainer).callbacks:
        if not isinstance(own, PrivacyAccountant):
            continue
        if (budget.book or budget.dataset) and (own.book, own.dataset) != (
            budget.book,
            budget.dataset,
        ):
            raise CommandError(
                "the trainer has a PrivacyAccountant: give book and dataset to it, and not to fit"
            )
        if own.epsilon != budget.epsilon or (has_delta and own.delta != budget.delta):
            raise CommandError(
                f"the trainer has a PrivacyAccountant of epsilon {own.epsilon:g} and delta "
                f"{own.delta}, and fit was asked for epsilon {budget.epsilon:g} and delta "
                f"{budget.delta}\nremove it from the trainer, or ask for its budget"
            )
        if budget.row_epsilon is not None and own.row_epsilon != budget.row_epsilon:
            raise CommandError(
                f"the trainer has a PrivacyAccountant of row_epsilon {own.row_epsilon}, and fit was "
                f"asked for {budget.row_epsilon:g}\nremove it from the trainer, or ask for its budget"
            )


def _run(
    trainer: pl.Trainer,
    method: PrivateModule,
    data: pl.LightningDataModule,
    accountant: PrivacyAccountant,
) -> None:
    """Fit; print notes on the data, explain an early end, and let Ctrl-C reach the caller."""
    preflight(trainer, method, data, accountant)  # before a logger makes its folder
    for line in getattr(data, "notes", ()):
        warnings.warn(in_words_of_python(line), stacklevel=4)
    try:
        trainer.fit(method, datamodule=data)
    except SystemExit as stop:  # Lightning ends the process
        if is_interrupt(stop):
            raise KeyboardInterrupt(spent_so_far(method)) from None
        raise
    if line := spent_too_early(trainer, method):
        warnings.warn(line, stacklevel=4)


def _stated_source(data: object, chosen: MethodChoice) -> dict[str, Any]:
    """Return the data section of the configuration in a run folder: names, and no objects."""
    section = chosen.sections["data"]
    is_named = isinstance(data, str | Path)
    name = str(data) if is_named else f"given in Python: {type(data).__name__}"
    return {"data": section | {"init_args": section["init_args"] | {"name": name}}}


@contextlib.contextmanager
def _run_folder(out: str | Path | None) -> Iterator[Path]:
    """Yield the folder of a run; remove it if the run fails before it reads the private data."""
    if out is None:
        folder = Path(tempfile.mkdtemp(prefix="lightning_dpg-"))
        try:
            yield folder
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return
    folder = Path(out).expanduser()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(
            f"out {out}: there is a file or a folder with files already\n"
            "give a new folder; open_release opens the release of an earlier run"
        )
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException:
        journal = folder / JOURNAL
        if not journal.is_file() or not journal.stat().st_size:
            shutil.rmtree(new_folders[-1] if new_folders else folder, ignore_errors=True)
            if not new_folders:
                folder.mkdir()
        raise


def _trainer(
    settings: dict[str, Any],
    folder: Path,
    leaves_files: bool,
    callbacks: Sequence[Callback],
    shows_bar: bool,
) -> pl.Trainer:
    """Build a trainer with the settings of a configuration."""
    parser = PrivateParser()
    parser.add_class_arguments(pl.Trainer, "trainer", instantiate=False)
    parsed = parser.instantiate(parser.parse_object({"trainer": settings})).trainer
    configured = [each for each in parsed.callbacks or () if not isinstance(each, ReleaseWriter)]
    bar = [PrivacyProgressBar()] if shows_bar else []
    parsed.callbacks = [*callbacks, *configured, *bar]
    parsed.enable_progress_bar = shows_bar
    parsed.default_root_dir = str(folder)
    parsed.logger = CSVLogger(str(folder), name="", version="") if leaves_files else False
    parsed.enable_checkpointing = parsed.enable_checkpointing if leaves_files else False
    return pl.Trainer(**vars(parsed))


class _Quietly(Callback):
    """Writer that prints nothing: the caller gets the open release."""

    def __init__(self, writer: ReleaseWriter) -> None:
        self._writer = writer

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Check what the release is to hold."""
        self._writer.on_fit_start(trainer, pl_module)

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the release."""
        with contextlib.redirect_stdout(io.StringIO()):
            self._writer.on_fit_end(trainer, pl_module)
