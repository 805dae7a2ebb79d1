"""Values of a finished run of the command line, for programs."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lightning_dpg.release.statement import full_sentence
from lightning_dpg.run.run_folder import is_other_rank
from lightning_dpg.run_folder import NOT_PRIVATE, RELEASE

if TYPE_CHECKING:
    from lightning_dpg.run.private_cli import PrivateCLI

_STATED = ("epsilon", "delta", "relation", "conditional")


def run_values(cli: "PrivateCLI", seconds: float) -> dict[str, Any] | None:
    """Return what a run has made and what it guarantees; None in all processes but the first.

    Args:
        cli: Command line that has run.
        seconds: Duration of the run, with its preparation.
    """
    if is_other_rank():
        return None
    folder = cli.run_path
    values: dict[str, Any] = {
        "run_folder": str(folder) if folder.is_dir() else None,
        "method": type(cli.model).__name__,
    }
    for name in (RELEASE, NOT_PRIVATE, "predictions"):
        if (place := folder / name).is_dir():
            values[name] = str(place)
            values["files"] = sorted(str(path) for path in place.iterdir())
            if (path := place / "privacy.json").is_file():
                values |= _guarantee(json.loads(path.read_text(encoding="utf-8")))
    if cli.config.subcommand in ("validate", "test"):
        values["metrics"] = {
            name: value.item() for name, value in cli.trainer.callback_metrics.items()
        }
    return values | {"book": cli.book_note, "seconds": round(seconds, 3)}


def _guarantee(statement: Mapping[str, Any]) -> dict[str, Any]:
    has_one = statement["epsilon"] != "inf"
    return {
        "guarantee": full_sentence(dict(statement)) if has_one else statement["guarantee"],
        **{name: statement[name] for name in _STATED},
        **({"beside": statement["beside"]} if "beside" in statement else {}),
        "reads": len(statement["entries"]),
    }
