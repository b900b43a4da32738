"""What MCP clients ask for."""

from typing import Any

from tests.corpus.stage import UNKNOWN, Stage
from threadkeep.testing import Say, UseTool


def send(to: str) -> str:
    """Sends a letter."""
    return f"sent to {to}"


async def mcp(stage: Stage) -> None:
    """Tools and resources for MCP clients of both eras, progress, an approval, refusals."""
    rules = {"post.send": {"access": "ask"}}
    thread = await stage.conversation(settings={"mcpServers": stage.tools(send, name="post"), "tools": rules})

    async def ask(method: str, era: str, user: str | None = "alice", **params: Any) -> None:
        meta: dict[str, Any] = {"progressToken": 1}
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": era}
        if era == "2026-07-28":
            meta |= {
                "io.modelcontextprotocol/protocolVersion": era,
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
            }
            headers |= {"mcp-method": method, **({"mcp-name": params["name"]} if "name" in params else {})}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        await stage.call("POST /mcp", wire="mcp", user=user, body=body, headers=headers)

    newest, older = "2026-07-28", "2025-11-25"
    await ask("server/discover", newest)
    info = {"name": "test", "version": "1"}
    await ask("initialize", older, protocolVersion=older, capabilities={}, clientInfo=info)
    await ask("tools/list", older)
    stage.script([UseTool("post__send", {"to": "Ada"}, "c1")], [Say("Done.")])
    write = {"content": "Write to Ada", "conversationId": thread}
    await ask("tools/call", newest, name="send_message", arguments=write)
    request = await stage.approval()
    answer = {"turnId": request["turnId"], "requestId": request["requestId"], "action": "allow"}
    await ask("tools/call", older, name="answer_approval", arguments=answer)
    await ask("tools/call", older, name="read_conversation", arguments={"conversationId": thread})
    await ask("resources/templates/list", older)
    await ask("resources/read", older, uri=f"threadkeep://conversations/{thread}")
    await ask("resources/read", older, uri=f"threadkeep://conversations/{UNKNOWN}")
    await ask("tools/call", older, name="send_message", arguments={"content": " "})
    await ask("tools/list", older, user=None)
    await stage.call("POST /mcp", wire="mcp", body=[{"jsonrpc": "2.0", "id": 1, "method": "ping"}])


SCENARIOS = (mcp,)
