"""The curve of what was spent equals the totals at each of its times."""

import pytest

from lightning_dpg.book.projection import record
from lightning_dpg.book.report import summary
from tests.book.small_book import entry, new_book, reserve, run, spent_curve


def test_each_point_is_the_total_at_its_time(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    totals = [0.0]
    made = reserve(book, entry(0.25, steps=3))
    for step in (1, 2):
        made.book(entry(0.25, steps=step))
        totals.append(summary(book, "crm")["spent"])
    made.close("ended")
    run(book, entry(0.5))
    totals.append(summary(book, "crm")["spent"])
    run(book, entry(sigma=50.0), method="AttributeEncoder", delta=1e-7)
    totals.append(summary(book, "crm")["spent"])
    assert totals[:4] == [0.0, 0.25, 0.75, 1.25]
    points = spent_curve(book, "crm")
    assert [*dict.fromkeys(round(point.spent, 4) for point in points)] == pytest.approx(
        totals, abs=1e-4
    )
    times = [point.time for point in points]
    assert times == sorted(times)
    assert times[0] == book.data_set("crm").created


def test_what_a_killed_run_keeps_is_in_the_curve(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    made = reserve(book, entry(0.25, steps=4))
    made.book(entry(0.25))
    assert [point.spent for point in spent_curve(book, "crm")] == [0.0, 0.0, 0.25]
    with book.database.write():  # as another process does, once this one has ended
        record(book.database, "close", run=made.run, outcome="killed", booked=[4], release=None)
    assert spent_curve(book, "crm")[-1].spent == 1.0 == summary(book, "crm")["spent"]


def test_steps_that_were_booked_ahead_and_not_made_leave_the_curve(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    run(book, entry(0.5))
    made = reserve(book, entry(0.25, steps=4))
    for kind, facts in (
        ("book", {"place": 0, "steps": 4}),
        ("close", {"outcome": "stopped", "booked": [0], "release": None}),
    ):
        with book.database.write():
            record(book.database, kind, run=made.run, **facts)
    spent = [point.spent for point in spent_curve(book, "crm")]
    assert spent[-2:] == [1.5, 0.5]
    assert summary(book, "crm")["spent"] == 0.5


def test_thousands_of_bookings_are_few_points(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    made = reserve(book, entry(0.001, steps=1000))
    for steps in [400, *[10] * 60]:
        with book.database.write():  # one line for each, as of a run whose steps are slow
            record(book.database, "book", run=made.run, place=0, steps=steps)
    points = spent_curve(book, "crm", most=20)
    assert len(points) == 20
    assert points[-1].spent == pytest.approx(summary(book, "crm")["spent"], abs=1e-4)
    assert points == sorted(points)
