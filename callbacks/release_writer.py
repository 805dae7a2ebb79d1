"""A callback that writes the release: files that may be published at the end of a run."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch_geometric.data import Data

from lightning_dpg import __version__
from lightning_dpg.callbacks.privacy_accountant import PrivacyAccountant
from lightning_dpg.callbacks.progress_bar import announce
from lightning_dpg.errors import Refusal
from lightning_dpg.formats.io import check_edge_list_names
from lightning_dpg.interfaces import (
    GraphRecords,
    GraphSetRecords,
    PublishesFeatures,
    Rebuilt,
    Records,
    public_path,
    serves_records,
)
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.release.card.evaluations import Findings, findings
from lightning_dpg.release.card.texts import Card
from lightning_dpg.release.card.topics import Facts, topics, with_texts
from lightning_dpg.release.checksums import public_digest
from lightning_dpg.release.draws import (
    check_settings,
    drawn_with,
    plain_settings,
    save_generator,
    write_draws,
)
from lightning_dpg.release.graph_files import FORMATS, Format, write_graph_files
from lightning_dpg.release.statement import folder_name, full_sentence, privacy_statement
from lightning_dpg.release.writer import (
    FEATURES,
    KEY,
    today,
    with_version,
    write_card,
    write_folder,
    write_nonprivate_card,
    write_statement,
)
from lightning_dpg.run_folder import CONFIGURATION, GENERATOR, LEARNER, NOT_PRIVATE, RELEASE

NAMED = "names in the release: ids of the nodes (for numbers in a secret order: --names numbers)"
NUMBERED = (
    "names in the release: numbers in a secret order (for ids: list all nodes, --nodes FILE, or --names "
    "ids); key, for you only:"
)


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
        """Refuse a run whose release could not be written, before anything is spent."""
        check_settings(pl_module)
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
        statement = with_version(state(pl_module))
        if folder is None or not trainer.is_global_zero:
            return
        release = Path(folder) / folder_name(statement)
        data = typed(trainer).datamodule
        key = Path(folder) / KEY
        has_key = serves_records(data) and data.write_key(key)
        # Without a logger the folder is one of the user, and so is a file of that name.
        path = Path(folder) / CONFIGURATION
        configuration = public_digest(path) if trainer.loggers and path.is_file() else None
        records = data.records if serves_records(data) else None
        facts = self._facts(pl_module, records, configuration)
        if accountant is not None:
            facts = facts._replace(other_runs=accountant.other_runs)
        results = self._found
        content = statement | with_texts(topics(statement, facts), self.card, results.topic)
        announce(trainer, f"writing {release}")
        write_folder(release, lambda place: self._fill(place, pl_module, statement, content))
        for name in {RELEASE, NOT_PRIVATE} - {release.name}:  # of an earlier run in this folder
            shutil.rmtree(Path(folder) / name, ignore_errors=True)
        print(f"run folder: {Path(folder)}\n{release.name.replace('_', ' ')}: {release}")
        if isinstance(records, GraphRecords):
            print(f"{NUMBERED} {key}" if has_key else NAMED)
        write_nonprivate_card(content, results, Path(folder))

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
            statement = with_version(privacy_statement(pl_module))

            def fill(scratch: Path) -> None:
                np.savez_compressed(scratch / FEATURES, **outputs)
                np.savetxt(scratch / "labels.txt", outputs["labels"], fmt="%d")
                write_statement(statement, scratch)

            write_folder(place, fill)
            print(f"predictions: {place}\nguarantee: {full_sentence(statement)}")

    def _facts(self, module: Rebuilt, records: Records | None, configuration: str | None) -> Facts:
        arrays = module.released_arrays() if isinstance(module, PublishesFeatures) else None
        return Facts(
            method_path=public_path(type(module)),
            settings=plain_settings(module),
            is_set=isinstance(records, GraphSetRecords),
            max_occurrences=records.max_occurrences if isinstance(records, GraphSetRecords) else 1,
            num_graphs=self.num_graphs if arrays is None else None,
            date=today(),
            version=__version__,
            configuration=configuration,
            drawn_with=drawn_with(),
        )

    def _fill(
        self, folder: Path, module: Any, statement: dict[str, Any], content: dict[str, Any]
    ) -> None:
        write_draws(module, self.num_graphs, folder, self.formats)
        has_features = (folder / FEATURES).exists()
        save_generator(module, statement, folder / (LEARNER if has_features else GENERATOR))
        write_card(content, folder)


def _accountant(trainer: Trainer) -> PrivacyAccountant | None:
    """Return the accountant of the run, unless a callback has removed it."""
    return next(
        (each for each in typed(trainer).callbacks if isinstance(each, PrivacyAccountant)), None
    )
