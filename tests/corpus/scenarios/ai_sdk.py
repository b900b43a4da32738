"""The AI SDK: what its three versions are sent, and how it is refused."""

from tests.corpus.scenarios.tools import add
from tests.corpus.stage import Json, Stage
from threadkeep.testing import Say, Think, UseTool

CHAT = "POST /api/ai-sdk/chat"
STREAM = "GET /api/ai-sdk/chat/{chat_id}/stream"


def said(id_: str, text: str) -> Json:
    """A message of the user."""
    return {"id": id_, "role": "user", "parts": [{"type": "text", "text": text}]}


async def ai_sdk(stage: Stage) -> None:
    """Text, thought, a tool that asks, one that the client runs, history, replay and errors, per version."""
    servers = stage.tools(add, name="sums")
    rules = {"sums.add": {"access": "ask"}}
    for version in ("5", "6", "7"):
        chat = await stage.conversation(settings={"mcpServers": servers, "tools": rules})
        wire: Json = {"wire": f"ai-sdk-{version}", "query": {"version": version}}
        stage.script([Say("Three.")])
        stage.script([Think("Hm."), UseTool("locate", {}, id=f"c{version}")], [Say("Here.")])
        await stage.call(CHAT, body={"id": chat, "messages": [said("u1", "One and two?")]}, **wire)
        shown = (await stage.ask(f"GET /api/ai-sdk/chat/{chat}", **wire))["messages"]
        await stage.call(STREAM, chat_id=chat, **wire)
        body: Json = {"id": chat, "tools": {"locate": {"parameters": {"type": "object"}}}}
        await stage.call(CHAT, body={**body, "messages": [*shown, said("u2", "Where?")]}, **wire)
        await stage.call(STREAM, chat_id=chat, **wire)
        result = {
            "type": "tool-locate",
            "toolCallId": f"c{version}",
            "state": "output-available",
            "output": 7,
        }
        answered = {"id": "a2", "role": "assistant", "parts": [result]}
        await stage.call(CHAT, body={**body, "messages": [*shown, answered]}, **wire)
        stage.script([UseTool("sums__add", {"a": 1, "b": 2}, id=f"s{version}")], [Say("Three again.")])
        await stage.call(CHAT, body={"id": chat, "message": said("u3", "Add.")}, **wire)
        approval = {"id": (await stage.approval())["requestId"], "approved": version == "7"}
        decided = {
            "type": "dynamic-tool",
            "toolCallId": "s",
            "state": "approval-responded",
            "approval": approval,
        }
        asked = {"id": "a3", "role": "assistant", "parts": [decided]}
        await stage.call(CHAT, body={"id": chat, "message": asked}, **wire)
        await stage.call(f"GET /api/ai-sdk/chat/{chat}", **wire)
    await stage.call(STREAM, chat_id="nothing")
    await stage.call("DELETE /api/ai-sdk/chat/nothing/stream")
    await stage.call("GET /api/ai-sdk/chat/nothing", user="bob")
    await stage.call("GET /api/ai-sdk/chat/nothing", user=None)
    await stage.call("GET /api/ai-sdk/nothing")
    await stage.call(CHAT, query={"version": "4"}, body={"id": "c", "messages": [said("u1", "Hi")]})
    await stage.call(CHAT, body={"id": "c", "messages": []})
    await stage.call(CHAT, body={"id": "", "messages": [said("u1", "Hi")]})
    await stage.call(CHAT, body={"id": "c", "messages": [said("u1", " ")]})
    await stage.call(
        CHAT, body={"id": "nothing", "messages": [said("u1", "Hi")], "trigger": "regenerate-message"}
    )


SCENARIOS = (ai_sdk,)
