"""Lightning callbacks: budget, release, curves and figures."""

from lightning_dpg.callbacks.discrepancy_figures import DiscrepancyFigures
from lightning_dpg.callbacks.graph_statistics import GraphStatistics
from lightning_dpg.callbacks.privacy_accountant import PrivacyAccountant
from lightning_dpg.callbacks.progress_bar import PrivacyProgressBar
from lightning_dpg.callbacks.release_writer import ReleaseWriter
from lightning_dpg.release.card.texts import Card

__all__ = [
    "Card",
    "DiscrepancyFigures",
    "GraphStatistics",
    "PrivacyAccountant",
    "PrivacyProgressBar",
    "ReleaseWriter",
]
