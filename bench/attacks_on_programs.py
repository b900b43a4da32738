"""What one user does with agents in code to be felt by others: their steps, turns, files and questions.

Each kind is done again and again until it is ended; `python -m bench.hostile` starts them.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from bench.attacked_agents import FILE
from bench.attacker import MALLORY, Caller, again, begin

AT_ONCE = 8
"""Turns of one attacker."""
RANGES = ("bytes=0-", f"bytes={len(FILE) // 2}-", "bytes=-1", "bytes=0-0", "")


def steps(port: int) -> None:
    """The steps of a turn that has a thousand, with results of 16 kB, page by page and with their values."""
    mallory = Caller(port, MALLORY)
    path = f"/api/turns/{_reply(mallory, 'Hoarder')['turnId']}/steps"
    begin()
    for query in again("?limit=200&values=true", "?limit=1&offset=900", ""):
        mallory.call("GET", path + query)


def programs(port: int) -> None:
    """Turns of a thousand steps, several at once, of which every other step is a write."""
    mallory = Caller(port, MALLORY)
    paths = [_conversation(mallory, "Busybody") for _ in range(AT_ONCE)]
    callers = [Caller(port, MALLORY) for _ in paths]
    begin()
    while True:
        for caller, path in zip(callers, paths, strict=True):
            caller.begin("POST", f"{path}/messages?wait=true", {"content": "Begin."})
        for caller in callers:
            caller.finish()


def downloads(port: int) -> None:
    """A file of 31 MB that an agent attached, downloaded whole and in parts."""
    mallory = Caller(port, MALLORY)
    path = f"/api/artifacts/{_reply(mallory, 'Publisher')['artifactIds'][0]}"
    begin()
    for part in again(*RANGES):
        mallory.call("GET", path, **({"Range": part} if part else {}))


def resumed(port: int) -> None:
    """Turns that ask again and again after a thousand steps, which every answer makes them run again."""
    mallory = Caller(port, MALLORY)
    paths = [_conversation(mallory, "Inquirer") for _ in range(AT_ONCE)]
    turns = dict.fromkeys(paths, "")
    begin()
    while True:
        for path in paths:
            turns[path] = _continued(mallory, path, turns[path])
        time.sleep(0.05)


ATTACKS: dict[str, Callable[[int], None]] = {
    "steps": steps,
    "programs": programs,
    "downloads": downloads,
    "resumed": resumed,
}


def _conversation(caller: Caller, name: str) -> str:
    """The path of a new conversation with the agent of this name."""
    agents = caller.make("GET", "/api/agents")["items"]
    (id_,) = [it["id"] for it in agents if it["name"] == name]
    made = caller.make("POST", f"/api/agents/{id_}/conversations", {"title": "Mine"})
    return f"/api/conversations/{made['id']}"


def _reply(caller: Caller, name: str) -> dict[str, Any]:
    """What this agent replies."""
    reply = caller.make("POST", f"{_conversation(caller, name)}/messages?wait=true", {"content": "Begin."})
    if reply["content"] != "Done.":
        raise RuntimeError(f"{name} replied {reply!r}")
    return reply


def _continued(caller: Caller, path: str, turn_id: str) -> str:
    """Answers a turn that waits, and begins another one after it; its id."""
    turn = caller.make("GET", f"/api/turns/{turn_id}") if turn_id else {"status": "COMPLETED"}
    if turn["status"] == "WAITING":
        for asked in caller.make("GET", "/api/approvals")["items"]:
            if asked["turnId"] == turn_id:
                answer = {"action": "answer", "content": "Yes."}
                caller.call("POST", f"/api/turns/{turn_id}/approvals/{asked['requestId']}", answer)
    elif turn["status"] != "RUNNING":
        _, started = caller.call("POST", f"{path}/messages", {"content": "Begin."}, Accept="application/json")
        turn_id = json.loads(started)["turnId"]
    return turn_id
