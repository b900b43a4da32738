"""Whatever comes from outside is read or refused; nothing else happens to those who read it."""

import asyncio
import io
import json
import zipfile
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm

from tests.conftest import ONLY_SQLITE, Api
from tests.fuzz.exports import IMPORTS
from tests.fuzz.hostile import (
    BYTES,
    HOSTILE,
    STORABLE,
    TEXT,
    bounded,
    dumped,
    objects,
    values,
    with_type,
)
from tests.gateways.asking import WIRES, ask, make_gateway
from tests.http.calls import new_agent
from tests.http.signing_in import SECRET, handmade, request
from threadkeep.domain.errors import InvalidRequest, RoleNotFound, SignInUnavailable, Unauthenticated
from threadkeep.domain.ids import UserId
from threadkeep.domain.sign_in.identity import ProviderAnswer, SignInProblem
from threadkeep.domain.text import check_storable
from threadkeep.domain.user import User
from threadkeep.handling.cursors import Cursors
from threadkeep.http.sign_in.by_token import SharedSecretSignIn
from threadkeep.http.sign_in.key_set import KeySet
from threadkeep.http.sign_in.openid.provider import OpenIdProvider
from threadkeep.imports.reading import reading
from threadkeep.log.format import decode_chunk, put_back, references_in, shown_lines
from threadkeep.mcp.processes.lines import ServerLog, read_lines
from threadkeep.mcp.sessions.incoming import (
    CANNOT_READ,
    ENDS_BYTES,
    IncomingMessages,
    LargeMessageReader,
    UnreadableMessage,
    answered_id,
    refusal,
)
from threadkeep.protocols.ag_ui.decode import RunInput, decisions_of, question_of, results_of, tools_of
from threadkeep.protocols.agentx.cursor import parse_cursor
from threadkeep.settings.providers import ProviderTable
from threadkeep.sse import EventReader, EventTooLong
from threadkeep.tools.dpml import MOST_CHARACTERS, Resource, compose
from threadkeep.wire.decoding import decode_body
from threadkeep.wire.events import UnreadableEvent, decode_event

ALICE = User(UserId("alice"))


# Streams of model providers

LINES = st.builds(
    bytes.__add__,
    st.sampled_from([b"data: ", b"data:", b"event: ", b"id: ", b": ", b"", b"\xef\xbb\xbf"]),
    BYTES,
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b""])
STREAMS = st.lists(st.builds(bytes.__add__, LINES, ENDS), max_size=12).map(b"".join)


@bounded(60)
@given(STREAMS, st.integers(1, 7))
def test_stream_of_events_is_read_alike_in_any_pieces(stream: bytes, size: int):
    def read(pieces: Sequence[bytes]) -> list[object] | None:
        reader = EventReader(most_bytes=50_000)
        try:
            found = [event for piece in pieces for event in reader.feed(piece)]
            return [*found, *reader.finish()]
        except EventTooLong:
            return None

    step = max(1, len(stream) * size // 8)
    whole, cut = read([stream]), read([stream[at : at + step] for at in range(0, len(stream), step)])
    assert None in (whole, cut) or whole == cut


MODEL_NAMES = [
    "type", "index", "delta", "text", "content_block", "message", "usage", "input_tokens",
    "stop_reason", "error", "partial_json", "choices", "content", "tool_calls", "function", "name",
    "arguments", "id", "finish_reason", "thinking", "signature", "prompt_tokens_details",
]  # fmt: skip
MODEL_TYPES = [
    "message_start", "content_block_start", "content_block_delta", "content_block_stop",
    "message_delta", "message_stop", "error", "text_delta", "tool_use", "input_json_delta",
    "thinking_delta",
]  # fmt: skip
MODEL_EVENTS = values(*MODEL_NAMES) | st.builds(
    with_type,
    st.sampled_from(MODEL_TYPES),
    st.dictionaries(st.sampled_from(MODEL_NAMES), values(*MODEL_NAMES), max_size=4),
)
MODEL_STREAMS = st.lists(
    MODEL_EVENTS.map(lambda it: b"data: " + dumped(it) + b"\n\n") | st.just(b"data: [DONE]\n\n") | LINES,
    max_size=6,
).map(b"".join)


class Whole(httpx2.AsyncByteStream):
    """A body that comes in one piece."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body


@pytest.mark.parametrize("wire", WIRES)
@bounded(60)
@given(stream=MODEL_STREAMS, status=st.sampled_from([200, 200, 200, 400, 429, 500]))
async def test_reply_of_a_model_is_read_or_is_an_error_of_the_gateway(wire: str, stream: bytes, status: int):
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, stream=Whole(stream)))
    await ask(make_gateway(wire, "http://model.test", transport=transport))  # raises all but GatewayError


# MCP servers

RPC = values("jsonrpc", "id", "method", "params", "result", "error", "code", "content", "structuredContent")


@bounded(60)
@given(st.lists(BYTES | RPC.map(dumped), max_size=6), st.integers(1, 5000))
async def test_lines_of_a_server_come_as_they_were_written(lines: list[bytes], size: int):
    written = b"\n".join(lines)
    reader = asyncio.StreamReader()
    for at in range(0, len(written), size):
        reader.feed_data(written[at : at + size])
    reader.feed_eof()
    assert b"\n".join([line async for line in read_lines(reader) if isinstance(line, bytes)]) == written
    log = ServerLog()
    log.write(written)
    assert len(log.complaint) <= 300


@bounded(60)
@given(BYTES | RPC.map(dumped))
async def test_message_of_a_server_is_small_or_refused(line: bytes):
    incoming = IncomingMessages(LargeMessageReader())
    if len(line) < 64 * 1024:
        with suppress(UnreadableMessage):
            assert await incoming.shrink(line) in (line, None)
    answered = answered_id(line[:ENDS_BYTES], line[-ENDS_BYTES:])
    if answered is not None:
        error = msgspec.json.decode(refusal(answered, CANNOT_READ))
        assert (error["id"], error["error"]["message"]) == (answered, CANNOT_READ)


TEXT_JSON = values("type", "text", "data", "mimeType", "resource", "uri", "blob", "name")
RESULTS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.lists(TEXT_JSON, max_size=3) | TEXT_JSON,
        "structuredContent": values("threadkeep/claim", "chart_data", "result"),
        "isError": st.booleans() | TEXT,
    },
)


@bounded(60)
@given(RESULTS)
async def test_result_of_a_tool_is_read_or_refused(result: dict[str, Any]):
    with suppress(ValueError):
        returned = IncomingMessages(LargeMessageReader()).returned(result)
        assert returned.status in {"ok", "error"}


# Roles

KINDS = st.sampled_from(["role", "thought", "execution", "knowledge"])
NAMES = st.sampled_from(["a", "r", "..", "a.b"])
PIECES = (
    HOSTILE | st.builds("@!{}://{}".format, KINDS, NAMES) | st.sampled_from(["<role>", "<!--", "-->", "# "])
)


@bounded(40)
@given(
    st.lists(
        st.builds(
            Resource, KINDS, NAMES, st.sampled_from(["/r", "/s"]), st.lists(PIECES, max_size=6).map("".join)
        ),
        max_size=4,
    ),
    TEXT,
)
def test_role_files_compose_to_a_role_or_to_none(resources: list[Resource], role_id: str):
    for wanted in (role_id, "r", "a"):
        with suppress(RoleNotFound):
            assert len(compose(wanted, resources).text) <= MOST_CHARACTERS + 100


# Imports


def found_in(path: Path) -> None:
    """Reads an export to its end; what is none is refused as such."""
    with suppress(InvalidRequest), reading(path) as file:
        for _ in file.found():
            pass


@bounded(80)
@given(content=IMPORTS)
def test_import_is_read_or_refused(tmp_path: Path, content: bytes):
    file = tmp_path / "export"
    file.write_bytes(content)
    found_in(file)


@bounded(40)
@given(
    name=st.sampled_from(["conversations.json", "data.jsonl", "a/conversations-1.json", "../data.jsonl"]),
    content=IMPORTS,
    damage=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=3),
)
def test_damaged_archive_is_read_or_refused(
    tmp_path: Path, name: str, content: bytes, damage: list[tuple[int, int]]
):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    raw = bytearray(packed.getvalue())
    for place, byte in damage:
        raw[place % len(raw)] = byte
    file = tmp_path / "export.zip"
    file.write_bytes(raw)
    found_in(file)


# Signing in


@bounded(60)
@given(
    BYTES, st.dictionaries(st.sampled_from(["alg", "kid", "crit"]), values()), values("sub", "exp", "role")
)
async def test_sign_in_is_refused_whatever_its_header_says(raw: bytes, header: dict[str, Any], payload: Any):
    token = handmade(header, payload, SECRET.encode())
    for authorization in (raw.decode("latin-1"), f"Bearer {raw.decode('latin-1')}", f"Bearer {token}"):
        with pytest.raises(Unauthenticated):
            await SharedSecretSignIn(SECRET).user(request(authorization))


NUMBERS = TEXT | st.sampled_from(["AQAB", "sig", "AA"])
JWK = st.fixed_dictionaries(
    {"kty": st.sampled_from(["RSA", "EC", "oct", "OKP"]) | TEXT},
    optional={
        **dict.fromkeys(
            ("n", "e", "x", "y", "k", "kid", "use"), TEXT | st.sampled_from(["AQAB", "sig", "AA"])
        ),
        "alg": st.sampled_from(["RS256", "ES256", "HS256", "none"]) | values(),
        "crv": st.sampled_from(["P-256", "P-521", "Ed25519"]) | TEXT,
    },
)


@bounded(60)
@given(
    BYTES
    | values("keys", "kty", "n").map(dumped)
    | st.lists(JWK, max_size=3).map(lambda keys: dumped({"keys": keys}))
)
async def test_key_set_is_read_or_counts_as_unreachable(document: bytes):
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, stream=Whole(document)))
    async with httpx2.AsyncClient(transport=transport) as client:
        keys = KeySet("https://keys.test/", client, clock=lambda: 0.0)
        with suppress(Unauthenticated, SignInUnavailable):
            await keys.key("a", "RS256")
        await keys.close()


ISSUER = "https://id.test"
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "userinfo_endpoint": f"{ISSUER}/userinfo",
    "jwks_uri": f"{ISSUER}/keys",
}
PROVIDERS_KEY = ec.generate_private_key(ec.SECP256R1())
PUBLISHED = json.loads(ECAlgorithm.to_jwk(PROVIDERS_KEY.public_key()))
SAID = {
    name: values()
    for name in (
        "iss",
        "aud",
        "azp",
        "exp",
        "iat",
        "nbf",
        "sub",
        "nonce",
        "email",
        "email_verified",
        "name",
        "roles",
    )
}
TRUE = {"iss": ISSUER, "aud": "us", "exp": 1 << 40, "iat": 0, "sub": "1", "nonce": "n", "name": "Ann"}


@bounded(60)
@given(
    values(*METADATA) | objects({}, **dict.fromkeys(METADATA, values())).map(lambda it: METADATA | it),
    objects({}, **SAID).map(lambda it: TRUE | it),
    values("id_token", "access_token", "error", "refresh_expires_in"),
    values("sub", "roles"),
)
async def test_sign_in_provider_is_believed_or_refused(
    metadata: Any, claims: Any, tokens: Any, userinfo: Any
):
    # As if a provider had signed it: half a pair, and numbers that JSON has not.
    id_token = jwt.api_jws.encode(dumped(claims), PROVIDERS_KEY, algorithm="ES256")
    replies: dict[str, Any] = {
        "/keys": {"keys": [PUBLISHED]},
        "/token": {"id_token": id_token, **(tokens if isinstance(tokens, dict) else {}), "access_token": "x"},
        "/userinfo": userinfo,
    }

    def reply(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, stream=Whole(dumped(replies.get(request.url.path, metadata))))

    table = ProviderTable(issuer=ISSUER, client_id="us", anyone=True, groups_claim="roles.all")
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(reply))
    provider = OpenIdProvider(table, "s", table.admission("p", ["p"]), "https://us.test/", client)
    answer = ProviderAnswer(state="s", code="c", issuer=None, error=None)
    try:
        identified = await provider.identify(answer, verifier="v", nonce="n")
        assert identified.identity is not None
        user = provider.admission.admit(identified.identity)
        assert user.id.startswith("p|")
        check_storable("".join((user.id, user.name or "", *user.groups)), "user")
    except SignInProblem:
        pass
    finally:
        await provider.close()


# Cursors and logs


@bounded(60)
@given(TEXT, st.binary(max_size=40))
def test_cursor_that_is_not_ours_is_refused(text: str, raw: bytes):
    for cursor in (text, raw.decode("latin-1"), raw.hex()):
        with pytest.raises(InvalidRequest):
            Cursors(b"k" * 32).read(ALICE, "list", cursor, int)
        with suppress(InvalidRequest):
            assert str(parse_cursor(cursor)) == cursor


EVENT_NAMES = [
    "type", "turn_id", "seq", "at", "text", "refs", "id", "name", "arguments", "result", "error",
    "hits",
]  # fmt: skip
EVENT_TYPES = st.sampled_from(["text", "tool_call", "tool_result", "retrieval", "done", "error", "notice"])
EVENTS = st.builds(
    with_type,
    EVENT_TYPES | TEXT,
    st.sampled_from([{"turn_id": "t", "seq": 1, "at": 1}, {}]),
    st.dictionaries(st.sampled_from(EVENT_NAMES), values(*EVENT_NAMES), max_size=6),
)
LOG_LINES = EVENTS.map(json.dumps) | STORABLE | st.builds("{}\t{}".format, EVENTS.map(json.dumps), STORABLE)


@bounded(60)
@given(st.lists(LOG_LINES, max_size=4).map("\n".join))
def test_chunk_of_a_log_is_read_or_unreadable(chunk: str):
    assert all("\t" not in line for line in shown_lines(chunk))
    with suppress(UnreadableEvent):
        decode_chunk(chunk)
    with suppress(UnreadableEvent):
        put_back(chunk, dict.fromkeys(references_in(chunk), b"1"))


@bounded(60)
@given(EVENTS.map(dumped) | BYTES)
def test_event_is_read_or_unreadable(raw: bytes):
    with suppress(UnreadableEvent):
        assert decode_event(raw).seq is not None


# Headers and files, at the door

HEADERS = [
    "cookie", "authorization", "accept", "origin", "range", "idempotency-key", "last-event-id",
    "if-match", "if-none-match", "x-forwarded-for", "x-request-id", "content-type",
    "accept-language", "te", "upgrade",
]  # fmt: skip


@ONLY_SQLITE
@bounded(30)
@given(given_=st.dictionaries(st.sampled_from(HEADERS), BYTES, min_size=1, max_size=3), text=STORABLE)
async def test_no_header_and_no_query_fails_on_our_side(api: Api, given_: dict[str, bytes], text: str):
    client = api.as_user("alice")
    headers = [(name.encode(), value) for name, value in given_.items()]
    query = httpx2.QueryParams({"q": text[:1000]})
    for method, url in (("GET", "/api/me"), ("GET", "/api/search"), ("POST", "/api/agents"), ("GET", "/")):
        response = await client.request(method, url, params=query, headers=headers)
        assert response.status_code < 500, (method, url, response.text)


PARTS = st.lists(
    BYTES
    | st.sampled_from(
        [
            b"--x", b"--x--", b"\r\n", b"\r\n\r\n", b"Content-Disposition: form-data; ", b'name="files"; ',
            b'filename="', b'a.txt"', b"filename*=utf-8''%00", b"Content-Type: text/plain",
            b"Content-Length: 5", b"Content-Transfer-Encoding: base64", b'filename="../../a"',
            b'filename="a\\"b.txt"', b"words",
        ]
    ),
    max_size=12,
).map(b"".join)  # fmt: skip


def whole_part(name: bytes, kind: bytes, content: bytes) -> bytes:
    """One file, sent as it should be."""
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="%b"\r\n' % name
    return b"%bContent-Type: %b\r\n\r\n%b\r\n--x--\r\n" % (head, kind, content)


WHOLE_PARTS = st.builds(whole_part, BYTES, BYTES, BYTES)
FORM = b"multipart/form-data"
FORMS = st.sampled_from([FORM + b"; boundary=x", FORM]) | BYTES.map(lambda some: FORM + b"; boundary=" + some)


@ONLY_SQLITE
@bounded(40)
@given(body=PARTS | WHOLE_PARTS, kind=FORMS)
async def test_files_are_taken_or_refused(api: Api, body: bytes, kind: bytes):
    client = api.as_user("alice")
    agent = (await new_agent(client))["id"]
    headers = [(b"content-type", kind)]
    response = await client.post(f"/api/agents/{agent}/documents", content=body, headers=headers)
    assert response.status_code < 500, response.text


# Requests of other protocols

AG_UI_PARTS = objects(
    {"type": st.sampled_from(["text", "image", "document", "binary"]) | TEXT},
    text=TEXT,
    source=objects({"type": st.sampled_from(["data", "url"]), "value": TEXT}),
    data=TEXT,
    url=TEXT,
    id=TEXT,
    metadata=values("filename"),
)
AG_UI_MESSAGES = objects(
    {"role": st.sampled_from(["user", "assistant", "tool", "activity"])},
    id=TEXT,
    content=TEXT | st.lists(AG_UI_PARTS, max_size=3) | values(),
    toolCallId=TEXT,
    error=TEXT,
)
AG_UI_RUNS = objects(
    {"threadId": TEXT, "runId": TEXT},
    messages=st.lists(AG_UI_MESSAGES, max_size=4),
    tools=st.lists(objects({"name": TEXT}, description=TEXT, parameters=values()), max_size=2),
    resume=st.lists(
        objects(
            {"interruptId": TEXT, "status": TEXT}, payload=values("approved", "action", "scope", "arguments")
        ),
        max_size=2,
    ),
    state=values(),
)


@bounded(150)
@given(AG_UI_RUNS | values("threadId", "runId", "messages", "resume"))
def test_run_of_ag_ui_is_read_or_refused(sent: Any):
    with suppress(InvalidRequest):
        run = decode_body(dumped(sent), msgspec.json.Decoder(RunInput))
        for read in (question_of, tools_of):
            with suppress(InvalidRequest):
                read(run)
        results_of(run, now=0)
        decisions_of(run, now=0)
