"""The methods, each a LightningModule."""

from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.graph_features.base import GraphFeatureRelease
from lightning_dpg.methods.graph_features.graph_kernel import GraphKernel
from lightning_dpg.methods.graph_features.gromov_kernel import GromovKernel
from lightning_dpg.methods.graph_features.ldp_gw.as_published import LDPGromovWassersteinAsPublished
from lightning_dpg.methods.graph_features.ldp_gw.central_gromov_wasserstein import (
    CentralGromovWasserstein,
)
from lightning_dpg.methods.graph_features.ldp_gw.gromov_wasserstein_features import (
    GromovWassersteinFeatures,
)
from lightning_dpg.methods.graph_features.ldp_gw.method import LDPGromovWasserstein
from lightning_dpg.methods.graph_features.local_scalars import LocalScalars
from lightning_dpg.methods.graph_features.private_kernel.as_published import (
    PrivateGraphKernelAsPublished,
)
from lightning_dpg.methods.graph_features.private_kernel.gaussian_graph_kernel import (
    GaussianGraphKernel,
)
from lightning_dpg.methods.graph_features.private_kernel.method import PrivateGraphKernel
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.graph_set.erdos_renyi_set import ErdosRenyiSet
from lightning_dpg.methods.graph_set.graph_vae.as_published import (
    DPGGANAsPublished,
    DPGVAEAsPublished,
)
from lightning_dpg.methods.graph_set.graph_vae.dp_graph_gan import DPGGAN
from lightning_dpg.methods.graph_set.graph_vae.dp_graph_vae import DPGVAE
from lightning_dpg.methods.graph_set.graph_vae.graph_vae import GGAN, GVAE
from lightning_dpg.methods.graph_set.graphrnn import GraphRNN
from lightning_dpg.methods.graph_set.pooled_set.method import PooledSet
from lightning_dpg.methods.graph_set.pooled_set.moment_matching import PooledGMMN
from lightning_dpg.methods.single_graph.attribute_encoder.attribute_moments import (
    AttributeMoments,
)
from lightning_dpg.methods.single_graph.attribute_encoder.method import AttributeEncoder
from lightning_dpg.methods.single_graph.attribute_encoder.node_attribute_moments import (
    NodeAttributeMoments,
)
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.block_sampler import BlockSampler
from lightning_dpg.methods.single_graph.bter import BTER
from lightning_dpg.methods.single_graph.cell import CELL
from lightning_dpg.methods.single_graph.chung_lu import ChungLu
from lightning_dpg.methods.single_graph.dk2 import DK2
from lightning_dpg.methods.single_graph.erdos_renyi import ErdosRenyi
from lightning_dpg.methods.single_graph.gaussian_hrg import GaussianHRG
from lightning_dpg.methods.single_graph.hrg import HRG
from lightning_dpg.methods.single_graph.netgan.as_published import DPNetGANAsPublished
from lightning_dpg.methods.single_graph.netgan.dp_netgan import DPNetGAN
from lightning_dpg.methods.single_graph.netgan.netgan import NetGAN
from lightning_dpg.methods.single_graph.node_block_sampler import NodeBlockSampler
from lightning_dpg.methods.single_graph.node_degrees import NodeDegrees
from lightning_dpg.methods.single_graph.privcom.as_published import PrivComAsPublished
from lightning_dpg.methods.single_graph.privcom.katz_privcom import KatzPrivCom
from lightning_dpg.methods.single_graph.privcom.method import PrivCom
from lightning_dpg.methods.single_graph.privcom.node_privcom import NodePrivCom
from lightning_dpg.methods.single_graph.privcom.randomized_response_privcom import (
    RandomizedResponsePrivCom,
)
from lightning_dpg.methods.single_graph.privgraph import PrivGraph
from lightning_dpg.methods.single_graph.randomized_response.method import RandomizedResponse
from lightning_dpg.methods.single_graph.uniform_dk2 import UniformDK2
from lightning_dpg.methods.synthesizer import Synthesizer

__all__ = [
    "BTER",
    "CELL",
    "DK2",
    "DPGGAN",
    "DPGVAE",
    "GGAN",
    "GVAE",
    "HRG",
    "AttributeEncoder",
    "AttributeMoments",
    "BlockSampler",
    "CentralGromovWasserstein",
    "ChungLu",
    "DPGGANAsPublished",
    "DPGVAEAsPublished",
    "DPNetGAN",
    "DPNetGANAsPublished",
    "ErdosRenyi",
    "ErdosRenyiSet",
    "GaussianGraphKernel",
    "GaussianHRG",
    "GraphFeatureRelease",
    "GraphKernel",
    "GraphRNN",
    "GraphSetSynthesizer",
    "GromovKernel",
    "GromovWassersteinFeatures",
    "KatzPrivCom",
    "LDPGromovWasserstein",
    "LDPGromovWassersteinAsPublished",
    "LocalScalars",
    "NetGAN",
    "NodeAttributeMoments",
    "NodeBlockSampler",
    "NodeDegrees",
    "NodePrivCom",
    "OneShotSynthesizer",
    "PooledGMMN",
    "PooledSet",
    "PrivCom",
    "PrivComAsPublished",
    "PrivGraph",
    "PrivateGraphKernel",
    "PrivateGraphKernelAsPublished",
    "PrivateModule",
    "RandomizedResponse",
    "RandomizedResponsePrivCom",
    "Synthesizer",
    "UniformDK2",
]
