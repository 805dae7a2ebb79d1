"""Releases that an officer signs with a key of their own, by the tool of the key."""

import shutil
import subprocess

import pytest

import lightning_dpg as dpg
from lightning_dpg.errors import CommandError
from lightning_dpg.main import main
from lightning_dpg.release.checksums import write_sums
from lightning_dpg.release.verify import verify


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    release = dpg.fit("karate", "chung_lu", epsilon=1.0, book="none")
    return release.save(tmp_path_factory.mktemp("signed") / "release")


@pytest.fixture
def release(original, tmp_path):
    return shutil.copytree(original, tmp_path / "release")


def ssh_keys(folder, name):
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
    subprocess.run(words, check=True)
    return folder / name, folder / f"{name}.pub"


def minisign_keys(folder, name):
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    words = ["minisign", "-G", "-W", "-p", str(public), "-s", str(private)]
    subprocess.run(words, check=True, capture_output=True)
    return private, public


@pytest.mark.parametrize(
    ("tool", "keys", "name"),
    [
        ("ssh-keygen", ssh_keys, "SHA256SUMS.sig"),
        ("minisign", minisign_keys, "SHA256SUMS.minisig"),
    ],
)
def test_a_signature_is_of_these_files_and_of_this_key(tool, keys, name, release, tmp_path):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    (private, public), (_, other) = keys(tmp_path, "ann"), keys(tmp_path, "bob")

    def faults(key):
        return verify(release, redraw=False, signed_by=key).faults

    assert faults(public)[0].startswith(f"{name}: no signature of SHA256SUMS by")  # not signed yet
    before = {path.name: path.read_bytes() for path in release.iterdir()}
    assert main(["card", str(release), "--sign", str(private)]) == 0
    after = {path.name: path.read_bytes() for path in release.iterdir()}
    assert after == before | {name: after[name]}  # the card stays as it is
    assert (
        f"{name}: not checked, which --signed-by KEY does" in verify(release, redraw=False).checks
    )
    assert not faults(public)
    assert faults(other)[0].startswith(f"{name}: no signature of SHA256SUMS by {other} (")
    copy = dpg.open_release(release).save(tmp_path / "copy")
    assert (copy / name).read_bytes() == after[name]
    # An edited release with new checksums, and one whose signature holds something else.
    sums = release / "SHA256SUMS"
    sums.write_text(sums.read_text() + f"{'0' * 64}  notes\n")
    assert len(faults(public)) > 1 and faults(public)[-1].startswith(f"{name}: no signature of")
    (copy / name).write_bytes(after[name] + b"Ann,Bob,250.00\n")
    assert verify(copy, redraw=False).faults == (f"{name}: no signature",)
    # Another text makes another card: nobody has signed it.
    shutil.copy(tmp_path / "copy" / "SHA256SUMS", sums)
    assert main(["card", str(release), "--operator", "Bank"]) == 0
    assert not (release / name).exists() and verify(release, redraw=False)


def test_allowed_signers_are_named(release, tmp_path, capsys):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    private, public = ssh_keys(tmp_path, "ann")
    allowed = tmp_path / "allowed"
    allowed.write_text(f'# ours\nann@bank namespaces="lightning_dpg" {public.read_text()}')
    assert main(["card", str(release), "--sign", str(private)]) == 0
    assert main(["verify", str(release), "--no-redraw", "--signed-by", str(allowed)]) == 0
    assert 'Good "lightning_dpg" signature for ann@bank with ED25519 key' in capsys.readouterr().out
    allowed.write_text(f'ann@bank namespaces="git" {public.read_text()}')
    assert not verify(release, redraw=False, signed_by=allowed)


def test_a_key_or_a_tool_that_is_missing_and_a_release_with_a_fault(release, tmp_path, monkeypatch):
    key = tmp_path / "key"
    with pytest.raises(CommandError, match="no such file, and it should be a key"):
        verify(release, redraw=False, signed_by=key)
    monkeypatch.setenv("PATH", "")
    for first, way in (
        ("ssh-ed25519 A", "install openssh-client"),
        ("untrusted comment: A", "SSH key"),
    ):
        key.write_text(first)
        with pytest.raises(CommandError, match=rf"not installed\n.*{way}"):
            verify(release, redraw=False, signed_by=key)
    (release / "MODEL_CARD.md").write_text("Better.")
    write_sums(release)
    assert main(["card", str(release), "--sign", str(key)]) == 2
    (release / "SHA256SUMS").unlink()
    found = verify(release, redraw=False, signed_by=key)
    assert found.faults[0] == "SHA256SUMS: missing: no file can be checked"
