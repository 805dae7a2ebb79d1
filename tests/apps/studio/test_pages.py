"""Pages from data to a run, without a browser and without a process."""

import json
import stat
from pathlib import Path

import pytest

from lightning_dpg.apps.studio.answers import Answers, answered
from lightning_dpg.apps.studio.job import job
from lightning_dpg.run.commands.fit import long_form
from tests.apps.studio.doors import text_of

NAMED = {"data": "transfers.csv", "source": "payer", "target": "payee", "direction": "drop"}


def at_data(client, **form):
    client.post("/runs")
    return client.post("/runs/1/data", **NAMED | {"go": "next"} | form)


def test_data_are_read_and_marked_private(client, folder):
    client.post("/runs")
    page = text_of(client.post("/runs/1/data", **NAMED, go="read"))
    assert "Private: exact numbers" in page
    assert "Nodes 120 Relations" in page and "header 'payer', 'payee'" in page
    assert stat.S_IMODE((folder / ".studio" / "1.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / ".studio").stat().st_mode) == 0o700


def test_a_typo_in_a_column_has_the_lines_of_the_command_line(client, capsys):
    from lightning_dpg.main import main

    page = at_data(client, source="payr")
    assert main(["fit", "transfers.csv", "--epsilon", "1", "--source=payr", "--target=payee"]) == 2
    _, _, lines = capsys.readouterr().err.partition("error: ")
    lines = lines.strip().splitlines()
    assert len(lines) <= 5 and "no column 'payr'" in lines[0]
    shown = page.text.replace("&#39;", "'")
    assert all(line in shown for line in lines)
    assert at_data(client).headers["Location"] == "/runs/1/budget"


def test_meaning_of_epsilon_and_errors_before_anything_is_spent(client, folder):
    at_data(client)
    page = text_of(client.get("/runs/1/budget"))
    assert "becomes at most 73 %" in page and "10 10 more than 99.99 %" in page
    assert "each number that bter releases" in page
    assert "number of edges ± 20 ± 60" in page  # Laplace noise of 0.05: 1 / sinh(0.05) is 20
    fragment = text_of(client.get("/runs/1/meaning?epsilon=2"))
    assert "becomes at most 88 %" in fragment and "number of edges ± 9.98" in fragment
    assert "must be above 0" in client.get("/runs/1/meaning?epsilon=0").text
    assert not (folder / "runs").exists()


def test_a_budget_that_does_not_suffice_names_the_smallest_one(client):
    at_data(client)
    client.post("/runs/1/method", method="attribute_moments", of="attribute_moments", goal="links")
    page = client.post("/runs/1/budget", epsilon="0.0001", go="next")
    assert page.status_code == 200 and "error:" in page.text


def test_methods_follow_goal_and_secret(client):
    at_data(client)
    page = client.get("/runs/1/method").text
    assert 'value="bter" checked' in page and "Why:" in page and "neighbor_votes" not in page
    page = client.post("/runs/1/method", goal="communities", method="bter", go="recommend").text
    assert 'value="privgraph" checked' in page and "at epsilon" in page
    at_data(client, secret="person")
    page = client.get("/runs/1/method").text
    assert 'value="node_degrees" checked' in page and "bter" not in page


def test_settings_of_another_method_are_left_out(client):
    at_data(client)
    form = {"goal": "shape", "settings.count_share": "0.1", "go": "next"}
    client.post("/runs/1/method", method="bter", of="bter", **form)
    assert job(1).answers.settings == {"count_share": "0.1"}
    words = job(1).answers.words(Path("run"))[1:]
    assert "--model.init_args.count_share=0.1" in long_form(words).words
    client.post("/runs/1/method", method="chung_lu", of="bter", **form)
    assert job(1).answers.settings == {}


def test_private_columns_become_options(client, folder):
    columns = {"policy.age": "private", "domains.age": "18, 30,60,90", "policy.region": "drop"}
    at_data(client, attributes="people.csv")
    assert "What age is" in client.get("/runs/1/data").text
    page = at_data(client, attributes="people.csv", **columns)
    assert page.headers["Location"] == "/runs/1/budget", page.text
    words = job(1).answers.words(folder)
    assert '--data.nodes.domains={"age": [18.0, 30.0, 60.0, 90.0]}' in words
    assert "--data.nodes.private_columns=age" in words
    assert '--data.nodes.policy={"region": "drop"}' in words
    assert "--row-epsilon=1" in words
    assert 'value="attributed" checked' in client.get("/runs/1/method").text
    assert "private columns" in text_of(client.get("/runs/1/budget"))


def test_words_are_those_of_the_command_line(client):
    at_data(client)
    client.post("/runs/1/budget", epsilon="0.5", go="next")
    client.post("/runs/1/method", method="chung_lu", of="bter", goal="degrees", go="next")
    words = "fit transfers.csv --source=payer --target=payee --undirected --epsilon=0.5 --method=chung_lu"
    page = client.get("/runs/1/run").text
    assert f"python -m lightning_dpg {words} --out=runs/studio-1" in page
    assert "--privacy.epsilon=0.5" in long_form(words.split()[1:]).words


@pytest.mark.parametrize(
    ("form", "refusal"),
    [
        ({"data": "postgresql://ana:secret@db/bank"}, "the URL holds a password"),
        ({"data": "--help"}, "no data file"),
        ({"method": "/tmp/mine.yaml"}, "is none of"),
        ({"epsilon": "inf"}, "must be a number"),
        ({"epsilon": "1e9"}, "at most 10"),
        ({"settings.a;b": "1"}, "no setting"),
        ({"card.audit": "/etc/passwd"}, "is none of"),
        ({"policy.age": "/etc/passwd"}, "is none of"),
        ({"source": "a\nb"}, "in one line"),
        ({"target": "x" * 501}, "at most 500"),
    ],
)
def test_answers_that_no_page_offers_are_refused(folder, form, refusal):
    from lightning_dpg.errors import CommandError

    with pytest.raises(CommandError, match=refusal) as caught:
        answered(Answers(), form, Answers.__dataclass_fields__)
    assert "secret" not in str(caught.value)


def test_a_password_reaches_no_file(client, folder):
    client.post("/runs")
    page = client.post("/runs/1/data", server="postgresql://ana:geheim@db/bank", go="read")
    assert "a password" in page.text and "geheim" not in page.text
    assert "geheim" not in (folder / ".studio" / "1.json").read_text()


def test_a_book_is_made_and_refuses_what_exceeds_its_total(client, folder):
    at_data(client)
    assert "is missing" in client.post("/runs/1/register", name="bank").text
    assert not (folder / "budget-book.db").exists()
    made = client.post("/runs/1/register", name="bank", total="1.5", epsilon="0.7")
    assert made.status_code == 303, text_of(made)
    assert (job(1).answers.dataset, job(1).answers.epsilon) == ("bank", 0.7)
    page = text_of(client.get("/runs/1/budget"))
    assert "bank undirected edge 1.5 0" in page and "Register these data" not in page
    client.post("/runs/1/budget", dataset="", epsilon="1")
    again = client.post("/runs/1/register", name="bank", total="3")
    assert "error:" in again.text and "Register these data" in again.text
    assert "No fault was found" in client.post("/book/verify").text
    officer = client.get("/book/page")
    assert "sandbox" in officer.headers["Content-Security-Policy"] and "bank" in officer.text


def test_state_is_in_files(client):
    from tests.apps.studio.doors import Client

    at_data(client)
    other = Client()  # of another tab, after the studio was started again
    assert 'value="payer"' in other.get("/runs/1/data").text or "payer" in json.dumps(
        job(1).answers.reading.given()
    )
    assert "transfers.csv" in other.get("/").text
