"""A conversation that begins in one protocol continues in each other one, under the same id."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from tests.clients.ag_ui.test_ag_ui import HERE as AG_UI
from tests.clients.ai_sdk import driver as ai_sdk
from tests.clients.conftest import new_agent, signed_in
from tests.clients.mcp.client import connected
from tests.clients.node import driving
from tests.clients.openai.conftest import client_of, token
from tests.talking import Talk
from threadkeep.testing import Say, ScriptedModel, Think, ToolServer, UseTool

QUESTIONS = ("One?", "Two?", "Three?", "Four?", "Five?")


def look() -> str:
    "Looks."
    return "seen"


def script(model: ScriptedModel) -> None:
    """The answer to one question: a thought, a tool and two texts."""
    model.script([Think("Hm."), Say("Let me."), UseTool("desk__look")], [Say("Well.")])


async def test_conversation_goes_through_every_protocol(talk: Talk, model: ScriptedModel):
    with ToolServer(look) as server:
        agent = await new_agent(talk, mcpServers={"desk": server.settings})
        async with (
            driving(AG_UI / "driver.mjs", AG_UI / "node") as ag_ui,
            ai_sdk.driving() as chats,
            client_of(talk, token("alice")) as openai,
            connected(talk.url, signed_in("alice")) as mcp,
        ):

            async def say_in_ours(thread: str, text: str) -> None:
                if thread not in own_ids:
                    made = await talk.client.post(f"/api/agents/{agent}/conversations", json={})
                    own_ids[thread] = known_ids[thread] = made.json()["id"]
                path = f"/api/conversations/{own_ids[thread]}/messages?wait=true"
                await talk.client.post(path, json={"content": text})

            async def say_in_ai_sdk(thread: str, text: str) -> None:
                id_ = known_ids.get(thread, thread)
                api = f"{talk.url}/api/ai-sdk/chat"
                history = (await talk.client.get(f"{api}/{id_}")).json().get("messages", [])
                options = {"api": api, "id": id_, "headers": signed_in("alice"), "messages": history}
                await chats.do("open", name=text + thread, version=6, body={"agentId": agent}, **options)
                shown = await chats.do("send", name=text + thread, text=text)
                assert shown["errors"] == [], shown

            async def say_in_ag_ui(thread: str, text: str) -> None:
                options = {"url": f"{talk.url}/api/ag-ui", "headers": signed_in("alice"), "agentId": agent}
                id_ = known_ids.get(thread, thread)
                name = text + thread
                await ag_ui.do("open", name=name, version="copilotkit", threadId=id_, **options)
                await ag_ui.do("connect", name=name)
                shown = await ag_ui.do("run", name=name, message={"id": name, "content": text})
                assert shown["errors"] == [], shown

            async def say_in_openai(thread: str, text: str) -> None:
                if thread not in own_ids:
                    made = await openai.conversations.create(extra_body={"model": agent})
                    own_ids[thread] = known_ids[thread] = str(UUID(made.id.removeprefix("conv_")))
                named = known_ids.get(thread, thread)
                said = await openai.responses.create(model=agent, input=text, conversation=named)
                assert said.output_text.endswith("Well."), said

            async def say_in_mcp(thread: str, text: str) -> None:
                begun = thread in own_ids
                where = {"conversationId": own_ids[thread]} if begun else {"agentId": agent}
                said = await mcp.call_tool("send_message", {"content": text, **where})
                assert said.structured_content["status"] == "COMPLETED", said
                if not begun:
                    known_ids[thread] = said.structured_content["conversationId"]

            own_ids: dict[str, str] = {}
            known_ids: dict[str, str] = {}
            """Our ids of conversations whose first client didn't choose one: others know them by these."""
            protocols: list[Callable[[str, str], Awaitable[None]]] = [
                say_in_ours,
                say_in_ai_sdk,
                say_in_ag_ui,
                say_in_openai,
                say_in_mcp,
            ]
            for first in range(len(protocols)):
                thread = f"begun in {first}"
                for text, say in zip(QUESTIONS, protocols[first:] + protocols[:first], strict=True):
                    script(model)
                    await say(thread, text)
                    newest = (await talk.client.get("/api/conversations?limit=1")).json()["items"][0]
                    own_ids.setdefault(thread, newest["id"])
            listed = (await talk.client.get("/api/conversations")).json()["items"]
            folded = [folded_messages(await talk.messages(it["id"])) for it in listed]
            assert len(folded) == len(protocols)
            assert [it["text"] for it in folded[0][::2]] == list(QUESTIONS)
            assert all(it == folded[0] for it in folded)


def folded_messages(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What messages say, without the ids and times that differ."""
    return [
        {
            "role": it["role"],
            "status": it["status"],
            "text": it["content"],
            "parts": [(part["type"], part.get("text"), part.get("toolName")) for part in it.get("parts", [])],
            "calls": [(call["toolName"], call["status"], call["result"]) for call in it.get("toolCalls", [])],
        }
        for it in messages
    ]
