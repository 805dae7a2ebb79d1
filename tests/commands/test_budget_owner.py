"""``budget init``, ``register``, ``grant`` and ``close``, and the fits that they refuse."""

import random

import pytest

from lightning_dpg.book.book import Book
from lightning_dpg.main import main
from tests.commands.test_budget import EDGES, fit, place, register, write

__all__ = ["place"]

BOOK = ["--book", "sqlite:///book.db"]
NAME = "crm-secret-name"


def budget(*args):
    return main(["budget", *args, *BOOK])


def test_a_fit_on_a_closed_data_set_is_refused(place, capsys):
    assert budget("close", NAME) == 0
    assert "closed crm-secret-name for good" in capsys.readouterr().out
    assert fit() == 2
    error = capsys.readouterr().err
    assert f"{NAME}: closed at 20" in error
    assert f"by {Book('sqlite:///book.db').database.user()}: no further run may spend" in error
    assert not (place / "runs").exists()
    assert budget("close", NAME) == 2
    assert budget("history") == 0
    assert f"closed {NAME}, by " in capsys.readouterr().out


def test_a_fit_beyond_the_grant_is_refused(place, capsys):
    user = Book("sqlite:///book.db").database.user()
    assert budget("grant", NAME, "--to", "somebody", "--epsilon", "1") == 0
    assert "from now on, only users with a grant may spend on it" in capsys.readouterr().out
    assert fit() == 2
    assert (
        f"only users with a grant may spend on it, and {user} has none" in capsys.readouterr().err
    )
    assert budget("grant", NAME, "--to", user, "--epsilon", "0.5") == 0
    assert fit() == 2
    assert "granted: epsilon 0.5, delta 0; left: epsilon 0.5, delta 0" in capsys.readouterr().err
    assert not (place / "runs").exists()
    assert fit(epsilon=0.5) == 0


def test_the_commands_of_an_owner_need_the_token(place, monkeypatch, capsys):
    where = ["--book", "sqlite:///second.db"]
    assert main(["budget", "init", "--token", "owner.token", *where]) == 0
    secret = (place / "owner.token").read_text().strip()
    data = ["--data", "graph.txt", "--relation", "edge", "--epsilon", "2", "--delta", "0"]
    new = ["budget", "register", "crm", *data, *where]
    assert main(new) == 2
    assert "owners of this book need its token\ngive --token FILE" in capsys.readouterr().err
    assert main([*new, "--token", "owner.token"]) == 0
    monkeypatch.setenv("LIGHTNING_DPG_BOOK_TOKEN", str(place / "owner.token"))
    assert main(["budget", "grant", "crm", "--to", "me", "--epsilon", "1", *where]) == 0
    assert main(["budget", "verify", *where, "--token", "owner.token"]) == 0
    assert main(["budget", "history", *where]) == 0
    assert main(["budget", "show", "crm", "--json", *where]) == 0
    said = capsys.readouterr()
    assert "3 lines, no fault" in said.out
    assert secret not in said.out + said.err
    assert secret.encode() not in (place / "second.db").read_bytes()
    assert main(["budget", "verify", *BOOK, "--token", "owner.token"]) == 2
    assert "made without a token" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["grant", NAME, "--to", "me"], "say one of three things"),
        (["grant", NAME, "--epsilon", "1"], "give --to USER"),
        (["grant", "--to", "me", "--epsilon", "1"], "the NAME of the data set"),
        (["grant", NAME, "--to", "me", "--epsilon", "-1"], "finite epsilon of 0 or more"),
        (["grant", NAME, "--to", "me", "--epsilon", "1", "--delta", "1"], "delta in [0, 1)"),
        (["grant", "crn", "--to", "me", "--epsilon", "1"], "no data set 'crn'"),
        (["grant", "--approve", "1"], "no grant 1"),
        (["grant", "--role", "spender", "--to", "me"], "roles are permissions of PostgreSQL"),
        (["close", "crn"], "no data set 'crn'"),
    ],
)
def test_wrong_commands_are_refused_and_write_nothing(place, args, message, capsys):
    assert budget(*args) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) <= 5
    capsys.readouterr()
    assert budget("history") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_same_nodes_are_registered_again_by_an_explicit_word_only(place, capsys):
    write(place / "next.txt", EDGES[1:])
    assert register("next", "next.txt") == 2
    error = capsys.readouterr().err
    assert f"the same people: fit with privacy.dataset {NAME}" in error
    assert "--other-people" in error
    assert register("again", "graph.txt") == 2
    assert "registered as" in capsys.readouterr().err
    assert register("people", "graph.txt", relation="node") == 0  # a total of its own
    assert "record every undirected edge of a node" in capsys.readouterr().out
    assert register("next", "next.txt", "--other-people") == 0


def test_directed_data_are_recognized_and_not_spent_on_as_undirected_ones(place, capsys):
    turned = [(f"q{a}", f"q{b}") for a, b in EDGES] + [("q1", "q0")]
    write(place / "directed.txt", turned)
    assert register("calls", "directed.txt", "--kind", "directed") == 0
    assert "relation edge, record directed edge" in capsys.readouterr().out
    write(place / "shuffled.txt", random.Random(0).sample(turned, len(turned)))
    kind = "--data.init_args.kind=directed"
    assert fit(kind, data="shuffled.txt", epsilon=0.5) == 0
    undirected = "--data.init_args.undirected=true"
    before = sorted(place.glob("runs/*/*"))
    assert fit(undirected, "--privacy.dataset=calls", data="directed.txt", epsilon=0.5) == 2
    error = capsys.readouterr().err
    assert "registered with the record 'directed edge', and the run protects the record" in error
    # As undirected data they have the same nodes, and are free by an explicit word only.
    assert register("calls again", "directed.txt", "--undirected") == 2
    assert "these data have the nodes of 'calls'" in capsys.readouterr().err
    assert sorted(place.glob("runs/*/*")) == before


def test_columns_of_a_bipartite_table_are_recognized_in_any_order_of_lines(place, capsys):
    rows = [f"{user},{item},{user * item}\n" for user in range(1, 6) for item in range(1, user + 1)]
    columns = ["user", "item"]
    (place / "bought.csv").write_text("user,item,price\n" + "".join(rows))
    named = ["--source-column", columns[0], "--target-column", columns[1]]
    assert register("bought", "bought.csv", "--kind", "bipartite", *named) == 0
    assert "record edge between the two sides" in capsys.readouterr().out
    mixed = [
        ",".join(row.strip().split(",")[::-1]) + "\n" for row in random.sample(rows, len(rows))
    ]
    (place / "mixed.csv").write_text("price,item,user\n" + "".join(mixed))
    settings = {"kind": "bipartite", "source_column": columns[0], "target_column": columns[1]}
    options = [f"--data.init_args.{key}={value}" for key, value in settings.items()]
    assert fit(*options, data="mixed.csv", epsilon=0.5) == 0
    assert register("again", "mixed.csv", "--kind", "bipartite", *named) == 2
    assert "registered as 'bought' already" in capsys.readouterr().err
    # Its columns exchanged, users would be items.
    exchanged = ["--source-column", "item", "--target-column", "user"]
    assert register("again", "mixed.csv", "--kind", "bipartite", *exchanged) == 2
    assert "these data have the nodes of 'bought'" in capsys.readouterr().err
