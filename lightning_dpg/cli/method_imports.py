"""Imports of methods: the parser finds a class by its name only if its module is imported."""

from collections.abc import Sequence

from lightning_dpg import methods
from lightning_dpg.cli.written_settings import is_uncertain, named_settings


def import_methods(args: Sequence[str]) -> None:
    """Import the methods that a command line and its files name.

    All methods take a third of a second. They are imported only where the parser may need them: for
    help, and for a name that is none of theirs.

    Args:
        args: Command and options.
    """
    settings = list(named_settings(args))
    named = [each for each in settings if (each.section, each.name) == ("model", "class_path")]
    names = {f"{setting.value}" for setting in named}
    short = {name for name in names if not name.startswith("lightning_dpg.")}
    if not names or not short <= {*methods.__all__} or is_uncertain(args, settings):
        import_all_methods()
    else:
        for name in short:
            getattr(methods, name)


def import_all_methods() -> None:
    """Import all methods, such as for a message that names the nearest one."""
    for name in methods.__all__:
        getattr(methods, name)
