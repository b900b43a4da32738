"""The provider in a process of its own, and the proxy in front of it, which changes what tests want."""

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import jwt

CLIENT_ID = "threadkeep"
CLIENT_SECRET = "s3cret&more"

Claims = dict[str, Any]
Lie = Callable[[Claims], str]
"""Makes an ID token of the claims of a true one."""


class Provider:
    """A provider that answers truly, until a test says otherwise."""

    def __init__(self, url: str, inside: str) -> None:
        self.url = url
        self.issuer = f"{url}/o"
        self._inside = inside
        self.key = ""
        self.heard: list[str] = []
        """The paths of the requests."""
        self.tell_truth()
        self.describe("nobody")

    def tell_truth(self) -> None:
        """Ends all that a test has changed."""
        self.is_down = False
        self.loses_replies = False
        """Does what it is asked; nobody hears of it."""
        self.lie: Lie | None = None
        self.broken = ""
        """Requests whose path ends like this are not answered."""
        self.replaced: dict[str, Callable[[Claims], Claims]] = {}
        """By a path's end: what becomes of a reply."""
        self.heard.clear()

    def describe(self, person: str, **claims: Any) -> None:
        """Adds a person, or says something else of them."""
        self._do(do="describe", person=person, claims=claims)

    def remove(self, person: str) -> None:
        """Forgets a person."""
        self._do(do="remove", person=person)

    def rotate(self) -> None:
        """Signs with a new key; the old one is published no more."""
        self._do(do="rotate")

    def signed(self, claims: Claims) -> str:
        """An ID token with the provider's own key, which its header names."""
        public = jwt.PyJWK.from_dict(self._published())
        return jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": public.key_id})

    def _published(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._inside}/o/.well-known/jwks.json") as reply:
            return json.load(reply)["keys"][0]

    def _do(self, **asked: Any) -> None:
        body = json.dumps(asked).encode()
        with urllib.request.urlopen(f"{self._inside}/control", body) as reply:
            self.key = json.load(reply)["key"]

    def pass_on(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """What the provider replies, changed as the test wants it."""
        self.heard.append(path.partition("?")[0])
        asked = urllib.request.Request(f"{self._inside}{path}", body, headers, method=method)
        opener = urllib.request.build_opener(_NoRedirect)
        try:
            reply = opener.open(asked)
        except urllib.error.HTTPError as exc:
            reply = exc
        with reply:
            content, status, given = reply.read(), cast("int", reply.status), reply.headers.items()
        if "json" in dict(given).get("Content-Type", ""):
            fields = self._changed(path, json.loads(content))
            content, status = json.dumps(fields).encode(), 400 if "error" in fields else status
        kept = [
            (name, it)
            for name, it in given
            if name.lower() in {"content-type", "location", "www-authenticate"}
        ]
        return status, kept, content

    def _changed(self, path: str, fields: Claims) -> Claims:
        if self.lie is not None and "id_token" in fields:
            claims = jwt.decode(fields["id_token"], options={"verify_signature": False})
            fields["id_token"] = self.lie(claims)
        for end, change in self.replaced.items():
            if path.partition("?")[0].endswith(end):
                fields = change(fields)
        return fields


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@contextmanager
def running_provider(*redirect_uris: str) -> Generator[Provider]:
    """A provider on loopback, with one application: ours."""
    providers: list[Provider] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider = providers[0]
            path = self.path.partition("?")[0]
            if provider.is_down or (provider.broken and path.endswith(provider.broken)):
                self.close_connection = True
                return
            size = int(self.headers.get("Content-Length", 0))
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() in {"authorization", "content-type", "cookie"}
            }
            body = self.rfile.read(size) if self.command == "POST" else None
            status, given, content = provider.pass_on(self.command, self.path, headers, body)
            if provider.loses_replies:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in given:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - the base's name

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        url = f"http://127.0.0.1:{proxy.server_port}"
        program = [sys.executable, "-m", "tests.http.sign_in.provider.program"]
        process = subprocess.Popen(
            [*program, f"{url}/o", CLIENT_SECRET, *redirect_uris],
            cwd=Path(__file__).parents[4],
            stdout=subprocess.PIPE,
            text=True,
        )
        serving = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            assert process.stdout
            port = process.stdout.readline().strip()
            assert port, "the provider did not start"
            providers.append(Provider(url, f"http://127.0.0.1:{port}"))
            yield providers[0]
        finally:
            proxy.shutdown()
            serving.join()
            process.kill()
            process.communicate()
