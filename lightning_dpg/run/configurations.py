"""Configuration files: their locations, a path or a name inside the package, and their distinct keys."""

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

import lightning_dpg
from lightning_dpg.errors import CommandError, nearest

_NULLS = ("", "null", "~")
_MOST_TEXTS = 100
_PARSED: dict[str, Any] = {}


def read_yaml(path: Path) -> Any:
    """Read a YAML file with distinct keys."""
    return _parsed(path.read_text(encoding="utf-8"), str(path))


def check_section_file(path: Path) -> None:
    """Check the file of an option, such as ``--trainer trainer.yaml``, if it is one."""
    if path.suffix in (".yaml", ".yml") and path.is_file():
        with contextlib.suppress(yaml.YAMLError, UnicodeDecodeError):  # the parser reports these
            read_yaml(path)


def refuse_repeated_keys(text: str, origin: str) -> None:
    """Refuse YAML in which a key stands twice.

    Args:
        text: The YAML.
        origin: Source of the YAML.

    Raises:
        CommandError: If a mapping has a key twice.
        yaml.YAMLError: If the text is not YAML.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    nodes, visited = [root], set()
    while nodes:
        node = nodes.pop()
        if id(node) in visited or not isinstance(node, yaml.CollectionNode):
            continue
        visited.add(id(node))  # an alias is the same node object
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
            continue
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in lines:
                    raise CommandError(
                        f"{origin}, line {line}: the key {key.value!r} stands in line "
                        f"{lines[key.value]} already; remove one of them"
                    )
                lines[key.value] = line
            nodes.append(value)


def load_distinct_keys() -> None:
    """Make the parser refuse repeated keys in all YAML, also within an option."""
    from jsonargparse import get_loader, set_loader

    if getattr(get_loader("yaml"), "__module__", None) == __name__:
        return  # an earlier command of this process has done so
    _plain_loader()

    def load_distinct(text: str) -> Any:
        loaded = _parsed(text, "YAML of an option or of a file that a configuration names")
        # A comment or an anchor alone is no null that a user means.
        return text if loaded is None and text.strip().lower() not in _NULLS else loaded

    # Text that is no YAML, such as a condition on a quoted column, is plain text.
    set_loader("yaml", load_distinct, exceptions=(yaml.YAMLError, RecursionError))


def _parsed(text: str, origin: str) -> Any:
    """Parse YAML as the parser of a command does; each text once in a command."""
    if text not in _PARSED:
        refuse_repeated_keys(text, origin)
        if len(_PARSED) == _MOST_TEXTS:  # many fits in one process
            _PARSED.clear()
        _PARSED[text] = _plain_loader()(text)
    return copy.deepcopy(_PARSED[text])


@functools.cache
def _plain_loader() -> Callable[[str], Any]:
    """Return the loader of the parser's library, which does not look at repeated keys."""
    from jsonargparse import get_loader

    loader: Callable[[str], Any] = get_loader("yaml")
    return loader


_SHORT = ("methods", "baselines", "overlays")


def conf_folder() -> Path:
    """Return the folder of the shipped configurations."""
    return Path(lightning_dpg.__file__).parent / "conf"


@functools.cache
def shipped_configs() -> dict[str, Path]:
    """Return shipped configuration files by name: ``bter``, ``data/cora_ml``, ``papers/...``.

    Methods, baselines and overlays have their own name, without the folder.
    """
    folder = conf_folder()
    names = (path.relative_to(folder).with_suffix("") for path in sorted(folder.rglob("*.yaml")))
    return {
        (name.name if name.parts[0] in _SHORT else name.as_posix()): folder / f"{name}.yaml"
        for name in names
    }


def find_config(name: str) -> Path:
    """Find the file of ``--config name``.

    Args:
        name: Path of a file, or name of a shipped configuration, with or without its folder, the
            prefix ``conf/`` and the suffix ``.yaml``. The bare name of a paper's configuration is
            valid only if it is unique.
    """
    if Path(name).is_file():
        return Path(name)
    shipped = shipped_configs()
    short = name.removesuffix(".yaml").removeprefix("conf/")
    if short in shipped:
        return shipped[short]
    if (inside := conf_folder() / f"{short}.yaml") in shipped.values():
        return inside
    matches = [key for key in shipped if short == key.rpartition("/")[2]]
    matches = [key for key in matches if not key.startswith("papers/")] or matches
    if len(matches) == 1:
        return shipped[matches[0]]
    if matches:
        raise CommandError(f"--config {name} can mean {' or '.join(matches)}")
    raise CommandError(
        f"--config {name}: no such file, here or among the shipped ones{nearest(short, shipped)}\n"
        "all of them: python -m lightning_dpg list --all"
    )


def find_configs(args: list[str]) -> list[str]:
    """Replace every configuration name in a command line by its path."""
    arguments: list[str] = []
    for i, arg in enumerate(args):
        check_section_file(Path(arg.rpartition("=")[2]))
        if i > 0 and args[i - 1] in ("--config", "-c"):
            arguments.append(_readable(find_config(arg)))
        elif arg.startswith("--config="):
            arguments.append(f"--config={_readable(find_config(arg.removeprefix('--config=')))}")
        else:
            arguments.append(arg)
    return arguments


def refuse_foreign_code(
    config: Path, way_out: str = "--baseline-config {}", section: str | None = None
) -> None:
    """Refuse a configuration beside a release that names other than shipped classes.

    The import of a class in a configuration runs code, and so may the values of a file. A
    configuration that the user names directly is trusted, and not checked.

    Args:
        config: Its file.
        way_out: Option that trusts the file, with its path in place of ``{}``.
        section: The only section that is used; by default all are.
    """
    content = yaml.safe_load(Path(_readable(config)).read_text(encoding="utf-8"))
    for text in _strings(content if section is None else content.get(section)):
        is_ours = text.startswith(_OUR_CODE) and text.replace(".", "").isidentifier()
        is_file = any(folder.joinpath(text).exists() for folder in (Path(), config.parent))
        if not is_ours and (is_file or "." in text or "/" in text):
            raise CommandError(
                f"{config}: {text!r} is no shipped class, and code that a release comes with is not "
                f"run\nif you trust it: {way_out.format(config)}"
            )


_OUR_CODE = ("lightning_dpg.", "pytorch_lightning.")
# Names of data and of folders, which are never used to look up a class.
_PLAIN = frozenset(
    {"name", "ids", "left", "right", "attributes", "split"}
    | {"private_columns", "right_columns", "domains"}
    | {"source", "target", "table", "where"}
    | {"default_root_dir", "dirpath", "save_dir"}
)


def _strings(content: Any) -> Iterator[str]:
    """Yield all strings of a configuration that may name code."""
    match content:
        case str():
            yield content
        case dict():
            for key, value in content.items():
                if key not in _PLAIN or not _is_plain(key, value):
                    yield from _strings(value)
        case list():
            for value in content:
                yield from _strings(value)


def _is_plain(key: str, value: Any) -> bool:
    """Return whether a value is texts of data: one, a list, or a list for each private column."""
    parts = value.values() if key == "domains" and isinstance(value, dict) else [value]
    return all(
        isinstance(part, str)
        or (isinstance(part, list) and not any(isinstance(each, dict | list) for each in part))
        for part in parts
    )


def _readable(path: Path) -> str:
    """Return the path, if the file holds YAML sections."""
    try:
        content = read_yaml(path)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise CommandError(f"{path}, line {line}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: not YAML: {error}") from error
    if not isinstance(content, dict):
        raise CommandError(
            f"{path}: expected the sections of a configuration (model, data, trainer, privacy), "
            f"got {'an empty file' if content is None else type(content).__name__}"
        )
    return str(path)
