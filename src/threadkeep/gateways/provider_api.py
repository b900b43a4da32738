"""A provider's API, and the gateway that speaks it. Each API is described in a file of its own."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from threadkeep.gateways.encoding import encode
from threadkeep.gateways.endpoint import Endpoint
from threadkeep.gateways.files import has_files
from threadkeep.gateways.http import Provider, ReplyReader, RetryPolicy
from threadkeep.gateways.quirks import ProviderQuirks
from threadkeep.ports.gateway import ModelEvent, ModelRequest, TakenFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderApi:
    """What differs between the APIs of providers."""

    name: str
    default_url: str
    default_model: str
    context_tokens: int
    request_url: Callable[[httpx2.URL], str]
    """Where requests go, below the provider's address."""
    headers: Callable[[str], Mapping[str, str]]
    """The headers that carry this key."""
    takes_files: Callable[[str, Endpoint], TakenFiles]
    body: Callable[[ModelRequest, str, ProviderQuirks], dict[str, Any]]
    """A request in this API's form; the text is the default model."""
    reply_reader: Callable[[str], ReplyReader]
    """A reader that removes this key from errors."""


class ProviderGateway:
    """A model behind a provider's API."""

    supports_tools = True

    def __init__(
        self,
        api: ProviderApi,
        endpoint: Endpoint,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        patience: RetryPolicy | None = None,
    ) -> None:
        self._api = api
        self._endpoint = endpoint
        self._key = endpoint.key
        self._quirks: dict[str, ProviderQuirks] = {}
        self.name = api.name
        self.default_model = endpoint.model
        self.context_tokens = endpoint.context_tokens or api.context_tokens
        url, headers = api.request_url(endpoint.address), api.headers(self._key)
        self._provider = Provider(url, headers, self._key, patience or RetryPolicy(), transport)

    def takes_files(self, model: str | None) -> TakenFiles:
        """Which files a model accepts directly."""
        return self._api.takes_files(model or self.default_model, self._endpoint)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Calls the model; raises GatewayError, ends with ModelStopped."""
        quirks = self._quirks.setdefault(request.model or self.default_model, ProviderQuirks())
        return self._provider.ask_adapting(
            lambda: encode(self._api.body(request, self.default_model, quirks)),
            lambda: self._api.reply_reader(self._key),
            quirks.learn,
            in_thread=has_files(request),
        )

    async def close(self) -> None:
        """Closes connections."""
        await self._provider.close()
