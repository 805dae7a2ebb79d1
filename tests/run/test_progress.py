"""A run that nobody watches says little, tracks nothing and draws no bar."""

import io
import sys

import pytest

import lightning_dpg as dpg
from lightning_dpg.main import main
from tests.processes import ends, start

SMALL = {"embedding_dim": 8, "critic_dim": 8, "generator_dim": 8, "num_samples": 100}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def fit_by_command():
    sizes = [f"--model.{name}={value}" for name, value in SMALL.items()]
    assert main(["fit", "--config=dp_netgan", "--trainer.max_epochs=1", *sizes]) == 0


def fit_in_python():
    dpg.fit("les_miserables", "dp_netgan", epsilon=4.0, sample_rate=1.0, **SMALL)


@pytest.mark.parametrize(
    ("fit", "stream"),
    [(fit_by_command, Terminal), (fit_in_python, Terminal), (fit_in_python, io.StringIO)],
)
def test_bar_is_drawn_on_the_terminal_of_stderr_only(fit, stream, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    errors = stream()
    monkeypatch.setattr(sys, "stderr", errors)
    fit()
    out = capsys.readouterr().out
    assert ("Epoch 0: 100%" in errors.getvalue()) == (stream is Terminal)
    assert ("\r" in errors.getvalue()) == (stream is Terminal)
    assert "Epoch" not in out
    assert "guarantee: edge-level" in out


def fit_unasked():
    assert main(["fit", "--config=erdos_renyi"]) == 0
    assert "wandb" not in sys.modules


def test_nothing_is_tracked_or_imported_for_it_unasked(tmp_path):
    """The shipped configuration tracked, which took two seconds and left a list of packages."""
    (code,), (said,) = ends([start(tmp_path, fit_unasked)])
    assert code == 0, said
    assert list(tmp_path.glob("runs/erdos_renyi/version_0/metrics.csv"))
    assert not list(tmp_path.rglob("*wandb*"))
