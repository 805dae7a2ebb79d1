"""``budget`` and fits that book: what a data set has spent over all its runs."""

import json
import random
import subprocess
import time
from types import SimpleNamespace

import networkx as nx
import pytest

import lightning_dpg as dpg
from lightning_dpg.apps.book.book import Book
from lightning_dpg.datamodules import tu
from lightning_dpg.errors import CommandError
from lightning_dpg.main import main
from lightning_dpg.privacy import noise
from tests.apps.bench.test_executors import AtOnce
from tests.processes import start_command

EDGES = sorted(nx.karate_club_graph().edges)
REGISTER = [
    "register",
    "web",
    "none.txt",
    "--relation",
    "edge",
    "--epsilon",
    "1",
    "--delta",
    "0",
]


@pytest.fixture
def place(here, monkeypatch):
    """A folder with a graph, and a book in which it is registered."""
    monkeypatch.delenv("LIGHTNING_DPG_BOOK", raising=False)
    write(here / "graph.txt", EDGES)
    assert main(["budget", "init", "--book", "sqlite:///book.db"]) == 0
    assert register("crm-secret-name", "graph.txt") == 0
    return here


def write(path, edges):
    path.write_text("".join(f"p{a} p{b}\n" for a, b in edges))


def register(name, data, *more, relation="edge"):
    total = ["--epsilon", "2", "--delta", "1e-6", "--book", "sqlite:///book.db"]
    return main(["budget", "register", name, data, "--relation", relation, *total, *more])


def fit(*more, epsilon=1, data="graph.txt", book="sqlite:///book.db"):
    settings = [f"--data.init_args.name={data}", f"--privacy.epsilon={epsilon}"]
    quiet = ["--trainer.enable_progress_bar=false"]
    book_of = [f"--privacy.book={book}"] if book else []
    return main(["fit", "--config", "chung_lu.yaml", *settings, *quiet, *book_of, *more])


def shown(capsys, name="crm-secret-name"):
    capsys.readouterr()
    assert main(["budget", "show", name, "--book", "sqlite:///book.db", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_fits_are_added_up_and_refused_beyond_the_total(place, capsys, printed, refusal):
    assert fit("--privacy.dataset=crm-secret-name") == 0
    assert "left is one pure release of epsilon 1\n" in capsys.readouterr().out
    assert fit(epsilon=0.75) == 0  # recognized
    found = shown(capsys)
    assert (found["dataset"], found["relation"]) == ("crm-secret-name", "edge")
    numbers = [found[key] for key in ("total", "spent", "reserved", "left")]
    assert numbers == [2.0, 1.75, 0.0, 0.25]
    assert [run["outcome"] for run in found["releases"]] == ["ended", "ended"]
    folders = sorted(place.glob("runs/chung_lu/*"))
    assert "set privacy.epsilon to 0.2" in refusal(fit(epsilon=0.5))
    assert sorted(place.glob("runs/chung_lu/*")) == folders  # a refused run leaves nothing
    assert shown(capsys)["spent"] == 1.75
    assert main(["budget", "verify", "--book", "sqlite:///book.db"]) == 0
    assert main(["budget", "history", "--book", "sqlite:///book.db"]) == 0
    assert "run 2: ended" in printed(main(["budget", "show", "--book", "sqlite:///book.db"]))


def test_nothing_of_the_book_is_in_a_release(place, capsys):
    """Nor does a release depend on it: but for random draws it is that of a run without a book."""
    assert fit("--privacy.dataset=crm-secret-name") == 0
    book = Book("sqlite:///book.db")
    ((secret,),) = book.database.rows("SELECT value FROM book_facts WHERE name = 'secret'")
    known = book.data_set("crm-secret-name")
    hidden = ["crm-secret-name", "book.db", secret, known.edges, known.nodes]
    files = [path for path in place.glob("runs/*/*/release/**/*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        content = path.read_bytes()
        assert not [each for each in hidden if each.encode() in content], path
    # The digest of the configuration does not confirm a guess of the name either.
    (folder,) = place.glob("runs/chung_lu/*")
    config = (folder / "config.yaml").read_text()
    assert "  dataset: crm-secret-name\n" in config
    command = r"sed -E 's/^  (book|dataset): .*/  \1: null/' config.yaml | sha256sum"
    digest = subprocess.run(command, shell=True, cwd=folder, capture_output=True, check=True)
    assert digest.stdout.split()[0].decode() in (folder / "release" / "privacy.json").read_text()


def released(place, monkeypatch, *more):
    """Files of the release of a fit in a folder, whose noise is the same in each."""
    place.mkdir(exist_ok=True)
    monkeypatch.chdir(place)
    monkeypatch.setattr(noise, "secrets", SimpleNamespace(randbits=random.Random(1).getrandbits))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    write(place / "graph.txt", EDGES)
    # Numbers are in a secret order, which differs between runs.
    assert fit("--names", "ids", *more, book=None) == 0
    (release,) = place.glob("runs/*/*/release")
    assert main(["verify", str(release)]) == 0
    return {path.name: path.read_bytes() for path in release.iterdir()}


def test_a_release_says_whether_runs_are_added_up_and_nothing_else_of_the_book(
    place, monkeypatch, tmp_path
):
    books = []
    for name, total, earlier in [("a", "2", []), ("customers", "7", ["0.5", "0.25"])]:
        monkeypatch.setenv("LIGHTNING_DPG_BOOK", f"sqlite:///{tmp_path}/{name}.db")
        monkeypatch.chdir(tmp_path)
        assert main(["budget", "init"]) == 0
        terms = ["--relation", "edge", "--epsilon", total, "--delta", "1e-6"]
        assert main(["budget", "register", name, "graph.txt", *terms]) == 0
        for epsilon in earlier:
            dpg.fit("graph.txt", "chung_lu", epsilon=float(epsilon), progress=False)
        books.append(released(tmp_path / f"with-{name}", monkeypatch))
    assert books[0] == books[1]
    left_out = released(tmp_path / "left-out", monkeypatch, "--no-book")
    monkeypatch.delenv("LIGHTNING_DPG_BOOK")
    without = released(tmp_path / "without", monkeypatch)
    for files, fact in [
        (books[0], "added up in a budget book, apart from runs that protect another unit"),
        (left_out, "left out of the budget book by the user"),
        (without, "not added up"),
    ]:
        assert json.loads(files["privacy.json"])["accounting"]["other_runs"] == fact
        for name in ("MODEL_CARD.md", "MODEL_CARD.html"):
            assert f"Other runs on these data: {fact}." in files[name].decode()
        cards = {"privacy.json", "MODEL_CARD.md", "MODEL_CARD.html", "SHA256SUMS"}
        assert {name for name in files if files[name] != without[name]} <= cards


def test_trackers_get_nothing_of_the_book(place):
    """Of the run folder they get no settings; its own files may name the data set."""
    import wandb

    tracked = ["--trainer.logger=WandbLogger", "--trainer.logger.offline=true"]
    assert fit("--privacy.dataset=crm-secret-name", *tracked) == 0
    wandb.teardown()  # its process closes the files some time after the run
    book = Book("sqlite:///book.db")
    ((secret,),) = book.database.rows("SELECT value FROM book_facts WHERE name = 'secret'")
    known = book.data_set("crm-secret-name")
    files = [path for path in place.glob("runs/*/*/wandb/**/*") if path.is_file()]
    assert any(path.suffix == ".wandb" for path in files)
    for path in files:
        content = path.read_bytes()
        for hidden in ("crm-secret", "book.db", secret, known.edges, known.nodes):
            assert hidden.encode() not in content, path


def test_predict_is_booked_refused_and_left_out(place, capsys, refusal, monkeypatch):
    some = tu.BUILT_IN_SETS["planted_sets"]()[:40]
    monkeypatch.setitem(tu.BUILT_IN_SETS, "planted_sets", lambda: some)
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", "sqlite:///book.db")
    assert register("sets", "planted_sets") == 0
    config = ["--config", "private_kernel.yaml", "--trainer.enable_progress_bar=false"]
    assert main(["fit", *config, "--privacy.epsilon=1"]) == 0
    (checkpoint,) = place.glob("runs/*/*/checkpoints/*.ckpt")
    predict = ["predict", *config, "--ckpt_path", str(checkpoint), "--privacy.epsilon=0.75"]
    assert main(predict) == 0
    assert [run["outcome"] for run in shown(capsys, "sets")["releases"]] == ["ended", "ended"]
    assert shown(capsys, "sets")["left"] == 0.25
    folders = sorted(place.glob("runs/*/*"))
    assert "does not pay for PrivateGraphKernel" in refusal(main(predict))
    assert sorted(place.glob("runs/*/*")) == folders
    assert main([*predict, "--no-book"]) == 0
    assert shown(capsys, "sets")["spent"] == 1.75


def test_data_are_recognized_wherever_they_lie_and_however_they_are_sorted(place, capsys):
    shuffled = [edge[:: random.choice([1, -1])] for edge in random.sample(EDGES, len(EDGES))]
    (place / "elsewhere").mkdir()
    write(place / "elsewhere" / "copy.csv", [*shuffled, shuffled[0]])
    assert fit(data="elsewhere/copy.csv") == 0
    graph = nx.relabel_nodes(nx.Graph(shuffled), "p{}".format)
    dpg.fit(graph, "chung_lu", epsilon=0.5, book="sqlite:///book.db", progress=False)
    assert shown(capsys)["spent"] == 1.5
    # Numbers in a secret order, and the part that is the largest component, are the same data.
    for setting in ("nodes.names=numbers", "largest_component=true"):
        assert fit(f"--data.init_args.{setting}", epsilon=0.25) == 0
    assert shown(capsys)["left"] == 0.0
    assert register("again", "elsewhere/copy.csv") == 2
    assert "registered as 'crm-secret-name' already" in capsys.readouterr().err


def test_other_data_are_refused_or_booked_as_a_new_version(place, capsys, refusal):
    write(place / "next.txt", EDGES[1:])
    assert "not registered for the relation edge" in refusal(fit(data="next.txt"))
    with pytest.warns(UserWarning, match="booked on its total"):
        assert fit("--privacy.dataset=crm-secret-name", data="next.txt") == 0
    assert fit(data="next.txt", epsilon=0.5) == 0  # recognized from now on
    assert shown(capsys)["spent"] == 1.5
    write(place / "other.txt", EDGES[40:])
    assert register("other", "other.txt", "--other-people") == 0
    assert fit("--privacy.dataset=other") == 2
    assert "these data are registered as 'crm-secret-name'" in capsys.readouterr().err


def test_the_book_of_the_environment(place, monkeypatch, capsys):
    capsys.readouterr()
    assert fit(book=None) == 0
    assert "other runs on these data are not added up" in capsys.readouterr().err
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", "sqlite:///book.db")
    assert fit(book=None, epsilon=0.5) == 0
    dpg.fit(place / "graph.txt", "chung_lu", epsilon=0.25, progress=False)
    assert fit("--no-book", book=None) == 0
    assert shown(capsys)["spent"] == 0.75


def test_fits_of_comparisons_are_not_booked(place, monkeypatch, capsys):
    """They measure methods."""
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", "sqlite:///book.db")
    settings = {"methods": ["chung_lu"], "epsilons": [1.0], "seeds": [0]}
    with pytest.warns(UserWarning, match="reads the private data"):
        dpg.compare(graphs=["graph.txt"], out="compared", executor=AtOnce(), **settings)
    assert shown(capsys)["releases"] == []


def test_what_cannot_be_booked_is_refused(place, monkeypatch, capsys, refusal):
    for more, message in [
        (["--privacy.dataset=crn"], "no data set 'crn'"),
        (["--privacy.epsilon=inf"], "reads the data without protection"),
        (["--privacy.book=sqlite:///none.db"], "no such book"),
        (["--privacy.book=postgresql://me:secret@host/db"], "privacy.book has a password"),
    ]:
        error = refusal(fit(*more))
        assert message in error
        assert "me:secret" not in error
    # A book that was forgotten: this run would be added to nothing.
    assert fit("--privacy.dataset=crm-secret-name", book=None) == 2
    assert "privacy.dataset is crm-secret-name, and there is no budget book" in (
        capsys.readouterr().err
    )
    assert not (place / "runs").exists()
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", "sqlite:///book.db")
    with pytest.raises(CommandError, match="no data set 'crn'"):
        dpg.fit("karate", "chung_lu", epsilon=1.0, dataset="crn")
    assert shown(capsys)["releases"] == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["show", "crn", "--book", "sqlite:///book.db"], "no data set 'crn'"),
        (["show", "crm"], "no book: give --book URL"),
        (["init", "--book", "sqlite:///book.db"], "there is a book already"),
        (["init", "--book", "book.db"], "a book is a URL of the form"),
        (["shwo"], "unknown command 'shwo', did you mean show?"),
        (["show", "--jsn"], "unknown option --jsn, did you mean --json?"),
        # No short forms: a registration cannot be undone.
        ([*REGISTER, "--max-degre", "3"], "unknown option --max-degre, did you mean --max-degree?"),
        ([*REGISTER, "--max-degree", "x"], "argument --max-degree: invalid int value: 'x'"),
        (["register", "web"], "required: --relation, --epsilon, --delta"),
        (["register", "", *REGISTER[2:], "--book", "sqlite:///book.db"], "a data set needs a name"),
    ],
)
def test_wrong_commands_are_refused(place, args, message, refusal):
    assert message in refusal(main(["budget", *args]))


def test_wrong_registrations_are_refused(place, capsys, refusal):
    write(place / "other.txt", EDGES[40:])
    assert register("x", "other.txt", relation="friend") == 2
    assert "--relation: invalid choice: 'friend' (choose from" in capsys.readouterr().err
    assert "finite epsilon above 0" in refusal(register("x", "other.txt", "--epsilon", "0"))
    assert "none.txt" in refusal(register("x", "none.txt"))


def test_verify_finds_a_changed_line(place, capsys, refusal):
    Book("sqlite:///book.db").database.rows(
        "UPDATE book_log SET body = REPLACE(body, '2.0', '9.0') WHERE line = 1"
    )
    capsys.readouterr()
    assert main(["budget", "verify", "--book", "sqlite:///book.db"]) == 1
    assert capsys.readouterr().out.startswith("line 1: ")
    assert main(["budget", "show", "--book", "sqlite:///book.db"]) == 0
    assert "warning: sqlite:///book.db: the book was changed" in capsys.readouterr().err
    assert "nothing is spent on it: line 1" in refusal(fit())


def test_a_killed_fit_keeps_its_steps_and_a_resumed_one_books_the_rest(place, capsys):
    """A run is killed in the middle, reconciled, and resumed: all of its steps are booked once."""
    settings = {
        "data.init_args.name": "graph.txt",
        "privacy.epsilon": 2,
        "privacy.delta": 1e-6,
        "privacy.book": "sqlite:///book.db",
        "trainer.max_epochs": 6,
        "trainer.enable_progress_bar": "false",
        "trainer.callbacks": "ModelCheckpoint",
        "trainer.callbacks.every_n_train_steps": 1,
    }
    words = [f"--{key}={value}" for key, value in settings.items()]
    command = ["fit", "--config", "dp_netgan.yaml", *words]
    run = start_command(place, *command).process
    journals = []
    while run.is_alive() and (not journals or journals[0].read_text().count("\n") < 20):
        time.sleep(0.05)
        journals = list(place.glob("runs/*/*/ledger.jsonl"))
    run.kill()
    run.join()
    found = shown(capsys)
    (killed,) = found["releases"]
    assert killed["outcome"] == "killed"
    assert found["reserved"] == 0
    steps = sum(entry["steps"] for entry in killed["entries"])
    made = journals[0].read_text().count("\n")
    assert made <= steps <= 2 * made  # a block of steps ahead is twice the one before at most
    # Its whole budget is the total, which the resumed run shares.
    (folder,) = {path.parent for path in journals}
    checkpoint = max(folder.glob("checkpoints/*.ckpt"), key=lambda path: path.stat().st_mtime)
    assert main([*command, "--ckpt_path", str(checkpoint)]) == 0
    found = shown(capsys)
    assert [run["outcome"] for run in found["releases"]] == ["killed", "ended"]
    assert found["spent"] <= 2
    statement = json.loads(next(place.glob("runs/*/*/release/privacy.json")).read_text())
    whole = sum(entry["steps"] for entry in statement["entries"])
    booked = sum(entry["steps"] for run in found["releases"] for entry in run["entries"])
    assert whole <= booked <= whole + 1
