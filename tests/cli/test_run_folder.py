"""Every run has a folder of its own."""

import pytest

from lightning_dpg import methods
from lightning_dpg.cli.run_folder import folder_name


@pytest.mark.parametrize(
    ("method", "folder"),
    [
        (methods.BTER, "bter"),
        (methods.PrivCom, "privcom"),
        (methods.PrivComAsPublished, "privcom_as_published"),
        (methods.KatzPrivCom, "katz_privcom"),
        (methods.RandomizedResponse, "randomized_response"),
    ],
)
def test_runs_of_a_method_have_a_folder_that_names_it(method, folder):
    assert folder_name(method.__module__) == folder


def test_a_method_of_a_script_has_one_too():
    assert folder_name("__main__") == "__main__"
