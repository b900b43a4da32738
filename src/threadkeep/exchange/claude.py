"""Conversations of Claude, as `conversations.json` of its export has them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from threadkeep.domain.parts import BLANK_LINE
from threadkeep.domain.times import nearest_time
from threadkeep.exchange.answers import Answer
from threadkeep.exchange.tree import Branch, NoTree, branches, exchanges
from threadkeep.ports.exchange import (
    Flawed,
    ForeignConversation,
    ForeignExchange,
    ForeignMessage,
    ForeignText,
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
    return nearest_time(int(at.timestamp() * 1000)) or None


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
    text = BLANK_LINE.join(filter(None, parts))
    return ForeignMessage(message.uuid, [ForeignText(text)], milliseconds(message.created_at))


def _reply(messages: Sequence[_Message]) -> ForeignMessage | None:
    """All that the assistant did for a question, as one answer."""
    if not messages:
        return None
    answer = Answer()
    for message in messages:
        for block in message.content or ():
            _add(answer, block)
        if not any(_is_text(block) for block in message.content or ()):
            answer.say(message.text or "")
    last = messages[-1]
    return ForeignMessage(last.uuid, answer.parts, milliseconds(last.created_at))


def _add(answer: Answer, block: _Block) -> None:
    match block.type:
        case "text":
            answer.say(block.text or "")
        case "thinking":
            answer.think(block.thinking or "")
        case "tool_use":
            is_object = isinstance(block.input, dict)
            given = cast("dict[str, Any]", block.input) if is_object else {"input": block.input}
            answer.call(block.name or "tool", given)
        case "tool_result":
            answer.result(block.name or "tool", block.content, failed=bool(block.is_error))
        case _:
            pass


def _is_text(block: _Block) -> bool:
    return block.type == "text" and bool(block.text)


def _text(message: _Message) -> str:
    texts = [block.text or "" for block in message.content or () if _is_text(block)]
    return BLANK_LINE.join(texts) or message.text or ""
