"""A fit, its evaluation and its verification ask nobody on the network."""

import socket

import networkx as nx
import pytest

import lightning_dpg as dpg
from lightning_dpg.main import main


@pytest.fixture
def asked(monkeypatch):
    """Whom the process has asked: names, and addresses of the internet. All of it is refused."""
    found, connect = [], socket.socket.connect

    def refused(*address, **options):
        found.append(address)
        raise OSError("there is no network")

    def only_here(place, address):  # processes of one machine talk by files
        return connect(place, address) if place.family == socket.AF_UNIX else refused(address)

    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refused)
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, only_here)
    monkeypatch.setattr(socket.socket, "sendto", refused)
    return found


def test_no_network_call_is_made(asked, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for command in ("fit karate --epsilon 1 --method bter --out run", "verify run", "evaluate run"):
        assert main(command.split()) == 0, capsys.readouterr().err
        assert not asked, command


def test_a_call_in_python_makes_none_and_the_refusal_works(asked):
    dpg.fit(nx.karate_club_graph(), "chung_lu", epsilon=1.0).verify()
    assert not asked
    with pytest.raises(OSError, match="no network"):
        socket.create_connection(("localhost", 9))
    assert asked
