"""Between a conversation's messages and those of LangChain."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

from threadkeep.agents.media import Media, Medium
from threadkeep.domain.document import PDF
from threadkeep.wire.programs import ModelMessageItem


def as_langchain(items: Sequence[ModelMessageItem], id_: str, media: Media) -> list[AnyMessage]:
    """What a model would receive, as LangChain's messages; the last one is the turn's own."""
    messages: list[AnyMessage] = []
    for item in items:
        content = _content(item.content, media)
        if content:
            messages.append(AIMessage(content) if item.role == "assistant" else HumanMessage(content))
    if messages and isinstance(messages[-1], HumanMessage):
        messages[-1].id = id_
    return messages


def _content(content: str | list[dict[str, Any]], media: Media) -> Any:
    if isinstance(content, str):
        return content
    blocks = [block for it in content if (block := _block(it, media)) is not None]
    if all(it["type"] == "text" for it in blocks):
        return "\n\n".join(it["text"] for it in blocks)
    return blocks


def _block(block: Mapping[str, Any], media: Media) -> dict[str, Any] | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "image" | "document"}:
            return _file(media.of(block))
        case _:
            return None  # calls of other agents' tools, whose tools this graph may not have


def _file(file: Medium | str) -> dict[str, Any]:
    if isinstance(file, str):
        return {"type": "text", "text": file}
    if file.media_type == PDF:
        named = {"filename": file.name}
        return {"type": "file", "base64": file.base64, "mime_type": file.media_type, "extras": named}
    return {"type": "image", "base64": file.base64, "mime_type": file.media_type}


def missed(history: Sequence[Mapping[str, Any]], last: str) -> list[AnyMessage]:
    """The messages after the reply to `last`: turns that did not reach their end, and other agents'.

    Not those of the user that nobody has answered: they are part of what the turn itself asks.
    """
    at = next((n for n, it in enumerate(history) if it.get("id") == last), None)
    if at is None:
        return []
    after = [it for it in history[at + 1 :] if text_of(it.get("parts") or it.get("content") or "")]
    if after and after[0].get("role") == "assistant":
        after = after[1:]
    while after and after[-1].get("role") == "user":
        after = after[:-1]
    return [
        (AIMessage if it.get("role") == "assistant" else HumanMessage)(text)
        for it in after
        if (text := text_of(it.get("parts") or it.get("content") or ""))
    ]


def text_of(content: Any) -> str:
    """The text of a message's content, or of its parts."""
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    return "".join(it if isinstance(it, str) else str(it.get("text") or "") for it in parts if _is_text(it))


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (
        isinstance(part, dict) and cast("dict[str, Any]", part).get("type") == "text"
    )


def last_message(values: Any) -> BaseMessage | None:
    """The last message of a graph's state."""
    messages = cast("dict[str, Any]", values).get("messages") if isinstance(values, dict) else None
    last = cast("list[Any]", messages)[-1] if isinstance(messages, list) and messages else None
    return last if isinstance(last, BaseMessage) else None
