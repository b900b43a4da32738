"""Whether the sign-in providers respond, and are what the settings say."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

from threadkeep.bootstrap import build_providers
from threadkeep.doctor.finding import Finding
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.sign_in.identity import SignInProblem
from threadkeep.http.sign_in.openid.provider import OpenIdProvider
from threadkeep.settings import Settings


async def check_providers(settings: Settings) -> AsyncGenerator[Finding]:
    """Asks each provider of the settings file what it is. Nobody signs in."""
    async with AsyncExitStack() as opened:
        try:
            providers = build_providers(settings, opened)
        except SettingsError as exc:
            yield Finding("provider", "problem", exc.message, "Run this in the server's environment.")
            return
        for finding in await asyncio.gather(*(_check(*it) for it in providers.items())):
            yield finding


async def _check(name: str, provider: OpenIdProvider) -> Finding:
    address = f"There, the address to come back to must be {provider.redirect_uri}"
    try:
        await provider.check()
        is_never_asked_again = await provider.leaves_refresh_tokens()
    except SignInProblem as exc:
        advice = f"Check `issuer` in [sign_in.{name}], and whether this machine reaches it. {address}."
        return Finding(f"provider {name}", "problem", exc.detail or exc.problem, advice)
    if is_never_asked_again:
        return Finding(
            f"provider {name}",
            "warning",
            f"{provider.issuer} responds, but may give no refresh tokens. Without them, people sign in again "
            "every day, and the API keys of a user who was removed there keep working.",
            f"Add `offline_access` to `scopes` in [sign_in.{name}]. {address}.",
        )
    return Finding(f"provider {name}", "ok", f"{provider.issuer} responds. {address}.")
