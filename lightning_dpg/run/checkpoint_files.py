"""Files of checkpoints: which there are, and refusal of one that is missing. It needs no PyTorch."""

from pathlib import Path

from lightning_dpg.errors import CommandError


def check_checkpoint_file(command: str, path: str | None) -> None:
    """Refuse a checkpoint that is no file, and none where a command needs one.

    Args:
        command: Subcommand.
        path: ``ckpt_path``.

    Raises:
        CommandError: If there is no such file.
    """
    if path is None and command != "fit":
        raise CommandError(
            f"{command} needs --ckpt_path FILE, a checkpoint of a run\n"
            "to draw graphs from a release: python -m lightning_dpg generate DIR"
        )
    if path is not None and not Path(path).is_file():
        raise CommandError(f"--ckpt_path {path}: no such file{checkpoints_near(Path(path))}")


def by_age(folder: Path) -> list[Path]:
    """Return the checkpoints below a folder, the newest last."""
    return sorted(folder.rglob("*.ckpt"), key=lambda file: file.stat().st_mtime)


def checkpoints_near(path: Path) -> str:
    """Name the newest other checkpoint in the folder of a path, or in the folders of runs."""
    folder = path.parent if path.parent.is_dir() else Path("runs")
    checkpoints = [each for each in by_age(folder) if each != path]
    return f"\nthe newest one there is {checkpoints[-1]}" if checkpoints else ""
