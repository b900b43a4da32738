"""How users reach a Threadkeep: simulated nodes in this process, or real ones over HTTP."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec


class Lost(Exception):
    """The connection broke: nobody knows what became of the request."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    node: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return msgspec.json.decode(self.body) if self.body else None

    @property
    def code(self) -> str:
        """The code of its error."""
        try:
            return str(self.json["error"]["code"])
        except (msgspec.MsgspecError, KeyError, TypeError):
            return ""


class Wire(Protocol):
    """Requests to whichever node answers."""

    async def request(
        self, user: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request and its whole response; raises Lost if the connection breaks."""
        ...

    def stream(self, user: str, path: str, headers: Mapping[str, str]) -> AsyncGenerator[Answer | bytes]:
        """A response as it comes: its head first, then its pieces. Raises Lost if the connection breaks."""
        ...
