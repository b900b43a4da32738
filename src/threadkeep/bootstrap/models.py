"""The model that replies."""

from importlib.util import find_spec
from pathlib import Path

from threadkeep.domain.guide import GUIDE_MODEL
from threadkeep.gateways.anthropic import ANTHROPIC
from threadkeep.gateways.endpoint import Endpoint
from threadkeep.gateways.guide import GuideGateway
from threadkeep.gateways.llama import WEIGHTS_PACKAGE
from threadkeep.gateways.local import LocalGateway
from threadkeep.gateways.openai import OPENAI
from threadkeep.gateways.provider_api import ProviderGateway
from threadkeep.gateways.responses import RESPONSES
from threadkeep.ports.gateway import Gateway, Models
from threadkeep.settings import Settings

PROVIDER_APIS = {api.name: api for api in (ANTHROPIC, OPENAI, RESPONSES)}


def has_model(settings: Settings) -> bool:
    """Whether a model is available: by key, by address, or in this process."""
    if settings.gateway == "local":
        return bool(settings.model) or find_spec(WEIGHTS_PACKAGE) is not None
    return bool(settings.gateway_api_key or settings.gateway_url)


def is_demonstration(settings: Settings) -> bool:
    """Whether the bundled small model replies."""
    return settings.gateway == "local" and settings.model is None and has_model(settings)


def has_guide(settings: Settings) -> bool:
    """Whether there is an agent that needs no model."""
    return is_demonstration(settings) if settings.guide == "auto" else settings.guide == "on"


def build_gateway(settings: Settings) -> Gateway | None:
    """The gateway that the settings select; None if there is none."""
    if not has_model(settings):
        return None
    if settings.gateway == "local":
        return LocalGateway(Path(settings.model) if settings.model else None)
    return ProviderGateway(PROVIDER_APIS[settings.gateway], build_endpoint(settings))


def build_endpoint(settings: Settings) -> Endpoint:
    """Where the provider's models are."""
    api = PROVIDER_APIS[settings.gateway]
    return Endpoint(
        url=settings.gateway_url or api.default_url,
        api_key=settings.gateway_api_key or "",
        model=settings.model or api.default_model,
        images=settings.model_images,
        pdfs=settings.model_pdfs,
    )


def build_models(settings: Settings, gateway: Gateway | None) -> Models:
    """The operator's models, and the Guide if there is one."""
    return Models(gateway, {GUIDE_MODEL: GuideGateway()} if has_guide(settings) else {})
