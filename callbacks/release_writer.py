"""The release: files that may be published at the end of a run."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from safetensors.torch import save
from torch_geometric.data import Data

from lightning_dpg.callbacks.card.texts import Card
from lightning_dpg.callbacks.checksums import write_sums
from lightning_dpg.callbacks.statement import full_sentence, privacy_statement
from lightning_dpg.graph.io import check_edge_list_names, write_graph
from lightning_dpg.interfaces import (
    GraphRecords,
    PublishesFeatures,
    PublishesGraphs,
    Rebuilt,
    serves_records,
)

Format = Literal["edges", "graphml", "npz"]
FORMATS: tuple[Format, ...] = ("edges", "graphml", "npz")
GENERATOR = "generator.safetensors"
LEARNER = "learner.safetensors"
KEY = "node_names.csv"
"""Key file of numbers and node names, in the run folder and outside of the release."""
FEATURES = "features.npz"
STATEMENT = "privacy.json"
CARD = "MODEL_CARD.md"
SCHEMA_VERSION = 2
"""Version of the recipe and of the statement; both of 0.1.0 state none, which stands for 1."""
RECIPE = "lightning_dpg"
"""Metadata key of the method, its hyperparameters, node names, and privacy."""


class ReleaseWriter(Callback):
    """Write ``release/`` into the run folder: synthetic graphs, generator and privacy statement.

    A method that learns labels of graphs releases ``features.npz`` and the learner in place of
    graphs and generator. All files are functions of the released tensors and of the ledger, with
    checksums in ``SHA256SUMS``; the folder appears complete or not at all. Checkpoints are private.

    Args:
        num_graphs: Number of synthetic graphs, drawn from the public seeds 0, 1, ...
        formats: Suffixes of the files in which each graph is written.
        card: Texts of the owner for the model card, by their names.
    """

    def __init__(
        self,
        num_graphs: int = 1,
        formats: Sequence[Format] = FORMATS,
        card: Card | Mapping[str, Any] | None = None,
    ) -> None:
        """Store the arguments."""
        if num_graphs < 1:
            raise ValueError(f"num_graphs must be positive, got {num_graphs}")
        self.num_graphs = num_graphs
        self.formats = tuple(formats)
        self.card = Card.of(card)

    def on_fit_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Refuse node names that the formats cannot hold, before anything is spent."""
        data = trainer.datamodule  # type: ignore[attr-defined]  # Lightning sets it untyped
        records = data.records if serves_records(data) else None
        if isinstance(records, GraphRecords) and "edges" in self.formats:
            check_edge_list_names(records.node_names)

    def on_fit_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Write the release."""
        folder = trainer.log_dir  # asks all ranks, as does the statement
        statement = _statement(pl_module)
        if folder is None or not trainer.is_global_zero:
            return
        release = Path(folder) / "release"
        data = trainer.datamodule  # type: ignore[attr-defined]  # Lightning sets it untyped
        if serves_records(data) and data.write_key(Path(folder) / KEY):
            print(f"names of the node numbers, for you only: {Path(folder) / KEY}")
        write_folder(release, lambda place: self._fill(place, pl_module, statement))
        print(f"run folder: {folder}\nrelease: {release}")

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
            for path in _write_graph(outputs, place, int(batch), self.formats):
                print(f"synthetic graph: {path}")
        elif isinstance(outputs, dict):
            statement = _statement(pl_module)

            def fill(made: Path) -> None:
                np.savez_compressed(made / FEATURES, **outputs)
                np.savetxt(made / "labels.txt", outputs["labels"], fmt="%d")
                _write_statement(statement, made)

            write_folder(place, fill)
            print(f"predictions: {place}\nguarantee: {full_sentence(statement)}")

    def _fill(self, folder: Path, module: Any, statement: dict[str, Any]) -> None:
        arrays: dict[str, Any] | None = None
        if isinstance(module, PublishesFeatures):
            arrays = module.released_arrays()
        if arrays is not None:
            np.savez_compressed(folder / FEATURES, **arrays)
            save_generator(module, statement, folder / LEARNER)
            card = model_card(statement, _FEATURES_TEXT)
        else:
            write_graphs(module, range(self.num_graphs), folder, self.formats)
            save_generator(module, statement, folder / GENERATOR)
            card = model_card(statement, _GRAPHS_TEXT.format(self.num_graphs))
        _write_statement(statement, folder)
        (folder / CARD).write_text(card, encoding="utf-8")
        write_sums(folder)


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Write a folder that appears complete or not at all, in place of an older one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        made = scratch / "new"
        made.mkdir()
        fill(made)
        if folder.exists():
            folder.rename(scratch / "old")
        made.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_graphs(
    method: PublishesGraphs, seeds: Iterable[int], folder: Path, formats: Sequence[Format] = FORMATS
) -> list[Path]:
    """Write the synthetic graph of each seed in each format; return the file names."""
    was_training = method.training
    method.eval()
    paths = []
    with torch.no_grad():
        for seed in seeds:
            graph = method.sample(torch.Generator().manual_seed(seed))
            folder.mkdir(parents=True, exist_ok=True)  # not before there is a graph
            paths += _write_graph(graph, folder, seed, formats)
    method.train(was_training)
    return paths


def _write_graph(graph: Data, folder: Path, seed: int, formats: Sequence[Format]) -> list[Path]:
    paths = [folder / f"synthetic-{seed}.{suffix}" for suffix in formats]
    for path in paths:
        write_graph(graph, path)
    return paths


def save_generator(method: Rebuilt, statement: dict[str, Any], path: Path) -> None:
    """Write the released tensors and the metadata that rebuild the method around them."""
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in method.released_state().items()
    }
    # Lightning's own keys, which say how the command line made the object, start with "_".
    hparams = {key: value for key, value in method.hparams.items() if not key.startswith("_")}
    recipe = {
        "schema_version": SCHEMA_VERSION,
        "method": type(method).public_path(),
        "hparams": hparams,
        "node_names": method.node_names,
        "privacy": statement,
    }
    try:
        text = json.dumps(recipe, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise MisconfigurationException(
            f"{type(method).__name__}: hyperparameters have to be plain values ({error})"
        ) from error
    # One key: safetensors writes several in random order, and equal releases would differ.
    # Written by Python: safetensors would make the file readable by its owner only.
    path.write_bytes(save(tensors, metadata={RECIPE: text}))


def _noise(entry: dict[str, Any]) -> str:
    """Describe the protection of a release: its noise, or its cost."""
    if entry["mechanism"] == "pure":
        return f"epsilon {float(entry['epsilon']):.4g}"
    if entry["mechanism"] == "approximate":
        return f"epsilon {entry['epsilon']:.4g}, delta {entry['delta']:.4g}"
    if entry["mechanism"] == "non_private":
        return "none"
    return f"noise multiplier {entry['noise_multiplier']:.4g}"


_GRAPHS_TEXT = """\
# Synthetic graphs by {{method}}

{} synthetic graph(s) on the nodes of a private graph, and the generator that
drew them. `python -m lightning_dpg generate --run FOLDER --num-graphs N` draws more at
no cost of privacy."""
_FEATURES_TEXT = """\
# Features of graphs by {method}

What was released of each graph of a private set, with the public labels: `features.npz`, to be
read with `numpy.load`. Any classifier may learn from it at no cost of privacy."""


def _statement(module: Any) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, **privacy_statement(module)}


def _write_statement(statement: dict[str, Any], folder: Path) -> None:
    text = json.dumps(statement, indent=2, allow_nan=False)
    (folder / STATEMENT).write_text(text + "\n", encoding="utf-8")


def model_card(statement: dict[str, Any], what: str) -> str:
    """Explain the release to its recipients.

    Args:
        statement: Its privacy statement.
        what: Title and content of the release.
    """
    claimed = statement.get("claimed_epsilon")
    lines = [
        what.format(method=statement["method"]),
        "",
        "## Privacy",
        "",
        f"Guarantee: {statement['guarantee']}",
        "",
        "| | |",
        "|---|---|",
        f"| method, mode | {statement['method']}, {statement['mode']} |",
        f"| neighboring relation | {statement['relation']} |",
        f"| epsilon, delta | {statement['epsilon']}, {statement['delta']:g} |",
        *([f"| only if | {statement['condition']} |"] if statement["conditional"] else []),
        *([] if claimed is None else [f"| epsilon by the paper's count | {claimed} |"]),
        f"| accountant | {statement['accountant']} |",
        *([f"| private training steps | {statement['steps']} |"] if statement["steps"] else []),
        f"| noise source | {statement['noise_source']} |",
        "",
        "### What is assumed to be public",
        "",
        *[f"- {assumption}" for assumption in statement["assumptions"]],
        "",
        "### Every read of the private graph",
        "",
        "| release | mechanism | noise or cost | sample rate | steps | sensitivity | proof |",
        "|---|---|---|---|---|---|---|",
        *[
            f"| {e['name']} | {e['mechanism']} | {_noise(e)} | {e['sample_rate']} "
            f"| {e['steps']} | {e['sensitivity']} | {e['proof']} |"
            for e in statement["entries"]
        ],
        "",
        "## Limits",
        "",
        "The guarantee is about the files of this folder. Checkpoints, logs under `nonprivate/`",
        "and figures of the run folder read the private graph and must stay where they are.",
    ]
    return "\n".join(lines) + "\n"
