"""Calls in separate processes: each has a log, and a process that dies fails one call only.

Nothing heavy is imported here: a process imports the modules of its first call, and writes all
messages to the log of this call.
"""

import contextlib
import os
import pickle
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from functools import partial
from multiprocessing import Pipe, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from joblib.externals.loky import ProcessPoolExecutor

R = TypeVar("R")
P = ParamSpec("P")

# A call redirects the output of its process and sets its seeds: calls of one process take turns.
_ALONE = threading.Lock()

_POLL = 1e-3  # seconds


class ProcessDiedError(Exception):
    """End of a call's process, for instance from lack of memory."""


class SeparateProcesses(ThreadPoolExecutor):
    """Executor whose calls run in processes of one thread each, which are started when needed.

    A pool of processes breaks as a whole if one of them dies. Here each thread uses a pool of a
    single process. The calling script is not imported. Ctrl-C reaches the calling process only, and
    the processes end with it. A shutdown also ends the calls that still run.

    Args:
        processes: Number of processes.
    """

    def __init__(self, processes: int) -> None:
        super().__init__(processes, initializer=_block_ctrl_c)
        self._lock = threading.Lock()
        self._is_closed = False
        self._pools: list[ProcessPoolExecutor] = []
        self._of_thread = threading.local()
        # Where killed processes leave files
        self._scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # The pipe ends with this process, also if it is killed.
        self._watched, self._held = Pipe(duplex=False)

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Schedule a call; if its process dies, its error is a :class:`ProcessDiedError`."""
        return super().submit(self._in_process, partial(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes, and cancel all calls."""
        with self._lock:
            self._is_closed = True
            super().shutdown(wait=False, cancel_futures=True)
            for pool in self._pools:
                pool.shutdown(kill_workers=True)
        super().shutdown()
        self._held.close()
        self._watched.close()
        self._scratch.cleanup()

    def _in_process(self, call: Callable[[], R]) -> R:
        with self._lock:
            if self._is_closed:
                raise CancelledError
            pool = self._pool()
            outcome: Future[R] = pool.submit(call)
            # A pool that is shut down before it has taken its call prints a traceback.
            while not (outcome.running() or outcome.done()):
                time.sleep(_POLL)
        try:
            return outcome.result()
        except BrokenExecutor as error:
            self._pools.remove(pool)
            del self._of_thread.pool
            codes = re.search(r"{(.*)}", str(error))
            end = f" with {codes[1]}" if codes else ""
            raise ProcessDiedError(f"its process ended{end}") from error

    def _pool(self) -> ProcessPoolExecutor:
        """Return the pool of this thread, which is started when needed."""
        if not hasattr(self._of_thread, "pool"):
            self._of_thread.pool = ProcessPoolExecutor(
                1,
                initializer=_watch,
                initargs=(self._watched,),
                env={"OMP_NUM_THREADS": "1", "TMPDIR": self._scratch.name},
            )
            self._pools.append(self._of_thread.pool)
        pool: ProcessPoolExecutor = self._of_thread.pool
        return pool


def run_logged(pickled: bytes, log: Path | None) -> tuple[Any, bytes]:
    """Make a call whose standard output and error, and those of its imports, go to a log.

    Args:
        pickled: The call, as a pickled function without arguments.
        log: File that shows the log during the call and after the death of this process.

    Returns:
        Result of the call, and the log.
    """
    with _ALONE, _log_file(log) as file, _output_to(file):
        result = pickle.loads(pickled)()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        file.seek(0)
        return result, file.read()


def _log_file(log: Path | None) -> IO[bytes]:
    if log is None:
        return tempfile.TemporaryFile()
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("w+b")


@contextlib.contextmanager
def _output_to(file: IO[bytes]) -> Iterator[None]:
    """Redirect standard output and error of this process, also those of libraries in C."""
    streams = ((1, sys.stdout), (2, sys.stderr))
    originals = [os.dup(number) for number, _ in streams]
    try:
        for number, stream in streams:
            stream.flush()
            os.dup2(file.fileno(), number)
        yield
    finally:
        for (number, stream), earlier in zip(streams, originals, strict=True):
            stream.flush()
            os.dup2(earlier, number)
            os.close(earlier)


def _block_ctrl_c() -> None:
    """Keep Ctrl-C from this thread and from the processes that it starts."""
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        # Its start, which the first process would need, takes the block away again in Python 3.11.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def _watch(parent: Connection) -> None:
    """End this process when its parent ends, since no process would read the results."""

    def end() -> None:
        parent.poll(None)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
