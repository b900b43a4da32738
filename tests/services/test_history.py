"""Search indexing in the background."""

import asyncio
from typing import Any, cast

import pytest

from threadkeep.domain.ids import ConversationId
from threadkeep.loops import Loops
from threadkeep.services import history as history_module
from threadkeep.services.history import History
from threadkeep.testing.waiting import until


class _Index:
    """Remembers what was indexed."""

    def __init__(self) -> None:
        self.followed: list[str] = []

    async def follow(self, conversation_id: str, *, limit: int) -> bool:
        self.followed.append(conversation_id)
        return False


class _Store:
    def __init__(self) -> None:
        self.history = _Index()


async def test_conversation_noted_just_before_it_is_indexed_does_not_stop_the_server(
    monkeypatch: pytest.MonkeyPatch,
):
    """The loop would go round without ever waiting, and nothing else would run."""
    store = _Store()
    history = History(cast("Any", store), Loops())
    gather, noted = asyncio.gather, list[str]()

    def gather_after_a_note(*work: Any, **options: Any) -> Any:
        begun = gather(*work, **options)
        if not noted:
            noted.append("first")
            history.note(ConversationId("first"))
        return begun

    monkeypatch.setattr(history_module.asyncio, "gather", gather_after_a_note)
    history.note(ConversationId("first"))
    await until(lambda: bool(noted))
    history.note(ConversationId("second"))
    await until(lambda: "second" in store.history.followed)
    await history.close()
