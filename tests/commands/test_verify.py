"""``verify`` names every edited, flipped, missing or additional part of a release."""

import json
import shutil
import subprocess

import pytest

from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.callbacks.checksums import write_sums
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.main import main
from lightning_dpg.methods import ChungLu, DPNetGAN
from tests.training import quiet_trainer

SMALL = {"latent_dim": 4, "generator_dim": 8, "critic_dim": 8, "embedding_dim": 8}


def fitted(folder, module, *budget):
    trainer = quiet_trainer(
        PrivacyAccountant(*budget), ReleaseWriter(1, formats=["npz"]), default_root_dir=folder
    )
    trainer.fit(module, EdgeListDataModule("karate"))
    return folder / "release"


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    trained = DPNetGAN(34, batch_size=8, num_samples=200, **SMALL)
    return {
        "pure": fitted(folder / "pure", ChungLu(34), 1.0, 0.0),
        "trained": fitted(folder / "trained", trained, 4.0, 1e-4),
        "open": fitted(folder / "open", ChungLu(34), "inf"),
    }


@pytest.fixture
def release(releases, tmp_path):
    return shutil.copytree(releases["pure"], tmp_path / "release")


def verify(release, capsys):
    capsys.readouterr()
    code = main(["verify", str(release)])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("name", ["pure", "trained", "open"])
def test_a_release_is_good_as_it_was_written(releases, name, capsys):
    release = releases[name]
    assert {path.stat().st_mode for path in release.iterdir()} == {
        (release / "privacy.json").stat().st_mode
    }
    statement = json.loads((release / "privacy.json").read_text())
    code, out = verify(release.parent, capsys)
    assert code == 0, out
    assert f"guarantee: {statement['guarantee']}" in out
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


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ["flipped", "missing", "additional"])
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
    assert set(FILES) & set(out.replace(":", " ").split()) <= {name, "privacy.json"}


def edited(release, **changes):
    path = release / "privacy.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    write_sums(release)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": 0.01}, "states epsilon 0.01, but its entries prove no less than 1"),
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


def belief(content):
    content["privacy_parameters"]["groups"][0]["belief_at_most"] = 0.5


def operator(content):
    content["administrative"]["operator"] = "Bank Y"


def assumption(content):
    content["exposure"]["unprotected_quantities"] = ["Nothing is public."]


def no_unit(content):
    del content["privacy_unit"]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (belief, "its privacy_parameters are not those of its epsilon and delta"),
        (operator, "the page of this content is not the page in the folder"),
        (assumption, "its unprotected_quantities are not its assumptions"),
        (no_unit, "its topics are incomplete (no privacy_unit)"),
    ],
)
def test_edited_topics_are_named_even_under_new_checksums(release, capsys, edit, said):
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


def test_a_release_without_checksums_is_not_verified_but_opens(release, capsys, tmp_path):
    (release / "SHA256SUMS").unlink()
    code, out = verify(release, capsys)
    assert (code, len(out.splitlines())) == (1, 2)
    assert "SHA256SUMS: missing" in out
    assert main(["generate", "--run", str(release), "--out", str(tmp_path / "drawn")]) == 0


def test_checksums_that_are_none_are_named(release, capsys):
    (release / "SHA256SUMS").write_text("nonsense\n")
    assert main(["generate", "--run", str(release)]) == 2
    code, out = verify(release, capsys)
    assert code == 1
    assert "SHA256SUMS, line 1" in out


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_folders_that_are_no_release_are_refused(fails, name):
    assert name in fails("verify", name)
