"""What one user does with turns and branches to be felt by others: runs, logs, replays, paths, accounts.

Each kind is done again and again until it is ended; `python -m bench.hostile` starts them.
"""

import json
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from bench.attacker import AT, MALLORY, Caller, again, begin, said
from threadkeep.domain.execution import MOST_PARTS
from threadkeep.domain.ids import new_uuid
from threadkeep.protocols.dialects import DIALECTS

Json = dict[str, Any]
CALLS_OF_AN_EVENT = 4
EVENTS = MOST_PARTS // (CALLS_OF_AN_EVENT + 1)
"""Of the largest run."""
CALLS_AT_ONCE = 900
"""Of an event; two have as many as a reply can have."""
VERSIONS = 30_000
OF_AN_ACCOUNT = 3_000
"""Messages of an account that is deleted."""


def runs(port: int) -> None:
    """Recording the largest runs of another engine, which have 400 events with 1,600 calls."""
    mallory = Caller(port, MALLORY)
    id_ = mallory.conversation([])
    path = f"/api/conversations/{id_}/executions"
    begin()
    for number in count():
        run = {"runId": f"long-{number}", "at": AT}
        call: Json = {"toolName": "look", "arguments": {}}
        node: Json = {**run, "type": "NodeCompleted", "node": "n", "tools": [call] * CALLS_OF_AN_EVENT}
        mallory.call("POST", path, {"events": [{**node, "id": f"{number}-{it}"} for it in range(EVENTS)]})
        ends = [
            {**run, "id": f"{number}-a", "type": "ExecutionStarted", "input": "Why?"},
            {**run, "id": f"{number}-b", "type": "ExecutionCompleted", "output": "Because."},
        ]
        mallory.call("POST", path, {"events": ends})


def wide_trees(port: int) -> None:
    """A first message of 30,000 versions, and an answer of as many, read and chosen."""
    mallory = Caller(port, MALLORY)
    ids = [mallory.take_in_own(_wide(mallory, is_answered=it)) for it in (False, True)]
    asked = [
        (method, f"/api/conversations/{id_}{path}", body)
        for id_ in ids
        for method, path, body in (
            ("GET", "", None),
            ("GET", "/messages?limit=200&include=overwritten", None),
            ("GET", "/messages?limit=200&include=overwritten&order=desc", None),
            ("POST", "/path", {"messageId": _first(mallory, id_)}),
        )
    ]
    begin()
    for method, path, body in again(*asked):
        mallory.call(method, path, body)


def turn_logs(port: int) -> None:
    """A reply with 1,800 calls, in each dialect and each protocol."""
    mallory = Caller(port, MALLORY)
    id_ = mallory.conversation([])
    turn_id = _recorded_with_calls(mallory, id_)
    response = f"/v1/responses/resp_{turn_id.replace('-', '')}"
    connect: Json = {"threadId": id_, "runId": "r", "messages": [], "tools": [], "context": []}
    asked = [("GET", f"/api/turns/{turn_id}/events?dialect={name}", None) for name in DIALECTS]
    asked += [("GET", path, None) for path in (response, f"{response}?stream=true")]
    asked += [("GET", f"/v1/conversations/{id_}/items?limit=100", None)]
    asked += [("GET", f"/api/ai-sdk/chat/{id_}", None)]
    begin()
    for method, path, body in again(*asked, ("POST", "/api/ag-ui/agent/default/connect", connect)):
        mallory.call(method, path, body)


def replays(port: int) -> None:
    """The replay of a shared reply with 1,800 calls, by anyone."""
    mallory = Caller(port, MALLORY)
    id_ = mallory.conversation([])
    _recorded_with_calls(mallory, id_)
    share = mallory.make("POST", f"/api/conversations/{id_}/shares", {})
    path = f"/api/shares/{share['url'].rpartition('/')[2]}"
    begin()
    for what in again("/replays/2", ""):
        mallory.call("GET", path + what, **{"Authorization": ""})


def paths(port: int) -> None:
    """Another version of the first of 30,000 messages, and back to the last one."""
    mallory = Caller(port, MALLORY)
    id_, last = mallory.long_conversation()
    begin()
    for path, body in again(
        ("messages?wait=true", {"content": "Another question", "parentId": None}),
        ("path", {"messageId": last}),
    ):
        mallory.call("POST", f"/api/conversations/{id_}/{path}", body)


def compactions(port: int) -> None:
    """A summary of 30,000 messages, made and undone."""
    mallory = Caller(port, MALLORY)
    id_, _ = mallory.long_conversation()
    begin()
    while True:
        status, answer = mallory.call("POST", f"/api/conversations/{id_}/compact", {})
        if status < 300:
            path = f"/api/conversations/{id_}/compactions/{json.loads(answer)['id']}"
            mallory.call("DELETE", path)


def accounts(port: int) -> None:
    """Accounts with a long conversation, deleted and made anew."""
    users = _users()
    ready = [_filled(port, next(users)) for _ in range(2)]
    begin()
    while True:
        for user in ready:
            Caller(port, user).call("DELETE", f"/api/users/{user}")
        ready = [_filled(port, next(users))]


ATTACKS: dict[str, Callable[[int], None]] = {
    "runs": runs,
    "wide-trees": wide_trees,
    "turn-logs": turn_logs,
    "replays": replays,
    "paths": paths,
    "compactions": compactions,
    "accounts": accounts,
}


def _wide(caller: Caller, *, is_answered: bool) -> Iterator[Json]:
    """An export with a conversation of many first messages, or of many answers to one."""
    agent = caller.make("GET", "/api/agents")["items"][0]["id"]
    id_, ids = new_uuid(), [new_uuid() for _ in range(VERSIONS)]
    yield {"type": "threadkeep-export", "version": 2, "user_id": MALLORY, "exported_at": AT}
    yield {"type": "known_agent", "id": agent, "name": "A", "description": "", "is_default": True}
    yield {
        "type": "conversation", "id": id_, "agent_id": agent, "title": "Wide", "title_source": "user",
        "status": "active", "is_main": False, "metadata": {}, "last_seq": VERSIONS, "message_count": VERSIONS,
        "archived_to_seq": 0, "created_at": AT, "updated_at": AT, "last_message_at": AT, "tip_id": None,
        "pinned": False,
    }  # fmt: skip
    for at, message_id in enumerate(ids):
        is_shown = at == VERSIONS - 1 or (is_answered and at == 0)
        yield {
            "type": "message", "conversation_id": id_, "id": message_id, "seq": at + 1, "turn_id": None,
            "role": "user", "status": "COMPLETED" if is_shown else "OVERWRITTEN", "created_at": AT,
            "parent_id": ids[0] if is_answered and at else None,
            "parts": [{"type": "text", "text": "x", "iteration": 0}],
        }  # fmt: skip
    yield {"type": "conversation_end", "id": id_}
    yield {"type": "end"}


def _first(caller: Caller, id_: str | None) -> str:
    path = f"/api/conversations/{id_}/messages?limit=1&include=overwritten"
    first: str = caller.make("GET", path)["items"][0]["id"]
    return first


def _recorded_with_calls(caller: Caller, id_: str) -> str:
    """A recorded turn with as many calls as it can have, and a log of them; its id."""
    run = {"runId": "calls", "at": AT}
    calls: list[Json] = [{"toolName": "look", "arguments": {}, "result": "x"}] * CALLS_AT_ONCE
    events: list[Json] = [{**run, "id": "a", "type": "ExecutionStarted", "input": "Why?"}]
    events += [
        {**run, "id": f"n{it}", "type": "NodeCompleted", "node": "n", "tools": calls} for it in range(2)
    ]
    events += [{**run, "id": "b", "type": "ExecutionCompleted", "output": "Because."}]
    path = f"/api/conversations/{id_}/executions"
    turn_id: str = caller.make("POST", path, {"events": events})["items"][0]["turnId"]
    return turn_id


def _users() -> Iterator[str]:
    return (f"{MALLORY}-{number}-{time.time_ns()}" for number in count())


def _filled(port: int, user: str) -> str:
    """A user with a long conversation."""
    Caller(port, user).take_in(*said(OF_AN_ACCOUNT))
    return user
