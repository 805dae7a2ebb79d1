"""Refusal of requests that are not those of the owner's own page, and headers of each answer."""

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from flask import Flask, Request, Response, abort, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from lightning_dpg.apps.studio.server import HOST, MOST_BYTES, Door

OWN_PAGE = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of the studio: no inline script, no other address."""
WRITTEN_PAGE = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
)
"""Policy of a page that a run has written: it has no origin, so that it cannot act as the studio."""
_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not no-referrer: forms would then be sent with the origin "null".
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def guard(app: Flask, door: Door) -> None:
    """Refuse each request that has not the secrets of the session, or that another page sends.

    Another page cannot read the token. It could send a request with the cookie of the browser, or
    have its own name resolve to this machine: hence the checks of origin, host and form.

    Args:
        app: The application.
        door: Its address and secrets.
    """
    app.config["MAX_CONTENT_LENGTH"] = app.config["MAX_FORM_MEMORY_SIZE"] = MOST_BYTES
    app.config["MAX_FORM_PARTS"] = 500
    cookie = f"studio-{door.port}"  # a browser sends the cookies of all ports
    hosts = {f"{HOST}:{door.port}", f"localhost:{door.port}"}

    @app.before_request
    def refuse() -> AnyResponse | None:
        if request.host not in hosts or not _is_own(request, hosts):
            abort(403)
        if request.content_length is not None and request.content_length > MOST_BYTES:
            abort(413)
        if (token := request.args.get("token")) is not None and request.path == "/":
            if not _equal(token, door.token):
                abort(403)
            answer = redirect("/", 303)
            answer.set_cookie(cookie, door.session, httponly=True, samesite="Strict")
            return answer
        if not _equal(request.cookies.get(cookie, ""), door.session):
            abort(403)
        if request.method not in ("GET", "HEAD") and not _equal(
            request.form.get("form", ""), door.form
        ):
            abort(403)
        return None

    @app.after_request
    def protect(response: Response) -> Response:
        response.headers.setdefault("Content-Security-Policy", OWN_PAGE)
        for name, value in _HEADERS.items():
            response.headers[name] = value
        return response


def _is_own(asked: Request, hosts: set[str]) -> bool:
    """Return whether a request comes from a page of the studio, or from no page."""
    origin = asked.headers.get("Origin")
    if origin is not None and urlsplit(origin)[:2] not in {("http", host) for host in hosts}:
        return False
    return asked.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")


def _equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())
