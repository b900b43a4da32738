"""Models that can be chosen, and the gateways that reach them."""

import re
from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.image import ImageTokenRule
from threadkeep.domain.money import Price
from threadkeep.domain.secret import Secret

DEFAULT_GATEWAY = "default"
"""The gateway of the `THREADKEEP_GATEWAY*` settings; it wins where a bare name is ambiguous."""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def check_gateway_name(name: str) -> None:
    """Refuses a name that can't begin a model's id, or that the settings' own gateway has."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name!r} can't name a gateway. Use up to 63 letters, digits, dots, dashes and underscores, "
            "beginning with a letter or digit.",
            param="name",
        )
    if name == DEFAULT_GATEWAY:
        raise InvalidRequest(
            f"`{name}` is the gateway of the server's own settings; choose another name.", param="name"
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model that a gateway lists, and what its operator says about it; None where they say nothing."""

    name: str
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    supports_tools: bool | None = None
    takes_images: bool | None = None
    takes_pdfs: bool | None = None
    price: Price | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """A gateway as its operator configures it: one account with a provider."""

    name: str
    kind: GatewayKind
    url: str | None = None
    """None means the provider's own address."""
    api_key: Secret | None = None
    models: tuple[ListedModel, ...] = ()
    """The models that it offers; empty means any that the provider has."""
    default_model: str | None = None
    """The model for agents that don't name one; by default the first that it lists."""
    is_fixed: bool = False
    """Whether it comes from the settings, so that nobody can change it while the server runs."""

    @property
    def is_closed(self) -> bool:
        """Whether it has no other models than those that it lists."""
        return self.kind is GatewayKind.LOCAL or bool(self.models)

    @property
    def is_demonstration(self) -> bool:
        """Whether it is the small model that comes with Threadkeep."""
        return self.kind is GatewayKind.LOCAL and self.default_model is None
