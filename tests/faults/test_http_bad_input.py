"""Whatever is sent, the response is a clear refusal: never a 5xx, never half a change."""

import gzip
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import Json, items, new_agent, new_conversation, refusal
from tests.http.checked import CheckedApi
from tests.http.document import Operation, example, fields, mismatch, operations, resolved
from threadkeep.domain.ids import new_uuid
from threadkeep.http.api.agent_settings import AgentSettingsBody

MEGABYTE = 1024 * 1024
MOST = 10 * MEGABYTE
WRITING = [operation for operation in operations() if operation.method != "GET"]
WITH_BODY = [operation for operation in WRITING if operation.body]
NOTHING = {name: new_uuid() for operation in operations() for name in operation.path_names} | {
    "user_id": "nobody", "name": "none", "component": "none",
}  # fmt: skip
WITH_QUERY = [operation for operation in operations() if operation.query_names]
SURROGATES = [r"\ud800", r"\udfff", r"a\ud83d", r"\ud83d x", r"\udc00\ud800"]
BROKEN_UTF8 = [b"\xff", b"\xc0\xaf", b"\xe4\xb8", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80"]

few = settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def api(api: Api) -> Api:
    """Every response here must be one of those that the document promises."""
    return CheckedApi.on(api)


@dataclass
class Target:
    """Somebody's things, to be aimed at."""

    client: httpx.AsyncClient
    ids: dict[str, str]

    async def send(
        self, operation: Operation, body: bytes | str | AsyncIterator[bytes], **more: Any
    ) -> httpx.Response:
        url = operation.url(**self.ids)
        return await self.client.request(operation.method, url, content=body, **more)

    async def state(self) -> list[Any]:
        """All that is theirs."""
        return [
            (await self.client.get(f"/api/agents/{self.ids['agent_id']}")).json(),
            (await self.client.get(f"/api/conversations/{self.ids['conversation_id']}")).json(),
            len(await items(self.client, "/api/agents", limit=200)),
            len(await items(self.client, "/api/conversations", limit=200)),
        ]


@pytest.fixture
async def target(alice: httpx.AsyncClient) -> AsyncGenerator[Target]:
    """Whoever aims at it with nothing but bad input has changed nothing in the end."""
    agent = await new_agent(alice)
    conversation = await new_conversation(alice, agent["id"], title="t", metadata={"a": 1})
    await alice.get("/api/chat/messages")
    ids = {"agent_id": agent["id"], "conversation_id": conversation["id"]}
    target = Target(alice, NOTHING | ids)
    before = await target.state()
    yield target
    assert await target.state() == before


def malformed(response: httpx.Response) -> Json:
    """The error of a response to something malformed, whichever part of it was found first."""
    param = response.json()["error"].get("param")
    if (param or "").startswith("settings.mcpServers"):
        return refusal(response, 400, "MCP_CONFIG_INVALID", param)
    return refusal(response, 422, "INVALID_REQUEST", param)


def with_value(operation: Operation, place: tuple[str, ...], value: str) -> str:
    """A body that is good but for one place, where a JSON text of our own stands."""
    assert operation.body
    body = example(operation.body)
    inner = body
    for name in place[:-1]:
        inner = inner.setdefault(name, {})
    inner[place[-1]] = "<here>"
    return json.dumps(body).replace('"<here>"', value)


def text_places(operation: Operation) -> list[tuple[tuple[str, ...], str]]:
    """Every place of a body where a text can stand, as the way to it and the JSON around that text."""
    assert operation.body
    found: list[tuple[tuple[str, ...], str]] = []
    for place, schema in fields(operation.body):
        if mismatch("text", schema) is None:
            found.append((place, '"{}"'))
        if mismatch({"any": "thing"}, schema) is None:
            inside = ('{{"{}": 1}}', '{{"k": "{}"}}', '{{"k": ["{}"]}}', '{{"k": {{"{}": null}}}}')
            found += [(place, form) for form in inside]
    return found


# Size


@ONLY_SQLITE
async def test_body_over_the_limit_is_refused_however_it_is_sent(target: Target):
    async def drip() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b" " * MEGABYTE

    whole = b" " * 11 * MEGABYTE
    for operation in WRITING:
        if operation.takes_files:
            continue  # they may be larger; their own tests say how large
        for sent in (
            await target.send(operation, whole),
            await target.send(operation, drip()),
            await target.send(operation, drip(), headers={"Content-Length": "2"}),
            await target.send(operation, b"{}", headers={"Content-Length": str(MOST + 1)}),
        ):
            error = refusal(sent, 413, "PAYLOAD_TOO_LARGE")
            assert error["details"] == {"most": most_of(operation)}


def most_of(operation: Operation) -> int:
    """How large a body each route takes: little, but where people and programs send texts."""
    is_queued = operation.method == "PATCH" and "/queued/" in operation.path
    of_clients = ("/messages", "/regenerate", "/chat", "/executions", "/approvals/{request_id}")
    if is_queued or operation.path.endswith(of_clients):
        return MOST
    of_texts = operation.path.endswith(
        ("/{component}", "/agents", "/domains", "/briefings", "/rerun", "/preview")
    ) or (operation.method == "PATCH" and operation.path.endswith("/{agent_id}"))
    return MEGABYTE // 4 if of_texts else MEGABYTE // 16


@ONLY_SQLITE
async def test_body_of_just_the_limit_is_taken(alice: httpx.AsyncClient):
    conversation = (await new_conversation(alice))["id"]
    for path, content, most in (
        ("/api/agents", b'{"name": "x"}', MEGABYTE // 4),
        (f"/api/conversations/{conversation}/compact", b"{}", MEGABYTE // 16),
        (f"/api/conversations/{conversation}/executions", b'{"events": []}', MOST),
    ):
        body = content.ljust(most)
        assert (await alice.post(path, content=body)).status_code != 413, path
        refusal(await alice.post(path, content=body + b" "), 413, "PAYLOAD_TOO_LARGE")


# Bytes that are no JSON


@ONLY_SQLITE
async def test_body_that_is_no_json_object_is_refused(target: Target):
    bodies = [
        *(
            b"{",
            b"}",
            b"[",
            b"{}{}",
            b"{} x",
            b"{'a': 1}",
            b'{"a" 1}',
            b'{"a": 1,}',
            b"// no\n{}",
            b"undefined",
        ),
        *(
            b"NaN",
            b"Infinity",
            b"null",
            b"true",
            b"0",
            b'""',
            b"[]",
            b"[{}]",
            b"\x00",
            b"{}\x00",
            b"\xef\xbb\xbf{}",
        ),
        *(b"name=x&content=x", b"<xml/>", gzip.compress(b"{}"), "{}".encode("utf-16"), b" ", b"\n"),
    ]
    for operation in WITH_BODY:
        for body in bodies:
            malformed(await target.send(operation, body))


@ONLY_SQLITE
async def test_no_body_counts_as_an_empty_object(target: Target):
    for operation in WITH_BODY:
        assert operation.body
        if required := resolved(operation.body).get("required"):
            refusal(await target.send(operation, b""), 422, "INVALID_REQUEST", required[0])
        elif "MESSAGE_CONTENT_REQUIRED" in operation.codes(400):
            refusal(await target.send(operation, b""), 400, "MESSAGE_CONTENT_REQUIRED", "content")
        elif operation.method == "PATCH" and "conversation_id" in operation.path_names:
            assert (await target.send(operation, b"")).status_code == 200


@ONLY_SQLITE
async def test_broken_utf8_is_refused_in_every_place(target: Target):
    for operation in WITH_BODY:
        for place, form in text_places(operation):
            for broken in BROKEN_UTF8:
                body = (
                    with_value(operation, place, form.format("<broken>"))
                    .encode()
                    .replace(b"<broken>", broken)
                )
                refusal(await target.send(operation, body), 422, "INVALID_REQUEST")


@ONLY_SQLITE
async def test_half_a_surrogate_pair_is_refused_in_every_place(target: Target):
    for operation in WITH_BODY:
        for place, form in text_places(operation):
            for half in SURROGATES:
                body = with_value(operation, place, form.format(half))
                refusal(await target.send(operation, body), 422, "INVALID_REQUEST")


async def test_whole_surrogate_pair_is_kept(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    body = r'{"title": "\ud83d\ude42", "metadata": {"\ud83d\ude42": "\uffff"}}'
    made = (await alice.post(f"/api/agents/{agent['id']}/conversations", content=body)).json()
    assert (made["title"], made["metadata"]) == ("🙂", {"🙂": "\uffff"})


# NUL


@ONLY_SQLITE
async def test_nul_is_refused_in_every_place_of_every_body_with_the_place_named(target: Target):
    for operation in WITH_BODY:
        for place, form in text_places(operation):
            for nul in (r"\u0000", r"a\u0000b", "题" + r"\u0000"):
                response = await target.send(operation, with_value(operation, place, form.format(nul)))
                param = malformed(response)["param"]
                assert param.startswith(".".join(place)) and "\x00" not in param, (
                    str(operation),
                    place,
                    form,
                )
            raw = with_value(operation, place, form.format("<nul>")).encode().replace(b"<nul>", b"a\x00b")
            refusal(await target.send(operation, raw), 422, "INVALID_REQUEST")


async def test_nul_is_refused_in_every_query_and_found_in_no_path(target: Target):
    for operation in WITH_QUERY:
        url = operation.url(**target.ids)
        for name in operation.query_names:
            for value in ("%00", "a%00b", "1%00"):
                others = "".join(f"&{it}={it}" for it in operation.needed_query if it != name)
                response = await target.client.request(operation.method, f"{url}?{name}={value}{others}")
                refusal(response, 422, "INVALID_REQUEST", name)
        response = await target.client.request(operation.method, f"{url}?a%00b=1")
        assert response.status_code == 422
    for operation in operations():
        for name in operation.path_names:
            for value in ("%00", "a%00b", f"{target.ids[name]}%00"):
                url = operation.path.replace(f"{{{name}}}", value)
                response = await target.client.request(
                    operation.method,
                    url,
                    json=example(operation.body) if operation.body else None,
                    params=operation.needed_query,
                )
                status = 403 if operation.path.startswith("/api/admin/") else 404
                assert response.status_code == status, (str(operation), response.text)


async def test_text_that_only_looks_like_nul_is_kept(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    text = "\\u0000 and \\\\u0000"
    made = await new_conversation(alice, agent["id"], title=text, metadata={text: [text]})
    detail = (await alice.get(f"/api/conversations/{made['id']}")).json()
    assert detail["title"] == text
    assert detail["metadata"] == {text: [text]}


# Types and names


WRONG: list[Any] = [None, True, 0, -1, 1.5, "text", "", [], [1], ["text"], {}, {"a": 1}]


@ONLY_SQLITE
async def test_value_of_a_wrong_type_is_refused_with_the_field_named(target: Target):
    tried = 0
    for operation in WITH_BODY:
        assert operation.body
        for place, schema in fields(operation.body):
            for value in (it for it in WRONG if mismatch(it, schema)):
                response = await target.send(operation, with_value(operation, place, json.dumps(value)))
                # Where an object or a list fits but not what is in it, the place inside is told too.
                assert re.fullmatch(
                    rf"{re.escape('.'.join(place))}(\.\w+|\[0\])?", malformed(response)["param"]
                )
                tried += 1
    assert tried > 200


@ONLY_SQLITE
async def test_setting_of_a_wrong_type_in_a_patch_is_refused_with_the_setting_named(target: Target):
    (creating,) = (it for it in operations() if str(it) == "POST /api/agents")
    assert creating.body
    known = resolved(resolved(creating.body)["properties"]["settings"])["properties"]
    assert len(known) == len(AgentSettingsBody.__struct_fields__)
    for name, schema in known.items():
        for value in (it for it in WRONG if it is not None and mismatch(it, schema)):
            url = f"/api/agents/{target.ids['agent_id']}"
            response = await target.client.patch(url, json={"settings": {name: value}})
            # Where an object or a list fits but not what is in it, the place inside is told too.
            assert re.fullmatch(rf"settings\.{name}(\.a|\[0\])?", malformed(response)["param"])


@ONLY_SQLITE
async def test_unknown_field_is_refused_with_its_name(target: Target):
    names = ["foo", "Title", "NAME", "a.b", "é", "a b", "$", "__proto__", "x" * 500]
    for operation in WITH_BODY:
        for name in names:
            body = with_value(operation, (name,), "1")
            refusal(await target.send(operation, body), 422, "INVALID_REQUEST", name)
        for odd in ("", "`", "a`b", "\n", '"', "x" * 60_000):
            response = await target.send(operation, with_value(operation, (odd,), "1"))
            assert response.status_code == 422
            assert len(response.content) < 2_000


async def test_of_a_field_given_twice_the_last_one_counts(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    path = f"/api/agents/{agent['id']}/conversations"
    body = '{"title": "first", "metadata": {"a": 1, "a": 2}, "title": "last"}'
    made = (await alice.post(path, content=body)).json()
    assert (made["title"], made["metadata"]) == ("last", {"a": 2})
    hidden = r'{"title": "a\u0000b", "title": "last"}'
    assert (await alice.post(path, content=hidden)).status_code in {201, 422}


# Depth and numbers


@ONLY_SQLITE
async def test_endless_nesting_is_refused(target: Target):
    for operation in WITH_BODY:
        for opening, closing in (("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")):
            deep = f"{opening * 5_000}1{closing * 5_000}"
            for body in (deep, opening * 5_000):
                malformed(await target.send(operation, body))
            for place, _ in fields(operation.body or {}):
                malformed(await target.send(operation, with_value(operation, place, deep)))


async def test_huge_number_is_refused_or_kept_and_never_breaks_anything(target: Target):
    numbers = ["1e400", "-1e400", "1" + "0" * 30, "-1" + "0" * 30, "1" + "0" * 5000, "1e99999"]
    for operation in WITH_BODY:
        for place, schema in fields(operation.body or {}):
            for number in numbers:
                if mismatch({"any": 1}, schema) is not None:
                    response = await target.send(operation, with_value(operation, place, number))
                    assert response.status_code in {400, 422}, (str(operation), place, number, response.text)
    for operation in WITH_QUERY:
        for name in operation.query_names - {"purge"}:
            for number in (*numbers, "9223372036854775808", "-9223372036854775809"):
                url = f"{operation.url(**target.ids)}?{name}={number}"
                response = await target.client.request(operation.method, url)
                # Where the id is looked up first, what is not there is told before its number is.
                expected = {422, 404} if {"turn_id", "share"}.intersection(operation.path_names) else {422}
                if operation.path.startswith("/api/admin/turns"):
                    expected |= {403}
                if name == "agentId" and "AGENT_NOT_FOUND" in operation.codes(404):
                    expected = {404}  # no filter, but the agent that is asked about
                if operation.query_takes_text(name) and name != "cursor":
                    expected |= {200}  # a number is a text as well
                assert response.status_code in expected, (url[:100], response.text[:200])


async def test_huge_number_in_metadata_comes_back_as_it_was_kept(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    path = f"/api/agents/{agent['id']}/conversations"
    huge = (
        "1" + "0" * 30,
        "-1" + "0" * 30,
        "1" + "0" * 300,
        str(2**63),
        str(2**64),
        "1e308",
        "1e-400",
        "-0.0",
    )
    for number in huge:
        made = await alice.post(path, content=f'{{"metadata": {{"n": {number}}}}}')
        assert made.status_code == 201
        one = f"/api/conversations/{made.json()['id']}"
        kept = (await alice.get(one)).json()["metadata"]
        assert kept == made.json()["metadata"]
        assert float(kept["n"]) == float(number)
        assert (await alice.patch(one, json={"metadata": {"m": 1}})).json()["metadata"] == kept | {"m": 1}
    for number in ("1e400", "-1e400", "1" + "0" * 5000):
        malformed(await alice.post(path, content=f'{{"metadata": {{"n": {number}}}}}'))


# Ids


async def test_id_that_is_none_is_not_found_on_every_route(target: Target):
    odd = ["0", "null", "undefined", "-1", "é", "🙂", "a" * 5000, "%20", "%2e%2e", "'--", "%ff", "{}", "*"]
    for operation in operations():
        for name in operation.path_names:
            for id_ in odd:
                url = operation.path.replace(f"{{{name}}}", id_)
                body = example(operation.body) if operation.body else None
                response = await target.client.request(
                    operation.method, url, json=body, params=operation.needed_query
                )
                status = 403 if operation.path.startswith("/api/admin/") else 404
                assert response.status_code == status, (operation.method, url[:80], response.text)


# Anything at all


texts = st.text(max_size=20) | st.sampled_from(
    ["a", "name", "content", "title", "settings", "\x00", " ", "null"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def bodies_for(operation: Operation) -> st.SearchStrategy[Any]:
    """Bodies that nearly fit: the right names, anything in them."""
    known: Json = resolved(operation.body or {}).get("properties", {})
    required = example(operation.body or {})
    some = st.fixed_dictionaries({}, optional=dict.fromkeys(known, values))
    return some | st.builds(required.__or__, some) | values


EVERY_BODY = st.tuples(*(bodies_for(operation) for operation in WITH_BODY))


@few
@given(every=EVERY_BODY)
async def test_random_bodies_get_documented_responses(api: Api, every: tuple[Any, ...]):
    client = api.as_user("fuzz")
    agent = await new_agent(client)
    conversation = await new_conversation(client, agent["id"])
    target = Target(client, NOTHING | {"agent_id": agent["id"], "conversation_id": conversation["id"]})
    for operation, body in zip(WITH_BODY, every, strict=True):
        response = await target.send(operation, json.dumps(body))
        if response.status_code >= 500:
            refusal(response, 409, "GATEWAY_NOT_CONFIGURED")
    assert (await client.get(f"/api/agents/{agent['id']}")).status_code == 200
    assert (await client.get(f"/api/conversations/{conversation['id']}")).status_code == 200
    assert (await client.get("/api/conversations")).status_code == 200


@ONLY_SQLITE
@few
@given(raw=st.binary(max_size=50), query=st.text(max_size=30), header=st.binary(max_size=20))
async def test_random_bytes_get_documented_responses(api: Api, raw: bytes, query: str, header: bytes):
    client = api.as_user("fuzz")
    ids = dict.fromkeys(NOTHING, "x")
    headers = [(b"If-Match", header), (b"X-Request-Id", header), (b"Content-Type", header)]
    for operation in operations():
        url = f"{operation.url(**ids)}?{quote(query, safe='=&;+%')}"
        response = await client.request(operation.method, url, content=raw, headers=headers)
        assert response.status_code < 500, (str(operation), response.text)
