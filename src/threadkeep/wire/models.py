"""Views of models and their prices."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.domain.model import Model
from threadkeep.domain.money import TOKENS_PRICED, Price, amount_text
from threadkeep.wire.view import View

Amount = Annotated[str, Meta(description="A decimal number.", examples=["3.00"])]


class PriceView(View, frozen=True, kw_only=True):
    """What a model costs per million tokens, in the server's currency."""

    input: Amount
    cached_input: Amount
    cache_write: Amount
    output: Amount


class ModelView(View, frozen=True, kw_only=True):
    """A model that can be chosen."""

    id: Annotated[str, Meta(description="The gateway and the model's name there.", examples=["openai/gpt-5"])]
    gateway: str
    name: str
    context_tokens: Annotated[int, Meta(description="The maximum size of a request, with the reply.")]
    max_output_tokens: int | None
    supports_tools: bool
    takes_images: bool
    takes_pdfs: bool
    price: Annotated[PriceView | None, Meta(description="`null` if it is unknown.")]
    default: Annotated[bool, Meta(description="Whether it answers if nobody chooses another.")]


class ModelsView(View, frozen=True, kw_only=True):
    """The models that you can choose, the default one first."""

    items: Sequence[ModelView]


def model_view(model: Model, *, default: bool) -> ModelView:
    """A model and what is known about it."""
    return ModelView(
        id=model.id,
        gateway=model.gateway,
        name=model.name,
        context_tokens=model.context_tokens,
        max_output_tokens=model.max_output_tokens,
        supports_tools=model.supports_tools,
        takes_images=model.images is not None,
        takes_pdfs=model.pdfs,
        price=price_view(model.price) if model.price else None,
        default=default,
    )


def price_view(price: Price) -> PriceView:
    """A price per million tokens."""
    cached = price.input if price.cached_input is None else price.cached_input
    written = price.input if price.cache_write is None else price.cache_write
    return PriceView(
        input=_per_million(price.input),
        cached_input=_per_million(cached),
        cache_write=_per_million(written),
        output=_per_million(price.output),
    )


def _per_million(price: int) -> str:
    return amount_text(price * TOKENS_PRICED)
