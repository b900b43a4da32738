"""Views of models and their prices."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.domain.model import Model
from threadkeep.domain.money import TOKENS_PRICED, Price, amount_text
from threadkeep.wire.view import CompleteListView, View

Amount = Annotated[str, Meta(examples=["3.00"])]


class PriceView(View, frozen=True, kw_only=True):
    """What a model costs per million tokens, in the server's currency."""

    input: Annotated[Amount, Meta(description="The price of a million tokens of input, as a decimal.")]
    cached_input: Annotated[Amount, Meta(description="The price of input from the cache, as a decimal.")]
    cache_write: Annotated[Amount, Meta(description="The price of input that is written to the cache.")]
    output: Annotated[Amount, Meta(description="The price of a million tokens of output, as a decimal.")]


class ModelView(View, frozen=True, kw_only=True):
    """A model that can be chosen."""

    id: Annotated[str, Meta(description="The gateway and the model's name there.", examples=["openai/gpt-5"])]
    gateway: Annotated[str, Meta(description="The gateway that offers it, the first part of its id.")]
    name: Annotated[str, Meta(description="The model's name, as its provider spells it.")]
    context_tokens: Annotated[int, Meta(description="The maximum size of a request, with the reply.")]
    max_output_tokens: Annotated[
        int | None, Meta(description="The most tokens that one reply can have, if known.")
    ]
    supports_tools: Annotated[bool, Meta(description="Whether it can call tools.")]
    takes_images: Annotated[bool, Meta(description="Whether it accepts images in messages.")]
    takes_pdfs: Annotated[bool, Meta(description="Whether it accepts PDF files as they are.")]
    price: Annotated[PriceView | None, Meta(description="`null` if it is unknown.")]
    default: Annotated[bool, Meta(description="Whether it answers if nobody chooses another.")]


class ModelsView(CompleteListView, frozen=True, kw_only=True):
    """The models that you can choose, the default one first."""

    items: Annotated[
        Sequence[ModelView], Meta(description="The models that you can choose, the default one first.")
    ]


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
