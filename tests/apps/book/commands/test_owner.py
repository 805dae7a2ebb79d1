"""``budget init``, ``register``, ``grant`` and ``close``, and the fits that they refuse."""

import random

import pytest

from lightning_dpg.apps.book import owner as owner_acts
from lightning_dpg.apps.book.book import Book
from lightning_dpg.datamodules import Columns, EdgeListDataModule
from lightning_dpg.main import main
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from tests.apps.book.commands.test_budget import EDGES, fit, place, register, write

__all__ = ["place"]

BOOK = ["--book", "sqlite:///book.db"]
NAME = "crm-secret-name"


def budget(*args):
    return main(["budget", *args, *BOOK])


def test_a_fit_on_a_closed_data_set_is_refused(place, refusal, printed):
    assert "closed crm-secret-name for good" in printed(budget("close", NAME))
    error = refusal(fit())
    assert f"{NAME}: closed at 20" in error
    assert f"by {Book('sqlite:///book.db').database.user()}: no further run may spend" in error
    assert not (place / "runs").exists()
    assert budget("close", NAME) == 2
    assert f"closed {NAME}, by " in printed(budget("history"))


def test_a_fit_beyond_the_grant_is_refused(place, capsys, refusal):
    user = Book("sqlite:///book.db").database.user()
    assert budget("grant", NAME, "--to", "somebody", "--epsilon", "1") == 0
    assert "from now on, only users with a grant may spend on it" in capsys.readouterr().out
    assert f"only users with a grant may spend on it, and {user} has none" in refusal(fit())
    assert budget("grant", NAME, "--to", user, "--epsilon", "0.5") == 0
    assert "granted: epsilon 0.5, delta 0; left: epsilon 0.5, delta 0" in refusal(fit())
    assert not (place / "runs").exists()
    assert fit(epsilon=0.5) == 0


def test_private_columns_have_a_total_and_grants_of_their_own(place, capsys, printed, refusal):
    assert budget("rows", NAME, "--epsilon", "3") == 0
    assert "total of the private columns of one node: epsilon 3" in capsys.readouterr().out
    assert "no total is raised" in refusal(budget("rows", NAME, "--epsilon", "5"))
    said = printed(budget("grant", NAME, "--to", "ann", "--row-epsilon", "1"))
    assert f"granted 1: ann on {NAME}, private columns, epsilon 1" in said
    assert "only users with a grant may spend on it" in said
    other = ["--relation", "node", "--epsilon", "2", "--delta", "0", "--row-epsilon", "1"]
    assert budget("register", "people", "graph.txt", *other) == 2
    assert f"'{NAME}' has a total of the private columns of the same" in capsys.readouterr().err
    assert budget("register", "people", "graph.txt", *other, "--other-people") == 0
    said = printed(budget("history", NAME))
    assert f"set the total of {NAME} for the relation attributes: epsilon 3, delta 0" in said
    assert f"grant 1 on {NAME}, private columns: ann may spend epsilon 1" in said
    lines = [line for line in printed(budget("show")).splitlines() if "attributes" in line]
    assert [line.split()[:3] for line in lines] == [
        [NAME, "attributes", "3"],
        ["people", "attributes", "1"],
    ]
    assert budget("verify") == 0


def test_the_commands_of_an_owner_need_the_token(place, monkeypatch, capsys, refusal):
    where = ["--book", "sqlite:///second.db"]
    assert main(["budget", "init", "--token", "owner.token", *where]) == 0
    secret = (place / "owner.token").read_text().strip()
    data = ["graph.txt", "--relation", "edge", "--epsilon", "2", "--delta", "0"]
    new = ["budget", "register", "crm", *data, *where]
    assert "owners of this book need its token\ngive --token FILE" in refusal(main(new))
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
        (["grant", NAME, "--to", "me"], "use one of:"),
        (["grant", NAME, "--epsilon", "1"], "give --to USER"),
        (["grant", "--to", "me", "--epsilon", "1"], "the NAME of the data set"),
        (["grant", NAME, "--to", "me", "--epsilon", "-1"], "finite epsilon of 0 or more"),
        (["grant", "--approve", "1"], "no grant 1"),
        (["close", "crn"], "no data set 'crn'"),
    ],
)
def test_wrong_commands_are_refused_and_write_nothing(place, args, message, printed, refusal):
    assert message in refusal(budget(*args))
    assert len(printed(budget("history")).splitlines()) == 1


def test_the_same_nodes_are_registered_again_by_an_explicit_word_only(place, capsys, refusal):
    write(place / "next.txt", EDGES[1:])
    error = refusal(register("next", "next.txt"))
    assert f"the same people: fit with --dataset {NAME}" in error
    assert "--other-people" in error
    assert "registered as" in refusal(register("again", "graph.txt"))
    assert register("people", "graph.txt", relation="node") == 0  # a total of its own
    said = capsys.readouterr().out
    assert "record every undirected edge of a node" in said
    assert f"the same edges are registered as {NAME!r} for the relation edge: neither" in said
    assert register("next", "next.txt", "--other-people") == 0


def payments(path, customers, seed, name="C{:05d}"):
    """Payments among customers, each of whom occurs."""
    rng = random.Random(seed)
    pairs = [(each, rng.choice(customers)) for each in customers for _ in range(3)]
    lines = [f"{name.format(a)},{name.format(b)},9\n" for a, b in pairs if a != b]
    path.write_text("from,to,amount\n" + "".join(lines))


def test_the_next_month_of_the_same_bank_gets_no_total_of_its_own(place, capsys, printed, refusal):
    """A few customers left and a few are new: no node set is equal."""
    payments(place / "nov.csv", range(1000), 1)
    payments(place / "dec.csv", range(20, 1030), 2)
    payments(place / "other.csv", range(5000, 6000), 3)
    (place / "all.txt").write_text("".join(f"C{each:05d}\n" for each in range(1100)))
    as_here = ["--source=from", "--target=to", "--undirected"]
    as_in_fit = [f"--data.columns.{each[2:]}" for each in as_here[:2]]
    as_in_fit += ["--data.init_args.undirected=true"]
    assert register("nov", "nov.csv", *as_here) == 0
    for more in ([], ["--data.init_args.nodes=all.txt"]):
        error = refusal(fit(*as_in_fit, *more, data="dec.csv"))
        assert "the same people: fit with --dataset nov" in error
        assert "budget register" not in error
    error = refusal(register("dec", "dec.csv", *as_here))
    assert "totals of one person's relations add up" in error and "'dec' is not registered" in error
    assert register("other", "other.csv", *as_here) == 0
    assert "warning" not in capsys.readouterr().err
    assert fit(*as_in_fit, "--privacy.dataset=nov", data="dec.csv") == 0
    assert register("dec", "dec.csv", *as_here, "--other-people") == 2  # it spent on nov already
    payments(place / "jan.csv", range(40, 1040), 4)
    assert register("jan", "jan.csv", *as_here, "--other-people") == 0
    assert "warning: these data and 'nov'" in capsys.readouterr().err
    assert "no fault" in printed(budget("verify"))


def test_a_data_set_of_an_earlier_version_has_no_sketch_and_works_as_before(place, capsys):
    payments(place / "nov.csv", range(100), 1)
    payments(place / "dec.csv", range(2, 103), 2)
    data = EdgeListDataModule("nov.csv", undirected=True, columns=Columns(1, 2))
    book = Book("sqlite:///book.db")
    found = book.fingerprint(data.identity())
    total = {"relation": Relation.EDGE, "total": Budget(1.0, 0.0)}
    owner_acts.register(book, "nov", found, **total)
    book.close()
    columns = ["--source=1", "--target=2", "--undirected"]
    assert register("dec", "dec.csv", *columns) == 0
    assert budget("verify") == 0
    assert register("again", "nov.csv", *columns) == 2  # equal edges are known as ever


def test_numbered_nodes_raise_no_false_alarm(place, capsys):
    payments(place / "one.csv", range(100), 1, name="{}")
    payments(place / "two.csv", range(120), 2, name="{}")
    columns = ["--source=1", "--target=2", "--undirected"]
    assert register("one", "one.csv", *columns) == 0
    assert register("two", "two.csv", *columns) == 0
    payments(place / "three.csv", range(120), 3, name="{}")
    assert register("three", "three.csv", *columns) == 2
    assert "by their numbers only, which do not say whether they are" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "more", "message"),
    [
        ("asym.txt", (), "set undirected=True (--undirected) to drop"),
        ("asym.txt", (), "set kind to directed (--kind directed)"),
        ("four.csv", ("--source=from", "--target=w"), "(--source NAME --target NAME)"),
        ("graph.txt", ("--nodes", "table.csv"), "nodes.column (--nodes"),
        (
            "graph.txt",
            ("--kind", "bipartite", "--nodes", "ids.txt"),
            "(--nodes.left FILE --nodes.right FILE)",
        ),
        ("out.bip", (), "set kind to bipartite (--kind bipartite)"),
        ("planted_sets", ("--nodes.left", "x"), "--nodes.left belongs to a graph in a file"),
        ("planted_sets", ("--nodes", "table.csv"), "--nodes is no option of a set of graphs"),
    ],
)
def test_messages_on_data_name_the_options_of_register(place, data, more, message, refusal):
    (place / "asym.txt").write_text("% asym unweighted\n1 2\n2 3\n")
    (place / "out.bip").write_text("% bip unweighted\n1 1\n2 1\n")
    (place / "four.csv").write_text("x,y,z,w\nann,bob,eve,dan\n")
    (place / "ids.txt").write_text("".join(f"p{each}\n" for each in range(34)))
    (place / "table.csv").write_text("nr,age\np1,30\n")
    error = refusal(register("x", data, *more))
    assert message in error and "--data." not in error


def test_a_registration_is_spelled_as_the_fit(place, capsys, refusal):
    """One set of options for both commands."""
    payments(place / "a.csv", range(50), 1)
    payments(place / "b.csv", range(50, 100), 2)
    short = ["--undirected", "--source", "from", "--target", "to", "--missing-ids", "drop"]
    total = ["--relation", "edge", "--epsilon", "2", "--delta", "0", *BOOK]
    assert main(["budget", "register", "a", *short, *total, "a.csv"]) == 0  # FILE at any place
    assert main(["fit", "a.csv", "--epsilon", "1", "--method", "chung_lu", *short, *BOOK]) == 0
    assert "budget book: a has a total of epsilon 2" in capsys.readouterr().out
    assert "registered as 'a' already" in refusal(register("again", "a.csv", *short))
    assert main(["budget", "register", "b", "b.csv", "--undirect", *total]) == 2
    assert "did you mean --undirected?\nall options: python -m lightning_dpg budget register" in (
        capsys.readouterr().err
    )


def test_directed_data_are_recognized_and_not_spent_on_as_undirected_ones(place, capsys, refusal):
    turned = [(f"q{a}", f"q{b}") for a, b in EDGES] + [("q1", "q0")]
    write(place / "directed.txt", turned)
    assert register("calls", "directed.txt", "--kind", "directed") == 0
    assert "relation edge, record directed edge" in capsys.readouterr().out
    write(place / "shuffled.txt", random.Random(0).sample(turned, len(turned)))
    kind = "--data.init_args.kind=directed"
    assert fit(kind, data="shuffled.txt", epsilon=0.5) == 0
    undirected = "--data.init_args.undirected=true"
    before = sorted(place.glob("runs/*/*"))
    error = refusal(fit(undirected, "--privacy.dataset=calls", data="directed.txt", epsilon=0.5))
    assert "registered with the record 'directed edge', and the run protects the record" in error
    # As undirected data they have the same nodes, and are free by an explicit word only.
    assert register("calls again", "directed.txt", "--undirected") == 2
    assert "these data have the nodes of 'calls'" in capsys.readouterr().err
    assert sorted(place.glob("runs/*/*")) == before


def test_columns_of_a_bipartite_table_are_recognized_in_any_order_of_lines(place, capsys):
    rows = [f"{user},{item},{user * item}\n" for user in range(1, 6) for item in range(1, user + 1)]
    columns = ["user", "item"]
    (place / "bought.csv").write_text("user,item,price\n" + "".join(rows))
    named = ["--source", columns[0], "--target", columns[1]]
    assert register("bought", "bought.csv", "--kind", "bipartite", *named) == 0
    assert "record edge between the two sides" in capsys.readouterr().out
    mixed = [
        ",".join(row.strip().split(",")[::-1]) + "\n" for row in random.sample(rows, len(rows))
    ]
    (place / "mixed.csv").write_text("price,item,user\n" + "".join(mixed))
    settings = {"kind": "bipartite", "columns.source": columns[0], "columns.target": columns[1]}
    options = [f"--data.init_args.{key}={value}" for key, value in settings.items()]
    assert fit(*options, data="mixed.csv", epsilon=0.5) == 0
    assert register("again", "mixed.csv", "--kind", "bipartite", *named) == 2
    assert "registered as 'bought' already" in capsys.readouterr().err
    # Its columns exchanged, users would be items.
    exchanged = ["--source", "item", "--target", "user"]
    assert register("again", "mixed.csv", "--kind", "bipartite", *exchanged) == 2
    assert "these data have the nodes of 'bought'" in capsys.readouterr().err


def test_amounts_and_times_are_registered_with_the_edges(place, capsys, refusal):
    """The same people with another content never get a total of their own unasked."""
    rows = ["a,b,1,2026-01-02 10:00", "b,c,2,2026-01-03 11:00", "a,b,3,2026-01-04 12:00"]
    for name, lines in (("a.csv", rows), ("turned.csv", rows[::-1]), ("b.csv", rows[:2])):
        (place / name).write_text("\n".join(["payer,payee,eur,at", *lines]) + "\n")
    amounts = ["--undirected", "--weight", "eur", "--weight-max", "5"]
    times = ["--time", "at", "--time-window=2026-01-01,2026-01-31"]
    assert register("bank", "a.csv", *amounts, *times) == 0
    capsys.readouterr()
    assert register("again", "turned.csv", *amounts[:-1], "2", *times) == 2
    assert "registered as 'bank' already" in capsys.readouterr().err
    for file, columns in (("b.csv", [*amounts, *times]), ("a.csv", amounts), ("a.csv", times)):
        assert register("other", file, "--undirected", *columns) == 2
        assert "these data have the nodes of 'bank', with other edges" in capsys.readouterr().err
    error = refusal(register("other", "a.csv", "--undirected", "--weight", "eur"))
    assert "set it (--weight-max 1000)" in error and "--data." not in error
