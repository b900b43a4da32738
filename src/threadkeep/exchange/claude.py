"""Conversations of Claude, as `conversations.json` of its export has them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from threadkeep.exchange.tree import Branch, NoTree, branches, exchanges
from threadkeep.ports.exchange import (
    Flawed,
    ForeignCall,
    ForeignConversation,
    ForeignExchange,
    ForeignMessage,
)

PRODUCT = "claude"


class _Attachment(msgspec.Struct):
    file_name: str | None = None
    extracted_content: str | None = None


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    thinking: str | None = None
    name: str | None = None
    input: Any = None
    content: Any = None
    is_error: bool | None = None


class _Message(msgspec.Struct):
    uuid: str
    sender: str
    text: str | None = None
    content: list[_Block] | None = None
    created_at: str | None = None
    attachments: list[_Attachment] | None = None
    files: list[_Attachment] | None = None
    parent_message_uuid: str | None = None


class _Conversation(msgspec.Struct):
    uuid: str
    chat_messages: list[_Message]
    name: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    current_leaf_message_uuid: str | None = None


def read(value: Mapping[str, Any]) -> Iterator[ForeignConversation | Flawed]:
    """One conversation and its branches. ValueError where it is none of Claude's."""
    told = msgspec.convert(value, _Conversation)
    messages: dict[str, _Message] = {}
    for message in told.chat_messages:
        if message.uuid in messages:
            raise NoTree(f"two of its messages have the id {message.uuid!r}")
        messages[message.uuid] = message
    found, left_over = branches(
        _parents(told.chat_messages),
        told.current_leaf_message_uuid,
        lambda id_: messages[id_].sender == "human",
    )
    for number, branch in enumerate(found):
        yield ForeignConversation(
            PRODUCT,
            f"{told.uuid}/{branch.path[-1]}" if number else told.uuid,
            told.name,
            milliseconds(told.created_at),
            milliseconds(told.updated_at),
            list(_exchanges(messages, branch)),
            branch_of=told.uuid if number else None,
        )
    if left_over:
        yield Flawed(f"{told.name or told.uuid!r}", f"{left_over} of its branches are too many")


def milliseconds(text: str | None) -> int | None:
    """A time such as 2025-01-31T12:00:00.123Z as ours; one that cannot be read is none."""
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(int(at.timestamp() * 1000), 0) or None


def _parents(messages: Sequence[_Message]) -> dict[str, str | None]:
    """Who answers whom; older exports tell the order only."""
    if any(message.parent_message_uuid for message in messages):
        return {message.uuid: message.parent_message_uuid for message in messages}
    before = [None, *(message.uuid for message in messages)]
    return {message.uuid: parent for message, parent in zip(messages, before, strict=False)}


def _exchanges(messages: Mapping[str, _Message], branch: Branch) -> Iterator[ForeignExchange]:
    for asked, answers in exchanges(branch, lambda id_: messages[id_].sender == "human"):
        replies = [reply for it in answers if (reply := _reply([messages[id_] for id_ in it])) is not None]
        yield ForeignExchange(_question(messages[asked]) if asked else None, replies)


def _question(message: _Message) -> ForeignMessage:
    """A question with the texts that were attached to it; other files are named in their place."""
    attached = message.attachments or ()
    parts = [_text(message)]
    parts += [f"[{it.file_name or 'attachment'}]\n{it.extracted_content or ''}".strip() for it in attached]
    known = {it.file_name for it in attached}
    parts += [f"[{file.file_name}]" for file in message.files or () if file.file_name not in {None, *known}]
    return ForeignMessage(message.uuid, "\n\n".join(filter(None, parts)), milliseconds(message.created_at))


def _reply(messages: Sequence[_Message]) -> ForeignMessage | None:
    if not messages:
        return None
    blocks = [block for message in messages for block in message.content or ()]
    text = "\n\n".join(filter(None, map(_text, messages)))
    thoughts = [block.thinking for block in blocks if block.type == "thinking" and block.thinking]
    last = messages[-1]
    return ForeignMessage(
        last.uuid, text, milliseconds(last.created_at), None, thoughts, list(_calls(blocks))
    )


def _text(message: _Message) -> str:
    texts = [block.text for block in message.content or () if block.type == "text" and block.text]
    return "\n\n".join(texts) or message.text or ""


def _calls(blocks: Sequence[_Block]) -> Iterator[ForeignCall]:
    """Tools that were used, each with the next result of its name."""
    results = [block for block in blocks if block.type == "tool_result"]
    for block in blocks:
        if block.type != "tool_use":
            continue
        result = next((it for it in results if it.name == block.name), None)
        if result is not None:
            results.remove(result)
        is_object = isinstance(block.input, dict)
        given = cast("dict[str, Any]", block.input) if is_object else {"input": block.input}
        failed = result is not None and bool(result.is_error)
        yield ForeignCall(block.name or "tool", given, result.content if result else None, failed)
