"""Asking a gateway in tests, and summing up what it said."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from threadkeep.gateways.anthropic import ANTHROPIC
from threadkeep.gateways.endpoint import Endpoint
from threadkeep.gateways.http import RetryPolicy
from threadkeep.gateways.openai import OPENAI
from threadkeep.gateways.provider_api import ProviderGateway
from threadkeep.gateways.responses import RESPONSES
from threadkeep.ports.gateway import (
    Gateway,
    GatewayError,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelStopped,
    ModelUsage,
    TextBlock,
    TextDelta,
    ThoughtDelta,
    ThoughtSigned,
    ToolResultBlock,
    ToolSpec,
    ToolUse,
    ToolUseBlock,
    UnshownDelta,
)
from threadkeep.testing.waiting import PATIENCE_S

KEY = "sk-test-0123456789-secret"
MODEL = "scripted"
APIS = {api.name: api for api in (ANTHROPIC, OPENAI, RESPONSES)}
WIRES = tuple(APIS)

ADD = ToolSpec("add", "Adds numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
QUESTION = ModelRequest(
    MODEL, "You are brief.", (ModelMessage("user", (TextBlock("你好, how are you?"),)),), tools=(ADD,)
)
AFTER_A_TOOL = ModelRequest(
    MODEL,
    "You are brief.",
    (
        *QUESTION.messages,
        ModelMessage("assistant", (TextBlock("One moment."), ToolUseBlock("t1", "add", {"a": 1}))),
        ModelMessage("user", (ToolResultBlock("t1", "no numbers", is_error=True),)),
    ),
    tools=(ADD,),
)


class Naps:
    """Sleeps that take no time and are written down."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)

    def elapsed(self) -> float:
        """The time as if they had taken some."""
        return time.monotonic() + sum(self.taken)


def make_gateway(
    wire: str,
    url: str,
    *,
    key: str = KEY,
    transport: httpx2.AsyncBaseTransport | None = None,
    naps: Naps | None = None,
    silence_s: float = PATIENCE_S,
    now: float = 0,
) -> Gateway:
    """A gateway that does not wait."""
    naps = naps or Naps()
    patience = RetryPolicy(silence_s, naps, lambda: now, naps.elapsed, lambda: 0.5)
    endpoint = Endpoint(url=url, api_key=key)
    return ProviderGateway(APIS[wire], endpoint, name=wire, transport=transport, patience=patience)


async def ask(
    gateway: Gateway, request: ModelRequest = QUESTION
) -> tuple[list[ModelEvent], GatewayError | None]:
    """Everything to be seen that came, and the error that ended it, if one did. The gateway is closed."""
    events: list[ModelEvent] = []
    stream = gateway.stream(request)
    try:
        async for event in stream:
            if not isinstance(event, UnshownDelta):
                events.append(event)  # noqa: PERF401  (kept when it breaks off)
    except GatewayError as exc:
        return events, exc
    finally:
        await stream.aclose()
        await gateway.close()
    return events, None


def text_of(events: Sequence[ModelEvent]) -> str:
    """What was said."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@dataclass
class Heard:
    """A reply, however it was read."""

    text: str = ""
    thought: str = ""
    signatures: list[str] = field(default_factory=list[str])
    tools: list[tuple[str, str, Mapping[str, Any]]] = field(
        default_factory=list[tuple[str, str, Mapping[str, Any]]]
    )
    usage: ModelUsage | None = None
    stop_reason: str = ""


def heard(events: Sequence[ModelEvent]) -> Heard:
    """A reply as our gateway read it."""
    reply = Heard(text=text_of(events))
    for event in events:
        match event:
            case ThoughtDelta(text):
                reply.thought += text
            case ThoughtSigned(signature):
                reply.signatures.append(signature)
            case ToolUse(use_id, name, arguments, None):
                reply.tools.append((use_id, name, arguments))
            case ModelUsage():
                reply.usage = event
            case ModelStopped(reason):
                reply.stop_reason = reason
            case _:
                pass
    return reply
