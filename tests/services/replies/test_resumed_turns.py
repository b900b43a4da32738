"""Turns that resume from a long log: the loop stays free, and the lease is kept meanwhile."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import pytest

from tests.loop_time import watching_the_loop
from tests.making import NOW, keep_receipt, opened
from tests.talking import Talk
from threadkeep.agents import Turn, agent
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.events import (
    EventBody,
    IterationStart,
    LogChunk,
    Text,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    UsageReported,
)
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.domain.message import Message
from threadkeep.domain.turn import Lease, TurnCode, TurnStatus
from threadkeep.engine.journal import CallFinished, Dispatch, Dispatched, JournalEntry, UseNoted
from threadkeep.log.format import encode_chunk
from threadkeep.runtime.programs import NodePrograms
from threadkeep.storage.turn_log import MOST_PAGE_BYTES, SqlTurnLog
from threadkeep.testing import Gate, Say, ScriptedModel, Wait, running_app
from threadkeep.testing.waiting import until

LOCAL = UserId("local")
FENCE = 1
PIECE = "x é " * 500
PIECES = 160
CALLS = 150
"""Together some 50 MB of log."""


async def begun_by_nobody(talk: Talk, model: ScriptedModel) -> BegunTurn:
    """A turn that began and that nobody runs, with what its model received."""
    model.script([Say("First.")])
    earlier = await talk.titled_conversation()
    turn = TurnId((await talk.ask(earlier))["turnId"])
    sent = await talk.store.receipts.get(ConversationId(earlier), turn)
    assert sent
    id_ = ConversationId(await talk.titled_conversation())
    conversation = await talk.store.conversations.get(LOCAL, id_)
    assert conversation
    begun = conversation.begin_turn("Why?", NOW, model="default/scripted")
    node_id = cast("Any", (await talk.app.services()).sending)._node.id
    lease = Lease(node_id, FENCE, 10**9)  # no other: a node that is alone takes every turn over
    await talk.store.turns.begin(opened(begun, lease))
    await keep_receipt(talk.store, begun.turn, *sent)
    return begun


def chunk(turn_id: TurnId, first_seq: int, entries: Sequence[EventBody | JournalEntry]) -> LogChunk:
    """Events and what the server notes between them."""
    seq, numbered = first_seq - 1, list[TurnEvent | JournalEntry]()
    for entry in entries:
        if isinstance(entry, EventBody):
            seq += 1
            numbered.append(TurnEvent(turn_id, seq, NOW, entry))
        else:
            numbered.append(entry)
    return LogChunk(turn_id, first_seq, seq, encode_chunk(numbered))


async def write_long_log(log: SqlTurnLog, turn_id: TurnId, calls: int) -> None:
    """Model calls that say much, each with a tool that has returned."""
    seq = 2
    for number in range(1, calls + 1):
        id_ = f"c{number}"
        called = chunk(
            turn_id,
            seq,
            [
                IterationStart(number),
                *[Text(f"{number} {PIECE}")] * PIECES,
                ToolCalled(id_, "look", "test", {}, model_name="test__look"),
                UsageReported(1, 1),
                CallFinished(number, "tool_use", (UseNoted(id_),)),
                Dispatched((Dispatch(id_),)),
                ToolResultStored(id_, "look", "ok", 1, "seen"),
            ],
        )
        assert await log.append([(called, FENCE)])
        seq = called.last_seq + 1


@pytest.fixture
async def abandoned(talk: Talk, model: ScriptedModel) -> BegunTurn:
    """A turn with a long log whose node is about to be found gone."""
    begun = await begun_by_nobody(talk, model)
    await write_long_log(talk.store.log, begun.turn.id, CALLS)
    return begun


async def test_loop_stays_free_while_a_turn_with_a_long_log_resumes(
    talk: Talk, model: ScriptedModel, abandoned: BegunTurn
):
    gate = Gate()
    model.script([Wait(gate), Say("Done.")])
    async with watching_the_loop() as busy:
        await talk.store.log.release(abandoned.turn.id, FENCE)
        await gate.reached()
    assert busy.longest_s < 0.05, busy.what
    gate.open()
    assert (await ended(talk, abandoned)).text.endswith("Done.")
    assert len(model.requests[-1].body["messages"]) > 2 * CALLS


async def test_loop_stays_free_while_a_long_reply_ends(talk: Talk, model: ScriptedModel):
    begun = await begun_by_nobody(talk, model)
    await write_long_log(talk.store.log, begun.turn.id, CALLS // 3)
    gate = Gate()
    model.script([Wait(gate), Say("Done.")])
    await talk.store.log.release(begun.turn.id, FENCE)
    await gate.reached()
    async with watching_the_loop() as busy:
        gate.open()
        await until_ended(talk, begun)
    assert busy.longest_s < 0.05, busy.what


async def until_ended(talk: Talk, begun: BegunTurn) -> None:
    """Waits for the end of a turn."""

    async def has_ended() -> bool:
        return await talk.store.turns.status(begun.turn.id) is not TurnStatus.RUNNING

    await until(has_ended)


async def ended(talk: Talk, begun: BegunTurn) -> Message:
    """The reply of a turn, once it has ended."""
    await until_ended(talk, begun)
    reply = await talk.store.messages.get(begun.conversation.id, begun.assistant_message.id)
    assert reply
    return reply


async def test_log_is_read_in_pages_while_the_lease_is_kept(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    begun = await begun_by_nobody(talk, model)
    await write_long_log(talk.store.log, begun.turn.id, 12)
    monkeypatch.setattr("threadkeep.runtime.leases.BEAT_S", 0)  # it is always time to
    page, renew = SqlTurnLog.page, SqlTurnLog.renew
    steps: list[str] = []

    async def noted_page(log: SqlTurnLog, turn_id: TurnId, after_seq: int) -> Sequence[LogChunk]:
        chunks = await page(log, turn_id, after_seq)
        assert sum(len(it.events) for it in chunks) < 2 * MOST_PAGE_BYTES
        steps.append("page")
        return chunks

    async def noted_renew(log: SqlTurnLog, node_id: str, turn_ids: Iterable[TurnId], length_ms: int) -> Any:
        if list(turn_ids) == [begun.turn.id]:
            steps.append("renewed")
        return await renew(log, node_id, turn_ids, length_ms)

    monkeypatch.setattr(SqlTurnLog, "page", noted_page)
    monkeypatch.setattr(SqlTurnLog, "renew", noted_renew)
    model.script([Say("Done.")])
    await talk.store.log.release(begun.turn.id, FENCE)
    assert (await ended(talk, begun)).text.endswith("Done.")
    assert steps.count("page") > 3
    assert steps[: 2 * 3] == ["page", "renewed"] * 3


async def test_answered_turn_is_handed_off_by_a_node_that_begins_to_end(monkeypatch: pytest.MonkeyPatch):
    @agent()
    async def asking(turn: Turn) -> str:
        return f"You said {await turn.ask('What?')}."

    async with running_app(agents=[asking], agents_pause_after_s=0.05) as app:
        agent_id = await anext(it.id async for it in app.client.agents() if it.engine.key == "asking")
        conversation = await app.client.create_conversation(agent_id, title="Test")
        turn_id = (await app.client.start(conversation.id, "Go")).turn_id

        async def is_waiting() -> bool:
            return (await app.client.turn(turn_id)).status == "WAITING"

        await until(is_waiting)
        (asked,) = await app.client.approvals()
        # It has the program when it takes the answered turn over, but not when it has read its log.
        has_program = iter([True, False])

        def can_run(programs: NodePrograms, code: TurnCode) -> bool:
            return next(has_program, True)

        monkeypatch.setattr(NodePrograms, "can_run", can_run)
        await app.client.answer(turn_id, asked.request_id, "answer", content="that")
        reply = await app.client.reply(turn_id)
    assert next(has_program, None) is None
    assert (reply.status, reply.content) == ("COMPLETED", "You said that.")
