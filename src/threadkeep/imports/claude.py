"""Conversations of Claude, from its export's `conversations.json`."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from threadkeep.domain.import_run import ImportProblem, SkipReason
from threadkeep.domain.parts import BLANK_LINE
from threadkeep.domain.times import nearest_time
from threadkeep.imports.foreign import (
    ForeignConversation,
    ForeignFile,
    ForeignMessage,
    ForeignPart,
    ForeignText,
)
from threadkeep.imports.replies import ForeignReply
from threadkeep.imports.tree import ForeignEntry, NotATree, read_tree

PRODUCT = "claude"


class _Attachment(msgspec.Struct):
    file_name: str | None = None
    extracted_content: str | None = None
    file_uuid: str | None = None


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


def read(value: Mapping[str, Any]) -> Iterator[ForeignConversation | ImportProblem]:
    """One conversation with its branches. Raises ValueError if it isn't one of Claude's."""
    conversation = msgspec.convert(value, _Conversation)
    messages: dict[str, _Message] = {}
    for message in conversation.chat_messages:
        if message.uuid in messages:
            raise NotATree(f"two of its messages share the id {message.uuid!r}")
        messages[message.uuid] = message
    tree = read_tree(
        _parents(conversation.chat_messages),
        conversation.current_leaf_message_uuid,
        lambda id_: messages[id_].sender == "human",
        lambda id_: _blocks(messages[id_]),
    )
    yield ForeignConversation(
        PRODUCT,
        conversation.uuid,
        conversation.name,
        milliseconds(conversation.created_at),
        milliseconds(conversation.updated_at),
        [_question(it, messages) if it.is_question else _reply(it, messages) for it in tree.said],
        tree.last,
    )
    if tree.left_over:
        yield ImportProblem(
            f"{conversation.name or conversation.uuid!r}",
            f"{tree.left_over} of its branches exceed the limit",
            SkipReason.TOO_MANY_BRANCHES,
        )


def _blocks(message: _Message) -> int:
    return sum(len(it or ()) for it in (message.content, message.attachments, message.files))


def milliseconds(text: str | None) -> int | None:
    """A time such as 2025-01-31T12:00:00.123Z in our unit; None if unreadable."""
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return nearest_time(int(at.timestamp() * 1000)) or None


def _parents(messages: Sequence[_Message]) -> dict[str, str | None]:
    """Which message follows which; older exports have only the order."""
    if any(message.parent_message_uuid for message in messages):
        return {message.uuid: message.parent_message_uuid for message in messages}
    before = [None, *(message.uuid for message in messages)]
    return {message.uuid: parent for message, parent in zip(messages, before, strict=False)}


def _question(said: ForeignEntry, messages: Mapping[str, _Message]) -> ForeignMessage:
    """A question with its attached texts and files."""
    message = messages[said.id]
    text = _text(message)
    parts = [*([ForeignText(text)] if text else ()), *_files(message)]
    at = milliseconds(message.created_at)
    return ForeignMessage(said.id, is_question=True, parts=parts, at=at, follows=said.follows)


def _files(message: _Message) -> Iterator[ForeignPart]:
    """Attachments, whose text the export contains, and files, which may be beside it."""
    known: set[str | None] = {None}
    for attached in message.attachments or ():
        known.add(attached.file_name)
        name, text = attached.file_name or "attachment", attached.extracted_content or ""
        yield ForeignFile(name, f"[{name}]\n{text}".strip(), content=text or None)
    for file in message.files or ():
        if file.file_name not in known:
            yield ForeignFile(file.file_name or "", f"[{file.file_name}]", file.file_uuid)


def _reply(said: ForeignEntry, messages: Mapping[str, _Message]) -> ForeignMessage:
    """All that the assistant did for a question, as one reply."""
    reply = ForeignReply()
    for message in (messages[id_] for id_ in said.nodes):
        for block in message.content or ():
            _add(reply, block)
        if not any(_is_text(block) for block in message.content or ()):
            reply.say(message.text or "")
    at = milliseconds(messages[said.id].created_at)
    return ForeignMessage(said.id, is_question=False, parts=reply.parts, at=at, follows=said.follows)


def _add(reply: ForeignReply, block: _Block) -> None:
    match block.type:
        case "text":
            reply.say(block.text or "")
        case "thinking":
            reply.think(block.thinking or "")
        case "tool_use":
            is_object = isinstance(block.input, dict)
            given = cast("dict[str, Any]", block.input) if is_object else {"input": block.input}
            reply.call(block.name or "tool", given)
        case "tool_result":
            reply.result(block.name or "tool", block.content, failed=bool(block.is_error))
        case _:
            pass


def _is_text(block: _Block) -> bool:
    return block.type == "text" and bool(block.text)


def _text(message: _Message) -> str:
    texts = [block.text or "" for block in message.content or () if _is_text(block)]
    return BLANK_LINE.join(texts) or message.text or ""
