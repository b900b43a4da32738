"""Agents: their life, prompts and MCP servers, and the documents they search."""

from tests.corpus.stage import ADMIN, UNKNOWN, Json, Stage
from threadkeep.testing import Say, UseTool, until


def look(at: str = "sky") -> str:
    """Looks at something."""
    return at


async def agents(stage: Stage) -> None:
    """An agent's whole life, and what its owner, an admin and others see of it."""
    bare = await stage.ask("POST /api/agents", body={"name": "Advisor"})
    full = {
        "name": "法律 “Advisor”",
        "description": "Knows the law.",
        "primaryRoleId": "lawyer",
        "systemPrompt": "Be brief.",
        "model": "scripted-2",
        "visibility": "public",
        "settings": {
            "retrievalTopK": 3,
            "retrievalThreshold": 0.25,
            "retrievalMode": "auto",
            "contextMessages": 7,
            "temperature": 0.7,
            "maxTokens": 1000,
            "generationTimeoutS": 12.5,
            "mcpServers": {
                "web": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer secret"}},
                "news": {"url": "https://example.org/news"},
            },
            "tools": {"web.*": {"access": "ask"}, "*": {"access": "allow"}},
            "askUser": True,
        },
    }
    made = await stage.ask("POST /api/agents", body=full)
    agent, private = made["id"], bare["id"]
    await stage.call("GET /api/agents/{agent_id}", agent_id=agent)
    changes = {"name": "Lawyer", "settings": {"temperature": 0.1}}
    await stage.call("POST /api/agents/preview", body=changes)
    await stage.call("POST /api/agents/{agent_id}/preview", agent_id=agent, body=changes)
    await stage.call("POST /api/agents/{agent_id}/preview", agent_id=agent, body=changes, user="bob")
    await stage.call("GET /api/agents/{agent_id}", agent_id=agent, user="bob")
    await stage.call("GET /api/agents/{agent_id}", agent_id=agent, user=ADMIN)
    await stage.call("GET /api/agents/{agent_id}", agent_id=private, user="bob")
    await stage.call("GET /api/agents/{agent_id}", agent_id=private.upper())
    await stage.call("GET /api/agents")
    await stage.call("GET /api/agents", user="bob")
    page = await stage.ask("GET /api/agents", query={"limit": 1})
    page = await stage.ask("GET /api/agents", query={"limit": 1, "cursor": page["nextCursor"]})
    await stage.call("GET /api/agents", query={"limit": 1, "offset": 2})
    await stage.call("GET /api/agents", user="bob", query={"cursor": page["nextCursor"]})
    await stage.call("GET /api/agents", query={"cursor": page["nextCursor"], "offset": 1})
    for query in ({"limit": 0}, {"limit": "many"}, {"colour": "blue"}):
        await stage.call("GET /api/agents", query=query)
    refused: list[Json] = [
        {},
        {"name": ""},
        {"name": 7},
        {"name": "A", "colour": "blue"},
        {"name": "A", "model": " "},
        {"name": "A", "settings": {"temperature": 3}},
        {"name": "A", "settings": {"retrievalTopK": 0.5}},
        {"name": "A", "settings": {"mcpServers": {"a b": {"url": "https://example.org"}}}},
        {"name": "A", "settings": {"mcpServers": {"a": {}}}},
        {"name": "A", "settings": {"mcpServers": {"a": {"url": "ftp://example.org"}}}},
        {"name": "A", "settings": {"mcpServers": {"promptx": {"url": "https://example.org"}}}},
        {"name": "A", "settings": {"mcpServers": {"a": {"command": "npx", "args": ["-y", "paths"]}}}},
        {"name": "A", "settings": {"tools": {"a.b": {"access": "maybe"}}}},
    ]
    for body in refused:
        await stage.call("POST /api/agents", body=body)
    changed = await stage.call(
        "PATCH /api/agents/{agent_id}",
        agent_id=agent,
        body={"name": "Lawyer", "model": None, "settings": {"temperature": None, "contextMessages": 9}},
        headers={"If-Match": '"1"'},
    )
    for match in ('"1"', "*", changed.headers["etag"]):
        body = {"settings": {"mcpServers": {"web": {"url": "https://example.org/2"}}}}
        await stage.call(
            "PATCH /api/agents/{agent_id}", agent_id=agent, body=body, headers={"If-Match": match}
        )
    await stage.call("PATCH /api/agents/{agent_id}", agent_id=agent, body={"name": None})
    await stage.call("PATCH /api/agents/{agent_id}", agent_id=agent, body={"name": "Mine"}, user="bob")
    await stage.call("PATCH /api/agents/{agent_id}", agent_id=private, body={"name": "Mine"}, user="bob")
    await stage.call("POST /api/agents/{agent_id}/duplicate", agent_id=agent)
    await stage.call("POST /api/agents/{agent_id}/duplicate", agent_id=agent, user="bob")
    await stage.call("POST /api/agents/{agent_id}/duplicate", agent_id=private, user="bob")
    await stage.call("GET /api/agents/{agent_id}/prompt", agent_id=agent)
    await stage.call("GET /api/agents/{agent_id}/prompt", agent_id=agent, user="bob")
    put = "PUT /api/agents/{agent_id}/prompt/{component}"
    for component in ("system_prompt", "role", "guide", "nothing"):
        await stage.call(put, agent_id=agent, component=component, body={"text": "Be kind."})
    await stage.call(put, agent_id=agent, component="system_prompt", body={"text": 7})
    await stage.call("GET /api/agents/{agent_id}/prompt", agent_id=agent)
    await stage.call("DELETE /api/agents/{agent_id}", agent_id=agent, user="bob")
    await stage.call("DELETE /api/agents/{agent_id}", agent_id=agent)
    await stage.call("GET /api/agents/{agent_id}", agent_id=agent)
    await stage.call("DELETE /api/agents/{agent_id}", agent_id=agent)
    await stage.call("GET /api/admin/audit", user=ADMIN)
    await stage.call("GET /api/admin/audit", user=ADMIN, query={"limit": 1})
    await stage.call("GET /api/admin/audit")


async def mcp_servers(stage: Stage) -> None:
    """Trying an agent's MCP servers: one that runs, one that doesn't, one that the agent doesn't have."""
    test = "POST /api/agents/{agent_id}/mcp-servers/{name}/test"
    servers = stage.tools(look, name="eyes")
    servers |= {"gone": {"url": "http://127.0.0.1:9/mcp", "timeoutS": 1}}
    made = await stage.quietly(
        "POST", "/api/agents", body={"name": "Watch", "settings": {"mcpServers": servers}}
    )
    for name in ("eyes", "gone", "nobody"):
        await stage.call(test, agent_id=made["id"], name=name)
    await stage.call(test, agent_id=made["id"], name="eyes", user="bob")
    for user in ("alice", "bob"):
        await stage.call("GET /api/agents/{agent_id}/tools", agent_id=made["id"], user=user)


async def memories(stage: Stage) -> None:
    """What a user tells every agent, and what one remembers: corrected, forgotten, closed to strangers."""
    conversation = await stage.conversation()
    told, kept = "/api/me/instructions", "/api/agents/{agent_id}/memories"
    await stage.call(f"PUT {told}", body={"text": "Call me Ada."})
    await stage.call(f"PUT {told}", body={"text": 7})
    await stage.call(f"GET {told}")
    facts = ("Lives in Lyon.", "Likes tea.")
    uses = [UseTool("promptx_remember", {"content": it}, id=f"c{at}") for at, it in enumerate(facts)]
    for use in uses:
        stage.script([use], [Say("Noted.")])
        await stage.ended(await stage.begin(conversation))
    agent = (await stage.quietly("GET", f"/api/conversations/{conversation}"))["agentId"]
    page = await stage.ask(f"GET {kept}", agent_id=agent, query={"limit": 1})
    tea = page["items"][0]["id"]
    page = await stage.ask(f"GET {kept}", agent_id=agent, query={"limit": 1, "cursor": page["nextCursor"]})
    lyon = page["items"][0]["id"]
    for body in ({"content": "Lives in Nice.", "tags": ["home"]}, {"content": " "}, {"colour": "blue"}):
        await stage.call(f"PATCH {kept}/{{memory_id}}", agent_id=agent, memory_id=lyon, body=body)
    for user in ("bob", "alice", "alice"):
        await stage.call(f"DELETE {kept}/{{memory_id}}", agent_id=agent, memory_id=tea, user=user)
    await stage.call(f"DELETE {kept}", agent_id=agent)
    await stage.call(f"GET {kept}", agent_id=agent)
    await stage.call(f"GET {kept}", agent_id=agent, user="bob")


async def documents(stage: Stage) -> None:
    """An agent's documents from upload to deletion, and searching them."""
    agent = (await stage.quietly("POST", "/api/agents", body={"name": "Clerk"}))["id"]
    upload = "POST /api/agents/{agent_id}/documents"
    one = "GET /api/agents/{agent_id}/documents/{document_id}"
    retry = "POST /api/agents/{agent_id}/documents/{document_id}/retry"
    delete = "DELETE /api/agents/{agent_id}/documents/{document_id}"
    made = await stage.ask(
        upload,
        agent_id=agent,
        files=[
            ("lease.md", b"# Lease\n\nThe rent is due on the first of each month.\n\n# Pets\n\nNo tigers.\n"),
            ("fees.csv", "item,price\nparking,12\n钥匙,3\n".encode()),
        ],
    )
    ids = [it["id"] for it in made["items"]]
    for id_ in ids:
        path = f"/api/agents/{agent}/documents/{id_}"

        async def is_ready(path: str = path) -> bool:
            return (await stage.quietly("GET", path))["status"] != "processing"

        await until(is_ready)
    for id_ in ids:
        await stage.call(one, agent_id=agent, document_id=id_)
        await stage.call(f"{one}/passages", agent_id=agent, document_id=id_)
    await stage.call(
        f"{one}/passages", agent_id=agent, document_id=ids[0], query={"fromPosition": 1, "limit": 1}
    )
    await stage.call("GET /api/agents/{agent_id}/documents", agent_id=agent)
    await stage.call("GET /api/agents/{agent_id}/documents", agent_id=agent, query={"limit": 1})
    await stage.call("GET /api/agents/{agent_id}/documents", agent_id=agent, user="bob")
    for query in ({"q": "rent"}, {"q": "钥匙", "topK": 1, "threshold": 0.0}, {"q": "zebra"}, {"q": ""}, {}):
        await stage.call("GET /api/agents/{agent_id}/search", agent_id=agent, query=query)
    await stage.call(retry, agent_id=agent, document_id=ids[0])
    broken = await stage.ask(upload, agent_id=agent, files=[("broken.pdf", b"%PDF-1.4 is not one")])
    broken_id = broken["items"][0]["id"]
    path = f"/api/agents/{agent}/documents/{broken_id}"

    async def has_failed() -> bool:
        return (await stage.quietly("GET", path))["status"] == "failed"

    await until(has_failed)
    await stage.call(one, agent_id=agent, document_id=broken_id)
    await stage.call(retry, agent_id=agent, document_id=broken_id)
    await until(has_failed)
    await stage.call(upload, agent_id=agent, files=[("tool.exe", b"MZ\0\1")])
    await stage.call(upload, agent_id=agent, files=[("empty.txt", b"")])
    await stage.call(upload, agent_id=agent, body={"files": []})
    await stage.call(upload, agent_id=UNKNOWN, files=[("a.txt", b"words")])
    await stage.call(delete, agent_id=agent, document_id=ids[0])
    await stage.call(delete, agent_id=agent, document_id=ids[0])


SCENARIOS = (agents, mcp_servers, memories, documents)
