"""Gateways that admins save, and how gateways are doing."""

from collections.abc import Sequence
from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.model import GatewayConfig


class GatewayState(Choice):
    """What is known about a gateway's provider."""

    CONNECTED = "connected"
    FAILING = "failing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class GatewayHealth:
    """What the last request to a gateway's provider has shown; `error` is for admins only."""

    state: GatewayState
    error: str | None = None

    @property
    def reason(self) -> str | None:
        """What anybody can know of the error: our own words. The provider's follow a colon."""
        return self.error and f"{self.error.partition(':')[0].rstrip('.')}."


CONNECTED, UNKNOWN = GatewayHealth(GatewayState.CONNECTED), GatewayHealth(GatewayState.UNKNOWN)


def failing(error: ThreadkeepError) -> GatewayHealth:
    """The health of a gateway whose last request ended with this error."""
    return GatewayHealth(GatewayState.FAILING, error.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedGateway:
    """A gateway as an admin saved it."""

    config: GatewayConfig
    version: int
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class GatewayTest:
    """What a test of a gateway found: the models that its provider lists, or what is wrong."""

    models: Sequence[str] = ()
    error: str | None = None
