"""The cookie of a session: when it counts, and how it is given and taken away.

A browser sends cookies by itself, whoever wrote the page that asks. So one counts only for requests of our
own page, and only where no program signs in otherwise.
"""

import re
from urllib.parse import quote

from starlette.requests import HTTPConnection

from threadkeep.domain.errors import Forbidden
from threadkeep.domain.sign_in.public_url import PublicUrl
from threadkeep.domain.sign_in.session import LONGEST_MS

INSTALLATION_CHARACTERS = 8
_READING = {"GET", "HEAD"}
_CREDENTIALS = ("authorization", "x-api-key")
_BEARER_PROTOCOL = "bearer."
# Programs' paths: there, a person's browser has no business.
_OF_PROGRAMS = re.compile(r"/(?:v1|mcp|api/(?:worker[^/]*|runs|hooks))(?:/|\Z)")
# What a person opens in a tab of its own.
_FILES = re.compile(r"/api/(?:artifacts|files)/[^/]+\Z")


class OwnCookie:
    """A cookie of one installation at one address, which no script reads."""

    def __init__(self, public_url: PublicUrl, installation: str, purpose: str = "") -> None:
        self._public_url = public_url
        prefix = "__Host-" if public_url.is_secure else ""
        self.name = f"{prefix}threadkeep-{installation[:INSTALLATION_CHARACTERS]}{purpose}"

    def sent(self, connection: HTTPConnection) -> str | None:
        """The value that a browser sends, whoever made it."""
        for header in connection.headers.getlist("cookie"):
            for pair in header.split(";"):
                name, sign, value = pair.strip().partition("=")
                if sign and name == self.name:
                    return value
        return None

    def given(self, token: str, max_age_s: int = LONGEST_MS // 1000) -> str:
        """The header that gives it to a browser."""
        return f"{self.name}={quote(token)}; Max-Age={max_age_s}; {self._attributes}"

    @property
    def taken(self) -> str:
        """The header that takes it away."""
        return f"{self.name}=; Max-Age=0; {self._attributes}"

    @property
    def _attributes(self) -> str:
        secure = "Secure; " if self._public_url.is_secure else ""
        return f"Path=/; {secure}HttpOnly; SameSite=Lax"


class SessionCookie(OwnCookie):
    """The session cookie of one installation at one address."""

    def __init__(self, public_url: PublicUrl, installation: str) -> None:
        super().__init__(public_url, installation)
        self.before = OwnCookie(public_url, installation, "-before")
        """What marks a browser in which a sign-in with a provider has begun."""

    def token_in(self, connection: HTTPConnection) -> str | None:
        """The token that signs a request in; None if it has none, or signs in otherwise.

        Forbidden if the request doesn't come from our own page.
        """
        if any(name in connection.headers for name in _CREDENTIALS):
            return None
        if any(it.startswith(_BEARER_PROTOCOL) for it in connection.scope.get("subprotocols", ())):
            return None
        path: str = connection.scope["path"].removeprefix(connection.scope.get("root_path", ""))
        token = None if _OF_PROGRAMS.match(path) else self.sent(connection)
        if token is not None:
            self._check_our_page(connection, path)
        return token

    def check_origin(self, connection: HTTPConnection) -> None:
        """Refuses what doesn't come from our own page: it could sign its visitor in as somebody else."""
        if not self._public_url.is_origin(connection.headers.get("origin", "")):
            raise Forbidden(
                f"Only the page at {self._public_url.text} can do this with a sign-in in the browser. "
                "Programs send `Authorization: Bearer …` instead.",
                param="Origin",
            )

    def _check_our_page(self, connection: HTTPConnection, path: str) -> None:
        is_socket = connection.scope["type"] == "websocket"
        if is_socket or connection.scope["method"] not in _READING:
            self.check_origin(connection)
            return
        site = connection.headers.get("sec-fetch-site")
        if site is None:
            self.check_origin(connection)
        elif site != "same-origin" and not _is_opened(connection, path):
            raise Forbidden(
                f"Only the page at {self._public_url.text} can read with a sign-in in the browser.",
                param="Sec-Fetch-Site",
            )


def _is_opened(connection: HTTPConnection, path: str) -> bool:
    """Whether a person opens a file in a tab; the edge checks that they have clicked."""
    how = (connection.headers.get("sec-fetch-mode"), connection.headers.get("sec-fetch-dest"))
    return how == ("navigate", "document") and _FILES.match(path) is not None
