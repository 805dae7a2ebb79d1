"""Processes that start at once, forked from one that has imported all, and commands in them."""

import multiprocessing
import os
import socket
import sys
from pathlib import Path
from typing import NamedTuple

from pytorch_lightning.utilities.rank_zero import rank_zero_only

from lightning_dpg import main

LIMIT = 900  # seconds, of a machine under load
# The process that is forked has no threads.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "tests.apps.book.test_book",
        "lightning_dpg.run.lightning_cli",
        "lightning_dpg.papers.zheng2021.dp_netgan",
    ]
)


class Running(NamedTuple):
    """A process, and the file of what it prints."""

    process: multiprocessing.process.BaseProcess
    output: Path


def free_port():
    """Number of a free port, as text."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def variables_of_two(key):
    """Environment variables of two processes, whose ``LOCAL_RANK`` or ``NODE_RANK`` differ."""
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    return [{key: str(number)} | address for number in (0, 1)]


def start_command(folder, *args, **variables):
    """Start ``python -m lightning_dpg`` in a folder."""
    return start(folder, _command, args, **variables)


def start_two_commands(folder, *args, key="LOCAL_RANK"):
    """Start the same command twice, as a launcher of processes does."""
    return [start_command(folder, *args, **each) for each in variables_of_two(key)]


def start(folder, function, *args, **variables):
    """Start a call in a folder, with further environment variables."""
    output = folder / f"{len([*folder.glob('*.out')])}.out"
    output.touch()
    whole = dict(os.environ) | variables
    process = PROCESSES.Process(target=_call, args=(folder, output, whole, function, args))
    process.start()
    return Running(process, output)


def ends(running):
    """Exit codes and outputs of processes, after their end."""
    for process, output in running:
        process.join(LIMIT)
        assert process.exitcode is not None, output.read_text()
    return [each.process.exitcode for each in running], [
        each.output.read_text() for each in running
    ]


def _call(folder, output, variables, function, args):
    with output.open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    rank_zero_only.rank = int(variables.get("LOCAL_RANK", 0))  # as when Lightning is imported
    function(*args)


def _command(args):
    sys.argv = ["lightning_dpg", *args]
    main.run()
