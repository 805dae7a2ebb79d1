"""Networks in plain PyTorch, without Lightning or privacy."""

from lightning_dpg.nn.low_rank import InnerProductDecoder, LowRankLogits

__all__ = ["InnerProductDecoder", "LowRankLogits"]
