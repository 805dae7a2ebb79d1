"""The command line. Only what answers at once is imported here, PyTorch where it is needed."""

import os
import sys
from collections.abc import Sequence

from lightning_dpg import __version__
from lightning_dpg.cli.quiet import mute_known_warnings
from lightning_dpg.errors import INTERRUPTED, CommandError, explain, is_interrupt, nearest

DEBUG_VARIABLE = "LIGHTNING_DPG_DEBUG"

LIGHTNING_COMMANDS = ("fit", "validate", "test", "predict")
OWN_COMMANDS = ("generate", "verify", "evaluate", "compare", "audit", "attack", "plan", "list")

HELP = """\
usage: python -m lightning_dpg COMMAND [options]

Publish and learn from graphs under differential privacy.

with a configuration (--config FILE, once or more; later ones win):
  fit       train a method within a privacy budget and write a release
  validate  link prediction on held-out edges (reads the private graph)
  test      link prediction and graph statistics (reads the private graph)
  predict   draw synthetic graphs from a checkpoint
  audit     measure how much privacy a method loses at least (reads the private graph)
without one:
  generate  draw synthetic graphs from a release alone
  verify    check a release: files, epsilon, and whether its parts agree
  evaluate  compare synthetic graphs with the real one (reads the private graph)
  attack    find links and nodes of the real graph in a release (reads the private graph)
  compare   methods side by side on graphs and budgets (reads the private graphs)
  plan      noise, steps, epsilon and delta of a run, before any data are touched
  list      methods, data sets and configurations

options:
  --version, --help; COMMAND --help lists all options of a command

example: python -m lightning_dpg fit --config dp_netgan.yaml --privacy.epsilon 2
"""


def main(args: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        args: Command line without the program's name; by default that of the process.

    Returns:
        Exit code: 0, 1 where an audit refutes a claim or a release is not as it was written, 2 where
        the user has something to mend, or 130 after Ctrl-C.
    """
    command, *rest = [*(sys.argv[1:] if args is None else args)] or ["--help"]
    try:
        return _dispatch(command, rest)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as stop:  # argument parsers leave this way
        if is_interrupt(stop) and stop.code != INTERRUPTED:
            return _interrupted()
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BrokenPipeError:  # whoever reads has seen enough, as in `list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        text = explain(error)
        if text is None or os.environ.get(DEBUG_VARIABLE):
            raise
        print(text, file=sys.stderr)
        return 2


def _interrupted() -> int:
    print("\ninterrupted", file=sys.stderr)
    return INTERRUPTED


def run() -> None:
    """Run the command line of the process and end it.

    Methods of the user's own are found in the current folder, as with ``python -m``. It comes last:
    a file there replaces no module of an installed package.
    """
    sys.path.append(os.getcwd())
    sys.exit(main())


def _dispatch(command: str, args: list[str]) -> int:
    match command:
        case "--help" | "-h" | "help":
            print(HELP, end="")
        case "--version":
            print(f"lightning_dpg {__version__}")
        case "list":
            from lightning_dpg.commands import list_ as listing

            listing.run(args)
        case "attack":
            from lightning_dpg.commands import attack

            mute_known_warnings()
            attack.run(args)
        case "audit":
            from lightning_dpg.commands import audit

            mute_known_warnings()
            audit.run(args)
        case "plan":
            from lightning_dpg.commands import plan

            plan.run(args)
        case "generate":
            from lightning_dpg.commands import generate

            generate.run(args)
        case "verify":
            from lightning_dpg.commands import verify

            verify.run(args)
        case "evaluate":
            from lightning_dpg.commands import evaluate

            evaluate.run(args)
        case "compare":
            from lightning_dpg.commands import compare

            compare.run(args)
        case _ if command in LIGHTNING_COMMANDS:
            _run_lightning(command, args)
        case _:
            raise CommandError(
                f"unknown command {command!r}{nearest(command, LIGHTNING_COMMANDS + OWN_COMMANDS)}"
                "\ntry: python -m lightning_dpg --help"
            )
    return 0


def _run_lightning(command: str, args: list[str]) -> None:
    from lightning_dpg.running.settings import find_configs

    args = find_configs(args)  # a missing file is noticed before seconds of imports
    mute_known_warnings()
    from lightning_dpg.cli import PrivateCLI

    PrivateCLI([command, *args])
