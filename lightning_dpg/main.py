"""The command line. The modules imported here import neither PyTorch nor numpy."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial

from lightning_dpg import __version__, budget_book
from lightning_dpg.cli.quiet import mute_known_warnings
from lightning_dpg.commands import (
    attack,
    audit,
    card,
    compare,
    evaluate,
    generate,
    list_,
    plan,
    verify,
)
from lightning_dpg.commands.arguments import call
from lightning_dpg.errors import (
    FAULT,
    INTERRUPTED,
    REPORT,
    CommandError,
    explain,
    is_interrupt,
    nearest,
)

DEBUG_VARIABLE = "LIGHTNING_DPG_DEBUG"

LIGHTNING_COMMANDS = ("fit", "validate", "test", "predict")
OWN_COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "generate": partial(call, generate.generate),
    "verify": partial(call, verify.verify),
    "card": partial(call, card.card),
    "evaluate": evaluate.run,
    "compare": compare.run,
    "audit": partial(call, audit.audit),
    "attack": partial(call, attack.attack),
    "plan": partial(call, plan.plan),
    "budget": budget_book.run_command,
    "list": partial(call, list_.list_),
}

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
  card      write the model card of a release again, with other texts of its owner
  evaluate  compare synthetic graphs with the real one (reads the private graph)
  attack    find links and nodes of the real graph in a release (reads the private graph)
  compare   methods side by side on graphs and budgets (reads the private graphs)
  plan      noise, steps, epsilon and delta of a run, before any data are touched
  budget    what a data set has spent over all its releases, and what is left
  list      methods by tier, the recommended ones by goal; with --all configurations and data sets

options:
  --version, --help; COMMAND --help lists all options of a command

example: python -m lightning_dpg fit --config dp_netgan.yaml --privacy.epsilon 2
"""


def main(args: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        args: Command line without the program's name; by default that of the process.

    Returns:
        Exit code: 0; 1 if an audit refutes a claim, or if a release or a book was changed; 2 if the user has
        to correct something; 3 if a release is of version 0.1.0, without checksums; 130 after Ctrl-C.

    Raises:
        Exception: A fault of the program, with a last line that asks for a report.
    """
    command, *rest = [*(sys.argv[1:] if args is None else args)] or ["--help"]
    try:
        return _dispatch(command, rest)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as stop:  # argument parsers exit in this way
        if is_interrupt(stop) and stop.code != INTERRUPTED:
            return _interrupted()
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BrokenPipeError:  # the reader has closed the pipe, as in `list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        text = explain(error)
        if text is None:
            error.add_note(REPORT)
            raise
        if os.environ.get(DEBUG_VARIABLE):
            raise
        print(text, file=sys.stderr)
        return 2


def _interrupted() -> int:
    print("\ninterrupted", file=sys.stderr)
    return INTERRUPTED


def run() -> None:
    """Run the command line of the process and end it.

    The current folder may hold the user's own methods, as with ``python -m``. It comes last in the
    search path: a file there replaces no module of an installed package.
    """
    sys.path.append(os.getcwd())
    try:
        code = main()
    except Exception:  # noqa: BLE001  a fault has a code of its own
        traceback.print_exc()
        code = FAULT
    sys.exit(code)


def _dispatch(command: str, args: list[str]) -> int:
    if command in ("--help", "-h", "help"):
        print(HELP, end="")
    elif command == "--version":
        print(f"lightning_dpg {__version__}")
    elif command in LIGHTNING_COMMANDS:
        _run_lightning(command, args)
    elif command in OWN_COMMANDS:
        mute_known_warnings()
        OWN_COMMANDS[command](args)
    else:
        near = nearest(command, (*LIGHTNING_COMMANDS, *OWN_COMMANDS))
        raise CommandError(
            f"unknown command {command!r}{near}\ntry: python -m lightning_dpg --help"
        )
    return 0


def _run_lightning(command: str, args: list[str]) -> None:
    # Start-up time: only these commands need the parser's library.
    from lightning_dpg.commands.fit import long_form

    is_long_help = "--help-all" in args
    args, out, notes = (["--help"], None, []) if is_long_help else long_form(args, command)
    mute_known_warnings()
    if "torch" not in sys.modules:  # a process that has it may know more classes, and loses no time
        # Start-up time: as above.
        from lightning_dpg.running.early_check import refuse_mistakes

        refuse_mistakes(command, args)
    for line in notes:
        print(line, file=sys.stderr)
    # Start-up time: a bad configuration is refused before PyTorch is imported.
    from lightning_dpg.cli.private_cli import PrivateCLI

    PrivateCLI([command, *args], out)
