"""Signatures of a release, which ``ssh-keygen`` or ``minisign`` makes and checks.

The file of the checksums is signed. It has the digest of each other file of the release, so a signature
covers all of them, ``privacy.json`` and the card too. It says who signed, and not that the files agree.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.run_folder import MINISIGN_SIGNATURE, SSH_SIGNATURE, SUMS

NAMESPACE = "lightning_dpg"
"""Purpose in a signature by SSH: one of a commit or of a mail is none of a release."""
_LARGEST = 8192  # bytes
_FORMS = {
    SSH_SIGNATURE: rb"-----BEGIN SSH SIGNATURE-----\n([\w+/=]+\n)+-----END SSH SIGNATURE-----\n",
    MINISIGN_SIGNATURE: rb"untrusted comment: .*\n[\w+/=]+\ntrusted comment: .*\n[\w+/=]+\n",
}
_PUBLIC_KEY = re.compile(r"(?:ssh|ecdsa|sk)-\S+ \S+")
_TOOLS = {
    "ssh-keygen": "it is a part of OpenSSH: install openssh-client",
    "minisign": "install minisign, or use an SSH key",
}


def sign(release: Path, key: Path) -> Path:
    """Sign the checksums of a release; the tool asks for the password of the key if it has one.

    Args:
        release: Folder of the release.
        key: Private key of SSH or minisign, or public one whose private key an SSH agent holds.

    Returns:
        The file of the signature.

    Raises:
        CommandError: If there is no such key, or if the tool is not installed or does not sign.
    """
    name = _signature_by(key)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copy(release / SUMS, scratch))
        made = copy.with_name(name)
        command = ["ssh-keygen", "-Y", "sign", "-f", key, "-n", NAMESPACE, copy]
        if name == MINISIGN_SIGNATURE:
            command = ["minisign", "-S", "-s", key, "-m", copy, "-x", made]
        # What it prints goes to standard error: standard output may be one object of JSON.
        if _run(command, stdout=2).returncode:
            raise CommandError(f"{release}: {command[0]} did not sign it with {key}")
        shutil.copymode(copy, made)
        return Path(shutil.copy(made, release))


def odd_signatures(release: Path) -> Iterator[str]:
    """Find files that have the name of a signature, and are none."""
    for name, form in _FORMS.items():
        if (release / name).is_file():
            with (release / name).open("rb") as file:
                content = file.read(_LARGEST + 1)
            if len(content) > _LARGEST or re.fullmatch(form, content) is None:
                yield f"{name}: no signature"


def signer(release: Path, key: Path | None) -> list[str]:
    """Check the signature of a release, and return what the tool says of it.

    Args:
        release: Folder of the release.
        key: Public key of SSH or minisign, or file of allowed signers of SSH; None checks nothing,
            and says which signatures there are.

    Raises:
        CommandError: If there is no such key, or if the tool is not installed.
        Refusal: If the release is not signed by this key.
    """
    if key is None:
        found = [name for name in _FORMS if (release / name).is_file()]
        return [f"{name}: not checked, which --signed-by KEY does" for name in found]
    name = _signature_by(key)
    signature, sums = release / name, release / SUMS
    if not signature.is_file() or not sums.is_file():
        raise Refusal(f"{name}: missing, the release is not signed by {key}")
    if name == MINISIGN_SIGNATURE:
        done = _run(["minisign", "-V", "-p", key, "-m", sums, "-x", signature], capture_output=True)
    else:
        done = _checked_by_ssh(signature, sums, key)
    said = (done.stdout + done.stderr).strip().splitlines() or ["no answer"]
    if done.returncode:
        raise Refusal(f"{name}: no signature of {SUMS} by {key} ({' '.join(said)})")
    return [f"{name}: {said[0]}"]


def _checked_by_ssh(signature: Path, sums: Path, key: Path) -> "subprocess.CompletedProcess[str]":
    """Check a signature by those of the allowed signers who have its key."""
    lines = key.read_text(encoding="utf-8", errors="replace").splitlines()
    with tempfile.TemporaryDirectory() as scratch:
        allowed = Path(scratch) / "allowed_signers"
        named = [f"this-key {line}" if _PUBLIC_KEY.match(line) else line for line in lines]
        allowed.write_text("\n".join([*named, ""]), encoding="utf-8")
        of = ["-s", signature, "-f", allowed]
        done = _run(["ssh-keygen", "-Y", "find-principals", *of], capture_output=True)
        for name in done.stdout.splitlines() if not done.returncode else ():
            command = ["ssh-keygen", "-Y", "verify", *of, "-n", NAMESPACE, "-I", name]
            with sums.open("rb") as content:
                done = _run(command, capture_output=True, stdin=content)
            if not done.returncode:
                break
        return done


def _signature_by(key: Path) -> str:
    """Return the name of the signatures that a key makes or checks."""
    if not key.is_file():
        raise CommandError(f"{key}: no such file, and it should be a key")
    with key.open("rb") as file:
        is_minisign = file.readline().startswith(b"untrusted comment:")
    return MINISIGN_SIGNATURE if is_minisign else SSH_SIGNATURE


def _run(command: list[str | Path], **options: Any) -> "subprocess.CompletedProcess[str]":
    tool = str(command[0])
    if shutil.which(tool) is None:
        raise CommandError(f"{tool}, which signs and checks, is not installed\n{_TOOLS[tool]}")
    return subprocess.run(command, text=True, check=False, **options)
