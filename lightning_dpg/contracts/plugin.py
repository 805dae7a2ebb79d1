"""The plug-in of pytest: ``--dpg-method NAME`` adds the contracts of a method to a run of pytest.

Every pytest of an environment imports this module, which imports nothing for it.
"""

from pathlib import Path
from typing import Any


def pytest_addoption(parser: Any) -> None:
    """Declare the option."""
    text = "add the contracts of a method: its short name, or MODULE.CLASS; repeat it for more"
    parser.addoption("--dpg-method", action="append", default=[], metavar="NAME", help=text)


def pytest_configure(config: Any) -> None:
    """Add the contracts to what is collected."""
    suite = str(Path(__file__).with_name("suite.py"))
    if config.option.dpg_method and suite not in config.args:
        config.args.append(suite)
