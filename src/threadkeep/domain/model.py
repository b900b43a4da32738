"""Models that can be chosen, and the gateways that reach them."""

from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.image import ImageTokenRule
from threadkeep.domain.money import Price

DEFAULT_GATEWAY = "default"
"""The gateway of the `THREADKEEP_GATEWAY*` settings; it wins where a bare name is ambiguous."""


class GatewayKind(Choice):
    """The APIs that gateways speak."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    RESPONSES = "responses"
    LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model behind a gateway, and what is known about it."""

    gateway: str
    """The gateway's name; empty for the Guide, which needs none."""
    name: str
    """How the provider calls it."""
    context_tokens: int
    """The maximum size of a request, including the reply."""
    max_output_tokens: int | None = None
    supports_tools: bool = True
    images: ImageTokenRule | None = None
    """How it counts images; None if it doesn't accept any."""
    pdfs: bool = False
    """Whether it accepts PDFs as files."""
    price: Price | None = None
    """None if it is unknown."""

    @property
    def id(self) -> str:
        """The model's id: its gateway and its name."""
        return f"{self.gateway}/{self.name}" if self.gateway else self.name
