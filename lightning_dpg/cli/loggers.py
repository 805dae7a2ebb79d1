"""Weights & Biases without surprises: no key or no network never stops or delays a run."""

import netrc
import os
import socket
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonargparse import Namespace
from pytorch_lightning.loggers import WandbLogger
from pytorch_lightning.utilities import rank_zero_info

from lightning_dpg.errors import CommandError

TIMEOUT_S = 3.0


def describe_run(logger: WandbLogger, facts: dict[str, Any]) -> None:
    """Give a run its configuration, and a name unless the user has given one.

    The terminal shows what reads the private graph, and the command names its file: neither is
    recorded, unless the user gives other settings.

    Args:
        logger: Logger whose run has not begun.
        facts: Method, graph, budget and relation (public).
    """
    import wandb

    init = logger._wandb_init
    init.pop("anonymous", None)  # wandb warns of a setting that Lightning passes
    init["config"] = {**facts, **(init.get("config") or {})}
    if init["name"] is None:
        init["name"] = (
            f"{facts['method']} {facts['graph']} epsilon={facts['epsilon']:g} "
            f"delta={facts['delta']:g} {facts['relation']}"
        )
    if init.get("settings") is None:
        init["settings"] = wandb.Settings(console="off", x_disable_meta=True)


def refuse_uploads(arguments: Namespace, upload_nonprivate: bool) -> None:
    """Refuse to send checkpoints, which are private, to a tracker unless the user asks for it."""
    if arguments.get("log_model") and not upload_nonprivate:
        raise CommandError(
            f"trainer.logger: log_model {arguments.log_model} uploads checkpoints, which hold what "
            "was read of the private graph\nset it to false, or privacy.upload_nonprivate to true"
        )


def prepare_wandb(arguments: Namespace, folder: str) -> None:
    """Track into the run folder, and offline when online is impossible."""
    arguments.save_dir = str(Path(folder).absolute())  # wandb's process may work elsewhere
    # The run's last lines are the guarantee; a summary of the curves is in metrics.csv.
    os.environ.setdefault("WANDB_SILENT", "true")
    if arguments.offline or os.environ.get("WANDB_MODE") in ("offline", "disabled", "dryrun"):
        return
    reason = why_offline()
    if reason is not None:
        arguments.offline, arguments.log_model = True, False
        rank_zero_info(f"wandb: {reason}; offline run in {folder}, see `wandb sync`")


def public_name(source: Any) -> str:
    """A graph as its owner names it: a built-in one or a data set as it is, a file by its stem."""
    path = Path(str(source))
    is_path = path.name != str(source) or path.is_file()
    return Path(path.name.removesuffix(".gz")).stem if is_path else str(source)


def why_offline() -> str | None:
    """Why a run cannot be tracked online now; None if it can."""
    server = urlsplit(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai"))
    host = server.hostname or ""
    if not os.environ.get("WANDB_API_KEY") and not _has_login(host):
        return "no API key (WANDB_API_KEY, or `wandb login`)"
    if not _is_reachable(host, server.port or (80 if server.scheme == "http" else 443)):
        return f"{host} cannot be reached"
    return None


def _has_login(host: str) -> bool:
    try:
        return netrc.netrc().authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


def _is_reachable(host: str, port: int) -> bool:
    """Whether a connection opens in time; the look-up of a name knows no time limit itself."""
    reached = threading.Event()

    def connect() -> None:
        try:
            with socket.create_connection((host, port), TIMEOUT_S):
                reached.set()
        except OSError:
            pass

    attempt = threading.Thread(target=connect, daemon=True)
    attempt.start()
    attempt.join(TIMEOUT_S)
    return reached.is_set()
