"""One turn with everything in it, the person who talks through it, and what must be true of it in the end.

The model thinks and talks, uses two tools at once (one reads, one writes), goes on, asks its user, and ends;
if the client brings a tool, it runs while the user is asked. However often the node dies meanwhile, the reply
is the same.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import httpx2
import msgspec

from tests.conftest import secret_key_for
from threadkeep import Settings
from threadkeep.context.prompt import MOST_COMPONENT_CHARACTERS
from threadkeep.domain.events import ToolResultStored, TurnEvent
from threadkeep.domain.message import Message, MessageStatus
from threadkeep.domain.parts import Part, ToolCallPart
from threadkeep.engine.fold import fold
from threadkeep.engine.journal import CallFinished, Dispatched
from threadkeep.log.format import LogEntry
from threadkeep.testing import (
    Pause,
    Recorded,
    Reply,
    Say,
    ScriptedModel,
    Think,
    ToolServer,
    Usage,
    UseTool,
    scripted_settings,
    until,
)
from threadkeep.wire.events import decode_event

Http = httpx.AsyncClient | httpx2.AsyncClient

PIECES = (("I look ", "and note. "), ("Both ", "done. "), ("So ", "be it."))
WHOLE = "\n\n".join("".join(pieces) for pieces in PIECES)
ANSWER = {"action": "answer", "content": "The blue one."}
ALLOW = {"action": "allow"}
PICK = {"name": "pick", "parameters": {"type": "object", "properties": {"about": {"type": "string"}}}}
PICKED = {"action": "result", "content": "picked: the second"}
ANSWERS = {"question": ANSWER, "client_tool": PICKED, "tool": ALLOW}
MANUAL = "manual.md"
LONG_PROMPT = "Be brief. " * (MOST_COMPONENT_CHARACTERS // 10 + 1)
SPENT = ((100, 20), (200, 10), (300, 5))


async def look(about: str) -> str:
    """Looks at something."""
    return f"seen: {about}"


def desk(note_s: float = 0.02) -> ToolServer:
    """A server with a tool that reads and one that writes, which knows how often each was used."""

    async def note(about: str) -> str:
        """Writes something down."""
        await asyncio.sleep(note_s)  # the other one returns first
        return f"noted: {about}"

    return ToolServer(note, reading=[look], name="desk")


def settings_of(model: ScriptedModel, folder: Path, database_url: str, **settings: Any) -> Settings:
    """A node on this database, with the model and leave to use a server on this machine."""
    usual = {
        "data": folder / "data",
        "database_url": database_url,
        "secret_key": secret_key_for(database_url),
        "embedding_url": "off",
        "mcp_allow_private": True,
        "mcp_connect_budget_s": 60,  # a busy machine is no reason to fail
    }
    return scripted_settings(model, **{**usual, **settings})


def agent_settings(server: ToolServer, **settings: Any) -> dict[str, Any]:
    """An agent that may use the server and ask its user."""
    servers = {"desk": {**server.settings, "trustAnnotations": True}}
    return {"mcpServers": servers, "askUser": True, **settings}


def subject_of(request: Recorded) -> str:
    """What a turn is about: the last word of its question."""
    (asked,) = (it for it in request.body["messages"] if it["role"] == "user" and _questions(it))
    return _questions(asked)[0].split()[-1]


def _questions(message: dict[str, Any]) -> list[str]:
    content = message["content"]
    texts = [content] if isinstance(content, str) else [it.get("text", "") for it in content]
    return [text for text in texts if "Do it, for" in text]


def results_in(request: Recorded) -> list[str]:
    """What a request tells the model of its calls."""
    found: list[str] = []
    for message in request.body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else ()
        found += [str(it["content"]) for it in blocks if it["type"] == "tool_result"]
        if message["role"] == "tool":
            found.append(str(message["content"]))
    return found


def stage_of(request: Recorded) -> int:
    """Which call of the model a request makes, by what it has been told."""
    return {0: 1, 2: 2, 3: 3, 4: 3}[len(results_in(request))]


def reply_to(request: Recorded) -> Reply:
    """What the model does: the same whenever it is asked the same."""
    stage, about = stage_of(request), {"about": subject_of(request)}
    said = [Say(piece) for piece in PIECES[stage - 1]]
    spent = Usage(*SPENT[stage - 1])
    match stage:
        case 1:
            thoughts = [Think("Let me "), Think("see.", "signed")]
            return [*thoughts, *said, UseTool("desk__look", about), UseTool("desk__note", about), spent]
        case 2:
            picks = [UseTool("pick", about)] if '"pick"' in request.content.decode() else []
            return [*said, UseTool("ask_user", {"question": "Which one?"}), *picks, spent]
        case _:
            return [*said, spent]


def paced_reply_to(request: Recorded) -> Reply:
    """The same, not all at once."""
    return [step for said in reply_to(request) for step in (said, Pause(0.01))]


async def converse(http: Http, settings: dict[str, Any], **agent: Any) -> str:
    """A new agent with these settings."""
    made = await http.post("/api/agents", json={"name": "Clerk", "settings": settings, **agent})
    assert made.status_code == 201, made.text
    return made.json()["id"]


async def converse_informed(http: Http, settings: dict[str, Any]) -> str:
    """A new agent that searches its document before it answers, and whose prompt is too long.

    A turn shows both before its first request.
    """
    agent = await converse(
        http, {**settings, "retrievalMode": "auto", "retrievalThreshold": 0}, systemPrompt=LONG_PROMPT
    )
    path = f"/api/agents/{agent}/documents"
    files = {"files": (MANUAL, b"What to note before, and what after.")}
    assert (await http.post(path, files=files)).status_code == 202

    async def is_ready() -> bool:
        return [it["status"] for it in (await http.get(path)).json()["items"]] == ["ready"]

    await until(is_ready)
    return agent


class Away(Exception):
    """The server is ending, or about to die: one tries again."""


def check_status(response: httpx.Response | httpx2.Response, *expected: int) -> None:
    """A response is as it has to be, unless its server cannot respond any more."""
    if response.status_code >= 500:
        raise Away
    assert response.status_code in expected, response.status_code


async def get(http: Http, path: str) -> httpx.Response | httpx2.Response:
    """What a server has there."""
    response = await http.get(path)
    check_status(response, 200)
    return response


@dataclass
class Person:
    """Somebody who begins the turn, follows it and decides on its requests, in as many lives as it takes."""

    about: str
    conversation: str
    turn_id: str | None = None
    seen: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    is_decided_elsewhere: bool = False
    """Whether somebody else decides for them."""
    decided: set[str] = field(default_factory=set[str])
    is_patient: bool = False
    """Whether they decide only when the turn waits for it, and not at once."""
    brings_tool: bool = False
    """Whether their client runs a tool itself."""

    @staticmethod
    async def meet(http: Http, agent: str, about: str, **person: Any) -> "Person":
        """A person with a conversation of their own."""
        made = await http.post(f"/api/agents/{agent}/conversations", json={"title": about})
        check_status(made, 201)
        return Person(about, made.json()["id"], **person)

    @property
    def is_done(self) -> bool:
        """Whether they have seen the end."""
        return bool(self.seen) and self.seen[-1]["type"] in {"done", "error"}

    @property
    def request_id(self) -> str | None:
        """What they were asked."""
        asked = [it["request_id"] for it in self.seen if it["type"] == "approval_request"]
        return asked[0] if asked else None

    async def talk(self, http: Http) -> None:
        """Goes on where they were, to the end. What fails is tried again in the next life."""
        if self.turn_id is None:
            await self.begin(http)
        await self.decide(http)
        async for event in self._follow(http):
            assert event["seq"] == len(self.seen) + 1, "a gap, or a repeat"
            self.seen.append(event)
            await self.decide(http)

    async def watch(self, http: Http) -> list[dict[str, Any]]:
        """Follows their turn, once it is known, to its end: the events in one go."""
        await until(lambda: self.turn_id is not None)
        watching = Person(self.about, self.conversation, self.turn_id, is_decided_elsewhere=True)
        await watching.talk(http)
        return watching.seen

    async def begin(self, http: Http) -> None:
        """Asks, with a key: who does not know whether it was heard asks again."""
        headers = {"Accept": "application/json", "Idempotency-Key": self.about}
        tools = {"tools": [PICK]} if self.brings_tool else {}
        body = {"content": f"Do it, for {self.about}", **tools}
        path = f"/api/conversations/{self.conversation}/messages"
        response = await http.post(path, json=body, headers=headers)
        check_status(response, 202)
        self.turn_id = response.json()["turnId"]

    async def decide(self, http: Http) -> None:
        """Decides on what they were asked, unless they have, or somebody else does."""
        asked = [it for it in self.seen if it["type"] == "approval_request"]
        for request in asked:
            if self.is_decided_elsewhere or request["request_id"] in self.decided:
                continue
            if self.is_patient:
                await until(lambda: self._is_waited_for(http))
            path = f"/api/turns/{self.turn_id}/approvals/{request['request_id']}"
            response = await http.post(path, json=ANSWERS[request["kind"]])
            check_status(response, 200)
            self.decided.add(request["request_id"])

    async def _is_waited_for(self, http: Http) -> bool:
        response = await http.get(f"/api/turns/{self.turn_id}")
        check_status(response, 200)
        return response.json()["status"] != "RUNNING" or "approval_response" in kinds(self.seen)

    async def _follow(self, http: Http) -> AsyncIterator[dict[str, Any]]:
        headers = {"Last-Event-ID": str(len(self.seen))} if self.seen else {}
        async with http.stream("GET", f"/api/turns/{self.turn_id}/events", headers=headers) as response:
            check_status(response, 200, 204)
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    yield msgspec.json.decode(line.removeprefix("data: "))


def kinds(events: Sequence[dict[str, Any]]) -> Counter[str]:
    """How many events there are of each kind."""
    return Counter(event["type"] for event in events)


async def check_end(http: Http, person: Person, server: ToolServer, model: ScriptedModel) -> dict[str, Any]:
    """What must be true of the turn in the end, wherever it broke; gives the reply."""
    events, turn_id = person.seen, person.turn_id
    assert [event["seq"] for event in events] == [*range(1, len(events) + 1)]
    assert person.is_done
    assert (events[-1]["type"], events[-1].get("status")) == ("done", "COMPLETED"), events[-1]
    turn = (await get(http, f"/api/turns/{turn_id}")).json()
    path = f"/api/conversations/{person.conversation}/messages?limit=200"
    asked, reply = (await get(http, path)).json()["items"]  # the question is stored once, too
    assert (turn["status"], reply["status"], asked["turnId"]) == ("COMPLETED", "COMPLETED", turn_id)
    assert reply["content"] == WHOLE
    check_tools(person, server, reply)
    check_usage(events, reply, turn)
    await check_dialects(http, person, reply)
    assert not model.refused, [it.problems for it in model.refused]
    return reply


def check_tools(person: Person, server: ToolServer, reply: dict[str, Any]) -> None:
    """What writes ran at most once, what reads at least once, and each call has one result."""
    uses = [use for use in server.uses if use.arguments["about"] == person.about]
    looks, notes = ([use for use in uses if use.tool_name == name] for name in ("look", "note"))
    assert len(notes) <= 1
    assert len(looks) >= 1
    assert len({use.key for use in looks}) == 1, "run again under another key"
    statuses = {call["toolName"]: call["status"] for call in reply["toolCalls"] if not call.get("superseded")}
    assert statuses["look"] == "ok"
    assert statuses["note"] in {"ok", "unknown"}
    assert statuses["note"] == "unknown" or len(notes) == 1
    picked = [(it["status"], it["result"]) for it in reply["toolCalls"] if it["toolName"] == "pick"]
    assert picked == ([("ok", PICKED["content"])] if person.brings_tool else [])
    called, ended = (
        [event["tool_call_id"] for event in person.seen if event["type"] == kind]
        for kind in ("tool_call", "tool_result")
    )
    assert sorted(called) == sorted(ended)
    requests, responses = (
        {event["request_id"] for event in person.seen if event["type"] == kind}
        for kind in ("approval_request", "approval_response")
    )
    asked = kinds(person.seen)
    assert requests == responses
    assert asked["approval_request"] == asked["approval_response"] == len(requests)
    assert len(requests) >= 1


def check_opening(person: Person, reply: dict[str, Any], model: ScriptedModel) -> None:
    """What comes before the first request is shown once, and is cited as every request numbers it."""
    notices = [it["code"] for it in person.seen if it["type"] == "notice"]
    assert notices == ["PROMPT_TRUNCATED"]
    assert kinds(person.seen)["retrieval"] == 1
    assert [(it["index"], it["title"]) for it in reply["citations"]] == [(1, MANUAL)]
    sent = [it.content.decode() for it in model.requests if subject_of(it) == person.about]
    assert all(f"[1] {MANUAL}" in body and f"[2] {MANUAL}" not in body for body in sent)


def check_usage(events: Sequence[dict[str, Any]], reply: dict[str, Any], turn: dict[str, Any]) -> None:
    """Each call of the model counts, also one that was cut off."""
    found = kinds(events)
    assert found["iteration_start"] == 3
    assert found["usage"] == found["iteration_start"] + found["iteration_restart"]
    for told, kind in (("inputTokens", "input_tokens"), ("outputTokens", "output_tokens")):
        spent = sum(event[kind] for event in events if event["type"] == "usage")
        assert reply["usage"][told] == turn["usage"][told] == events[-1]["usage"][kind] == spent
    assert reply["usage"]["inputTokens"] >= sum(spent for spent, _ in SPENT)
    assert (found["iteration_restart"] > 0) == (reply["usage"]["inputTokens"] > sum(it for it, _ in SPENT))


async def check_dialects(http: Http, person: Person, reply: dict[str, Any]) -> None:
    """Every dialect ends with the message."""
    path = f"/api/turns/{person.turn_id}/events"
    again = (await get(http, path)).text
    events = [it.removeprefix("data: ") for it in again.splitlines() if it.startswith("data: ")]
    assert [msgspec.json.decode(it) for it in events] == person.seen
    text = (await get(http, f"{path}?dialect=text")).text
    pieces = [piece.removeprefix("data: ").replace("\ndata: ", "\n") for piece in text.split("\n\n") if piece]
    assert pieces.pop() == "[DONE]"
    said = "".join(pieces)
    assert said.endswith("".join(PIECES[-1]))
    assert said == WHOLE or kinds(person.seen)["iteration_restart"]
    agentx = (await get(http, f"{path}?dialect=agentx")).text
    frames = [
        msgspec.json.decode(it.removeprefix("data: "))
        for it in agentx.splitlines()
        if it.startswith("data: ")
    ]
    (complete,) = (it["data"] for it in frames if it["type"] == "message_complete")
    assert (complete["content"], complete["status"]) == (reply["content"], "COMPLETED")
    (message,) = (it["data"] for it in frames if it["type"] == "assistant_message")
    assert message["content"] == [{"type": "text", "text": reply["content"]}]


def check_fold(person: Person, stored: Message) -> None:
    """What a client folds is what is stored."""
    blank = replace(stored, parts=(), status=MessageStatus.STREAMING)
    folded = fold(blank, [decode_event(msgspec.json.encode(it)) for it in person.seen])
    assert [*map(_as_shown, folded.parts)] == [*map(_as_shown, stored.parts)]
    assert (folded.content, folded.status, folded.usage) == (stored.content, stored.status, stored.usage)


def _as_shown(part: Part) -> Part:
    """Without what no client sees."""
    return replace(part, call=replace(part.call, model_name="")) if isinstance(part, ToolCallPart) else part


def _told(event: dict[str, Any]) -> str:
    match event:
        case {"result": {"result": result}} | {"result": result} | {"error": result}:
            return str(result)
        case _:
            raise AssertionError(event)


def check_requests(stored: Sequence[LogEntry], sent: Sequence[Recorded], person: Person) -> None:
    """What was asked after a crash: nothing that is finished, and with every finished part.

    `stored` is the turn's log at that moment, `sent` all requests of the turn after it.
    """
    finished = sum(isinstance(entry, CallFinished) for entry in stored)
    assert all(stage_of(request) > finished for request in sent), "a finished call was made again"
    ended = {
        it.body.tool_call_id
        for it in stored
        if isinstance(it, TurnEvent) and isinstance(it.body, ToolResultStored)
    }
    told = {it["tool_call_id"]: _told(it) for it in person.seen if it["type"] == "tool_result"}
    for request in sent:
        body = request.content.decode()
        assert all(told[id_] in body for id_ in ended), "a result is missing"
    assert len({*map(stage_of, sent)}) == len(sent), "asked twice in one life"
    dispatched = {call.id for entry in stored if isinstance(entry, Dispatched) for call in entry.calls}
    unknown = {it["tool_call_id"] for it in person.seen if it.get("status") == "unknown"}
    assert unknown <= dispatched - ended, "a call is unknown that was never handed over, or had its result"
