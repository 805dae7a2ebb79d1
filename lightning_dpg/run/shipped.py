"""The shipped methods, read from source files without execution: PyTorch stays out of memory."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

import lightning_dpg
from lightning_dpg.advice import GOALS, Goal, Recommendation, choices
from lightning_dpg.lazy_exports import exports
from lightning_dpg.run.configurations import shipped_configs

_TASKS = {
    "GraphFeatureRelease": "features of graphs",
    "NodeClassifier": "classes of nodes",
    "GraphSetSynthesizer": "set of graphs",
    "Synthesizer": "one graph",
}
"""Task of the methods below each base class; the first that fits counts."""

Tier = Literal["recommended", "baselines", "papers", "without privacy"]

_ROOMS: dict[str, Tier] = {"methods": "baselines", "papers": "papers"}
"""Folders of the package with methods, and the tier of what stands there."""


class MethodInfo(NamedTuple):
    """A shipped method.

    Attributes:
        name: Name of its class in ``lightning_dpg.methods``.
        configuration: Name of its shipped configuration, which ``fit`` takes as well; None if only
            studies of papers have one.
        guarantee: ``pure`` for a guarantee with delta 0, ``approximate`` with a delta above 0, or
            ``none``.
        relation: Neighboring relation: ``edge``, ``node`` or ``local_graph``; empty without a
            guarantee.
        is_conditional: Whether the guarantee holds only under a condition that no release proves.
        task: What it learns: ``one graph``, ``set of graphs``, ``features of graphs`` or
            ``classes of nodes``.
        summary: First sentence of its documentation.
        tier: ``recommended`` if :mod:`lightning_dpg.advice` may name it; otherwise ``without privacy``
            without a guarantee, ``papers`` by its folder, or ``baselines``, which also has
            alternatives.
    """

    name: str
    configuration: str | None
    guarantee: str
    relation: str
    is_conditional: bool
    task: str
    summary: str
    tier: Tier


def list_methods() -> list[MethodInfo]:
    """List the shipped methods.

    Returns:
        One row for each method, by name.

    Raises:
        OSError: If the files of the package cannot be read.

    Example:
        >>> import lightning_dpg as dpg
        >>> rows = {row.name: row for row in dpg.list_methods()}
        >>> rows["BTER"].configuration, rows["BTER"].guarantee, rows["BTER"].task
        ('bter', 'pure', 'one graph')
        >>> rows["DPNetGAN"].guarantee, rows["NetGAN"].guarantee
        ('approximate', 'none')
        >>> rows["BTER"].tier, rows["DPNetGAN"].tier, rows["NetGAN"].tier
        ('recommended', 'papers', 'without privacy')
    """
    classes: dict[str, ast.ClassDef] = {}
    rooms: dict[str, str] = {}
    for path in method_files():
        defined = classes_of(path)
        classes |= defined
        rooms |= dict.fromkeys(defined, path.relative_to(source_folder(".")).parts[0])
    recommended = {case.method for goal in GOALS for case in choices(goal)}
    configured = configured_classes()
    rows = []
    for name in sorted(exports(source_folder("methods") / "__init__.py")):
        ancestors = lineage(classes[name], classes)
        bases = {base.name for base in ancestors[1:]}
        if "PrivateModule" in bases and not is_abstract(ancestors):
            guarantee = _guarantee(ancestors)
            tier: Tier = "without privacy" if guarantee == "none" else _ROOMS[rooms[name]]
            info = MethodInfo(
                name,
                configured.get(name),
                guarantee,
                _relation(ancestors),
                _is_conditional(ancestors),
                next(task for base, task in _TASKS.items() if base in bases),
                first_line(classes[name]),
                "recommended" if name in recommended else tier,
            )
            rows.append(info)
    return rows


def method_files() -> list[Path]:
    """Source files that may hold methods."""
    return [path for room in _ROOMS for path in sorted(source_folder(room).rglob("*.py"))]


def configured_classes() -> dict[str, str]:
    """Name of the first shipped configuration of each class, studies of papers left out.

    A baseline such as ``node_kernel`` may configure the class of a method: it comes after all others.

    Returns:
        Names of configurations by names of classes.
    """
    found: dict[str, str] = {}
    for name, (configured, _) in _configured().items():
        found.setdefault(configured, name)
    return found


def recommended_configurations(goal: Goal) -> dict[str, str]:
    """Configurations of the methods that :mod:`lightning_dpg.advice` may name for a goal.

    Args:
        goal: What a release is for.

    Returns:
        Name of the class by name of the configuration.
    """
    return {configuration_of(case): case.method for case in choices(goal)}


def configuration_of(case: Recommendation) -> str:
    """Name the configuration of a recommended method.

    Args:
        case: The recommendation. If it names a setting, the configuration has this setting and no
            other one.
    """
    if case.configuration:
        return case.configuration
    setting = {"denoise": case.denoise}
    return next(
        name
        for name, (configured, settings) in _configured().items()
        if configured == case.method and (not case.denoise or settings == setting)
    )


@cache
def _configured() -> dict[str, tuple[str, dict[str, Any]]]:
    """Class and settings of each shipped configuration of a method; baselines last, no papers."""
    found = {}
    shipped = shipped_configs().items()
    for name, path in sorted(shipped, key=lambda item: item[1].parent.name == "baselines"):
        model = yaml.safe_load(path.read_text(encoding="utf-8")).get("model", {})
        if "/" not in name and model:
            settings = model.get("init_args", {})
            found[name] = (model["class_path"].rpartition(".")[2], settings)
    return found


def source_folder(name: str) -> Path:
    """A folder of the package.

    Args:
        name: Its name.
    """
    return Path(lightning_dpg.__file__).parent / name


@cache
def statements_of(path: Path) -> tuple[ast.stmt, ...]:
    """Parse a source file of a package, once.

    Args:
        path: The file.
    """
    return tuple(ast.parse(path.read_text(encoding="utf-8")).body)


def classes_of(path: Path) -> dict[str, ast.ClassDef]:
    """Return the classes of a source file by name.

    Args:
        path: The file.
    """
    return {node.name: node for node in statements_of(path) if isinstance(node, ast.ClassDef)}


def first_line(node: ast.ClassDef | ast.FunctionDef) -> str:
    """First line of a docstring, without marks.

    Args:
        node: A class or a function.
    """
    return re.sub(r"[*`]", "", (ast.get_docstring(node) or "").partition("\n")[0])


def lineage(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """List a class and its bases, as far as they are known.

    Args:
        node: The class.
        classes: Known classes by name.
    """
    bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in classes]
    return [node, *(each for base in bases for each in lineage(classes[base], classes))]


def is_abstract(ancestors: list[ast.ClassDef]) -> bool:
    """Whether an abstract function remains; the nearest definition counts.

    Args:
        ancestors: A class and its bases, see :func:`lineage`.
    """
    state: dict[str, bool] = {}
    for node in ancestors:
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                marks = [mark.id for mark in item.decorator_list if isinstance(mark, ast.Name)]
                state.setdefault(item.name, "abstractmethod" in marks)
    return any(state.values())


def _guarantee(ancestors: list[ast.ClassDef]) -> str:
    if _capability(ancestors, "adds_noise") == "False":
        return "none"
    return "pure" if _capability(ancestors, "is_pure") == "True" else "approximate"


def _relation(ancestors: list[ast.ClassDef]) -> str:
    """The relation that a method declares, such as ``edge``."""
    if _guarantee(ancestors) == "none":
        return ""
    return _value(ancestors, "relation").rpartition(".")[2].lower()


def _is_conditional(ancestors: list[ast.ClassDef]) -> bool:
    """Whether a class states a condition; that of the base class is that there is none."""
    return any(
        isinstance(item, ast.FunctionDef) and item.name == "condition"
        for node in ancestors
        if node.name != "PrivateModule"
        for item in node.body
    )


def _capability(ancestors: list[ast.ClassDef], name: str) -> str:
    """Source text of a declared capability, the nearest one; an empty string for the default."""
    for node in ancestors:
        for item in node.body:
            if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "capabilities":
                assert isinstance(item.value, ast.Call)
                for keyword in item.value.keywords:
                    if keyword.arg == name:
                        return ast.unparse(keyword.value)
    return ""


def _value(ancestors: list[ast.ClassDef], attribute: str) -> str:
    """Source text of a class attribute; the nearest definition counts."""
    for node in ancestors:
        for item in node.body:
            if isinstance(item, ast.Assign | ast.AnnAssign) and item.value is not None:
                targets = item.targets if isinstance(item, ast.Assign) else [item.target]
                if attribute in [target.id for target in targets if isinstance(target, ast.Name)]:
                    return ast.unparse(item.value)
    return ""


def built_in_graphs() -> list[str]:
    """Return the names of the built-in graphs."""
    return _keys("loading.py", "BUILT_IN")


def built_in_sets() -> dict[str, str]:
    """Return the first line of the documentation of each built-in set, by its name."""
    file = "built_in_sets.py"
    functions = {node.name: node for node in _tree(file).body if isinstance(node, ast.FunctionDef)}
    names = _keys(file, "BUILT_IN_SETS")
    return {name: first_line(functions[name]).removesuffix(".") for name in names}


def _keys(file: str, constant: str) -> list[str]:
    """Return the keys of a dictionary in a file of a data module."""
    value = next(
        node.value
        for node in _tree(file).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == constant
    )
    assert isinstance(value, ast.Dict)
    return [str(ast.literal_eval(key)) for key in value.keys if key is not None]


def _tree(file: str) -> ast.Module:
    """Parse a file of a data module."""
    return ast.parse((source_folder("datamodules") / file).read_text(encoding="utf-8"))
