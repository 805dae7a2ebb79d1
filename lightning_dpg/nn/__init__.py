"""Plain networks: they know neither Lightning nor privacy."""

from lightning_dpg.nn.low_rank import InnerProducts, LowRankLogits
from lightning_dpg.nn.oja import Oja
from lightning_dpg.nn.walk_lstm import WalkCritic, WalkGenerator, sample_categorical

__all__ = [
    "InnerProducts",
    "LowRankLogits",
    "Oja",
    "WalkCritic",
    "WalkGenerator",
    "sample_categorical",
]
