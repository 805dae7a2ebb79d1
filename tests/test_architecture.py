"""The rules that keep the project in shape: who may import whom, and what is shipped."""

import ast
import importlib.util
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from setuptools import find_namespace_packages

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOUND = PROJECT["tool"]["setuptools"]["packages"]["find"]
# Folders at the top that are links in the package.
LINKED = {"datamodules", "callbacks", "conf"}

# What a room may import of ours, beside itself.
_CORE = {"privacy", "nn", "graph", "metrics"}
_FIT = {"interfaces", "methods", "callbacks", "datamodules", "errors", "__version__"}
ALLOWED = {
    "privacy": set(),
    "nn": set(),
    "graph": set(),
    "metrics": {"graph"},
    "methods": _CORE | {"interfaces"},
    "datamodules": {"interfaces", "privacy.sampling", "privacy.noise", "graph"},
    "callbacks": {"interfaces", "privacy.ledger", "privacy.sampling", "metrics", "graph"},
    "cli": _CORE | _FIT,
    "running": _CORE | _FIT | {"cli"},
    "auditing": _CORE | _FIT | {"cli", "running"},
    "benchmark": _CORE | _FIT | {"cli", "running", "commands", "main"},
    "commands": _CORE | _FIT | {"cli", "running", "auditing", "benchmark", "main"},
}


def sources():
    """Package and path of every module with a rule."""
    for package in ALLOWED:
        for path in sorted((ROOT / "lightning_dpg" / package).rglob("*.py")):
            yield pytest.param(package, path, id=str(path.relative_to(ROOT)))


def imports_of_ours(path):
    """Names below ``lightning_dpg`` that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} is a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            assert name.partition(".")[0] not in LINKED, f"{path}: import {name}"
            if name.startswith("lightning_dpg."):
                yield name.removeprefix("lightning_dpg.")


@pytest.mark.parametrize(("package", "path"), list(sources()))
def test_imports_follow_the_design(package, path):
    allowed = ALLOWED[package] | {package}
    wrong = [
        name
        for name in imports_of_ours(path)
        if not any(name == rule or name.startswith(f"{rule}.") for rule in allowed)
    ]
    assert not wrong


def test_every_room_has_a_rule():
    rooms = {path.parent.name for path in (ROOT / "lightning_dpg").glob("*/__init__.py")}
    assert rooms == set(ALLOWED)


def test_every_package_on_disk_is_shipped():
    on_disk = {"lightning_dpg"}
    for name in ("lightning_dpg", *LINKED):
        top = "lightning_dpg" if name == "lightning_dpg" else f"lightning_dpg.{name}"
        for path in (ROOT / name).rglob("*"):
            if path.suffix in (".py", ".yaml"):
                on_disk.add(".".join((top, *path.parent.relative_to(ROOT / name).parts)))
    found = find_namespace_packages(str(ROOT), include=FOUND["include"])
    assert on_disk == {name for name in found if "__pycache__" not in name}


def test_top_folders_are_links_in_the_package():
    for name in LINKED:
        link = ROOT / "lightning_dpg" / name
        assert link.is_symlink()
        assert str(link.readlink()) == f"../{name}"


def test_the_clone_is_no_part_of_the_package():
    assert importlib.util.find_spec("lightning_dpg.lightning_dpg") is None
    assert importlib.util.find_spec("lightning_dpg.tests") is None


def test_files_say_what_they_hold():
    files = [
        path for folder in ("lightning_dpg", *LINKED) for path in (ROOT / folder).rglob("*.py")
    ]
    vague = {"utils", "util", "helpers", "misc", "common", "tools"}
    assert not [path for path in files if path.stem in vague or path.parent.name in vague]
    assert not [path for path in files if len(path.read_text().splitlines()) > 350]


@pytest.mark.slow
def test_wheel_holds_one_name_and_runs(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in ("lightning_dpg", "datamodules", "callbacks", "conf"):
        shutil.copytree(ROOT / name, sources / name, symlinks=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    subprocess.run([*build, "--wheel-dir", tmp_path, sources], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(site)
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"lightning_dpg"}
    assert "lightning_dpg/conf/dp_netgan.yaml" in names
    assert "lightning_dpg/py.typed" in names
    # A user's folder with modules of our packages' names must not get in the way.
    user = tmp_path / "user"
    user.mkdir()
    for name in ("callbacks", "datamodules", "conf"):
        (user / f"{name}.py").write_text("raise ImportError('shadowed')")
    code = "import sys; from lightning_dpg.main import main; sys.exit(main(sys.argv[1:]))"
    args = ["fit", "--config", "dp_netgan", "--print_config"]
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=user,
        env={"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "class_path: lightning_dpg.methods.DPNetGAN" in done.stdout
