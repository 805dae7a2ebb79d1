"""Signatures of a release, which ``ssh-keygen`` or ``minisign`` makes and checks.

The file of the checksums is signed. It has the digest of each other file of the release, so a signature
covers all of them, ``privacy.json`` and the card too. It says who signed, and not that the files agree.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from lightning_dpg.errors import CommandError
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


def signatures(release: Path, key: Path | None) -> tuple[list[str], list[str]]:
    """Check the signatures of a release.

    Args:
        release: Folder of the release.
        key: Public key of SSH or minisign, or file of allowed signers of SSH, whose signature the
            release must have.

    Returns:
        What is wrong, and what was found to be right or was not checked, in lines.

    Raises:
        CommandError: If there is no such key, or if its tool is not installed.
    """
    wanted, faults, checks = None if key is None else _signature_by(key), list[str](), list[str]()
    for name, form in _FORMS.items():
        path = release / name
        content = path.read_bytes() if path.is_file() else b""
        # Without checksums, which are named as missing, there is nothing that a key could have signed.
        if key is not None and name == wanted and (release / SUMS).is_file():
            done = _checked(path, release / SUMS, key)
            said = ", ".join((done.stdout + done.stderr).split("\n")).strip(", ")
            if done.returncode:
                faults.append(f"{name}: no signature of {SUMS} by {key} ({said})")
            else:
                checks.append(f"{name}: {said}")
        elif content:
            checks.append(f"{name}: not checked, which --signed-by KEY does")
        if content and (len(content) > _LARGEST or re.fullmatch(form, content) is None):
            faults.append(f"{name}: no signature")
    return faults, checks


def _checked(signature: Path, sums: Path, key: Path) -> CompletedProcess[str]:
    """Check a signature by its tool; of allowed signers, by the first one who has its key."""
    if signature.name == MINISIGN_SIGNATURE:
        command = ["minisign", "-V", "-p", key, "-m", sums, "-x", signature]
        return _run(command, capture_output=True)
    lines = key.read_text(encoding="utf-8", errors="replace").splitlines()
    with tempfile.TemporaryDirectory() as scratch, sums.open("rb") as content:
        allowed = Path(scratch) / "allowed_signers"
        named = [f"this-key {line}" if _PUBLIC_KEY.match(line) else line for line in lines]
        allowed.write_text("\n".join([*named, ""]), encoding="utf-8")
        of = ["-s", signature, "-f", allowed]
        found = _run(["ssh-keygen", "-Y", "find-principals", *of], capture_output=True)
        if found.returncode:
            return found
        of += ["-n", NAMESPACE, "-I", found.stdout.partition("\n")[0]]
        return _run(["ssh-keygen", "-Y", "verify", *of], capture_output=True, stdin=content)


def _signature_by(key: Path) -> str:
    """Return the name of the signatures that a key makes or checks."""
    if not key.is_file():
        raise CommandError(f"{key}: no such file, and it should be a key")
    with key.open("rb") as file:
        is_minisign = file.readline().startswith(b"untrusted comment:")
    return MINISIGN_SIGNATURE if is_minisign else SSH_SIGNATURE


def _run(command: list[Any], **options: Any) -> CompletedProcess[str]:
    if shutil.which(command[0]) is None:
        tool = command[0]
        raise CommandError(f"{tool}, which signs and checks, is not installed\n{_TOOLS[tool]}")
    return subprocess.run(command, text=True, check=False, **options)
