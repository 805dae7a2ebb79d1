"""A studio in a folder, and a client with the secrets of its session."""

import html
import re
import time

from lightning_dpg.apps.studio.app import application
from lightning_dpg.apps.studio.server import Door


class Client:
    """Requests as a browser of the owner sends them."""

    def __init__(self):
        self.door = Door()
        self.door.socket.close()
        self.host = f"127.0.0.1:{self.door.port}"
        self.plain = application(self.door).test_client()
        self.get(f"/?token={self.door.token}")

    def get(self, path, **headers):
        return self.plain.get(path, base_url=f"http://{self.host}", headers=headers)

    def post(self, path, of_form=None, headers=None, **form):
        form["form"] = self.door.form if of_form is None else of_form
        return self.plain.post(
            path, data=form, base_url=f"http://{self.host}", headers=headers or {}
        )


def text_of(answer):
    """Words of a page, without its marks."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def wait_for(condition):
    """Wait until something holds, five minutes at most."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")
