"""The address at which people open the page."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from threadkeep.domain.errors import InvalidRequest

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """An address without anything after its path: by https, or of this machine by http."""

    text: str
    """Without a slash at its end."""
    scheme: str
    host: str
    port: int

    @staticmethod
    def read(text: str) -> "PublicUrl":
        """An address as an operator writes it; InvalidRequest says what is wrong with it."""
        try:
            parts = urlsplit(text.strip())
            host, port = parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)
        except ValueError:
            host = port = None
            parts = urlsplit("")
        if (
            not host
            or not port
            or parts.scheme not in _DEFAULT_PORTS
            or parts.query
            or parts.fragment
            or parts.username is not None
        ):
            raise InvalidRequest("it is not an address such as https://chat.example")
        origin = f"{parts.scheme}://{parts.netloc.lower()}"
        return PublicUrl(f"{origin}{parts.path.rstrip('/')}", parts.scheme, host, port)

    @property
    def is_secure(self) -> bool:
        """Whether it is reached over TLS, so that its cookies can be kept from everything else."""
        return self.scheme == "https"

    def is_origin(self, origin: str) -> bool:
        """Whether an `Origin` header names it."""
        try:
            parts = urlsplit(origin)
            port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
        except ValueError:
            return False
        return (parts.scheme, parts.hostname, port) == (self.scheme, self.host, self.port)
