"""What a terminal shows between a full bar and the release."""

import io
import sys
from pathlib import Path

import pytest

from lightning_dpg.main import main


@pytest.mark.parametrize(
    ("is_terminal", "options", "said"),
    [
        (True, [], [1, 1]),
        (False, [], [0, 0]),
        (True, ["--trainer.enable_progress_bar", "false"], [0, 0]),
    ],
)
def test_a_terminal_says_what_follows_the_bar(is_terminal, options, said, here, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", screen)
    assert main(["fit", "--config", "erdos_renyi", *options]) == 0
    lines = [line.strip() for line in screen.getvalue().replace("\r", "\n").splitlines()]
    release = str(Path("runs/erdos_renyi/version_0/release"))
    expected = ["drawing a synthetic graph, its statistics and figures", f"writing {release}"]
    assert [lines.count(line) for line in expected] == said
