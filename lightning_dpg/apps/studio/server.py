"""The door of the studio: an address of this machine, a token, and the threads that answer."""

import contextlib
import secrets
import socket
import webbrowser
from collections.abc import Iterator
from typing import Any

import waitress

from lightning_dpg.errors import CommandError

HOST = "127.0.0.1"
"""The only address that is listened to: that of this machine."""
MOST_BYTES = 64 * 1024
"""Largest request: forms are small, and no file is uploaded."""


class Door:
    """An open port of this machine, and the secrets of the session.

    Args:
        port: Number of the port; 0 takes a free one.

    Attributes:
        port: Its number.
        token: Secret in the URL, for the first request of a browser.
        session: Secret in the cookie that answers it.
        form: Secret in each form.

    Raises:
        CommandError: If the port is taken.
    """

    def __init__(self, port: int = 0) -> None:
        if not 0 <= port < 65536:
            raise CommandError(f"--port must be a number from 0 to 65535, got {port}")
        self.token, self.session, self.form = (secrets.token_urlsafe(32) for _ in range(3))
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((HOST, port))
        except OSError as error:
            self.socket.close()
            reason = f"--port {port}: {error.strerror}"
            raise CommandError(f"{reason}\ngive another one, or leave it out") from error
        self.socket.listen()
        self.port: int = self.socket.getsockname()[1]

    @property
    def url(self) -> str:
        """Address with the token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"


@contextlib.contextmanager
def opened(port: int, *, browser: bool) -> Iterator[Door]:
    """Open the door, print its URL, and close it in the end.

    A browser that comes early waits: the port listens before anything is there to answer.

    Args:
        port: Number of the port; 0 takes a free one.
        browser: Whether to open the URL in the user's browser.
    """
    door = Door(port)
    with contextlib.closing(door.socket):
        print(f"studio: {door.url}", flush=True)
        if browser:
            webbrowser.open(door.url)
        yield door


def serve(application: Any, door: Door) -> None:
    """Answer until Ctrl-C. Nothing is logged: a URL and a form may quote private data.

    Args:
        application: A WSGI application.
        door: Its address.
    """
    server = waitress.create_server(
        application,
        sockets=[door.socket],
        ident="",
        max_request_body_size=MOST_BYTES,
        threads=4,
    )
    try:
        server.run()
    finally:
        server.close()
