"""``studio`` refuses what it cannot serve, and names the way out."""

import importlib.util
import socket

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


def test_without_the_extra_it_says_how_to_install_it(tmp_path, monkeypatch, refusal):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "flask" else found(name)
    )
    said = refused(refusal, str(tmp_path))
    assert "needs flask" in said and "pip install 'lightning_dpg[studio]'" in said
