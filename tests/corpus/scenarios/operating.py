"""What concerns users and operators as such: sign-in, events of all conversations, refusals of every kind."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from tests.corpus.scenarios.turns import SEND
from tests.corpus.stage import ADMIN, JSON, UNKNOWN, Json, Stage
from threadkeep.testing import Gate, Say, UseTool, Wait

HEARTBEAT = ": keep-alive"


async def users(stage: Stage) -> None:
    """Who one is, whether the server is there, and the deletion of a user."""
    for user in ("alice", ADMIN):
        await stage.call("GET /api/me", user=user)
    await stage.call("GET /healthz", user=None)
    await stage.call("GET /readyz", user=None)
    for scheme in ("Bearer", "Bearer nonsense", "Basic YTpi", "Bearer e30.e30.e30"):
        await stage.call("GET /api/me", user=None, headers={"Authorization": scheme})
    await stage.quietly("GET", "/api/me", "bob")
    await stage.call("DELETE /api/users/{user_id}", user_id="bob")
    await stage.call("DELETE /api/users/{user_id}", user_id="bob", user=ADMIN)
    await stage.call("DELETE /api/users/{user_id}", user_id="nobody", user=ADMIN)
    await stage.call("GET /api/me", user="bob")


async def gateways(stage: Stage) -> None:
    """A gateway that an admin tests, connects, changes and deletes; others may not."""
    account = {"kind": "openai", "url": f"{stage.model.url}/v1", "apiKey": "sk-secret"}
    await stage.call("POST /api/admin/gateways/test", body=account)
    await stage.call("POST /api/admin/gateways/test", body=account, user=ADMIN)
    large = {"name": "large", "price": {"input": "3.00", "output": 15}}
    body = account | {"name": "work", "models": ["small", large]}
    await stage.call("POST /api/admin/gateways", body=body, user=ADMIN)
    await stage.call("POST /api/admin/gateways", body=body, user=ADMIN)
    await stage.call("POST /api/admin/gateways", body=body | {"url": "http://169.254.169.254"}, user=ADMIN)
    path = "/api/admin/gateways/{gateway}"
    await stage.call(f"PATCH {path}", gateway="work", body={"defaultModel": "large"}, user=ADMIN)
    await stage.call(f"PATCH {path}", gateway="work", body={"url": "http://127.0.0.1:1"}, user=ADMIN)
    await stage.call("GET /api/models")
    await stage.call(f"POST {path}/test", gateway="work", user=ADMIN)
    await stage.call(f"GET {path}", gateway="work", user=ADMIN)
    await stage.call("GET /api/admin/gateways", user=ADMIN)
    await stage.call(f"DELETE {path}", gateway="work", user=ADMIN)
    await stage.call(f"GET {path}", gateway="work", user=ADMIN)


async def keys(stage: Stage) -> None:
    """A key that a person makes, uses and revokes; with too little scope it changes nothing."""
    await stage.call("POST /api/keys", body={"name": "Report", "scopes": ["everything"]})
    body = {"name": "Report", "scopes": ["read"], "budgetMonth": "12.5"}
    made = (await stage.call("POST /api/keys", body=body)).json()
    with_key = {"x-api-key": made["key"]}
    await stage.call("GET /api/keys")
    await stage.call("GET /api/me", user=None, headers=with_key)
    await stage.call("POST /api/agents", user=None, headers=with_key, body={"name": "No"})
    await stage.call("DELETE /api/keys/{key_id}", key_id=made["id"], user="bob")
    await stage.call("DELETE /api/keys/{key_id}", key_id=made["id"])
    await stage.call("GET /api/me", user=None, headers=with_key)


async def judging(stage: Stage) -> None:
    """An answer that its reader rates, and runs again beside the conversation."""
    conversation = await stage.conversation(systemPrompt="Be brief.")
    stage.script([Say("Four.")])
    turn = await stage.begin(conversation)
    await stage.ended(turn)
    answer = (await stage.quietly("GET", f"/api/turns/{turn}"))["assistantMessageId"]
    path = "POST /api/messages/{message_id}/feedback"
    await stage.call(path, message_id=answer, body={"rating": "up", "note": "Right."}, user="bob")
    await stage.call(path, message_id=answer, body={"rating": "up", "note": "Right.", "shareText": True})
    agent = (await stage.quietly("GET", f"/api/conversations/{conversation}"))["agentId"]
    await stage.call("GET /api/agents/{agent_id}/feedback", agent_id=agent)
    stage.script([Say("4.")])
    await stage.call("POST /api/turns/{turn_id}/rerun", turn_id=turn, body={}, headers=JSON)
    await stage.call("POST /api/turns/{turn_id}/rerun", turn_id=turn, body={"model": "other"})
    await stage.call("GET /api/models", query={"agentId": agent})
    await stage.call(path, message_id=answer, body={"rating": None})
    await stage.call("DELETE /api/messages/{message_id}/feedback", message_id=answer)


async def user_events(stage: Stage) -> None:
    """What a user's tabs hear of all their conversations; after `Last-Event-ID`, what they missed."""
    agent = (await stage.quietly("POST", "/api/agents", body={"name": "Watch"}))["id"]
    async with stage.following("/api/me/events", "user-events") as heard:
        await heard.has("event: reset")
        made = await stage.quietly("POST", f"/api/agents/{agent}/conversations", body={"title": "First"})
        path = f"/api/conversations/{made['id']}"
        await heard.has("event: conversation_created")
        await stage.quietly("PATCH", path, body={"title": "Renamed"})
        await heard.has("event: conversation_renamed")
        await stage.quietly("PATCH", path, body={"pinned": True})
        await heard.has("event: conversation_changed")
        stage.script([Say("Because.")])
        await stage.ended(await stage.begin(made["id"]))
        await heard.has("event: turn_started", "event: turn_ended")
        await stage.quietly("PATCH", f"/api/agents/{agent}", body={"settings": {"askUser": True}})
        stage.script([UseTool("ask_user", {"question": "Which colour?"}, id="c1")], [Say("Red.")])
        turn = await stage.begin(made["id"])
        request = (await stage.approval())["requestId"]
        await heard.has("event: approval_opened", "event: turn_paused")
        answer = {"action": "answer", "content": "red"}
        await stage.quietly("POST", f"/api/turns/{turn}/approvals/{request}", body=answer)
        await heard.has("event: approval_answered", "event: turn_ended")
        card = {"agentId": agent, "userId": "alice", "title": "News", "summary": "None.", "priority": "P2"}
        briefing = (await stage.quietly("POST", "/api/briefings", body=card))["id"]
        await heard.has("event: briefing_arrived")
        await stage.quietly("POST", f"/api/briefings/{briefing}/read")
        await heard.has("event: briefing_changed")
        await stage.quietly("DELETE", path)
        await heard.has("event: conversation_deleted")
    ids = [line.removeprefix("id: ") for line in heard.text.split("\n") if line.startswith("id: ")]
    for last, then in ((ids[-3], "event: conversation_deleted"), ("nonsense", "event: reset")):
        async with stage.following("/api/me/events", "user-events", {"Last-Event-ID": last}) as heard:
            await heard.has(then)


async def heartbeat(stage: Stage) -> None:
    """Streams on which nothing happens show that they are alive."""
    conversation = await stage.conversation()
    gate = Gate()
    stage.script([Say("Once"), Wait(gate), Say(" more.")])
    turn = await stage.begin(conversation)
    await stage.said(turn)
    with _frequent_heartbeats():
        for dialect in ("events", "text", "agentx"):
            path = f"/api/turns/{turn}/events?dialect={dialect}"
            async with stage.following(path, dialect) as heard:
                await heard.has(HEARTBEAT)
            # How many have come in the meantime depends on the moment.
            heard.text = heard.text[: heard.text.index(HEARTBEAT) + len(HEARTBEAT)] + "\n\n"
    gate.open()
    await stage.ended(turn)


@contextmanager
def _frequent_heartbeats() -> Generator[None]:
    """Every half second instead of every fifteen, in whichever modules they are."""
    name, every_s = "HEARTBEAT_EVERY_S", 0.5
    modules = [it for key, it in sys.modules.items() if key.startswith("threadkeep") and hasattr(it, name)]
    usual = [getattr(module, name) for module in modules]
    assert modules
    for module in modules:
        setattr(module, name, every_s)
    yield
    for module, value in zip(modules, usual, strict=True):
        setattr(module, name, value)


async def refusals(stage: Stage) -> None:
    """Every operation of the OpenAPI document: without sign-in, about what doesn't exist, malformed."""
    document: Json = await stage.quietly("GET", "/openapi.json")
    for path, methods in document["paths"].items():
        for method, spec in methods.items():
            operation = f"{method.upper()} {path}"
            names = [it["name"] for it in spec.get("parameters", ()) if it["in"] == "path"]
            ids: Json = dict.fromkeys(names, UNKNOWN)
            content = spec.get("requestBody", {}).get("content", {})
            if spec["security"]:
                await stage.call(operation, user=None, **ids)
            if names and path != "/api/users/{user_id}":
                body: Json = {} if "application/json" in content else None
                await stage.call(operation, body=body, **ids)
                ids = dict.fromkeys(names, "no id")
                await stage.call(operation, body=body, **ids)
            if "application/json" in content:
                kind = {"Content-Type": "application/json"}
                for text in (b"", b"[]", b'{"unknown": 1}'):
                    await stage.call(operation, content=text, headers=kind, **ids)
            if "multipart/form-data" in content:
                kind = {"Content-Type": "multipart/form-data; boundary=x"}
                for text in (b"", b"--x\r\n", b"--x--\r\n"):
                    await stage.call(operation, content=text, headers=kind, **ids)


async def edge(stage: Stage) -> None:
    """What is refused before any operation: paths, methods, sizes, hosts, origins."""
    conversation = await stage.conversation()
    await stage.call("GET /api/nothing")
    await stage.call("GET /nothing.html", headers={"Accept": "application/json"})
    await stage.call("PUT /api/me", body={})
    await stage.call("DELETE /api/conversations")
    await stage.call("HEAD /api/me")
    await stage.call("OPTIONS /api/me")
    large = b'{"content": "' + b"x" * 2_000_000 + b'"}'
    kind = {"Content-Type": "application/json"}
    await stage.call("POST /api/briefings", content=large, headers=kind)
    await stage.call(
        "PATCH /api/conversations/{conversation_id}", conversation_id=conversation, content=large
    )
    await stage.call(SEND, conversation_id=conversation, content=large, headers=kind)
    await stage.call("GET /api/me", headers={"Host": "example.org"})
    await stage.call("POST /api/agents", headers={"Origin": "https://example.org"}, body={"name": "A"})
    await stage.call("GET /api/me", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"})
    await stage.call("GET /api/me", headers={"X-Request-Id": "mine-7"})
    await stage.call("GET /api/domains")
    await stage.call("GET /api/domains/{agent_id}", agent_id=UNKNOWN)


SCENARIOS = (users, gateways, keys, judging, user_events, heartbeat, refusals, edge)
