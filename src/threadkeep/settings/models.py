"""Which model to connect, and the time zone for the times it reads."""

from datetime import UTC, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

import msgspec
from msgspec import Meta, Struct

from threadkeep.domain.errors import InvalidRequest, SettingsError
from threadkeep.domain.model import GatewayConfig, GatewayKind, ListedModel, check_gateway_name
from threadkeep.domain.money import Price
from threadkeep.domain.secret import Secret as HiddenValue
from threadkeep.settings.sign_in import SignInSettings
from threadkeep.settings.values import Secret, split_url


class PriceTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a model per million tokens."""

    input: str | float
    output: str | float
    cached_input: str | float | None = None
    cache_write: str | float | None = None

    def price(self, name: str) -> Price:
        """The price; SettingsError names the model."""
        try:
            return Price.per_million(
                input=self.input,
                output=self.output,
                cached_input=self.cached_input,
                cache_write=self.cache_write,
            )
        except InvalidRequest as exc:
            raise SettingsError(f"The price of the model {name}: {exc.message}") from exc


class ModelTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that a gateway lists, and what to know about it."""

    name: str
    context_tokens: Annotated[int, Meta(gt=0)] | None = None
    max_output_tokens: Annotated[int, Meta(gt=0)] | None = None
    supports_tools: bool | None = None
    takes_images: bool | None = None
    takes_pdfs: bool | None = None
    price: PriceTable | None = None

    def listed(self) -> ListedModel:
        """The model as a gateway lists it."""
        return ListedModel(
            name=self.name,
            context_tokens=self.context_tokens,
            max_output_tokens=self.max_output_tokens,
            supports_tools=self.supports_tools,
            takes_images=self.takes_images,
            takes_pdfs=self.takes_pdfs,
            price=self.price.price(self.name) if self.price else None,
        )


class GatewayTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[gateways.NAME]` in the settings file: one account with a provider."""

    kind: Literal["anthropic", "openai", "responses", "local"]
    url: str | None = None
    api_key: str | None = None
    api_key_env: str | None = None
    """The variable that has the key (sources.py)."""
    models: tuple[str | ModelTable, ...] = ()
    default_model: str | None = None

    def __repr__(self) -> str:
        return f"GatewayTable(kind={self.kind!r}, …)"

    def config(self, name: str) -> GatewayConfig:
        """The gateway of this name; only who uses it needs its key: a backup, for one, doesn't."""
        if self.api_key_env and not self.api_key:
            variable = self.api_key_env
            raise SettingsError(
                f"The gateway {name} needs its key in {variable}, or in the file that {variable}_FILE names."
            )
        return GatewayConfig(
            name=name,
            kind=GatewayKind(self.kind),
            url=self.url,
            api_key=HiddenValue(self.api_key) if self.api_key else None,
            models=tuple(ListedModel(name=it) if isinstance(it, str) else it.listed() for it in self.models),
            default_model=self.default_model,
            is_fixed=True,
        )


class ModelSettings(SignInSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model answers."""

    gateway: Annotated[
        Literal["anthropic", "openai", "responses", "local"],
        Meta(
            description="Model gateway: anthropic (Messages API), openai (chat completions, any compatible "
            "server), responses (OpenAI's Responses API) or local (the small demonstration model in this "
            "process)."
        ),
    ] = "local"
    gateway_url: Annotated[
        str | None, Meta(description="The gateway's URL; by default, the provider's own.")
    ] = None
    gateway_api_key: Annotated[
        Secret, Meta(description="The gateway's key; by default, ANTHROPIC_API_KEY or OPENAI_API_KEY.")
    ] = None
    model: Annotated[
        str | None,
        Meta(description="Model for agents that don't name one; for `local`, the path of a GGUF file."),
    ] = None
    gateways: Annotated[
        dict[str, GatewayTable],
        Meta(
            description="More gateways, by name; tables `[gateways.NAME]` in the settings file. See "
            "docs/models.md.",
            extra={"secret": True},
        ),
    ] = msgspec.field(default_factory=dict[str, GatewayTable])
    model_images: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether to send images to models. `auto` sends them to model families known to "
            "accept them."
        ),
    ] = "auto"
    model_pdfs: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether to send PDFs to models as files instead of text. `auto` does so for Claude "
            "and OpenAI's own models."
        ),
    ] = "auto"
    guide: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether to offer the Guide, an agent that demonstrates every feature without a "
            "model. `auto` offers it when the demonstration model is in use."
        ),
    ] = "auto"
    timezone: Annotated[
        str,
        Meta(
            description="Time zone for times shown to the model, and for the days and months of usage and "
            "budgets, such as Asia/Shanghai."
        ),
    ] = "UTC"
    language: Annotated[
        Literal["en", "zh"],
        Meta(description="Language of the labels in briefings that the model reads: English or Chinese."),
    ] = "zh"

    def check_gateway(self) -> None:
        """Rejects what is not an address, and gateways without a usable name."""
        if self.gateway_url:
            split_url(self.gateway_url, "GATEWAY_URL")
        try:
            for name in self.gateways:
                check_gateway_name(name)
        except InvalidRequest as exc:
            raise SettingsError(f"A gateway in the settings: {exc.message}") from exc

    def check_timezone(self) -> None:
        """Rejects a time zone that doesn't exist."""
        if self.timezone != "UTC" and self.timezone not in available_timezones():
            raise SettingsError(f"THREADKEEP_TIMEZONE: unknown time zone {self.timezone!r}.")

    @property
    def zone(self) -> tzinfo:
        """The time zone of `timezone`."""
        return UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)
