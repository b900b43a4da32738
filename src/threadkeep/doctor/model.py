"""Whether each gateway's model replies."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import urlsplit

from threadkeep.bootstrap import connect, gateway_configs, has_model, is_demonstration
from threadkeep.doctor.finding import Finding
from threadkeep.domain.errors import SettingsError, ThreadkeepError
from threadkeep.domain.model import DEFAULT_GATEWAY, GatewayConfig
from threadkeep.gateways.llama import demonstration_weights
from threadkeep.gateways.refusals import KEY_REFUSED, Refused
from threadkeep.gateways.tester import ask
from threadkeep.ports.gateway import GatewayError, GatewayUnavailable, GatewayUnreachable
from threadkeep.settings import PREFIX, Settings
from threadkeep.storage.inspection import Inspection

_KEY_NAMES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "responses": "OPENAI_API_KEY",
}
GATEWAY_S = 30.0


async def check_models(settings: Settings, inspection: Inspection | None) -> AsyncGenerator[Finding]:
    """Asks a model of each gateway the smallest possible question."""
    saved = [it.config for it in inspection.gateways] if inspection else []
    others = saved
    try:
        others = [it for it in gateway_configs(settings) if it.name != DEFAULT_GATEWAY] + saved
    except SettingsError as exc:
        yield Finding("model", "problem", exc.message, "Run this in the server's environment.")
    if not others or (has_model(settings) and not is_demonstration(settings)):
        yield await _check_default(settings)
    for finding in await asyncio.gather(*(_check_gateway(settings, it) for it in others)):
        yield finding


async def _check_default(settings: Settings) -> Finding:
    """The gateway of the `THREADKEEP_GATEWAY*` settings."""
    if settings.gateway == "local":
        return _local_model(settings)
    if not has_model(settings):
        advice = (
            f"Connect a model on the page, or set {_KEY_NAMES[settings.gateway]}, or {PREFIX}GATEWAY_URL for "
            "a server that needs no key."
        )
        return Finding("model", "problem", f"The gateway {settings.gateway} has no key.", advice)
    config = next(iter(gateway_configs(settings)))
    model, error = await _ask_one(settings, config)
    if error is None:
        return Finding("model", "ok", f"{model} answers.")
    return Finding("model", "problem", error.message, _advice(error, settings, model))


async def _check_gateway(settings: Settings, config: GatewayConfig) -> Finding:
    """A gateway of the settings file, or one that an admin saved."""
    where = (
        f"Check [gateways.{config.name}] in the settings file."
        if config.is_fixed
        else "Test and edit it on the page of models."
    )
    try:
        model, error = await _ask_one(settings, config)
    except ThreadkeepError as exc:  # its key is unreadable, or its address no address
        return Finding("model", "problem", f"{config.name}: {exc.message}", where)
    if error is not None:
        return Finding("model", "problem", f"{config.name}: {error.message}", where)
    return Finding("model", "ok", f"{config.name}: {model} answers.")


async def _ask_one(settings: Settings, config: GatewayConfig) -> tuple[str, GatewayError | None]:
    """The model for agents that don't name one, and why it doesn't answer."""
    opened = connect(settings, config)
    try:
        async with asyncio.timeout(GATEWAY_S):
            await ask(opened.reach(opened.default_model))
    except TimeoutError:
        return opened.default_model, GatewayUnreachable(
            f"{opened.default_model} didn't respond within {GATEWAY_S:g} s."
        )
    except GatewayError as exc:
        return opened.default_model, exc
    finally:
        await opened.gateway.close()
    return opened.default_model, None


def _advice(error: GatewayError, settings: Settings, model: str) -> str:
    if error.message == KEY_REFUSED:
        return f"Check {PREFIX}GATEWAY_API_KEY: is it wrong, expired, or without access to {model}?"
    if isinstance(error, Refused) and "(404)" in error.message:
        return (
            f"Check {PREFIX}MODEL ({model}) and {PREFIX}GATEWAY_URL: the provider doesn't know one of them."
        )
    if isinstance(error, GatewayUnreachable):
        where = _host(settings)
        return f"Check {PREFIX}GATEWAY_URL, and whether {where} can be reached from here (firewall, proxy)."
    if isinstance(error, GatewayUnavailable):
        return "Wait a moment. If it persists, ask the provider about this key's limits."
    return f"Check {PREFIX}MODEL and {PREFIX}GATEWAY_URL."


def _host(settings: Settings) -> str:
    """The model's host, without the rest of the address."""
    return urlsplit(settings.gateway_url or "").hostname or "the provider"


def _local_model(settings: Settings) -> Finding:
    try:
        path = Path(settings.model) if settings.model else demonstration_weights()
    except GatewayError as exc:
        return Finding("model", "problem", exc.message, "Install it, or set the API key of a real model.")
    if not path.is_file():
        return Finding("model", "problem", f"File {path} not found.", f"Check {PREFIX}MODEL.")
    if settings.model is None:
        advice = "Connect a real model on the page, or set ANTHROPIC_API_KEY or OPENAI_API_KEY."
        return Finding("model", "warning", "Only the small demonstration model, which knows little.", advice)
    return Finding("model", "ok", f"{path.name}, in the server's process.")
