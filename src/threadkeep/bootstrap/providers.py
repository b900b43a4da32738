"""The providers with which people sign in."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import httpx2

from threadkeep.gateways.addresses import resolve_allowed
from threadkeep.gateways.http import open_transport
from threadkeep.settings import Settings

if TYPE_CHECKING:
    from threadkeep.http.sign_in.openid.provider import OpenIdProvider


def build_providers(settings: Settings, opened: AsyncExitStack) -> Mapping[str, "OpenIdProvider"]:
    """The providers in the settings; nothing is sent yet, so that one may be down. `opened` closes them."""
    public_url = settings.sign_in_rules.public_url
    if not settings.sign_in or public_url is None:
        return {}
    from threadkeep.http.sign_in.openid.provider import OpenIdProvider  # noqa: PLC0415 - loads cryptography

    providers: dict[str, OpenIdProvider] = {}
    for name, table in settings.sign_in.items():
        # Only the operator names the provider, but the provider names further addresses.
        transport = open_transport(httpx2.URL(table.issuer), resolve_allowed(settings.networks_denied))
        provider = OpenIdProvider(
            table,
            table.secret(name),
            table.admission(name, settings.sign_in),
            f"{public_url.text}/oauth/sign-in/{name}",
            httpx2.AsyncClient(transport=transport, timeout=10),
        )
        opened.push_async_callback(provider.close)
        providers[name] = provider
    return providers
