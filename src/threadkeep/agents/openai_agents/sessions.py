"""The SDK's memory of earlier turns, kept in `turn.state`: so it follows the branch."""

from typing import Any, cast

from agents import Session, SessionSettings

from threadkeep.agents.turn import Turn
from threadkeep.agents.values import plain
from threadkeep.wire.programs import ModelMessageItem

STATE = "openai_agents"
_LAST = 2
"""A question and its reply."""


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


async def session_of(turn: Turn) -> TurnSession:
    """The session of a turn: what its agent kept, and what it hasn't seen of the conversation."""
    kept = turn.state.get(STATE)
    items: list[Any] = []
    if kept is not None and await _was_last(turn, kept["question"]):
        items = list(kept["items"])
    else:
        items = [_converted(it) for it in (await turn.history(as_context=True))[:-1]]
    turn.state[STATE] = {"question": turn.text, "items": items}
    return TurnSession(turn.conversation.id, items)


async def _was_last(turn: Turn, question: str) -> bool:
    """Whether the last reply is of the run that kept the state: another agent's may have come after it."""
    last = [it["content"] for it in await turn.history(limit=_LAST) if it["role"] == "user"]
    return bool(last) and last[-1] == question


def _converted(message: ModelMessageItem) -> Any:
    """A message as the SDK has it."""
    if isinstance(message.content, str):
        return {"role": message.role, "content": message.content}
    texts = (str(it.get("text", "")) for it in message.content if it.get("type") == "text")
    return {"role": message.role, "content": "\n".join(filter(None, texts))}
