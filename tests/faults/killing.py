"""Turns whose server is killed at a chosen moment, and what must be left of them."""

import random
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import httpx

from tests.mcp.running import CHAOS
from tests.talking import parse
from threadkeep.testing import Gate, Pause, Recorded, Reply, Say, ScriptedModel, UseTool, Wait
from threadkeep.testing.waiting import until

WORDS = [f"word{number} " for number in range(40)]
WHOLE = "".join(WORDS)
AHEAD = 8  # words that the model says beyond those that are waited for: the kill meets a turn that talks


class Moment(StrEnum):
    """When a server is killed: by what has been seen of a turn, never by a time."""

    UNREAD = "unread"  # it is asked, but has stopped before and reads nothing
    ASKED = "asked"  # it is asked, and on SQLite has begun to write
    BEGUN = "begun"  # the turn is shown to have begun, and the model is silent
    TALKING = "talking"  # so many words are shown, and the model goes on
    IN_TOOL = "in_tool"  # a tool is shown to run; it never ends
    ALL_SAID = "all_said"  # the model has sent its last
    DONE = "done"  # the end is shown


class Left(StrEnum):
    """How far a turn had come, as its log says after the kill."""

    NOTHING = "nothing"
    SILENT = "silent"
    TALKING = "talking"
    IN_TOOL = "in_tool"
    WHOLE = "whole"


LEFT_AT = {
    Moment.UNREAD: {Left.NOTHING},
    Moment.ASKED: {Left.NOTHING, Left.SILENT, Left.TALKING, Left.WHOLE},
    Moment.BEGUN: {Left.SILENT},
    Moment.TALKING: {Left.TALKING},
    Moment.IN_TOOL: {Left.IN_TOOL},
    Moment.ALL_SAID: {Left.SILENT, Left.TALKING, Left.WHOLE},
    Moment.DONE: {Left.WHOLE},
}


class Replies:
    """What the model says to the questions of `Round`s: what their moments need, then everything."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._killed: set[str] = set()

    def killed(self, number: int) -> None:
        """The server of these rounds is gone; who asks now goes on after that."""
        self._killed.add(f"#{number}")

    def __call__(self, request: Recorded) -> Reply:
        question = _question(request)
        moment, words, number = question.split(" ")
        is_again = question in self._asked or number in self._killed
        self._asked.add(question)
        match Moment(moment):
            case Moment.BEGUN if not is_again:
                return [Wait(Gate())]
            case Moment.TALKING if not is_again:
                return [*_paced(WORDS[: int(words) + AHEAD]), Wait(Gate())]
            case Moment.IN_TOOL if not is_again:
                return [*_paced(WORDS[: int(words)]), UseTool("chaos__stall")]
            case _:
                return _paced(WORDS)


def _question(request: Recorded) -> str:
    asked = [message["content"] for message in request.body["messages"] if message["role"] == "user"]
    return asked[-1].splitlines()[-1]


def _paced(words: Sequence[str]) -> Reply:
    return [step for word in words for step in (Say(word), Pause(0.002))]


async def converse(client: httpx.AsyncClient, pids_file: Path | None = None) -> str:
    """A new conversation, for which no title is asked, with an agent who may have a tool that never ends.

    Then the processes of its server write their ids to the file.
    """
    servers: dict[str, Any] = {}
    if pids_file is not None:
        args = ["-I", "-S", str(CHAOS), "good"]
        servers["chaos"] = {"command": "python", "args": args, "env": {"CHAOS_PIDS": str(pids_file)}}
    agent = {"name": "Advisor", "settings": {"mcpServers": servers}}
    made = await client.post("/api/agents", json=agent)
    assert made.status_code == 201, made.text
    path = f"/api/agents/{made.json()['id']}/conversations"
    return (await client.post(path, json={"title": "Killed"})).json()["id"]


class Round:
    """One turn whose server is killed."""

    def __init__(
        self,
        number: int,
        conversation: str,
        moment: Moment,
        chance: random.Random,
        journal: Path | None = None,
    ) -> None:
        self.moment = moment
        self._journal = journal
        self._unwritten = self._written()
        self.words = chance.randrange(1, len(WORDS) - AHEAD)
        self.question = f"{moment} {self.words} #{number}"
        self.path = f"/api/conversations/{conversation}/messages"
        # Who does not know whether it was heard asks again with the same key.
        self.headers = {"Idempotency-Key": self.question} if moment in {Moment.UNREAD, Moment.ASKED} else {}
        self.is_out = self.is_over = False
        self.turn_id: str | None = None
        self.shown: list[dict[str, Any]] = []
        self.shown_elsewhere: list[dict[str, Any]] | None = None

    async def ask(self, client: httpx.AsyncClient) -> None:
        """Asks and follows until the server is gone."""
        try:
            async with client.stream(
                "POST",
                self.path,
                json={"content": self.question},
                headers=self.headers,
                extensions={"trace": self._trace},
            ) as answer:
                assert answer.status_code == 200, "the conversation cannot be continued"
                self.turn_id = answer.headers["location"].rpartition("/")[2]
                async for event in parse(answer):
                    self.shown.append(event)
        except httpx.HTTPError:
            pass
        finally:
            self.is_over = True

    async def watch(self, client: httpx.AsyncClient) -> None:
        """Follows the turn, once it is known, to its end on another node than the one that is killed."""
        await until(lambda: self.is_over or self.turn_id is not None)
        if self.turn_id is not None:
            self.shown_elsewhere = await follow(client, self.turn_id)

    async def _trace(self, name: str, _: object) -> None:
        self.is_out = self.is_out or name == "http11.send_request_body.complete"

    def is_reached(self, model: ScriptedModel) -> bool:
        """Whether the moment has come."""
        seen = {event["type"] for event in self.shown}
        match self.moment:
            case Moment.UNREAD:
                return self.is_out
            case Moment.ASKED:
                return self.is_out and (self._journal is None or self._written() != self._unwritten)
            case Moment.BEGUN:
                return "turn_start" in seen
            case Moment.TALKING:
                return texts(self.shown).count(" ") >= self.words
            case Moment.IN_TOOL:
                return "tool_progress" in seen
            case Moment.ALL_SAID:
                return any(it.outcome == "finished" for it in model.requests if self._is_mine(it))
            case Moment.DONE:
                return "done" in seen

    def _written(self) -> int:
        return self._journal.stat().st_mtime_ns if self._journal and self._journal.exists() else 0

    def _is_mine(self, request: Recorded) -> bool:
        return _question(request) == self.question

    async def check(self, client: httpx.AsyncClient) -> Left:
        """Afterwards: nothing that anybody saw is lost, and all is at an end. Gives what the kill left."""
        was_stored = bool(await self._asked(client))
        assert was_stored or self.turn_id is None, "the user's message is lost"
        if self.headers and self.turn_id is None:
            await self.ask(client)
        elif not was_stored:
            return Left.NOTHING  # and nobody was told otherwise
        left = await self._check_turn(client)
        return left if was_stored else Left.NOTHING

    async def _check_turn(self, client: httpx.AsyncClient) -> Left:
        (asked,) = await self._asked(client)
        assert self.turn_id in {None, asked["turnId"]}
        events = await follow(client, asked["turnId"])
        check_whole(events)
        assert events[: len(self.shown)] == self.shown
        assert self.shown_elsewhere in (None, events)
        turn = (await client.get(f"/api/turns/{asked['turnId']}")).json()
        (reply,) = (it for it in await self._messages(client) if it["id"] == turn["assistantMessageId"])
        assert reply["status"] == turn["status"] == events[-1]["status"] == "COMPLETED"
        before = events_before_crash(events)
        if before is None:
            assert reply["content"] == texts(events) == WHOLE
            return Left.WHOLE
        assert reply["usage"]["inputTokens"] > 0
        assert reply["usage"]["outputTokens"] > 0
        if any(event["type"] == "tool_call" for event in before):  # nobody knows whether it took effect
            assert [call["status"] for call in reply["toolCalls"]] == ["unknown"]
            assert reply["content"] == f"{texts(before)}\n\n{WHOLE}"
            return Left.IN_TOOL
        # It is all there in the end, also where what had been shown of it was said again.
        assert reply["content"] == WHOLE
        assert WHOLE.startswith(texts(before))
        return Left.TALKING if texts(before) else Left.SILENT

    async def _asked(self, client: httpx.AsyncClient) -> list[dict[str, Any]]:
        return [it for it in await self._messages(client) if it["content"] == self.question]

    async def _messages(self, client: httpx.AsyncClient) -> list[dict[str, Any]]:
        return (await client.get(f"{self.path}?limit=200")).json()["items"]


async def follow(client: httpx.AsyncClient, turn_id: str) -> list[dict[str, Any]]:
    """All of a turn's events, to its end."""
    async with client.stream("GET", f"/api/turns/{turn_id}/events") as answer:
        return [event async for event in parse(answer)]


def check_whole(events: list[dict[str, Any]]) -> None:
    """No gap, no repeat, one end, and every call of a tool has one result."""
    assert [event["seq"] for event in events] == [*range(1, len(events) + 1)]
    assert events[0]["type"] == "turn_start"
    assert [event["type"] in {"done", "error"} for event in events] == [False] * (len(events) - 1) + [True]
    called, ended = (
        [event["tool_call_id"] for event in events if event["type"] == kind]
        for kind in ("tool_call", "tool_result")
    )
    assert called == ended


def events_before_crash(events: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """What the node had stored that died; None where the turn ended on the node where it began."""
    resumed = [event["seq"] for event in events if event["type"] == "turn_resumed"]
    assert len(resumed) <= 1
    return events[: resumed[0] - 1] if resumed else None


def texts(events: list[dict[str, Any]]) -> str:
    """What was said."""
    return "".join(event["text"] for event in events if event["type"] == "text")
