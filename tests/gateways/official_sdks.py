"""The providers' own clients, as reference readers of the same bytes.

They take seconds to load, so that only who asks them does it.
"""

import json
import warnings
from typing import TYPE_CHECKING

from tests.gateways.asking import KEY, MODEL, Heard
from threadkeep.ports.gateway import ModelUsage

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk
    from openai.types.responses import Response

_OPENAI_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


async def ask_anthropic(url: str) -> Heard:
    """A reply as Anthropic's client reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it warns of at import is not ours
        from anthropic import AsyncAnthropic  # noqa: PLC0415

    reply = Heard()
    async with (
        AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0) as client,
        client.messages.stream(
            model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "Hello"}]
        ) as stream,
    ):
        message = await stream.get_final_message()
    for block in message.content:
        if block.type == "text":
            reply.text += block.text
        elif block.type == "thinking":
            reply.thought += block.thinking
            reply.signatures.append(block.signature)
        elif block.type == "tool_use":
            reply.tools.append((block.id, block.name, block.input))
    usage = message.usage
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    reply.usage = ModelUsage(usage.input_tokens + read + written, usage.output_tokens, read, written)
    reply.stop_reason = str(message.stop_reason)
    return reply


async def ask_openai(url: str) -> Heard:
    """A reply as OpenAI's client reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from openai import AsyncOpenAI  # noqa: PLC0415

    reply = Heard()
    calls: dict[int, list[str]] = {}
    async with AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0) as client:
        stream = await client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Hello"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            _add(reply, calls, chunk)
    reply.tools = [(use_id, name, json.loads(written or "{}")) for use_id, name, written in calls.values()]
    return reply


async def ask_responses(url: str) -> Heard:
    """A reply of the Responses API as OpenAI's client reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from openai import AsyncOpenAI  # noqa: PLC0415

    async with (
        AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0) as client,
        client.responses.stream(
            model=MODEL,
            input=[{"role": "user", "content": "Hello"}],
            store=False,
            include=["reasoning.encrypted_content"],
        ) as stream,
    ):
        ends: list[Response] = []
        async for event in stream:
            if event.type == "response.completed" or event.type == "response.incomplete":
                ends.append(event.response)  # noqa: PERF401
    (response,) = ends
    reply = Heard(text=response.output_text)
    for item in response.output:
        if item.type == "reasoning":
            reply.thought += "".join(part.text for part in item.summary)
            if item.encrypted_content:
                reply.signatures.append(f"{item.id}:{item.encrypted_content}")
        elif item.type == "function_call":
            reply.tools.append((item.call_id, item.name, json.loads(item.arguments or "{}")))
    if usage := response.usage:
        details = usage.input_tokens_details
        cached, written = details.cached_tokens, details.cache_write_tokens
        reply.usage = ModelUsage(usage.input_tokens, usage.output_tokens, cached, written)
    whole = "tool_use" if reply.tools else "end_turn"
    cut = response.incomplete_details and response.incomplete_details.reason
    reply.stop_reason = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}.get(cut or "", whole)
    return reply


def _add(reply: Heard, calls: dict[int, list[str]], chunk: "ChatCompletionChunk") -> None:
    if usage := chunk.usage:
        details = usage.prompt_tokens_details
        cached = (details and details.cached_tokens) or 0
        reply.usage = ModelUsage(usage.prompt_tokens, usage.completion_tokens, cached)
    for choice in chunk.choices:
        reply.text += choice.delta.content or ""
        reply.thought += (choice.delta.model_extra or {}).get("reasoning_content") or ""
        for call in choice.delta.tool_calls or []:
            known = calls.setdefault(call.index, ["", "", ""])
            known[0] += call.id or ""
            if call.function:
                known[1] += call.function.name or ""
                known[2] += call.function.arguments or ""
        if choice.finish_reason:
            reply.stop_reason = _OPENAI_REASONS.get(choice.finish_reason, "refusal")
