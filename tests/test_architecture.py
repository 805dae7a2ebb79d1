"""Imports follow the declared rules, and all shipped files are in the package."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from setuptools import find_namespace_packages

from tests import costs
from tests.import_graph import foreign_imports, imports, modules, room_of

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOUND = PROJECT["tool"]["setuptools"]["packages"]["find"]
WORKFLOWS = [*(ROOT / ".github/workflows").glob("*.yaml")]
# Folders at the top that are links in the package.
LINKED = {"datamodules", "callbacks", "conf"}

# Allowed imports; a room may also import everything below its allowed imports.
ARROWS = {
    "__main__": {"main"},
    "main": {"run.commands"},
    "apps": set(),
    "apps.book": {"run.commands"},
    "apps.studio": {"run.commands", "budget_book"},
    "apps.bench": {"run.commands", "pages"},
    "apps.audit": {"run.commands"},
    "contracts": {"run"},  # and the public interface
    "run.commands": {"evaluation"},
    "evaluation": {"run", "pages"},
    "run": {"methods", "papers", "callbacks", "datamodules"},
    "pages": {"metrics", "formats"},
    "callbacks": {"preflight", "budget_book", "privacy", "release", "metrics", "graph"},
    "release": {"interfaces", "privacy", "formats", "methods", "pages"},
    "papers": {"methods"},
    "methods": {"preflight", "privacy", "nn", "graph", "metrics"},
    "preflight": {"interfaces", "graph", "privacy"},
    "datamodules": {"interfaces", "privacy.sampling", "formats", "graph"},
    "formats": {"graph"},
    "budget_book": {"interfaces", "privacy.events"},  # as types only
    "metrics": {"graph"},
    "interfaces": {"privacy.budget", "privacy.ledger", "privacy.noise"},  # as types only
    "privacy": set(),
    "nn": set(),
    "graph": set(),
    # Everybody may import these, and they import nothing but errors.
    "__init__": {"apps.bench", "apps.audit"},  # lazily
    "__version__": set(),
    "advice": {"errors"},
    "classes": set(),
    "entry_points": set(),
    "errors": set(),
    "lazy_exports": set(),
    "outcome": set(),
    "progress": {"outcome"},
    "run_folder": {"errors"},
    "tables": {"errors"},
}
FOR_ALL = {"__version__", "advice", "classes", "entry_points", "errors", "lazy_exports"}
FOR_ALL |= {"outcome", "progress", "run_folder", "tables"}


def allowed(room):
    """Names that a room may import of ours, beside its own."""
    below = [allowed(other) for other in ARROWS[room] if other in ARROWS]
    return ARROWS[room].union(*below) | (FOR_ALL if room not in FOR_ALL else set())


def own_imports():
    """All imports but the lazy exports of ``methods``, which name papers as well."""
    return [each for each in imports() if (each.module, each.is_for_types) != ("methods", True)]


def test_imports_follow_the_design():
    wrong = []
    for found in own_imports():
        room = found.rooms[0]
        names = allowed(room) | {room}
        if not any(found.target == name or found.target.startswith(f"{name}.") for name in names):
            wrong.append(f"{found}, but {room} may import {', '.join(sorted(names))} only")
    assert not wrong, "\n" + "\n".join(wrong)


def test_imports_inside_functions_are_for_start_up_time_and_say_so():
    wrong = []
    for found in imports():
        if not found.is_inside:
            continue
        is_of_command = "command" in found.module or found.module == "main"
        is_of_extra = found.target.startswith("datamodules.table_")
        if "# Start-up time: " not in found.comment:
            wrong.append(f"{found} without a comment '# Start-up time: ...'")
        elif not is_of_command and not is_of_extra:
            wrong.append(f"{found} inside a function")
    assert not wrong, "\n" + "\n".join(wrong)


def circle(graph):
    """A circle of a graph, as text; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return ""


def test_nobody_but_lazy_names_imports_an_application():
    """What they offer is found by entry points, so that the package runs without them."""
    wrong = [
        f"{found}"
        for found in imports()
        if found.target.startswith("apps")
        and found.module != "__init__"
        and found.rooms[0] != found.rooms[1]
    ]
    assert not wrong, wrong


def test_no_circle_of_rooms_and_none_of_modules():
    assert not circle(rooms())
    known = modules()
    graph = {name: set() for name in known}
    for found in imports():
        if not found.is_inside and not found.is_for_types:
            # A name is a module, or something that a module holds.
            target = found.target
            graph[found.module].add(target if target in known else target.rpartition(".")[0])
    assert not circle(graph)


def rooms():
    """The rooms that each room imports."""
    graph = {room: set() for room in ARROWS}
    for found in own_imports():
        room, other = found.rooms
        if room != other:
            graph[room].add(other)
    return graph


def print_rooms():
    """Print the import graph of the rooms."""
    for room, others in rooms().items():
        if room not in FOR_ALL and room != "__init__":
            print(f"{room:<12} -> {', '.join(sorted(others - FOR_ALL)) or '-'}")
    print(f"circles: {circle(rooms()) or 'none'}")


def test_every_room_has_a_rule(capsys):
    with capsys.disabled():
        print()
        print_rooms()
    tops = {room_of(name) for name in modules()}
    assert tops <= set(ARROWS)
    assert set(ARROWS) - tops <= {"__version__", "interfaces"}


# Parts of Ibis and Spark that the engines of tables call where these packages are in use.
OF_ENGINES = {"psycopg", "py4j", "sqlglot"}


# Modules that need the packages of an extra: what loads them says so where they are missing.
OF_EXTRAS = {
    "lightning_dpg/apps/studio/": "studio",
    "lightning_dpg/contracts/suite": "dev",
    "lightning_dpg/datamodules/table_": "tables",
}


def declared(requirements):
    """Names of the modules of declared distributions, by the names of the distributions."""
    shipped = {}
    for module, names in packages_distributions().items():
        for name in names:
            shipped.setdefault(canonicalize_name(name), set()).add(module)
    names = {canonicalize_name(Requirement(line).name) for line in requirements}
    # Distributions of extras that are not installed are called as their modules.
    return {name: shipped.get(name, {name.replace("-", "_")}) for name in names}


def test_imports_and_declared_dependencies_agree():
    project = PROJECT["project"]
    hard = declared(project["dependencies"])
    extras = declared(line for lines in project["optional-dependencies"].values() for line in lines)
    always = set().union(*hard.values())
    sometimes = always.union(OF_ENGINES, *extras.values())
    of_rooms = {
        place: always.union(*declared(project["optional-dependencies"][extra]).values())
        for place, extra in OF_EXTRAS.items()
    }

    def allowed_in(each):
        if not each.is_needed:
            return sometimes
        return next(
            (names for place, names in of_rooms.items() if each.place.startswith(place)), always
        )

    found = foreign_imports()
    wrong = [
        f"{each.place} imports {each.package}, which is no "
        + ("dependency" if each.is_needed else "dependency, nor one of an extra")
        for each in found
        if each.package not in allowed_in(each)
    ]
    imported = {each.package for each in found}
    wrong += [
        f"{name} is declared, and no module imports it"
        for name, modules in hard.items()
        if not modules & imported
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_package_on_disk_is_shipped():
    on_disk = {"lightning_dpg"}
    for name in ("lightning_dpg", *LINKED):
        top = "lightning_dpg" if name == "lightning_dpg" else f"lightning_dpg.{name}"
        for path in (ROOT / name).rglob("*"):
            if path.suffix in (".py", ".yaml"):
                parts = path.parent.relative_to(ROOT / name).parts
                on_disk |= {".".join((top, *parts[:depth])) for depth in range(len(parts) + 1)}
    found = find_namespace_packages(str(ROOT), include=FOUND["include"])
    assert on_disk == {name for name in found if "__pycache__" not in name}


def test_slow_tests_exist():
    for name in [*costs.STAY, *costs.LIST.read_text().splitlines()]:
        path, _, function = name.partition("::")
        assert f"def {function.partition('[')[0]}(" in (ROOT / path).read_text(), name


@pytest.mark.skipif((ROOT / "PKG-INFO").exists(), reason="a source distribution has copies")
def test_top_folders_are_links_in_the_package():
    for name in LINKED:
        link = ROOT / "lightning_dpg" / name
        assert link.is_symlink()
        assert str(link.readlink()) == f"../{name}"


def test_a_clone_without_links_says_what_to_do(tmp_path):
    package = tmp_path / "lightning_dpg"
    package.mkdir()
    shutil.copy(ROOT / "lightning_dpg/__init__.py", package)
    shutil.copy(ROOT / "lightning_dpg/lazy_exports.py", package)
    (package / "conf").write_text("../conf")  # what a clone on Windows has in the place of a link
    run = subprocess.run(
        [sys.executable, "-c", "import lightning_dpg"],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr.rstrip().endswith("clone it again with git clone -c core.symlinks=true")


def test_actions_of_workflows_are_pinned():
    used = re.findall(r"uses: (.*)", "".join(path.read_text() for path in WORKFLOWS))
    assert used
    assert not [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v[\d.]+", each)]


def test_the_clone_is_no_part_of_the_package():
    assert importlib.util.find_spec("lightning_dpg.lightning_dpg") is None
    assert importlib.util.find_spec("lightning_dpg.tests") is None


def test_files_say_what_they_hold():
    files = [
        path for folder in ("lightning_dpg", *LINKED) for path in (ROOT / folder).rglob("*.py")
    ]
    vague = {"utils", "util", "helpers", "misc", "common", "tools"}
    assert not [path for path in files if path.stem in vague or path.parent.name in vague]


def test_wheel_holds_one_name_and_runs(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
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
    assert "lightning_dpg/conf/methods/dp_netgan.yaml" in names
    assert "lightning_dpg/py.typed" in names
    assert "lightning_dpg/release/card/card.html.jinja" in names
    assert "lightning_dpg/release/card/sentences.yaml" in names
    assert "lightning_dpg/apps/book/budget.html.jinja" in names
    assert "lightning_dpg/run/quality.csv" in names
    # Modules of a user with names of our folders, or of packages, must not get in the way.
    user = tmp_path / "user"
    user.mkdir()
    for name in ("callbacks", "datamodules", "conf", "yaml"):
        (user / f"{name}.py").write_text("raise ImportError('shadowed')")
    mine = "from lightning_dpg.methods import ErdosRenyi\nclass Mine(ErdosRenyi): pass\n"
    (user / "mine.py").write_text(mine)
    code = "from lightning_dpg.main import run; run()"
    args = ["fit", "--config", "erdos_renyi", "--model", "mine.Mine", "--print_config"]
    # As an installed script starts: its own folder comes first, and the current one nowhere.
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *args],
        cwd=user,
        env={"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "class_path: mine.Mine" in done.stdout
    assert "class_path: lightning_dpg.datamodules.EdgeListDataModule" in done.stdout


if __name__ == "__main__":
    print_rooms()
