"""The release: files that may be published at the end of a run."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from safetensors.torch import save
from torch_geometric.data import Data

from lightning_dpg import __version__
from lightning_dpg.callbacks.card.evaluations import Findings, findings
from lightning_dpg.callbacks.card.facts import Facts
from lightning_dpg.callbacks.card.pages import nonprivate_page, pages
from lightning_dpg.callbacks.card.texts import Card
from lightning_dpg.callbacks.card.topics import topics, with_texts
from lightning_dpg.callbacks.checksums import public_digest, write_sums
from lightning_dpg.callbacks.graph_files import (
    FORMATS,
    Format,
    write_graph_files,
    write_graphs,
)
from lightning_dpg.callbacks.privacy_accountant import PrivacyAccountant
from lightning_dpg.callbacks.progress_bar import announce
from lightning_dpg.callbacks.statement import folder_name, full_sentence, privacy_statement
from lightning_dpg.errors import Refusal
from lightning_dpg.graph.io import check_edge_list_names
from lightning_dpg.graph.name_tensor import put_names
from lightning_dpg.graph.parquet import check_parquet, write_attribute_table
from lightning_dpg.graph.whole_files import naming_full_disk
from lightning_dpg.interfaces import (
    GraphRecords,
    GraphSetRecords,
    KindOfRecords,
    PublishesAttributes,
    PublishesFeatures,
    Rebuilt,
    Records,
    Released,
    serves_records,
)
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.run_folder import NOT_PRIVATE, RELEASE

__all__ = ["FORMATS", "Format", "ReleaseWriter", "write_graphs"]

GENERATOR = "generator.safetensors"
LEARNER = "learner.safetensors"
KEY = "node_names.csv"
"""Key file of numbers and node names, in the run folder and outside of the release."""
FEATURES = "features.npz"
ATTRIBUTE_TABLE = "node_attributes.parquet"
ATTRIBUTES = "node_attributes.npz"
"""Public attributes of the nodes of a release, which has synthetic graphs. They are a file of their
own: the file of the tensors stays what the method has released, earlier versions open a release
without looking at them, and a bag of words is sparse, which tensors there are not."""
STATEMENT = "privacy.json"
NONPRIVATE_CARD = "nonprivate-card.html"
"""Page beside the release with results of audits and attacks that read the private graph."""
CONFIGURATION = "config.yaml"
SCHEMA_VERSION = 3
"""Version of the recipe and of the statement: 3 has topics; 0.1.0 states none, meaning 1."""
RECIPE = "lightning_dpg"
"""Metadata key of the method, its hyperparameters, node names, and privacy."""


class ReleaseWriter(Callback):
    """Write ``release/`` into the run folder: synthetic graphs, generator, statement and card.

    Without a guarantee (epsilon ``.inf``, say) the same files go to ``not_private/``: only what is
    called ``release/`` may be published.

    A method that learns labels of graphs releases ``features.npz`` and the learner in place of
    graphs and generator. All files are functions of the released tensors, of the ledger, of the
    configuration and of the date, with checksums in ``SHA256SUMS``; the folder appears complete or
    not at all. Checkpoints are private.

    Args:
        num_graphs: Number of synthetic graphs, drawn from the public seeds 0, 1, ...
        formats: Suffixes of the files in which each graph is written: ``edges``, ``graphml``,
            ``npz`` and ``parquet``. By default the first three below a million edges. From there on
            it is ``parquet``, and ``npz`` where pyarrow is not installed (extra ``tables``).
            ``parquet`` among the given formats also writes public attributes of nodes as a table.
        card: Texts of the owner for the model card, by their names.
    """

    def __init__(
        self,
        num_graphs: int = 1,
        formats: Sequence[Format] | None = None,
        card: Card | Mapping[str, Any] | None = None,
    ) -> None:
        """Store the arguments."""
        if num_graphs < 1:
            raise Refusal(f"num_graphs must be positive, got {num_graphs}")
        self.num_graphs = num_graphs
        self.formats = None if formats is None else tuple(formats)
        self.card = Card.of(card)
        self._found = Findings({}, [])

    def on_fit_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Refuse what the release could not hold in the end, before anything is spent."""
        check_settings(pl_module)
        if "parquet" in (self.formats or ()):
            check_parquet()
        if trainer.log_dir is None and not typed(trainer).fast_dev_run:
            raise MisconfigurationException(
                f"{type(trainer.logger).__name__} has no folder for the release\n"
                "give it one (save_dir), or put a CSVLogger first in the list of loggers"
            )
        # Read once: a file that is gone in the end would cost the release of a budget that is spent.
        self._found = findings(self.card, type(pl_module).__name__)
        today()
        data = typed(trainer).datamodule
        records = data.records if serves_records(data) else None
        if isinstance(records, GraphRecords) and "edges" in (self.formats or FORMATS):
            check_edge_list_names(records.node_names)

    def on_fit_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Write the release."""
        folder = trainer.log_dir  # asks all ranks, as does the statement
        accountant = _accountant(trainer)
        state = privacy_statement if accountant is None else accountant.statement
        statement = _stated(state(pl_module))
        if folder is None or not trainer.is_global_zero:
            return
        release = Path(folder) / folder_name(statement)
        data = typed(trainer).datamodule
        if serves_records(data) and data.write_key(Path(folder) / KEY):
            print(f"names of the node numbers, for you only: {Path(folder) / KEY}")
        # Without a logger the folder is one of the user, and so is a file of that name.
        path = Path(folder) / CONFIGURATION
        configuration = public_digest(path) if trainer.loggers and path.is_file() else None
        records = data.records if serves_records(data) else None
        facts = self._facts(pl_module, records, configuration)
        if accountant is not None:
            facts = facts._replace(other_runs=accountant.other_runs)
        found = self._found
        content = statement | with_texts(topics(statement, facts), self.card, found.topic)
        announce(trainer, f"writing {release}")
        write_folder(release, lambda place: self._fill(place, pl_module, statement, content))
        for name in {RELEASE, NOT_PRIVATE} - {release.name}:  # of an earlier run in this folder
            shutil.rmtree(Path(folder) / name, ignore_errors=True)
        print(f"run folder: {folder}\n{release.name.replace('_', ' ')}: {release}")
        write_nonprivate_card(content, found, Path(folder))

    def on_predict_batch_end(
        self,
        trainer: Trainer,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Write a predicted graph, or released features and predicted labels of graphs."""
        folder = trainer.log_dir
        if folder is None:
            return
        place = Path(folder) / "predictions"
        if isinstance(outputs, Data):
            place.mkdir(parents=True, exist_ok=True)
            for path in write_graph_files(outputs, place, int(batch), self.formats):
                print(f"synthetic graph: {path}")
        elif isinstance(outputs, dict):
            statement = _stated(privacy_statement(pl_module))

            def fill(made: Path) -> None:
                np.savez_compressed(made / FEATURES, **outputs)
                np.savetxt(made / "labels.txt", outputs["labels"], fmt="%d")
                _write_statement(statement, made)

            write_folder(place, fill)
            print(f"predictions: {place}\nguarantee: {full_sentence(statement)}")

    def _facts(self, module: Rebuilt, records: Records | None, configuration: str | None) -> Facts:
        arrays = module.released_arrays() if isinstance(module, PublishesFeatures) else None
        return Facts(
            method_path=type(module).public_path(),
            settings=plain_settings(module),
            is_set=isinstance(records, GraphSetRecords),
            max_occurrences=records.max_occurrences if isinstance(records, GraphSetRecords) else 1,
            num_graphs=self.num_graphs if arrays is None else None,
            date=today(),
            version=__version__,
            configuration=configuration,
        )

    def _fill(
        self, folder: Path, module: Any, statement: dict[str, Any], content: dict[str, Any]
    ) -> None:
        arrays: dict[str, Any] | None = None
        if isinstance(module, PublishesFeatures):
            arrays = module.released_arrays()
        if arrays is not None:
            np.savez_compressed(folder / FEATURES, **arrays)
            save_generator(module, statement, folder / LEARNER)
        else:
            write_graphs(module, range(self.num_graphs), folder, self.formats)
            save_generator(module, statement, folder / GENERATOR)
            write_attributes(module, folder, self.formats)
        write_card(content, folder)


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Write a folder that appears complete or not at all, in place of an older one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        made = scratch / "new"
        made.mkdir()
        with naming_full_disk(folder, made):
            fill(made)
        if folder.exists():
            folder.rename(scratch / "old")
        made.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_card(content: dict[str, Any], folder: Path) -> None:
    """Write ``privacy.json``, the card in all formats, and the checksums of the whole release.

    Args:
        content: Statement and topics.
        folder: The release.
    """
    _write_statement(content, folder)
    for name, text in pages(content).items():
        (folder / name).write_text(text, encoding="utf-8")
    write_sums(folder)


def write_nonprivate_card(content: dict[str, Any], found: Findings, folder: Path) -> None:
    """Write results that read the private graph into the run folder, if there are any."""
    if found.private:
        page = folder / NONPRIVATE_CARD
        page.write_text(nonprivate_page(content, found.private), encoding="utf-8")
        print(f"card with private results, for you only: {page}")


def today() -> str:
    """The day, year first, by universal time; that of ``SOURCE_DATE_EPOCH`` if it is set.

    Raises:
        Refusal: If the variable is no number of seconds.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds and not seconds.isdecimal():
        raise Refusal(f"SOURCE_DATE_EPOCH must be a number of seconds, got {seconds!r}")
    now = datetime.fromtimestamp(int(seconds), UTC) if seconds else datetime.now(UTC)
    return now.date().isoformat()


def plain_settings(method: Released) -> dict[str, Any]:
    """Hyperparameters of a method, without those by which the command line made the object."""
    # Lightning's own keys start with "_".
    return {key: value for key, value in method.hparams.items() if not key.startswith("_")}


def check_settings(method: Released) -> None:
    """Refuse hyperparameters that the files of a release cannot hold.

    Args:
        method: The method.

    Raises:
        MisconfigurationException: If one is no plain value.
    """
    for name, value in plain_settings(method).items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise MisconfigurationException(
                f"{type(method).__name__}: {name} is no plain value ({error})\n"
                "a release holds numbers, texts, and lists or mappings of them"
            ) from error


def save_generator(method: Rebuilt, statement: dict[str, Any], path: Path) -> None:
    """Write the released tensors and the metadata that rebuild the method around them."""
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in method.released_state().items()
    }
    check_settings(method)
    recipe = {
        "schema_version": SCHEMA_VERSION,
        "method": type(method).public_path(),
        "hparams": plain_settings(method),
    }
    put_names(method.node_names, recipe, tensors)
    recipe["privacy"] = statement
    if isinstance(method, KindOfRecords) and method.kind != "undirected":
        recipe |= {"kind": method.kind, "num_left": method.num_left}
    text = json.dumps(recipe, allow_nan=False)
    # One key: safetensors writes several in random order, and equal releases would differ.
    # Written by Python: safetensors would make the file readable by its owner only.
    path.write_bytes(save(tensors, metadata={RECIPE: text}))


def write_attributes(
    method: Rebuilt, folder: Path, formats: Sequence[Format] | None = None
) -> None:
    """Write the public attributes of the nodes into a release, if there are any."""
    attributes = method.attribute_arrays() if isinstance(method, PublishesAttributes) else {}
    if attributes:
        names = np.array(method.node_names)
        np.savez_compressed(folder / ATTRIBUTES, node_names=names, **attributes)
    if attributes and "parquet" in (formats or ()):
        with (folder / ATTRIBUTE_TABLE).open("wb") as file:
            write_attribute_table(list(method.node_names or []), attributes, file)


def _accountant(trainer: Trainer) -> PrivacyAccountant | None:
    """Accountant of the run, unless a callback has removed it."""
    return next(
        (each for each in typed(trainer).callbacks if isinstance(each, PrivacyAccountant)), None
    )


def _stated(statement: dict[str, Any]) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, **statement}


def _write_statement(statement: dict[str, Any], folder: Path) -> None:
    text = json.dumps(statement, indent=2, allow_nan=False)
    (folder / STATEMENT).write_text(text + "\n", encoding="utf-8")
