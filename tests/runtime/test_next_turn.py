"""The turn of a queued message begins with the end of the turn before it, whatever fails meanwhile."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.making import ALICE, NOW
from tests.runtime.nodes import Nodes, kinds
from tests.services.running import AWAY, Fault, Script, follow, make_begun, stored_events, until_shown
from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.errors import AgentNotFound
from threadkeep.domain.events import Text, UserMessage
from threadkeep.domain.ids import TurnId
from threadkeep.domain.queued import QueueChange, QueuedMessage
from threadkeep.domain.turn import Turn, TurnStatus
from threadkeep.engine.loop import TurnStep
from threadkeep.engine.steering import Steering, nobody_steers
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.node import Node
from threadkeep.runtime.turn_course import TurnCourse
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.testing import until


@dataclass
class NextTurns:
    """Has queued messages answered by scripted turns, and remembers which were prepared."""

    store: Store
    refuses: bool = False
    prepared: list[BegunTurn] = field(default_factory=list[BegunTurn])
    given_back: int = 0
    meanwhile: Callable[[], Awaitable[None]] | None = None
    """Happens once, when the next turn has been prepared and not begun."""

    async def prepare_next(
        self, previous: Turn, conversation: Conversation, message: QueuedMessage
    ) -> tuple[BegunTurn, TurnCourse]:
        if self.refuses:
            raise AgentNotFound
        begun = conversation.begin_turn(message.content, NOW, message_id=message.id)
        script = Script(begun)
        script.say(Text(f"To {message.content}"), script.done())
        self.prepared.append(begun)
        if (meanwhile := self.meanwhile) is not None:
            self.meanwhile = None
            await meanwhile()
        new = replace(begun, queue=QueueChange(message))
        return new, TurnCourse(script.steps, self.prepare_next, give_back=self.give_back)

    async def give_back(self) -> None:
        self.given_back += 1


class Steered(Script):
    """A turn that keeps what gives it its user's messages, for the test to call."""

    steering: Steering = staticmethod(nobody_steers)

    def steps(self, held: HeldTurn, control: TurnControl) -> AsyncGenerator[TurnStep]:
        self.steering = control.steering
        return super().steps(held, control)


async def run(node: Node, store: Store, next_turns: NextTurns) -> tuple[BegunTurn, Script]:
    begun = await make_begun(store)
    script = Script(begun)
    await node.runner.begin(begun, TurnCourse(script.steps, next_turns.prepare_next))
    return begun, script


async def queue(store: Store, begun: BegunTurn, content: str, *, steers: bool = False) -> QueuedMessage:
    steered = begun.turn.id if steers else None
    message = QueuedMessage.of(begun.conversation.id, content, NOW, steers_turn_id=steered)
    await store.queue.add(message, begun.turn.id)
    return message


async def active_turn(store: Store, begun: BegunTurn) -> TurnId | None:
    conversation = await store.conversations.get(ALICE, begun.conversation.id)
    assert conversation
    return conversation.active_turn_id


async def until_idle(store: Store, begun: BegunTurn) -> None:
    async def is_idle() -> bool:
        return await active_turn(store, begun) is None

    await until(is_idle)


async def contents(store: Store, begun: BegunTurn) -> Sequence[str]:
    return [it.content for it in await store.queue.waiting(begun.conversation.id)]


@pytest.mark.parametrize("fault", ["", "before", "after"])
async def test_next_turn_begins_once_however_often_the_end_is_tried(nodes: Nodes, store: Store, fault: str):
    turns = Fault()
    next_turns = NextTurns(store)
    begun, script = await run(node := nodes.start(turns=turns), store, next_turns)
    for content in ("2?", "3?"):
        await queue(store, begun, content)
    turns.plan = ["", fault, "", fault] if fault else []
    script.say(Text("x"), script.done())
    await follow(node, begun.turn)
    await until_idle(store, begun)
    assert await contents(store, begun) == []
    second, third = (it.turn for it in next_turns.prepared)
    for turn in (begun.turn, second, third):
        assert await store.turns.status(turn.id) is TurnStatus.COMPLETED
        assert kinds(await stored_events(store, turn.id)) == ["turn_start", "text", "done"]
    assert next_turns.given_back == 0


async def test_crash_leaves_either_both_turns_or_the_first_one_running(nodes: Nodes, store: Store):
    turns = Fault()
    next_turns = NextTurns(store)
    begun, script = await run(nodes.start(turns=turns), store, next_turns)
    await queue(store, begun, "2?")
    turns.plan = ["", *["before"] * 10]
    script.say(Text("x"), script.done())
    await until(lambda: len(turns.plan) < 8)
    assert await store.turns.status(begun.turn.id) is TurnStatus.RUNNING
    assert await active_turn(store, begun) == begun.turn.id
    assert await contents(store, begun) == ["2?"]
    await until_idle(store, begun)
    assert await contents(store, begun) == []


@pytest.mark.parametrize(("change", "answered"), [("add", ["2?", "3?"]), ("edit", ["2!"]), ("remove", [])])
async def test_queue_that_changes_while_the_turn_ends_is_read_again(
    nodes: Nodes, store: Store, change: str, answered: list[str]
):
    next_turns = NextTurns(store)
    begun, script = await run(node := nodes.start(), store, next_turns)
    message = await queue(store, begun, "2?")

    async def meanwhile() -> None:
        if change == "add":
            await queue(store, begun, "3?")
        elif change == "edit":
            await store.queue.edit(begun.conversation.id, message.id, "2!")
        else:
            await store.queue.remove(begun.conversation.id, message.id, NOW)

    next_turns.meanwhile = meanwhile
    script.say(Text("x"), script.done())
    await follow(node, begun.turn)
    await until_idle(store, begun)
    assert await contents(store, begun) == []
    asked = [
        it.user_message.content
        for it in next_turns.prepared
        if it.user_message and await store.turns.status(it.turn.id) is TurnStatus.COMPLETED
    ]
    assert (asked, next_turns.given_back) == (answered, 1)


async def test_queue_is_held_where_no_turn_can_begin(nodes: Nodes, store: Store):
    next_turns = NextTurns(store, refuses=True)
    begun, script = await run(node := nodes.start(), store, next_turns)
    await queue(store, begun, "2?")
    script.say(script.done())
    await follow(node, begun.turn)
    assert await active_turn(store, begun) is None
    assert await contents(store, begun) == ["2?"]


async def test_queue_is_held_after_a_turn_that_was_aborted(nodes: Nodes, store: Store):
    next_turns = NextTurns(store)
    begun, _ = await run(node := nodes.start(), store, next_turns)
    await queue(store, begun, "2?")
    assert await node.abort(begun.turn.id)
    assert await active_turn(store, begun) is None
    assert (await contents(store, begun), next_turns.prepared) == (["2?"], [])


@pytest.mark.parametrize("fault", ["", "before", "after"])
async def test_steering_message_is_taken_in_once_after_what_was_said(
    nodes: Nodes, store: Store, fault: str, monkeypatch: pytest.MonkeyPatch
):
    begun = await make_begun(store)
    script, plan = Steered(begun), [fault]
    await (node := nodes.start()).runner.begin(begun, TurnCourse(script.steps))
    take_in = type(store.queue).take_in

    async def broken(*args: object) -> object:
        what = plan.pop() if plan else ""
        if what == "before":
            raise AWAY
        taken = await take_in(*args)  # pyright: ignore[reportArgumentType]
        if what == "after":
            raise AWAY
        return taken

    monkeypatch.setattr(type(store.queue), "take_in", broken)
    script.say(Text("x"))
    await until_shown(node, begun.turn, 2)
    assert not await script.steering()
    message = await queue(store, begun, "No, the other.", steers=True)
    assert await script.steering() == [UserMessage(message.id, "No, the other.")]
    assert not await script.steering()
    script.say(Text("y"), script.done())
    events = await follow(node, begun.turn)
    assert kinds(events) == ["turn_start", "text", "user_message", "text", "done"]
    assert events == await stored_events(store, begun.turn.id)
