"""Agents of the `openai-agents` package whose models are agents of ours."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import new_agent, signed_in
from tests.clients.node import Driver
from tests.clients.python import driving
from tests.conftest import ONLY_SQLITE
from tests.docs.pages import DOCS, blocks
from tests.talking import Talk
from threadkeep.testing import Gate, Say, ScriptedModel, Think, ToolServer, UseTool, Wait

FOLDER = Path(__file__).parent


class Agents:
    """The driver, told where and who."""

    def __init__(self, driver: Driver, talk: Talk) -> None:
        self._talk = talk
        key = signed_in("alice")["authorization"].removeprefix("Bearer ")
        self.do = partial(driver.do, url=talk.url, key=key)

    async def run(self, text: Any, **options: Any) -> Any:
        return await self.do("run", **{"agent": "Advisor", "input": text, **options})

    async def conversations(self) -> list[list[str]]:
        """What our own API has of the user's conversations, oldest first."""
        listed = (await self._talk.client.get("/api/conversations")).json()["items"]
        return [await self._path(it["id"]) for it in listed[::-1]]

    async def _path(self, conversation_id: str) -> list[str]:
        messages = await self._talk.messages(conversation_id)
        return [it["content"] for it in messages if it["status"] != "OVERWRITTEN"]


@pytest.fixture
async def agents(talk: Talk) -> AsyncIterator[Agents]:
    await new_agent(talk)
    async with driving(FOLDER / "driver.py", FOLDER / "packages.lock") as driver:
        yield Agents(driver, talk)


async def test_run_with_a_function_of_the_client(agents: Agents, model: ScriptedModel):
    for stream in (False, True):
        model.script([Think("Hm."), UseTool("locate", {"near": "Aare"}, "c1")], [Say("In "), Say("Bern.")])
        ran = await agents.run("Where am I?", tools=True, stream=stream)
        assert ran["output"] == "In Bern."
        assert ran["items"] == [
            "reasoning_item",
            "tool_call_item",
            "tool_call_output_item",
            "message_output_item",
        ]
        assert "".join(ran["deltas"]) == ("In Bern." if stream else "")
        assert ran["tokens"] > 0
        assert "Bern, near Aare" in str(model.requests[-1].body["messages"])
        assert "You are Assistant." in str(model.requests[-2].body["messages"][0])
    assert await agents.conversations() == [["Where am I?", "In Bern."]] * 2
    # A list of the whole run continues it.
    model.script([Say("Yes.")])
    again = await agents.run([*ran["list"], {"role": "user", "content": "Sure?"}], tools=True)
    assert again["output"] == "Yes."
    assert (await agents.conversations())[-1] == ["Where am I?", "In Bern.", "Sure?", "Yes."]


async def test_chain_of_responses_and_a_conversation(talk: Talk, agents: Agents, model: ScriptedModel):
    replies = ([Say("One.")], [UseTool("locate", {"near": "Aare"}, "c1")], [Say("Two.")])
    model.script(*replies)
    first = await agents.run("1", chained=True)
    second = await agents.run("2", previous=first["responses"][-1], tools=True)
    assert (first["output"], second["output"]) == ("One.", "Two.")
    made = (await talk.client.post("/v1/conversations", json={})).json()["id"]
    model.script(*replies)
    for stream in (True, False):
        await agents.run("Go on", conversation=made, tools=True, stream=stream)
    assert await agents.conversations() == [["1", "One.", "2", "Two."], ["Go on", "One.", "Go on", "Two."]]


async def test_session_is_one_conversation_without_doubles(talk: Talk, agents: Agents, model: ScriptedModel):
    for stream in (False, True):
        model.script(
            [Say("One.")],
            [Think("Hm."), UseTool("locate", {"near": "Aare"}, "c1")],
            [Say("Two.")],
            [Say("Three.")],
        )
        run = partial(agents.run, session=f"streams: {stream}", tools=True, stream=stream)
        assert [(await run(text))["output"] for text in ("1", "2", "3")] == ["One.", "Two.", "Three."]
        kept = await agents.do("session_items", session=f"streams: {stream}")
        assert [it["type"] for it in kept["items"]] == [
            "message",
            "message",
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "message",
            "message",
            "message",
        ]
        latest = await agents.do("session_items", session=f"streams: {stream}", limit=2)
        assert latest["items"] == kept["items"][-2:]
        # The agent wrote the replies: each has its turn, and none is marked as a client's.
        (newest, *_) = (await talk.client.get("/api/conversations")).json()["items"]
        messages = await talk.messages(newest["id"])
        assert all(it["turnId"] for it in messages if it["role"] == "assistant")
        assert not any(part["type"] == "notice" for it in messages for part in it["parts"])
    assert await agents.conversations() == [["1", "One.", "2", "Two.", "3", "Three."]] * 2


async def test_sessions_that_begin_alike_keep_their_own_replies(agents: Agents, model: ScriptedModel):
    """As in an application that uses one key for all its users."""
    gates = [Gate(), Gate()]
    model.script(*[[Wait(gate), Say(f"{number}.")] for number, gate in enumerate(gates)])
    runs = [asyncio.create_task(agents.run("Hi", session=f"{number}")) for number in (0, 1)]
    for gate in gates:
        await gate.reached()
    for gate in gates:
        gate.open()
    replies = [(await it)["output"] for it in runs]
    assert sorted(replies) == ["0.", "1."]
    for number, reply in enumerate(replies):
        kept = await agents.do("session_items", session=f"{number}")
        assert [it["content"][0]["text"] for it in kept["items"]] == ["Hi", reply]
    assert sorted(await agents.conversations()) == [["Hi", "0."], ["Hi", "1."]]


async def test_session_takes_back_and_forgets(agents: Agents, model: ScriptedModel):
    model.script([Say("One.")], [Say("Two.")], [Say("Other two.")], [Say("New.")])
    for text in ("1", "2"):
        await agents.run(text, session="s")
    popped = [await agents.do("session_pop", session="s") for _ in range(2)]
    assert [it["content"][0]["text"] for it in popped] == ["Two.", "2"]
    await agents.run("other 2", session="s")
    assert await agents.conversations() == [["1", "One.", "other 2", "Other two."]]
    asked = str(model.requests[-1].body["messages"])
    assert "Two." not in asked and "One." in asked
    await agents.do("session_clear", session="s")
    await agents.run("1", session="s")
    assert await agents.conversations() == [["1", "New."]]


async def test_session_with_messages_of_before(agents: Agents, model: ScriptedModel):
    said: Any = [
        {"role": "user", "content": "I live in Bern."},
        {"role": "assistant", "content": "Noted.", "type": "message"},
    ]
    await agents.do("session_add", session="s", items=said)
    with pytest.raises(AssertionError, match="InputGuardrailTripwireTriggered"):
        await agents.run("damn", session="s", guarded=True)
    model.script([Say("In Bern.")])
    assert (await agents.run("Where?", session="s", guarded=True))["output"] == "In Bern."
    assert "I live in Bern." in str(model.requests[-1].body["messages"])
    assert await agents.conversations() == [["I live in Bern.", "Noted.", "damn", "Where?", "In Bern."]]


async def test_handoff_stays_with_the_agent_that_was_asked(agents: Agents, model: ScriptedModel):
    model.script([UseTool("transfer_to_expert", {}, "c1")], [Say("I am here.")])
    ran = await agents.run("Help", handoff=True)
    assert (ran["output"], ran["agent"]) == ("I am here.", "Expert")
    assert await agents.conversations() == [["Help", "I am here."]]


def note(text: str) -> str:
    "Notes."
    return f"noted {text}"


async def test_approval_of_a_tool_of_ours(talk: Talk, agents: Agents, model: ScriptedModel):
    with ToolServer(note) as server:
        settings: Any = {"mcpServers": {"desk": server.settings}, "tools": {"desk.note": {"access": "ask"}}}
        await talk.client.post("/api/agents", json={"name": "Clerk", "settings": settings})
        for approve, session in ((True, None), (False, None), (True, "s")):
            model.script([UseTool("desk__note", {"text": "tea"}, "c1")], [Say("Well.")])
            ran = await agents.run("Note tea", agent="Clerk", approve=approve, session=session)
            assert ran["output"] == "Well."
            assert ran["items"][:2] == ["mcp_approval_request_item", "mcp_approval_response_item"]
            assert ("noted tea" in str(model.requests[-1].body["messages"])) is approve
        kept = await agents.do("session_items", session="s")
    assert await agents.conversations() == [["Note tea", "Well."]] * 3
    assert [it["type"] for it in kept["items"]] == [
        "message",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "message",
    ]


@ONLY_SQLITE
async def test_program_of_the_documentation(talk: Talk, agents: Agents, model: ScriptedModel):
    (block,) = (it for it in blocks(DOCS / "clients.md") if it.file == "agent.py")
    model.script([Say("Hello.")], [Say("Again.")])
    code = block.code.replace("http://127.0.0.1:8710", talk.url)
    assert await agents.do("snippet", code=code, questions=["Hi", "Hi"]) == ["Hello.", "Again."]
    assert await agents.conversations() == [["Hi", "Hello.", "Hi", "Again."]]


@pytest.mark.parametrize("how", [{"api": "completions"}, {"settings": {"store": False}}])
async def test_run_that_stores_nothing(agents: Agents, model: ScriptedModel, how: dict[str, Any]):
    model.script([UseTool("locate", {"near": "Aare"}, "c1")], [Say("In "), Say("Bern.")], [Say("Yes.")])
    ran = await agents.run("Where am I?", tools=True, stream=True, **how)
    assert (ran["output"], "".join(ran["deltas"])) == ("In Bern.", "In Bern.")
    assert "Bern, near Aare" in str(model.requests[1].body["messages"])
    asked = [*ran["list"], {"role": "user", "content": "Sure?"}]
    assert (await agents.run(asked, tools=True, **how))["output"] == "Yes."
    assert "In Bern." in str(model.requests[-1].body["messages"])
    assert await agents.conversations() == []
