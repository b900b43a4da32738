"""The SDK's memory of earlier turns, kept in `turn.state`: so it follows the branch."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, cast

from agents import Session, SessionSettings

from threadkeep.agents.turn import Turn
from threadkeep.agents.values import plain
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

    def __init__(self, turn: Turn, items: list[Any]) -> None:
        self._turn = turn
        self._items = items
        self.session = TurnSession(turn.conversation.id, items)

    def keep(self) -> None:
        """Keeps all that was said for the next turn of the branch."""
        now = {"turn": self._turn.id, "at": self._turn.now().isoformat(), "items": _newest(self._items)}
        self._turn.state[STATE] = now


async def past_of(turn: Turn) -> tuple[Past, Any]:
    """What was said before a turn, and what its user says now."""
    exact = await _exact(turn)
    if exact is not None and not turn.files:
        return Past(turn, exact), turn.text
    context = list(await turn.history(as_context=True))
    asked: Any = turn.text
    if context and context[-1].role == "user":
        asked = _asked(context.pop()) or asked
    return Past(turn, converted(context) if exact is None else exact), asked


async def _exact(turn: Turn) -> list[Any] | None:
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
    return list(kept["items"]) if is_own or is_copy else None


def converted(context: Sequence[ModelMessageItem]) -> list[Any]:
    """Messages as the server has them, those of other agents and what was imported, as items of the SDK."""
    return [item for message in context for item in _converted(message)]


def _converted(message: ModelMessageItem) -> Iterator[Any]:
    for block in _blocks(message):
        match block:
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


def _asked(message: ModelMessageItem) -> str:
    return "\n\n".join(str(it["text"]) for it in _blocks(message) if it.get("type") == "text")


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
    while start < len(items) and (total > MOST_STATE_BYTES or (start and items[start].get("role") != "user")):
        total -= sizes[start]
        start += 1
    return items[start:]
