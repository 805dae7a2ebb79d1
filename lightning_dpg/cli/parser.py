"""Lightning's argument parser, with errors for its users."""

from typing import Any, NoReturn

from pytorch_lightning.cli import LightningArgumentParser

from lightning_dpg.cli.parser_messages import explain_parsing
from lightning_dpg.errors import CommandError


class PrivateParser(LightningArgumentParser):
    """Parser whose errors say what is wrong, where, and the nearest valid name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take options by their full names only: ``max_epoch`` is a mistake, not a short form."""
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Leave with at most five lines; nested parsers tell the outermost one."""
        if not self.exit_on_error:
            super().error(message, ex)
        raise CommandError(explain_parsing(message, self.known_options())) from ex

    def add_lightning_class_args(self, *args: Any, **kwargs: Any) -> list[str]:
        """Add a class whose arguments are values: a path is not replaced by what the file holds."""
        added = super().add_lightning_class_args(*args, **kwargs)
        for action in self._actions:
            if action.dest in ("model", "data") and hasattr(action, "sub_add_kwargs"):
                action.sub_add_kwargs = {**action.sub_add_kwargs, "sub_configs": False}
        return added

    def known_options(self) -> list[str]:
        """Names of all options, those of subcommands included."""
        names = [action.dest for action in self._actions]
        subcommands = self._subcommands_action
        for parser in subcommands._name_parser_map.values() if subcommands else ():
            names += [action.dest for action in parser._actions]
        return names
