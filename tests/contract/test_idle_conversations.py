"""Conversations that nobody writes in: noted, kept for as long as was told, deleted, on each database."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.making import ALICE, BOB, NOW, keep_agent, keep_begun, keep_conversation
from threadkeep.domain.agent import Agent, AgentSettings, AuditEntry
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.domain.retention.rule import DAY_MS, NOTICE_MS, NOTICE_OF_SHORTER_MS, Rule, operators_rule
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.jobs.idle_conversations import IdleConversations
from threadkeep.metrics import Metrics
from threadkeep.storage.store import Store

DAYS = 100
START = NOW


class Sweep:
    """The hourly job, at any time."""

    def __init__(self, store: Store, days: int = DAYS) -> None:
        self.store = store
        self.events: list[tuple[UserEventType, str | None]] = []
        self.metrics = Metrics()
        self.now = START
        self.days = days

    async def at(self, day: float, days: int | None = None) -> int:
        """Sweeps on a day; returns how many conversations were deleted."""
        self.now = START + int(day * DAY_MS)
        self.days = self.days if days is None else days
        self.events.clear()
        job = IdleConversations(
            self.store.idle, self._publish, self.metrics, lambda: self.now, days=self.days
        )
        return await job.sweep()

    async def _publish(self, event: UserEvent) -> None:
        self.events.append((event.type, event.conversation_id))


async def read(store: Store, conversation: Conversation) -> Conversation | None:
    return await store.conversations.get(conversation.user_id, conversation.id)


async def note_of(store: Store, conversation: Conversation) -> float | None:
    """On which day a conversation will be deleted; None if that isn't near."""
    found = await read(store, conversation)
    assert found is not None
    return None if found.deletes_at is None else (found.deletes_at - START) / DAY_MS


async def set_days(store: Store, agent: Agent, days: int, day: float) -> None:
    """Has an agent's owner change the rule."""
    now = START + int(day * DAY_MS)

    def change(it: Agent) -> Agent:
        return replace(
            it, settings=replace(it.settings, delete_after_days=days), updated_at=now, version=it.version + 1
        )

    entry: Callable[[Agent], AuditEntry] = lambda it: AuditEntry(  # noqa: E731
        new_uuid(), now, ALICE, "update", it.id, {}
    )
    await store.agents.update(agent.id, change, entry)


async def rules_of(store: Store, agent: Agent) -> list[Rule]:
    return [rule async for agents, _, rule in store.idle.ranges(None) if agents == [agent.id]]


async def test_user_is_told_a_week_before_and_the_conversation_goes_after_it(store: Store):
    agent, sweep = await keep_agent(store), Sweep(store)
    kept = await keep_conversation(store, agent)
    assert await sweep.at(92.9) == 0 and await note_of(store, kept) is None
    assert await sweep.at(93) == 0
    assert await note_of(store, kept) == 100
    assert sweep.events == [(UserEventType.CONVERSATION_CHANGED, kept.id)]
    assert await sweep.at(94) == 0 and sweep.events == [] and await note_of(store, kept) == 100
    assert await sweep.at(99.9) == 0
    assert await sweep.at(100) == 1
    assert await read(store, kept) is None
    assert sweep.events == [(UserEventType.CONVERSATION_DELETED, kept.id)]
    assert sweep.metrics.idle == {"noted": 1, "deleted": 1}
    entries = await store.agents.audit_page(before=None, offset=0, limit=1)
    assert entries[0].action == "delete_idle_conversations"
    assert entries[0].details == {"conversationIds": [kept.id]}
    # As if its user had deleted it: who restores it has it for as long as after any notice.
    restored = await store.conversations.restore(ALICE, kept.id)
    assert restored is not None and restored.deletes_at is None
    assert await sweep.at(100.1) == 0 and await note_of(store, kept) == pytest.approx(107.1)


async def test_without_a_rule_everything_stays_and_a_new_or_shorter_rule_deletes_nothing_at_once(
    store: Store,
):
    agent, sweep = await keep_agent(store), Sweep(store, 0)
    kept = await keep_conversation(store, agent)
    assert await sweep.at(5000) == 0 and await note_of(store, kept) is None
    assert await store.idle.count_untold(None, sweep.now) == 0
    assert await sweep.at(5000, days=1000) == 0 and await note_of(store, kept) == 5007
    assert await sweep.at(5001, days=1) == 0 and await note_of(store, kept) == 5007
    # A longer rule takes the notice back, and no rule does, too.
    assert await sweep.at(5002, days=6000) == 0 and await note_of(store, kept) is None
    assert await sweep.at(5003, days=1000) == 0 and await note_of(store, kept) == 5010
    assert await sweep.at(5020, days=0) == 0 and await note_of(store, kept) is None


async def test_notice_of_a_short_rule_is_half_its_time(store: Store):
    agent, sweep = await keep_agent(store), Sweep(store, 1)
    kept = await keep_conversation(store, agent)
    assert await sweep.at(0.4) == 0 and await note_of(store, kept) is None
    assert await sweep.at(0.75) == 0 and await note_of(store, kept) == 1.25
    assert await sweep.at(1.25) == 1


async def test_pin_keeps_a_conversation_and_so_does_a_turn(store: Store):
    agent, sweep = await keep_agent(store), Sweep(store)
    pinned, talked, running = [await keep_conversation(store, agent) for _ in range(3)]
    await keep_begun(store, running.begin_turn("?", START, model="scripted"))
    await sweep.at(95)
    noted = [await note_of(store, it) for it in (pinned, talked, running)]
    assert noted == [pytest.approx(102), pytest.approx(102), None]
    await store.conversations.update(ALICE, pinned.id, lambda it: it.pin(is_pinned=True))
    assert await note_of(store, pinned) is None
    begun = talked.begin_turn("Still here?", START + 96 * DAY_MS, model="scripted")
    await keep_begun(store, begun)
    assert await note_of(store, talked) is None
    assert await sweep.at(1000) == 0
    assert all([await read(store, it) for it in (pinned, talked, running)])
    await store.conversations.update(ALICE, pinned.id, lambda it: it.pin(is_pinned=False))
    assert await sweep.at(1001) == 0 and await note_of(store, pinned) == 1008


async def test_message_and_deletion_at_the_same_time_both_know_who_won(store: Store):
    agent, sweep = await keep_agent(store), Sweep(store)
    kept = [await keep_conversation(store, agent) for _ in range(12)]
    await sweep.at(95)

    async def write(conversation: Conversation) -> bool:
        try:
            await keep_begun(store, conversation.begin_turn("!", START + 103 * DAY_MS, model="scripted"))
        except StorageConflict:
            return False
        return True

    deleted, *saved = await asyncio.gather(sweep.at(103), *(write(it) for it in kept))
    for conversation, is_saved in zip(kept, saved, strict=True):
        found = await read(store, conversation)
        assert (found is not None) == is_saved
        assert found is None or (found.message_count == 2 and found.deletes_at is None)
    assert deleted == saved.count(False)


async def test_several_nodes_note_and_delete_each_conversation_once(store: Store, monkeypatch: Any):
    monkeypatch.setattr("threadkeep.jobs.idle_conversations.AT_ONCE", 7)
    monkeypatch.setattr("threadkeep.jobs.idle_conversations.READ_AT_ONCE", 5)
    agent = await keep_agent(store)
    kept = {(await keep_conversation(store, agent)).id for _ in range(30)}
    nodes = [Sweep(store) for _ in range(3)]
    for day, what in ((95, "noted"), (103, "deleted")):
        for _ in range(3):  # one that finds rows locked leaves them to the next round
            await asyncio.gather(*(it.at(day) for it in nodes))
        assert sum(it.metrics.idle[what] for it in nodes) == len(kept)
    entries = await store.agents.audit_page(before=None, offset=0, limit=100)
    listed: list[str] = [
        id_
        for it in entries
        if it.action == "delete_idle_conversations"
        for id_ in it.details["conversationIds"]  # pyright: ignore
    ]
    assert sorted(listed) == sorted(kept)


async def test_agents_rule_counts_for_others_only_from_when_it_was_made(store: Store):
    agent, sweep = await keep_agent(store), Sweep(store, 0)

    async def begin(day: float, user: UserId = BOB) -> Conversation:
        return await keep_conversation(store, agent, user, START + int(day * DAY_MS))

    before, own = await begin(0), await begin(0, ALICE)
    await set_days(store, agent, 60, day=10)
    while_longer = await begin(11)
    await set_days(store, agent, 30, day=20)
    after = await begin(21)
    assert await sweep.at(29) == 0
    assert await note_of(store, own) == 36
    assert [await note_of(store, it) for it in (before, while_longer, after)] == [None, 59, None]
    assert await sweep.at(45) == 1 and await read(store, own) is None
    assert await note_of(store, after) == 52
    assert await sweep.at(60) == 2 and await read(store, before) is not None
    # The operator's rule is for everybody; without a rule of the agent nothing else is.
    await set_days(store, agent, 0, day=61)
    late = await begin(61)
    assert await sweep.at(200) == 0 and await note_of(store, late) is None
    assert await sweep.at(201, days=150) == 0 and await note_of(store, before) == 208


async def test_agents_own_rule_is_kept_with_it(store: Store):
    settings = AgentSettings(delete_after_days=30)
    agent = await keep_agent(store, settings=settings)
    rules = await rules_of(store, agent)
    assert [(it.days, it.notice_ms, it.begun_from) for it in rules] == [
        (30, NOTICE_MS, 0),
        (30, NOTICE_MS, agent.updated_at),
    ]
    await set_days(store, agent, 20, day=1)
    rules = await rules_of(store, agent)
    assert [it.notice_ms for it in rules] == [NOTICE_MS, NOTICE_MS, NOTICE_OF_SHORTER_MS]
    await set_days(store, agent, 90, day=2)
    await set_days(store, agent, 0, day=3)
    assert await rules_of(store, agent) == []


async def test_dry_run_counts_what_the_sweep_would_note(store: Store):
    agent, sweep = await keep_agent(store), Sweep(store)
    for day in (0, 0, 50):
        await keep_conversation(store, agent, now=START + day * DAY_MS)
    sweep.now = START + 95 * DAY_MS
    assert await store.idle.count_untold(operators_rule(DAYS), sweep.now) == 2
    assert await store.idle.noted() == (0, None)
    await sweep.at(95)
    assert await store.idle.count_untold(operators_rule(DAYS), sweep.now) == 0
    assert await store.idle.noted() == (2, START + 102 * DAY_MS)
