"""Choice of held-out edges: by a public coin per pair of nodes, or by a published split."""

import hashlib
import zipfile
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.formats.graph_places import data_root
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.node_names import natural_order, user_path


def public_coin(node_names: list[str], edges: Tensor, seed: int) -> Tensor:
    """Return a number in [0, 1) for each node pair from names and seed only.

    Adding or removing an edge therefore moves no other edge to another part of a split.

    Args:
        node_names: Names of the N nodes (public).
        edges: Pairs of shape ``(P, 2)``; the orientation does not matter.
        seed: Seed of the coin (public).
    """
    key = str(seed).encode()
    digests = b"".join(
        hashlib.blake2b(name.encode(), digest_size=8, key=key).digest() for name in node_names
    )
    ends = np.frombuffer(digests, dtype="<u8").astype(np.uint64)[edges.numpy()]
    bits = _mix(_mix(ends.min(axis=1)) ^ ends.max(axis=1))
    return torch.from_numpy((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply a bijection of 64-bit words in which each bit depends on all others (SplitMix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def numbers_in_file(node_names: Sequence[str], file_order: Sequence[str] | None) -> Tensor:
    """Return the nodes of a graph in the order of its file, which is that of published splits.

    Args:
        node_names: Names of the N nodes in their order.
        file_order: Names in the order of the file, maybe with nodes that the graph does not have;
            None if the file has no names of its own, but numbers.
    """
    if file_order is None:
        return torch.tensor(natural_order(node_names))
    number = {name: node for node, name in enumerate(node_names)}
    return torch.tensor([number[name] for name in file_order if name in number])


def read_split(split: str, nodes: Tensor) -> dict[str, Tensor]:
    """Read edges and non-edges of a split, each pair once, in lexicographic order.

    Args:
        split: Path of an archive, or its name in the folder of real data.
        nodes: Node of each number of the split, shape ``(N,)``.
    """
    path = user_path(split)
    root = data_root()
    if root is not None and (archive_path := root / "npz" / f"{split}.npz").is_file():
        path = archive_path
    if not path.is_file():
        raise Refusal(
            f"split {split!r} is neither a file nor the name of an archive in "
            f"{root / 'npz' if root else '$LIGHTNING_DPG_DATA/npz, which is not set'}"
        )
    keys = ("train_ones", "val_ones", "val_zeros", "test_ones", "test_zeros")
    try:
        with np.load(path, allow_pickle=False) as archive:
            if missing_keys := [key for key in keys if key not in archive.files]:
                raise Refusal(f"{path} holds no {', '.join(missing_keys)}; a split needs {keys}")
            pairs = {key: torch.from_numpy(archive[key].astype(np.int64)) for key in keys}
        in_file = {key: undirected_edges(make_graph(pairs[key], len(nodes))) for key in keys}
    except Refusal:
        raise
    except (ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
        raise Refusal(
            f"{path}: no split of this graph\nexpected an archive of pairs of node numbers: {keys}"
        ) from None
    return {key: undirected_edges(make_graph(nodes[in_file[key]], len(nodes))) for key in keys}
