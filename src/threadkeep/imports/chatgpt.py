"""Conversations of ChatGPT, from its export's `conversations.json`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import msgspec

from threadkeep.domain.import_run import ImportProblem, SkipReason
from threadkeep.domain.times import LATEST_MS
from threadkeep.imports.foreign import (
    ForeignConversation,
    ForeignFile,
    ForeignMessage,
    ForeignPart,
    ForeignText,
)
from threadkeep.imports.replies import ForeignReply
from threadkeep.imports.tree import ForeignEntry, read_tree

PRODUCT = "chatgpt"
# What ChatGPT tells its model about the user, and how long it thought: nobody said it.
_UNSAID = {"user_editable_context", "model_editable_context", "reasoning_recap"}


class _Author(msgspec.Struct):
    role: str
    name: str | None = None


class _Thought(msgspec.Struct):
    summary: str | None = None
    content: str | None = None


class _Content(msgspec.Struct):
    content_type: str
    parts: list[Any] | None = None
    text: str | None = None
    result: str | None = None
    thoughts: list[_Thought] | None = None


class _Message(msgspec.Struct):
    author: _Author
    content: _Content
    id: str | None = None
    create_time: float | None = None
    recipient: str | None = None
    metadata: dict[str, Any] | None = None


class _Node(msgspec.Struct):
    message: _Message | None = None
    parent: str | None = None


class _Conversation(msgspec.Struct):
    mapping: dict[str, _Node]
    conversation_id: str | None = None
    id: str | None = None
    title: str | None = None
    create_time: float | None = None
    update_time: float | None = None
    current_node: str | None = None
    is_archived: bool | None = None


def read(value: Mapping[str, Any]) -> Iterator[ForeignConversation | ImportProblem]:
    """One conversation with its branches. Raises ValueError if it isn't one of ChatGPT's."""
    conversation = msgspec.convert(value, _Conversation)
    id_ = conversation.conversation_id or conversation.id
    if not id_:
        raise msgspec.ValidationError("Object missing required field `conversation_id`")
    nodes = dict(sorted(conversation.mapping.items(), key=lambda item: _time(item[1])))
    tree = read_tree(
        {node_id: node.parent for node_id, node in nodes.items()},
        conversation.current_node,
        lambda node_id: _is_question(nodes[node_id]),
        lambda node_id: _blocks(nodes[node_id]),
    )
    yield ForeignConversation(
        PRODUCT,
        id_,
        conversation.title,
        milliseconds(conversation.create_time),
        milliseconds(conversation.update_time),
        [_question(it, nodes) if it.is_question else _reply(it, nodes) for it in tree.said],
        tree.last,
        bool(conversation.is_archived),
    )
    if tree.left_over:
        yield ImportProblem(
            f"{conversation.title or id_!r}",
            f"{tree.left_over} of its branches exceed the limit",
            SkipReason.TOO_MANY_BRANCHES,
        )


def _blocks(node: _Node) -> int:
    if (message := node.message) is None:
        return 0
    attachments = (message.metadata or {}).get("attachments")
    attached = cast("list[object]", attachments) if isinstance(attachments, list) else []
    return sum(len(it or ()) for it in (message.content.parts, message.content.thoughts, attached))


def milliseconds(seconds: float | None) -> int | None:
    """A time in seconds in our unit; None if it is impossible."""
    return int(seconds * 1000) if seconds is not None and 0 < seconds * 1000 < LATEST_MS else None


def _time(node: _Node) -> float:
    return (node.message and milliseconds(node.message.create_time)) or 0


def _is_question(node: _Node) -> bool:
    return node.message is not None and node.message.author.role == "user" and not _is_hidden(node.message)


def _is_hidden(message: _Message) -> bool:
    hidden = (message.metadata or {}).get("is_visually_hidden_from_conversation")
    return bool(hidden) or message.author.role == "system" or message.content.content_type in _UNSAID


def _question(said: ForeignEntry, nodes: Mapping[str, _Node]) -> ForeignMessage:
    message = nodes[said.id].message
    assert message is not None
    parts = [*_parts(message.content, _attached(message)), *_files_beside(message)]
    at = milliseconds(message.create_time)
    return ForeignMessage(said.id, is_question=True, parts=parts, at=at, follows=said.follows)


def _reply(said: ForeignEntry, nodes: Mapping[str, _Node]) -> ForeignMessage:
    """All that the assistant did for a question, as one reply."""
    reply = ForeignReply()
    at, model = None, None
    for node_id in said.nodes:
        message = nodes[node_id].message
        if message is None or _is_hidden(message):
            continue
        at = milliseconds(message.create_time) or at
        model = _model(message) or model
        _add(reply, message)
    return ForeignMessage(
        said.id, is_question=False, parts=reply.parts, at=at, model=model, follows=said.follows
    )


def _add(reply: ForeignReply, message: _Message) -> None:
    content = message.content
    if message.author.role == "tool":
        if not reply.result(None, _text(content)):
            reply.call(message.author.name or "tool", {})
            reply.result(None, _text(content))
        for part in _parts(content, {}):
            if isinstance(part, ForeignFile):
                reply.show(replace(part, instead=""))  # the result names it
    elif content.content_type == "thoughts":
        for thought in _thoughts(content):
            reply.think(thought)
    elif message.recipient not in {None, "all"}:
        reply.forget_open()
        reply.call(message.recipient or "tool", _arguments(_text(content)))
    else:
        for part in _parts(content, _attached(message)):
            if isinstance(part, ForeignFile):
                reply.show(part)
            else:
                reply.say(part.text)


def _arguments(text: str) -> Mapping[str, object]:
    """A tool's arguments: an object if possible, otherwise the text itself."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError):
        return {"input": text} if text else {}


def _model(message: _Message) -> str | None:
    name = (message.metadata or {}).get("model_slug")
    return name if isinstance(name, str) else None


def _thoughts(content: _Content) -> Iterator[str]:
    for thought in content.thoughts or ():
        if text := "\n\n".join(filter(None, (thought.summary, thought.content))):
            yield text


def _parts(content: _Content, names: Mapping[str, str]) -> Iterator[ForeignText | ForeignFile]:
    """The pieces of a content in order: texts, and files under their known names."""
    if content.parts is None and (text := _text(content)):
        yield ForeignText(text)
    for part in content.parts or ():
        text = _part(part)
        if (asset_id := _asset_id(part)) is not None:
            yield ForeignFile(names.get(asset_id, ""), text, asset_id)
        elif text:
            yield ForeignText(text)


def _asset_id(part: object) -> str | None:
    """The id of a file: `file-service://file-XXXX` in older exports, `sediment://file_XXXX` in newer ones."""
    match part:
        case {"asset_pointer": str() as pointer}:
            return pointer.rpartition("://")[2].partition("#")[0] or None
        case _:
            return None


def _attached(message: _Message) -> dict[str, str]:
    """The names of a message's files by id."""
    attachments = (message.metadata or {}).get("attachments")
    if not isinstance(attachments, list):
        return {}
    found = [_attachment(it) for it in cast("list[object]", attachments)]
    return dict(it for it in found if it is not None)


def _attachment(attachment: object) -> tuple[str, str] | None:
    match attachment:
        case {"id": str() as id_, "name": str() as name}:
            return id_, name
        case _:
            return None


def _files_beside(message: _Message) -> Iterator[ForeignPart]:
    """Files attached to a message but not in its content, such as documents."""
    inside = {_asset_id(part) for part in message.content.parts or ()}
    for id_, name in _attached(message).items():
        if id_ not in inside:
            yield ForeignFile(name, f"[{name}]", id_)


def _text(content: _Content) -> str:
    """The readable text of a content; names whatever is not text in its place."""
    if content.parts is None:
        return content.text or content.result or ""
    return "\n\n".join(filter(None, map(_part, content.parts)))


def _part(part: object) -> str:
    match part:
        case str():
            return part
        case {"text": str() as text}:
            return text
        case {"content_type": str() as kind}:
            return f"[{kind.removesuffix('_asset_pointer').replace('_', ' ')}]"
        case _:
            return ""
