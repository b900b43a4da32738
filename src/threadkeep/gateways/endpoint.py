"""Where a provider's models are, as the operator configures it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import httpx2

from threadkeep.domain.errors import SettingsError
from threadkeep.domain.model import ListedModel

Taken = Literal["auto", "on", "off"]
"""Whether a model takes a type of file; `auto` goes by its name."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """How to reach a provider, and what to expect of its models."""

    url: str
    api_key: str = field(default="", repr=False)
    models: Mapping[str, ListedModel] = field(default_factory=dict[str, ListedModel])
    """What its operator says about models, by name."""
    is_priced: bool = True
    """Whether the table's prices are in the operator's currency."""
    images: Taken = "auto"
    """Whether its models take images, unless the operator says so about the model itself."""
    pdfs: Taken = "auto"

    @cached_property
    def address(self) -> httpx2.URL:
        """The provider's address; SettingsError if the operator entered something else."""
        return _checked_url(self.url)

    @property
    def key(self) -> str:
        """The API key, in a form that a header can carry; the error never repeats it."""
        key = self.api_key.strip()
        if not (key.isascii() and key.isprintable()):
            raise SettingsError("The API key contains invalid characters.")
        return key


def _checked_url(url: str) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url.strip().rstrip("/"))
    except httpx2.InvalidURL as exc:
        raise SettingsError(f"The model's address isn't a valid URL: {exc}") from exc
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise SettingsError("The model's address must start with http:// or https:// and include a host.")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise SettingsError("The model's address can't contain a password, query or fragment.")
    return parsed
