"""Views of gateways: everything but their keys."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.model import GatewayConfig, GatewayKind, ListedModel
from threadkeep.domain.secret import MASK
from threadkeep.ports.gateways import GatewayHealth, GatewayState, GatewayTest, SavedGateway
from threadkeep.wire.models import PriceView, price_view
from threadkeep.wire.view import CompleteListView, Time, View, rfc3339

MaskedKey = Annotated[
    str | None, Meta(description="A mask in place of the key, or null. Send the mask back to keep the key.")
]


class ListedModelView(View, frozen=True, kw_only=True):
    """A model that a gateway lists, and what its admin says about it."""

    name: Annotated[str, Meta(description="The model's name, as the provider spells it.")]
    context_tokens: Annotated[
        int | UnsetType, Meta(description="How many tokens of input and output fit together.")
    ] = UNSET
    max_output_tokens: Annotated[
        int | UnsetType, Meta(description="The most tokens that one reply can have.")
    ] = UNSET
    supports_tools: Annotated[
        bool | UnsetType, Meta(description="Whether it can call tools, as the admin said.")
    ] = UNSET
    takes_images: Annotated[
        bool | UnsetType, Meta(description="Whether it accepts images, as the admin said.")
    ] = UNSET
    takes_pdfs: Annotated[
        bool | UnsetType, Meta(description="Whether it accepts PDF files, as the admin said.")
    ] = UNSET
    price: Annotated[PriceView | UnsetType, Meta(description="What it charges for a million tokens.")] = UNSET


class GatewayView(View, frozen=True, kw_only=True):
    """One account with a provider, and whether it works."""

    name: Annotated[str, Meta(description="The first part of its models' ids, `name/model`.")]
    kind: Annotated[GatewayKind, Meta(description="The API that the provider speaks.")]
    url: Annotated[str | None, Meta(description="The API's address; null means the provider's own.")]
    api_key: MaskedKey
    models: Annotated[
        Sequence[ListedModelView],
        Meta(description="The models that can be chosen; empty means anything it has."),
    ]
    default_model: Annotated[str | None, Meta(description="For agents that name no model.")]
    source: Annotated[
        Literal["settings", "admin"], Meta(description="Only those of an admin can be changed over the API.")
    ]
    status: Annotated[
        GatewayState, Meta(description="What the last request to the provider has shown on this node.")
    ]
    error: Annotated[str | UnsetType, Meta(description="What the provider said last, if it fails.")] = UNSET
    version: Annotated[
        int | UnsetType, Meta(description="Grows with every change; the `ETag` for `If-Match`.")
    ] = UNSET
    created_at: Annotated[
        Time | UnsetType, Meta(description="When it was connected; not for those of the settings.")
    ] = UNSET
    updated_at: Annotated[
        Time | UnsetType, Meta(description="When it was last changed; not for those of the settings.")
    ] = UNSET


class GatewaysView(CompleteListView, frozen=True, kw_only=True):
    """All connections to model providers."""

    items: Annotated[
        Sequence[GatewayView], Meta(description="Every gateway; those of the settings file come first.")
    ]


class GatewayTestView(View, frozen=True, kw_only=True):
    """What a test of a gateway found."""

    ok: Annotated[bool, Meta(description="Whether the gateway answered as it should.")]
    models: Annotated[Sequence[str], Meta(description="The models that the provider lists, if it does.")]
    error: Annotated[str | UnsetType, Meta(description="Why the test failed, if it did.")] = UNSET


class GatewayStateView(View, frozen=True, kw_only=True):
    """Whether a gateway works, as anybody may know it."""

    name: Annotated[str, Meta(description="The gateway's name, the first part of its models' ids.")]
    status: Annotated[GatewayState, Meta(description="Whether it works, as far as is known.")]
    reason: Annotated[
        str | UnsetType, Meta(description="Why it doesn't work, in a word that reveals nothing.")
    ] = UNSET


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
