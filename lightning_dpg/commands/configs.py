"""Where configuration files are found: as a path, or inside the package."""

from pathlib import Path
from typing import Any

import yaml

import lightning_dpg
from lightning_dpg.commands.errors import CommandError, nearest


def conf_folder() -> Path:
    """The folder of the shipped configurations, in a clone and in an installed package."""
    folders = [Path(entry) / "conf" for entry in lightning_dpg.__path__]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def shipped_configs() -> dict[str, Path]:
    """Files of the shipped configurations by name, such as ``data/cora_ml``."""
    folder = conf_folder()
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.rglob("*.yaml"))
    }


def find_config(name: str) -> Path:
    """The file that ``--config name`` means.

    Args:
        name: Path of a file, or name of a shipped configuration, with or without its folder,
            ``conf/`` before it and ``.yaml`` behind it.
    """
    if Path(name).is_file():
        return Path(name)
    shipped = shipped_configs()
    short = name.removesuffix(".yaml").removeprefix("conf/")
    matches = [key for key in shipped if short in (key, key.rpartition("/")[2])]
    if short in shipped:
        return shipped[short]
    if len(matches) == 1:
        return shipped[matches[0]]
    if matches:
        raise CommandError(f"--config {name} can mean {' or '.join(matches)}")
    raise CommandError(
        f"--config {name}: no such file, here or among the shipped ones{nearest(short, shipped)}\n"
        "all of them: python -m lightning_dpg list"
    )


def find_configs(args: list[str]) -> list[str]:
    """A command line with the file in place of the name after each ``--config``.

    Files that it names for single sections are looked at, too.
    """
    found: list[str] = []
    for i, arg in enumerate(args):
        named = Path(arg.rpartition("=")[2])
        if named.suffix in (".yaml", ".yml") and named.is_file():
            _readable(named, is_whole=False)
        if i > 0 and args[i - 1] in ("--config", "-c"):
            found.append(_readable(find_config(arg)))
        elif arg.startswith("--config="):
            found.append(f"--config={_readable(find_config(arg.removeprefix('--config=')))}")
        else:
            found.append(arg)
    return found


def refuse_repeated_keys(text: str, origin: str) -> None:
    """Refuse YAML in which a key stands twice: the last one would silently win.

    Args:
        text: The YAML.
        origin: Where it was read.

    Raises:
        CommandError: If a mapping has a key twice.
        yaml.YAMLError: If it is not YAML.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    nodes, seen = [root], set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))  # an alias is the very node that it names
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
    """Let the parser refuse repeated keys in all YAML that it reads, also within an option."""
    from jsonargparse import get_loader, set_loader

    load = get_loader("yaml")
    if getattr(load, "__module__", None) == __name__:
        return

    def load_distinct(text: str) -> Any:
        refuse_repeated_keys(text, "YAML of an option or of a file that a configuration names")
        return load(text)

    set_loader("yaml", load_distinct)


def _readable(path: Path, *, is_whole: bool = True) -> str:
    """The path, if the file holds sections in YAML, or any YAML where it is not a whole one."""
    try:
        text = path.read_text(encoding="utf-8")
        refuse_repeated_keys(text, str(path))
        content = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise CommandError(f"{path}, line {line}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: not YAML: {error}") from error
    if is_whole and not isinstance(content, dict):
        raise CommandError(
            f"{path}: expected the sections of a configuration (model, data, trainer, privacy), "
            f"got {'an empty file' if content is None else type(content).__name__}"
        )
    return str(path)
