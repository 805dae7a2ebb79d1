"""Each command line of README and docs/, in the order of its page, on data of the kind that its words promise."""

import contextlib
import io
import itertools
import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.sparse import csr_array

from lightning_dpg.main import main
from tests.test_readme import TEXTS

COMMAND = re.compile(r"^(?:\.venv/bin/)?python -m lightning_dpg (.*)$")
# Not run here: .ci/run installs, and runs the tests; a server and pages in a browser have tests of
# their own, and devices of several machines are not here.
ELSEWHERE = r"-m venv|pip install|-m pytest|^torchrun|postgresql://|lightning_dpg studio"
# Of these commands the page shows the defaults, which take long: the same lines with smaller numbers.
SHORTER = {
    "audit": {"--canaries": "4"},
    "compare": {"--runs": "1"},
    "shape": {"--methods": "erdos_renyi", "--graphs": "karate", "--epsilons": "1"},
    "dp_netgan": {"--trainer.max_epochs": "2"},
    "dp_netgan.yaml": {"--trainer.max_epochs": "1"},
    "node-classification": {"--num-seeds": "1"},
    "--num-seeds": {"--num-seeds": "1"},
}
# Runs of the reader that a page takes for granted.
BEFORE = {
    "auditing": ["fit my-graph.csv --epsilon 1 --method bter"],
    "choosing": [
        "fit --config neighbor_votes",
        "fit my-graph.npz --epsilon 1 --method attribute_encoder --attributes from_graph",
    ],
}
CLASSES = ("asthma", "diabetes", "healthy")
PAGES = [page for page, text in TEXTS.items() if "python -m lightning_dpg" in text]


def typed_lines(page):
    """Lines of a page that a user types, without comments; continued ones are one line."""
    blocks = re.findall(r"```(bash|console)\n(.*?)```", TEXTS[page], re.DOTALL)
    for kind, block in blocks:
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            typed = line.removeprefix("$ ") if kind == "console" else line
            if line.strip() and (kind == "bash" or line.startswith("$ ")):
                yield re.sub(r"\s+# .*", "", typed)


def block(page, language):
    """Text of the first block of a page in a language."""
    return re.search(rf"```{language}\n(.*?)```", TEXTS[page], re.DOTALL)[1]


def write(name, *rows, header=()):
    """Write rows of words with commas."""
    text = "".join(",".join(map(str, row)) + "\n" for row in [*([header] if header else []), *rows])
    Path(name).write_text(text, encoding="utf-8")


@pytest.fixture
def folder(page, tmp_path, monkeypatch):
    """A folder with the files that the pages name: transfers in both directions, tables of people."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    generator = np.random.default_rng(0)
    pairs = [(i, j) for i, j in generator.integers(60, size=(260, 2)).tolist() if i != j]
    pairs += [(j, i) for i, j in pairs[:50]]  # a fifth in both directions
    people = [f"C{k:03d}" for k in range(60)]
    ends = [(people[i], people[j]) for i, j in pairs]
    for name in ("my-graph.csv", "edges.csv"):
        write(name, *ends, header=("source", "target"))
    for name, letter in (("graph.txt", "G"), ("january.txt", "J"), ("staff.csv", "S")):
        write(name, *((f"{letter}{i}", f"{letter}{j}") for i, j in pairs))
    days = [f"2026-0{1 + k % 6}-{1 + k % 27:02d} {k % 24:02d}:10:00" for k in range(len(ends))]
    amounts = np.round(generator.gamma(2, 50, len(ends)), 2)
    transfers = {"payer": [a for a, _ in ends], "payee": [b for _, b in ends], "amount": amounts}
    transfers["at"] = days
    parquet.write_table(pa.table(transfers), "transfers.parquet")
    write("transfers.csv", *zip(*transfers.values(), strict=True), header=transfers)
    write("customers.txt", *((person,) for person in people))
    write("customers.csv", *((person, "retail") for person in people), header=("id", "segment"))
    kinds = zip(itertools.cycle(("north", "south", "east")), itertools.cycle(CLASSES), strict=False)
    write(
        "people.csv",
        *(
            (person, 20 + k, 900 + k, *kind)
            for k, (person, kind) in enumerate(zip(people, kinds, strict=False))
        ),
        header=("id", "age", "income", "region", "diagnosis"),
    )
    write_archive("my-graph.npz", generator)
    Path("mymethod.py").write_text(block("CONTRIBUTING", "python").rpartition("print(")[0])
    Path("my_method.yaml").write_text(block("benchmark", "yaml"))
    if page != "data":  # where a line of the page writes it
        Path("domains.yaml").write_text(block("data", "yaml"))
    for name in ("MY-TU-FOLDER", "NEW-GRAPHS"):
        write_set(Path(name), generator)
    if page == "database":
        bank = Path("bank")
        bank.mkdir()
        write(
            bank / "persons.csv",
            *((p, 20 + k, "north") for k, p in enumerate(people)),
            header=("id", "age", "region"),
        )
        write(bank / "accounts.csv", *((k,) for k in range(60)), header=("id",))
        owned = ((person, k) for k, person in enumerate(people))
        write(bank / "owns.csv", *owned, header=("person", "account"))
        paid = zip(*zip(*pairs, strict=True), amounts, days, strict=True)
        write(bank / "pays.csv", *paid, header=("payer", "payee", "amount", "at"))
    Path("release").symlink_to("runs/bter/version_0/release")  # as its reader gets it
    return tmp_path


def write_archive(path, generator):
    """Write a graph of two classes, with a word of its class at each node, as NetGAN's archives are."""
    classes = np.arange(80) % 2
    links = generator.random((80, 80)) < np.where(classes[:, None] == classes, 0.15, 0.02)
    links = np.triu(links, 1)
    words = np.stack([classes, 1 - classes, generator.integers(2, size=80)], axis=1)
    parts = {
        "adj": csr_array((links | links.T).astype(float)),
        "attr": csr_array(words.astype(float)),
    }
    arrays = {
        f"{part}_{name}": getattr(matrix, name)
        for part, matrix in parts.items()
        for name in ("data", "indices", "indptr", "shape")
    }
    np.savez(path, labels=classes, **arrays)


def write_set(folder, generator):
    """Write rings and paths of random sizes as text files of TU Dortmund."""
    folder.mkdir()
    rows, graph_of, labels, first = [], [], [], 1
    for k, size in enumerate(generator.integers(5, 9, 24).tolist()):
        ring = [(first + i, first + (i + 1) % size) for i in range(size - k % 2)]
        rows += [*ring, *((j, i) for i, j in ring)]
        graph_of += [(k + 1,)] * size
        labels.append((k % 2,))
        first += size
    for name, content in (("A", rows), ("graph_indicator", graph_of), ("graph_labels", labels)):
        write(folder / f"{folder.name}_{name}.txt", *content)


def run_line(line):
    """Run a line; what a shell adds (a file of the output, values out of such a file) is done here."""
    line = re.sub(
        r'"?\$\(jq -r \.(\w+) (\S+)\)"?', lambda m: json.loads(Path(m[2]).read_text())[m[1]], line
    )
    checkpoints = sorted(Path().glob("runs/*/*/checkpoints/*.ckpt"), key=os.path.getmtime)
    line = re.sub(r"\bCKPT\b", "".join(map(str, checkpoints[-1:])), line)
    line, _, key = line.partition(" | jq -r .")
    line, _, file = line.removesuffix(" || exit").partition(" > ")
    words = shlex.split(COMMAND.match(line)[1])
    for word, options in SHORTER.items():
        words += [each for pair in options.items() for each in pair if word in words]
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
    for line in [
        *(f"python -m lightning_dpg {each}" for each in BEFORE.get(page, ())),
        *typed_lines(page),
    ]:
        if not re.search(ELSEWHERE, line):
            run_line(line)
        if "describe-schema" in line:  # the user completes the draft
            Path("bank/schema.yaml").write_text(block(page, "yaml"))
