"""What OpenAI's packages ask for."""

import json
from typing import Any

from tests.corpus.stage import UNKNOWN, Stage
from threadkeep.testing import Fail, Say, Think, UseTool

WIRE = "openai"
RESPONSES = "POST /v1/responses"
RESPONSE = "GET /v1/responses/{response}"
ITEMS = "GET /v1/conversations/{conversation}/items"


def send(to: str) -> str:
    """Sends a letter."""
    return f"sent to {to}"


async def openai(stage: Stage) -> None:
    """Responses with thoughts, tools, approvals and functions of the client; conversations, refusals."""
    rules = {"post.send": {"access": "ask"}}
    settings = {"mcpServers": stage.tools(send, name="post"), "tools": rules, "clientTools": True}
    thread = await stage.conversation(settings=settings)
    agent = (await stage.quietly("GET", f"/api/conversations/{thread}"))["agentId"]

    async def respond(given: Any, **fields: Any) -> dict[str, Any]:
        body = {"model": agent, "input": given, **fields}
        response = await stage.call(RESPONSES, wire=WIRE, body=body)
        if not fields.get("stream"):
            return response.json()
        return json.loads(response.text.rstrip().rpartition("data: ")[2])["response"]

    await stage.call("GET /v1/models", wire=WIRE)
    stage.script([Think("To Ada."), UseTool("post__send", {"to": "Ada"}, "c1")], [Say("Done.")])
    asking = await respond("Write to Ada", stream=True, conversation=thread, instructions="Be brief.")
    answer = {
        "type": "mcp_approval_response",
        "approval_request_id": asking["output"][-1]["id"],
        "approve": True,
    }
    done = await respond([answer], stream=True, previous_response_id=asking["id"])
    await stage.call(RESPONSE, wire=WIRE, response=done["id"])
    query = {"stream": "true", "starting_after": "3"}
    await stage.call(RESPONSE, wire=WIRE, response=asking["id"], query=query)
    colour = {"type": "function", "name": "colour", "parameters": {"type": "object"}}
    stage.script([UseTool("colour", {}, "c2")], [Say("Blue.")])
    calling = await respond("Which colour?", previous_response_id=done["id"], tools=[colour])
    output = {"type": "function_call_output", "call_id": "c2", "output": "blue"}
    await respond([output], previous_response_id=calling["id"], metadata={"topic": "colours"})
    stage.script([Fail("Overloaded.", "invalid_request_error")])
    await respond("And?", stream=True, conversation=thread)
    await stage.call("GET /v1/conversations/{conversation}", wire=WIRE, conversation=thread)
    await stage.call(ITEMS, wire=WIRE, conversation=thread, query={"order": "asc", "limit": "4"})
    await stage.call(f"{RESPONSE}/input_items", wire=WIRE, response=calling["id"])
    await stage.call(RESPONSES, wire=WIRE, body={"model": "gpt-5", "input": "Hi"})
    await stage.call(RESPONSES, wire=WIRE, body={"model": agent, "input": " "})
    await stage.call(RESPONSE, wire=WIRE, response=f"resp_{UNKNOWN.replace('-', '')}")
    await stage.call("GET /v1/assistants", wire=WIRE)
    await stage.call("GET /v1/models", wire=WIRE, user=None)


SCENARIOS = (openai,)
