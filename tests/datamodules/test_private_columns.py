"""Private columns: public domains, a place for every cell, and refusals before anything is read."""

import pandas as pd
import pytest
import torch

from lightning_dpg.datamodules import EdgeListDataModule, EdgeTableDataModule, Nodes
from lightning_dpg.datamodules.private_columns import read_domains
from lightning_dpg.errors import Refusal
from lightning_dpg.formats.conversion import NodeSet
from lightning_dpg.interfaces import HoldsPrivateColumns

EDGES = [("a", "b"), ("b", "c"), ("c", "d")]
PEOPLE = """id,age,region,score
a,17,north,1
b,200,North,2
c,30,,3
d,n/a,south,4
x,44,south,5
"""
DOMAINS = {"age": [18, 30, 45], "region": ["north", "south", "missing"]}


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def columns_of(people, nodes=("a", "b", "c", "d", "e"), **settings):
    given = {"private_columns": "age,region", "domains": DOMAINS, "names": "ids"} | settings
    data = EdgeListDataModule(EDGES, nodes=Nodes(nodes, attributes=people, **given))
    data.setup("fit")
    return data


def test_every_cell_has_a_place(people):
    data = columns_of(people)
    records = data.records
    assert isinstance(records, HoldsPrivateColumns)
    found = records.private_columns
    assert found.domains == {
        "age": ["18 to 30", "30 to 45", "other"],
        "region": ["north", "south", "missing", "other"],
    }
    # 17 and 200 count in the outer bins, North is none of the categories, and e has no row.
    assert found.values.tolist() == [[0, 0], [1, 3], [1, 2], [2, 1], [2, 2]]
    assert records.attribute_names == ["score"]
    assert "private columns: age, region" in data.summary


def test_rows_follow_their_nodes_where_these_become_numbers(people):
    kept = columns_of(people).records
    data = columns_of(people, names="auto")
    numbered = data.records
    assert numbered.node_names == ["0", "1", "2", "3", "4"]
    order = torch.tensor([kept.node_names.index(name) for name in data.graph.node_names])
    assert numbered.private_columns.values.tolist() == kept.private_columns.values[order].tolist()
    assert not Nodes(attributes=people).are_numbered(NodeSet.LIST)


def test_a_domain_is_read_from_a_file(people, tmp_path):
    file = tmp_path / "domains.yaml"
    file.write_text("age: [18, 30, 45]\nregion: [north, south, missing]\n")
    given = columns_of(people, domains=str(file)).records.private_columns
    assert given.domains == columns_of(people).records.private_columns.domains


def test_all_columns_may_be_private(people):
    domains = DOMAINS | {"score": [0.5, 2.5, 5.5]}
    records = columns_of(people, private_columns=list(domains), domains=domains).records
    assert records.private_columns.values[:, 2].tolist() == [0, 0, 1, 1, 2]
    assert not any("attributes" in line for line in records.assumptions)


def test_nothing_that_is_shown_depends_on_private_cells(people, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("id,age,region,score\na,x,7,1\nb,,,2\nc,-1e9,south,3\nd,44,,4\nx,,,5\n")
    shown = []
    for path in (people, other):
        data = columns_of(path)
        columns = data.records.private_columns
        shown.append((data.summary, data.assumptions, data.notes, columns.domains))
    assert shown[0] == shown[1]


def test_one_cell_changes_the_place_of_no_other_one():
    """Values of a DataFrame are of one type: 7 becomes 7.0 if another cell is missing."""
    domain = {"code": ["7", "8"]}
    for codes in ([7, 8, 7], [7, None, 7], ["7", "x", "7"], [7.0, 8.5, 7.0]):
        table = pd.DataFrame({"id": ["a", "b", "c"], "code": codes})
        nodes = Nodes(attributes=table, private_columns=["code"], domains=domain)
        data = EdgeListDataModule([("a", "b"), ("b", "c")], nodes=Nodes(**vars_of(nodes, "ids")))
        data.setup("fit")
        assert data.records.private_columns.values[[0, 2], 0].tolist() == [0, 0]


def vars_of(nodes, names):
    return {
        "attributes": nodes.attributes,
        "private_columns": nodes.private_columns,
        "domains": nodes.domains,
        "names": names,
    }


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"domains": None}, "no values of the private column 'age'"),
        ({"domains": {"age": [18, 30]}}, "no values of the private column 'region'"),
        ({"domains": DOMAINS | {"job": ["a"]}}, "'job' is no private column"),
        ({"domains": DOMAINS | {"age": []}}, r"age: '\[\]' is no list"),
        ({"domains": DOMAINS | {"age": "18,30"}}, "age: '18,30' is no list"),
        ({"domains": DOMAINS | {"age": [30, 18]}}, "two or more ascending"),
        ({"domains": DOMAINS | {"age": [18]}}, "two or more ascending"),
        ({"domains": DOMAINS | {"age": [0, 1, 2]}}, "write categories as texts"),
        ({"domains": DOMAINS | {"age": [18, "old"]}}, "18 is neither a number among"),
        ({"domains": DOMAINS | {"region": ["north", None]}}, "None is neither a number"),
        ({"domains": DOMAINS | {"region": ["north", "north"]}}, "'north' is there twice"),
        ({"domains": DOMAINS | {"region": ["north", "NaN"]}}, "call it missing"),
        ({"domains": DOMAINS | {"age": list(range(0, 200, 3))}}, "67 values with 'other'"),
        ({"domains": ["age"]}, "expected the values of each private column by its name"),
        ({"domains": "no.yaml"}, "no.yaml: No such file"),
        ({"policy": {"age": "drop"}}, "age has the policy 'drop'"),
    ],
)
def test_wrong_domains_are_refused_before_anything_is_read(settings, said):
    given = {"private_columns": "age,region", "domains": DOMAINS} | settings
    with pytest.raises(Refusal, match=said) as refusal:
        Nodes(attributes="there is no such table.csv", **given)
    assert len(str(refusal.value).splitlines()) <= 5


def test_a_column_that_is_not_there_is_refused(people):
    with pytest.raises(Refusal, match=r"has no column 'job'\nits columns are age, region"):
        columns_of(people, private_columns="job", domains={"job": ["a", "b"]})


def test_forty_categories_fit_a_domain():
    names = [f"town {number}" for number in range(40)]
    assert read_domains({"town": names}, ["town"])["town"].values == [*names, "other"]


def test_the_budget_book_sees_private_cells(people, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(PEOPLE.replace("200", "201"))
    shuffled = tmp_path / "shuffled.csv"
    header, *rows = PEOPLE.splitlines()
    shuffled.write_text("\n".join([header, *reversed(rows)]))
    frame = pd.read_csv(people)  # whose ages are floats, because one is missing
    found = [columns_of(given).identity().rows for given in (people, other, shuffled, frame)]
    assert found[0] != found[1]
    assert found[0] == found[2] == found[3]


def test_a_database_serves_the_same_rows(people, tmp_path):
    pytest.importorskip("ibis", reason="no ibis: install the extra 'tables'")
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "crm.duckdb")) as connection:
        connection.execute("CREATE TABLE calls (source TEXT, target TEXT)")
        connection.executemany("INSERT INTO calls VALUES (?, ?)", EDGES)
        rows = f"read_csv('{people}', header = true, all_varchar = true)"
        connection.execute(f"CREATE TABLE people AS SELECT * FROM {rows}")
    kept = columns_of(people)
    nodes = {"private_columns": "age,region", "domains": DOMAINS, "names": "ids"}
    ids = ["a", "b", "c", "d", "e"]
    data = EdgeTableDataModule(
        f"duckdb:///{tmp_path}/crm.duckdb",
        table="calls",
        undirected=True,
        nodes=Nodes(ids, attributes="people(id)", **nodes),
    )
    data.setup("fit")
    assert torch.equal(data.records.private_columns.values, kept.records.private_columns.values)
    assert data.identity().rows == kept.identity().rows
