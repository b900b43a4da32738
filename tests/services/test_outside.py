"""Other people's clients: whose ids are whose, where a message belongs, and what a repeated request does."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.talking import Talk
from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import Conflict, InvalidRequest
from threadkeep.domain.ids import UserId
from threadkeep.domain.message import Message, MessageStatus
from threadkeep.domain.turn import BegunWith, Turn
from threadkeep.domain.user import User, UserRole
from threadkeep.handling.services import Services
from threadkeep.services.outside import MOST_ID_CHARACTERS, Outside
from threadkeep.services.sending import NewMessage
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, UseTool, Wait

LOCAL = User(UserId("local"), UserRole.ADMIN)
BOB = User(UserId("bob"))
BEGUN_WITH = BegunWith(protocol="test", run_id="run-1", asked_model="gpt-4")


@dataclass
class Chat:
    """One conversation, and what a client says in it."""

    services: Services
    conversation: Conversation

    @property
    def outside(self) -> Outside:
        return self.services.outside

    async def begin(
        self, content: str, id_: str | None = None, *before: str, starts_over: bool = False
    ) -> Turn:
        message = NewMessage(content, begun_with=BEGUN_WITH, outside_id=id_)
        where = await self.now()
        turn, _ = await self.outside.send(LOCAL, where, message, before=before, starts_over=starts_over)
        return turn

    async def say(
        self, content: str, id_: str | None = None, *before: str, starts_over: bool = False
    ) -> Turn:
        turn = await self.begin(content, id_, *before, starts_over=starts_over)
        await self.services.turns.finished(turn)
        return turn

    async def now(self) -> Conversation:
        return await self.services.conversations.get(LOCAL, self.conversation.id)

    async def path(self) -> Sequence[Message]:
        pages = [page async for page in self.outside.newest_first(LOCAL, await self.now())]
        return [message for page in pages for message in page][::-1]

    async def texts(self) -> list[object]:
        return [it.content for it in await self.path()]


@pytest.fixture
async def chat(talk: Talk, model: ScriptedModel) -> Chat:
    def reply(request: Recorded) -> Reply:
        return [Say(f"Re: {request.body['messages'][-1]['content']}")]

    model.otherwise = reply
    services = await talk.app.services()
    return Chat(services, await opened(services, "chat-1"))


async def opened(services: Services, id_: str, agent_id: str | None = None) -> Conversation:
    """One that has a title already: the model is only asked for replies."""
    agent_id = agent_id or (await services.agents.default_of(LOCAL)).id
    conversation, _ = await services.conversations.create(LOCAL, agent_id, title="About that", metadata=None)
    return await services.store.outside_ids.bind(conversation, id_)


async def opened_by(services: Services, user: User, id_: str, content: str = "Hello") -> Conversation:
    """The conversation that takes a user's first message."""
    where = await services.outside.find_or_new(user, id_)
    message = NewMessage(content, begun_with=BEGUN_WITH)
    _, conversation = await services.outside.send(user, where, message)
    return conversation


async def test_every_user_has_their_own_ids_and_reads_create_none(chat: Chat):
    assert await chat.outside.find(BOB, "chat-1") is None
    theirs = await opened_by(chat.services, BOB, "chat-1")
    assert theirs.id != chat.conversation.id
    # Somebody else's conversation is no more than a name.
    alias = await opened_by(chat.services, BOB, chat.conversation.id)
    assert alias.id not in {chat.conversation.id, theirs.id}
    found = await chat.outside.find(BOB, chat.conversation.id)
    assert found is not None and found.id == alias.id
    own = await chat.outside.find(LOCAL, chat.conversation.id.upper())
    assert own is not None and own.id == chat.conversation.id


async def test_requests_that_bring_the_same_new_id_at_once_share_a_conversation(chat: Chat):
    said = [f"{number}?" for number in range(8)]
    opened = await asyncio.gather(*(opened_by(chat.services, LOCAL, "chat-2", it) for it in said))
    assert len({it.id for it in opened}) == 1


async def test_deleted_conversation_frees_its_id_and_restored_one_reclaims_it_if_it_is_free(chat: Chat):
    conversations, first = chat.services.conversations, chat.conversation
    await conversations.delete(LOCAL, first.id, purge=False)
    assert await chat.outside.find(LOCAL, "chat-1") is None
    await conversations.restore(LOCAL, first.id)
    assert (await opened_by(chat.services, LOCAL, "chat-1")).id == first.id
    await conversations.delete(LOCAL, first.id, purge=False)
    second = await opened_by(chat.services, LOCAL, "chat-1")
    await conversations.restore(LOCAL, first.id)
    assert (await opened_by(chat.services, LOCAL, "chat-1")).id == second.id != first.id


async def test_id_of_a_conversation_with_another_agent_is_a_conflict(chat: Chat, talk: Talk):
    other = (await talk.client.post("/api/agents", json={"name": "Other"})).json()["id"]
    with pytest.raises(Conflict):
        await chat.outside.find_or_new(LOCAL, "chat-1", other)


@pytest.mark.parametrize("id_", ["", "x" * (MOST_ID_CHARACTERS + 1), "a\0b", "\ud800"])
async def test_impossible_id_is_refused(chat: Chat, id_: str):
    with pytest.raises(InvalidRequest):
        await chat.outside.find_or_new(LOCAL, id_)


async def test_message_follows_the_one_before_it_by_our_id_or_the_clients(chat: Chat):
    first = await chat.say("1?", "m1")
    await chat.say("2?", "m2", "m1", first.assistant_message_id)
    assert await chat.texts() == ["1?", "Re: 1?", "2?", "Re: 2?"]
    # One answer of ours may be several messages of theirs.
    await chat.say("3?", "m3", f"{first.assistant_message_id}-2")
    assert await chat.texts() == ["1?", "Re: 1?", "3?", "Re: 3?"]


async def test_question_before_a_message_stands_for_its_newest_answer(chat: Chat):
    await chat.say("1?", "m1")
    await chat.say("2?", "m2", "m1")
    assert await chat.texts() == ["1?", "Re: 1?", "2?", "Re: 2?"]


@pytest.mark.parametrize("before", [(), ("unknown",), ("m1", "not-stored")])
async def test_message_after_one_that_nobody_knows_goes_to_the_end(chat: Chat, before: tuple[str, ...]):
    await chat.say("1?", "m1")
    await chat.say("2?", "m2", *before)
    assert await chat.texts() == ["1?", "Re: 1?", "2?", "Re: 2?"]


async def test_edit_branches_whether_its_id_is_new_or_the_same(chat: Chat):
    first = await chat.say("1?", "m1")
    await chat.say("2?", "m2", first.assistant_message_id)
    await chat.say("2 better?", "m2", first.assistant_message_id)
    assert await chat.texts() == ["1?", "Re: 1?", "2 better?", "Re: 2 better?"]
    await chat.say("1 better?", "m1")
    assert await chat.texts() == ["1 better?", "Re: 1 better?"]
    await chat.say("From the beginning?", "m9", starts_over=True)
    assert await chat.texts() == ["From the beginning?", "Re: From the beginning?"]
    ids = await chat.outside.ids_of(await chat.now(), await chat.path())
    assert next(iter(ids.values())) == "m9"


async def test_message_ends_the_running_turn_and_keeps_its_text(chat: Chat, model: ScriptedModel):
    gate = Gate()
    model.script([Say("Once upon"), Wait(gate)])
    running = await chat.begin("1?", "m1")
    await gate.reached()
    await chat.say("2?", "m2", "m1", running.assistant_message_id)
    assert await chat.texts() == ["1?", "Once upon", "2?", "Re: 2?"]
    assert (await chat.path())[1].status is MessageStatus.CANCELLED


async def test_repeated_request_follows_its_turn_and_an_edit_with_the_same_id_ends_it(
    chat: Chat, model: ScriptedModel
):
    gate = Gate()
    model.script([Say("Once upon"), Wait(gate)])
    running = await chat.begin("1?", "m1")
    await gate.reached()
    assert (await chat.begin("1?", "m1")).id == running.id
    assert (await chat.begin("1?")).id == running.id
    edited = await chat.say("1 better?", "m1")
    assert edited.id != running.id
    assert await chat.texts() == ["1 better?", "Re: 1 better?"]


async def test_message_goes_before_a_held_queue(chat: Chat, talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("Once upon"), Wait(gate)])
    running = await chat.begin("1?", "m1")
    await gate.reached()
    queued = {"content": "Later?", "whenBusy": "queue"}
    path = f"/api/conversations/{chat.conversation.id}/messages"
    assert (await talk.client.post(path, json=queued)).status_code == 202
    gate.open()
    await chat.services.turns.abort(LOCAL, chat.conversation.id)
    await chat.begin("2?", "m2", running.assistant_message_id)
    assert (await chat.path())[2].content == "2?"


async def test_regenerated_answer_stands_beside_the_old_one_and_a_repeated_request_follows_it(
    chat: Chat, model: ScriptedModel
):
    first = await chat.say("1?", "m1")
    gate = Gate()
    model.script([Say("Better"), Wait(gate), Say(".")])
    again = await chat.outside.regenerate(LOCAL, await chat.now(), BEGUN_WITH, question_id="m1")
    await gate.reached()
    asked = {"question_id": "m1"}, {"answer_id": first.assistant_message_id}
    for which in map(dict[str, Any], asked):
        assert (await chat.outside.regenerate(LOCAL, await chat.now(), BEGUN_WITH, **which)).id == again.id
    gate.open()
    await chat.services.turns.finished(again)
    assert await chat.texts() == ["1?", "Better."]


async def test_equal_regenerations_at_once_are_one_turn(chat: Chat, model: ScriptedModel):
    await chat.say("1?", "m1")
    gate = Gate()
    model.script([Say("Better"), Wait(gate), Say(".")])
    now = await chat.now()
    regenerations = [chat.outside.regenerate(LOCAL, now, BEGUN_WITH, question_id="m1") for _ in range(3)]
    turns = await asyncio.gather(*regenerations)
    assert len({it.id for it in turns}) == 1
    gate.open()
    await chat.services.turns.finished(turns[0])


async def test_message_that_claims_an_answers_id_gets_its_own(chat: Chat):
    first = await chat.say("1?", "m1")
    await chat.say("2?", first.assistant_message_id, first.assistant_message_id)
    ids = await chat.outside.ids_of(await chat.now(), await chat.path())
    assert len(set(ids.values())) == 4


async def test_turn_keeps_what_it_was_begun_with(chat: Chat):
    turn = await chat.say("1?", "m1")
    kept = (await chat.services.turns.get(LOCAL, turn.id)).begun_with
    assert kept == replace(BEGUN_WITH, leaves_queue=True)


async def test_answer_continues_after_what_the_client_has_also_when_it_is_repeated(
    talk: Talk, model: ScriptedModel
):
    services = await talk.app.services()
    model.script([UseTool("ask_user", {"question": "Which one?"})], [Say("Fine.")])
    agent = await talk.client.post("/api/agents", json={"name": "Asker", "settings": {"askUser": True}})
    conversation = await opened(services, "chat-1", agent.json()["id"])
    message = NewMessage("Go?", begun_with=BEGUN_WITH, outside_id="m1")
    turn, _ = await services.outside.send(LOCAL, conversation, message)
    assert await services.turns.finished(turn) is None
    (request,) = await services.approvals.open(LOCAL, turn)
    decision = Decision(action=ApprovalAction.ANSWER, at=1, content="The red one")
    seen = await last_seq(services, turn)
    assert request.tool_call_id
    for id_ in (request.tool_call_id, request.request_id):
        conversation = await services.conversations.get(LOCAL, conversation.id)
        answered, after = await services.outside.answer(LOCAL, conversation, {id_: decision})
        assert (answered.id, after) == (turn.id, seen)
    assert await services.turns.finished(turn) is not None


async def last_seq(services: Services, turn: Turn) -> int:
    return (await services.store.log.read(turn.id, 0))[-1].last_seq
