"""The examples run, and notebooks are stored as they ran."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook, new_output
from torch.nn.utils import parameters_to_vector, vector_to_parameters

import lightning_dpg as dpg
from examples.running import executed, notebooks
from lightning_dpg.papers.jin2022.clients import weighted_update
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.sensitivity.fitting import client_update_sensitivity

ABSOLUTE = re.compile(r"(?<![\w.:/~])/(?:home|opt|private|root|tmp|usr|Users|var|work)/\S+")
LARGEST = 300_000  # bytes that a code host shows at once


def faults(notebook):
    """What is wrong with a stored notebook."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [cell.execution_count for cell in cells] != list(range(1, len(cells) + 1)):
        yield "not run from top to bottom"
    for cell in cells:
        if "execution" in cell.metadata:
            yield "time stamps"
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                yield "an error or a warning"
    if found := ABSOLUTE.findall(json.dumps(notebook.cells)):
        yield f"absolute paths: {found}"


def stored():
    return [pytest.param(path, id=path.stem) for path in notebooks()]


@pytest.mark.parametrize("path", stored())
def test_a_stored_notebook_is_clean_and_small(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not list(faults(notebook))
    assert path.stat().st_size < LARGEST


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"execution_count": 2}, "top to bottom"),
        ({"metadata": {"execution": {"iopub.execute_input": "2026"}}}, "time stamps"),
        ({"outputs": [new_output("error", ename="E", evalue="", traceback=[])]}, "an error"),
        ({"outputs": [new_output("stream", name="stderr", text="odd")]}, "a warning"),
        ({"outputs": [new_output("stream", text="in /home/me/x")]}, "/home/me/x"),
    ],
)
def test_faults_of_a_stored_notebook_are_found(change, expected):
    clean = {"execution_count": 1, "outputs": [new_output("stream", text="a/b </tr>")]}
    assert not list(faults(new_notebook(cells=[new_code_cell("1", **clean)])))
    (found,) = faults(new_notebook(cells=[new_code_cell("1", **clean | change)]))
    assert expected in found


def text_of(notebook, start):
    """Text that the cell with this beginning has printed or returned."""
    (cell,) = [cell for cell in notebook.cells if cell.source.startswith(start)]
    texts = [output.get("text") or output["data"]["text/plain"] for output in cell.outputs]
    return "\n".join(texts)


def publishes(notebook, folder):
    said = text_of(notebook, "!python -m lightning_dpg verify")
    assert "7 files have their checksums\nepsilon 2.0 is what the 5 reads prove" in said
    assert dpg.open_release(folder / "published").sample(0).num_nodes == 600
    assert "<title>" in (folder / "evaluation.html").read_text()


def compares(notebook, folder):
    numbers = pd.read_csv(folder / "compared" / "results.csv")
    assert numbers["note"].dropna().str.startswith("failed").sum() == 0
    assert set(zip(numbers["epsilon"], numbers["run"], strict=True)) == {
        (epsilon, run) for epsilon in (1.0, 5.0) for run in (0, 1)
    }
    assert "privgraph" in text_of(notebook, "numbers = ")


def labels(notebook, folder):
    lines = text_of(notebook, "def features_of").splitlines()[2:]
    rows = {name: [float(value) for value in values] for name, *values in map(str.split, lines)}
    # At epsilon 10 the structure tells far more than sizes, which tell nothing.
    assert rows["private_kernel"][-1] > 0.75
    assert max(rows["size_kernel"] + rows["node_kernel"]) < 0.6
    own = text_of(notebook, "from torch_geometric").splitlines()[-1].split()
    assert own[0] == "node_kernel" and float(own[-1]) > 0.95


def audits(notebook, folder):
    assert "verdict: REFUTED" in text_of(notebook, "found = ")
    told = text_of(notebook, 'first = told.values["link_stealing"]')
    release, baseline = (float(number) for number in re.findall(r"\d\.\d+", told))
    assert release > 0.95
    assert baseline < 0.6


CHECKS = dict(zip("1234", (publishes, compares, labels, audits), strict=True))


def children():
    """Processes that this one has started (Linux)."""
    files = Path("/proc/self/task").glob("*/children")
    return {number for path in files for number in path.read_text().split()}


@pytest.mark.parametrize("path", stored())
def test_a_notebook_runs(path, tmp_path):
    before = children()
    notebook = executed(path, tmp_path)
    assert children() <= before  # its kernel has ended
    assert not list(faults(notebook))
    CHECKS[path.stem[0]](notebook, tmp_path)


def test_there_is_a_check_of_each_notebook():
    assert [path.stem[0] for path in notebooks()] == sorted(CHECKS)


OVER_FLOWER = """
import math, sys, torch
from examples.federated_with_flower import train
from lightning_dpg.privacy.budget import Budget

encoder, ledger = train(Budget(math.inf, 1e-5), rounds=2, address=sys.argv[1])
steps = sum(entry.steps for entry in ledger.entries)
torch.save({"steps": steps, "encoder": encoder.state_dict()}, sys.argv[2])
"""


def test_clients_over_flower_train_the_weights_of_one_process(tmp_path):
    pytest.importorskip("flwr")
    from examples import federated_with_flower as example

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    # In a process of its own, since Flower's server takes over the signals of its process.
    command = [sys.executable, "-c", OVER_FLOWER, address, str(tmp_path / "run.pt")]
    subprocess.run(command, check=True, timeout=300)
    run = torch.load(tmp_path / "run.pt")
    clients, network = [example.client(number) for number in range(3)], example.encoder()
    start = parameters_to_vector(network.parameters()).detach()
    for _ in range(2):
        total = weighted_update(network, clients, example.TRAINING)
        weights = parameters_to_vector(network.parameters()) + total.float()
        vector_to_parameters(weights, network.parameters())
    assert run["steps"] == 2
    trained = example.encoder()
    trained.load_state_dict(run["encoder"])
    alone, apart = (parameters_to_vector(each.parameters()) for each in (network, trained))
    assert (alone - start).abs().max() > 0.01
    torch.testing.assert_close(apart, alone, rtol=1e-4, atol=1e-6)


def test_scores_of_sdmetrics_are_best_for_the_real_tables_and_fall_with_their_keys():
    pytest.importorskip("sdmetrics")
    from examples import database_with_sdmetrics as example

    schema = example.small_database()
    real, metadata = example.real_tables(schema), example.metadata_of(schema)
    assert set(real["person"]["age"]) == {
        "18 to 30",
        "30 to 45",
        "45 to 60",
        "60 to 75",
        "75 to 100",
    }
    assert set(example.scores(real, real, metadata).values()) == {1.0}
    one = real | {"owns": real["owns"].assign(account=1)}
    assert example.scores(real, one, metadata)["Cardinality"] < 0.9


def test_the_server_over_flower_adds_noise_and_pays():
    pytest.importorskip("flwr")
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters

    from examples import federated_with_flower as example

    read = LedgerEntry.proved(
        *("client_updates", "sum of client updates", Gaussian(2.0), client_update_sensitivity),
        *(1.0, 67 / 200),
        relation=Relation.LOCAL_GRAPH,
    )
    server = example.PrivateSum(read, PrivacyLedger(Relation.LOCAL_GRAPH))
    start = server.weights
    zeros = ndarrays_to_parameters([torch.zeros(len(start), dtype=torch.double).numpy()])
    answer = None, FitRes(Status(Code.OK, ""), zeros, 1, {})
    assert server.aggregate_fit(1, [answer] * 2, [ValueError("one is missing")]) == (None, {})
    assert not server.ledger.entries and server.weights is start
    server.aggregate_fit(1, [answer] * 3, [])
    assert [entry.steps for entry in server.ledger.entries] == [1]
    spread = float((server.weights - start).std())
    assert spread == pytest.approx(2.0 * 2 * 67 / 200, rel=5 / len(start) ** 0.5)
