"""Every operation of the OpenAPI document, fuzzed against a running server.

Requests that the document allows, requests that it forbids, and requests in which one text is hostile, about
real things and made-up ones, by a user and by an admin: nothing fails on our side, and every answer is as
documented. A stream is read to its end. The web socket, of which OpenAPI knows nothing, is sent what its
protocol knows and what it does not. `make fuzz` is a longer run.
"""

import copy
import json
import logging
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import httpx
import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.sync.client import connect

from tests.conftest import SECRET
from tests.fuzz.hostile import HOSTILE, bounded
from tests.http.document import DOCUMENT, Operation, check, operation_of, operations
from tests.making import keep_artifact, keep_file
from tests.talking import JSON, Talk, talking
from threadkeep import Settings
from threadkeep.client.blocking import LoopThread
from threadkeep.http.api.reruns import RESULT
from threadkeep.testing import ScriptedModel
from threadkeep.testing.waiting import PATIENCE_S
from threadkeep.wire.events import decode_event

EXAMPLES = 4
# Whether a request is taken or refused is not the tool's to say: no schema tells that a cursor is signed, and
# what is wrong as JSON may be right as the text of a query. `faults/test_http_bad_input.py` looks at that.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]
ACCEPTS = st.sampled_from(["*/*", "application/json", "text/event-stream"])


@dataclass
class Tool:
    """Schemathesis, which takes seconds to load: only who uses it does."""

    schema: Any
    checks: list[Any]
    forbidden: Any

    @staticmethod
    @cache
    def load() -> "Tool":
        """The tool with our document; what is said of streams it would take for the schema of an event."""
        document = copy.deepcopy(DOCUMENT)
        for operation in operations(document):
            for told in operation.spec["responses"].values():
                told.get("content", {}).get("text/event-stream", {}).pop("schema", None)
        module, checks = import_module("schemathesis"), import_module("schemathesis.checks")
        known = [getattr(checks, name) for name in CHECKS]
        return Tool(module.openapi.from_dict(document), known, module.GenerationMode.NEGATIVE)


@dataclass
class Fuzzed:
    """A running server, with a way into it that its users do not have."""

    talk: Talk
    loop: LoopThread
    things: dict[str, str] = field(default_factory=dict[str, str])
    """One of everything that a path can name."""

    def headers(self, user: str) -> dict[str, str]:
        """How a user signs in; `root` is an admin."""
        now = int(time.time())
        # Of the next second: whoever was deleted in this one has come again since.
        claims = {
            "sub": user,
            "iat": now + 1,
            "exp": now + 3600,
            "role": "admin" if user == "root" else "user",
        }
        return {"Authorization": f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"}

    def renew(self) -> None:
        """Makes all things anew; their user is `alice`."""
        with httpx.Client(base_url=self.talk.url, headers=self.headers("alice"), timeout=PATIENCE_S) as alice:

            def post(path: str, body: Any = None, **more: Any) -> Any:
                response = alice.post(path, json=body, headers=JSON, **more)
                assert response.is_success, response.text
                return response.json()

            agent = post("/api/agents", {"name": "Fuzzed", "settings": {"compactionThreshold": 2}})["id"]
            made = post(f"/api/agents/{agent}/conversations", {})
            conversation = made["id"]
            path = f"/api/conversations/{conversation}"
            replies = [post(f"{path}/messages?wait=true", {"content": "Why?"}) for _ in range(2)]
            tool = {"toolName": "add", "arguments": {"a": 1}, "result": 2}
            run = {"runId": "r", "at": 1}
            told = [
                {**run, "id": "1", "type": "ExecutionStarted", "input": "?"},
                {**run, "id": "2", "type": "NodeCompleted", "node": "n", "tools": [tool]},
                {**run, "id": "3", "type": "ExecutionCompleted", "output": "!"},
            ]
            post(f"{path}/executions", {"events": told})
            compaction = post(f"{path}/compact", {"keepLast": 2})["id"]
            briefing = {"agentId": agent, "userId": "alice", "title": "t", "summary": "s", "priority": "P1"}
            sent = alice.post(f"/api/agents/{agent}/documents", files={"files": ("a.txt", b"words")})
            self.things = {
                "user_id": "alice",
                "agent_id": agent,
                "name": "promptx",
                "component": "RULES.md",
                "document_id": sent.json()["items"][0]["id"],
                "conversation_id": conversation,
                "session_id": made["sessionId"],
                "turn_id": replies[0]["turnId"],
                "compaction_id": compaction,
                "briefing_id": post("/api/briefings", briefing)["id"],
                "artifact_id": self.loop.wait(keep_artifact(self.talk.store, conversation)),
                "file_id": self.loop.wait(keep_file(self.talk.store)),
            }


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Generator[Fuzzed]:
    loop, stack = LoopThread(), AsyncExitStack()
    with ScriptedModel(records=False) as model, pytest.MonkeyPatch.context() as patch:
        patch.setattr("threadkeep.runtime.user_events.MOST_OPEN_S", 0)  # a stream that has no end of its own
        ours = Settings.load(
            {},
            data=tmp_path_factory.mktemp("data"),
            jwt_secret=SECRET,
            gateway="openai",
            gateway_url=model.url,
            gateway_api_key="sk-scripted",
            model="scripted",
            user_turns_per_minute=0,  # every renewal starts two
        )
        try:
            fuzzed = Fuzzed(loop.wait(stack.enter_async_context(talking(ours))), loop)
            fuzzed.renew()
            yield fuzzed
        finally:
            loop.wait(stack.aclose())
            loop.close()


def cases(operation: Operation) -> st.SearchStrategy[Any]:
    """Requests for an operation: in the place of an id stands its name, or something made up."""
    tool = Tool.load()
    found = tool.schema[operation.path][operation.method]
    names: dict[str, Any] = {name: name for name in operation.path_names}
    kinds = [found.as_strategy(path_parameters=names)]
    if names:
        kinds.append(found.as_strategy())
    if "requestBody" in operation.spec or operation.query_names:
        kinds.append(found.as_strategy(tool.forbidden, path_parameters=names))
    if names or "requestBody" in operation.spec or operation.query_names:
        kinds.append(st.builds(spoiled, kinds[0], HOSTILE, st.integers(0, 20)))
    return st.one_of(kinds)


MOST_IN_AN_ADDRESS = 1000
Place = tuple[Any, Any]
"""An object or a list, and where in it a text stands."""


def spoiled(case: Any, text: str, which: int) -> Any:
    """The case with a hostile text in the place of one of its own."""
    bodies = list(places(case.body))
    addresses = [place for part in (case.path_parameters, case.query) for place in places(part)]
    if found := bodies + addresses:
        number = which % len(found)
        inside, key = found[number]
        short = text[:MOST_IN_AN_ADDRESS].encode("utf-8", "replace").decode()
        inside[key] = text if number < len(bodies) else short
    return case


def places(value: Any) -> Iterator[Place]:
    """Every place below a value where a text stands."""
    keys: Iterable[Any] = ()
    if isinstance(value, dict):
        keys = cast("dict[Any, Any]", value)
    elif isinstance(value, list):
        keys = range(len(cast("list[Any]", value)))
    for key in keys:
        if isinstance(value[key], str):
            yield value, key
        else:
            yield from places(value[key])


def check_events(stream: str, result: str | None = None) -> None:
    """A stream tells a turn's events in their order, to the end; that of a rerun then its result."""
    frames = [frame for frame in stream.split("\n\n") if "data: " in frame]
    if result is not None:
        assert f"event: {result}" in frames.pop().split("\n")
    told = [line[6:] for frame in frames for line in frame.split("\n") if line.startswith("data: ")]
    events = [*map(decode_event, told)]
    assert [event.seq for event in events] == list(range(events[0].seq, events[-1].seq + 1))
    assert events[-1].is_terminal


def check_log(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing failed behind a response either."""
    assert [it.getMessage() for it in caplog.records if it.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("operation", operations(), ids=str)
def test_fuzzed_operation_responds_as_documented(
    fuzzed: Fuzzed, operation: Operation, caplog: pytest.LogCaptureFixture
):
    @given(cases(operation), st.sampled_from(["alice", "alice", "root"]), ACCEPTS)
    @bounded(EXAMPLES // 2 if "/domains" in operation.path else EXAMPLES)
    def ask(case: Any, user: str, accept: str) -> None:
        case.path_parameters = {
            name: fuzzed.things.get(value, value) for name, value in case.path_parameters.items()
        }
        headers = {**fuzzed.headers(user), "Accept": accept}
        response = case.call(base_url=fuzzed.talk.url, headers=headers, timeout=PATIENCE_S)
        assert response.status_code not in {500, 501}
        told = {name: values[0] for name, values in response.headers.items()}
        # Something made up can lead elsewhere, such as an id that is a dot or has a slash in it.
        if operation_of(operation.method, unquote(urlsplit(str(response.request.url)).path)) == operation:
            case.validate_response(response, checks=Tool.load().checks)
            check(operation, response.status_code, httpx.Headers(told), response.content)
        is_stream = told.get("content-type", "").startswith("text/event-stream")
        tells_a_turn = operation.path != "/api/me/events" and case.query.get("dialect") in (None, "events")
        if is_stream and tells_a_turn:
            check_events(response.text, RESULT if operation.path.endswith("/rerun") else None)
        if operation.method == "DELETE" and response.status_code == 204:
            fuzzed.renew()

    ask()
    check_log(caplog)
    if operation.method == "PATCH":
        fuzzed.renew()  # an agent may talk to other servers now


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)
TYPES = [
    "subscribe",
    "unsubscribe",
    "image_create_request",
    "message_send_request",
    "agent_interrupt_request",
]
IDS = st.sampled_from(["agent_id", "conversation_id", "session_id"])
MESSAGES = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES)},
    optional={
        "sessionId": IDS | ANY_JSON,
        "afterCursor": st.text(max_size=80) | ANY_JSON,
        "__ack": ANY_JSON,
        "data": ANY_JSON
        | st.fixed_dictionaries(
            {},
            optional={
                "requestId": ANY_JSON,
                "containerId": IDS | ANY_JSON,
                "imageId": IDS | ANY_JSON,
                "content": HOSTILE | st.text(max_size=20) | ANY_JSON,
                "config": ANY_JSON,
            },
        ),
    },
)
FRAMES = st.lists(MESSAGES | ANY_JSON | st.binary(max_size=50), min_size=1, max_size=6)


def test_fuzzed_web_socket_responds_or_closes_for_a_reason(fuzzed: Fuzzed, caplog: pytest.LogCaptureFixture):
    address = f"ws{fuzzed.talk.url.removeprefix('http')}/ws"

    def real(frame: object) -> str | bytes:
        if isinstance(frame, bytes):
            return frame
        text = json.dumps(frame)
        for name, value in fuzzed.things.items():
            text = text.replace(f'"{name}"', f'"{value}"')
        return text

    @given(FRAMES, st.booleans())
    @bounded(3 * EXAMPLES)
    def talk(frames: list[object], signed_in: bool) -> None:
        headers = fuzzed.headers("alice") if signed_in else {}
        with connect(address, additional_headers=headers, max_size=None) as socket:
            try:
                for frame in [*frames, {"type": TYPES[-1], "data": {"requestId": "the last"}}]:
                    socket.send(real(frame))
                while '"requestId":"the last"' not in str(socket.recv(PATIENCE_S)):
                    pass
            except ConnectionClosed as closed:
                assert closed.rcvd
                assert closed.rcvd.code in {CloseCode.POLICY_VIOLATION, CloseCode.MESSAGE_TOO_BIG}

    talk()
    check_log(caplog)
