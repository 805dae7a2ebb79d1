"""Opens the graphs beside this file in PyTorch Geometric, which is all that it needs.

Example:
    from dataset import SyntheticGraphs

    graph = SyntheticGraphs()[0]
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data, InMemoryDataset


class SyntheticGraphs(InMemoryDataset):  # type: ignore[misc]  # untyped
    """The graphs of ``graphs.npz``; its arrays have names such as ``0/edge_index``."""

    def __init__(
        self,
        root: str | Path = Path(__file__).parent,
        transform: Callable[[Data], Data] | None = None,
    ) -> None:
        super().__init__(str(root), transform)
        graphs: dict[str, Data] = {}
        with np.load(Path(root) / "graphs.npz", allow_pickle=False) as arrays:
            for name, array in arrays.items():
                number, _, attribute = name.partition("/")
                is_tensor = array.ndim and array.dtype.kind != "U"
                value = torch.from_numpy(array) if is_tensor else array.tolist()
                graphs.setdefault(number, Data())[attribute] = value
        self.data, self.slices = self.collate([*graphs.values()])
