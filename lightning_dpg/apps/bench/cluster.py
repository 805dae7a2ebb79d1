"""Comparisons on a Dask cluster, with the extra ``cluster``."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor

from lightning_dpg.errors import CommandError

SECONDS_TO_CONNECT = 10


@contextlib.contextmanager
def dask_executor(address: str, say: Callable[[str], None]) -> Iterator[Executor]:
    """Connect to a scheduler, and yield an executor of its workers.

    Args:
        address: Address of the scheduler, for instance ``tcp://host:8786``.
        say: Function that receives a line with the number of workers.

    Raises:
        CommandError: If Dask is not installed, or if no scheduler answers.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise CommandError(
            f"--scheduler needs Dask ({error})\n"
            'install the extra: pip install "lightning_dpg[cluster]"'
        ) from error
    # A lost connection is an error of the command; Dask would also log its traceback.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise CommandError(
            f"--scheduler {address}: no Dask scheduler answers there\n"
            "start one with: dask scheduler, and on each machine: dask worker tcp://HOST:8786 "
            "--nworkers N --nthreads 1"
        ) from error
    with client:
        say(f"{address}: {len(client.nthreads())} workers")
        yield client.get_executor(pure=False)
