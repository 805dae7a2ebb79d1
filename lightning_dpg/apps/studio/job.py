"""A run of the studio: a process of the command line, which goes on without the studio.

All that is known of a run stands in files of the folder ``.studio``: its answers, the words of its
command, what it has printed, and a lock that its process holds until it ends, however it ends. Another
tab and a studio that was started again read the same.
"""

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TextIO

from lightning_dpg.apps.studio.answers import TEXTS, Answers
from lightning_dpg.apps.studio.folder import RUNS, STUDIO, own_folder, write_private
from lightning_dpg.budget_book import BOOK_VARIABLE
from lightning_dpg.errors import CommandError, shorten

State = Literal["draft", "running", "done", "refused", "stopped", "lost"]
STATES: Mapping[State, str] = TEXTS["states"]

_NONE = Answers()


@dataclass(frozen=True)
class Job:
    """One run of the studio.

    Attributes:
        number: Its number.
        answers: The owner's answers.
        folder: Folder of the run that is evaluated; empty for a fit.
        words: Command line that was started; empty before the start.
        process: Number of its process.
        started: Seconds since 1970.
        plan: Name, steps and relation of each planned read, for the progress.
    """

    number: int
    answers: Answers = _NONE
    folder: str = ""
    words: list[str] = field(default_factory=list)
    process: int = 0
    started: float = 0.0
    plan: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def out(self) -> Path:
        """Folder of the run."""
        return Path(self.folder) if self.folder else RUNS / f"studio-{self.number}"

    @property
    def lock(self) -> Path:
        """File that is locked while a process works on these data; its name does not show theirs."""
        data = self.answers.data
        place = str(Path(data).resolve()) if Path(data).exists() else data
        digest = hashlib.sha256(json.dumps([place, self.answers.table, self.folder]).encode())
        return STUDIO / f"{digest.hexdigest()[:32]}.lock"

    @property
    def holder(self) -> int | None:
        """Number of the run whose process works on the same data; None without one."""
        with suppress(OSError), self.lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read() or 0)
        return None

    @property
    def printed(self) -> Path:
        """File of what the process prints: one JSON object."""
        return STUDIO / f"{self.number}.out"

    @property
    def messages(self) -> Path:
        """File of its messages."""
        return STUDIO / f"{self.number}.log"

    @property
    def result(self) -> dict[str, Any]:
        """The object that the process has printed; empty before its end."""
        with suppress(OSError, ValueError):
            values: dict[str, Any] = json.loads(self.printed.read_text(encoding="utf-8"))
            return values
        return {}

    @property
    def state(self) -> State:
        """What has become of the run."""
        if not self.words:
            return "draft"
        if self.holder == self.number:
            return "running"
        result = self.result
        if "error" in result:
            return "refused"
        if result:
            return "done"
        return "stopped" if "interrupted" in self.last_lines() else "lost"

    @property
    def problem(self) -> str:
        """Message of a run that did not reach its end: the lines of the command line."""
        if (error := self.result.get("error")) is not None:
            return shorten(str(error))
        lines = self.last_lines()
        at = len(lines) - 1 - lines[::-1].index("interrupted") if "interrupted" in lines else None
        return "\n".join(lines[-5:] if at is None else lines[at : at + 5])

    def last_lines(self) -> list[str]:
        """Return the last messages of the process."""
        with suppress(OSError):
            text = self.messages.read_text(encoding="utf-8", errors="replace")
            return [line for line in text.splitlines() if line.strip()][-12:]
        return []

    def save(self) -> "Job":
        """Write the run into its file, and return it."""
        write_private(STUDIO / f"{self.number}.json", json.dumps(asdict(self)))
        return self

    def revise(self, answers: Answers) -> "Job":
        """Return the run with other answers.

        Raises:
            CommandError: If it was started.
        """
        with _writing():
            self._check_not_started()
            return replace(self, answers=answers).save()

    def _check_not_started(self) -> None:
        if job(self.number).words:
            raise CommandError(
                f"run {self.number} was started: its answers stay\nmake a new run like it"
            )

    def start(self, words: Sequence[str], plan: Sequence[tuple[str, int, str]], book: str) -> "Job":
        """Start the process, unless one works on the same data.

        Args:
            words: Command line, without its program.
            plan: Planned reads.
            book: URL of the budget book; empty without one.

        Raises:
            CommandError: If a run on these data is under way, or if this one was started already.
        """
        with _locked(self) as lock, _writing():
            self._check_not_started()
            with _private(self.printed) as out, _private(self.messages) as messages:
                process = subprocess.Popen(
                    [sys.executable, "-m", "lightning_dpg", *words, "--json"],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=messages,
                    env=_environment(book),
                    pass_fds=[lock],
                    start_new_session=True,  # Ctrl-C ends the studio, and not its runs
                )
            started = replace(
                self, words=[*words], process=process.pid, started=time.time(), plan=[*plan]
            ).save()
        threading.Thread(target=process.wait, daemon=True).start()
        return started

    def stop(self) -> None:
        """Interrupt the process as Ctrl-C does; the lock shows that the number is still its own."""
        if self.process and self.holder == self.number:
            os.kill(self.process, signal.SIGINT)


def jobs() -> list[Job]:
    """Return all runs of the studio, the newest first."""
    numbers = [int(path.stem) for path in STUDIO.glob("*.json") if path.stem.isdecimal()]
    return [job(number) for number in sorted(numbers, reverse=True)]


def job(number: int) -> Job:
    """Read a run.

    Raises:
        CommandError: If there is none of this number.
    """
    try:
        values = json.loads((STUDIO / f"{number}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"run {number}: there is none") from error
    plan = [(name, steps, relation) for name, steps, relation in values.pop("plan")]
    known = {each.name for each in fields(Answers)}  # others are those of an earlier version
    answers = {name: value for name, value in values["answers"].items() if name in known}
    return Job(**values | {"answers": Answers(**answers), "plan": plan})


def new_job(answers: Answers = _NONE, folder: str = "") -> Job:
    """Make a run of a new number, whose folder is not there yet.

    Args:
        answers: First answers.
        folder: Folder of a run to evaluate.
    """
    own_folder()
    taken = [int(path.stem) for path in STUDIO.glob("*.json") if path.stem.isdecimal()]
    number = 1 + max(taken, default=0)
    while True:
        made = Job(number, answers, folder)
        try:
            if folder or not made.out.exists():
                (STUDIO / f"{number}.json").touch(mode=0o600, exist_ok=False)
                return made.save()
        except FileExistsError:  # another tab has taken it
            pass
        number += 1


@contextmanager
def _writing() -> Iterator[None]:
    """Let one tab at a time read and write the answers of a run."""
    with (own_folder() / "writing.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _locked(run: Job) -> Iterator[int]:
    """Hold the lock of the data; a process that inherits the file holds it until it ends."""
    own_folder()
    with os.fdopen(os.open(run.lock, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        for wait in (0.0, 0.05, 0.1, 0.2):  # a look at the lock holds it for a moment
            time.sleep(wait)
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
        else:
            raise CommandError(
                f"run {file.read()} works on the same data, and one runs at a time\n"
                "wait for its end, or stop it"
            )
        file.truncate(0)
        file.write(str(run.number))
        file.flush()
        yield file.fileno()


def _private(path: Path) -> TextIO:
    """Open a new file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w")


def _environment(book: str) -> dict[str, str]:
    return dict(os.environ) | ({BOOK_VARIABLE: book} if book else {})
