"""A provider's API, and the gateway that speaks it. Each API is described in a file of its own."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from threadkeep.domain.model import DEFAULT_GATEWAY, ListedModel, Model
from threadkeep.gateways.encoding import encode
from threadkeep.gateways.endpoint import Endpoint
from threadkeep.gateways.files import has_files
from threadkeep.gateways.http import Provider, ReplyReader, RetryPolicy
from threadkeep.gateways.known_models import known_models
from threadkeep.gateways.model_names import model_names
from threadkeep.gateways.outputs import is_about_output, is_about_schema
from threadkeep.gateways.quirks import ProviderQuirks
from threadkeep.ports.gateway import ModelEvent, ModelRequest, TakenFiles
from threadkeep.ports.gateways import GatewayHealth


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
    """A request in this API's form; the text is the signer of the model's reasoning."""
    reply_reader: Callable[[str], ReplyReader]
    """A reader that removes this key from errors."""


class ProviderGateway:
    """The models behind a provider's API."""

    def __init__(
        self,
        api: ProviderApi,
        endpoint: Endpoint,
        *,
        name: str = "",
        transport: httpx2.AsyncBaseTransport | None = None,
        patience: RetryPolicy | None = None,
    ) -> None:
        self._api = api
        self._endpoint = endpoint
        self._name = name
        self._key = endpoint.key
        self._quirks: dict[str, ProviderQuirks] = {}
        self._described: dict[str, Model] = {}
        url, headers = api.request_url(endpoint.address), api.headers(self._key)
        self._provider = Provider(url, headers, self._key, patience or RetryPolicy(), transport, name)

    def describe(self, model: str) -> Model:
        """What is known about a model: what its operator says, the table of known models, or its API."""
        if (described := self._described.get(model)) is None:
            described = self._described[model] = self._describe(model)
        return described

    def signer(self, model: str) -> str:
        """The signer of a model's reasoning.

        The default gateway signs as its API: that is what it did when it was the only one.
        """
        is_default = self._name == DEFAULT_GATEWAY
        return f"{self._api.name if is_default else self._name}/{model}"

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Calls the model; raises GatewayError, ends with ModelStopped."""
        quirks = self._quirks.setdefault(request.model, ProviderQuirks())
        signer = self.signer(request.model)
        asked = request
        if request.tools and self._endpoint.address.host != httpx2.URL(self._api.default_url).host:
            # Some servers with the same API hold a model to the schema at once, so that it calls no tool.
            asked = replace(request, output=None)

        def learn(reason: str) -> None:
            nonlocal asked
            if asked.output is not None and is_about_output(reason):
                asked = replace(asked, output=None)
                quirks.takes_output = quirks.takes_output and is_about_schema(reason)
            else:
                quirks.learn(reason)

        return self._provider.ask_adapting(
            lambda: encode(self._api.body(asked, signer, quirks)),
            lambda: self._api.reply_reader(self._key),
            learn,
            in_thread=has_files(request),
        )

    @property
    def health(self) -> GatewayHealth:
        """What the last request has shown."""
        return self._provider.health

    async def list_models(self) -> Sequence[str]:
        """The models that the provider lists; raises GatewayError."""
        url = self._api.request_url(self._endpoint.address)
        for end in ("/chat/completions", "/messages", "/responses"):
            url = url.removesuffix(end)
        return model_names(await self._provider.get(f"{url}/models?limit=1000"))

    async def retire(self) -> None:
        """Closes connections once its last call has ended."""
        await self._provider.retire()

    async def close(self) -> None:
        """Closes connections."""
        await self._provider.close()

    def _describe(self, name: str) -> Model:
        said = self._endpoint.models.get(name) or ListedModel(name=name)
        known = known_models().find(name)
        files = self._api.takes_files(name, self._endpoint)
        supports_tools = known is None or known.supports_tools
        return Model(
            gateway=self._name,
            name=name,
            context_tokens=said.context_tokens or (known or self._api).context_tokens,
            max_output_tokens=said.max_output_tokens or (known.max_output_tokens if known else None),
            supports_tools=supports_tools if said.supports_tools is None else said.supports_tools,
            images=files.images,
            pdfs=files.pdfs,
            price=said.price or (known.price if known and self._endpoint.is_priced else None),
        )
