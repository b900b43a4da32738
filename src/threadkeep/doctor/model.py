"""Whether the model replies."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from threadkeep.bootstrap import build_models, has_model
from threadkeep.doctor.finding import Finding
from threadkeep.gateways.llama import demonstration_weights
from threadkeep.gateways.refusals import KEY_REFUSED, Refused
from threadkeep.ports.gateway import (
    GatewayError,
    GatewayUnavailable,
    GatewayUnreachable,
    ModelMessage,
    ModelRequest,
    Retrying,
    TextBlock,
)
from threadkeep.ports.models import ConnectedModel
from threadkeep.settings import PREFIX, Settings
from threadkeep.settings.sources import KEY_VARIABLES

GATEWAY_S = 30.0


async def check_model(settings: Settings) -> Finding:
    """Asks the model the smallest possible question."""
    if settings.gateway == "local":
        return _local_model(settings)
    if not has_model(settings):
        advice = (
            f"Set {KEY_VARIABLES[settings.gateway]}, or {PREFIX}GATEWAY_URL for a server that needs no key."
        )
        return Finding("model", "problem", f"The gateway {settings.gateway} has no key.", advice)
    models = build_models(settings)
    model = models.get(None)
    try:
        async with asyncio.timeout(GATEWAY_S):
            await _ask(model)
    except TimeoutError:
        message = f"{model.model.name} didn't respond within {GATEWAY_S:g} s."
        advice = f"Try to reach {_host(settings)} by hand. Is a proxy in the way?"
        return Finding("model", "problem", message, advice)
    except GatewayError as exc:
        return Finding("model", "problem", exc.message, _advice(exc, settings, model.model.name))
    finally:
        await models.close()
    return Finding("model", "ok", f"{model.model.name} answers.")


async def _ask(model: ConnectedModel) -> None:
    """Waits for the first sign of a reply."""
    question = ModelMessage("user", (TextBlock("Say OK."),))
    stream = model.stream(ModelRequest(model.id, "", (question,), max_tokens=16))
    try:
        async for event in stream:
            if isinstance(event, Retrying):  # the gateway retries by itself; the operator wants to know why
                raise event.error
            return
    finally:
        await stream.aclose()


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
        advice = "Set ANTHROPIC_API_KEY or OPENAI_API_KEY to use a real model."
        return Finding("model", "warning", "Only the small demonstration model, which knows little.", advice)
    return Finding("model", "ok", f"{path.name}, in the server's process.")
