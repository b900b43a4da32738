"""A long path moves in small transactions: readers see the one before or the one after, whatever happens."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar, cast

import pytest

from tests.making import ALICE, NOW, all_messages, keep_agent, keep_begun, keep_turn, make_compaction
from tests.storage.test_pieces import Pieces
from threadkeep.domain.conversation import BegunTurn, Branch, Conversation
from threadkeep.domain.errors import StorageConflict, StorageUnavailable
from threadkeep.domain.message import MessageWindow
from threadkeep.imports.conversion import convert_conversation
from threadkeep.imports.foreign import ForeignCall, ForeignConversation, ForeignMessage, ForeignText
from threadkeep.storage.database import pieces
from threadkeep.storage.database.connector import Database, Plan, Query, Statement
from threadkeep.storage.store import Store, store_on, store_reading

T = TypeVar("T")

AT_ONCE = 4
"""Rows of a transaction in these tests."""
BESIDE = 8
"""Rows that a transaction changes besides: the conversation, the move, and what a turn's start adds."""
LENGTH = 10
FIRST = "Where to?"
MOVED = 4
"""How many transactions a move has at least, with what follows it."""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "AT_ONCE", AT_ONCE)
    monkeypatch.setattr(pieces, "FIRST_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(pieces, "SLOW_S", 60)


async def forked(store: Store, name: str = "c") -> Conversation:
    """A question with two long branches after it, written by turns; the first one is the active path, half of
    which is archived.
    """
    messages = [ForeignMessage("q", True, (ForeignText(FIRST),), NOW)]
    for number in range(LENGTH):
        for branch in "ab":
            is_question = number % 2 == 1
            text = ForeignText(f"{branch}{number}")
            parts = (text,) if is_question else (ForeignCall("look", {"n": number}, "Found."), text)
            before = f"{branch}{number - 1}" if number else "q"
            messages.append(ForeignMessage(f"{branch}{number}", is_question, parts, NOW, follows=before))
    found = ForeignConversation("other", name, "Trip", NOW, NOW, tuple(messages), f"a{LENGTH - 1}")
    made, _ = convert_conversation(found, ALICE, (await keep_agent(store)).id, NOW, {})
    await store.whole_conversations.add(made, lambda payload: b"x" * payload.size)
    half = next(it.seq for it in made.messages if it.content == f"a{LENGTH // 2}")
    await store.compactions.add(make_compaction(made.conversation.id, 1, half))
    while await store.history.follow(made.conversation.id, limit=100):
        pass
    return await again(store, made.conversation)


async def again(store: Store, conversation: Conversation) -> Conversation:
    found = await store.conversations.get(ALICE, conversation.id)
    assert found
    return found


async def end_of(store: Store, conversation: Conversation, content: str) -> Any:
    return next(it for it in await all_messages(store, conversation) if it.content == content)


async def seen(store: Store, conversation: Conversation) -> dict[str, object]:
    """All that is read of the path, by what its messages say."""
    id_ = conversation.id
    now = await again(store, conversation)
    every = await all_messages(store, conversation)
    said = {it.id: it.content for it in every}
    page = await store.messages.page(id_, MessageWindow(), offset=0, limit=999)
    newest = await store.messages.page(id_, MessageWindow(newest_first=True), offset=0, limit=5)
    outline = await store.branches.outline(id_, after_seq=0, to_seq=now.last_seq, limit=999)
    current = await store.compactions.current(id_)
    hits = await store.history.search(ALICE, "b1", before=None, limit=99)
    branches = [await store.branches.through(id_, it.id) for it in every if it.content in ("a3", "b3", FIRST)]
    return {
        "path": [it.content for it in page],
        "all": [(it.content, it.on_path) for it in every],
        "calls": [len(it.tool_calls) for it in page],
        "newest": [it.content for it in newest],
        "outline": [said[it.id] for it in outline],
        "tip": said[now.tip_id] if now.tip_id else None,
        "count": (now.message_count, now.archived_to_seq, current and current.to_seq),
        "hits": [(it.snippet, it.on_path) for it in hits],
        "branches": [
            (it.fork_seq, it.hidden, [said[id_] for id_ in it.shown], it.archived_to_seq)
            for it in branches
            if it
        ],
    }


async def choose(store: Store, conversation: Conversation) -> None:
    other = await end_of(store, conversation, "b2")
    branch = await store.branches.through(conversation.id, other.id)
    assert branch
    await store.branches.follow(conversation, branch)


async def take_back(store: Store, conversation: Conversation) -> None:
    first = await end_of(store, conversation, FIRST)
    branch = await store.branches.up_to(conversation.id, first.id)
    assert branch
    await store.branches.follow(conversation, branch)


async def edit_the_first(store: Store, conversation: Conversation) -> None:
    branch = await store.branches.up_to(conversation.id, None)
    await begin(store, conversation, conversation.begin_turn("When?", NOW, branch=branch))


async def edit_on_the_other(store: Store, conversation: Conversation) -> None:
    other = await end_of(store, conversation, f"b{LENGTH - 2}")
    branch = await store.branches.up_to(conversation.id, other.id)
    await begin(store, conversation, conversation.begin_turn("When?", NOW, branch=branch))


async def regenerate(store: Store, conversation: Conversation) -> None:
    first = await end_of(store, conversation, FIRST)
    branch = await store.branches.up_to(conversation.id, first.id)
    assert branch
    await begin(store, conversation, conversation.regenerate(first.id, branch, NOW))


async def begin(store: Store, conversation: Conversation, begun: BegunTurn) -> None:
    async with prepared(store, conversation, begun.branch) as ready:
        await keep_begun(store, replace(begun, branch=ready))


def prepared(store: Store, conversation: Conversation, branch: Branch | None) -> Any:
    assert branch
    last_seq, tip_id = conversation.last_seq, conversation.tip_id
    return store.branches.prepared(conversation.id, branch, last_seq=last_seq, tip_id=tip_id)


Move = Callable[[Store, Conversation], Awaitable[None]]
every_move = pytest.mark.parametrize(
    "move", [choose, take_back, edit_the_first, edit_on_the_other, regenerate]
)


class Watched(Pieces):
    """Calls somebody after each transaction."""

    def __init__(self, database: Database, after_each: Callable[[], Awaitable[None]]) -> None:
        super().__init__(database)
        self._after_each = after_each

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        result = await super().write(plan, urgent=urgent, heavy=heavy)
        await self._after_each()
        return result


async def check_marks(database: Database, store: Store, conversation: Conversation) -> None:
    """Nothing is left of a move: the marks of the messages alone say which path is active."""
    assert await rows(database, "SELECT state FROM tk_path_moves") == []
    assert await rows(database, "SELECT seq FROM tk_messages WHERE joins") == []
    marked = await rows(
        database, f"SELECT seq FROM tk_messages WHERE conversation_id = '{conversation.id}' AND on_path"
    )
    assert {seq for (seq,) in marked} == {
        it.seq for it in await all_messages(store, conversation) if it.on_path
    }


async def rows(database: Database, sql: str) -> list[Any]:
    return list(await database.fetch(Statement(sql)()))


async def finish(database: Database, store: Store) -> None:
    """What nodes do some time after whatever happened."""
    await database.execute(Query(Statement("UPDATE tk_path_moves SET touched_at = 0"), {}))
    await store.branches.settle()


@every_move
async def test_long_path_moves_in_small_transactions_between_which_all_read_the_one_or_the_other(
    move: Move, database: Database
):
    store = await store_on(database)
    conversation = await forked(store)
    before = await seen(store, conversation)
    looks: list[dict[str, object]] = []

    async def look() -> None:
        looks.append(await seen(store, conversation))

    watched = Watched(database, look)
    moving = await store_reading(watched)
    await move(moving, conversation)
    after = await seen(store, conversation)
    assert before != after == looks[-1]
    await moving.branches.settle()
    assert max(watched.rows) <= AT_ONCE + BESIDE
    assert len(watched.rows) >= MOVED
    assert all(it in (before, after) for it in looks)
    changes = [(one, other) for one, other in pairwise([before, *looks]) if one != other]
    assert len(changes) == 1  # once, and never back
    await check_marks(database, store, conversation)


@every_move
async def test_crash_between_two_transactions_leaves_the_one_path_or_the_other(
    move: Move, database: Database
):
    store = await store_on(database)
    outcomes: list[object] = []
    for at in range(100):
        conversation = await forked(store, f"c{at}")
        before = await seen(store, conversation)
        killed = await store_reading(Pieces(database, ends_before=at))
        with suppress(StorageUnavailable):
            await move(killed, conversation)
            await killed.branches.settle()
            break
        left = await seen(store, conversation)
        outcomes.append(left["path"] != before["path"])
        assert left == before or left["path"] != before["path"]
        await finish(database, store)
        assert await seen(store, conversation) == left
        await check_marks(database, store, conversation)
        await store.conversations.purge(ALICE, conversation.id)
    assert len(outcomes) >= MOVED
    assert outcomes == sorted(outcomes, key=bool)
    assert {*outcomes} == {False, True}


class Paused(Pieces):
    """Waits before a transaction until it may go on."""

    def __init__(self, database: Database, *, before: int) -> None:
        super().__init__(database)
        self._before = before
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        if len(self.rows) == self._before:
            self.reached.set()
            await self.go_on.wait()
        return await super().write(plan, urgent=urgent, heavy=heavy)


PAUSES = range(1, MOVED)


@pytest.mark.parametrize("pause", PAUSES)
async def test_message_that_is_sent_while_a_path_is_prepared_comes_first(pause: int, database: Database):
    store = await store_on(database)
    conversation = await forked(store)
    before = await seen(store, conversation)
    paused = Paused(database, before=pause)
    moving = asyncio.create_task(choose(await store_reading(paused), conversation))
    await paused.reached.wait()
    await keep_turn(store, conversation, "And then?", "Home.")
    sent = await seen(store, conversation)
    assert sent["path"] == [*path_in(before), "And then?", "Home."]
    paused.go_on.set()
    with pytest.raises(StorageConflict):
        await moving
    assert await seen(store, conversation) == sent
    await store.branches.settle()  # it was given up at once, not after a silence
    assert await seen(store, conversation) == sent
    await check_marks(database, store, conversation)


def path_in(looked: dict[str, object]) -> list[str]:
    return cast("list[str]", looked["path"])


@every_move
@pytest.mark.parametrize("pause", PAUSES)
async def test_second_move_is_refused_while_one_is_prepared_and_waits_for_nothing_else(
    move: Move, pause: int, database: Database
):
    store = await store_on(database)
    conversation = await forked(store)
    paused = Paused(database, before=pause)
    moving = asyncio.create_task(choose(await store_reading(paused), conversation))
    await paused.reached.wait()
    with pytest.raises(StorageConflict):
        await move(store, conversation)
    paused.go_on.set()
    await moving
    conversation = await again(store, conversation)
    await move(store, conversation) if move is not choose else await choose_first(store, conversation)
    moved = await seen(store, conversation)
    await finish(database, store)
    assert await seen(store, conversation) == moved
    await check_marks(database, store, conversation)


async def choose_first(store: Store, conversation: Conversation) -> None:
    """Back to where it was."""
    first = await end_of(store, conversation, "a2")
    branch = await store.branches.through(conversation.id, first.id)
    assert branch
    await store.branches.follow(conversation, branch)


async def test_move_whose_writer_is_silent_is_given_up_for_another(database: Database):
    store = await store_on(database)
    conversation = await forked(store)
    with pytest.raises(StorageUnavailable):
        await choose(await store_reading(Pieces(database, ends_before=2)), conversation)
    with pytest.raises(StorageConflict):
        await choose(store, conversation)
    await database.execute(Query(Statement("UPDATE tk_path_moves SET touched_at = 0"), {}))
    await choose(store, conversation)
    assert path_in(await seen(store, conversation))[-1] == f"b{LENGTH - 1}"


async def test_cancelled_request_leaves_a_path_that_can_be_moved_at_once(database: Database):
    store = await store_on(database)
    conversation = await forked(store)
    before = await seen(store, conversation)
    paused = Paused(database, before=2)
    moving = asyncio.create_task(choose(await store_reading(paused), conversation))
    await paused.reached.wait()
    paused.go_on.set()
    moving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await moving
    assert await seen(store, conversation) == before
    await choose(store, conversation)
    await store.branches.settle()
    await check_marks(database, store, conversation)


async def test_branch_that_was_read_on_another_path_is_refused_and_hides_nothing(database: Database):
    store = await store_on(database)
    conversation = await forked(store)
    on_a = await seen(store, conversation)
    await choose(store, conversation)
    other = await end_of(store, conversation, "a2")
    back = await store.branches.through(conversation.id, other.id)
    assert back
    await store.branches.follow(await again(store, conversation), back)
    with pytest.raises(StorageConflict):
        await store.branches.follow(await again(store, conversation), back)
    assert await seen(store, conversation) == on_a
    await store.branches.settle()
    assert await seen(store, conversation) == on_a
    await check_marks(database, store, conversation)


async def test_conversation_is_purged_while_its_path_moves(database: Database):
    store = await store_on(database)
    conversation = await forked(store)
    await choose(store, conversation)
    assert await rows(database, "SELECT state FROM tk_path_moves") == [("done",)]
    assert await store.conversations.purge(ALICE, conversation.id)
    await store.branches.settle()
    assert await rows(database, "SELECT state FROM tk_path_moves") == []
