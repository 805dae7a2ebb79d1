"""Small books made by hand: pure runs; grants, parts, measurements, killed and lost runs."""

from lightning_dpg.apps.book import owner
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.apps.book.log import lines, next_line
from lightning_dpg.apps.book.request import Request
from lightning_dpg.apps.book.store import append
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Pure, Relation

EVIL = '<script>alert("x")</script>[red]=1+1'


def entry(epsilon=None, sigma=None, steps=1, relation=Relation.EDGE):
    values = {"relation": relation, "sensitivity": 1.0, "proof": "by hand", "steps": steps}
    if sigma is None:
        return LedgerEntry(key="counts", name="counts", event=Pure(epsilon), **values)
    return LedgerEntry(key="noise", name="noise", event=Gaussian(sigma), **values)


def new_book(url, name="crm", epsilon=2.0, delta=1e-6, **changes):
    book = Book(url, is_new=True)
    register(book, name, epsilon, delta, **changes)
    return book


def register(book, name, epsilon=2.0, delta=1e-6, relation=Relation.EDGE, **changes):
    fingerprint = Fingerprint(f"edges of {name}", f"nodes of {name}")
    total = Budget(epsilon, delta)
    owner.register(book, name, fingerprint, total=total, relation=relation, **changes)


def reserve(book, planned, name="crm", method="BTER", delta=0.0, is_released=False, **changes):
    epsilon = planned.pure_epsilon or 1.0
    values = {"settings": "s", "edges": f"edges of {name}"} | changes
    request = Request(
        method, budget=Budget(epsilon, delta), plan=lambda budget: [planned], **values
    )
    return book.reserve(name, request, is_released=is_released)


def run(book, planned, name="crm", **changes):
    """A whole run: reserved, booked and closed."""
    made = reserve(book, planned, name, **changes)
    made.book(planned)
    made.close("ended", "d" * 64)
    return made


def small_book(url):
    """Book with a total of 2: spent are 0.5 + 0.25, reserved is 1, left is 0.25."""
    book = new_book(url)
    run(book, entry(0.5), folder="/data/runs/bter/version_0")
    run(book, entry(0.25), method="ChungLu", folder="/data/runs/chung_lu/version_0")
    reserve(book, entry(1.0), method="PrivGraph", folder="/data/runs/priv_graph/version_0")
    return book


def full_book(url):
    """Book with all that an officer may see.

    * crm, total 2, two persons: of Eve are 0.5 ended, 0.25 killed and 0.25 open, within her second
      grant of 1.5; a grant to Zoe waits.
    * january, total 1, exceeded by lost steps of 1.25, and february, total 2, closed: parts of year.
    """
    book = new_book(url, two_persons=True, max_degree=3)
    register(book, "january", 1.0, part_of="year", words="calls of January")
    register(book, "february", 2.0, part_of="year")
    grant(book, "eve", 1.0)
    grant(book, "eve", 1.5)
    owner.grant(act_as(book, "ann"), "crm", "zoe", Budget(0.2, 0.0))
    run(act_as(book, "eve"), entry(0.5), folder="/data/runs/bter/version_0")
    killed = act_as(Book(url), "eve")
    reserve(killed, entry(0.25), method="PrivGraph")
    killed.close()
    book.reconcile()
    reserve(book, entry(0.25), method="ChungLu")
    with act_as(book, "zoe").database.write():
        facts = {"command": "compare", "methods": ["BTER", "HRG"], "epsilons": [1.0, 5.0]}
        append(
            book.database, "measure", dataset="crm", who="zoe@vm, process 7", user="zoe", **facts
        )
    lost = reserve(book, entry(1.25), "january", is_released=True)
    lost.book(entry(1.25))
    lost.close("stopped")
    owner.close_data_set(act_as(book, "ann"), "february")
    return book


def grant(book, user, epsilon):
    """A grant on crm that Ann makes and Bob approves."""
    made = owner.grant(act_as(book, "ann"), "crm", user, Budget(epsilon, 0.0))
    owner.approve(act_as(book, "bob"), made.number)


def append_by_hand(book, kind, facts):
    """A line with all hashes as they have to be, which no method of a book has written."""
    line = next_line(lines(book.database)[-1], kind, facts, book.url)
    book.database.rows("INSERT INTO book_log VALUES (?, ?, ?, ?, ?, ?)", *line)
    book.database.rows("UPDATE book_head SET line = ?, hash = ?", line.line, line.hash)


def act_as(book, user):
    """The same book, as another user of the system sees it."""
    book.database.user = lambda: user
    return book
