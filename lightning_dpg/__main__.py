"""``python -m lightning_dpg``."""

from lightning_dpg.main import run

run()
