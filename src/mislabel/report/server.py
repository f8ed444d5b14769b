"""The review page for this machine alone: it needs a secret address, and can do nothing but read and save decisions."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import socketserver
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from mislabel.errors import DecisionsError, InvalidParameterError, ResultsError, StaleDecisionsError
from mislabel.report.html import policy, read_content, render_page
from mislabel.report.kept_decisions import KeptDecisions

#: The address of this machine that no other one can reach.
HOST = "127.0.0.1"
PAGE = "report.html"
#: Bytes of decisions that are taken at most.
LARGEST = 200_000_000
#: Seconds that a connection may say nothing.
PATIENCE = 30
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ReviewServer(ThreadingHTTPServer):
    """Serves the page of one folder at ``url`` until it is closed, and saves its decisions beside it.

    The address holds a random token that every request must carry. Requests that name another host, or come from a page of
    another origin, are refused, so that no web site can reach it through the user's browser.
    """

    daemon_threads = True
    # Elsewhere that lets a second process listen at the same port.
    allow_reuse_address = os.name == "posix"

    def __init__(self, folder: str | Path, port: int = 0) -> None:
        folder = Path(folder)
        content = content_in(folder)
        if not os.access(folder, os.W_OK):
            raise ResultsError(f"the folder {folder} cannot be written to: decisions could not be saved there.")
        try:
            self.kept = KeptDecisions(folder, content)
            self.label, self.file = str(content["label"]), str(content["file"]["name"])
        except (KeyError, TypeError) as error:
            raise ResultsError(
                f"{folder / PAGE} is damaged: {type(error).__name__} {error}. Audit the file again."
            ) from None
        self.page = render_page({**content, "served": {"path": str(self.kept.path)}}).encode("utf-8")
        self.token = secrets.token_urlsafe(32)
        try:
            super().__init__((HOST, port), _Request)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else "there is no such port"
            raise InvalidParameterError(
                f"port {port} cannot be used ({reason}): choose another, or leave --port out to get a free one."
            ) from None
        self.host = f"{HOST}:{self.server_address[1]}"

    def server_bind(self) -> None:
        """Without asking a name server for the name of this machine."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    @property
    def url(self) -> str:
        """Where the page is, with the token."""
        return f"http://{self.host}/{self.token}/"

    def server_close(self) -> None:
        """Stop listening, after a save that has begun."""
        super().server_close()
        self.kept.wait()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is nobody's business."""


def content_in(folder: Path) -> dict[str, Any]:
    """What the page in the folder of an audit shows; ResultsError where there is none."""
    page = folder / PAGE
    if page.is_file():
        return read_content(page)
    if folder.is_file():
        raise ResultsError(f"{folder} is a file: name the folder that mislabel audit wrote, which holds {PAGE}.")
    inside = sorted(entry.parent for entry in folder.glob(f"*/{PAGE}")) if folder.is_dir() else []
    if inside:
        raise ResultsError(f"{folder} holds several audits; name one: {', '.join(map(str, inside[:5]))}.")
    raise ResultsError(f"{folder} holds no {PAGE}: name the folder that mislabel audit wrote, or run it first.")


class _Request(BaseHTTPRequestHandler):
    """One request: GET of the page, GET or PUT of the decisions, and nothing else."""

    server: ReviewServer
    server_version = "mislabel"
    sys_version = ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        if (place := self._place()) == "":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)
        elif place == "decisions":
            self._tell(HTTPStatus.OK, asdict(self.server.kept.read()))

    def do_PUT(self) -> None:
        if (place := self._place()) is None:
            return None
        if place != "decisions":
            return self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)
        # A page of another origin cannot send this type without asking first, and is never allowed to.
        if self.headers.get_content_type() != "application/json" or self.headers.get("Origin") is None:
            return self.send_error(HTTPStatus.FORBIDDEN)
        if (revision := self.headers.get("If-Match")) is None:
            return self.send_error(HTTPStatus.PRECONDITION_REQUIRED)
        size = self.headers.get("Content-Length", "")
        if not size.isascii() or not size.isdigit() or len(size) > 15:
            return self.send_error(HTTPStatus.LENGTH_REQUIRED)
        if int(size) > LARGEST:
            return self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        raw = self.rfile.read(int(size))
        if len(raw) < int(size):
            return self.send_error(HTTPStatus.BAD_REQUEST)
        return self._save(raw, revision)

    def _save(self, raw: bytes, revision: str) -> None:
        kept = self.server.kept
        try:
            saved = kept.save(raw, revision)
        except StaleDecisionsError as error:
            self._tell(HTTPStatus.CONFLICT, {"problem": str(error)})
        except DecisionsError as error:
            self._tell(HTTPStatus.UNPROCESSABLE_ENTITY, {"problem": str(error)})
        except OSError as error:
            told = f"{kept.path} could not be written: {error.strerror or error}."
            self._tell(HTTPStatus.INTERNAL_SERVER_ERROR, {"problem": told})
        else:
            self._tell(HTTPStatus.OK, {"revision": saved})

    def _place(self) -> str | None:
        """What is asked for, behind the token; None where the request was refused."""
        if self.headers.get_all("Host") != [self.server.host]:
            return self._refuse(HTTPStatus.FORBIDDEN)
        token, _, place = self.path.removeprefix("/").partition("/")
        known = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode("ascii"))
        if not known or self.path != f"/{token}/{place}" or place not in ("", "decisions"):
            return self._refuse(HTTPStatus.NOT_FOUND)
        origins = self.headers.get_all("Origin", [])
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        if any(origin != f"http://{self.server.host}" for origin in origins):
            return self._refuse(HTTPStatus.FORBIDDEN)
        # The page itself may be opened from a link; decisions are asked for by the page alone.
        if place and site not in ("same-origin", "none"):
            return self._refuse(HTTPStatus.FORBIDDEN)
        return place

    def _refuse(self, status: HTTPStatus) -> str | None:
        self.send_error(status)
        return None

    def _tell(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(content).encode("ascii"))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """One line, without what was asked for."""
        status = HTTPStatus(code)
        self._send(status, "text/plain; charset=utf-8", f"{status.value} {status.phrase}\n".encode("ascii"))

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", f"{policy(served=True)}; frame-ancestors 'none'")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: addresses hold the token."""
