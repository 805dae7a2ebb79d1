"""Each command line of README and docs/, in the order of its page, on data of the kind that its words promise."""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from lightning_dpg.formats.io import write_graph
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.main import main
from tests.test_readme import TEXTS

COMMAND = re.compile(r"^(?:\.venv/bin/)?python -m lightning_dpg (.*)$")
# Not run here: .ci/run installs, and runs the tests; a server and pages in a browser have tests of
# their own, and devices of several machines are not here.
ELSEWHERE = r"-m venv|pip install|-m pytest|^torchrun|postgresql://|lightning_dpg studio"
# Of these commands the page shows the defaults, which take long: the same lines with smaller numbers.
SHORTER = {
    "audit": {"--canaries": "20", "--runs": None},
    "compare": {"--runs": "1"},
    "dp_netgan": {"--trainer.max_epochs": "2"},
}
PAGES = [page for page, text in TEXTS.items() if "python -m lightning_dpg" in text]


def typed_lines(page):
    """Lines of a page that a user types, without comments; continued ones are one line."""
    blocks = re.findall(r"```(bash|console)\n(.*?)```", TEXTS[page], re.DOTALL)
    for kind, block in blocks:
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            typed = line.removeprefix("$ ") if kind == "console" else line
            if line.strip() and (kind == "bash" or line.startswith("$ ")):
                yield re.sub(r"\s+# .*", "", typed)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the pages name: transfers in both directions, tables of people."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    people = [f"C{k:03d}" for k in range(60)]
    pairs = [(i, j) for i, j in generator.integers(60, size=(260, 2)).tolist() if i != j]
    pairs += [(j, i) for i, j in pairs[:50]]  # a fifth in both directions
    ends = [(people[i], people[j]) for i, j in pairs]
    plain = "".join(f"{i} {j}\n" for i, j in pairs)
    for name in ("graph.txt", "january.txt"):
        Path(name).write_text(plain)
    Path("january.txt").write_text("".join(f"J{i} J{j}\n" for i, j in pairs[40:]))
    Path("my-graph.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in ends))
    for name in ("edges.csv", "crm.csv"):
        Path(name).write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in ends))
    days = [f"2026-0{1 + k % 6}-{1 + k % 27:02d} {k % 24:02d}:10:00" for k in range(len(ends))]
    amounts = np.round(generator.gamma(2, 50, len(ends)), 2)
    columns = {
        "payer": [a for a, _ in ends], "payee": [b for _, b in ends], "amount": amounts, "at": days,
    }  # fmt: skip
    table = pa.table(columns)
    parquet.write_table(table, "transfers.parquet")
    rows = zip(*columns.values(), strict=True)
    Path("transfers.csv").write_text(
        "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)])
    )
    Path("customers.txt").write_text("\n".join(people))
    Path("customers.csv").write_text("id,segment\n" + "".join(f"{p},retail\n" for p in people))
    regions, diagnoses = ("north", "south", "east"), ("asthma", "diabetes", "healthy")
    Path("people.csv").write_text(
        "id,age,region,income,diagnosis\n"
        + "".join(
            f"{p},{18 + k},{regions[k % 3]},{1000 + k},{diagnoses[k % 3]}\n"
            for k, p in enumerate(people)
        )
    )
    domains = re.search(r"```yaml\n# domains.yaml.*?\n(.*?)```", TEXTS["data"], re.DOTALL)
    Path("given-domains.yaml").write_text(domains[1])
    graph = make_graph(np_pairs(pairs), 60, people)
    graph.attributes = None
    write_graph(graph, Path("my-graph.npz"))
    return tmp_path


def np_pairs(pairs):
    import torch

    return torch.tensor(pairs)


def run_line(line):
    """Run a line; what a shell adds (a file of the output, values out of such a file) is done here."""
    line = re.sub(
        r'"?\$\(jq -r \.(\w+) (\S+)\)"?', lambda m: json.loads(Path(m[2]).read_text())[m[1]], line
    )
    line, _, key = line.partition(" | jq -r .")
    line, _, file = line.removesuffix(" || exit").partition(" > ")
    words = shlex.split(COMMAND.match(line)[1])
    for name, options in SHORTER.items():
        if name in words and not {*options} & {*words}:
            words += [word for pair in options.items() if pair[1] for word in pair]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = main(words)
    assert not code, line
    if file:
        Path(file).write_text(output.getvalue())
    assert not key or json.loads(output.getvalue())[key] is not None
    return output.getvalue()


@pytest.mark.parametrize("page", PAGES)
def test_the_lines_of_a_page_run_as_they_are_typed(page, folder, capsys):
    for line in typed_lines(page):
        if not re.search(ELSEWHERE, line):
            run_line(line)
