"""Views of gateways: everything but their keys."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.model import GatewayConfig, GatewayKind, ListedModel
from threadkeep.domain.secret import MASK
from threadkeep.ports.gateways import GatewayHealth, GatewayState, GatewayTest, SavedGateway
from threadkeep.wire.models import PriceView, price_view
from threadkeep.wire.view import Time, View, rfc3339

MaskedKey = Annotated[
    str | None, Meta(description="A mask in place of the key, or null. Send the mask back to keep the key.")
]


class ListedModelView(View, frozen=True, kw_only=True):
    """A model that a gateway lists, and what its admin says about it."""

    name: str
    context_tokens: int | UnsetType = UNSET
    max_output_tokens: int | UnsetType = UNSET
    supports_tools: bool | UnsetType = UNSET
    takes_images: bool | UnsetType = UNSET
    takes_pdfs: bool | UnsetType = UNSET
    price: PriceView | UnsetType = UNSET


class GatewayView(View, frozen=True, kw_only=True):
    """One account with a provider, and whether it works."""

    name: str
    kind: GatewayKind
    url: str | None
    api_key: MaskedKey
    models: Sequence[ListedModelView]
    default_model: str | None
    source: Annotated[
        Literal["settings", "admin"], Meta(description="Only those of an admin can be changed over the API.")
    ]
    status: Annotated[
        GatewayState, Meta(description="What the last request to the provider has shown on this node.")
    ]
    error: str | UnsetType = UNSET
    version: int | UnsetType = UNSET
    created_at: Time | UnsetType = UNSET
    updated_at: Time | UnsetType = UNSET


class GatewayTestView(View, frozen=True, kw_only=True):
    """What a test of a gateway found."""

    ok: bool
    models: Annotated[Sequence[str], Meta(description="The models that the provider lists, if it does.")]
    error: str | UnsetType = UNSET


class GatewayStateView(View, frozen=True, kw_only=True):
    """Whether a gateway works, as anybody may know it."""

    name: str
    status: GatewayState
    reason: str | UnsetType = UNSET


def _listed_model_view(model: ListedModel) -> ListedModelView:
    """A model as its gateway lists it."""
    abilities = ("context_tokens", "max_output_tokens", "supports_tools", "takes_images", "takes_pdfs")
    said: dict[str, Any] = {name: getattr(model, name) for name in abilities}
    return ListedModelView(
        name=model.name,
        price=price_view(model.price) if model.price else UNSET,
        **{name: value for name, value in said.items() if value is not None},
    )


def gateway_view(config: GatewayConfig, health: GatewayHealth, saved: SavedGateway | None) -> GatewayView:
    """A gateway, with its key masked."""
    return GatewayView(
        name=config.name,
        kind=config.kind,
        url=config.url,
        api_key=MASK if config.api_key else None,
        models=[_listed_model_view(it) for it in config.models],
        default_model=config.default_model,
        source="admin" if saved else "settings",
        status=health.state,
        error=health.error or UNSET,
        version=saved.version if saved else UNSET,
        created_at=rfc3339(saved.created_at) if saved else UNSET,
        updated_at=rfc3339(saved.updated_at) if saved else UNSET,
    )


def gateway_test_view(found: GatewayTest) -> GatewayTestView:
    """What a test found."""
    return GatewayTestView(ok=found.error is None, models=found.models, error=found.error or UNSET)
