"""Users: they send, follow, stop, answer and edit, try again when something is lost, and note what they see.

They know only the API, so they talk to simulated nodes and to real ones alike.
"""

import asyncio
import random
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from tests.proof.seen import AnsweredRequest, Followed, Seen, SentMessage
from tests.proof.story import Again, Send, Stop, Story
from tests.proof.wire import Answer, Lost, Wire

ADMIN = "boss"
AS_JSON = {"accept": "application/json"}
MOST_TRIES = 12
_MARKS = re.compile(rb"(?:\[m:|<)([a-z])-\d")
OVER = ("done", "error")


class Talk:
    """One conversation of one user."""

    def __init__(self, user: str, id_: str) -> None:
        self.user = user
        self.id = id_


class Users:
    """All users of a story."""

    def __init__(self, story: Story, wire: Wire, seen: Seen) -> None:
        self._story = story
        self._wire = wire
        self._seen = seen
        self.names = sorted({it.user for it in story.acts if isinstance(it, Send | Stop | Again)})
        self.talks: dict[tuple[str, int], Talk] = {}
        self._followed: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._chance = {name: random.Random(f"{story.seed} user {name}") for name in (*self.names, ADMIN)}
        self._decided: set[str] = set()
        self.is_over = False

    # What is there before the story

    async def prepare(self) -> None:
        """Makes the agents and the conversations."""
        world = {"url": "http://world.example/mcp", "trustAnnotations": True}
        settings = {
            "mcpServers": {"world": world},
            "askUser": True,
            "generationTimeoutS": 25,
            "approvalTimeoutS": 3600,
        }
        made = await self._surely(
            ADMIN, "POST", "/api/agents", {"name": "Model", "visibility": "public", "settings": settings}
        )
        agents = {it["name"]: it["id"] for it in (await self._surely(ADMIN, "GET", "/api/agents"))["items"]}
        kinds = {"model": made["id"], "code": agents["Clerk"]}
        for user in self.names:
            for number, kind in enumerate(self._story.agents):
                path = f"/api/agents/{kinds[kind]}/conversations"
                talk = await self._surely(user, "POST", path, {"title": "Talk"})
                self.talks[user, number] = Talk(user, talk["id"])

    async def _surely(self, user: str, method: str, path: str, body: Any = None) -> Any:
        for _ in range(20):
            with suppress(Lost):
                answer = await self._wire.request(user, method, path, body)
                if answer.status < 300:
                    return answer.json
                if answer.status < 500:
                    raise AssertionError(f"{method} {path}: {answer.status} {answer.body!r}")
            await asyncio.sleep(0.5)
        raise AssertionError(f"{method} {path} never works")

    # The story

    def begin(self) -> None:
        """Starts all acts; each waits for its time."""
        for act in self._story.acts:
            match act:
                case Send():
                    self._start(self._send(act))
                case Stop():
                    self._start(self._stop(act))
                case Again():
                    self._start(self._again(act))
                case _:
                    pass
        for user in self.names:
            self._start(self._decide(user))

    def _start(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def done(self, timeout_s: float) -> None:
        """Until nobody does anything any more."""
        self.is_over = True
        until = asyncio.get_running_loop().time() + timeout_s
        while self._tasks and (left := until - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(self._tasks, timeout=left)
        for task in self._tasks:
            self._seen.left.append(f"a user still waits: {task.get_coro()}")
            task.cancel()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for anything, but for requests to answer."""
        return len(self._tasks) <= len(self.names)

    async def _ask(
        self, user: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        answer = await self._wire.request(user, method, path, body, headers)
        self._look_at(user, f"{method} {path}", answer.body)
        if answer.status == 500:
            self._seen.unexpected.append(f"{user}: {method} {path}: 500 {answer.body[:300]!r}")
        return answer

    def _look_at(self, user: str, where: str, body: bytes) -> None:
        if strangers := {it.decode() for it in _MARKS.findall(body)} - {user}:
            self._seen.leaks.append(f"{user} read words of {', '.join(sorted(strangers))} at {where}")

    async def _send(self, act: Send) -> None:
        await asyncio.sleep(act.at)
        talk, chance = self.talks[act.user, act.talk], self._chance[act.user]
        text = f"[m:{act.mark}] {act.wanted}"
        body: dict[str, Any] = {"content": text, "whenBusy": act.when_busy}
        path = f"/api/conversations/{talk.id}/messages"
        sent = SentMessage(act.mark, act.user, talk.id, text)
        self._seen.sent.append(sent)
        await self._until_known(sent, path, body, f"send-{act.mark}", chance)
        await self._follow_up(sent, chance)

    async def _until_known(
        self, sent: SentMessage, path: str, body: Any, key: str, chance: random.Random
    ) -> None:
        """Tries until the server says yes or no."""
        headers = {**AS_JSON, "idempotency-key": key}
        for number in range(MOST_TRIES):
            try:
                answer = await self._ask(sent.user, "POST", path, body, headers)
            except Lost:
                await asyncio.sleep(chance.uniform(0.05, 1.5))
                continue
            if answer.status < 300:
                given = answer.json
                sent.acknowledged, sent.acknowledged_at = True, asyncio.get_running_loop().time()
                sent.turn_id = given.get("turnId")
                sent.message_id = given.get("userMessageId") or given.get("messageId")
                return
            if answer.status < 500 and answer.status != 429:
                sent.refused = answer.code
                return
            await asyncio.sleep(chance.uniform(0.2, 1.0) * (1 + number / 2))

    async def _follow_up(self, sent: SentMessage, chance: random.Random) -> None:
        if not sent.acknowledged:
            return
        for _ in range(10):
            if sent.turn_id is not None:
                break
            await asyncio.sleep(chance.uniform(0.5, 3.0))
            with suppress(Lost):
                page = await self._ask(
                    sent.user, "GET", f"/api/conversations/{sent.conversation}/messages?limit=100"
                )
                if page.status == 200:
                    found = [it for it in page.json["items"] if f"[m:{sent.mark}]" in str(it.get("content"))]
                    sent.turn_id = found[0].get("turnId") if found else None
        if sent.turn_id is not None:
            await self._follow(sent.user, sent.turn_id, chance)

    async def _follow(self, user: str, turn_id: str, chance: random.Random) -> None:
        """Follows a turn to its end, from node to node."""
        after = 0
        if chance.random() < 0.3:  # in a second tab, too
            self._start(self._follow_once_more(user, turn_id, chance))
        for _ in range(60):
            followed = Followed(user, turn_id, "", after)
            self._seen.followed.append(followed)
            with suppress(Lost):
                followed.end = await self._read(followed, chance)
            if followed.end in {"over", "gone", "nothing"}:
                return
            after = int(followed.events[-1]["seq"]) if followed.events else after
            await asyncio.sleep(chance.uniform(0.02, 1.0))
        self._seen.left.append(f"{user} has followed turn {turn_id} without an end")

    async def _follow_once_more(self, user: str, turn_id: str, chance: random.Random) -> None:
        await asyncio.sleep(chance.uniform(0.1, 8))
        followed = Followed(user, turn_id, "", 0)
        self._seen.followed.append(followed)
        with suppress(Lost):
            followed.end = await self._read(followed, chance)

    async def _read(self, followed: Followed, chance: random.Random) -> str:
        headers = {"last-event-id": str(followed.after)} if followed.after else {}
        path, buffer = f"/api/turns/{followed.turn_id}/events", b""
        stream = self._wire.stream(followed.user, path, headers)
        followed.end = "lost"
        hops_at = chance.randint(1, 60)
        try:
            async for piece in stream:
                if isinstance(piece, Answer):
                    followed.node = piece.node
                    if piece.status in {204, 410}:
                        return "nothing" if piece.status == 204 else "gone"
                    if piece.status in {500, 404}:
                        self._seen.unexpected.append(f"{followed.user}: GET {path}: {piece.status}")
                    if piece.status != 200:
                        return "lost"
                    continue
                self._look_at(followed.user, f"GET {path}", piece)
                buffer += piece
                *frames, buffer = buffer.split(b"\n\n")
                for event in filter(None, map(_event_of, frames)):
                    followed.events.append(event)
                    followed.is_replay |= bool(event.get("replayed"))
                    if event["type"] in OVER:
                        return "over"
                if len(followed.events) > hops_at:
                    return "lost"
        finally:
            await stream.aclose()
        return "lost"

    async def _stop(self, act: Stop) -> None:
        await asyncio.sleep(act.at)
        talk = self.talks[act.user, act.talk]
        for _ in range(4):
            with suppress(Lost):
                answer = await self._ask(act.user, "POST", f"/api/conversations/{talk.id}/stop")
                if answer.status < 500:
                    return
            await asyncio.sleep(0.5)

    async def _again(self, act: Again) -> None:
        await asyncio.sleep(act.at)
        talk, chance = self.talks[act.user, act.talk], self._chance[act.user]
        if not act.edits:
            body: dict[str, Any] = {"whenBusy": chance.choice(["stop", "reject"])}
            headers = {**AS_JSON, "idempotency-key": f"again-{act.mark}"}
            for _ in range(4):
                with suppress(Lost):
                    path = f"/api/conversations/{talk.id}/regenerate"
                    answer = await self._ask(act.user, "POST", path, body, headers)
                    if answer.status < 300 and (turn_id := answer.json.get("turnId")):
                        await self._follow(act.user, turn_id, chance)
                    if answer.status < 500:
                        return
                await asyncio.sleep(0.7)
            return
        with suppress(Lost):
            page = await self._ask(act.user, "GET", f"/api/conversations/{talk.id}/messages?limit=100")
            asked = [it for it in page.json["items"] if it["role"] == "user"] if page.status == 200 else []
            if asked:
                text = f"[m:{act.mark}] {act.wanted}"
                body = {"content": text, "parentId": asked[-1].get("parentId"), "whenBusy": "stop"}
                sent = SentMessage(act.mark, act.user, talk.id, text)
                self._seen.sent.append(sent)
                path = f"/api/conversations/{talk.id}/messages"
                await self._until_known(sent, path, body, f"edit-{act.mark}", chance)
                await self._follow_up(sent, chance)

    # Answers to what turns ask

    async def _decide(self, user: str) -> None:
        chance = self._chance[user]
        while not self.is_over:
            await asyncio.sleep(chance.uniform(0.3, 1.2))
            for request in await self._requests(user):
                if request["requestId"] in self._decided:
                    continue
                self._decided.add(request["requestId"])
                how = self._story.decides
                if how == "mixed":
                    how = chance.choice(["soon", "soon", "late", "twice", "never"])
                self._start(self._answer(user, request, how, chance))

    async def _requests(self, user: str) -> list[dict[str, Any]]:
        with suppress(Lost):
            answer = await self._ask(user, "GET", "/api/approvals")
            if answer.status == 200:
                return answer.json["items"]
        return []

    async def _answer(self, user: str, request: dict[str, Any], how: str, chance: random.Random) -> None:
        if how == "never":
            return
        await asyncio.sleep(chance.uniform(4, 12) if how == "late" else chance.uniform(0, 0.8))
        tabs = [self._answer_once(user, request, chance)]
        if how == "twice":
            tabs.append(self._answer_once(user, request, chance))
        await asyncio.gather(*tabs)

    async def _answer_once(self, user: str, request: dict[str, Any], chance: random.Random) -> None:
        turn_id, id_ = request["turnId"], request["requestId"]
        is_question = request["kind"] in {"question", "elicitation"}
        body: dict[str, Any] = {"action": "answer", "content": chance.choice(["blue", "red"])}
        if not is_question:
            body = {"action": "allow"}
        if chance.random() < 0.15:
            body = {"action": "deny"}
        said = " ".join(body.values())
        for _ in range(8):
            with suppress(Lost):
                answer = await self._ask(user, "POST", f"/api/turns/{turn_id}/approvals/{id_}", body)
                self._seen.answered.append(
                    AnsweredRequest(user, turn_id, id_, said, answer.status, answer.code)
                )
                if answer.status < 500:
                    return
            await asyncio.sleep(chance.uniform(0.2, 1.0))

    # The end

    async def answer_all(self) -> None:
        """Nothing stays unanswered."""
        for user in self.names:
            for request in await self._requests(user):
                await self._answer_once(user, request, self._chance[user])

    async def read_all(self) -> None:
        """Reads everything once more, when all is quiet."""
        for (user, _), talk in self.talks.items():
            page = await self._surely(user, "GET", f"/api/conversations/{talk.id}/messages?limit=200")
            self._seen.final[talk.id] = page["items"]
            for turn_id in dict.fromkeys(it["turnId"] for it in page["items"] if it.get("turnId")):
                followed = Followed(user, turn_id, "", 0)
                with suppress(TimeoutError):  # of a turn that never ends
                    async with asyncio.timeout(20):
                        await self._read_whole(followed)
                if not followed.is_replay and followed.end == "over":
                    self._seen.replays[turn_id] = followed.events
                else:
                    self._seen.followed.append(followed)
        await self._peep()

    async def _read_whole(self, followed: Followed) -> None:
        followed.end = await self._read(followed, random.Random(0))
        while followed.end == "lost" and followed.events:
            more = Followed(followed.user, followed.turn_id, "", int(followed.events[-1]["seq"]))
            followed.end = await self._read(more, random.Random(1))
            followed.events += more.events

    async def _peep(self) -> None:
        """Everybody asks for something of somebody else's."""
        for (owner, _), talk in self.talks.items():
            for other in self.names:
                if other == owner:
                    continue
                for path in (f"/api/conversations/{talk.id}", f"/api/conversations/{talk.id}/messages"):
                    answer = await self._ask(other, "GET", path)
                    if answer.status != 404:
                        self._seen.leaks.append(f"{other} got {answer.status} for a conversation of {owner}")


def _event_of(frame: bytes) -> dict[str, Any] | None:
    data = b"\n".join(line[6:] for line in frame.split(b"\n") if line.startswith(b"data: "))
    return msgspec.json.decode(data) if data else None
