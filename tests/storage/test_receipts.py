"""Receipts: the database is sent a text once, however many receipts name it."""

import json
from collections.abc import Callable
from typing import Any, cast

from tests.making import NOW, keep_agent, keep_begun, keep_conversation, make_receipt
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.storage.conversations import ConversationRows
from threadkeep.storage.database.connector import Database, Plan, Rows
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import SqlTurnLog


class Watched:
    """A database that notes what the plans send it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.sent: list[Any] = []

    async def write(self, plan: Callable[[], Plan[Rows]], *, urgent: bool) -> Rows:
        """Runs a plan."""
        return await self._database.write(lambda: self._watch(plan()), urgent=urgent)

    def _watch(self, plan: Plan[Rows]) -> Plan[Rows]:
        query = next(plan)
        while True:
            self.sent.append(query.values.get("texts"))
            rows = yield query
            try:
                query = plan.send(rows)
            except StopIteration as stop:
                return stop.value


async def test_texts_that_the_database_has_are_not_sent_again(store: Store, database: Database):
    agent = await keep_agent(store)
    names = {text: f"{number:064}" for number, text in enumerate(["prompt", "first", "second"])}
    texts = [{names[it]: it for it in ("prompt", "first")}, {names[it]: it for it in names}]
    sent: list[set[str]] = []
    for given in texts:
        begun = (await keep_conversation(store, agent)).begin_turn("?", NOW)
        await keep_begun(store, begun)
        watched = Watched(database)
        receipt = make_receipt()
        log = SqlTurnLog(cast("Database", watched), cast("ConversationRows", None))
        await log.append([], [(TurnReceipt(begun.turn.id, begun.conversation.id, receipt, given), 1)])
        sent.append({text for values in filter(None, watched.sent) for _, text in json.loads(values)})
        assert await store.receipts.get(begun.conversation.id, begun.turn.id) == (receipt, given)
    assert sent == [{"prompt", "first"}, {"second"}]
