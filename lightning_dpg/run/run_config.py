"""The configuration in the folder of a run, read without PyTorch."""

from pathlib import Path
from typing import Any

from lightning_dpg.errors import CommandError
from lightning_dpg.run.distinct_keys import read_yaml
from lightning_dpg.run.method_list import configured_classes
from lightning_dpg.run.settings import refuse_foreign_code
from lightning_dpg.run.source import Reading
from lightning_dpg.run_folder import CONFIGURATION, release_in


def config_beside(folder: Path) -> Path | None:
    """Find the configuration in the folder of a run, or beside a release; None if there is none.

    Args:
        folder: Folder of a run or of a release.
    """
    inside = folder if release_in(folder) != folder else folder.absolute().parent
    config = inside / CONFIGURATION
    return config if folder.is_dir() and config.is_file() else None


def is_run(name: str) -> bool:
    """Return whether a name is the folder of a run, with a release and its configuration."""
    folder = Path(name).expanduser()
    return release_in(folder) != folder and config_beside(folder) is not None


def section_of(config: Path, section: str) -> dict[str, Any]:
    """Read a section of the configuration of a run that names shipped classes only.

    Args:
        config: Its file.
        section: ``data``, for instance.

    Raises:
        CommandError: If there is no such section, or if it names other code.
    """
    refuse_foreign_code(config, "give the data, or --config {}", section)
    content = read_yaml(config).get(section)
    if not isinstance(content, dict) or "class_path" not in content:
        raise CommandError(f"{config}: no section {section} of a run")
    return content


def check_run(folder: str, reading: Reading, command: str) -> None:
    """Refuse a folder that is not one of a run, and settings beside a run that has its own.

    Args:
        folder: The only word of a command line.
        reading: Settings of the command line.
        command: Name of the command.

    Raises:
        CommandError: If the data are not known, or are named twice.
    """
    if config_beside(Path(folder)) is None:
        raise CommandError(
            f"{folder}: no folder of a run with a {CONFIGURATION}\n"
            f"give a run, or the real graph and a release: {command} REAL RELEASE"
        )
    if given := list(reading.given()):
        raise CommandError(
            f"--{given[0].replace('_', '-')}: the data of a run are read as in its {CONFIGURATION}\n"
            f"leave it out, or give the real graph: {command} REAL {folder}"
        )


def method_and_epsilon(run: Path) -> tuple[str, float]:
    """Return the shipped configuration of the method of a run, or its own one, and its epsilon.

    Args:
        run: Folder of the run.

    Raises:
        CommandError: If it is no folder of a run.
    """
    check_run(str(run), Reading(), "evaluate")
    config = config_beside(run)
    assert config is not None  # checked
    name = section_of(config, "model")["class_path"].rpartition(".")[2]
    epsilon = read_yaml(config).get("privacy", {}).get("epsilon", 1)
    return configured_classes().get(name, str(config)), float(epsilon)
