"""What users create outside turns: refused beyond the rate and the room, on every route and every node."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import SECRET, TEMPLATE, Api, secret_key_for
from tests.http.calls import items, new_agent, new_conversation, refusal
from tests.http.document import example, operations
from tests.http.test_isolation import Alice, her
from tests.making import ALICE
from tests.postgres import Postgres
from threadkeep import Client, Settings, create_app
from threadkeep.domain.caps import OperatorCaps, TurnCaps
from threadkeep.handling.routing import SMALL_CHANGE_BYTES, Route
from threadkeep.http.protocols import FOREIGN_ROUTES
from threadkeep.http.routes import ROUTES
from threadkeep.services.allowances import LocalAllowances
from threadkeep.services.creations import Creations
from threadkeep.storage.store import Store

__all__ = ["her"]

WRITING = [it for it in (*ROUTES, *FOREIGN_ROUTES) if it.method in {"POST", "PUT", "PATCH"}]
UNCOUNTED = {
    "turns": {
        "/api/conversations/{conversation_id}/messages",
        "/api/conversations/{conversation_id}/regenerate",
        "/api/conversations/{conversation_id}/queued/{message_id}",
        "/api/conversations/{conversation_id}/queued/{message_id}/send",
        "/api/conversations/{conversation_id}/compact",
        "/api/turns/{turn_id}/rerun",
        "/api/chat",
        "/api/ai-sdk/chat",
        "/api/ag-ui/{agent}",
        "/api/ag-ui/agent/{agent}/run",
        "/v1/chat/completions",
        "/v1/responses",
        "/mcp",
    },
    "decisions, stops, marks and what comes back": {
        "/api/turns/{turn_id}/approvals/{request_id}",
        "/api/messages/{message_id}/feedback",
        "/api/conversations/{conversation_id}/stop",
        "/api/conversations/{conversation_id}/path",
        "/api/conversations/{conversation_id}/restore",
        "/api/conversations/{conversation_id}/session",
        "/api/imports/{import_id}/stop",
        "/api/briefings/{briefing_id}/read",
        "/api/briefings/{briefing_id}/actions/start_conversation",
        "/api/ag-ui/agent/{agent}/stop/{thread_id}",
        "/v1/responses/{response_id}/cancel",
    },
    "nobody has signed in yet": {"/api/sign-in/invitation", "/api/sign-in/invitation/accept"},
    "a turn that runs asks a model": {"/api/runs/v1/chat/completions"},
    "ten links an hour": {"/api/me/sessions/links"},
    "work on what is there": {
        "/api/agents/{agent_id}/mcp-servers/{name}/test",
        "/api/agents/{agent_id}/documents/{document_id}/retry",
        "/api/ag-ui/agent/{agent}/connect",
    },
}


def test_every_route_that_writes_counts_unless_it_is_listed_here():
    uncounted = set[str]().union(*UNCOUNTED.values())
    for route in WRITING:
        path = route.alias_of or route.path
        expected = path in uncounted or path.startswith("/api/admin/")
        assert (route.added == "nothing") == expected, route.path
    kinds = {(it.method, it.alias_of or it.path): it.added for it in WRITING}
    assert [path for (_, path), kind in kinds.items() if kind == "record"] == [
        "/api/conversations/{conversation_id}/executions"
    ]
    assert {path for (_, path), kind in kinds.items() if kind == "trial"} == {
        "/api/agents/preview",
        "/api/agents/{agent_id}/preview",
    }


def url_of(route: Route, her: Alice) -> str:
    """The route with her own things, so that without the limit it would get further."""
    known = {"name": "none", "component": "RULES.md", "conversation": her.conversation["id"]}

    def id_of(found: re.Match[str]) -> str:
        name = found[1]
        return known[name] if name in known else her.ids(name)[0]

    return re.sub(r"{(\w+)}", id_of, route.path)


OURS = {(it.method, it.path): it for it in operations()}
FOREIGN = {
    "/v1/conversations/{conversation}/items": {
        "items": [{"type": "message", "role": "user", "content": "Remember this."}]
    }
}


def body_of(route: Route) -> Any:
    """A body that the route takes."""
    operation = OURS.get((route.method, route.path))
    if operation is None:
        return FOREIGN.get(route.path, {})
    return None if operation.body is None else example(operation.body)


async def limit(api: Api, caps: OperatorCaps | None = None, writes: int = 0) -> None:
    """Puts limits on a server that runs."""
    services = await api.app.services()
    allowances = LocalAllowances(TurnCaps(writes_per_minute=writes), lambda: 0.0)
    Creations.__init__(services.creations, api.store.stored_bytes, allowances, caps or OperatorCaps())


async def counts(store: Store, her: Alice) -> list[Any]:
    return [await her.everything(), await store.stored_bytes.of_user(ALICE)]


async def test_without_room_every_creation_is_refused_and_stores_nothing(api: Api, her: Alice):
    before = await counts(api.store, her)
    await limit(api, OperatorCaps(bytes=1))
    tried = 0
    for route in WRITING:
        if route.added in {"creation", "record"} and route.method == "POST":
            response = await her.client.post(url_of(route, her), json=body_of(route))
            assert response.status_code in {422, 400}, (route.path, response.text)
            assert "THREADKEEP_USER_BYTES" in response.text, route.path
            tried += 1
    assert tried > 15
    for route in WRITING:
        if route.method in {"PUT", "PATCH"} and route.added != "nothing":
            body = b'{"text": "' + b"x" * SMALL_CHANGE_BYTES + b'"}'
            url, headers = url_of(route, her), {"content-type": "application/json"}
            response = await her.client.request(route.method, url, content=body, headers=headers)
            refusal(response, 422, "LIMIT_NOT_ALLOWED")
            tried += 1
    assert tried > 20
    assert await counts(api.store, her) == before


async def test_beyond_the_rate_every_creation_is_refused_and_stores_nothing(api: Api, her: Alice):
    before = await counts(api.store, her)
    await limit(api, writes=1)
    assert (await her.client.put("/api/me/instructions", json={"text": ""})).status_code == 200
    tried = 0
    for route in WRITING:
        if route.counts_per_minute:
            response = await her.client.request(route.method, url_of(route, her), json=body_of(route))
            assert response.status_code == 429, (route.path, response.text)
            assert response.headers["retry-after"] == "60", route.path
            tried += 1
    assert tried > 20
    assert await counts(api.store, her) == before
    # What isn't one goes on.
    await api.as_user("bob").put("/api/me/instructions", json={"text": ""})
    path = f"/api/conversations/{her.conversation['id']}"
    assert (await her.client.patch(path, json={"title": "T"})).status_code == 200
    assert (await her.client.delete(path)).status_code == 204
    assert (await her.client.post(f"{path}/restore")).status_code == 200


async def test_nothing_that_exists_is_stuck_without_room(api: Api, her: Alice):
    await limit(api, OperatorCaps(bytes=1))
    path, client = f"/api/conversations/{her.conversation['id']}", her.client
    assert (await client.patch(path, json={"title": "Renamed"})).status_code == 200
    assert (await client.patch(f"/api/agents/{her.agent['id']}", json={"name": "x"})).status_code == 200
    assert (await client.put("/api/me/instructions", json={"text": ""})).status_code == 200
    assert (await client.post(f"{path}/abort")).status_code == 200
    assert (await client.delete(path)).status_code == 204
    assert (await client.post(f"{path}/restore")).status_code == 200
    assert (await client.delete(path, params={"purge": "true"})).status_code == 204


async def test_purging_makes_room(api: Api, alice: httpx.AsyncClient):
    agent = (await new_agent(alice))["id"]
    first = await new_conversation(alice, agent, metadata={"text": "x" * 10_000})
    stored = await api.store.stored_bytes.of_user(ALICE)
    await limit(api, OperatorCaps(bytes=stored + 1_000))
    body = {"metadata": {"text": "x" * 10_000}}
    path = f"/api/agents/{agent}/conversations"
    refusal(await alice.post(path, json=body), 422, "LIMIT_NOT_ALLOWED")
    await alice.delete(f"/api/conversations/{first['id']}")
    refusal(await alice.post(path, json=body), 422, "LIMIT_NOT_ALLOWED")  # it can be restored
    await alice.delete(f"/api/conversations/{first['id']}", params={"purge": "true"})
    assert (await alice.post(path, json=body)).status_code == 201


async def test_fork_needs_room_for_a_copy(api: Api, her: Alice):
    path = f"/api/conversations/{her.conversation['id']}/fork"
    size = await api.store.stored_bytes.of_conversation(her.conversation["id"])
    stored = await api.store.stored_bytes.of_user(ALICE)
    assert size > 1_000
    before = await items(her.client, "/api/conversations")
    (first, *_) = await items(her.client, f"/api/conversations/{her.conversation['id']}/messages")
    await limit(api, OperatorCaps(bytes=stored + size - 1))
    refusal(await her.client.post(path, json={"messageId": first["id"]}), 422, "LIMIT_NOT_ALLOWED")
    assert await items(her.client, "/api/conversations") == before


async def test_client_in_the_same_process_and_local_have_no_rate(api: Api):
    await limit(api, writes=1)
    local = api.as_user("local")
    for _ in range(3):
        assert (await local.put("/api/me/instructions", json={"text": ""})).status_code == 200
    headers = {"Authorization": api.as_user("alice").headers["authorization"]}
    async with Client(app=api.app, headers=headers) as inside:
        for _ in range(3):
            await inside.create_key("a program", ["read"])


@pytest.fixture
async def nodes(postgres: Postgres, tmp_path: Path) -> AsyncIterator[list[Api]]:
    """Two servers on one database, whose users may create three things a minute."""
    url = postgres.borrow_database(TEMPLATE)
    async with AsyncExitStack() as stack:
        apis: list[Api] = []
        for name in ("one", "two"):
            settings = Settings.load(
                {},
                data=tmp_path / name,
                database_url=url,
                database_pool_size=4,
                secret_key=secret_key_for(url),
                jwt_secret=SECRET,
                gateway="openai",
                embedding_url="off",
                user_writes_per_minute=3,
                user_bytes=20_000,
            )
            app = create_app(settings)
            await stack.enter_async_context(app.lifespan())
            apis.append(Api(app, (await app.services()).store, []))
        yield apis
        for api in apis:
            for client in api.clients:
                await client.aclose()
    postgres.give_back(url)


async def test_two_nodes_have_one_rate_and_one_room(nodes: list[Api]):
    one, two = (it.as_user("alice") for it in nodes)
    made = [await it.post("/api/agents", json={"name": "A"}) for it in (one, two, one, two, one)]
    assert [it.status_code for it in made] == [201, 201, 201, 429, 429]
    bobs = [it.as_user("bob") for it in nodes]
    agent = (await bobs[0].post("/api/agents", json={"name": "B", "systemPrompt": "x" * 15_000})).json()
    assert agent["name"] == "B"
    refusal(
        await bobs[1].post("/api/agents", json={"name": "C", "systemPrompt": "x" * 15_000}),
        422,
        "LIMIT_NOT_ALLOWED",
    )
