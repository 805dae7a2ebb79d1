"""Readers of releases. A release is data: modules that it names are never imported."""

import json
import sys
import zipfile
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightning_dpg import __version__, methods
from lightning_dpg.classes import find_class
from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.graph.attributes import NodeAttributes, restored
from lightning_dpg.graph.pair_space import PairSpace
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.graph_features import GraphFeatureRelease
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.outcome import LOGGER
from lightning_dpg.privacy.paid_weights import load_released
from lightning_dpg.release.card.topics import TOPICS
from lightning_dpg.release.checksums import digest, read_sums
from lightning_dpg.release.draws import tensors_of
from lightning_dpg.release.recipe import OURS, first_line, is_shipped, read_recipe
from lightning_dpg.release.release import Release
from lightning_dpg.release.statement import NO_GUARANTEE
from lightning_dpg.release.writer import ATTRIBUTES
from lightning_dpg.run_folder import GENERATOR, LEARNER, STATEMENT, SUMS, released_tensors

_GONE_SETTINGS = ("flower_processes", "proximal", "steps", "learning_rate", "sampling")
"""Settings that earlier releases name: of clients, of ``denoise: cell``, and a way to sample edges."""
_ADDED_SETTINGS = {"public_features": False}
"""Settings that releases of earlier versions lack, and what these versions did."""
_ADDED_TENSORS = frozenset({"spread", "kept", "right_share", "node_labels", "class_ratios"})
"""Tensors that releases of earlier versions lack; those of a new object replace them."""
_WRITTEN_BY: dict[str, tuple[type[PrivateModule], ...]] = {
    GENERATOR: (Synthesizer,),
    LEARNER: (GraphFeatureRelease, NodeClassifier),
}


def open_release(folder: str | Path, method_class: type[PrivateModule] | None = None) -> Release:
    """Open a release. Of the code that it names, only that of shipped methods is run.

    Args:
        folder: Folder of a release, or of a run with one.
        method_class: Class of its method; by default the shipped or already imported class of the
            recorded name.

    Returns:
        The open release; of one without a guarantee a line says so.

    Raises:
        CommandError: If there is no release, or if it is damaged or changed.

    Example:
        >>> import tempfile
        >>> import lightning_dpg as dpg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dpg.fit("karate", "chung_lu", epsilon=1.0).save(f"{folder}/out")
        ...     release = dpg.open_release(f"{folder}/out")
        >>> release.sample(seed=0).num_nodes
        34
    """
    path = released_tensors(Path(folder).expanduser())
    _refuse_changes(path)
    method = rebuild(path, _WRITTEN_BY[path.name], method_class)
    if path.name == GENERATOR:
        method.node_attributes = read_attributes(path.with_name(ATTRIBUTES), method.node_names)
    # The copy in the tensors is bound to them: it counts where privacy.json says something else.
    statement = (read_recipe(path)[0].get("privacy") or {}) | _topics(path.with_name(STATEMENT))
    if statement.get("epsilon") == "inf":
        LOGGER.warning("%s: %s", path.parent, NO_GUARANTEE)
    return Release(method, statement, path.parent, checksum=digest(path))


def _topics(path: Path) -> dict[str, Any]:
    """Return the topics in a ``privacy.json``; empty in early releases of 0.2."""
    if not path.is_file():
        return {}
    _refuse_changes(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CommandError(f"{path}: not JSON ({error})") from error
    return {name: content[name] for name in TOPICS if isinstance(content, dict) and name in content}


def read_attributes(path: Path, nodes: list[str] | None) -> NodeAttributes | None:
    """Read the public attributes of the nodes of a release; None if it has none."""
    sums = path.with_name(SUMS)
    if not path.is_file():
        if sums.is_file() and path.name in read_sums(sums):
            raise CommandError(f"{path}: missing, and {SUMS} has its checksum")
        return None
    _refuse_changes(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            attributes, rows = restored(archive), archive["node_names"].tolist()
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise CommandError(f"{path}: no attributes of nodes ({first_line(error)})") from error
    if nodes != rows or len(rows) != len(attributes.x):
        raise CommandError(f"{path}: its rows are not those of the nodes of the release")
    return attributes


def _refuse_changes(path: Path) -> None:
    """Refuse a file that differs from its checksum, if the release has checksums."""
    sums = path.with_name(SUMS)
    if not sums.is_file():  # the reader has removed them
        return
    if read_sums(sums).get(path.name) != digest(path):
        raise CommandError(
            f"{path}: not the file of which {SUMS} has the checksum\n"
            f"see what else differs: python -m lightning_dpg verify {path.parent}\n"
            "ask for the release again, or remove its checksums to draw from what is there"
        )


def imported(name: str) -> type[PrivateModule]:
    """Import the user's method ``MODULE.CLASS``.

    Raises:
        CommandError: If there is none.
    """
    try:
        cls = find_class(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise CommandError(f"--method {name}: it cannot be imported ({error})") from error
    if not (isinstance(cls, type) and issubclass(cls, PrivateModule)):
        raise CommandError(f"--method {name}: not a method")
    return cls


def rebuild(
    path: Path,
    expected: tuple[type[PrivateModule], ...],
    method_class: type[PrivateModule] | None = None,
) -> Any:
    """Rebuild the method of a release around its tensors.

    Args:
        path: File of the tensors.
        expected: Classes, of one of which the method must be.
        method_class: Its class, if the caller knows it; by default the shipped or already imported
            class of the recipe's name.

    Raises:
        CommandError: If there is no such class, or if recipe and tensors do not fit it.
    """
    recipe, arrays = read_recipe(path)
    state = {name: torch.from_numpy(array) for name, array in arrays.items()}
    cls = _find(path, recipe["method"]) if method_class is None else method_class
    class_name = recipe["method"].rpartition(".")[2]
    if cls.__name__ != class_name:
        raise CommandError(f"{path}: released by {class_name}, not by {cls.__name__}")
    if not issubclass(cls, expected):
        kinds = " or ".join(kind.__name__ for kind in expected)
        raise CommandError(f"{path}: {recipe['method']} is not a {kinds}")
    try:
        method: Any = cls(**_settings(recipe, cls))
        if "kind" in recipe:
            method.take_kind(*_kind(recipe, cls))
        load_released(method, state)
        released = tensors_of(method)
    except Exception as error:
        reason = f"its recipe does not rebuild {class_name} ({first_line(error)})"
        raise CommandError(f"{path}: {reason}") from error
    if odd := sorted((released.keys() ^ state.keys()) - (_ADDED_TENSORS - state.keys())):
        kind = "lacks" if odd[0] in released else "has a foreign"
        raise CommandError(f"{path}: {kind} tensor {odd[0]} for {class_name}")
    for name, tensor in state.items():
        expected_type = released[name].dtype  # earlier versions wrote 64 bits in place of 32
        if tensor.dtype not in (expected_type, {torch.int32: torch.int64}.get(expected_type)):
            raise CommandError(
                f"{path}: {name} holds {tensor.dtype}, where {class_name} has {expected_type}"
            )
    space = method.space if isinstance(method, Synthesizer) and "sizes" not in state else None
    _check_ranges(path, recipe["hparams"], state, space)
    method.node_names = recipe["node_names"]
    return method


def _kind(recipe: dict[str, Any], cls: type[PrivateModule]) -> tuple[str, int | None]:
    """Return kind and number of left nodes of a recipe, checked."""
    kind, num_left, size = recipe["kind"], recipe.get("num_left"), recipe["hparams"]["num_nodes"]
    if kind not in cls.capabilities.kinds:
        raise Refusal(f"{cls.__name__} has no graphs of kind {kind!r}")
    if (kind == "bipartite") != (type(num_left) is int) or (num_left and not 0 < num_left < size):
        raise Refusal(f"num_left is {num_left!r} for a graph of kind {kind}")
    return kind, num_left


def _settings(recipe: dict[str, Any], cls: type[PrivateModule]) -> dict[str, Any]:
    """Return the settings of a recipe with those that a shipped class has gained, and none that is gone."""
    settings: dict[str, Any] = recipe["hparams"]
    if not is_shipped(recipe["method"]):
        return settings
    names = signature(cls).parameters
    gone = [name for name in _GONE_SETTINGS if name not in names]
    settings = {name: settings[name] for name in settings if name not in gone}
    return {name: value for name, value in _ADDED_SETTINGS.items() if name in names} | settings


def _find(path: Path, name: str) -> type[PrivateModule]:
    """Return the shipped class of a name, or the class of an already imported module."""
    module, _, attribute = name.rpartition(".")
    # vars(): an attribute look-up may run code of a module, or import another one.
    mine = vars(sys.modules.get(module, object))
    cls = getattr(methods, attribute) if is_shipped(name) else mine.get(attribute)
    if isinstance(cls, type) and issubclass(cls, PrivateModule):
        return cls
    if name.startswith(OURS):
        raise CommandError(
            f"{path}: lightning_dpg {__version__} has no method {attribute}\n"
            "open it with the version of lightning_dpg that has written it"
        )
    raise CommandError(
        f"{path}: {name} is not one of the shipped methods, and code that a release names is not "
        f"run\nif you have this method and trust it: --method {name}, in Python method_class"
    )


def _check_ranges(
    path: Path, hparams: dict[str, Any], state: dict[str, Tensor], space: PairSpace | None
) -> None:
    """Refuse numbers of edges and degrees that are impossible in a simple graph."""
    nodes = state.get("sizes", torch.tensor(hparams.get("num_nodes") or 0))
    most = {"num_edges": nodes * (nodes - 1) // 2, "degrees": nodes - 1}
    shapes = {"num_edges": nodes.shape, "degrees": (int(nodes),) if nodes.dim() == 0 else None}
    if space is not None:
        largest = torch.cat([torch.full((p.stop - p.start,), p.largest) for p in space.parts])
        most = {"num_edges": torch.tensor(space.num_pairs), "degrees": largest}
        shapes["degrees"] = (space.num_ends,)
    for name, limit in most.items():
        tensor = state.get(name)
        if tensor is None:
            continue
        if tensor.shape != shapes[name]:
            raise CommandError(f"{path}: its tensor {name} has the shape {tuple(tensor.shape)}")
        if not tensor.is_floating_point() and (tensor > limit).any():
            raise CommandError(f"{path}: its tensor {name} has values above {int(limit.max())}")
