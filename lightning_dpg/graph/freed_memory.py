"""Memory that libraries freed, given back to the system."""

import contextlib
import ctypes
import sys


def return_freed_memory() -> None:
    """Give freed memory back to the system, which allocators keep for later otherwise.

    After a graph of ten million edges was read this is a third of a GiB, and half a GiB after networkit.
    """
    if (
        arrow := sys.modules.get("pyarrow")
    ) is not None:  # optional, and has an allocator of its own
        arrow.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError):  # the function is of Linux
        ctypes.CDLL(None).malloc_trim(0)
