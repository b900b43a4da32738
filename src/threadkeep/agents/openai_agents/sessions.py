"""The SDK's memory of earlier turns, kept in `turn.state`: so it follows the branch."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from agents import Session, SessionSettings

from threadkeep.agents.media import Media
from threadkeep.agents.turn import Turn
from threadkeep.agents.values import plain
from threadkeep.domain.document import PDF
from threadkeep.domain.file import FileKind
from threadkeep.wire.programs import ModelMessageItem

STATE = "openai_agents"
MOST_STATE_BYTES = 6 * 1024 * 1024
"""How much of a branch is kept exactly; a state can have a little more."""


class TurnSession(Session):
    """A session of the SDK whose items are the state of a turn."""

    def __init__(self, session_id: str, items: list[Any]) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = None
        self._items = items

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The last items, or all."""
        if limit is None:
            return list(self._items)
        return self._items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[Any]) -> None:
        """Adds items."""
        self._items.extend(cast("list[Any]", plain(items)))

    async def pop_item(self) -> Any:
        """Removes the last item."""
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        """Removes all items."""
        self._items.clear()


class Past:
    """What was said before a turn: exactly, as its agent kept it, or made of the conversation."""

    def __init__(self, turn: Turn, items: list[Any], media: Media) -> None:
        self._turn = turn
        self._items = items
        self._media = media
        self.session = TurnSession(turn.conversation.id, items)

    def keep(self) -> None:
        """Keeps all that was said for the next turn of the branch."""
        items = _newest([self._media.cut(it) for it in self._items])
        self._turn.state[STATE] = {"turn": self._turn.id, "at": self._turn.now().isoformat(), "items": items}


async def past_of(turn: Turn, files: Sequence[FileKind]) -> tuple[Past, Any]:
    """What was said before a turn, and what its user says now."""
    media = Media(turn)
    exact = await _exact(turn, media)
    if exact is not None and not turn.files:
        return Past(turn, exact, media), turn.text
    context = list(await turn.history(as_context=True, files=files))
    await media.load_of(context if exact is None else context[-1:])
    asked: Any = turn.text
    if context and context[-1].role == "user":
        asked = _asked(context.pop(), media) or asked
    return Past(turn, converted(context, media) if exact is None else exact, media), asked


async def _exact(turn: Turn, media: Media) -> list[Any] | None:
    """The items before, as the SDK has made them; None if the last reply isn't this agent's."""
    kept = cast("dict[str, Any] | None", turn.state.get(STATE))
    if kept is None:
        return None
    before = await turn.history(limit=1)
    if not before:
        return None
    reply = before[-1]
    is_own = reply["turnId"] == kept["turn"]
    # A fork has copies of turns, made when their originals were.
    is_copy = datetime.fromisoformat(reply["createdAt"]) <= datetime.fromisoformat(kept["at"])
    return [await media.whole(it) for it in kept["items"]] if is_own or is_copy else None


def converted(context: Sequence[ModelMessageItem], media: Media) -> list[Any]:
    """Messages as the server has them, those of other agents and what was imported, as items of the SDK."""
    return [item for message in context for item in _converted(message, media)]


def _converted(message: ModelMessageItem, media: Media) -> Iterator[Any]:
    for block in _blocks(message):
        match block:
            case {"type": "image" | "document"}:
                yield {"role": message.role, "content": [_file(block, media)]}
            case {"type": "text", "text": str(text)} if text:
                yield {"role": message.role, "content": text}
            case {"type": "tool_use", "id": id_, "name": name, "input": arguments}:
                yield {
                    "type": "function_call",
                    "call_id": id_,
                    "name": name,
                    "arguments": json.dumps(arguments, ensure_ascii=False),
                }
            case {"type": "tool_result", "tool_use_id": id_}:
                yield {"type": "function_call_output", "call_id": id_, "output": _text(block.get("content"))}
            case _:
                pass


def _asked(message: ModelMessageItem, media: Media) -> Any:
    """What a user asks: a text, or a message with files."""
    blocks = _blocks(message)
    texts = [str(it["text"]) for it in blocks if it.get("type") == "text"]
    files = [_file(it, media) for it in blocks if it.get("type") in ("image", "document")]
    if not files:
        return "\n\n".join(texts)
    return [{"role": "user", "content": [*({"type": "input_text", "text": it} for it in texts), *files]}]


def _file(block: Mapping[str, Any], media: Media) -> dict[str, Any]:
    file = media.of(block)
    if isinstance(file, str):
        return {"type": "input_text", "text": file}
    if file.media_type == PDF:
        return {"type": "input_file", "filename": file.name, "file_data": file.url}
    return {"type": "input_image", "image_url": file.url, "detail": "auto"}


def _blocks(message: ModelMessageItem) -> list[dict[str, Any]]:
    content = message.content
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_text(it.get("text", "")) for it in cast("list[dict[str, Any]]", content))
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _newest(items: list[Any]) -> list[Any]:
    """The newest items, from a question on, that a state has room for."""
    sizes = [len(json.dumps(it)) for it in items]
    total, start = sum(sizes), 0
    while start < len(items) and (total > MOST_STATE_BYTES or (start and not _is_question(items[start]))):
        total -= sizes[start]
        start += 1
    return items[start:]


def _is_question(item: Any) -> bool:
    """Whether a turn begins with it; one with files is kept in pieces."""
    return item.get("role") == "user" or ("type" not in item and "role" not in item)
