"""Processes at the same instant never overspend together, and killed ones give back what they can."""

import random
import time
from collections import Counter

import pytest

from lightning_dpg.apps.book import owner
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from tests.apps.book.test_book import asked, new, pure
from tests.processes import PROCESSES


def race(url, rounds, start, results):
    """Try to reserve more than half of each data set at the same instant as another process."""
    book = Book(url)
    for number in range(rounds):
        start.wait()
        try:
            book.reserve(f"set {number}", asked(pure(0.75)))
            results.put("let in")
        except BookError as error:
            results.put("refused" if "does not pay for" in str(error) else str(error))
    start.wait()  # a process that ends frees its runs


@pytest.mark.parametrize("rounds", [5, 20])
def test_of_two_runs_at_once_exactly_one_is_let_in(url, rounds):
    book = Book(url, is_new=True)
    for number in range(rounds):
        owner.register(
            book,
            f"set {number}",
            Fingerprint(f"{number}", ""),
            relation=Relation.EDGE,
            total=Budget(1.0, 0.0),
        )
    start, results = PROCESSES.Barrier(3, timeout=60), PROCESSES.Queue()
    arguments = (url, rounds, start, results)
    pair = [PROCESSES.Process(target=race, args=arguments, daemon=True) for _ in range(2)]
    for process in pair:
        process.start()
    for _ in range(rounds):
        start.wait()
        assert sorted(results.get(timeout=60) for _ in range(2)) == ["let in", "refused"]
    start.wait()
    for process in pair:
        process.join(60)
    assert [len(book.runs(f"set {number}")) for number in range(rounds)] == [1] * rounds


STEPS, COST, PAUSE, START = 25, 0.002, 0.002, 0.2  # seconds of a step, and until the first


def train(url, folder, shown, made):
    """A run of many steps, which a journal and a release of each step show."""
    journal = folder / "ledger.jsonl"
    step = pure(COST, name="steps")
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget, ledger.journal = Budget(1.0, 0.0), journal
    book = Book(url)
    plan = pure(COST, steps=STEPS, name="steps")
    run = book.reserve("crm", asked(plan, journal=journal, folder=str(folder)))
    ledger.account = run.book
    for _ in range(STEPS):
        ledger.spend(step)
        with shown.open("a") as file:  # what an attacker has
            file.write("noisy\n")
        made.release()
        time.sleep(PAUSE)  # of the computation of a step
    run.close("ended")


def settle(book):
    """Reconcile, again if a server has not noticed yet that a process is dead."""
    book.reconcile()
    end = time.monotonic() + 30
    while any(run.is_open for run in book.runs("crm")) and time.monotonic() < end:
        time.sleep(0.01)
        book.reconcile()


@pytest.mark.parametrize("kills", [4, 15])
def test_killed_runs_keep_what_they_released_and_give_back_the_rest(url, kills, tmp_path):
    total = (kills + 1) * STEPS * COST
    book = new(url, epsilon=total, delta=0.0)
    chance, released, fell = random.Random(0), 0, Counter()
    for number in range(kills + 1):  # the first one ends by itself
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        made = PROCESSES.Semaphore(0)
        process = PROCESSES.Process(target=train, args=(url, folder, folder / "shown", made))
        process.start()
        if number:
            steps = max(0, chance.randint(-STEPS // 3, STEPS))
            for _ in range(steps):
                assert made.acquire(timeout=60)
            process.join(chance.uniform(0, 2 * PAUSE if steps else START))
            process.kill()
        process.join()
        settle(book)
        shown = folder / "shown"
        lines = len(shown.read_text().splitlines()) if shown.exists() else 0
        released += lines
        fell["before its steps" if not lines else "within" if lines < STEPS else "after"] += 1
        runs = book.runs("crm")
        assert not any(run.is_open for run in runs)
        booked = sum(each.booked for run in runs for each in run.planned)
        journals = [path.read_text().count("\n") for path in tmp_path.glob("*/ledger.jsonl")]
        assert booked >= sum(journals) >= released
        assert all(each.booked <= STEPS for run in runs for each in run.planned)
        assert book.left("crm") == pytest.approx(total - booked * COST, abs=1e-9)
        if process.exitcode == 0:
            assert runs[-1].planned[0].booked == lines == STEPS
    print(f"kills fell {dict(fell)}; released {released}, booked {booked}")
    assert fell["within"] >= kills // 5 or kills < 10


def go_on(url, folder, length, number, made):
    """Go on with a run from the last journal, as a resumed run does from its checkpoint."""
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget, ledger.journal = Budget(length * COST, 0.0), folder / f"{number:02}.jsonl"
    # One that was killed before its first line ended has released nothing.
    whole = (path for path in folder.glob("*.jsonl") if "\n" in path.read_text())
    previous = max(whole, default=None)
    if previous is not None:
        ledger.load_state_dict(PrivacyLedger.replay(previous))
    plan, step = pure(COST, steps=length, name="steps"), pure(COST, name="steps")
    before = list(ledger.entries)
    request = asked(plan, journal=ledger.journal, before=before, previous=previous)
    run = Book(url).reserve("crm", request)
    for entry in run.lost:
        ledger.book_lost(entry)
    ledger.account = run.book
    while run.affords([step]):
        ledger.spend(step)
        with (folder / "shown").open("a") as file:
            file.write("noisy\n")
        made.release()
        time.sleep(PAUSE)
    run.close("ended")


@pytest.mark.parametrize(("runs", "kills", "length"), [(1, 3, 40), (4, 4, 50)])
def test_runs_that_are_killed_and_go_on_spend_what_one_run_does(url, runs, kills, length, tmp_path):
    """The total pays for each run once, so that no run may count a second time."""
    book = new(url, epsilon=runs * length * COST, delta=0.0)
    chance, fell = random.Random(1), Counter()
    for family in range(runs):
        folder = tmp_path / f"run-{family}"
        folder.mkdir()
        for number in range(kills + 1):  # the last one ends by itself
            made = PROCESSES.Semaphore(0)
            process = PROCESSES.Process(target=go_on, args=(url, folder, length, number, made))
            process.start()
            if number < kills:
                steps = chance.randint(0 if number else 1, 8)
                for _ in range(steps):
                    while not made.acquire(timeout=0.05) and process.is_alive():
                        pass
                process.join(chance.uniform(0, 2 * PAUSE if steps else START))
                fell["within" if process.is_alive() else "after its end"] += 1
                process.kill()
            process.join()
            settle(book)
            booked = Counter()
            for run in book.runs("crm"):
                booked[run.family] += sum(each.booked for each in run.planned)
            last = max(booked, default=0)
            shown = (folder / "shown").read_text().count("\n")
            assert len(booked) == family + 1
            assert shown <= booked[last] <= length
            left = (runs * length - booked.total()) * COST
            assert book.left("crm") == pytest.approx(left, abs=1e-9)
        assert process.exitcode == 0
    released = sum(path.read_text().count("\n") for path in tmp_path.glob("*/shown"))
    print(
        f"kills fell {dict(fell)}; released {released}, booked {booked.total()} of {runs * length}"
    )
    assert fell["within"] >= kills * runs // 2


def test_a_living_run_is_left_alone_and_a_dead_one_is_closed(url, tmp_path):
    book = new(url)
    run = book.reserve("crm", asked(pure(0.5, steps=3), journal=tmp_path / "ledger.jsonl"))
    run.book(pure(0.5))
    assert book.reconcile() == []
    assert Book(url).reconcile() == []
    (tmp_path / "ledger.jsonl").write_text("")
    book.close()  # as the end of a process does
    other = Book(url)
    assert other.reconcile() == [1]
    assert other.left("crm") == 1.5
    # A run that was taken for dead, as on a machine that was cut off, books no more.
    with pytest.raises(BookError, match="run 1 is closed"):
        again = Book(url)
        run._database = again.database
        run.book(pure(0.5))


@pytest.mark.parametrize("journal", [None, "torn", "gone"])
def test_without_its_journal_a_killed_run_keeps_its_whole_plan(url, journal, tmp_path):
    book = new(url)
    place = tmp_path / "ledger.jsonl"
    if journal == "torn":
        place.write_text("{not json\n")
    request = asked(pure(0.5, steps=3), journal=None if journal is None else place)
    book.reserve("crm", request).book(pure(0.5))
    book.close()
    other = Book(url)
    assert other.reconcile() == [1]
    assert other.left("crm") == 0.5


def test_a_journal_that_shows_more_than_the_book_counts(url, tmp_path):
    """As after the book was restored from a backup."""
    book = new(url)
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.journal = tmp_path / "ledger.jsonl"
    book.reserve("crm", asked(pure(0.25, steps=4), journal=ledger.journal))
    ledger.spend(pure(0.25, steps=3))
    book.close()
    other = Book(url)
    other.reconcile()
    assert other.left("crm") == 1.25
