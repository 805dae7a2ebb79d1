"""The help of each command, as its parser prints it, for the page of the command line."""

import io
import os
from contextlib import redirect_stdout
from unittest import mock

from lightning_dpg import main
from lightning_dpg.run.commands.fit import parser_of

# Lightning's own: their options are those of the method, the data module and the trainer.
_LIGHTNING = """\
### fit, validate, test, predict

The short options below are enough for most runs. These commands also take a configuration (`--config NAME`), and every value of
it as an option: `--privacy.epsilon 2`, `--model.init_args.noise_multiplier 1.5`. `fit --help-all` lists the options of Lightning's
`Trainer` as well, `fit --model.help METHOD` those of a method, and `fit --config NAME --print_config` prints the whole configuration.
"""


def helps() -> str:
    """All helps in Markdown."""
    with mock.patch.dict(os.environ, {"COLUMNS": "82"}):
        short = parser_of("fit").format_help()
    names = [name for name in main.command_names() if name not in main.LIGHTNING_COMMANDS]
    own = [f"### {name}\n\n{_block(help_of(name))}" for name in names]
    return "\n\n".join([_block(main.HELP), _LIGHTNING, _block(short), *own])


def help_of(command: str) -> str:
    """What ``COMMAND --help-all`` prints on a terminal of 82 columns."""
    printed = io.StringIO()
    with redirect_stdout(printed), mock.patch.dict(os.environ, {"COLUMNS": "82"}):
        main.main([command, "--help-all"])
    return printed.getvalue()


def _block(text: str) -> str:
    return f"```text\n{text.strip()}\n```"
