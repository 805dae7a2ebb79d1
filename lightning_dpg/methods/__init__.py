"""The methods, each a LightningModule."""

from lightning_dpg.methods.base import PrivateModule, Synthesizer
from lightning_dpg.methods.dp_netgan import DPNetGAN
from lightning_dpg.methods.netgan import NetGAN

__all__ = ["DPNetGAN", "NetGAN", "PrivateModule", "Synthesizer"]
