"""Other people's things do not exist: every route, built from the OpenAPI document itself."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.contract.test_import_runs import PROGRESS, make_run
from tests.http.api.test_search import caught_up
from tests.http.api.test_usage import charge_at
from tests.http.calls import Json, items, new_agent, new_conversation, refusal, stored
from tests.http.document import Operation, example, fields, operations
from tests.making import (
    keep_approval,
    keep_artifact,
    keep_briefing,
    keep_document,
    keep_file,
    keep_memory,
    keep_queued,
    keep_turn,
    make_compaction,
)
from threadkeep.clock import system_clock
from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.domain.import_run import ImportStatus
from threadkeep.domain.sign_in.session import INVITATION, SignedIn, required_hash
from threadkeep.domain.user import UserRole
from threadkeep.services.sign_in.sessions import new_session

SECRET_WORDS = "alices-own-words"
MADE_ON = "2027-01-15"
NOT_FOUND = {
    "agent_id": "AGENT_NOT_FOUND",
    "conversation_id": "CONVERSATION_NOT_FOUND",
    "turn_id": "TURN_NOT_FOUND",
    "user_id": "USER_NOT_FOUND",
    "artifact_id": "ARTIFACT_NOT_FOUND",
    "file_id": "FILE_NOT_FOUND",
    "document_id": "AGENT_NOT_FOUND",  # by the agent's id: see the test of agents' documents
    "briefing_id": "BRIEFING_NOT_FOUND",
    "compaction_id": "CONVERSATION_NOT_FOUND",  # found through its conversation only
    "message_id": "CONVERSATION_NOT_FOUND",  # as well
    "request_id": "TURN_NOT_FOUND",  # found through its turn only
    "key_id": "KEY_NOT_FOUND",
    "session_id": "SESSION_NOT_FOUND",
    "invitation_id": "INVITATION_NOT_FOUND",
    "memory_id": "AGENT_NOT_FOUND",  # found through its agent only
    "share": "SHARE_NOT_FOUND",
    "import_id": "IMPORT_NOT_FOUND",
}
# Where an id is found by itself, without its conversation.
NOT_FOUND_AT = {
    "/api/messages/{message_id}/feedback": "MESSAGE_NOT_FOUND",
    "/api/shares/{share}/files/{file_id}": "SHARE_NOT_FOUND",
    "/api/shares/{share}/replays/{number}": "SHARE_NOT_FOUND",
}
# What stands in paths beside ids, and opens nothing without them: an agent's server or component, an admin's
# gateway, and the number of a share's message.
WORDS = {"name", "component", "gateway", "number"}
# Ids in bodies and queries that name nobody's things: a role is a file of the agent's own.
HARMLESS_IDS = {"primaryRoleId"}
# And ids that only choose among one's own things; each has a test below.
CHOOSING_IDS = {
    "GET /api/tool-results": {"turnId"},
    "GET /api/conversations/{conversation_id}/tool-results": {"turnId"},
    "GET /api/usage": {"agentId"},
    "GET /api/models": {"agentId"},
    "GET /api/search": {"agentId"},
    "POST /api/briefings": {"agentId", "userId"},
    "POST /api/imports": {"agentId"},
    "GET /api/conversations": {"agentId"},
    "POST /api/conversations": {"agentId"},
    "POST /api/conversations/{conversation_id}/messages": {"parentId"},
    "POST /api/conversations/{conversation_id}/regenerate": {"messageId"},
    "POST /api/conversations/{conversation_id}/path": {"messageId"},
    "POST /api/conversations/{conversation_id}/fork": {"messageId"},
    "POST /api/conversations/{conversation_id}/shares": {"messageId"},
}


@dataclass
class Alice:
    """Somebody with one of everything, and what an outsider could know of it."""

    client: httpx.AsyncClient
    agent: Json
    conversation: Json
    deleted: Json
    turn_ids: list[str]
    document_id: str
    compaction_id: str
    artifact_id: str
    briefing_id: str
    message_id: str
    request_id: str
    file_id: str
    key_id: str
    session_id: str
    memory_id: str
    share_id: str
    import_id: str

    def ids(self, name: str) -> list[str]:
        """Things of hers that a name in a path can stand for; a name nobody has thought of is an error."""
        known = {
            "agent_id": [self.agent["id"], self.agent["id"].upper()],
            "conversation_id": [self.conversation["id"], self.deleted["id"], self.conversation["id"].upper()],
            "turn_id": self.turn_ids,
            "user_id": ["alice"],
            "document_id": [self.document_id],
            "briefing_id": [self.briefing_id, self.briefing_id.upper()],
            "compaction_id": [self.compaction_id],
            "artifact_id": [self.artifact_id],
            "message_id": [self.message_id],
            "request_id": [self.request_id],
            "file_id": [self.file_id, self.file_id.upper()],
            "key_id": [self.key_id],
            "session_id": [self.session_id, self.session_id.upper()],
            "invitation_id": [new_uuid()],  # only admins name one
            "memory_id": [self.memory_id],
            # By its id, nobody else does anything with it; its token is for whoever has it.
            "share": [self.share_id, self.share_id.upper()],
            "import_id": [self.import_id, self.import_id.upper()],
        }
        if name not in known:
            pytest.fail(
                f"{{{name}}} is new in a path: say here which thing of somebody else it must not open"
            )
        return known[name]

    async def everything(self) -> list[Any]:
        """All that is hers, as she sees it; the deleted conversation is deleted again."""
        path = f"/api/conversations/{self.deleted['id']}"
        refusal(await self.client.get(path), 404, "CONVERSATION_NOT_FOUND")
        assert (await self.client.post(f"{path}/restore")).status_code == 200
        restored = (await self.client.get(path)).json()
        assert (await self.client.delete(path)).status_code == 204
        return [
            restored,
            (await self.client.get(f"/api/conversations/{self.conversation['id']}")).json(),
            await items(self.client, "/api/agents"),
            await items(self.client, f"/api/agents/{self.agent['id']}/documents"),
            await items(self.client, f"/api/agents/{self.agent['id']}/memories"),
            await items(self.client, "/api/conversations"),
            await items(self.client, f"/api/conversations/{self.conversation['id']}/shares"),
            await items(self.client, "/api/imports"),
            await items(self.client, "/api/me/sessions"),
            await items(self.client, "/api/keys"),
        ]


@pytest.fixture
async def her(api: Api, alice: httpx.AsyncClient) -> Alice:
    agent = await new_agent(alice, name=f"{SECRET_WORDS} agent", systemPrompt=f"{SECRET_WORDS} prompt")
    made: list[Json] = []
    for _ in range(2):
        conversation = await new_conversation(
            alice, agent["id"], title=f"{SECRET_WORDS} title", metadata={"note": f"{SECRET_WORDS} metadata"}
        )
        await keep_turn(
            api.store, await stored(api, conversation), f"{SECRET_WORDS} ask", f"{SECRET_WORDS} reply"
        )
        made.append(conversation)
    messages = [
        (await items(alice, f"/api/conversations/{conversation['id']}/messages"))[0] for conversation in made
    ]
    await alice.delete(f"/api/conversations/{made[1]['id']}")
    document = await keep_document(api.store, AgentId(agent["id"]), f"{SECRET_WORDS} document")
    compaction = make_compaction((await stored(api, made[0])).id, 1, 2, f"{SECRET_WORDS} summary")
    await api.store.compactions.add(compaction)
    briefing = await keep_briefing(api.store, AgentId(agent["id"]), title=f"{SECRET_WORDS} briefing")
    turn_ids = [message["turnId"] for message in messages]
    artifact_id = await keep_artifact(api.store, made[0]["id"], SECRET_WORDS)
    _, queued = await keep_queued(api.store, await stored(api, made[0]), f"{SECRET_WORDS} queued")
    asked = await keep_approval(api.store, made[0]["id"], turn_ids[0], f"{SECRET_WORDS} asked")
    file_id = await keep_file(api.store, words=f"{SECRET_WORDS} file")
    made_key = await alice.post("/api/keys", json={"name": f"{SECRET_WORDS} key", "scopes": ["read"]})
    key_id = made_key.json()["id"]
    session, token = new_session(UserId("alice"), INVITATION, f"{SECRET_WORDS} browser", system_clock())
    await api.store.sessions.start(
        session, required_hash(token), SignedIn(id=UserId("alice"), role=UserRole.USER)
    )
    memory = await keep_memory(api.store, AgentId(agent["id"]), f"{SECRET_WORDS} memory")
    share_id = (await alice.post(f"/api/conversations/{made[0]['id']}/shares", json={})).json()["id"]
    imported = make_run(file_name=f"{SECRET_WORDS} file")
    await api.store.import_runs.begin(imported, most=10)
    await api.store.import_runs.end(imported.id, ImportStatus.COMPLETED, PROGRESS, imported.started_at)
    others = (
        document.id,
        compaction.id,
        artifact_id,
        briefing.id,
        queued.id,
        asked.request_id,
        file_id,
        key_id,
        session.id,
        memory.id,
        share_id,
        imported.id,
    )
    return Alice(alice, agent, made[0], made[1], turn_ids, *others)


async def served_operations(client: httpx.AsyncClient) -> list[Operation]:
    """The operations of the document that this very server hands out."""
    return operations((await client.get("/openapi.json")).json())


def ids_of(operation: Operation) -> list[str]:
    """The names in its path that stand for ids."""
    return [name for name in operation.path_names if name not in WORDS]


def bodies(operation: Operation) -> list[Any]:
    if operation.body is None:
        return [None]
    return [example(operation.body), example(operation.body, whole=True)]


def refused(response: httpx.Response, operation: Operation, name: str) -> None:
    """Not found; where only admins may ask, that is said, whatever is asked for."""
    if operation.path.startswith("/api/admin/"):
        refusal(response, 403, "FORBIDDEN")
    else:
        refusal(response, 404, code_for(operation, name))


def code_for(operation: Operation, name: str) -> str:
    code = NOT_FOUND_AT.get(operation.path, NOT_FOUND[name])
    if operation.path.startswith("/api/domains"):
        code = code.replace("AGENT", "DOMAIN")
    assert code in operation.codes(404)
    return code


async def test_nobody_elses_thing_is_found_on_any_route(her: Alice, bob: httpx.AsyncClient):
    before = await her.everything()
    tried = 0
    for operation in await served_operations(bob):
        for name in ids_of(operation):
            others = dict.fromkeys(operation.path_names, "none")
            for id_ in her.ids(name):
                for body in bodies(operation):
                    response = await bob.request(
                        operation.method,
                        operation.url(**others | {name: id_}),
                        json=body,
                        params=operation.needed_query,
                    )
                    refused(response, operation, name)
                    assert SECRET_WORDS not in response.text
                    tried += 1
    assert tried > 60
    assert await her.everything() == before


async def test_nobody_elses_conversation_is_purged_or_restored(her: Alice, bob: httpx.AsyncClient):
    before = await her.everything()
    for conversation in (her.conversation, her.deleted):
        path = f"/api/conversations/{conversation['id']}"
        refusal(await bob.delete(f"{path}?purge=true"), 404, "CONVERSATION_NOT_FOUND")
        refusal(await bob.post(f"{path}/restore"), 404, "CONVERSATION_NOT_FOUND")
    assert await her.everything() == before


REQUESTS: list[Json] = [
    {},
    {"headers": {"If-Match": '"1"'}},
    {"headers": {"If-Match": '"7"'}},
    {"headers": {"If-Match": "garbage"}},
    {"json": {"content": " "}},
    {"json": {"content": "x" * 10_001}},
    {"json": {"content": "x"}},
    {"json": {"title": "  "}},
    {"json": {"title": "mine"}},
    {"json": {"metadata": {"a": "x" * 20_000}}},
    {"json": {"name": "mine", "settings": {"foo": 1}}},
    {"json": {"unknown": 1}},
    {"content": b"{"},
    {"params": {"limit": 0}},
    {"params": {"limit": 1, "offset": 1}},
    {"params": {"cursor": "x"}},
    {"params": {"purge": "true"}},
    {"params": {"status": "archived"}},
    {"params": {"include": "overwritten", "order": "desc", "beforeSeq": 2}},
]


@ONLY_SQLITE
async def test_what_is_not_ones_own_gets_exactly_the_response_of_what_does_not_exist(
    her: Alice, bob: httpx.AsyncClient
):
    """Byte for byte, with good requests and with bad ones."""
    before = await her.everything()
    for operation in await served_operations(bob):
        for name in ids_of(operation):
            others = dict.fromkeys(operation.path_names, "none")
            ids = [new_uuid(), "no-uuid", *her.ids(name)]
            requests = [it for it in REQUESTS if operation.body or "json" not in it]
            for request in (*requests, *({"json": body} for body in bodies(operation))):
                options: Json = {**request, "headers": {"X-Request-Id": "same", **request.get("headers", {})}}
                urls = [operation.url(**others | {name: id_}) for id_ in ids]
                responses = [await bob.request(operation.method, url, **options) for url in urls]
                seen = {(it.status_code, it.content, tuple(sorted(it.headers.items()))) for it in responses}
                assert len(seen) == 1, (str(operation), request, seen)
                assert responses[0].status_code in {400, 403, 404, 422}
    assert await her.everything() == before


async def test_no_list_shows_what_is_not_ones_own(her: Alice, bob: httpx.AsyncClient):
    hers = {her.agent["id"], her.conversation["id"], her.deleted["id"], her.conversation["sessionId"]}
    for operation in await served_operations(bob):
        if operation.method != "GET" or operation.path_names:
            continue
        response = await bob.get(operation.path)
        assert SECRET_WORDS not in response.text, operation
        assert not [id_ for id_ in hers if id_ in response.text], operation


@ONLY_SQLITE
async def test_ids_in_bodies_and_queries_are_all_known_to_this_test(bob: httpx.AsyncClient):
    """A new one needs a test here that somebody else's is refused."""
    for operation in await served_operations(bob):
        names = {*operation.query_names, *(place[-1] for place, _ in fields(operation.body or {}))}
        ids = {name for name in names if name.lower().endswith(("id", "ids"))}
        assert ids <= HARMLESS_IDS | CHOOSING_IDS.get(str(operation), set()), operation


async def test_tool_results_are_ones_own_whichever_turn_is_asked_for(her: Alice, bob: httpx.AsyncClient):
    for turn_id in (*her.turn_ids, new_uuid()):
        response = await bob.get("/api/tool-results", params={"turnId": turn_id})
        assert response.json() == {"items": [], "nextCursor": None}


async def test_search_finds_ones_own_whichever_agent_is_asked_for(
    her: Alice, bob: httpx.AsyncClient, api: Api
):
    await caught_up(api)
    for agent_id in (her.agent["id"], new_uuid()):
        found = await bob.get("/api/search", params={"q": SECRET_WORDS, "agentId": agent_id})
        assert found.json()["items"] == []
    hers = await her.client.get("/api/search", params={"q": SECRET_WORDS, "agentId": her.agent["id"]})
    assert hers.json()["items"]


async def test_branches_are_made_of_ones_own_messages_only(her: Alice, bob: httpx.AsyncClient, api: Api):
    own = f"/api/conversations/{(await new_conversation(bob))['id']}"
    hers = (await items(her.client, f"/api/conversations/{her.conversation['id']}/messages"))[0]["id"]
    for id_ in (hers, new_uuid(), "no-uuid"):
        body = {"content": "?", "parentId": id_}
        refusal(await bob.post(f"{own}/messages", json=body), 404, "MESSAGE_NOT_FOUND")
        for call in ("regenerate", "path", "fork", "shares"):
            refusal(await bob.post(f"{own}/{call}", json={"messageId": id_}), 404, "MESSAGE_NOT_FOUND")


async def test_conversations_begin_only_with_agents_that_one_can_talk_to(her: Alice, bob: httpx.AsyncClient):
    for agent_id in (her.agent["id"], new_uuid(), "no-uuid"):
        refusal(await bob.post("/api/conversations", json={"agentId": agent_id}), 404, "AGENT_NOT_FOUND")
    for agent_id in (her.agent["id"], new_uuid()):
        assert await items(bob, f"/api/conversations?agentId={agent_id}") == []


async def test_models_are_told_only_for_agents_that_one_can_talk_to(her: Alice, bob: httpx.AsyncClient):
    for agent_id in (her.agent["id"], new_uuid(), "no-uuid"):
        refusal(await bob.get("/api/models", params={"agentId": agent_id}), 404, "AGENT_NOT_FOUND")
    assert (await her.client.get("/api/models", params={"agentId": her.agent["id"]})).status_code == 200


async def test_usage_is_ones_own_whichever_agent_is_asked_for(her: Alice, bob: httpx.AsyncClient, api: Api):
    made_at = int(datetime.fromisoformat(f"{MADE_ON}T12:00Z").timestamp() * 1000)
    await api.store.ledger.charge(charge_at(await stored(api, her.conversation), made_at))
    for client in (bob, api.as_user("root", admin=True)):
        for agent_id in (her.agent["id"], new_uuid()):
            days = {"from": MADE_ON, "to": MADE_ON, "agentId": agent_id}
            for asked in (days, {"to": MADE_ON}):
                found = (await client.get("/api/usage", params=asked)).json()
                assert (found["items"], found["budgets"]) == ([], [])
    hers = await her.client.get("/api/usage", params={"to": MADE_ON, "agentId": her.agent["id"]})
    assert [it["turns"] for it in hers.json()["items"]] == [1]


async def test_briefings_are_sent_in_ones_own_agents_names_only(her: Alice, bob: httpx.AsyncClient):
    body = {"userId": "alice", "title": "t", "summary": "s", "priority": "P1"}
    for agent_id in (her.agent["id"], new_uuid(), "no-uuid"):
        response = await bob.post("/api/briefings", json={**body, "agentId": agent_id})
        refusal(response, 404, "AGENT_NOT_FOUND")
    await her.client.patch(f"/api/agents/{her.agent['id']}", json={"visibility": "public"})
    refusal(await bob.post("/api/briefings", json={**body, "agentId": her.agent["id"]}), 403, "FORBIDDEN")
    assert len(await items(her.client, "/api/briefings")) == 1


async def test_admin_does_not_read_other_peoples_conversations(api: Api, her: Alice):
    admin = api.as_user("root", admin=True)
    before = await her.everything()
    for operation in await served_operations(admin):
        if "conversation_id" in operation.path_names:
            for id_ in her.ids("conversation_id"):
                url = operation.url(
                    conversation_id=id_, compaction_id=her.compaction_id, message_id=her.message_id
                )
                for body in bodies(operation):
                    response = await admin.request(
                        operation.method, url, json=body, params=operation.needed_query
                    )
                    refusal(response, 404, "CONVERSATION_NOT_FOUND")
    listed = await admin.get(f"/api/agents/{her.agent['id']}/conversations")
    assert listed.json()["items"] == []
    assert (await admin.get("/api/conversations")).json()["items"] == []
    main = await admin.put(f"/api/agents/{her.agent['id']}/conversation")
    assert main.status_code == 201
    assert main.json()["userId"] == "root"
    audit = await admin.get("/api/admin/audit")
    for words in ("title", "ask", "reply", "metadata", "prompt"):
        assert f"{SECRET_WORDS} {words}" not in audit.text
    assert await her.everything() == before


async def test_talking_to_ones_public_agent_shows_its_owner_nothing(
    her: Alice, bob: httpx.AsyncClient, api: Api
):
    await her.client.patch(f"/api/agents/{her.agent['id']}", json={"visibility": "public"})
    bobs = await new_conversation(bob, her.agent["id"], title="bobs-own-words")
    await keep_turn(api.store, await stored(api, bobs), "bobs-own-words", "bobs-own-words")
    turn_id = (await items(bob, f"/api/conversations/{bobs['id']}/messages"))[0]["turnId"]
    for operation in await served_operations(bob):
        if operation.method == "GET" and "user_id" not in operation.path_names:
            ids = {
                "agent_id": her.agent["id"],
                "conversation_id": bobs["id"],
                "turn_id": turn_id,
                "document_id": her.document_id,
                "artifact_id": her.artifact_id,
                "file_id": her.file_id,
                "share": her.share_id,
                "import_id": her.import_id,
                "number": "2",
                "gateway": "none",
            }
            assert "bobs-own-words" not in (await her.client.get(operation.url(**ids))).text, operation
            if not {"conversation_id", "turn_id"} & set(operation.path_names):
                for words in ("title", "ask", "reply", "prompt", "metadata", "memory"):
                    assert f"{SECRET_WORDS} {words}" not in (await bob.get(operation.url(**ids))).text


# Deleting users


async def test_user_deletes_themselves_and_everything_that_is_theirs(
    api: Api, her: Alice, bob: httpx.AsyncClient
):
    await her.client.patch(f"/api/agents/{her.agent['id']}", json={"visibility": "public"})
    bobs = await new_conversation(bob, her.agent["id"])
    assert (await her.client.delete("/api/users/alice")).status_code == 204
    refusal(await her.client.get("/api/conversations"), 401, "UNAUTHENTICATED")
    new = api.as_new_user("alice")
    assert await items(new, "/api/conversations") == []
    assert [agent["isDefault"] for agent in await items(new, "/api/agents")] == [True]
    for conversation in (her.conversation, her.deleted):
        path = f"/api/conversations/{conversation['id']}"
        refusal(await new.get(path), 404, "CONVERSATION_NOT_FOUND")
        refusal(await new.post(f"{path}/restore"), 404, "CONVERSATION_NOT_FOUND")
    assert (await bob.get(f"/api/conversations/{bobs['id']}")).status_code == 200
    refusal(await bob.get(f"/api/agents/{her.agent['id']}"), 404, "AGENT_NOT_FOUND")
    admin = api.as_user("root", admin=True)
    refusal(await admin.get(f"/api/agents/{her.agent['id']}"), 404, "AGENT_NOT_FOUND")
    assert (await new.get("/api/me")).json()["id"] == "alice"
    assert (await new.delete("/api/users/alice")).status_code == 204


async def test_admin_deletes_users_and_others_cannot(api: Api, her: Alice, bob: httpx.AsyncClient):
    before = await her.everything()
    for user in ("alice", "nobody", "ALICE", "alice%20", "root", "%00", "a" * 5000):
        refusal(await bob.delete(f"/api/users/{user}"), 404, "USER_NOT_FOUND")
    admin = api.as_user("root", admin=True)
    for user in ("nobody", "ALICE", "alice%20", "%00", "alice%00", "%F0%9F%99%82", "a" * 5000):
        refusal(await admin.delete(f"/api/users/{user}"), 404, "USER_NOT_FOUND")
    assert await her.everything() == before
    assert (await admin.delete("/api/users/alice")).status_code == 204
    assert await items(api.as_new_user("alice"), "/api/conversations") == []
    refusal(await admin.delete("/api/users/alice"), 404, "USER_NOT_FOUND")
