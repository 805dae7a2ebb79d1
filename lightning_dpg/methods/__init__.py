"""The methods, each a LightningModule."""

from lightning_dpg.methods.base import PrivateModule, Synthesizer
from lightning_dpg.methods.dp_netgan import DPNetGAN
from lightning_dpg.methods.erdos_renyi import ErdosRenyi
from lightning_dpg.methods.netgan import NetGAN
from lightning_dpg.methods.one_shot import OneShotSynthesizer

__all__ = [
    "DPNetGAN",
    "ErdosRenyi",
    "NetGAN",
    "OneShotSynthesizer",
    "PrivateModule",
    "Synthesizer",
]
