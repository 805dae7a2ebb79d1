"""A small book made by hand: three pure runs, one of them open, and one Gaussian run."""

from lightning_dpg.book.book import Book
from lightning_dpg.book.identity import Fingerprint
from lightning_dpg.book.request import Request
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation

EVIL = '<script>alert("x")</script>[red]=1+1'


def entry(epsilon=None, sigma=None, steps=1, relation=Relation.EDGE):
    values = {"relation": relation, "sensitivity": 1.0, "proof": "by hand", "steps": steps}
    if sigma is None:
        return LedgerEntry(name="counts", mechanism="pure", epsilon=epsilon, **values)
    return LedgerEntry(name="noise", mechanism="gaussian", noise_multiplier=sigma, **values)


def new_book(url, name="crm", epsilon=2.0, delta=1e-6, **changes):
    book = Book(url, is_new=True)
    register(book, name, epsilon, delta, **changes)
    return book


def register(book, name, epsilon=2.0, delta=1e-6, **changes):
    values = {"relation": Relation.EDGE, "record_unit": "undirected edge"} | changes
    fingerprint = Fingerprint(f"edges of {name}", f"nodes of {name}")
    book.register(name, fingerprint, total=Budget(epsilon, delta), **values)


def reserve(book, planned, name="crm", method="BTER", delta=0.0, **changes):
    epsilon = planned.pure_epsilon or 1.0
    values = {"settings": "s", "edges": f"edges of {name}"} | changes
    request = Request(
        method, budget=Budget(epsilon, delta), plan=lambda budget: [planned], **values
    )
    return book.reserve(name, request)


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
