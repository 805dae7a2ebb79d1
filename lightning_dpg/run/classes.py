"""Classes of a configuration: the data module is built first, and messages of constructors."""

import contextlib
import traceback
from collections.abc import Iterator

from jsonargparse import Namespace
from pytorch_lightning import LightningDataModule

from lightning_dpg.errors import CommandError, explain
from lightning_dpg.run.parser import PrivateParser


def read_data(settings: Namespace, command: str) -> LightningDataModule:
    """Build the data module and read its data, unless graphs are drawn from a checkpoint.

    Args:
        settings: All sections.
        command: Subcommand.

    Raises:
        CommandError: If no data are named.
    """
    section = settings.data
    is_shipped = section.class_path.startswith("lightning_dpg.")
    if command != "predict" and is_shipped and section.init_args.get("name", "") is None:
        raise CommandError(
            "data.init_args.name is null: give a built-in graph, a data set, or the path of a "
            "file, see python -m lightning_dpg list --all"
        )
    # The parser of the command would keep the arguments of a method that is not complete yet.
    parser = PrivateParser()
    parser.add_lightning_class_args(LightningDataModule, "data", subclass_mode=True)
    with settings_of_classes():
        data: LightningDataModule = parser.instantiate(settings).data
    if command != "predict":
        data.prepare_data()
        data.setup(command)
    return data


@contextlib.contextmanager
def settings_of_classes() -> Iterator[None]:
    """Report the message of a constructor, which the parser would hide behind an unknown type.

    A ``ValueError`` of a constructor is about a setting, also in a class of a user.
    """
    try:
        yield
    except Exception as error:
        reason = _first_cause(error)
        if isinstance(reason, ValueError) and explain(reason) is None:
            place = traceback.extract_tb(reason.__traceback__)[-1]
            raise CommandError(
                f"{reason}\na setting was refused in {place.filename}, line {place.lineno}"
            ) from error
        if explain(error) is None and reason is not error:
            raise reason from error
        raise


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
