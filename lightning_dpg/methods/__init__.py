"""The methods, each a LightningModule."""

from lightning_dpg.methods.base import PrivateModule, Synthesizer
from lightning_dpg.methods.bter import BTER
from lightning_dpg.methods.cell import CELL
from lightning_dpg.methods.chung_lu import ChungLu
from lightning_dpg.methods.dp_graph_gan import DPGGAN
from lightning_dpg.methods.dp_graph_vae import DPGVAE
from lightning_dpg.methods.dp_netgan import DPNetGAN
from lightning_dpg.methods.erdos_renyi import ErdosRenyi
from lightning_dpg.methods.erdos_renyi_set import ErdosRenyiSet
from lightning_dpg.methods.graph_set import GraphSetSynthesizer
from lightning_dpg.methods.graph_vae import GGAN, GVAE
from lightning_dpg.methods.graphrnn import GraphRNN
from lightning_dpg.methods.netgan import NetGAN
from lightning_dpg.methods.one_shot import OneShotSynthesizer
from lightning_dpg.methods.privgraph import PrivGraph
from lightning_dpg.methods.randomized_response import RandomizedResponse

__all__ = [
    "BTER",
    "CELL",
    "DPGGAN",
    "DPGVAE",
    "GGAN",
    "GVAE",
    "ChungLu",
    "DPNetGAN",
    "ErdosRenyi",
    "ErdosRenyiSet",
    "GraphRNN",
    "GraphSetSynthesizer",
    "NetGAN",
    "OneShotSynthesizer",
    "PrivGraph",
    "PrivateModule",
    "RandomizedResponse",
    "Synthesizer",
]
