"""The command line. The modules imported here import neither PyTorch nor numpy."""

import atexit
import contextlib
import gc
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from itertools import pairwise

from lightning_dpg import __version__
from lightning_dpg.entry_points import COMMANDS, entry_names, find_entry
from lightning_dpg.errors import REPORT, CommandError, explain, is_interrupt, nearest
from lightning_dpg.outcome import FAULT, FINE, INTERRUPTED, REFUSED, Outcome
from lightning_dpg.run.commands import database
from lightning_dpg.run.commands.arguments import SWITCHES, call
from lightning_dpg.run.commands.describe_domain import describe_domain
from lightning_dpg.run.commands.describe_schema import describe_schema
from lightning_dpg.run.commands.evaluate import evaluate, meanings
from lightning_dpg.run.commands.list_ import list_
from lightning_dpg.run.commands.plan import plan
from lightning_dpg.run.commands.release import card, generate, verify
from lightning_dpg.run.quiet import mute_known_warnings, plain_warnings, without_messages
from lightning_dpg.run_folder import owner_only
from lightning_dpg.tables import as_json, strict

DEBUG_VARIABLE = "LIGHTNING_DPG_DEBUG"

LIGHTNING_COMMANDS = ("fit", "validate", "test", "predict")
CORE_COMMANDS: dict[str, Callable[..., Outcome]] = {
    "generate": generate,
    "verify": verify,
    "card": card,
    "evaluate": evaluate,
    "plan": plan,
    "describe-domain": describe_domain,
    "describe-schema": describe_schema,
    "list": list_,
}
_OF_DATABASE: dict[str, tuple[Callable[[str], bool], Callable[..., Outcome]]] = {
    "fit": (database.is_schema, database.fit),
    "evaluate": (database.is_database, database.evaluate),
    "generate": (database.is_database, database.generate),
    "card": (database.is_database, database.card),
}
"""Commands that do something else with a database, and the words by which it is told."""
_EPILOGS: dict[str, Callable[[], str]] = {"evaluate": meanings}
"""Last paragraphs of the help of a command."""

_FOR_OTHERS = ("generate", "budget", "describe-domain", "describe-schema")
"""Commands whose files others may read, as the umask says."""

HELP = """\
usage: python -m lightning_dpg COMMAND [options]

Publish and learn from graphs under differential privacy.

with private data and a budget (FILE --epsilon 1), or a configuration (--config FILE):
  fit       train a method within a privacy budget and write a release
  audit     measure how much privacy a method loses at least (reads the private graph)
with a run (runs/METHOD/version_K, or the folder of --out):
  verify    check a release: files, epsilon, and whether its parts agree
  generate  draw synthetic graphs from a release alone
  evaluate  what a release serves, beside the real graph (reads the private graph)
  attack    find links and nodes of the real graph in a release (reads the private graph)
  card      write the model card of a release again, with other texts of its owner
  predict   draw synthetic graphs, or predict classes, from a checkpoint
  validate  link prediction on held-out edges (reads the private graph)
  test      link prediction and graph statistics (reads the private graph)
beside them:
  compare   methods side by side on graphs and budgets (reads the private graphs)
  plan      noise, steps, epsilon and delta of a run, before any data are touched
  budget    what a data set has spent over all its releases, and what is left
  list      methods by tier, the recommended ones by goal; with --all configurations and data sets
  describe-domain   a file for the values of private columns, which you fill in
  describe-schema   a draft for a database of several tables, which you complete
  studio    pages that guide from data to a release, in a browser on this machine

options:
  --version, --help
  COMMAND --help      what matters most, on one screen; COMMAND --help-all all options
  COMMAND --json      one JSON object on stdout; COMMAND --quiet: no progress, no notes

example: python -m lightning_dpg fit my-graph.csv --epsilon 1
"""


def main(args: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        args: Command line without the program's name; by default that of the process.

    Returns:
        Exit code, one of :data:`lightning_dpg.outcome.EXIT_CODES`.

    Raises:
        Exception: A fault of the program, with a last line that asks for a report.
    """
    command, *words = [*(sys.argv[1:] if args is None else args)] or ["--help"]
    name = command
    if command == "budget":  # the name of a subcommand belongs to that of the command
        name = " ".join([command, *[word for word in words if word not in SWITCHES][:1]])
    is_json, is_quiet = (switch in words for switch in SWITCHES)
    try:
        with contextlib.ExitStack() as streams:
            if is_json:  # what libraries print is no part of the object
                streams.enter_context(contextlib.redirect_stdout(sys.stderr))
            if is_quiet:
                streams.enter_context(without_messages())
            if command not in _FOR_OTHERS:
                streams.enter_context(owner_only())
            outcome = _dispatch(command, _without_switches(command, words), is_json=is_json)
        _print(name, outcome, is_json=is_json)
        return outcome.code
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as stop:  # argument parsers exit in this way
        if is_interrupt(stop) and stop.code != INTERRUPTED:
            return _interrupted()
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BrokenPipeError:  # the reader has closed the pipe, as in `list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except Exception as error:
        text = explain(error)
        if text is None:
            error.add_note(REPORT)
            raise
        if os.environ.get(DEBUG_VARIABLE):
            raise
        if command in LIGHTNING_COMMANDS:
            # Start-up time: only these commands need the parser's library.
            from lightning_dpg.run.commands.fit import in_short_words

            text = in_short_words(text, words)
        _print(name, Outcome(code=REFUSED, problem=text), is_json=is_json)
        return REFUSED


def _without_switches(command: str, words: Sequence[str]) -> list[str]:
    """Return the words of a command line without the options of every command.

    Raises:
        CommandError: If a file is given for JSON, as up to version 0.2.
    """
    for word, following in pairwise([*words, ""]):
        if word.startswith("--json=") or (word == "--json" and following.endswith(".json")):
            raise CommandError(
                f"--json takes no file\nuse: python -m lightning_dpg {command} ... --json > FILE"
            )
    return [word for word in words if word not in SWITCHES]


def _print(command: str, outcome: Outcome, *, is_json: bool) -> None:
    """Print an outcome: an object or lines on stdout, and a problem on stderr."""
    if is_json and (outcome.values is not None or outcome.problem):
        values = {"command": command} | dict(outcome.values or {})
        if outcome.problem:
            values |= {"error": outcome.problem.removeprefix("error: "), "exit_code": outcome.code}
        print(as_json(strict(values)), end="", flush=True)
    if outcome.lines and not is_json:
        print("\n".join(outcome.lines), flush=True)
    if outcome.problem:
        print(outcome.problem, file=sys.stderr)


def _interrupted() -> int:
    print("\ninterrupted", file=sys.stderr)
    return INTERRUPTED


def run() -> None:
    """Run the command line of the process and end it.

    The current folder may hold the user's own methods, as with ``python -m``. It comes last in the
    search path: a file there replaces no module of an installed package.
    """
    codes: list[int] = []
    atexit.register(_end_at_once, codes)  # the first one that is registered is called last
    sys.path.append(os.getcwd())
    plain_warnings()
    try:
        code = main()
    except Exception:  # noqa: BLE001  a fault has a code of its own
        traceback.print_exc()
        code = FAULT
    codes.append(code)
    sys.exit(code)


def _end_at_once(codes: list[int]) -> None:
    """End the process before Python destroys all objects, which takes two seconds after PyTorch."""
    with contextlib.suppress(OSError, ValueError):  # a closed stream, which Python reports itself
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for code in codes:
            os._exit(code)


def _dispatch(command: str, args: list[str], *, is_json: bool) -> Outcome:
    if command in ("--help", "-h", "help"):
        others = [name for name in entry_names(COMMANDS) if f"\n  {name} " not in HELP]
        lines = ["of other packages: " + ", ".join(others)] * bool(others)
        return Outcome([HELP.rstrip(), *lines])
    if command == "--version":
        return Outcome([f"lightning_dpg {__version__}"], {"version": __version__})
    of_database = _OF_DATABASE.get(command)
    if of_database is not None and any(map(of_database[0], args)):
        mute_known_warnings()
        return call(of_database[1], args)
    database.refuse_database(command, args)
    if command in LIGHTNING_COMMANDS:
        return _run_lightning(command, args, is_json=is_json)
    mute_known_warnings()
    found = CORE_COMMANDS.get(command) or find_entry(COMMANDS, command)
    if found is not None:
        return call(found, args, _EPILOGS.get(command, str)())
    is_ours = f"\n  {command} " in HELP
    if is_ours or command in entry_names(COMMANDS):
        package = "lightning_dpg" if is_ours else "its package"
        raise CommandError(f"the command {command} is not installed: install {package} anew")
    near = nearest(command, command_names())
    raise CommandError(f"unknown command {command!r}{near}\ntry: python -m lightning_dpg --help")


def command_names() -> list[str]:
    """Return the names of all commands, with those of other installed packages."""
    return list(dict.fromkeys([*LIGHTNING_COMMANDS, *CORE_COMMANDS, *entry_names(COMMANDS)]))


def _run_lightning(command: str, args: list[str], *, is_json: bool) -> Outcome:
    # Start-up time: only these commands need the parser's library.
    from lightning_dpg.run.commands.fit import long_form, parser_of

    mute_known_warnings()
    out = None
    if "--help-all" in args:
        print(parser_of(command).format_help(), "\nand all options by their full names:\n", sep="")
        args = ["--help"]
    else:
        form = long_form(args, command)
        form.check(command)
        args, out = form.words, form.out
    if is_start := "torch" not in sys.modules:
        gc.disable()
    # Start-up time: a bad configuration is refused before PyTorch is imported.
    from lightning_dpg.run.lightning_cli import PrivateCLI, run_values

    if is_start:  # no garbage is searched for among the objects of libraries, which stay
        gc.freeze()
        gc.enable()
    started = time.perf_counter()
    finished = PrivateCLI([command, *args], out)
    seconds = time.perf_counter() - started
    # A run prints its lines itself, as soon as they are true.
    return Outcome(values=run_values(finished, seconds) if is_json else None)
