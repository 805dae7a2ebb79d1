"""Releases of earlier versions: those of 0.2 open, that of 0.1.0 and unknown ones are refused."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import save_file

import lightning_dpg as dpg
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.main import main
from lightning_dpg.release.card.topics import TOPICS
from lightning_dpg.release.checksums import write_sums
from lightning_dpg.release.recipe import RECIPE, SCHEMA_VERSION

OLDEST = Path(__file__).parent / "releases" / "0.1.0" / "erdos_renyi"


@pytest.fixture(scope="module")
def of_today(tmp_path_factory):
    return dpg.fit("karate", "chung_lu", epsilon=1.0, seed=0).save(tmp_path_factory.mktemp("run"))


@pytest.fixture
def release(of_today, tmp_path):
    return shutil.copytree(of_today, tmp_path / "release")


def rewrite(release, **changes):
    """Change the recipe of a release, which then has no checksums."""
    path = release / "generator.safetensors"
    with safe_open(path, framework="pt") as file:
        recipe = json.loads(file.metadata()[RECIPE]) | changes
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, path, metadata={RECIPE: json.dumps(recipe)})
    (release / "SHA256SUMS").unlink()


def test_a_release_of_0_2_opens_with_a_setting_that_is_gone(release):
    before = dpg.open_release(release)
    settings = {**before.method.hparams, "flower_processes": 0}
    rewrite(release, schema_version=2, hparams=settings)
    drawn = dpg.open_release(release).sample(seed=0)
    assert undirected_edges(drawn).tolist() == undirected_edges(before.sample(seed=0)).tolist()


def test_an_early_release_of_0_2_has_no_topics_and_is_verified_without(release, capsys):
    statement = json.loads((release / "privacy.json").read_text())
    statement = {name: statement[name] for name in statement if name not in TOPICS}
    statement["schema_version"] = 2
    rewrite(release, schema_version=2, privacy=statement)
    (release / "privacy.json").write_text(json.dumps(statement))
    write_sums(release)
    assert main(["card", str(release), "--operator", "Bank X"]) == 2
    assert "no card to write" in capsys.readouterr().err
    assert main(["verify", str(release), "--no-redraw"]) == 0


@pytest.mark.parametrize("command", ["generate", "card", "verify"])
def test_a_release_of_0_1_0_is_refused_by_the_way_out(command, tmp_path, capsys):
    release = str(shutil.copytree(OLDEST, tmp_path / "old"))
    arguments = {
        "generate": [release, "--out", str(tmp_path / "drawn")],
        "card": [release, "--operator", "X"],
        "verify": [release],
    }[command]
    assert main([command, *arguments]) == (1 if command == "verify" else 2)
    out, err = capsys.readouterr()
    assert "of version 0.1.0, which lightning_dpg" in out + err
    assert "fit it again, or open it with lightning_dpg 0.2" in out + err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"method": "lightning_dpg.methods.gone.Gone"},
            "no method Gone\nopen it with the version of lightning_dpg that has written it\n",
        ),
        ({"schema_version": SCHEMA_VERSION + 1}, "install a newer lightning_dpg to open it\n"),
        ({"schema_version": "2"}, "its schema_version is '2'"),
        ({"schema_version": 1}, "its schema_version is 1"),
    ],
)
def test_what_cannot_be_opened_is_refused_by_a_sentence(fails, release, changes, said):
    rewrite(release, **changes)
    message = fails("generate", "release", "--out", "drawn")
    assert "generator.safetensors: " in message
    assert said in message
