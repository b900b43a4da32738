"""Conversations: with nothing said in them, with what others record in them, compacted, shared, imported."""

import json

from tests.corpus.stage import ADMIN, PIXEL, UNKNOWN, Json, Stage
from threadkeep.testing import Say, Think


async def conversations(stage: Stage) -> None:
    """A conversation's whole life, and the lists it is in."""
    agent = (await stage.quietly("POST", "/api/agents", body={"name": "Advisor"}))["id"]
    create = "POST /api/agents/{agent_id}/conversations"
    one = "GET /api/conversations/{conversation_id}"
    patch = "PATCH /api/conversations/{conversation_id}"
    delete = "DELETE /api/conversations/{conversation_id}"
    restore = "POST /api/conversations/{conversation_id}/restore"
    await stage.call(create, agent_id=agent)
    key = {"Idempotency-Key": "once"}
    body = {"title": "法律 “First”", "metadata": {"pi": 3.0, "n": 1e21, "list": [1, None, True]}}
    made = await stage.ask(create, agent_id=agent, body=body, headers=key)
    await stage.call(create, agent_id=agent, body=body, headers=key)
    await stage.call(create, agent_id=agent, body={"title": "Other"}, headers=key)
    refused: list[Json] = [{"title": "x" * 201}, {"title": 7}, {"metadata": []}, {"colour": "blue"}, []]
    for bad in refused:
        await stage.call(create, agent_id=agent, body=bad)
    await stage.call(create, agent_id=agent, content=b"{", headers={"Content-Type": "application/json"})
    await stage.call(create, agent_id=agent, content=b"title=x", headers={"Content-Type": "text/plain"})
    await stage.call(create, agent_id=agent, user="bob")
    await stage.call("POST /api/conversations", body={"agentId": agent, "title": "Second"})
    await stage.call("POST /api/conversations", body={"title": "With whom?"})
    id_ = made["id"]
    await stage.call(one, conversation_id=id_)
    await stage.call(one, conversation_id=id_, user="bob")
    await stage.call(one, conversation_id=id_, user=ADMIN)
    await stage.call(one, conversation_id="no id")
    await stage.call(patch, conversation_id=id_, body={"title": "Renamed", "pinned": True})
    await stage.call(patch, conversation_id=id_, body={"status": "ARCHIVED", "metadata": None})
    await stage.call(patch, conversation_id=id_, body={"title": None, "status": "ACTIVE"})
    for bad in ({"status": "GONE"}, {"pinned": "yes"}, {"title": " "}, {"metadata": 1}):
        await stage.call(patch, conversation_id=id_, body=bad)
    await stage.call("POST /api/conversations/{conversation_id}/session", conversation_id=id_)
    for path in ("/api/conversations", "/api/agents/{agent_id}/conversations"):
        page = await stage.ask(f"GET {path}", agent_id=agent, query={"limit": 1})
        await stage.call(f"GET {path}", agent_id=agent, query={"limit": 1, "cursor": page["nextCursor"]})
        for query in ({"pinned": "true"}, {"status": "ARCHIVED"}, {"status": "DELETED"}, {"status": "GONE"}):
            await stage.call(f"GET {path}", agent_id=agent, query=query)
    await stage.call("GET /api/agents/{agent_id}/conversations", agent_id=UNKNOWN)
    main = await stage.ask("PUT /api/agents/{agent_id}/conversation", agent_id=agent)
    await stage.call("PUT /api/agents/{agent_id}/conversation", agent_id=agent)
    await stage.call(delete, conversation_id=id_)
    await stage.call(one, conversation_id=id_)
    await stage.call("GET /api/conversations", query={"status": "DELETED"})
    await stage.call(restore, conversation_id=id_)
    await stage.call(restore, conversation_id=id_)
    await stage.call(delete, conversation_id=id_, query={"purge": "true", "ifDeleted": "true"})
    await stage.call(delete, conversation_id=id_, query={"purge": "maybe"})
    await stage.call(delete, conversation_id=id_, query={"purge": "true"})
    await stage.call(restore, conversation_id=id_)
    for path in ("messages", "context", "compactions", "tool-results", "report", "export"):
        await stage.call(f"{one}/{path}", conversation_id=main["id"])
    await stage.call("GET /api/search", query={"q": "first"})


async def executions(stage: Stage) -> None:
    """Runs of another engine: recorded, repeated, refused; and the reports on them."""
    conversation = await stage.conversation()
    record = "POST /api/conversations/{conversation_id}/executions"
    run = [
        {"id": "1", "type": "ExecutionStarted", "runId": "run-7", "at": 1_000, "input": "违约金是多少?"},
        {
            "id": "2",
            "type": "NodeCompleted",
            "runId": "run-7",
            "at": 1_500,
            "node": "retrieve",
            "durationMs": 400,
            "detail": "looked into the contract",
            "tools": [
                {
                    "toolCallId": "c1",
                    "toolName": "search",
                    "server": "docs",
                    "arguments": {"q": "违约"},
                    "result": {"hits": 1, "share": 0.50, "huge": 1e300},
                    "durationMs": 300,
                },
                {"toolCallId": "c2", "toolName": "search", "error": "No.", "status": "error"},
            ],
            "citations": [
                {"title": "合同.pdf", "fileName": "合同.pdf", "page": 3, "snippet": "20%", "score": 0.5}
            ],
            "artifactIds": ["elsewhere-1"],
            "usage": {"inputTokens": 10, "outputTokens": 5},
        },
        {
            "id": "3",
            "type": "ExecutionCompleted",
            "runId": "run-7",
            "at": 2_000,
            "output": "20% [1].",
            "model": "m",
        },
    ]
    await stage.call(record, conversation_id=conversation, body={"events": run})
    await stage.call(record, conversation_id=conversation, body={"events": run})
    failed = [
        {"id": "5", "type": "ExecutionStarted", "runId": "run-8", "at": 3_000, "input": "Again?"},
        {
            "id": "6",
            "type": "ExecutionFailed",
            "runId": "run-8",
            "at": 3_500,
            "error": "Out of <b>ink</b>.",
        },
    ]
    await stage.call(record, conversation_id=conversation, body={"events": failed})
    for bad in (
        [{"id": "7"}],
        [{**run[0], "id": "8", "input": " ", "runId": "run-9"}],
        [{**run[2], "at": -1}],
    ):
        await stage.call(record, conversation_id=conversation, body={"events": bad})
    one = "GET /api/conversations/{conversation_id}"
    await stage.call(f"{one}/messages", conversation_id=conversation)
    for form in ("json", "md", "html"):
        await stage.call(f"{one}/report", conversation_id=conversation, query={"format": form})
        await stage.call(f"{one}/export", conversation_id=conversation, query={"format": form})
    await stage.call(f"{one}/report", conversation_id=conversation, query={"format": "pdf"})
    await stage.call(f"{one}/report", conversation_id=conversation, query={"toolName": "search"})
    results = "GET /api/tool-results"
    await stage.call(results)
    page = await stage.ask(results, query={"limit": 1})
    await stage.call(results, query={"limit": 1, "cursor": page["nextCursor"]})
    for query in (
        {"status": "error"},
        {"toolName": "none"},
        {"from": "1970-01-01T00:00:00Z"},
        {"from": "then"},
    ):
        await stage.call(results, query=query)
    await stage.call(f"{one}/tool-results", conversation_id=conversation, query={"toolName": "search"})
    await stage.call("GET /api/usage")


async def briefings(stage: Stage) -> None:
    """Briefings: sent, listed, read, talked about, deleted."""
    await stage.quietly("GET", "/api/me", "bob")
    agent = (await stage.quietly("POST", "/api/agents", body={"name": "Watch", "visibility": "public"}))["id"]
    body = {"agentId": agent, "userId": "bob", "title": "Review耗时", "summary": "30 hours", "priority": "P1"}
    more = {"data": {"hours": 30.0}, "actions": [{"type": "start_conversation", "label": "继续对话"}]}
    first = await stage.ask("POST /api/briefings", body={**body, **more})
    second = await stage.ask("POST /api/briefings", body={**body, "title": "Second"})
    for bad in (
        {**body, "userId": "nobody"},
        {**body, "agentId": UNKNOWN},
        {**body, "priority": "P9"},
        {**body, "title": ""},
        {**body, "actions": [{"type": "dance"}]},
        {"title": "x"},
    ):
        await stage.call("POST /api/briefings", body=bad)
    await stage.call("POST /api/briefings", body=body, user="bob")
    await stage.call("GET /api/briefings", user="bob")
    page = await stage.ask("GET /api/briefings", user="bob", query={"limit": 1})
    await stage.call("GET /api/briefings", user="bob", query={"limit": 1, "cursor": page["nextCursor"]})
    read = "POST /api/briefings/{briefing_id}/read"
    start = "POST /api/briefings/{briefing_id}/actions/start_conversation"
    await stage.call(read, briefing_id=first["id"], user="bob")
    await stage.call(read, briefing_id=first["id"])
    await stage.call("GET /api/briefings", user="bob", query={"unread": "true"})
    started = await stage.ask(start, briefing_id=first["id"], user="bob")
    await stage.call(start, briefing_id=first["id"], user="bob")
    await stage.call(start, briefing_id=UNKNOWN, user="bob")
    messages = "GET /api/conversations/{conversation_id}/messages"
    await stage.call(messages, conversation_id=started["conversationId"], user="bob")
    delete = "DELETE /api/briefings/{briefing_id}"
    await stage.call(delete, briefing_id=second["id"], user="bob")
    await stage.call(delete, briefing_id=second["id"], user="bob")


async def compactions(stage: Stage) -> None:
    """A compaction: too early, made, listed, seen in the context, undone."""
    conversation = await stage.conversation(settings={"contextMessages": 0, "compactionThreshold": 4})
    compact = "POST /api/conversations/{conversation_id}/compact"
    one = "GET /api/conversations/{conversation_id}"
    await stage.call(compact, conversation_id=conversation, body={})
    for number in range(3):
        stage.script([Say(f"Reply {number}. " + "It is a long story about the law. " * 20)])
        await stage.ended(await stage.begin(conversation, f"Question {number}?"))
    stage.script([Say("They talked about the law.")])
    made = await stage.ask(compact, conversation_id=conversation, body={"keepLast": 2})
    await stage.call(compact, conversation_id=conversation, body={"keepLast": 2})
    await stage.call(compact, conversation_id=conversation, body={"keepLast": -1})
    await stage.call(f"{one}/compactions", conversation_id=conversation)
    await stage.call(f"{one}/context", conversation_id=conversation)
    await stage.call(f"{one}/context", conversation_id=conversation, query={"limit": 1})
    await stage.call(f"{one}/messages", conversation_id=conversation, query={"limit": 1})
    undo = "DELETE /api/conversations/{conversation_id}/compactions/{compaction_id}"
    await stage.call(undo, conversation_id=conversation, compaction_id=UNKNOWN)
    await stage.call(undo, conversation_id=conversation, compaction_id=made["id"])
    await stage.call(f"{one}/context", conversation_id=conversation)


async def shares(stage: Stage) -> None:
    """A conversation that is shared with and without what the agent did, read by its link, and revoked."""
    conversation = await stage.conversation()
    pixel = (await stage.call("POST /api/files", files=[("pixel.png", PIXEL)])).json()["items"][0]["id"]
    stage.script([Think("A dot."), Say("A pixel.")])
    sent = {"content": "What is this?", "files": [pixel]}
    turn = (await stage.quietly("POST", f"/api/conversations/{conversation}/messages", body=sent))["turnId"]
    stage.pace(turn)
    await stage.ended(turn)
    of, read = "/api/conversations/{conversation_id}/shares", "GET /api/shares/{token}"
    whole = await stage.ask(f"POST {of}", conversation_id=conversation, body={"tools": True})
    said = await stage.ask(f"POST {of}", conversation_id=conversation, body={})
    for body in ({"messageId": UNKNOWN}, {"expiresAt": "2001-01-01T00:00:00Z"}, {"expiresAt": "soon"}):
        await stage.call(f"POST {of}", conversation_id=conversation, body=body)
    await stage.call(f"POST {of}", conversation_id=conversation, body={}, user="bob")
    await stage.call(f"GET {of}", conversation_id=conversation)
    page = await stage.ask(read, token=whole["token"], user="bob", query={"limit": 1})
    more = {"limit": 1, "cursor": page["nextCursor"]}
    await stage.call(read, token=whole["token"], user="bob", query=more)
    for user in ("bob", None):
        await stage.call(read, token=said["token"], user=user)
    for number in ("2", "1"):
        await stage.call(f"{read}/replays/{{number}}", token=whole["token"], number=number, user="bob")
    for file_id in (pixel, UNKNOWN):
        await stage.call(f"{read}/files/{{file_id}}", token=said["token"], file_id=file_id, user="bob")
    for user in ("bob", "alice", "alice"):
        await stage.call("DELETE /api/shares/{share_id}", share_id=said["id"], user=user)
    await stage.call(read, token=said["token"], user="bob")


async def imports(stage: Stage) -> None:
    """An export of another product, imported twice; files that are none; another user's import."""
    begin, one = "POST /api/imports", "/api/imports/{import_id}"
    said = [
        {"uuid": "m1", "sender": "human", "text": "When?", "created_at": "2023-11-14T22:13:21Z"},
        {"uuid": "m2", "sender": "assistant", "text": "At noon.", "created_at": "2023-11-14T22:13:25Z"},
    ]
    ferries = {"uuid": "11111111-aaaa-4aaa-8aaa-111111111111", "name": "Ferries", "chat_messages": said}
    export = json.dumps([ferries, {"name": "Broken"}]).encode()
    import_id = ""
    for _ in range(2):
        import_id = (await stage.ask(begin, files=[("export.json", export)]))["id"]
        while (await stage.quietly("GET", f"/api/imports/{import_id}"))["status"] == "RUNNING":
            pass
        await stage.call(f"GET {one}", import_id=import_id)
    for content in (b"%PDF-1.7", b"PK\x03\x04"):
        await stage.call(begin, files=[("wrong", content)])
    await stage.call(begin, files=[("export.json", export)], query={"agentId": UNKNOWN})
    await stage.call(f"POST {one}/stop", import_id=import_id)
    for user in ("alice", "bob"):
        await stage.call("GET /api/imports", user=user)
    for operation in (f"GET {one}", f"POST {one}/stop"):
        await stage.call(operation, import_id=import_id, user="bob")


SCENARIOS = (conversations, executions, briefings, compactions, shares, imports)
