"""Networks in plain PyTorch, without Lightning or privacy."""

from lightning_dpg.nn.low_rank import InnerProductDecoder, LowRankLogits
from lightning_dpg.nn.oja import Oja
from lightning_dpg.nn.walk_lstm import WalkCritic, WalkGenerator, sample_categorical

__all__ = [
    "InnerProductDecoder",
    "LowRankLogits",
    "Oja",
    "WalkCritic",
    "WalkGenerator",
    "sample_categorical",
]
