"""Gateways over HTTP, for admins."""

from dataclasses import replace
from typing import Annotated, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.model import GatewayConfig, GatewayKind, ListedModel
from threadkeep.domain.money import Price
from threadkeep.domain.secret import MASK, Secret
from threadkeep.handling.etags import etag, expected_version
from threadkeep.handling.routing import RequestContext, ViewResponse
from threadkeep.services.gateways import GatewayReport
from threadkeep.wire.gateways import (
    GatewaysView,
    GatewayTestView,
    GatewayView,
    gateway_test_view,
    gateway_view,
)

T = TypeVar("T")
Amount = str | int | float
LimitedText = Annotated[str, Meta(max_length=5000)]
Tokens = Annotated[int, Meta(gt=0, le=10**9)]


class PriceBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a model charges per million tokens: decimals as texts, or numbers."""

    input: Annotated[Amount, Meta(description="The price of a million tokens of input.")]
    output: Annotated[Amount, Meta(description="The price of a million tokens of output.")]
    cached_input: Annotated[
        Amount | None, Meta(description="The price of input from the cache; by default, that of `input`.")
    ] = None
    cache_write: Annotated[
        Amount | None,
        Meta(description="The price of input that is written to the cache; by default, that of `input`."),
    ] = None


class ListedModelBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A model, and what to know about it where the server doesn't know it by itself."""

    name: Annotated[str, Meta(description="The model's name, as the provider spells it.")]
    context_tokens: Annotated[
        Tokens | None, Meta(description="How many tokens of input and output fit together.")
    ] = None
    max_output_tokens: Annotated[
        Tokens | None, Meta(description="The most tokens that one reply can have.")
    ] = None
    supports_tools: Annotated[
        bool | None,
        Meta(description="Whether it can call tools; unset, Threadkeep's table of models decides."),
    ] = None
    takes_images: Annotated[
        bool | None,
        Meta(description="Whether it accepts images; unset, Threadkeep's table of models decides."),
    ] = None
    takes_pdfs: Annotated[
        bool | None,
        Meta(description="Whether it accepts PDF files; unset, Threadkeep's table of models decides."),
    ] = None
    price: Annotated[
        PriceBody | None, Meta(description="What it charges; without a price, budgets refuse the model.")
    ] = None


class UnsavedGatewayBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An account with a provider."""

    kind: Annotated[GatewayKind, Meta(description="The API that the provider speaks.")]
    url: Annotated[LimitedText | None, Meta(description="By default, the provider's own.")] = None
    api_key: Annotated[
        LimitedText | None, Meta(description="The provider's key, stored encrypted and shown masked.")
    ] = None
    models: Annotated[
        list[str | ListedModelBody],
        Meta(description="What can be chosen: names, or objects that say more. Empty: anything it has."),
    ] = []
    default_model: Annotated[
        str | None, Meta(description="For agents that don't name a model; by default, the first one listed.")
    ] = None


class GatewayBody(UnsavedGatewayBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The gateway to save. A model's id is `name/model`, so the name can't be changed later."""

    name: Annotated[str, Meta(description="A short name; models have the ids `name/model`.")]


class GatewayPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The fields to change: a JSON merge patch (RFC 7396), in which null restores the default."""

    kind: Annotated[GatewayKind | UnsetType, Meta(description="The API that the provider speaks.")] = UNSET
    url: Annotated[
        str | UnsetType | None, Meta(description="The API's address; null means the provider's own.")
    ] = UNSET
    api_key: Annotated[
        str | UnsetType | None,
        Meta(description="The provider's key; the mask keeps the stored one, null removes it."),
    ] = UNSET
    models: Annotated[
        list[str | ListedModelBody] | UnsetType | None,
        Meta(description="All models that can be chosen; null means anything that it has."),
    ] = UNSET
    default_model: Annotated[
        str | UnsetType | None,
        Meta(description="For agents that name no model; null means the first one listed."),
    ] = UNSET


async def list_gateways(request: RequestContext) -> GatewaysView:
    """List every gateway: those of the settings first, which are read-only. For admins."""
    return GatewaysView(items=[_view(it) for it in await request.services.gateways.reports(request.user)])


async def create_gateway(request: RequestContext, *, body: GatewayBody) -> ViewResponse[GatewayView]:
    """Connect a gateway. Every node uses it within seconds, without a restart. For admins."""
    config = _config(body.name, body, kept=None)
    return _response(await request.services.gateways.create(request.user, config))


async def get_gateway(request: RequestContext, *, gateway: str) -> ViewResponse[GatewayView]:
    """Read a gateway. For admins."""
    return _response(await request.services.gateways.get(request.user, gateway))


async def patch_gateway(
    request: RequestContext, *, gateway: str, body: GatewayPatch
) -> ViewResponse[GatewayView]:
    """Change a gateway with a JSON merge patch. With `If-Match`, only if it hasn't changed. For admins.

    A stored key goes only to the address that it was entered for: send `apiKey` again with another `url` or
    `kind`. Replies in progress finish as they began.
    """

    def revise(config: GatewayConfig) -> GatewayConfig:
        given = UnsavedGatewayBody(
            kind=_or(body.kind, config.kind),
            url=_or(body.url, config.url),
            api_key=_or(body.api_key, MASK if config.api_key else None),
            models=_or(body.models, None) or [],
            default_model=_or(body.default_model, config.default_model),
        )
        revised = _config(config.name, given, kept=config)
        return replace(revised, models=config.models) if body.models is UNSET else revised

    return _response(
        await request.services.gateways.update(
            request.user, gateway, revise, expected_version=expected_version(request)
        )
    )


async def delete_gateway(request: RequestContext, *, gateway: str) -> None:
    """Delete a gateway. Replies in progress finish; agents that name its models need others. For admins."""
    await request.services.gateways.delete(request.user, gateway, expected_version=expected_version(request))


async def test_gateway(request: RequestContext, *, gateway: str) -> GatewayTestView:
    """Test a gateway: list its models and ask one of them for a one-word reply. For admins.

    If that fails, the response is still 200; `error` gives the reason.
    """
    return gateway_test_view(await request.services.gateways.test(request.user, gateway))


async def test_unsaved_gateway(request: RequestContext, *, body: UnsavedGatewayBody) -> GatewayTestView:
    """Test the settings of a gateway without saving them. For admins."""
    config = _config("unsaved", body, kept=None)
    return gateway_test_view(await request.services.gateways.test_unsaved(request.user, config))


def _view(report: GatewayReport) -> GatewayView:
    return gateway_view(report.config, report.health, report.saved)


def _response(report: GatewayReport) -> ViewResponse[GatewayView]:
    return ViewResponse(_view(report), headers=etag(report.saved.version) if report.saved else {})


def _config(name: str, body: UnsavedGatewayBody, *, kept: GatewayConfig | None) -> GatewayConfig:
    return GatewayConfig(
        name=name,
        kind=body.kind,
        url=body.url.strip() or None if body.url else None,
        api_key=_key(body, kept),
        models=tuple(_listed(it) for it in body.models),
        default_model=body.default_model,
    )


def _key(body: UnsavedGatewayBody, kept: GatewayConfig | None) -> Secret | None:
    """The key in a request; a mask stands for the stored one, which goes to no other address."""
    if body.api_key != MASK:
        return Secret(body.api_key.strip()) if body.api_key and body.api_key.strip() else None
    if kept is not None and (body.kind, body.url) == (kept.kind, kept.url):
        return kept.api_key
    raise InvalidRequest(
        "Send the API key again: a stored key goes only to the address that it was entered for.",
        param="apiKey",
    )


def _listed(model: str | ListedModelBody) -> ListedModel:
    if isinstance(model, str):
        return ListedModel(name=model)
    said = {name: getattr(model, name) for name in ListedModelBody.__struct_fields__ if name != "price"}
    if model.price is None:
        return ListedModel(**said)
    given = {name: getattr(model.price, name) for name in PriceBody.__struct_fields__}
    try:
        return ListedModel(price=Price.per_million(**given), **said)
    except InvalidRequest as exc:
        raise InvalidRequest(f"The price of {model.name}: {exc.message}", param="models") from exc


def _or(given: T | UnsetType, kept: T) -> T:
    return kept if isinstance(given, UnsetType) else given
