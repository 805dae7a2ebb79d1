"""Weights & Biases without surprises: no key or no network never stops or delays a run."""

import netrc
import os
import socket
import threading
from urllib.parse import urlsplit

TIMEOUT_S = 3.0


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
