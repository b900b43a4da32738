"""What people do with their agents, and what each of it must have led to."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.chaos.person import Follower, Loss, Somebody
from tests.chaos.world import Json
from tests.faults.scene import check_end, kinds
from tests.imports.foreign import chatgpt, said

MAY_FAIL = {"INTERRUPTED", "AGENTX_ERROR", "GENERATION_TIMEOUT", "OUTCOME_UNKNOWN", "AGENT_ABSENT"}
"""How a turn may end whose node was lost too often, or whose model broke off twice."""
IMPORTED = 3


def expect(is_so: bool, who: Somebody, what: str, *shown: object) -> None:
    """Loss, with what was shown, if a promise was broken."""
    if not is_so:
        raise Loss(f"{who.name}, {who.doing}: {what}: {' '.join(map(str, shown))[:2_000]}")


async def check_turn(who: Somebody, follower: Follower) -> bool:
    """Every message once, one end, the log as it was seen; whether the turn completed untroubled."""
    last = follower.seen[-1]
    found = kinds(follower.seen)
    expect(found["done"] + found["error"] == 1, who, "a turn has one end", follower.seen[-3:])
    messages = await who.messages(follower)
    asked = [it for it in messages if it["role"] == "user" and it["turnId"] == follower.turn_id]
    replies = [it for it in messages if it["role"] == "assistant" and it["turnId"] == follower.turn_id]
    expect(len(asked) >= 1 and len(replies) == 1, who, "question and answer are stored once", messages)
    if last["type"] == "error":
        expect(last["code"] in MAY_FAIL, who, "the turn failed", last, found)
        who.record.turns[f"failed: {last['code']}"] += 1
        return False
    expect(replies[0]["status"] == last["status"], who, "the reply has the turn's status", replies, last)
    who.record.turns[last["status"].lower()] += 1
    who.record.turns["takeovers"] += found["turn_resumed"]
    troubled = found["notice"] or any(
        it.get("status") == "error" for it in follower.seen if it["type"] == "tool_result"
    )
    return last["status"] == "COMPLETED" and not troubled


async def whole_turn(who: Somebody, about: str, agent: str = "clerk") -> None:
    """Tools, a question, and an answer in three parts."""
    follower = await who.meets(agent, about)
    await who.begins(follower)
    await who.follows(follower)
    if await check_turn(who, follower):
        await who.tries(lambda http: check_end(http, follower, who.world.tools, who.world.model))


async def approved_turn(who: Somebody, about: str) -> None:
    """The same with an agent that asks before it writes."""
    await whole_turn(who, about, "careful clerk")


async def queued_message(who: Somebody, about: str) -> None:
    """A message behind a turn is sent once, after it."""
    follower = await who.meets("clerk", about)
    await who.begins(follower)
    await who.sends(follower, f"Queued behind {about}", whenBusy="queue")
    await who.follows(follower)
    await check_turn(who, follower)
    if follower.seen[-1]["type"] == "done":
        await reached(who, follower, f"Queued behind {about}")


async def steered_turn(who: Somebody, about: str) -> None:
    """A message that joins a turn is in it once, or follows it."""
    follower = await who.meets("clerk", about)
    await who.begins(follower)
    await who.sends(follower, f"Rather steer {about}", whenBusy="steer")
    await who.follows(follower)
    await check_turn(who, follower)
    if follower.seen[-1]["type"] == "done":
        await reached(who, follower, f"Rather steer {about}")


async def reached(who: Somebody, follower: Follower, text: str) -> None:
    """A message that was taken is in the conversation once, and has been answered."""
    for _ in range(300):
        messages = await who.messages(follower)
        found = [it for it in messages if it["role"] == "user" and it["content"] == text]
        found += [
            part
            for it in messages
            for part in it["parts"]
            if (part["type"], part.get("text")) == ("user_text", text)
        ]
        expect(len(found) <= 1, who, "a message is sent once", messages)
        if found and messages[-1]["role"] == "assistant" and messages[-1]["status"] not in RUNNING:
            return
        await asyncio.sleep(0.2)
    expect(False, who, "a message that was taken is sent", await who.messages(follower))


RUNNING = {"PENDING", "STREAMING", "WAITING"}


async def stopped_turn(who: Somebody, about: str) -> None:
    """A turn that is stopped at any time ends, and stays as it was seen."""
    follower = await who.meets("clerk", about)
    follower.is_decided_elsewhere = True
    await who.begins(follower)
    await asyncio.sleep(who.chance.uniform(0, 0.6))
    stop = f"/api/conversations/{follower.conversation}/stop"
    await who.asks("POST", stop, 200, 404, 409)
    status = await who.ended(str(follower.turn_id))
    await who.follows(follower)
    expect(follower.seen[-1].get("status", "FAILED") == status, who, "the end is what is shown", status)
    await check_turn(who, follower)


async def branched_conversation(who: Somebody, about: str) -> None:
    """An answer that is written again stands beside the first."""
    follower = await who.meets("clerk", about)
    await who.begins(follower, f"Hello, {about}")
    first = await who.follows(follower)
    await check_turn(who, follower)
    if first["type"] != "done":
        return
    again = Follower(about, follower.conversation, user=who.name, record=who.record)
    again.on_progress = who.note_progress
    response = await who.asks(
        "POST",
        f"/api/conversations/{follower.conversation}/regenerate",
        202,
        json={},
        headers={"Accept": "application/json", "Idempotency-Key": f"again-{about}"},
    )
    again.turn_id = response["turnId"]
    await who.follows(again)
    messages = await who.messages(again)
    expect(len(messages) == 2, who, "the new answer replaces the first on the path", messages)
    expect(messages[-1]["turnId"] == again.turn_id, who, "the new answer is shown", messages)


async def file_in_message(who: Somebody, about: str) -> None:
    """A file that was taken is there, to the byte."""
    content = f"The file of {about}. ".encode() * 2_000
    uploaded = await who.asks(
        "POST",
        "/api/files",
        201,
        files={"files": (f"{about}.txt", content)},
        headers={"Idempotency-Key": f"file-{about}"},
    )
    (file,) = uploaded["items"]
    follower = await who.meets("clerk", about)
    await who.begins(follower, f"Look at it, {about}", files=[file["id"]])
    await who.follows(follower)
    await check_turn(who, follower)

    async def download(http: Any) -> bytes:
        response = await http.get(f"/api/files/{file['id']}")
        if response.status_code >= 500:
            response.raise_for_status()
        expect(response.status_code == 200, who, "a file that was sent is there", response.status_code)
        return response.content

    expect(await who.tries(download) == content, who, "a file has its bytes")


async def turn_in_code(who: Somebody, about: str) -> None:
    """A program asks, and writes once."""
    follower = await who.meets("Bookkeeper", about)
    await who.begins(follower, f"Write {about}")
    last = await who.follows(follower)
    await check_turn(who, follower)
    lines = book.read_text().splitlines() if (book := who.world.folder / "book.txt").exists() else list[str]()
    written = sum(line.split()[0] == about for line in lines if line.strip())
    expect(written <= 1, who, "a write is never repeated", written)
    if last.get("status") == "COMPLETED":
        reply = (await who.messages(follower))[-1]["content"]
        knows = f"Wrote {about}." in reply
        expect(knows or f"Perhaps wrote {about}." in reply, who, "the program says what it did", reply)
        expect(written == 1 or not knows, who, "what is said to be written is", reply)


async def import_of_conversations(who: Somebody, about: str) -> None:
    """Conversations of another product come once, however often their file is sent."""
    export = json.dumps(
        [
            chatgpt(
                {"q": (None, said("user", f"Question {number} of {about}?"))},
                "q",
                conversation_id=f"{about}-{number}",
                title=f"Imported {about} {number}",
            )
            for number in range(IMPORTED)
        ]
    ).encode()
    while True:
        made = await who.asks(
            "POST",
            "/api/imports",
            202,
            409,
            files={"files": ("conversations.json", export)},
            params={"agentId": who.agents["clerk"]},
        )
        if "id" in made and (await import_ended(who, made["id"]))["status"] == "COMPLETED":
            break
        await asyncio.sleep(0.5)
    found = (await who.asks("GET", "/api/conversations?limit=200", 200))["items"]
    titles = sorted(it["title"] for it in found if f"Imported {about} " in (it["title"] or ""))
    expect(titles == [f"Imported {about} {it}" for it in range(IMPORTED)], who, "all came once", titles)
    who.record.turns["imports"] += 1


async def import_ended(who: Somebody, import_id: str) -> Json:
    """An import once it is over."""
    while True:
        run = await who.asks("GET", f"/api/imports/{import_id}", 200)
        if run["status"] not in {"RUNNING", "PENDING"}:
            return run
        await asyncio.sleep(0.3)


Doing = Callable[[Somebody, str], Awaitable[None]]
DOINGS: Mapping[Doing, int] = {
    whole_turn: 4,
    approved_turn: 3,
    queued_message: 2,
    steered_turn: 2,
    stopped_turn: 2,
    branched_conversation: 2,
    file_in_message: 2,
    turn_in_code: 3,
    import_of_conversations: 1,
}
