"""The methods, each a LightningModule."""

from lightning_dpg.methods.base import PrivateModule, Synthesizer
from lightning_dpg.methods.bter import BTER
from lightning_dpg.methods.cell import CELL
from lightning_dpg.methods.chung_lu import ChungLu
from lightning_dpg.methods.dk2 import DK2
from lightning_dpg.methods.dp_graph_gan import DPGGAN
from lightning_dpg.methods.dp_graph_vae import DPGVAE
from lightning_dpg.methods.dp_netgan import DPNetGAN
from lightning_dpg.methods.erdos_renyi import ErdosRenyi
from lightning_dpg.methods.erdos_renyi_set import ErdosRenyiSet
from lightning_dpg.methods.graph_kernel import GraphKernel
from lightning_dpg.methods.graph_learner import GraphLearner
from lightning_dpg.methods.graph_set import GraphSetSynthesizer
from lightning_dpg.methods.graph_vae import GGAN, GVAE
from lightning_dpg.methods.graphrnn import GraphRNN
from lightning_dpg.methods.gromov_kernel import GromovKernel
from lightning_dpg.methods.hrg import HRG
from lightning_dpg.methods.ldp_gw import LDPGromovWasserstein
from lightning_dpg.methods.netgan import NetGAN
from lightning_dpg.methods.one_shot import OneShotSynthesizer
from lightning_dpg.methods.private_kernel import PrivateGraphKernel
from lightning_dpg.methods.privcom import PrivCom
from lightning_dpg.methods.privgraph import PrivGraph
from lightning_dpg.methods.randomized_response import RandomizedResponse

__all__ = [
    "BTER",
    "CELL",
    "DK2",
    "DPGGAN",
    "DPGVAE",
    "GGAN",
    "GVAE",
    "HRG",
    "ChungLu",
    "DPNetGAN",
    "ErdosRenyi",
    "ErdosRenyiSet",
    "GraphKernel",
    "GraphLearner",
    "GraphRNN",
    "GraphSetSynthesizer",
    "GromovKernel",
    "LDPGromovWasserstein",
    "NetGAN",
    "OneShotSynthesizer",
    "PrivCom",
    "PrivGraph",
    "PrivateGraphKernel",
    "PrivateModule",
    "RandomizedResponse",
    "Synthesizer",
]
