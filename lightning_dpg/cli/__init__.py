"""Lightning's command line with a mandatory budget."""

from lightning_dpg.cli.private_cli import PrivateCLI

__all__ = ["PrivateCLI"]
