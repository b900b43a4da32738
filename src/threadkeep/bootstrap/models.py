"""The models that reply: the gateways of the settings, and those that admins add."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from threadkeep.domain.guide import GUIDE_MODEL
from threadkeep.domain.model import DEFAULT_GATEWAY, GatewayConfig, GatewayKind
from threadkeep.domain.secret import Secret
from threadkeep.gateways.addresses import resolve_allowed
from threadkeep.gateways.anthropic import ANTHROPIC
from threadkeep.gateways.endpoint import Endpoint
from threadkeep.gateways.guide import GuideGateway
from threadkeep.gateways.http import open_transport
from threadkeep.gateways.known_models import known_models
from threadkeep.gateways.local import LocalGateway
from threadkeep.gateways.openai import OPENAI
from threadkeep.gateways.provider_api import ProviderGateway
from threadkeep.gateways.registry import ConfiguredGateway, GatewayRegistry
from threadkeep.gateways.responses import RESPONSES
from threadkeep.gateways.tester import ProviderTester
from threadkeep.settings import Settings
from threadkeep.weights import DEMONSTRATION, weights_folder

PROVIDER_APIS = {api.name: api for api in (ANTHROPIC, OPENAI, RESPONSES)}


def has_model(settings: Settings) -> bool:
    """Whether the default gateway has a model: by key, by address, or in this process."""
    if settings.gateway == "local":
        return bool(settings.model) or weights_folder(DEMONSTRATION.package) is not None
    return bool(settings.gateway_api_key or settings.gateway_url)


def is_demonstration(settings: Settings) -> bool:
    """Whether the settings leave the reply to the bundled small model."""
    return settings.gateway == "local" and settings.model is None and has_model(settings)


def has_guide(settings: Settings) -> bool:
    """Whether there is an agent that needs no model."""
    return is_demonstration(settings) if settings.guide == "auto" else settings.guide == "on"


def build_models(settings: Settings) -> GatewayRegistry:
    """The models of the settings, and the Guide if there is one."""
    own = {GUIDE_MODEL: GuideGateway()} if has_guide(settings) else {}
    return GatewayRegistry(partial(connect, settings), gateway_configs(settings), own)


def gateway_configs(settings: Settings) -> Iterator[GatewayConfig]:
    """The gateways of the settings, the default one first."""
    if has_model(settings):
        yield GatewayConfig(
            name=DEFAULT_GATEWAY,
            kind=GatewayKind(settings.gateway),
            url=settings.gateway_url,
            api_key=Secret(settings.gateway_api_key) if settings.gateway_api_key else None,
            default_model=settings.model,
            is_fixed=True,
        )
    for name, table in settings.gateways.items():
        yield table.config(name)


def connect(settings: Settings, config: GatewayConfig) -> ConfiguredGateway:
    """Opens a gateway; SettingsError if its configuration can't work. Nothing is sent yet."""
    if config.kind is GatewayKind.LOCAL:
        path = Path(config.default_model) if config.default_model else None
        local = LocalGateway(path, name=config.name)
        return ConfiguredGateway(config, local, local.model.name)
    api, endpoint, transport = PROVIDER_APIS[config.kind], endpoint_of(settings, config), None
    if not config.is_fixed:  # only the operator can name any address
        transport = open_transport(endpoint.address, resolve_allowed(settings.networks_denied))
    gateway = ProviderGateway(api, endpoint, name=config.name, transport=transport)
    first_listed = config.models[0].name if config.models else api.default_model
    return ConfiguredGateway(config, gateway, config.default_model or first_listed)


def build_tester(settings: Settings) -> ProviderTester:
    """What tests gateways that admins name."""
    return ProviderTester(lambda config: connect(settings, config), settings.networks_denied)


def endpoint_of(settings: Settings, config: GatewayConfig) -> Endpoint:
    """Where a provider's models are. What the settings say about files is about the default gateway."""
    is_default = config.name == DEFAULT_GATEWAY
    return Endpoint(
        url=config.url or PROVIDER_APIS[config.kind].default_url,
        api_key=config.api_key.reveal() if config.api_key else "",
        models={it.name: it for it in config.models},
        is_priced=settings.currency == known_models().currency,
        images=settings.model_images if is_default else "auto",
        pdfs=settings.model_pdfs if is_default else "auto",
    )
