"""The OpenAPI document: well formed, complete, and true."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from scripts import api_reference

from tests.conftest import ONLY_SQLITE, Api
from tests.contract.test_import_runs import PROGRESS, make_run
from tests.contract.test_shares import make_share
from tests.http.api.test_imports import in_json
from tests.http.calls import Json, items, new_agent, new_conversation, stored
from tests.http.document import (
    DOCUMENT,
    Operation,
    check_response,
    example,
    fields,
    mismatch,
    operation_of,
    operations,
    resolved,
)
from tests.imports.foreign import claude
from tests.making import (
    ALICE,
    NOW,
    keep_approval,
    keep_artifact,
    keep_begun,
    keep_briefing,
    keep_file,
    keep_memory,
    keep_queued,
    keep_receipt,
    keep_turn,
    make_compaction,
)
from threadkeep.domain.document import Document, DocumentStatus
from threadkeep.domain.ids import AgentId, DocumentId, new_uuid
from threadkeep.domain.import_run import ImportStatus
from threadkeep.domain.receipt import ComponentReceipt, Receipt
from threadkeep.domain.sharing.share import new_token, token_hash
from threadkeep.handling.errors import STATUSES
from threadkeep.http.openapi import described
from threadkeep.http.routes import ROUTES
from threadkeep.version import __version__

OPERATIONS = operations()
TYPES = {"object", "array", "string", "integer", "number", "boolean", "null"}


def schemas(value: Any, place: str = "$") -> Iterator[tuple[str, Json]]:
    """Everything in the document that looks like a schema."""
    if isinstance(value, list):
        for number, inner in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield from schemas(inner, f"{place}[{number}]")
    elif isinstance(value, dict):
        if {"$ref", "anyOf", "enum"} & value.keys() or str(value.get("type")) in TYPES:  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            yield place, value
        for name, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            if name not in {"default", "examples", "enum", "securitySchemes"}:
                yield from schemas(inner, f"{place}.{name}")


SCHEMAS = list(schemas(DOCUMENT))


@ONLY_SQLITE
async def test_document_is_served_to_everyone_and_is_made_from_the_routes(api: Api):
    response = await api.client().get("/openapi.json")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json() == DOCUMENT


def test_written_reference_is_up_to_date():
    written = api_reference.FILE.read_text(encoding="utf-8")
    assert written == api_reference.reference(), "run: python scripts/api_reference.py"


@ONLY_SQLITE
async def test_reference_page_needs_no_other_host(api: Api):
    response = await api.client().get("/docs")
    assert response.headers["content-type"].startswith("text/html")
    loaded = re.findall(
        r"""(?:src|href|action)\s*=\s*["']?([^"'\s>]+)|url\(([^)]+)\)|@import""", response.text
    )
    assert not [it for it in loaded if re.match(r"(?:\w+:)?//", "".join(it))]
    shown = re.sub(r"<[^>]+>", "", response.text)
    assert [it.path for it in OPERATIONS if "/domains" not in it.path and it.path not in shown] == []


def test_document_has_the_parts_that_openapi_3_1_asks_for():
    assert DOCUMENT["openapi"].startswith("3.1.")
    assert DOCUMENT["info"]["title"] == "Threadkeep"
    assert DOCUMENT["info"]["version"] == __version__
    assert DOCUMENT.keys() <= {"openapi", "info", "servers", "paths", "components", "security", "tags"}
    for operation in OPERATIONS:
        assert operation.spec.keys() <= {
            *(
                "operationId",
                "summary",
                "description",
                "tags",
                "parameters",
                "requestBody",
                "responses",
                "security",
            ),
        }
        assert operation.spec["summary"].endswith(".")
        assert operation.spec["tags"]
        for name in operation.spec["security"]:
            assert name.keys() <= DOCUMENT["components"]["securitySchemes"].keys()
    for path in DOCUMENT["paths"]:
        assert path.startswith("/")
    templates = [re.sub(r"{\w+}", "{}", path) for path in DOCUMENT["paths"]]
    assert len(templates) == len(set(templates))


def test_every_route_is_in_the_document_and_nothing_else():
    documented = {(operation.method, operation.path) for operation in OPERATIONS}
    assert documented == {(route.method, route.path) for route in ROUTES}
    assert len(ROUTES) == len(OPERATIONS)


def test_operation_ids_are_unique():
    ids = [operation.spec["operationId"] for operation in OPERATIONS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z_]+", id_) for id_ in ids)


def test_every_parameter_is_declared_once():
    for operation in OPERATIONS:
        declared = [(it["in"], it["name"]) for it in operation.spec["parameters"]]
        assert len(set(declared)) == len(declared)
        assert {name for where, name in declared if where == "path"} == set(operation.path_names)
        for parameter in operation.spec["parameters"]:
            assert parameter["in"] in {"path", "query", "header"}
            assert parameter["schema"]
            assert parameter["in"] != "path" or parameter["required"] is True


def test_every_reference_leads_somewhere_and_every_schema_is_used():
    used: set[str] = set()
    for place, schema in SCHEMAS:
        if "$ref" in schema:
            assert resolved(schema), place
            used.add(schema["$ref"].removeprefix("#/components/schemas/"))
    assert used == DOCUMENT["components"]["schemas"].keys()


def test_schemas_are_of_json_schema_2020():
    for place, schema in SCHEMAS:
        assert "nullable" not in schema, place
        assert "example" not in schema, place
        assert set(schema.get("required", ())) <= schema.get("properties", {}).keys(), place
        assert not isinstance(schema.get("exclusiveMinimum"), bool), place
        if "enum" in schema:
            assert schema["enum"], place
        if "default" in schema and "$ref" not in schema:
            assert mismatch(schema["default"], schema) is None, place
        if "type" in schema and schema["type"] == "array":
            assert "items" in schema or "prefixItems" in schema, place


def _described() -> Iterator[tuple[str, str, str]]:
    """Every field and parameter of the document: where it is, its name, and what it says."""
    for kind, schema in DOCUMENT["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            yield kind, name, described(field)
    for operation in OPERATIONS:
        for parameter in operation.spec["parameters"]:
            yield str(operation), parameter["name"], parameter["description"]
        if operation.takes_files:
            content = operation.spec["requestBody"]["content"]["multipart/form-data"]
            for name, field in content["schema"]["properties"].items():
                yield str(operation), name, described(field)
        for status, response in operation.spec["responses"].items():
            for name, header in response.get("headers", {}).items():
                yield f"{operation} {status}", name, header["description"]


def test_every_object_and_operation_is_described():
    schemas = DOCUMENT["components"]["schemas"]
    assert [name for name, it in schemas.items() if len(it.get("description", "").split()) < 3] == []
    assert [str(it) for it in OPERATIONS if len(it.spec["summary"].split()) < 3] == []


def test_each_body_is_documented_with_the_status_that_it_comes_with():
    (sending,) = [it for it in OPERATIONS if str(it) == "POST /api/conversations/{conversation_id}/messages"]
    accepted = sending.spec["responses"]["202"]["content"]
    assert list(accepted) == ["application/json"]
    kinds = {it["$ref"].rpartition("/")[2] for it in accepted["application/json"]["schema"]["anyOf"]}
    assert kinds == {"StartedTurnView", "WaitingTurnView", "QueuedView", "SteeredView"}
    done = sending.spec["responses"]["200"]["content"]
    assert list(done) == ["application/json", "text/event-stream"]
    assert done["application/json"]["schema"]["$ref"].endswith("/MessageView")


def test_every_field_and_parameter_says_more_than_its_name():
    saying_nothing = {"a", "an", "the", "of", "its", "is", "this", "that", "it", "for", "in", "to", "which"}
    weak: list[str] = []
    for place, name, text in _described():
        of_name = re.findall(r"[a-z]+", re.sub("([A-Z])", r" \1", name).lower())
        words = re.findall(r"[a-z']+", text.lower())
        news = {word.removesuffix("'s") for word in words} - {*of_name, *saying_nothing}
        if len(text.split()) < 5 or not text.endswith(".") or not news:
            weak.append(f"{place} {name}: {text!r}")
    assert weak == [], "describe each in a sentence of five words or more: Meta(description=…), or _PATH"


def test_body_is_required_where_a_field_of_it_is():
    for operation in OPERATIONS:
        if operation.body:
            needed = bool(resolved(operation.body).get("required"))
            assert operation.spec["requestBody"]["required"] is needed, operation
    needing = {str(it) for it in OPERATIONS if it.body and it.spec["requestBody"]["required"]}
    assert {"POST /api/agents", "POST /api/briefings"} <= needing


def test_bodies_are_closed_so_that_unknown_fields_are_refused():
    for operation in OPERATIONS:
        if operation.body:
            assert resolved(operation.body)["additionalProperties"] is False, operation


def test_names_on_the_wire_are_camel_case():
    for place, schema in SCHEMAS:
        # The one alias that is spelt otherwise, as a requirement document has it.
        for name in set(schema.get("properties", {})) - {"conversation_id"}:
            assert re.fullmatch(r"[a-z]+\d*([A-Z][a-z]*)*", name), (place, name)
    for operation in OPERATIONS:
        assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]*)*", name) for name in operation.query_names)


def test_names_that_some_clients_use_are_marked_as_such():
    known = DOCUMENT["components"]["schemas"]
    assert "agentId" in known["ConversationView"]["properties"]["domainId"]["description"]
    assert "turnId" in known["MessageView"]["properties"]["runId"]["description"]
    for operation in OPERATIONS:
        if operation.path.startswith("/api/domains"):
            original = operation.path.replace("domains", "agents", 1)
            assert f"{operation.method} {original}" in operation.spec["description"]


def test_agents_and_domains_are_the_same_routes():
    by_name = {str(operation): operation for operation in OPERATIONS}
    for operation in OPERATIONS:
        if "/api/agents" not in operation.path:
            continue
        twin = by_name[str(operation).replace("/api/agents", "/api/domains")]
        assert twin.spec["parameters"] == operation.spec["parameters"]
        assert twin.body == operation.body
        for status, told in operation.spec["responses"].items():
            described = told["description"].replace("AGENT_NOT_FOUND", "DOMAIN_NOT_FOUND")
            assert twin.spec["responses"][status] == told | {"description": described}


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_errors_are_documented_with_their_status_and_shape(operation: Operation):
    responses = operation.spec["responses"]
    assert all(
        re.fullmatch(r"[1-5]\d\d", status) and told["description"] for status, told in responses.items()
    )
    assert any(status.startswith("2") for status in responses)
    for status in map(int, responses):
        if status >= 400:
            codes = operation.codes(status)
            assert codes
            assert all(STATUSES[code] == status for code in codes)
            schema = responses[str(status)]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ErrorResponse"}
    assert operation.codes(403) == {"FORBIDDEN"}
    assert operation.codes(401) == (
        {"UNAUTHENTICATED", "USER_REQUIRED"} if operation.needs_sign_in else set()
    )
    assert "STORAGE_UNAVAILABLE" in operation.codes(503)
    # These find an agent or a model that their paths do not name.
    finds_more = operation.codes(404) == {"MODEL_NOT_FOUND"} or operation.path in {
        "/api/chat",
        "/api/chat/messages",
        "/api/conversations",
        "/api/briefings",
        "/api/imports",
        "/api/keys",
        "/api/models",
        "/api/sign-in/invitation",
        "/api/sign-in/invitation/accept",
    }
    assert bool(operation.path_names) == bool(operation.codes(404)) or finds_more
    if operation.body or operation.query_names:
        assert "INVALID_REQUEST" in operation.codes(422)
    if operation.method != "GET":
        assert operation.codes(413) == {"PAYLOAD_TOO_LARGE"}
    # An answer's content is no message, nor is a memory's.
    given = resolved(operation.body)["properties"] if operation.body else ()
    if "content" in given and "action" not in given and "{memory_id}" not in operation.path:
        assert operation.codes(400) == {"MESSAGE_CONTENT_REQUIRED", "MESSAGE_TOO_LONG"}
        # A message that waits is changed without a model.
        assert ("GATEWAY_NOT_CONFIGURED" in operation.codes(409)) is (operation.method == "POST")


def test_error_has_the_shape_of_the_contract():
    error = resolved(resolved(DOCUMENT["components"]["schemas"]["ErrorResponse"])["properties"]["error"])
    assert error["properties"].keys() == {"code", "message", "param", "details", "requestId"}
    assert set(error["required"]) == {"code", "message", "requestId"}


async def failed_document(api: Api, agent_id: str) -> str:
    """A document that can be read, retried and deleted."""
    id_, hash_ = DocumentId(new_uuid()), new_uuid()
    await api.store.documents.add(
        Document(id_, AgentId(agent_id), "a.txt", "text/plain", 1, hash_, DocumentStatus.FAILED, NOW, NOW)
    )
    return id_


async def tip_of(api: Api, conversation: Json) -> str | None:
    return (await stored(api, conversation)).tip_id


# Gateways need a provider: tests/http/api/test_gateways.py. Sessions and invitations need a browser:
# tests/http/sign_in/test_sessions.py.
TRIED_ELSEWHERE = (
    "/api/admin/gateways",
    "/api/admin/invitations",
    "/api/sign-in/invitation",
    "/api/me/sessions/",
)


async def test_every_route_responds_as_it_is_documented(api: Api, alice: httpx.AsyncClient):
    """Calls every operation with a good request; `check_response` looks at each response."""
    agent = await new_agent(alice)
    conversation = await new_conversation(alice, agent["id"])
    talked = await keep_turn(api.store, await stored(api, conversation), "?", "!")
    _, queued = await keep_queued(api.store, talked, "?")
    turn_id = (await items(alice, f"/api/conversations/{conversation['id']}/messages"))[0]["turnId"]
    turn = await api.store.turns.get(ALICE, turn_id)
    assert turn
    asking = await stored(api, await new_conversation(alice, agent["id"]))
    running = asking.begin_turn("?", NOW, model="scripted")
    await keep_begun(api.store, running)
    asked = await keep_approval(api.store, asking.id, running.turn.id, "May it?")
    component = ComponentReceipt("systemPrompt", "00", 9)
    receipt = Receipt("m", (component,), (turn.user_message_id,), ("add",), 0.5, 9, "UTC", 9, 0)
    await keep_receipt(api.store, turn, receipt, {"00": "Be brief."})
    shared_file = await keep_artifact(api.store, conversation["id"])
    imported = make_run(status=ImportStatus.COMPLETED, progress=PROGRESS)
    await api.store.import_runs.begin(imported, most=10)
    share_token = new_token()
    share = make_share(await stored(api, conversation), files=frozenset({shared_file}))
    await api.store.shares.add(share, token_hash(share_token), most=1)
    admin = api.as_user("root", admin=True)
    await api.as_user("carl").get("/api/me")
    tried = [operation for operation in OPERATIONS if not operation.path.startswith(TRIED_ELSEWHERE)]
    last = [operation for operation in tried if operation.method == "DELETE"]
    for operation in [it for it in tried if it not in last]:
        client = admin if operation.path.startswith("/api/admin") else alice
        ids = {
            "agent_id": agent["id"],
            "conversation_id": conversation["id"],
            "turn_id": turn_id,
            "message_id": turn.assistant_message_id if "/feedback" in operation.path else queued.id,
            "request_id": asked.request_id,
            "name": "promptx",
            "component": "RULES.md",
            "document_id": await failed_document(api, agent["id"]),
            "artifact_id": await keep_artifact(api.store, conversation["id"]),
            "file_id": shared_file if "{share}" in operation.path else await keep_file(api.store),
            "share": share_token,
            "number": "2",
            "import_id": imported.id,
            "user_id": "carl",
            "briefing_id": (await keep_briefing(api.store, AgentId(agent["id"]))).id,
            "memory_id": (await keep_memory(api.store, AgentId(agent["id"]), "Likes tea.")).id,
        }
        for whole in (False, True) if operation.body else (False,):
            body = example(operation.body, whole=whole) if operation.body else None
            for name, value in {
                "agentId": agent["id"],
                "userId": "alice",
                "messageId": turn.assistant_message_id,
                "parentId": turn.assistant_message_id,
                "tip": await tip_of(api, conversation),
                "agents": [agent["id"]],
                "budgetMonth": "1.00",
                "scopes": ["read"],
                "actAs": None,  # she is no admin
            }.items():
                if body and name in body:
                    body[name] = value
            if "{request_id}" in operation.path:
                ids["turn_id"], body = running.turn.id, {"action": "allow"}
            content = in_json(claude()) if "imports" in operation.path else b"words"
            files = {"files": ("a.txt", content)} if operation.takes_files else None
            response = await client.request(
                operation.method, operation.url(**ids), json=body, files=files, params=operation.needed_query
            )
            expected = {400, 409} if "GATEWAY_NOT_CONFIGURED" in operation.codes(409) else {200, 201, 202}
            assert response.status_code in expected, (str(operation), response.text)
    for operation in sorted(last, key=lambda it: "{user_id}" in it.path):  # then her token is refused
        agent = await new_agent(alice)
        conversation = await new_conversation(alice)
        talked = await keep_turn(api.store, await stored(api, conversation), "?", "!")
        _, queued = await keep_queued(api.store, talked, "?")
        await api.store.compactions.add(compaction := make_compaction(talked.id, 1, 2))
        page = await alice.get(f"/api/conversations/{talked.id}/messages")
        ids = {
            "agent_id": agent["id"],
            "document_id": await failed_document(api, agent["id"]),
            "conversation_id": talked.id,
            "compaction_id": compaction.id,
            "message_id": page.json()["items"][-1]["id"] if "/feedback" in operation.path else queued.id,
            "briefing_id": (await keep_briefing(api.store, AgentId(agent["id"]))).id,
            "memory_id": (await keep_memory(api.store, AgentId(agent["id"]), "Likes tea.")).id,
            "user_id": "alice",
            "key_id": (await alice.post("/api/keys", json={"name": "k", "scopes": ["read"]})).json()["id"],
            "share": (await alice.post(f"/api/conversations/{talked.id}/shares", json={})).json()["id"],
        }
        response = await alice.request("DELETE", operation.url(**ids), params=operation.needed_query)
        assert response.status_code == 204, (str(operation), response.text)


def test_examples_made_from_the_document_are_valid():
    for operation in OPERATIONS:
        if operation.body:
            for whole in (False, True):
                assert mismatch(example(operation.body, whole=whole), operation.body) is None, operation
            assert list(fields(operation.body))


async def test_response_that_is_not_documented_would_be_found():
    def response(status: int, content: Any, **headers: str) -> httpx.Response:
        request = httpx.Request("GET", "http://localhost/api/me")
        given = {"X-Request-Id": "r", "Threadkeep-Version": "1", "WWW-Authenticate": "Bearer", **headers}
        kept = {name: value for name, value in given.items() if value}
        return httpx.Response(status, json=content, request=request, headers=kept)

    assert operation_of("GET", "/api/me")
    user = {"id": "alice", "role": "user", "installation": "i"}
    await check_response(response(200, user))
    error = {"code": "UNAUTHENTICATED", "message": "m", "requestId": "r"}
    await check_response(response(401, {"error": error}))
    for status, content in (
        (200, {"id": "alice", "role": "user"}),
        (200, user | {"role": "root"}),
        (200, user | {"id": 1}),
        (200, user | {"password": "x"}),
        (500, {"error": error | {"code": "INTERNAL_ERROR"}}),
        (401, {"error": error | {"code": "FORBIDDEN"}}),
        (401, {"error": error | {"trace": "x"}}),
    ):
        with pytest.raises(AssertionError):
            await check_response(response(status, content))
    with pytest.raises(AssertionError, match="WWW-Authenticate"):
        await check_response(response(401, {"error": error}, **{"WWW-Authenticate": ""}))
