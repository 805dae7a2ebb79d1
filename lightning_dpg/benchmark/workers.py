"""Function calls in separate processes; the death of a process costs one call only.

Nothing heavy is imported here: a process imports the modules of its first call, and writes all
messages to the log of this call.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from multiprocessing.context import SpawnContext, SpawnProcess


T = TypeVar("T")
R = TypeVar("R")


class ProcessDiedError(Exception):
    """End of a call's process, for instance from lack of memory."""


def run_calls(
    call: Callable[[T], R],
    items: Sequence[T],
    processes: int,
    *,
    log_of: Callable[[T], Path],
    clean_up: Callable[[T], None],
) -> Generator[tuple[T, R | Exception]]:
    """Call a function for each item, and yield results in the order of completion.

    Closing the iterator ends the processes.

    Args:
        call: Function of an importable module, or a partial of one; the calling script is not
            imported.
        items: Its arguments, one for each call.
        processes: Number of processes, of one thread each.
        log_of: Log file for the standard output and error of a call.
        clean_up: Function that removes the files of an unfinished call.

    Yields:
        Item and result; if the call failed, the result is an exception.
    """
    context = multiprocessing.get_context("spawn")
    waiting = deque(items)
    idle: list[tuple[Connection, SpawnProcess]] = []
    busy: dict[Connection, tuple[SpawnProcess, T]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < processes:
                connection, process = idle.pop() if idle else _start(context)
                item = waiting.popleft()
                busy[connection] = process, item
                with contextlib.suppress(BrokenPipeError):  # a dead process is detected below
                    connection.send(log_of(item))
                    connection.send((call, item))
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                process, item = busy.pop(ready)
                try:
                    result: R | Exception = ready.recv()
                    idle.append((ready, process))
                except (EOFError, ConnectionResetError):
                    process.join()
                    result = ProcessDiedError(f"its process ended with code {process.exitcode}")
                    clean_up(item)
                yield item, result
    finally:
        for process in (*(process for _, process in idle), *(p for p, _ in busy.values())):
            process.kill()
            process.join()
        for _, item in busy.values():
            clean_up(item)


def _start(context: "SpawnContext") -> "tuple[Connection, SpawnProcess]":
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,))
    # Only the waiting process handles Ctrl-C, also while workers import modules.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _without_script():
            process.start()
    finally:
        signal.signal(signal.SIGINT, before)
    theirs.close()  # so that the pipe ends with the process
    return ours, process


@contextlib.contextmanager
def _without_script() -> Iterator[None]:
    """Hide the script of the caller, which new processes would run once more at their start."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _serve(connection: Connection) -> None:
    """Make calls until the other end closes."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["OMP_NUM_THREADS"] = "1"  # read during the later import of PyTorch
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            failure = _write_to(connection.recv())
            call, item = connection.recv()  # imports the module of the call
            connection.send(call(item) if failure is None else failure)


def _end_with_parent() -> None:
    """End this process if its parent was killed, since no process would read the results."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _write_to(log: Path) -> OSError | None:
    """Redirect standard output and error to a file; return the error if that fails."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            for number, stream in ((1, sys.stdout), (2, sys.stderr)):
                stream.flush()
                os.dup2(file.fileno(), number)
    except OSError as error:
        return error
    return None
