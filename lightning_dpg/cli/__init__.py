"""Lightning's command line with a mandatory budget."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightning_dpg.cli.private_cli import PrivateCLI

__all__ = ["PrivateCLI"]


def __getattr__(name: str) -> Any:
    """Import the command line on first use: it imports PyTorch, which its neighbors do not."""
    if name != "PrivateCLI":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Start-up time: `list` and bad configurations are handled before PyTorch is imported.
    from lightning_dpg.cli.private_cli import PrivateCLI

    return PrivateCLI
