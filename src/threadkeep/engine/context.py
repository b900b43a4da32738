"""History, summary and briefings as a request that every provider takes, and its receipt."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Literal

from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.ids import MessageId
from threadkeep.domain.message import Message, MessageRole
from threadkeep.domain.receipt import ComponentReceipt, Receipt
from threadkeep.domain.text import is_blank
from threadkeep.engine.prompt import SUMMARY_HEADING, Component, joined, sha256_of
from threadkeep.engine.token_estimates import estimate_tokens
from threadkeep.ports.gateway import ModelMessage, ModelRequest, TextBlock, ToolSpec

MOST_SUMMARY_CHARACTERS = 500
TOKENS_KEPT_FOR_THE_REPLY = 1024


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """One entry of a model's history. Every provider takes these two roles, and no other."""

    role: Literal["user", "assistant"]
    content: str


def is_in_context(message: Message) -> bool:
    """Overwritten messages and replies without a word stay out."""
    return message.on_path and not (isinstance(message.content, str) and is_blank(message.content))


def to_context(
    messages: Iterable[Message], *, summary: str | None, zone: tzinfo, thoughts: bool = False
) -> list[ContextMessage]:
    """Messages, oldest first, as role and content; the summary of what is archived stands first."""
    history = [_entry(message, zone, thoughts) for message in messages if is_in_context(message)]
    return [ContextMessage("user", f"{SUMMARY_HEADING}{summary}"), *history] if summary else history


def build_request(
    messages: Sequence[Message],
    components: Sequence[Component],
    *,
    model: str | None,
    context_tokens: int,
    zone: tzinfo,
    question_id: MessageId | None = None,
    thoughts: bool = False,
    temperature: float | None = None,
    max_tokens: int | None = None,
) -> tuple[ModelRequest, Receipt]:
    """A request from messages, oldest first; the oldest are dropped where it would not fit the model.

    The question, by default the last message, always stays. `thoughts` adds the reasoning of earlier replies.
    """
    components = [component for component in components if not is_blank(component.text)]
    candidates = [message for message in messages if is_in_context(message)]
    entries = [_entry(message, zone, thoughts) for message in candidates]
    sizes = [estimate_tokens(entry.content) for entry in entries]
    room = context_tokens - (max_tokens or TOKENS_KEPT_FOR_THE_REPLY)
    room -= sum(estimate_tokens(component.text) for component in components)
    ids = [message.id for message in candidates]
    asked = ids.index(question_id) if question_id and question_id in ids else len(ids) - 1
    kept = _newest_that_fit(sizes, asked, room)
    request = _request([entries[at] for at in kept], components, model, temperature, max_tokens)
    receipt = Receipt(
        model=model,
        components=tuple(
            ComponentReceipt(it.name, it.sha256, len(it.text), it.left_out > 0) for it in components
        ),
        message_ids=tuple(ids[at] for at in kept),
        tools=(),
        temperature=temperature,
        max_tokens=max_tokens,
        zone=str(zone),
        token_estimate=context_tokens - room + sum(sizes[at] for at in kept),
        dropped_messages=len(candidates) - len(kept),
        sha256=_fingerprint(request),
        thoughts=thoughts,
    )
    return request, receipt


def rebuild_request(
    receipt: Receipt, texts: Mapping[str, str], messages: Mapping[str, Message], zone: tzinfo
) -> ModelRequest:
    """The request that a receipt stands for, from the kept texts and messages."""
    components = [Component(it.name, texts[it.sha256]) for it in receipt.components]
    entries = [_entry(messages[message_id], zone, receipt.thoughts) for message_id in receipt.message_ids]
    request = _request(entries, components, receipt.model, receipt.temperature, receipt.max_tokens)
    specs = json.loads(texts[receipt.tools_sha256]) if receipt.tools_sha256 else ()
    return replace(request, tools=tuple(ToolSpec(**spec) for spec in specs))


def with_tools(receipt: Receipt, tools: Sequence[ToolSpec]) -> tuple[Receipt, Mapping[str, str]]:
    """The receipt of a request that names these tools, and the text that describes them, by its hash."""
    if not tools:
        return receipt, {}
    text = json.dumps(
        [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
            for tool in tools
        ]
    )
    sealed = replace(
        receipt,
        tools=tuple(tool.name for tool in tools),
        tools_sha256=sha256_of(text),
        token_estimate=receipt.token_estimate + estimate_tokens(text),
    )
    return sealed, {sha256_of(text): text}


def _request(
    entries: Iterable[ContextMessage],
    components: Iterable[Component],
    model: str | None,
    temperature: float | None,
    max_tokens: int | None,
) -> ModelRequest:
    return ModelRequest(
        model=model,
        system=joined(components),
        messages=tuple(_alternating(entries)),
        temperature=temperature,
        max_tokens=max_tokens,
    )


def _fingerprint(request: ModelRequest) -> str:
    said = [
        [it.role, *(block.text for block in it.blocks if isinstance(block, TextBlock))]
        for it in request.messages
    ]
    return hashlib.sha256(json.dumps([request.system, said]).encode()).hexdigest()


def _newest_that_fit(sizes: Sequence[int], asked: int, room: int) -> list[int]:
    """Which of the messages to keep: the newest that fit beside the question, and that in any case."""
    if not sizes:
        return []
    room -= sizes[asked]
    kept = {asked}
    for at in reversed(range(len(sizes))):
        if at != asked:
            room -= sizes[at]
            if room <= 0:
                break
            kept.add(at)
    return sorted(kept)


def _alternating(entries: Iterable[ContextMessage]) -> list[ModelMessage]:
    """Valid for every provider: begins and ends with the user, and the two take turns."""
    merged: list[ContextMessage] = []
    for entry in entries:
        if merged and merged[-1].role == entry.role:
            merged[-1] = ContextMessage(entry.role, f"{merged[-1].content}\n\n{entry.content}")
        else:
            merged.append(entry)
    while merged and merged[0].role == "assistant":
        merged.pop(0)
    while merged and merged[-1].role == "assistant":
        merged.pop()
    return [ModelMessage(entry.role, (TextBlock(entry.content),)) for entry in merged]


def _entry(message: Message, zone: tzinfo, thoughts: bool) -> ContextMessage:
    if isinstance(message.content, BriefingCard):
        return ContextMessage("user", render_card(message.content, zone))
    if message.role is not MessageRole.ASSISTANT:
        return ContextMessage("user", message.content)
    thought = _reasoning(message) if thoughts else ""
    return ContextMessage("assistant", thought + message.content)


def _reasoning(reply: Message) -> str:
    """What a model thought, as a block of text: no provider takes its own blocks of earlier turns again."""
    thought = "\n\n".join(step.detail for step in reply.thought_process if step.kind == "thought")
    return "" if is_blank(thought) else f"<thinking>\n{thought}\n</thinking>\n\n"


def render_card(card: BriefingCard, zone: tzinfo) -> str:
    """A briefing card as the model reads it."""
    sent = datetime.fromtimestamp(card.sent_at / 1000, zone)
    summary = card.summary
    if len(summary) > MOST_SUMMARY_CHARACTERS:
        summary = summary[:MOST_SUMMARY_CHARACTERS] + "..."
    return f"[简报 {sent:%Y-%m-%d %H:%M}]\n标题：{card.title}\n摘要：{summary}\n优先级：{card.priority}"
