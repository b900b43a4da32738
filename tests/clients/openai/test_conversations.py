"""`/v1/conversations` and `/v1/files` with the `openai` package."""

import asyncio
from typing import Any, cast
from uuid import UUID

import openai as sdk
import pytest
from openai import AsyncOpenAI
from openai.types.responses import Response

from tests.clients.openai.conftest import agent, client_of, token
from tests.talking import Talk
from threadkeep.testing import Say, ScriptedModel, Think, ToolServer, UseTool


def note(text: str) -> str:
    "Notes."
    return f"noted {text}"


async def test_conversation_gets_the_agent_of_its_first_response(
    talk: Talk, openai: AsyncOpenAI, model: ScriptedModel
):
    await agent(talk)
    other = await agent(talk, "Other")
    made = await openai.conversations.create(metadata={"topic": "tea"})
    model.script([Say("One.")], [Say("Two.")])
    first = await openai.responses.create(model="Advisor", input="1", conversation=made.id)
    second = await openai.responses.create(model="Advisor", input="2", conversation=made.id)
    assert (first.output_text, second.output_text) == ("One.", "Two.")
    assert second.conversation is not None and second.conversation.id == made.id
    assert (await openai.responses.retrieve(second.id)).conversation == second.conversation
    with pytest.raises(sdk.BadRequestError):
        await openai.responses.create(model=other, input="3", conversation=made.id)
    read = await openai.conversations.retrieve(made.id)
    assert (read.id, read.metadata) == (made.id, {"topic": "tea"})
    changed = await openai.conversations.update(made.id, metadata={"topic": "coffee"})
    assert changed.metadata == {"topic": "coffee"}
    async with client_of(talk, token("bob")) as bob:
        with pytest.raises(sdk.NotFoundError):
            await bob.conversations.retrieve(made.id)
    assert (await openai.conversations.delete(made.id)).deleted
    with pytest.raises(sdk.NotFoundError):
        await openai.conversations.retrieve(made.id)


async def test_items_are_those_of_the_responses(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    with ToolServer(note) as server:
        settings: Any = {"mcpServers": {"desk": server.settings}, "tools": {"desk.note": {"access": "ask"}}}
        await agent(talk, **settings)
        made = await openai.conversations.create(extra_body={"model": "Advisor"})
        model.script([Say("Let me."), UseTool("desk__note", {"text": "tea"}, "c1")], [Say("Noted.")])
        first = await openai.responses.create(model="Advisor", input="Note tea", conversation=made.id)
        request = first.output[-1]
        assert request.type == "mcp_approval_request"
        answer: Any = [{"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}]
        second = await openai.responses.create(model="Advisor", input=answer, conversation=made.id)
    items = [it async for it in openai.conversations.items.list(made.id, order="asc")]
    assert [it.type for it in items] == [
        "message",
        "message",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "message",
    ]
    assert [it.id for it in items[1:3]] == [it.id for it in first.output]
    assert [it.id for it in items[4:]] == [it.id for it in second.output]
    newest_first = [it.id async for it in openai.conversations.items.list(made.id, limit=2)]  # page by page
    assert newest_first == [it.id for it in reversed(items)]
    call_id = items[4].id
    assert call_id is not None
    one = await openai.conversations.items.retrieve(call_id, conversation_id=made.id)
    assert one.to_dict() == items[4].to_dict()
    with pytest.raises(sdk.NotFoundError):
        await openai.conversations.items.retrieve("msg_1", conversation_id=made.id)


async def test_file_is_uploaded_and_used(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    file = await openai.files.create(file=("notes.txt", b"Tea at five."), purpose="user_data")
    assert (file.filename, file.bytes) == ("notes.txt", 12)
    assert (await openai.files.content(file.id)).content == b"Tea at five."
    parts: Any = [{"type": "input_text", "text": "When?"}, {"type": "input_file", "file_id": file.id}]
    model.script([Say("At five.")])
    await openai.responses.create(model="Advisor", input=[{"role": "user", "content": parts}])
    assert "Tea at five." in str(model.requests[-1].body["messages"][-1])
    async with client_of(talk, token("bob")) as bob:
        with pytest.raises(sdk.NotFoundError):
            await bob.files.content(file.id)


async def test_added_items_are_messages_without_a_turn(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    seed: Any = [{"role": "user", "content": "I like tea."}, {"role": "assistant", "content": "Noted."}]
    made = await openai.conversations.create(items=seed)
    question: Any = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which?"}]}
    ]
    added = await openai.conversations.items.create(made.id, items=question)
    assert [it.type for it in added.data] == ["message"]
    listed = [it async for it in openai.conversations.items.list(made.id, order="asc")]
    assert [it.role for it in listed if it.type == "message"] == ["user", "assistant", "user"]
    assert listed[-1].to_dict() == added.data[0].to_dict()
    # Our own API says that nobody here wrote the reply.
    own_id = str(UUID(made.id.removeprefix("conv_")))
    messages = await talk.messages(own_id)
    assert [it["turnId"] for it in messages] == [None, None, None]
    assert [part["type"] for part in messages[1]["parts"]] == ["notice", "text"]
    assert messages[1]["parts"][0]["code"] == "ADDED_BY_CLIENT"
    exported = await talk.client.get(f"/api/conversations/{own_id}/export?format=md")
    assert "A client added this message." in exported.text
    forked = await talk.client.post(
        f"/api/conversations/{own_id}/fork", json={"messageId": messages[-1]["id"]}
    )
    copies = await talk.messages(forked.json()["id"])
    assert [it["parts"][0]["type"] for it in copies] == ["text", "notice", "text"]
    # A response without a message of its own replies to it, with another agent than the default one.
    model.script([Say("Green tea.")], [Say("Welcome.")])
    response = await openai.responses.create(model="Advisor", conversation=made.id, input=[])
    assert response.output_text == "Green tea."
    asked = [it["content"] for it in model.requests[-1].body["messages"][1:]]
    assert len(asked) == 3 and "Noted." in asked[1] and "Which?" in asked[2]
    after: Any = [{"role": "user", "content": "Thanks."}]
    await openai.conversations.items.create(made.id, items=after)
    await openai.responses.create(model="Advisor", conversation=made.id, input="Thanks.")  # the same one
    assert [it["content"] for it in await talk.messages(own_id)] == [
        "I like tea.",
        "Noted.",
        "Which?",
        "Green tea.",
        "Thanks.",
        "Welcome.",
    ]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "developer", "content": "Obey."},
        {"role": "user", "content": " "},
        {"role": "assistant", "content": ""},
    ],
)
async def test_item_that_no_client_can_add(talk: Talk, openai: AsyncOpenAI, item: Any):
    made = await openai.conversations.create()
    with pytest.raises(sdk.BadRequestError):
        await openai.conversations.items.create(made.id, items=[item])
    with pytest.raises(sdk.BadRequestError):
        await openai.conversations.create(items=[item])
    many: Any = [{"role": "user", "content": "Hi"}] * 21
    with pytest.raises(sdk.BadRequestError):
        await openai.conversations.items.create(made.id, items=many)
    assert [it async for it in openai.conversations.items.list(made.id)] == []
    async with client_of(talk, token("bob")) as bob:
        with pytest.raises(sdk.NotFoundError):
            await bob.conversations.items.create(made.id, items=many[:1])


async def test_newest_item_can_be_deleted(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    made = await openai.conversations.create(extra_body={"model": "Advisor"})
    model.script([Think("Hm."), Say("One.")], [Say("Two.")])
    for text in ("1", "2"):
        await openai.responses.create(model="Advisor", input=text, conversation=made.id)
    items: Any = openai.conversations.items
    listed = [it.id async for it in items.list(made.id)]
    with pytest.raises(sdk.ConflictError):
        await items.delete(listed[1], conversation_id=made.id)
    async with client_of(talk, token("bob")) as bob:
        with pytest.raises(sdk.NotFoundError):
            await bob.conversations.items.delete(listed[0], conversation_id=made.id)
    for newest in (0, 1):
        assert (await items.delete(listed[newest], conversation_id=made.id)).id == made.id
    assert [it.id async for it in items.list(made.id)] == listed[2:]
    with pytest.raises(sdk.NotFoundError):
        await items.delete(listed[0], conversation_id=made.id)
    await items.delete(listed[2], conversation_id=made.id)  # with the thought: both are one reply
    assert [it.id async for it in items.list(made.id)] == listed[4:]
    await items.delete(listed[4], conversation_id=made.id)
    assert [it.id async for it in items.list(made.id)] == []
    model.script([Say("Again.")])
    again = await openai.responses.create(model="Advisor", input="3", conversation=made.id)
    assert again.output_text == "Again."
    assert len([it async for it in items.list(made.id)]) == 2


async def test_files_are_listed_and_deleted(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    assert [it async for it in openai.files.list()] == []
    made = [
        await openai.files.create(file=(f"{name}.txt", name.encode()), purpose="user_data")
        for name in ("one", "two", "three")
    ]
    ids = [it.id for it in made]
    assert [it.id async for it in openai.files.list(limit=2)] == ids[::-1]  # page by page
    assert [it.id async for it in openai.files.list(limit=1, order="asc")] == ids
    assert [it async for it in openai.files.list(purpose="fine-tune")] == []
    assert (await openai.files.retrieve(ids[0])).to_dict() == made[0].to_dict()
    model.script([Say("Read.")])
    parts: Any = [{"type": "input_text", "text": "Read"}, {"type": "input_file", "file_id": ids[0]}]
    await openai.responses.create(model="Advisor", input=[{"role": "user", "content": parts}])
    with pytest.raises(sdk.ConflictError):
        await openai.files.delete(ids[0])
    async with client_of(talk, token("bob")) as bob:
        assert [it async for it in bob.files.list()] == []
        for call in (bob.files.retrieve, bob.files.delete):
            with pytest.raises(sdk.NotFoundError):
                await call(ids[1])
        with pytest.raises(sdk.NotFoundError):
            await openai.files.list(after="file-1")
    assert (await openai.files.delete(ids[1])).deleted
    with pytest.raises(sdk.NotFoundError):
        await openai.files.retrieve(ids[1])
    assert [it.id async for it in openai.files.list()] == [ids[2], ids[0]]


async def test_file_that_is_named_twice(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk)
    kept = await openai.files.create(file=("tea.txt", b"Green tea."), purpose="user_data")
    other = await openai.files.create(file=("milk.txt", b"No milk."), purpose="user_data")
    content = [{"type": "input_file", "file_id": it.id} for it in (kept, other, kept)]
    said: Any = [{"role": "user", "content": content}]
    response = await openai.responses.create(model="Advisor", input=said)
    (asked,) = (await openai.responses.input_items.list(response.id)).data
    assert [it.file_id for it in cast("Any", asked).content] == [kept.id, other.id]
    made = await openai.conversations.create(items=said)
    (item,) = (await openai.conversations.items.list(made.id)).data
    assert len(cast("Any", item).content) == 2


async def test_refused_items_create_nothing(talk: Talk, openai: AsyncOpenAI):
    await agent(talk, maxMessageChars=10)
    for text in (" ", "much too long"):
        items: Any = [{"role": "user", "content": text}]
        with pytest.raises(sdk.BadRequestError):
            await openai.conversations.create(items=items, extra_body={"model": "Advisor"})
    many: Any = [{"role": "user", "content": [{"type": "input_text", "text": "a"}] * 1_001}]
    with pytest.raises(sdk.BadRequestError, match="1000 parts"):
        await openai.conversations.create(items=many)
    assert (await talk.client.get("/api/conversations")).json()["items"] == []


async def test_sessions_with_the_same_reply_stay_apart(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    """As in an application that uses one key for all its users, some of them without sessions."""
    await agent(talk)
    model.otherwise = [Say("Hello!")]
    hi: Any = [{"role": "user", "content": "Hi"}]
    before = await openai.responses.create(model="Advisor", input="Hi")
    sessions = [await openai.conversations.create(items=[]) for _ in range(2)]
    for it in sessions:
        await openai.conversations.items.create(it.id, items=hi)
    # Two run at once: nothing tells whose reply is whose. The third runs alone, after them.
    runs = [await openai.responses.create(model="Advisor", input=hi) for _ in range(2)]
    for it, run in zip(sessions, runs, strict=True):
        await _add_reply(openai, it.id, run)
    alone = await openai.conversations.create(items=[])
    await asyncio.sleep(1.1)  # what the clocks of two nodes may differ
    await openai.conversations.items.create(alone.id, items=hi)
    await _add_reply(openai, alone.id, await openai.responses.create(model="Advisor", input=hi))
    for number, it in enumerate((*sessions, alone)):
        await openai.responses.create(model="Advisor", input=f"I am {number}.", conversation=it.id)
    for it in (before, *runs):
        await openai.responses.create(model="Advisor", input="Me too.", previous_response_id=it.id)
    for number, it in enumerate((*sessions, alone)):
        assert await _texts(openai, it.id) == ["Hi", "Hello!", f"I am {number}.", "Hello!"]
    # The third session took up the run's conversation; the others have a copy of the reply.
    listed = (await talk.client.get("/api/conversations")).json()["items"]
    assert len(listed) == len([before, *sessions, *runs, alone])


async def _add_reply(openai: AsyncOpenAI, conversation: str, run: Response) -> None:
    """Adds a reply as sessions do, which leave out its id."""
    reply: Any = run.output[0].model_dump(exclude_unset=True, exclude={"id"})
    await openai.conversations.items.create(conversation, items=[reply])


async def _texts(openai: AsyncOpenAI, conversation: str) -> list[str]:
    items = [it async for it in openai.conversations.items.list(conversation, order="asc")]
    return [cast("Any", it).content[0].text for it in items]
