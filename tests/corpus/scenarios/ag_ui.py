"""AG-UI and what CopilotKit asks its runtime for."""

from typing import Any

from tests.corpus.stage import Stage
from threadkeep.testing import Fail, Say, Think, UseTool

RUN = "POST /api/ag-ui/{agent_id}"
CONNECT = "POST /api/ag-ui/agent/{agent_id}/connect"


def send(to: str) -> str:
    """Sends a letter."""
    return f"sent to {to}"


async def ag_ui(stage: Stage) -> None:
    """Runs with thoughts, tools, approvals and tools of the client; history, stop, refusals."""
    rules = {"post.send": {"access": "ask"}}
    settings = {"mcpServers": stage.tools(send, name="post"), "tools": rules}
    thread = await stage.conversation(settings=settings)
    agent = (await stage.quietly("GET", f"/api/conversations/{thread}"))["agentId"]

    async def run(*messages: Any, operation: str = RUN, **fields: Any) -> None:
        body = {"threadId": thread, "runId": "run", "messages": messages, **fields}
        await stage.call(operation, wire="ag-ui", agent_id=agent, body=body)

    def says(id_: str, content: Any) -> dict[str, Any]:
        return {"id": id_, "role": "user", "content": content}

    await stage.call("GET /api/ag-ui/info", wire="ag-ui")
    stage.script([Think("Hm."), Say("Hello.")])
    await run(says("u1", "Hi"), protocolVersion="1.0", state={"page": 1})
    stage.script([Say("Let me."), UseTool("post__send", {"to": "Ada"}, "c1")], [Say("Done.")])
    await run(says("u1", "Hi"), says("u2", "Write to Ada"))
    asked = (await stage.approval())["requestId"]
    await run(operation=CONNECT)
    await run(resume=[{"interruptId": asked, "status": "resolved"}])
    await run(resume=[{"interruptId": asked, "status": "resolved", "payload": {"approved": True}}])
    stage.script([UseTool("colour", {}, "c2")], [Say("Blue.")])
    tools = [{"name": "colour", "description": "A colour", "parameters": {"type": "object"}}]
    await run(says("u3", "Which colour?"), tools=tools)
    result = {"id": "r1", "role": "tool", "toolCallId": "c2", "content": "blue"}
    await run(says("u3", "Which colour?"), result, tools=tools)
    stage.script([Fail("Overloaded.", "invalid_request_error")])
    await run(says("u4", "And?"), protocolVersion="1.0")
    await run(operation=CONNECT)
    stop = "POST /api/ag-ui/agent/{agent_id}/stop/{thread_id}"
    await stage.call(stop, wire="ag-ui", agent_id=agent, thread_id=thread, body={"runId": "run"})
    await run(says("u5", " "))
    await stage.call(RUN, wire="ag-ui", user=None, agent_id=agent, body={})


SCENARIOS = (ag_ui,)
