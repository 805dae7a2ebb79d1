"""Requests that are not those of the owner's own page are refused, and answers keep nothing."""

import socket
import threading

import pytest

from lightning_dpg.apps.studio.server import MOST_BYTES, Door, serve

PAGES = ["/", "/runs/1/data", "/studio.js", "/result/runs/a", "/result/runs/a/release.zip"]


@pytest.mark.parametrize("path", PAGES)
def test_no_page_without_the_token(client, path):
    client.plain.delete_cookie(f"studio-{client.door.port}", domain="127.0.0.1")
    assert client.get(path).status_code == 403
    assert client.get("/?token=guess").status_code == 403
    assert client.get(f"/{path}?token={client.door.session}").status_code in (403, 404)


def test_the_token_becomes_a_cookie_that_no_script_reads(client):
    answer = client.get(f"/?token={client.door.token}")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert client.door.token not in cookie + answer.headers["Location"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_origins_are_refused(client, headers):
    assert client.get("/", **headers).status_code == 403
    assert client.post("/runs", headers=headers).status_code == 403


def test_a_form_needs_its_secret(client, folder):
    assert client.post("/runs", of_form="").status_code == 403
    assert client.post("/runs", of_form=client.door.session).status_code == 403
    assert not (folder / ".studio").exists()
    assert client.post("/runs").status_code == 303


def test_a_huge_body_is_refused(client):
    assert client.post("/runs", data="x" * MOST_BYTES).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/result/../outside.csv",
        "/result/%2e%2e/outside/release.zip",
        "/result//etc/release.zip",
        "/result/transfers.csv/release.zip",
        "/result/runs/a/figures/..%2f..%2ftransfers.csv",
        "/../etc/passwd",
        "/.studio/1.json",
    ],
)
def test_paths_that_lead_out_are_not_found(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("name", ["../outside.csv", "/etc/passwd", "link.csv", "*.csv"])
def test_data_outside_of_the_folder_are_refused(client, name):
    client.post("/runs")
    for field in ("data", "persons"):
        page = client.post("/runs/1/data", **{"data": "transfers.csv", field: name})
        assert "no data file of the folder" in page.text
    assert "link.csv" not in client.get("/runs/1/data").text.partition("<select")[2]


def test_answers_are_kept_nowhere_and_load_nothing(client):
    client.post("/runs")
    for path in ("/", "/runs/1/data", "/nothing", "/studio.js"):
        headers = client.get(path).headers
        assert headers["Cache-Control"] == "no-store"
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
    script = client.get("/studio.js").text
    assert "localStorage" not in script and "sessionStorage" not in script and "://" not in script


def test_a_fault_shows_no_value(client, monkeypatch, capsys):
    from lightning_dpg.apps.studio import results

    def fail():
        raise KeyError("anna")

    monkeypatch.setattr(results, "run_folders", fail)
    page = client.get("/")
    assert page.status_code == 500 and "KeyError" in page.text
    printed = capsys.readouterr()
    assert "anna" not in page.text + printed.err + printed.out


def test_only_this_machine_is_listened_to_and_a_huge_request_is_cut():
    door = Door()
    assert door.socket.getsockname()[0] == "127.0.0.1"

    def answer(environment, start):
        start("200 OK", [])
        return [b"reached"]

    threading.Thread(target=serve, args=(answer, door), daemon=True).start()
    with socket.create_connection(("127.0.0.1", door.port)) as one:
        head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {MOST_BYTES + 1}\r\n\r\n"
        one.sendall(head.encode())
        assert b"413" in one.recv(200)
