"""An agent that another server runs, which speaks AG-UI."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from threadkeep.domain.secret import Secret, hide_secrets

AG_UI_KEY = "threadkeep:ag-ui"
"""The program of ours that runs the turns of such agents."""

_NO_HEADERS: Mapping[str, Secret] = {}


@dataclass(frozen=True, slots=True)
class RemoteAgent:
    """Where another server runs an agent, and how it is asked. The values of the headers are secrets."""

    url: str
    headers: Mapping[str, Secret] = field(default_factory=lambda: _NO_HEADERS)
    repeat: bool = False
    """Whether a run that was cut off may be made again."""

    @property
    def origin(self) -> str:
        """The scheme, host and port: what a secret may be sent to."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    @property
    def host(self) -> str:
        """The host as people know it, without port and path."""
        return urlsplit(self.url).hostname or ""

    def without_secrets(self) -> "RemoteAgent":
        """The same address without its headers."""
        return replace(self, headers=_NO_HEADERS)

    def hide(self, text: str) -> str:
        """A text of the server, without its secrets."""
        return hide_secrets(text, self.headers.values())
