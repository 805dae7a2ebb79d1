"""``verify`` names every edited, flipped, missing or additional part of a release."""

import json
import shutil
import subprocess
import sys

import opacus
import pytest
from opacus.accountants import RDPAccountant
from pytorch_lightning import Callback
from safetensors import safe_open
from safetensors.torch import save_file

import lightning_dpg
from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.main import main
from lightning_dpg.methods import HRG, ChungLu, DPNetGAN
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.second_opinion import second_opinion
from lightning_dpg.release import agreement
from lightning_dpg.release.card.topics import parameters_of, statement_of
from lightning_dpg.release.checksums import write_sums
from lightning_dpg.release.recipe import RECIPE
from lightning_dpg.release.statement import entries_of
from lightning_dpg.release.writer import write_card
from tests.apps.book.small_book import small_book
from tests.standalone import standalone
from tests.training import quiet_trainer

SMALL = {"latent_dim": 4, "generator_dim": 8, "critic_dim": 8, "embedding_dim": 8}


class MyDegrees(ChungLu):
    """A user's own method."""


class Stop(Callback):
    """Ends a training after its third step."""

    def on_train_batch_end(self, trainer, *args):
        trainer.should_stop = trainer.global_step >= 3


def fitted(folder, module, *budget, extra=()):
    trainer = quiet_trainer(
        PrivacyAccountant(*budget),
        ReleaseWriter(1, formats=["npz"]),
        *extra,
        default_root_dir=folder,
    )
    trainer.fit(module, EdgeListDataModule("karate"))
    (release,) = (folder / name for name in ("release", "not_private") if (folder / name).is_dir())
    return release


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    trained = DPNetGAN(34, batch_size=8, num_samples=200, **SMALL)
    return {
        "pure": fitted(folder / "pure", ChungLu(34), 1.0, 0.0),
        "trained": fitted(folder / "trained", trained, 4.0, 1e-4),
        "open": fitted(folder / "open", ChungLu(34), "inf"),
        "conditional": fitted(folder / "conditional", HRG(34, steps_per_node=100), 1.0, 0.0),
        "own": fitted(folder / "own", MyDegrees(34), 1.0, 0.0),
        # Its counts took shares of a budget that the statement no longer names.
        "stopped": fitted(
            folder / "stopped",
            DPNetGAN(34, batch_size=8, num_samples=200, degree_share=0.3, **SMALL),
            *(4.0, 1e-4),
            extra=[Stop()],
        ),
    }


@pytest.fixture
def release(releases, tmp_path):
    return shutil.copytree(releases["pure"], tmp_path / "release")


def verify(release, capsys):
    capsys.readouterr()
    code = main(["verify", str(release)])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("name", ["pure", "trained", "open", "conditional", "own", "stopped"])
def test_a_release_is_good_as_it_was_written(releases, name, capsys):
    release = releases[name]
    assert {path.stat().st_mode for path in release.iterdir()} == {
        (release / "privacy.json").stat().st_mode
    }
    statement = json.loads((release / "privacy.json").read_text())
    code, out = verify(release.parent, capsys)
    assert code == 0, out
    assert f"guarantee: {statement['guarantee']}" in out
    assert not standalone(release)
    # As the tool that everybody has sees it.
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    done = subprocess.run(command, cwd=release, capture_output=True, text=True, check=True)
    assert sorted(line.partition(":")[0] for line in done.stdout.splitlines()) == sorted(
        path.name for path in release.iterdir() if path.name != "SHA256SUMS"
    )


FILES = [
    "MODEL_CARD.html",
    "MODEL_CARD.md",
    "generator.safetensors",
    "privacy.json",
    "synthetic-0.npz",
]


@pytest.mark.parametrize(
    ("change", "name"),
    [*(("flipped", name) for name in FILES), ("missing", FILES[2]), ("additional", FILES[3])],
)
def test_changed_files_are_named(release, capsys, name, change):
    path = release / name
    if change == "flipped":
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif change == "missing":
        path.unlink()
    else:
        shutil.copy(path, release / f"more-{name}")
        name = f"more-{name}"
    code, out = verify(release, capsys)
    assert code == 1
    assert name in out
    # The tensors hold the statement too, and may say another one then.
    named = {name, "privacy.json", *(["generator.safetensors"] if name == "privacy.json" else [])}
    assert set(FILES) & set(out.replace(":", " ").split()) <= named


def test_what_draws_nothing_imports_no_torch(releases, tmp_path):
    book = f"sqlite:///{tmp_path}/book.db"
    small_book(book)
    release = str(shutil.copytree(releases["trained"], tmp_path / "release"))
    asked = [
        ["list"],
        ["plan", "--goal", "links", "--epsilon", "1", "--num-nodes", "34"],
        [
            "plan",
            "--epsilon",
            "2",
            "--delta",
            "1e-6",
            "--sample-rate",
            ".05",
            "--steps",
            "9",
            "--row-epsilon",
            "1",
        ],
        ["budget", "show", "crm", "--book", book],
        ["budget", "html", "crm", "--book", book, "--out", f"{tmp_path}/page.html"],
        ["verify", release, "--no-redraw"],
        ["card", release, "--operator", "A bank"],
        ["verify", release, "--no-redraw"],
    ]
    code = (
        "import sys; from lightning_dpg.main import main\n"
        "slow = {'torch', 'pytorch_lightning', 'opacus'}\n"
        "found = [(main(args), slow & {*sys.modules}) for args in eval(sys.argv[1])]\n"
        "print(found, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, repr(asked)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert eval(done.stderr.splitlines()[-1]) == [(0, set())] * len(asked)


def edited(release, **changes):
    path = release / "privacy.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    write_sums(release)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": 0.1}, "states epsilon 0.1, but its entries prove no less than 1"),
        ({"epsilon": 2.0}, "states epsilon 2, but its entries prove 1"),
        ({"guarantee": "edge-level (0.1, 0)-DP"}, "(1, 0)-DP"),
        ({"assumptions": ["The moon is public."]}, "The moon is public."),
        ({"entries": []}, "prove no less than inf"),
        ({"entries": [{"name": "x"}]}, "no privacy statement"),
        ({"relation": "friendship"}, "no privacy statement"),
        ({"method": "BTER"}, "its method is"),
    ],
)
def test_edited_statements_are_named_even_under_new_checksums(release, capsys, changes, said):
    edited(release, **changes)
    code, out = verify(release, capsys)
    assert code == 1
    assert said in out
    assert "generator.safetensors" in out or "no privacy statement" in out
    assert standalone(release)


def belief(content):
    content["privacy_parameters"]["groups"][0]["belief_at_most"] = 0.5


def operator(content):
    content["administrative"]["operator"] = "Bank Y"


def assumption(content):
    content["exposure"]["unprotected_quantities"] = ["Nothing is public."]


def opinion(content):
    content["accounting"]["second_opinion"]["rdp"] = 0.5


def no_unit(content):
    del content["privacy_unit"]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (belief, "its privacy_parameters are not those of its epsilon and delta"),
        (opinion, "it says 0.5 (RDP), "),
        (operator, "the page of this content is not the page in the folder"),
        (assumption, "its unprotected_quantities are not its assumptions"),
        (no_unit, "its topics are incomplete (no privacy_unit)"),
    ],
)
def test_edited_topics_are_named_even_under_new_checksums(releases, release, capsys, edit, said):
    if edit is opinion:
        shutil.copytree(releases["trained"], release, dirs_exist_ok=True)
    path = release / "privacy.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    write_sums(release)
    code, out = verify(release, capsys)
    assert code == 1
    assert f"privacy.json: {said}" in out
    assert "generator.safetensors" not in out


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("guarantee", None),
        ("guarantee", []),
        ("assumptions", [None]),
        ("delta", "-inf"),
        ("delta", 10**400),
        ("epsilon", 10**400),
        ("epsilon", -1000),
        ("entries", {}),
    ],
    ids=map(str, range(8)),
)
def test_values_of_wrong_types_are_faults_and_no_errors(release, capsys, field, value):
    edited(release, **{field: value})
    code, out = verify(release, capsys)
    assert code == 1
    assert "privacy.json: " in out


@pytest.mark.parametrize("name", ["MODEL_CARD.md", "MODEL_CARD.html"])
def test_an_edited_or_missing_card_is_named_even_under_new_checksums(release, capsys, name):
    path = release / name
    path.write_text(path.read_text().replace("73.2", "50.1"))
    write_sums(release)
    code, out = verify(release, capsys)
    assert code == 1
    assert "of this content is not the" in out
    path.unlink()
    write_sums(release)
    assert f"{name}: missing" in verify(release, capsys)[1]


def test_a_card_of_another_version_is_compared_by_its_guarantee(release, capsys):
    path = release / "privacy.json"
    path.write_text(path.read_text().replace('"card_lightning_dpg": "', '"card_lightning_dpg": "1'))
    write_sums(release)
    code, out = verify(release, capsys)
    assert code == 0
    assert "only guarantee and assumptions were compared" in out


def test_a_statement_of_a_later_version_is_not_judged(release, capsys):
    edited(release, schema_version=99)
    code, out = verify(release, capsys)
    assert code == 1
    assert "install a newer lightning_dpg" in out
    assert "1 fault" in out


def test_a_cheaper_entry_is_found_by_the_other_copy(release, capsys):
    entries = json.loads((release / "privacy.json").read_text())["entries"]
    edited(release, epsilon=0.3, entries=entries[:2], guarantee="edge-level (0.3, 0)-DP")
    code, out = verify(release, capsys)
    assert code == 1
    assert "MODEL_CARD.md: its guarantee" in out
    assert "generator.safetensors: its privacy statement" in out
    assert "states epsilon" not in out  # 0.3 is what these two cost


def forged(source, release, edit):
    """A release whose statement was edited in all of its places, with new card and checksums."""
    shutil.copytree(source, release)
    content = json.loads((release / "privacy.json").read_text())
    edit(content)
    content["exposure"]["unprotected_quantities"] = content["assumptions"]
    content["privacy_parameters"] |= parameters_of(content)
    with safe_open(release / "generator.safetensors", "pt") as file:
        recipe = json.loads(file.metadata()[RECIPE])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    recipe["privacy"] = statement_of(content)
    metadata = {RECIPE: json.dumps(recipe)}
    save_file(tensors, release / "generator.safetensors", metadata=metadata)
    write_card(content, release)
    return release


def without_condition(content):
    said = content.pop("condition")
    content["conditional"] = False
    content["guarantee"] = content["guarantee"].replace(f" if {said}", "")


def with_another_condition(content):
    said = content["condition"]
    content["condition"] = "the moon is full"
    content["guarantee"] = content["guarantee"].replace(said, "the moon is full")


def restated(content, epsilon):
    before = f"({content['epsilon']:.15g}, "
    content["epsilon"] = epsilon
    content["guarantee"] = content["guarantee"].replace(before, f"({epsilon:.15g}, ")


def with_another_relation(content):
    content["relation"] = "node"
    for entry in content["entries"]:
        entry["relation"] = "node"


def without_a_read(content):
    gone = content["entries"].pop()
    content["mechanisms"]["reads"].pop()
    restated(content, round(content["epsilon"] - gone["epsilon"], 4))


def with_a_cheaper_read(content):
    content["entries"][-1]["epsilon"] -= 0.5
    restated(content, round(content["epsilon"] - 0.5, 4))


def with_another_key(content):
    content["entries"][0]["key"] = "moons"


def with_other_noise(content):
    content["entries"][0]["mechanism"] = "approximate"
    content["entries"][0]["delta"] = 1e-9


def with_more_steps(content):
    content["entries"][-1]["steps"] *= 40


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [
        ("conditional", without_condition, "it lacks the condition of HRG"),
        ("conditional", with_another_condition, "its condition is not that of HRG"),
        ("pure", with_another_relation, "its relation is node, and that of ChungLu with these"),
        ("pure", without_a_read, "it lacks the read 'degrees' that ChungLu with these settings"),
        ("pure", with_a_cheaper_read, "its read 'degrees' costs less than ChungLu plans"),
        ("pure", with_another_key, "it has a read 'moons' that ChungLu with these settings"),
        ("trained", with_other_noise, "its read 'num_edges' is of another kind than DPNetGAN"),
        ("trained", with_more_steps, "but by opacus"),
    ],
)
def test_what_the_class_of_the_method_does_not_say_is_named(
    releases, tmp_path, capsys, name, edit, said
):
    code, out = verify(forged(releases[name], tmp_path / "forged", edit), capsys)
    assert code == 1
    assert f"privacy.json: {said}" in out or f", {said}" in out
    assert "generator.safetensors" not in out


def test_an_epsilon_below_the_lower_bound_of_opacus_is_refused(
    releases, tmp_path, capsys, monkeypatch
):
    release = forged(releases["trained"], tmp_path / "forged", lambda each: restated(each, 2.5))
    # As if our own accountant were wrong, and agreed.
    monkeypatch.setattr(
        agreement, "_proved", lambda statement: {Relation.EDGE: statement["epsilon"]}
    )
    code, out = verify(release, capsys)
    assert code == 1
    assert "states epsilon 2.5, but by opacus" in out
    assert "stated is 2.5" in standalone(release)[0]


def test_card_and_verify_say_what_opacus_computes(releases, capsys):
    content = json.loads((releases["trained"] / "privacy.json").read_text())
    found = second_opinion(entries_of(content), content["delta"])
    by_opacus = RDPAccountant()  # without the read of pure epsilon, which it does not know
    by_opacus.history = [
        (entry["noise_multiplier"], entry["sample_rate"], entry["steps"])
        for entry in content["entries"]
        if entry["mechanism"] == "gaussian"
    ]
    assert by_opacus.get_epsilon(delta=content["delta"]) < found.rdp
    assert content["accounting"]["second_opinion"]["rdp"] == found.rdp
    assert f"epsilon is {found}." in (releases["trained"] / "MODEL_CARD.md").read_text()
    assert (
        f"epsilon by opacus {opacus.__version__}: {found}" in verify(releases["trained"], capsys)[1]
    )
    assert "opacus" not in verify(releases["pure"], capsys)[1]
    assert "opacus" not in (releases["pure"] / "MODEL_CARD.md").read_text()


def test_a_method_that_is_not_shipped_is_named_first(releases, tmp_path, capsys):
    release = releases["own"]
    code, out = verify(release, capsys)
    assert code == 0
    assert out.startswith(
        "tests.run.commands.test_verify.MyDegrees: Nobody but its author has proved"
    )
    lines = (release / "MODEL_CARD.md").read_text().splitlines()
    assert lines[2].startswith("**WARNING: Nobody but its author has proved this method.")
    page = (release / "MODEL_CARD.html").read_text()
    assert '<p class="guarantee none"><strong>Warning: Nobody but its author' in page
    assert json.loads((release / "privacy.json").read_text())["administrative"]["shipped"] is False
    for kind in ("pure", "open"):
        assert "Nobody but its author" not in (releases[kind] / "MODEL_CARD.md").read_text()

    def claims(content):
        content["administrative"]["shipped"] = True

    code, out = verify(forged(release, tmp_path / "forged", claims), capsys)
    assert code == 1
    assert "it is wrong on whether the method is one of lightning_dpg" in out


def test_files_without_a_guarantee_are_in_no_folder_named_release(releases, tmp_path, capsys):
    folder = releases["open"]
    assert folder.name == "not_private"
    assert not (folder.parent / "release").exists()
    code, out = verify(folder.parent, capsys)
    assert code == 0
    assert out.startswith("NOT PRIVATE: ")
    assert main(["generate", str(folder.parent), "--out", str(tmp_path / "drawn")]) == 0
    assert f"{folder}: NOT PRIVATE: " in capsys.readouterr().err
    opened = lightning_dpg.open_release(folder.parent)
    capsys.readouterr()
    opened.save(tmp_path / "saved")
    assert f"{tmp_path / 'saved'}: NOT PRIVATE: " in capsys.readouterr().err


def test_a_run_takes_the_place_of_the_other_kind_in_its_folder(tmp_path):
    for budget, name in (((1.0, 0.0), "release"), (("inf",), "not_private")):
        fitted(tmp_path, ChungLu(34), *budget)
        assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_stands_for_its_folder(release, capsys):
    assert verify(release / "privacy.json", capsys) == verify(release, capsys)


def test_a_release_without_checksums_is_not_verified_but_opens(release, capsys, tmp_path):
    (release / "SHA256SUMS").unlink()
    code, out = verify(release, capsys)
    assert (code, len(out.splitlines())) == (1, 2)
    assert "SHA256SUMS: missing" in out
    assert main(["generate", str(release), "--out", str(tmp_path / "drawn")]) == 0


def test_checksums_that_are_none_are_named(release, capsys):
    (release / "SHA256SUMS").write_text("nonsense\n")
    assert main(["generate", str(release)]) == 2
    code, out = verify(release, capsys)
    assert code == 1
    assert "SHA256SUMS, line 1" in out


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_folders_that_are_no_release_are_refused(fails, name):
    assert name in fails("verify", name)
