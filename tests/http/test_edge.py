"""The edge: hosts, origins, request ids, methods, and the door that every route has."""

import base64
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import httpx
import jwt
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from tests.conftest import ONLY_SQLITE, SECRET, Api
from tests.http.calls import new_agent, refusal
from tests.http.document import operations
from threadkeep import Settings, User, create_app
from threadkeep.domain.ids import new_uuid
from threadkeep.http.app import Threadkeep
from threadkeep.http.routes import ROUTES
from threadkeep.version import __version__
from threadkeep.wire.inside import INSIDE

WRITES = ["POST", "PUT", "PATCH", "DELETE", "FOO"]
EVIL = "https://evil.example"
LISTED = "https://app.example"
SOME_ID = new_uuid()

NewClient = Callable[..., httpx.AsyncClient]


def filled(path: str) -> str:
    """A path with an id for every name in it."""
    return re.sub(r"{\w+}", SOME_ID, path)


def app_with(tmp_path: Path, **settings: Any) -> Threadkeep:
    """Threadkeep with these settings. Whom the edge lets through gets 401, before any database is opened."""
    values: dict[str, Any] = {"data": tmp_path, "jwt_secret": SECRET} | settings
    return create_app(Settings.load({}, **values))


def client_of(app: Any, host: str = "localhost") -> httpx.AsyncClient:
    """A client in this process, which without sign-in is the user `local`."""

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "extensions": {INSIDE: {}}}, receive, send)

    return httpx.AsyncClient(
        transport=httpx.ASGITransport(inside), base_url="http://localhost", headers={"Host": host}
    )


async def status_for(app: Threadkeep, host: str) -> int:
    async with client_of(app, host) as client:
        response = await client.get("/api/me")
    if response.status_code == 403:
        refusal(response, 403, "FORBIDDEN", "Host")
    return response.status_code


async def messages_of(app: Threadkeep, **scope: Any) -> list[dict[str, Any]]:
    """What the app sends for a scope that no HTTP client would make."""
    sent: list[dict[str, Any]] = []
    values: dict[str, Any] = {"type": "http", "method": "GET", "path": "/api/me", "query_string": b""}

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"} if scope.get("type") == "websocket" else {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app({"headers": [], **values, **scope}, receive, send)
    return sent


# Host


OWN_HOSTS = [
    *("localhost", "localhost:8710", "LOCALHOST", "app.localhost", "127.0.0.1", "127.0.0.1:9", "127.9.9.9"),
    *("[::1]", "[::1]:8710"),
]
STRANGE_HOSTS = [
    *(
        "evil.example",
        "evil.example:8710",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evillocalhost",
    ),
    *("192.168.0.1", "0.0.0.0", "[::]", "[fe80::1]", "[::1", "::1:x", "localhost@evil.example", "", ":8710"),
    *("2130706433", "127.1", "null"),
]


@pytest.mark.parametrize("signs_in", [True, False])
async def test_only_loopback_names_are_served_on_loopback(tmp_path: Path, signs_in: bool):
    app = app_with(
        tmp_path, jwt_secret=SECRET if signs_in else None, database_url="postgresql://127.0.0.1:1/x"
    )
    for host in STRANGE_HOSTS:
        assert await status_for(app, host) == 403, host
    for host in OWN_HOSTS:
        # Past the edge a token is missing, or without sign-in the database that is not there.
        assert await status_for(app, host) == (401 if signs_in else 503), host


async def test_listed_names_are_served_besides_loopback(tmp_path: Path):
    app = app_with(tmp_path, allowed_hosts=("Threadkeep.example", "10.0.0.7"))
    for host in (*OWN_HOSTS, "threadkeep.example", "THREADKEEP.example:443", "10.0.0.7:8710"):
        assert await status_for(app, host) == 401, host
    for host in (*STRANGE_HOSTS, "www.threadkeep.example", "10.0.0.8"):
        assert await status_for(app, host) == 403, host


async def test_addresses_are_served_where_strangers_may_come_and_names_are_not(tmp_path: Path):
    app = app_with(tmp_path, host="0.0.0.0")
    for host in (*OWN_HOSTS, "192.168.0.1:8710", "[fe80::1]:8710"):
        assert await status_for(app, host) == 401, host
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "null"):
        assert await status_for(app, host) == 403, host


async def test_request_without_a_host_is_refused(tmp_path: Path):
    start, body = await messages_of(app_with(tmp_path))
    assert start["status"] == 403
    assert json.loads(body["body"])["error"]["param"] == "Host"


async def test_strange_host_is_refused_on_every_path(tmp_path: Path):
    async with client_of(app_with(tmp_path), "evil.example") as client:
        for path in ("/", "/docs", "/openapi.json", "/healthz", "/readyz", "/nowhere", "/api/agents"):
            for method in ("GET", "HEAD", "OPTIONS", *WRITES):
                response = await client.request(method, path)
                assert response.status_code == 403, (method, path)
                assert response.headers["threadkeep-version"] == __version__


# Origin


async def test_write_from_a_strange_page_is_refused(tmp_path: Path):
    strange = [
        *(EVIL, "null", "", "garbage", "http://", "http://[::1", "http://localhost:bad", "localhost:8710"),
        *("http://localhost", "http://localhost:8711", "http://127.0.0.1:8710", "http://evil.localhost:8710"),
        *("http://localhost:8710.evil.example", "file://", "chrome-extension://abcdef"),
    ]
    async with client_of(app_with(tmp_path), "localhost:8710") as client:
        for method in WRITES:
            for origin in strange:
                response = await client.request(method, "/api/agents", headers={"Origin": origin})
                refusal(response, 403, "FORBIDDEN", "Origin")
                assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8710", "http://localhost:8710"),
        ("LocalHost:8710", "http://localhost:8710"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
        ("localhost", "https://localhost"),  # TLS ends at a proxy
        ("[::1]:8710", "http://[::1]:8710"),
        ("threadkeep.example", "https://threadkeep.example"),
        ("threadkeep.example:443", "https://threadkeep.example"),
    ],
)
async def test_write_from_our_own_page_is_taken(tmp_path: Path, host: str, origin: str):
    app = app_with(tmp_path, allowed_hosts=("threadkeep.example",))
    async with client_of(app, host) as client:
        for method in ("POST", "FOO"):
            response = await client.request(method, "/api/agents", headers={"Origin": origin})
            assert response.status_code == (401 if method == "POST" else 405)


async def test_write_without_an_origin_is_taken(tmp_path: Path):
    async with client_of(app_with(tmp_path)) as client:
        refusal(await client.post("/api/agents"), 401, "UNAUTHENTICATED")


async def test_read_from_a_strange_page_gets_a_response_but_not_for_that_page_to_see(tmp_path: Path):
    for settings in ({}, {"cors_origins": (LISTED,)}):
        async with client_of(app_with(tmp_path, **settings)) as client:
            for method in ("GET", "HEAD", "OPTIONS"):
                for origin in (EVIL, "null"):
                    response = await client.request(method, "/openapi.json", headers={"Origin": origin})
                    assert response.status_code in {200, 405}
                    assert "access-control-allow-origin" not in response.headers


OTHER_SITES = [{"Sec-Fetch-Site": site} for site in ("cross-site", "same-site")]
CLICKED = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-User": "?1"}


async def test_read_by_a_page_of_another_site_is_refused_wherever_there_is_data(tmp_path: Path):
    paths = {
        filled(route.path) for route in ROUTES if route.method == "GET" and route.path.startswith("/api")
    }
    async with client_of(app_with(tmp_path)) as client:
        for path in sorted({*paths, "/metrics"}):
            for headers in (*OTHER_SITES, {**OTHER_SITES[0], "Origin": EVIL}):
                refusal(await client.get(path, headers=headers), 403, "FORBIDDEN", "Sec-Fetch-Site")
                assert (await client.head(path, headers=headers)).status_code == 403
        assert (await client.get("/v1/models", headers=OTHER_SITES[0])).status_code == 403
        # The page itself, what the address bar asks for, and what is no browser.
        for path in ("/", "/docs", "/healthz", "/openapi.json"):
            assert (await client.get(path, headers=CLICKED)).status_code == 200
        for site in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {}):
            refusal(await client.get("/api/me", headers=site), 401, "UNAUTHENTICATED")


async def test_file_is_saved_when_a_person_clicks_on_its_link_in_a_sandboxed_report(tmp_path: Path):
    async with client_of(app_with(tmp_path)) as client:
        for kind in ("artifacts", "files"):
            path = f"/api/{kind}/{SOME_ID}"
            refusal(await client.get(path, headers=CLICKED), 401, "UNAUTHENTICATED")
            for lacking in ("Sec-Fetch-Mode", "Sec-Fetch-User"):  # a picture, a script, a window of its own
                headers = {name: value for name, value in CLICKED.items() if name != lacking}
                refusal(await client.get(path, headers=headers), 403, "FORBIDDEN", "Sec-Fetch-Site")
        refusal(await client.get("/api/me", headers=CLICKED), 403, "FORBIDDEN", "Sec-Fetch-Site")


async def test_page_of_a_listed_origin_reads_from_another_site(tmp_path: Path):
    async with client_of(app_with(tmp_path, cors_origins=LISTED)) as client:
        for site in OTHER_SITES:
            response = await client.get("/api/me", headers={**site, "Origin": LISTED})
            refusal(response, 401, "UNAUTHENTICATED")
            refusal(
                await client.get("/api/me", headers={**site, "Origin": EVIL}),
                403,
                "FORBIDDEN",
                "Sec-Fetch-Site",
            )


@pytest.mark.parametrize("listed", [LISTED, "https://app.example/", "https://App.Example"])
async def test_page_of_a_listed_origin_may_call(tmp_path: Path, listed: str):
    async with client_of(app_with(tmp_path, cors_origins=(listed,))) as client:
        asking = {
            "Origin": LISTED,
            "Access-Control-Request-Method": "PATCH",
            "Access-Control-Request-Headers": "authorization, content-type, if-match, idempotency-key",
        }
        preflight = await client.options("/api/agents", headers=asking)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == LISTED
        assert "PATCH" in preflight.headers["access-control-allow-methods"]
        assert "Authorization" in preflight.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in preflight.headers
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            response = await client.request(method, "/api/agents", headers={"Origin": LISTED})
            assert response.status_code == (405 if method in {"PUT", "PATCH", "DELETE"} else 401)
            assert response.headers["access-control-allow-origin"] == LISTED
            assert "Origin" in response.headers["vary"]
            exposed = response.headers["access-control-expose-headers"]
            assert {"ETag", "Location", "X-Request-Id"} <= set(exposed.split(", "))


async def test_other_peoples_clients_may_send_and_read_their_headers(tmp_path: Path):
    sent = "x-api-key, x-stainless-lang, x-stainless-retry-count, mcp-protocol-version, mcp-session-id"
    asking = {
        "Origin": LISTED,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": sent,
    }
    async with client_of(app_with(tmp_path, cors_origins=(LISTED,))) as client:
        assert (await client.options("/api/chat", headers=asking)).status_code == 200
        response = await client.get("/api/me", headers={"Origin": LISTED})
        exposed = set(response.headers["access-control-expose-headers"].split(", "))
        assert {"Content-Location", "Location", "Mcp-Session-Id", "WWW-Authenticate"} <= exposed


async def test_preflight_of_a_strange_page_allows_nothing(tmp_path: Path):
    for settings in ({}, {"cors_origins": (LISTED,)}):
        async with client_of(app_with(tmp_path, **settings)) as client:
            for origin in (EVIL, "null", f"{LISTED}.evil.example", "http://app.example"):
                headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
                response = await client.options("/api/agents", headers=headers)
                assert "access-control-allow-origin" not in response.headers
                write = await client.post("/api/agents", headers={"Origin": origin})
                refusal(write, 403, "FORBIDDEN", "Origin")


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"host", b"evil.example")],
        [(b"host", b"localhost"), (b"origin", EVIL.encode())],
        [(b"host", b"localhost"), (b"origin", b"null")],
    ],
)
async def test_web_socket_of_a_strange_host_or_page_is_closed_unopened(
    tmp_path: Path, headers: list[tuple[bytes, bytes]]
):
    (close,) = await messages_of(app_with(tmp_path), type="websocket", path="/ws", headers=headers)
    assert (close["type"], close["code"]) == ("websocket.close", 1008)


# Inside a host application


def who(request: Request) -> str | None:
    return request.headers.get("x-user")


@asynccontextmanager
async def embedded(tmp_path: Path, **settings: Any) -> AsyncGenerator[Starlette]:
    """A host application with Threadkeep under `/tk`, whose lifespan it does not run."""
    app = create_app(Settings.load({}, data=tmp_path, **settings), current_user=who)
    yield Starlette(routes=[Mount("/tk", app)])
    async with app.lifespan():  # closes what was opened on first use
        pass


async def test_embedded_threadkeep_is_served_under_the_hosts_own_names(tmp_path: Path):
    async with embedded(tmp_path) as host, client_of(host, "www.shop.example") as client:
        refusal(await client.get("/tk/api/me"), 401, "UNAUTHENTICATED")
        me = await client.get("/tk/api/me", headers={"X-User": "alice"})
        assert me.json() == {"id": "alice", "role": "user", "installation": ANY}
        agent = (await client.post("/tk/api/agents", json={"name": "x"}, headers={"X-User": "alice"})).json()
        path = f"/tk/api/agents/{agent['id']}"
        made = await client.put(f"{path}/conversation", headers={"X-User": "alice"})
        assert made.status_code == 201
        found = await client.get(made.headers["location"], headers={"X-User": "alice"})
        assert found.json()["id"] == made.json()["id"]
        for noun, code in (("agents", "AGENT_NOT_FOUND"), ("domains", "DOMAIN_NOT_FOUND")):
            foreign = await client.get(f"/tk/api/{noun}/{agent['id']}", headers={"X-User": "bob"})
            refusal(foreign, 404, code)
        refusal(await client.post(path, headers={"X-User": "alice"}), 405, "METHOD_NOT_ALLOWED")
        refusal(await client.get("/tk/nowhere"), 404, "NOT_FOUND")


async def test_embedded_threadkeep_refuses_pages_of_other_sites(tmp_path: Path):
    async with (
        embedded(tmp_path, cors_origins=(LISTED,)) as host,
        client_of(host, "www.shop.example") as client,
    ):
        for origin, status in (
            ("https://www.shop.example", 201),
            (LISTED, 201),
            ("https://shop.example", 403),
            (EVIL, 403),
            ("null", 403),
        ):
            headers = {"X-User": "alice", "Origin": origin}
            response = await client.post("/tk/api/agents", json={"name": "x"}, headers=headers)
            assert response.status_code == status, origin


async def test_embedded_threadkeep_keeps_to_the_names_it_is_given(tmp_path: Path):
    async with embedded(tmp_path, allowed_hosts=("www.shop.example",)) as host:
        for name, status in (("www.shop.example", 200), ("localhost", 200), ("evil.example", 403)):
            async with client_of(host, name) as client:
                assert (await client.get("/tk/api/me", headers={"X-User": "alice"})).status_code == status


async def test_unexpected_error_tells_the_client_nothing_and_the_log_everything(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    def broken(request: Request) -> User:
        raise RuntimeError("an inner secret")

    app = create_app(Settings.load({}, data=tmp_path), current_user=broken)
    async with client_of(app) as client:
        response = await client.get("/api/me", headers={"X-Request-Id": "look-for-me"})
    refusal(response, 500, "INTERNAL_ERROR")
    assert "secret" not in response.text
    assert "an inner secret" in caplog.text


# Request ids, versions, logs


async def test_request_id_of_the_caller_is_kept_and_garbage_is_replaced(tmp_path: Path):
    async with client_of(app_with(tmp_path)) as client:
        for given in ("abc", "A-1_b.c:d", "0" * 100):
            response = await client.get("/api/me", headers={"X-Request-Id": given})
            assert response.headers["x-request-id"] == response.json()["error"]["requestId"] == given
        made: set[str] = set()
        for garbage in ("", " ", "a b", "0" * 101, "a/b", "<script>", "é", 'a"b', "a\tb"):
            headers = [(b"X-Request-Id", garbage.encode("latin-1"))]
            response = await client.get("/api/me", headers=headers)
            made.add(response.headers["x-request-id"])
            assert response.json()["error"]["requestId"] == response.headers["x-request-id"]
        assert all(re.fullmatch("[0-9a-f]{16}", id_) for id_ in made)
        assert len(made) == 9


@ONLY_SQLITE
async def test_every_response_carries_version_and_request_id(api: Api, alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    path = f"/api/agents/{agent['id']}"
    responses = {
        200: [await alice.get(path), await alice.get("/docs"), await alice.get("/openapi.json")],
        201: [await alice.put(f"{path}/conversation")],
        204: [await alice.options(path), await alice.delete(path)],
        401: [await api.client().get("/api/me")],
        403: [
            await alice.get("/api/admin/audit"),
            await alice.get("/api/me", headers={"Host": "evil.example"}),
        ],
        404: [await alice.get(path), await alice.get("/nowhere")],
        405: [await alice.put("/api/me"), await alice.put("/docs")],
        413: [await alice.post("/api/agents", content=b" " * 10_485_761)],
        422: [await alice.post("/api/agents", json={})],
        409: [await alice.post("/api/chat", json={"content": "x"})],
    }
    for status, given in responses.items():
        for response in given:
            assert response.status_code == status, response.text
            assert response.headers["threadkeep-version"] == __version__
            assert response.headers["x-request-id"]
            assert response.headers["x-content-type-options"] == "nosniff"
            if status >= 400:
                refused = response.json()["error"]
                assert refused["requestId"] == response.headers["x-request-id"]
                assert response.headers["content-type"] == "application/json"


@ONLY_SQLITE
async def test_log_has_one_line_a_request_and_no_token(
    api: Api, alice: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "threadkeep")
    await alice.get("/api/me?token=in-the-query")
    await alice.get("/api/turns/a-guess")
    await alice.get("/nowhere/%0d%0aERROR%20forged%20line")
    await alice.get("/docs")
    lines = [record.getMessage() for record in caplog.records if record.name == "threadkeep.http"]
    routes = [re.sub(r"\d+\.\d ms$", "", line) for line in lines]
    # The route, not the path: that may hold anything.
    assert routes == [
        "GET /api/me 200 ",
        "GET /api/turns/{turn_id} 404 ",
        "GET (none) 404 ",
        "GET /docs 200 ",
    ]
    assert alice.headers["authorization"].removeprefix("Bearer ") not in caplog.text
    assert "in-the-query" not in "".join(lines)


# Paths and methods


@ONLY_SQLITE
async def test_unknown_path_gets_a_response_in_our_shape(alice: httpx.AsyncClient):
    paths = [
        "/nowhere",
        "/api",
        "/api/",
        "/api/agents/",
        "/api/nothing",
        "/API/agents",
        "/api//agents",
        "/docs/",
    ]
    for path in (*paths, f"/api/agents/{new_uuid()}/", "/openapi.json/x", "/%00", "/%ff", "/..%2f..%2fetc"):
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            refusal(await alice.request(method, path), 404, "NOT_FOUND")


@ONLY_SQLITE
async def test_wrong_method_gets_a_response_with_those_allowed(alice: httpx.AsyncClient):
    allowed: dict[str, set[str]] = {"/docs": {"GET"}, "/openapi.json": {"GET"}, "/": {"GET"}}
    for route in ROUTES:
        allowed.setdefault(route.path, {"OPTIONS"}).add(route.method)
    for path, methods in allowed.items():
        methods |= {"HEAD"} if "GET" in methods else set()
        for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "FOO", "TRACE"} - methods:
            response = await alice.request(method, filled(path))
            assert response.status_code == 405, (method, path)
            assert set(response.headers["allow"].split(", ")) == methods
            if method != "HEAD":
                refusal(response, 405, "METHOD_NOT_ALLOWED")


@ONLY_SQLITE
async def test_head_responds_as_get_without_a_body(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    for path in ("/api/me", f"/api/agents/{agent['id']}", "/api/agents", "/healthz", "/nowhere", "/docs"):
        read, head = await alice.get(path), await alice.head(path)
        assert head.status_code == read.status_code
        assert head.headers["content-length"] == read.headers["content-length"]
        assert head.headers.get("etag") == read.headers.get("etag")


@ONLY_SQLITE
async def test_json_ends_its_line_as_terminals_like_it(alice: httpx.AsyncClient):
    for path in ("/api/me", "/api/agents", "/nowhere"):
        assert (await alice.get(path)).text.endswith("}\n"), path


@ONLY_SQLITE
async def test_options_tells_the_methods_of_a_path_without_sign_in(api: Api):
    client = api.client()
    for path in {route.path for route in ROUTES}:
        response = await client.options(filled(path))
        assert response.status_code == 204
        assert {route.method for route in ROUTES if route.path == path} < set(
            response.headers["allow"].split(", ")
        )
        assert response.content == b""


# The door


# How to sign in must be known before.
OPEN = {"/healthz", "/readyz", "/api/sign-in", "/api/sign-in/invitation", "/api/sign-in/invitation/accept"}


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    return b".".join([*parts, b""]).decode()


def bad_tokens() -> dict[str, str]:
    now = int(time.time())
    good: dict[str, Any] = {"sub": "alice", "role": "admin", "exp": now + 600}
    signed = jwt.encode(good, SECRET, "HS256")
    head, claims, signature = signed.split(".")
    return {
        "alg none": unsigned({"alg": "none", "typ": "JWT"}, good),
        "alg None": unsigned({"alg": "None"}, good),
        "no signature": f"{head}.{claims}.",
        "expired": jwt.encode(good | {"exp": now - 60}, SECRET, "HS256"),
        "not yet": jwt.encode(good | {"nbf": now + 600}, SECRET, "HS256"),
        "wrong key": jwt.encode(good, "another-secret-that-is-long-enough-too", "HS256"),
        "other algorithm": jwt.encode(good, SECRET * 2, "HS512"),
        "changed claims": f"{head}.{unsigned({}, good | {'sub': 'bob'}).split('.')[1]}.{signature}",
        "no subject": jwt.encode({"exp": now + 600}, SECRET, "HS256"),
        "no end": jwt.encode({"sub": "alice"}, SECRET, "HS256"),
        "blank subject": jwt.encode(good | {"sub": " "}, SECRET, "HS256"),
        "garbage": "garbage",
    }


@ONLY_SQLITE
async def test_every_route_needs_sign_in_but_health_and_how_to_sign_in(api: Api):
    client = api.client()
    routes = [(route.method, route.path) for route in ROUTES]
    assert sorted(routes) == sorted((it.method, it.path) for it in operations())
    for method, path in routes:
        response = await client.request(method, filled(path), json={"content": "x", "name": "x"})
        if path in OPEN:
            assert response.status_code == (200 if method == "GET" else 422)
        else:
            refusal(response, 401, "UNAUTHENTICATED")
            assert response.headers["www-authenticate"] == "Bearer"


@ONLY_SQLITE
async def test_bad_token_opens_no_route_and_is_not_told_back(api: Api, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "threadkeep")
    tokens = bad_tokens()
    for name, token in tokens.items():
        client = api.client(Authorization=f"Bearer {token}")
        for route in ROUTES if name in {"alg none", "expired", "wrong key"} else ROUTES[:1]:
            if route.path in OPEN:
                continue
            response = await client.request(route.method, filled(route.path))
            refusal(response, 401, "UNAUTHENTICATED")
            assert response.headers["www-authenticate"] == "Bearer"
            for part in token.split("."):
                assert len(part) < 8 or part not in response.text
        assert (await client.get("/healthz")).status_code == 200
    for token in tokens.values():
        assert token == "garbage" or token not in caplog.text


@ONLY_SQLITE
async def test_token_is_taken_from_its_header_only(api: Api, alice: httpx.AsyncClient):
    token = alice.headers["authorization"].removeprefix("Bearer ")
    for client, path in (
        (api.client(), f"/api/me?access_token={token}"),
        (api.client(), f"/api/me?token={token}"),
        (api.client(Cookie=f"token={token}; access_token={token}"), "/api/me"),
        (api.client(Authorization=f"Basic {token}"), "/api/me"),
        (api.client(Authorization=token), "/api/me"),
        (api.client(Authorization="Bearer"), "/api/me"),
        (api.client(Authorization=f"Bearer {token}, Bearer {token}"), "/api/me"),
    ):
        refusal(await client.get(path), 401, "UNAUTHENTICATED")
    assert (await api.client(Authorization=f"bearer  {token}").get("/api/me")).json()["id"] == "alice"


async def test_without_sign_in_everyone_is_the_local_admin(tmp_path: Path):
    app = app_with(tmp_path, jwt_secret=None)
    async with app.lifespan(), client_of(app) as client:
        assert (await client.get("/api/me")).json() == {"id": "local", "role": "admin", "installation": ANY}
        forged = await client.get("/api/me", headers={"Authorization": "Bearer garbage"})
        assert forged.json()["id"] == "local"
        assert (await client.get("/api/admin/audit")).status_code == 200


# Length


@pytest.mark.parametrize("name", [b"host", b"origin"])
async def test_long_host_or_origin_is_refused_before_it_gets_into_a_cache(tmp_path: Path, name: bytes):
    app = app_with(tmp_path)
    long = b"a" * 60_000 + b".localhost"
    headers = {b"host": b"localhost"} | {name: long if name == b"host" else b"http://" + long}
    start, body = await messages_of(app, method="POST", headers=list(headers.items()))
    assert start["status"] == 403
    assert json.loads(body["body"])["error"]["param"] == name.decode().title()
    assert len(body["body"]) < 1_000


async def test_headers_that_a_hosts_server_lets_through_are_counted(tmp_path: Path):
    for more in (
        {"headers": [(b"host", b"localhost"), (b"x", b"a" * 70_000)]},
        {"headers": [(b"host", b"localhost"), *[(b"x", b"a")] * 20_000]},
        {"headers": [(b"host", b"localhost")], "query_string": b"a" * 70_000},
        {"headers": [(b"host", b"localhost")], "path": "/" + "a" * 70_000},
    ):
        start, body = await messages_of(app_with(tmp_path), **more)
        assert (start["status"], json.loads(body["body"])["error"]["code"]) == (431, "HEADERS_TOO_LARGE")


async def test_page_of_a_listed_origin_shows_images(tmp_path: Path):
    shown = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    path = "/api/files/0190c5a0-0000-7000-8000-000000000001"
    async with client_of(app_with(tmp_path, cors_origins=(LISTED,))) as client:
        listed = await client.get(path, headers={**shown, "Referer": f"{LISTED}/"})
        refusal(listed, 401, "UNAUTHENTICATED")
        for referer in (f"{EVIL}/", f"{LISTED}.evil.example/", "", "null"):
            other = await client.get(path, headers={**shown, "Referer": referer})
            refusal(other, 403, "FORBIDDEN", "Sec-Fetch-Site")
