"""The methods, each a LightningModule, wherever they stand: here or in papers/."""

from typing import TYPE_CHECKING

from lightning_dpg.lazy_exports import lazy_exports

if TYPE_CHECKING:
    __all__: list[str]
    from lightning_dpg.methods.base import PrivateModule as PrivateModule
    from lightning_dpg.methods.graph_features import GraphFeatureRelease as GraphFeatureRelease
    from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer as GraphSetSynthesizer
    from lightning_dpg.methods.graph_set.erdos_renyi_set import ErdosRenyiSet as ErdosRenyiSet
    from lightning_dpg.methods.graph_set.pooled_set import PooledSet as PooledSet
    from lightning_dpg.methods.local_scalars import LocalScalars as LocalScalars
    from lightning_dpg.methods.neighbor_votes import NeighborVotes as NeighborVotes
    from lightning_dpg.methods.neighbor_votes import (
        NodeNeighborVotes as NodeNeighborVotes,
    )
    from lightning_dpg.methods.node_classes import NodeClassifier as NodeClassifier
    from lightning_dpg.methods.single_graph.attribute_encoder import (
        AttributeEncoder as AttributeEncoder,
    )
    from lightning_dpg.methods.single_graph.attribute_moments import (
        AttributeMoments as AttributeMoments,
    )
    from lightning_dpg.methods.single_graph.attribute_moments import (
        NodeAttributeMoments as NodeAttributeMoments,
    )
    from lightning_dpg.methods.single_graph.attributed import Attributed as Attributed
    from lightning_dpg.methods.single_graph.base import OneShotSynthesizer as OneShotSynthesizer
    from lightning_dpg.methods.single_graph.bter import BTER as BTER
    from lightning_dpg.methods.single_graph.chung_lu import ChungLu as ChungLu
    from lightning_dpg.methods.single_graph.erdos_renyi import ErdosRenyi as ErdosRenyi
    from lightning_dpg.methods.single_graph.node_degrees import NodeDegrees as NodeDegrees
    from lightning_dpg.methods.single_graph.privgraph import PrivGraph as PrivGraph
    from lightning_dpg.methods.single_graph.randomized_response import (
        RandomizedResponse as RandomizedResponse,
    )
    from lightning_dpg.methods.synthesizer import Synthesizer as Synthesizer
    from lightning_dpg.papers.dubhashi2015.graph_kernel import GraphKernel as GraphKernel
    from lightning_dpg.papers.dubhashi2015.private_kernel import (
        GaussianGraphKernel as GaussianGraphKernel,
    )
    from lightning_dpg.papers.dubhashi2015.private_kernel import (
        PrivateGraphKernel as PrivateGraphKernel,
    )
    from lightning_dpg.papers.dubhashi2015.private_kernel_as_published import (
        PrivateGraphKernelAsPublished as PrivateGraphKernelAsPublished,
    )
    from lightning_dpg.papers.jin2022.gromov_kernel import GromovKernel as GromovKernel
    from lightning_dpg.papers.jin2022.gromov_wasserstein_features import (
        CentralGromovWasserstein as CentralGromovWasserstein,
    )
    from lightning_dpg.papers.jin2022.gromov_wasserstein_features import (
        GromovWassersteinFeatures as GromovWassersteinFeatures,
    )
    from lightning_dpg.papers.jin2022.ldp_gw import (
        LDPGromovWasserstein as LDPGromovWasserstein,
    )
    from lightning_dpg.papers.jin2022.ldp_gw_as_published import (
        LDPGromovWassersteinAsPublished as LDPGromovWassersteinAsPublished,
    )
    from lightning_dpg.papers.sajadmanesh2023.aggregation_perturbation import (
        AggregationPerturbation as AggregationPerturbation,
    )
    from lightning_dpg.papers.wang2013.dk2 import DK2 as DK2
    from lightning_dpg.papers.xiao2014.hrg import HRG as HRG
    from lightning_dpg.papers.yang2021.dp_graph_vae import DPGGAN as DPGGAN
    from lightning_dpg.papers.yang2021.dp_graph_vae import DPGVAE as DPGVAE
    from lightning_dpg.papers.yang2021.graph_vae import GGAN as GGAN
    from lightning_dpg.papers.yang2021.graph_vae import GVAE as GVAE
    from lightning_dpg.papers.yang2021.graph_vae_as_published import (
        DPGGANAsPublished as DPGGANAsPublished,
    )
    from lightning_dpg.papers.yang2021.graph_vae_as_published import (
        DPGVAEAsPublished as DPGVAEAsPublished,
    )
    from lightning_dpg.papers.yang2021.graphrnn import GraphRNN as GraphRNN
    from lightning_dpg.papers.zhang2020.privcom import KatzPrivCom as KatzPrivCom
    from lightning_dpg.papers.zhang2020.privcom import PrivCom as PrivCom
    from lightning_dpg.papers.zhang2020.privcom import (
        RandomizedResponsePrivCom as RandomizedResponsePrivCom,
    )
    from lightning_dpg.papers.zhang2020.privcom_as_published import (
        PrivComAsPublished as PrivComAsPublished,
    )
    from lightning_dpg.papers.zheng2021.dp_netgan import DPNetGAN as DPNetGAN
    from lightning_dpg.papers.zheng2021.netgan import CELL as CELL
    from lightning_dpg.papers.zheng2021.netgan import NetGAN as NetGAN
    from lightning_dpg.papers.zheng2021.netgan_as_published import (
        DPNetGANAsPublished as DPNetGANAsPublished,
    )
else:
    # Start-up time: a command imports the methods that it uses only.
    __getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
