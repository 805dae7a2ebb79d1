import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.apps.bench.conftest import browser, probed  # noqa: F401  # fixtures


def programs():
    """Folder of PostgreSQL's programs, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    where = shutil.which("initdb")
    return found[-1].parent if found else Path(where).parent if where else None


@pytest.fixture(scope="session")
def server():
    """URL of a PostgreSQL server that this session starts, without a database."""
    pytest.importorskip("pg8000", reason="no pg8000: install the extra 'book'")
    folder = programs()
    if folder is None:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    # Folders of pytest are for their owner only, and each session of pytest sees to it.
    place = Path(tempfile.mkdtemp(prefix="postgres"))
    as_user = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        try:
            shutil.chown(place, "postgres")
        except LookupError:
            pytest.skip("no user 'postgres' to run the server as")
        as_user = {"user": "postgres", "group": "postgres", "extra_groups": []}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = place / "data"
    quiet = {"stdout": subprocess.DEVNULL, "cwd": "/", **as_user}
    subprocess.run(
        [folder / "initdb", "-D", data, "-A", "trust", "-U", "owner", "--no-sync"],
        check=True,
        **quiet,
    )
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={place}"
    options += " -c fsync=off"  # tests kill clients, and never the machine
    control = [folder / "pg_ctl", "-D", data, "-w"]
    subprocess.run([*control, "-l", place / "log", "-o", options, "start"], check=True, **quiet)
    yield f"postgresql://owner@127.0.0.1:{port}"
    subprocess.run([*control, "-m", "immediate", "stop"], check=False, **quiet)
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """URL of an empty database, of both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/book.db"
    return request.getfixturevalue("server_url")


@pytest.fixture
def server_url(request, server):
    """URL of an empty database of the server."""
    import pg8000.dbapi

    host, port = server.rpartition("@")[2].split(":")
    connection = pg8000.dbapi.connect(user="owner", host=host, port=int(port), database="postgres")
    connection.autocommit = True
    name = f"book{abs(hash(request.node.nodeid)) % 10**9}_{os.getpid()}"
    connection.cursor().execute(f"CREATE DATABASE {name}")
    yield f"{server}/{name}"
    # A hundred databases are 30,000 files, which take the server's end half a minute.
    connection.cursor().execute(f"DROP DATABASE {name} WITH (FORCE)")
    connection.close()
