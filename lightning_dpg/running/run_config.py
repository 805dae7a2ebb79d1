"""The configuration in the folder of a run, read without PyTorch."""

from pathlib import Path
from typing import Any

from lightning_dpg.cli.distinct_keys import read_yaml
from lightning_dpg.errors import CommandError
from lightning_dpg.run_folder import CONFIGURATION, release_in
from lightning_dpg.running.settings import refuse_foreign_code


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
