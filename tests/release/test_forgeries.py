"""Releases that were edited on purpose, with new checksums: ``verify`` names what was put into them."""

import json
import os
import shutil

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import save_file

from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.formats.io import write_graph
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.main import main
from lightning_dpg.methods import ChungLu
from lightning_dpg.release.checksums import write_sums
from lightning_dpg.release.verify import verify
from lightning_dpg.release.writer import write_card
from tests.standalone import standalone
from tests.training import quiet_trainer


def fitted(folder, name="karate"):
    data = EdgeListDataModule(name)
    trainer = quiet_trainer(PrivacyAccountant(1.0, 0.0), ReleaseWriter(2), default_root_dir=folder)
    trainer.fit(ChungLu(34), data)
    return folder / "release", data


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    release, data = fitted(folder / "one")
    return release, data.graph, fitted(folder / "two")[0]


@pytest.fixture
def release(originals, tmp_path):
    return shutil.copytree(originals[0], tmp_path / "release")


def real(*suffixes, seed=0):
    def forge(release, graph, other):
        for suffix in suffixes:
            write_graph(graph, release / f"synthetic-{seed}.{suffix}")

    return forge


def copied(*names):
    def forge(release, graph, other):
        for name in names:
            shutil.copy(other / name, release / name)

    return forge


def edited(name, change):
    def forge(release, graph, other):
        path = release / name
        path.write_bytes(change(path.read_bytes()))

    return forge


def one_edge_changed(content):
    first, *rest = content.splitlines(keepends=True)
    return b"".join([*rest, b"1\t2\n" if first != b"1\t2\n" else b"1\t3\n"])


def extra_array(release, graph, other):
    path = release / "synthetic-0.npz"
    arrays = dict(np.load(path, allow_pickle=False))
    np.savez_compressed(path, **arrays, truth=space_of(graph).edges(graph).numpy())


def extra_tensor(release, graph, other):
    path = release / "generator.safetensors"
    with safe_open(path, framework="pt") as file:
        tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    save_file(tensors | {"truth": space_of(graph).edges(graph)}, path, metadata)


def added(name):
    def forge(release, graph, other):
        (release / name).parent.mkdir(exist_ok=True)
        (release / name).write_text("1,2,250.00\n", encoding="utf-8")

    return forge


def link(release, graph, other):
    os.replace(release / "privacy.json", release.parent / "statement.json")
    (release / "privacy.json").symlink_to(release.parent / "statement.json")


def said(edit):
    """A text of the card that no writer makes, with the cards that follow from it."""

    def forge(release, graph, other):
        content = json.loads((release / "privacy.json").read_text(encoding="utf-8"))
        edit(content)
        write_card(content, release)

    return forge


def removed(name):
    return lambda release, graph, other: (release / name).unlink()


FORGERIES = {
    "the real graph": (real("edges", "graphml", "npz"), "synthetic-0.edges: not what its tensors"),
    "the real graph in one format": (real("graphml"), "synthetic-0.graphml: not what its tensors"),
    "a lower epsilon": (said(lambda content: content.update(epsilon=0.1)), "prove no less than 1"),
    "the real graph as a third": (real("edges", seed=2), "synthetic-2.edges: not what"),
    "another release's graph": (
        copied("synthetic-0.edges", "synthetic-0.graphml", "synthetic-0.npz"),
        "synthetic-0.edges: not what its tensors",
    ),
    "another release's tensors": (
        copied("generator.safetensors"),
        "not that of privacy.json|not what",
    ),
    "another release's statement": (
        copied("privacy.json", "MODEL_CARD.md", "MODEL_CARD.html"),
        None,  # two fits of one configuration state the same, and are equal but for their draws
    ),
    "one edge": (edited("synthetic-0.edges", one_edge_changed), "synthetic-0.edges: not what"),
    "an attribute of GraphML": (
        edited("synthetic-0.graphml", lambda text: text.replace(b"</graph>", b"<data/></graph>")),
        "synthetic-0.graphml: not what",
    ),
    "an array": (extra_array, "synthetic-0.npz: not what"),
    "bytes after the end": (edited("synthetic-0.npz", lambda data: data + b"1 2"), "npz: not what"),
    "a tensor": (extra_tensor, "has a foreign tensor truth"),
    "a further file": (added("notes.csv"), "notes.csv: no file of a release"),
    "transfers that nobody drew": (
        added("transfers-0.csv"),
        "transfers-0.csv: its tensors draw no",
    ),
    "a subfolder": (added("data/transfers-0.csv"), "data: no plain file"),
    "a look-alike": (added("synthetic-\u0661.edges"), "no file of a release"),
    "a link": (link, "privacy.json: no plain file"),
    "an unlisted meaning": (
        said(lambda content: content["privacy_parameters"]["meaning"].append("Nobody is found.")),
        "its privacy_parameters.meaning is not what",
    ),
    "an unlisted limit": (
        said(lambda content: content["limitations"].update(known=["None."])),
        "its limitations.known is not what",
    ),
    "a further topic": (
        said(lambda content: content["exposure"].update(note="1-2 is real")),
        "its exposure.note is not what",
    ),
    "another setting": (
        said(lambda content: content["administrative"]["settings"].update(num_nodes=35)),
        "its settings are not those of its tensors",
    ),
    "other unit": (
        said(lambda content: content["privacy_unit"].update(unit="one person")),
        "its privacy_unit.unit is not what",
    ),
    "a file is missing": (removed("synthetic-0.npz"), "synthetic-0.npz: missing"),
}


SEEN_ALONE = {
    "a lower epsilon": "its guarantee does not say '(0.1, 0)-DP'",
    "a further file": "notes.csv: no file of a release",
    "a subfolder": "data: no plain file",
    "a look-alike": "no file of a release",
    "a link": "privacy.json: no plain file",
    "another setting": "its settings are not those of the card",
}
"""What the verifier in ``docs/`` says. It draws nothing, has no plan of a method and no text of the card."""


@pytest.mark.parametrize("name", FORGERIES)
def test_what_was_put_into_a_release_is_named(originals, release, name):
    forge, fault = FORGERIES[name]
    forge(release, *originals[1:])
    write_sums(release)
    found, alone = verify(release), standalone(release)
    assert bool(alone) is (name in SEEN_ALONE)
    assert all(SEEN_ALONE[name] in line for line in alone[:1])
    if fault is None:
        assert found.ok
        return
    assert not found
    assert any(part in line for line in found.faults for part in fault.split("|"))


def test_owners_may_give_texts_and_the_card_of_another_day(release):
    def edit(content):
        content["administrative"].update(operator="A bank", card_date="2030-01-01")
        content["data"]["description"] = "accounts of one region"
        content["evaluation"]["audit"] = "none"

    said(edit)(release, None, None)
    assert verify(release).ok


def test_without_a_redraw_it_is_said_that_graphs_were_not_compared(originals, release, capsys):
    real("edges", "graphml", "npz")(release, originals[1], None)
    write_sums(release)
    assert verify(release, redraw=False).ok
    assert main(["verify", str(release), "--no-redraw"]) == 0
    assert "its graphs were not drawn again" in capsys.readouterr().out
    assert main(["verify", str(release)]) == 1


def test_another_version_is_named_where_draws_differ(originals, release):
    real("edges")(release, originals[1], None)
    said(lambda content: content["administrative"]["drawn_with"].update(numpy="1.0"))(release, 0, 0)
    (fault,) = verify(release).faults
    assert f"it was drawn with numpy 1.0 (here {np.__version__})" in fault
    said(lambda content: content["administrative"].pop("drawn_with"))(release, 0, 0)
    (fault,) = verify(release).faults
    assert "does not say with which versions" in fault


class MyDegrees(ChungLu):
    """A user's own method."""


def test_draws_of_a_method_of_the_users_own_are_compared_where_it_may_run(originals, tmp_path):
    trainer = quiet_trainer(
        PrivacyAccountant(1.0, 0.0), ReleaseWriter(1), default_root_dir=tmp_path
    )
    trainer.fit(MyDegrees(34), EdgeListDataModule("karate"))
    release = tmp_path / "release"
    assert "were not drawn again, since its method" in str(verify(release))
    assert "are what its tensors draw" in str(verify(release, method_class=MyDegrees))
    real("edges")(release, originals[1], None)
    write_sums(release)
    assert verify(release).ok
    assert "synthetic-0.edges: not what" in verify(release, method_class=MyDegrees).faults[0]


@pytest.mark.parametrize(
    ("config", "name"),
    [("transfers", "transfers-0.csv"), ("attributed", "people-0.csv")],
)
def test_real_tables_in_place_of_drawn_ones_are_named(config, name, tmp_path):
    assert main(["fit", "--config", f"{config}.yaml", "--out", str(tmp_path / "run")]) == 0
    release = tmp_path / "run" / "release"
    assert verify(release).ok
    lines = (release / name).read_text(encoding="utf-8").splitlines(keepends=True)
    # Rows of the owner's have the columns of drawn ones.
    (release / name).write_text("".join([lines[0], *lines[:1:-1]]), encoding="utf-8")
    write_sums(release)
    assert f"{name}: not what its tensors draw" in verify(release).faults[0]
