"""Pages from data to a run, without a browser and without a process."""

import json
import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from lightning_dpg.apps.studio.answers import LABELS, Answers, answered
from lightning_dpg.apps.studio.job import Job, job
from lightning_dpg.apps.studio.view import fields_in, of_fields
from lightning_dpg.run.commands.fit import long_form
from tests.apps.studio.doors import text_of

NAMED = {"data": "transfers.csv", "source": "payer", "target": "payee", "direction": "drop"}


TIMES = {
    "weight": "amount",
    "weight_max": "100",
    "time": "at",
    "time_window": "2026-01-01,2026-06-30",
}
PERSONS = {"persons": "people.csv"}
AGE = PERSONS | {"policy.age": "private", "domains.age": "18,30,60,90"}
CLASSES = PERSONS | {"policy.age": "public", "domains.region": "north,south"}
SHOPS = {"data": "shops.csv", "source": "customer", "target": "shop", "direction": "bipartite"}
KINDS = {
    "undirected": ({}, {"shape": "bter", "communities": "privgraph", "degrees": "chung_lu"}),
    "directed": ({"direction": "directed"}, {"shape": "chung_lu", "communities": "privgraph"}),
    "bipartite": (SHOPS, {"shape": "chung_lu", "links": "chung_lu"}),
    "parts": ({"data": "monthly/*.csv"} | PERSONS, {"shape": "bter"}),
    "database": ({"data": "bank.duckdb", "table": "t", "persons": "p(id)"}, {"shape": "bter"}),
    "set": ({"data": "graph_atlas"}, {"graphs": "pooled_set", "clients": "local_scalars"}),
    "amounts and times": (TIMES | PERSONS, {"transfers": "transfers"}),
    "directed amounts": ({"direction": "directed"} | TIMES, {"transfers": "transfers"}),
    "public columns": (PERSONS | {"policy.age": "public"}, {"links": "attribute_encoder"}),
    "public classes": (CLASSES | {"policy.region": "label"}, {"classes": "neighbor_votes"}),
    "private classes": (
        CLASSES | {"policy.region": "private_label"},
        {"classes": "neighbor_votes"},
    ),
    "private columns": (AGE, {"rows": "attributed"}),
    "private columns and amounts": (AGE | TIMES, {"transfers": "transfers"}),
    "one person": ({"secret": "person"}, {"degrees": "node_degrees"}),
}
"""Data, and the recommended method by goal: of these goals some, or all that the page has."""


def at_data(client, **form):
    client.post("/runs")
    return client.post("/runs/1/data", **NAMED | {"go": "next"} | form)


@pytest.fixture
def started(monkeypatch):
    """Answers of each run that is started, without a process."""
    found = []
    monkeypatch.setattr(Job, "start", lambda run, *_: found.append(run.answers))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_preselected_choice_runs(client, folder, started, kind):
    form, methods = KINDS[kind]
    if kind == "database":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect("bank.duckdb") as bank:
            bank.execute("CREATE TABLE t AS FROM 'transfers.csv'")
            bank.execute("CREATE TABLE p AS FROM 'people.csv'")
    answer = at_data(client, **form)
    assert answer.status_code == 303, text_of(answer)
    page = client.get("/runs/1/plan").text.partition('<select name="goal"')[2]
    for goal in re.findall('value="(.*?)"', page.partition("</select>")[0]):
        answer = client.post("/runs/1/plan", goal=goal, method="", go="next")
        assert answer.status_code == 303, text_of(answer)
    chosen = {answers.goal: answers.method for answers in started}
    assert methods.items() <= chosen.items()


@pytest.mark.parametrize(
    ("form", "field", "way"),
    [
        ({"secret": "person"} | TIMES, "weight", "leave them out"),
        ({"weight": "amount"}, "weight_max", "'Largest amount that counts'"),
        (PERSONS | {"column": "idd"}, "column", "id, age, region"),
        ({"time_window": "2026-06-30,x"} | {"time": "at"}, "time_window", "'First and last day'"),
    ],
)
def test_a_refusal_names_and_marks_its_field_and_keeps_the_others(client, form, field, way):
    page = at_data(client, **form).text.replace("&#39;", "'")
    error = re.search(r'role="alert"><pre>(.*?)</pre>', page, re.DOTALL)[1]
    assert way in error and "--" not in error and len(error.splitlines()) <= 5
    assert re.search(rf'name="{field}"[^>]* aria-invalid="true"', page)
    assert '<select name="source"' in page and "<option selected>payer</option>" in page
    typed = client.post(
        "/runs/1/data", source="payer", weight_max="much", time_format="%d", go="next"
    )
    assert 'value="much"' in typed.text and 'value="%d"' in typed.text


@pytest.mark.parametrize(
    ("text", "shown", "fields"),
    [
        (
            "nodes.csv: no\nnodes.column (--data.nodes.column NAME)",
            "'Column of their ids'",
            ["column"],
        ),
        ("set kind to directed (--kind directed)", "one than from B to A' in 'Dir", ["direction"]),
        ("set undirected=True (--undirected)", "choose 'drop the directions'", ["direction"]),
        ("set kind to undirected", "choose 'undirected' in 'Direction'", ["direction"]),
        ("out: --data.nodes.policy.age drop", "'What a column is' drop", ["policy"]),
        ("data.csv: bad", "data.csv", []),
    ],
)
def test_messages_name_fields_and_files_stay_files(text, shown, fields):
    assert shown in of_fields(text) and fields_in(of_fields(text)) == fields


def test_columns_of_persons_are_left_out_until_they_are_chosen(client):
    assert at_data(client, **PERSONS).status_code == 303
    assert job(1).answers.policy == {"age": "drop", "region": "drop"}
    assert "--nodes=people.csv" in job(1).answers.words(Path("run"))
    assert not any("attributes" in word for word in job(1).answers.words(Path("run")))
    at_data(client, **PERSONS | {"policy.age": "public", "policy.none": "public"})
    assert job(1).answers.policy == {"age": "public", "region": "drop"}
    at_data(client, **AGE)
    words = job(1).answers.words(Path("run"))
    assert {
        "--attributes=people.csv",
        '--data.nodes.policy={"region": "drop"}',
        "--data.nodes.private_columns=age",
        '--data.nodes.domains={"age": [18.0, 30.0, 60.0, 90.0]}',
        "--row-epsilon=1",
    } <= {*words}


def test_noise_stands_beside_a_public_size_in_the_unit_of_the_data(client):
    at_data(client, **TIMES | PERSONS)
    page = text_of(client.get("/runs/1/plan"))
    assert "a day has" not in page and "Give a public guess of the number of rows" in page
    page = text_of(client.post("/runs/1/plan", epsilon="1", size="1810", go="show"))
    assert "transfers by day, week or four weeks 28 days have about 259 ± 188" in page
    assert "these will be noise: " in page and "1/100" not in page
    # Up to 100 euros of each of 10 transfers at a tenth of epsilon, and no cents.
    assert "sums of amounts by classes of payer and payee ± 10,000" in page


def test_data_are_read_and_marked_private(client, folder):
    client.post("/runs")
    page = text_of(client.post("/runs/1/data", **NAMED, go="read"))
    assert "Private: exact numbers" in page
    assert "Nodes 120 Relations" in page and "header 'payer', 'payee'" in page
    assert stat.S_IMODE((folder / ".studio" / "1.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / ".studio").stat().st_mode) == 0o700


def test_meaning_of_epsilon_and_errors_before_anything_is_spent(client, folder):
    at_data(client)
    page = text_of(client.get("/runs/1/plan"))
    assert "becomes at most 73 %" in page and "10 10 more than 99.99 %" in page
    assert "Noise in each number that bter releases" in page
    assert "number of edges ± 20 ± 60" in page  # Laplace noise of 0.05: 1 / sinh(0.05) is 20
    shown = text_of(client.post("/runs/1/plan", epsilon="2", go="look"))
    assert "becomes at most 88 %" in shown and "number of edges ± 9.98" in shown
    assert job(1).answers.epsilon == 1  # the script beside the slider keeps nothing
    assert "must be above 0" in client.post("/runs/1/plan", epsilon="0", go="show").text
    assert not (folder / "runs").exists()


def test_a_budget_that_does_not_suffice_names_the_smallest_one(client):
    at_data(client)
    page = client.post("/runs/1/plan", epsilon="0.0001", method="attribute_moments", go="next")
    assert page.status_code == 200 and "error:" in page.text


def test_hubs_are_a_public_fact_of_the_plan(client):
    at_data(client)
    form = {"goal": "links-beyond-degrees", "method": "", "go": "show"}
    client.post("/runs/1/plan", hubs="1", **form)
    assert job(1).answers.hubs
    assert 'name="hubs" value="1" checked' in client.get("/runs/1/plan").text
    client.post("/runs/1/plan", **form)
    assert not job(1).answers.hubs


def test_settings_of_another_method_are_left_out(client):
    at_data(client)
    form = {"goal": "shape", "settings.count_share": "0.1", "go": "show"}
    client.post("/runs/1/plan", method="", **form)
    assert job(1).answers.settings == {"count_share": "0.1"}
    words = replace(job(1).answers, method="bter").words(Path("run"))[1:]
    assert "--model.init_args.count_share=0.1" in long_form(words).words
    client.post("/runs/1/plan", method="chung_lu", **form)
    assert job(1).answers.settings == {}


def test_words_are_those_of_the_command_line(client):
    at_data(client)
    page = client.post(
        "/runs/1/plan", epsilon="0.5", method="chung_lu", goal="degrees", go="show"
    ).text
    words = "fit transfers.csv --source=payer --target=payee --undirected --epsilon=0.5 --method=chung_lu"
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


def test_a_start_registers_by_the_answers_and_makes_a_book_only_if_that_succeeds(client, started):
    at_data(client, **AGE)
    plan = {"epsilon": "0.7", "method": "", "name": "bank", "total": "1.5", "go": "next"}
    refused = client.post("/runs/1/plan", **plan | {"total_delta": "2"})
    assert "error:" in refused.text and 'name="total" value="1.5"' in refused.text
    assert not Path("budget-book.db").exists() and not started
    made = client.post("/runs/1/plan", **plan)
    assert made.status_code == 303, text_of(made)
    assert (started[0].dataset, started[0].epsilon) == ("bank", 0.7)
    page = text_of(client.get("/runs/1/plan"))
    assert "bank undirected edge 1.5 0" in page and LABELS["total"] not in page
    again = client.post("/runs/1/plan", **plan | {"dataset": "", "total": ""})
    assert "without a total" in again.text and len(started) == 1
    assert re.search('name="total"[^>]* aria-invalid', again.text)
    assert "set no second total" in client.post("/runs/1/plan", **plan | {"dataset": ""}).text
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
