"""Which model to connect, and which time zone to tell it."""

from datetime import UTC, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Meta

from threadkeep.domain.errors import SettingsError
from threadkeep.settings.sign_in import SignInSettings
from threadkeep.settings.values import Secret, split_url


class ModelSettings(SignInSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model answers."""

    gateway: Annotated[
        Literal["anthropic", "openai", "local"],
        Meta(
            description="Model gateway: anthropic (Messages API), openai (chat completions, any compatible "
            "server) or local (the small demonstration model in this process)."
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

    def check_gateway(self) -> None:
        """Rejects what is not an address."""
        if self.gateway_url:
            split_url(self.gateway_url, "GATEWAY_URL")

    def check_timezone(self) -> None:
        """Rejects a time zone that doesn't exist."""
        if self.timezone != "UTC" and self.timezone not in available_timezones():
            raise SettingsError(f"THREADKEEP_TIMEZONE: unknown time zone {self.timezone!r}.")

    @property
    def zone(self) -> tzinfo:
        """The time zone of `timezone`."""
        return UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)
