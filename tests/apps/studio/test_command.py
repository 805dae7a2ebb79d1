"""``studio`` refuses what it cannot serve, and names the way out."""

import importlib.util
import signal
import socket
import subprocess
import sys

import pytest

from lightning_dpg.main import main


def refused(refusal, *words):
    return refusal(main(["studio", *words, "--no-browser"]))


def test_a_folder_or_a_port_that_is_none(here, refusal):
    pytest.importorskip("flask")
    assert "nowhere: no such folder" in refused(refusal, "nowhere")
    assert "from 0 to 65535" in refused(refusal, "--port", "70000")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"--port {port}: Address already in use" in refused(refusal, "--port", port)


def test_runs_can_be_stopped_where_the_studio_is_started_in_the_background(here, monkeypatch):
    pytest.importorskip("flask")
    from lightning_dpg.apps.studio import server

    child = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    told = []

    def serve(*_):
        told.append(subprocess.check_output([sys.executable, "-c", child], text=True).strip())

    monkeypatch.setattr(server, "serve", serve)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does
    try:
        assert main(["studio", "--no-browser"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert told == ["True"]


def test_without_the_extra_it_says_how_to_install_it(tmp_path, monkeypatch, refusal):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "flask" else found(name)
    )
    said = refused(refusal, str(tmp_path))
    assert "needs flask" in said and "pip install 'lightning_dpg[studio]'" in said
