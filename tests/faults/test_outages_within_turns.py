"""A database that is away for a moment, as while a replica takes over, ends no turn that wanted to read."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE
from tests.talking import Talk
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.storage.approvals import SqlApprovals
from threadkeep.storage.messages import SqlMessages
from threadkeep.storage.receipts import SqlReceipts
from threadkeep.testing import Say, ScriptedModel, UseTool

TIMES = 3
READS = {
    "the request's context": (SqlReceipts, "newest"),
    "what the user has decided": (SqlApprovals, "decisions"),
    "ids of calls": (SqlMessages, "ids_in_use"),
}


class Away:
    """A read that fails a few times, and then works."""

    def __init__(self, read: Callable[..., Any]) -> None:
        self.failed = 0
        self._read = read

    async def __call__(self, *arguments: Any, **named: Any) -> Any:
        """As a method of the class that it was taken from."""
        if self.failed < TIMES:
            self.failed += 1
            raise StorageUnavailable("The database is away.")
        return await self._read(*arguments, **named)


@ONLY_SQLITE
@pytest.mark.parametrize("what", READS)
async def test_turn_waits_until_the_database_can_be_read_again(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, what: str
):
    monkeypatch.setattr("threadkeep.log.writer.FIRST_PAUSE_S", 0.001)
    owner, name = READS[what]
    away = Away(getattr(owner, name))

    async def read(*arguments: Any, **named: Any) -> Any:
        return await away(*arguments, **named)

    monkeypatch.setattr(owner, name, read)
    model.script([UseTool("ask_user", {"question": "Which?"})], [Say("That one.")])
    conversation = await talk.titled_conversation(settings={"askUser": True})
    turn_id = await talk.begin(conversation)
    seen: list[dict[str, Any]] = []
    async for event in talk.follow(turn_id):
        seen.append(event)
        if event["type"] == "approval_request":
            path = f"/api/turns/{turn_id}/approvals/{event['request_id']}"
            answered = await talk.client.post(path, json={"action": "answer", "content": "This."})
            assert answered.status_code == 200, answered.text
    assert (seen[-1]["type"], seen[-1].get("status"), away.failed) == ("done", "COMPLETED", TIMES), seen
