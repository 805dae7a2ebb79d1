"""Results: the archive holds the release alone, and what is private is never in it."""

import hashlib
import io
import zipfile

import pytest

from tests.apps.studio.doors import text_of


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Folder of a real run."""
    import lightning_dpg as dpg

    place = tmp_path_factory.mktemp("fitted") / "run"
    dpg.fit("les_miserables", method="erdos_renyi", epsilon=1.0, out=place)
    return place


@pytest.fixture
def run(folder, fitted):
    import shutil

    place = folder / "runs" / "mine"
    shutil.copytree(fitted, place)
    (place / "node_names.csv").write_text("0,anna\n")
    (place / "quality.html").write_text("<title>quality</title>")
    (place / "release" / "out").symlink_to(place / "node_names.csv")
    return place


def test_the_download_is_the_release_alone_and_verifies(run, client, tmp_path):
    from lightning_dpg.main import main

    (run / "release" / "out").unlink()
    answer = client.get("/result/runs/mine/release.zip")
    names = zipfile.ZipFile(io.BytesIO(answer.data)).namelist()
    assert sorted(names) == sorted(f"release/{p.name}" for p in (run / "release").iterdir())
    zipfile.ZipFile(io.BytesIO(answer.data)).extractall(tmp_path / "got")
    assert main(["verify", str(tmp_path / "got" / "release")]) == 0
    sums = (tmp_path / "got" / "release" / "SHA256SUMS").read_text().split()
    content = (tmp_path / "got" / "release" / sums[1]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == sums[0]


def test_a_link_in_a_release_is_not_followed(run, client):
    answer = client.get("/result/runs/mine/release.zip")
    assert b"anna" not in answer.data
    assert "release/out" not in zipfile.ZipFile(io.BytesIO(answer.data)).namelist()


def test_private_pages_are_marked_and_cannot_act(run, client):
    page = client.get("/result/runs/mine")
    assert "never in the download" in page.text
    for path in ("quality", "card"):
        policy = client.get(f"/result/runs/mine/{path}").headers["Content-Security-Policy"]
        assert "sandbox allow-scripts allow-downloads" in policy and "'self'" not in policy


def test_verify_and_card(run, client):
    (run / "release" / "out").unlink()
    page = text_of(client.post("/result/runs/mine/verify"))
    assert "No fault was found (exit code 0)" in page
    client.post("/result/runs/mine/card", **{"card.operator": "Bank of Utopia"})
    assert "Bank of Utopia" in (run / "release" / "MODEL_CARD.md").read_text()


def test_an_edited_release_has_faults(run, client):
    (run / "release" / "out").unlink()
    with (run / "release" / "synthetic-0.edges").open("a") as file:
        file.write("a b\n")
    page = text_of(client.post("/result/runs/mine/verify"))
    assert "(exit code 1)" in page and "synthetic-0.edges" in page


def test_a_run_without_a_guarantee_cannot_be_downloaded(run, client):
    (run / "release").rename(run / "not_private")
    assert "stays here" in client.get("/result/runs/mine").text
    assert client.get("/result/runs/mine/release.zip").status_code == 404
