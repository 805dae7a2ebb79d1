"""Weights & Biases: a missing key or network never stops or delays a run."""

import netrc
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from jsonargparse import Namespace
from pytorch_lightning import Trainer
from pytorch_lightning.loggers import Logger, WandbLogger
from pytorch_lightning.utilities import rank_zero_info

from lightning_dpg.errors import CommandError
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.privacy.budget import Budget

TIMEOUT_S = 3.0

TrackingMode: TypeAlias = Literal["offline", "online"]
"""Values of the option ``--wandb``: files for ``wandb sync``, or an upload in the run."""


def wandb_arguments(mode: TrackingMode) -> Namespace:
    """Return the arguments of the logger that a mode asks for."""
    settings = {"offline": mode == "offline", "project": "lightning_dpg", "log_model": False}
    return Namespace(settings)  # type: ignore[no-untyped-call]


def tracker_arguments(settings: Namespace) -> list[Namespace]:
    """Return the arguments of all loggers of Weights & Biases that a command asks for.

    Args:
        settings: All sections. Loggers that each run has are taken out of the section ``trainer``.

    Raises:
        CommandError: If checkpoints would be uploaded, which are private.
    """
    trainer, mode = settings.trainer, settings.wandb
    trainer.logger = [
        logger
        for logger in (trainer.logger if isinstance(trainer.logger, list) else [trainer.logger])
        if isinstance(logger, Namespace) and not logger.class_path.endswith(".CSVLogger")
    ]
    loggers: list[Namespace] = [
        logger.init_args for logger in trainer.logger if logger.class_path.endswith(".WandbLogger")
    ]
    if mode is not None and not loggers:
        loggers = [wandb_arguments(mode)]
    for arguments in loggers:
        if mode is not None:
            arguments.offline = mode == "offline"
        refuse_uploads(arguments, settings.privacy.upload_nonprivate)
    return loggers


def trackers(
    configured: object, arguments: Sequence[Namespace], facts: dict[str, Any]
) -> list[Logger]:
    """Build the loggers of a run beside the log in its folder, with the public facts of the run.

    Args:
        configured: Loggers of the section ``trainer``.
        arguments: Those of :func:`tracker_arguments`.
        facts: Method, graph, budget and relation (public).
    """
    loggers: list[Logger] = configured if isinstance(configured, list) else []
    if arguments and not any(isinstance(logger, WandbLogger) for logger in loggers):
        loggers = [*loggers, WandbLogger(**vars(arguments[0]))]
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            describe_run(logger, facts)
    return loggers


def close_trackers(trainer: Trainer) -> None:
    """End the runs of Weights & Biases, since another run may follow in this process."""
    for logger in trainer.loggers:
        # One that nobody has logged to has not begun.
        if isinstance(logger, WandbLogger) and logger._experiment is not None:
            logger._experiment.finish()


def describe_run(logger: WandbLogger, facts: dict[str, Any]) -> None:
    """Give a run its configuration, and a name unless the user has given one.

    The terminal output holds messages about the private graph, the command names its file, and the
    memory of the process grows with its number of edges: none is recorded, unless the user changes
    the settings.

    Args:
        logger: Logger whose run has not begun.
        facts: Method, graph, budget and relation (public).
    """
    import wandb

    init = logger._wandb_init
    init.pop("anonymous", None)  # wandb warns about a setting that Lightning passes
    init["config"] = {**facts, **(init.get("config") or {})}
    if init["name"] is None:
        init["name"] = (
            f"{facts['method']} {facts['graph']} epsilon={facts['epsilon']:g} "
            f"delta={facts['delta']:g} {facts['relation']}"
        )
    if init.get("settings") is None:
        init["settings"] = wandb.Settings(console="off", x_disable_meta=True, x_disable_stats=True)


def refuse_uploads(arguments: Namespace, upload_nonprivate: bool) -> None:
    """Refuse to upload checkpoints, which are private, unless the user requests it."""
    if arguments.get("log_model") and not upload_nonprivate:
        raise CommandError(
            f"trainer.logger: log_model {arguments.log_model} uploads checkpoints, which hold what "
            "was read of the private graph\nset it to false, or privacy.upload_nonprivate to true"
        )


def prepare_wandb(arguments: Namespace, folder: str) -> None:
    """Track into the run folder, and offline if online tracking is impossible."""
    arguments.save_dir = str(Path(folder).absolute())  # wandb's process may work elsewhere
    # The run's last lines are the guarantee; a summary of the curves is in metrics.csv.
    os.environ.setdefault("WANDB_SILENT", "true")
    if arguments.offline or os.environ.get("WANDB_MODE") in ("offline", "disabled", "dryrun"):
        return
    reason = why_offline()
    if reason is not None:
        arguments.offline, arguments.log_model = True, False
        rank_zero_info(f"wandb: {reason}; offline run in {folder}, see `wandb sync`")


def run_facts(
    method: PrivateModule, source: Any, budget: Budget, rows: Budget | None
) -> dict[str, Any]:
    """Return the public facts that describe a run.

    Args:
        method: The method.
        source: Name of the graph, or path of its file.
        budget: Budget of the run.
        rows: Budget of the private columns of one node, if the run has one.
    """
    return {
        "method": type(method).__name__,
        "graph": public_name(source),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "relation": method.relation.value,
        **({} if rows is None else {"row_epsilon": rows.epsilon}),
    }


def public_name(source: Any) -> str:
    """Return the public name of a graph: a built-in or published name; of a file, its stem."""
    path = Path(str(source))
    is_path = path.name != str(source) or path.is_file()
    return Path(path.name.removesuffix(".gz")).stem if is_path else str(source)


def why_offline() -> str | None:
    """Return the reason that prevents online tracking now; None if it is possible."""
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
    """Return whether a connection opens in time; the name look-up has no time limit of its own."""
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
