"""Where configuration files are found: as a path, or inside the package."""

from pathlib import Path

import yaml

import lightning_dpg
from lightning_dpg.commands.distinct_keys import check_section_file, read_yaml
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
    """A command line with the file in place of the name after each ``--config``."""
    found: list[str] = []
    for i, arg in enumerate(args):
        check_section_file(Path(arg.rpartition("=")[2]))
        if i > 0 and args[i - 1] in ("--config", "-c"):
            found.append(_readable(find_config(arg)))
        elif arg.startswith("--config="):
            found.append(f"--config={_readable(find_config(arg.removeprefix('--config=')))}")
        else:
            found.append(arg)
    return found


def _readable(path: Path) -> str:
    """The path, if the file holds sections in YAML."""
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
