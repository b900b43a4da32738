"""`kill -9` at random moments: what anybody was shown is there, the turn has ended, the talk goes on."""

import asyncio
import random
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.scripted_model import Gate, Pause, Recorded, Reply, Say, ScriptedModel, Wait
from tests.serving import Server
from tests.talking import parse
from tests.waiting import until

KILLS, AT_ONCE = 10, 5
SEED = 20260107
WORDS = [f"word{number} " for number in range(60)]
REPLY: Reply = [step for word in WORDS for step in (Say(word), Pause(0.006))]
WHOLE = "".join(WORDS)


def texts(events: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in events if event["type"] == "text")


class Round:
    """One turn whose server is killed."""

    def __init__(self, number: int, conversation: str) -> None:
        self.question = f"question {number}"
        self.path = f"/api/conversations/{conversation}/messages"
        self.shown: list[dict[str, Any]] = []
        self.turn_id: str | None = None

    async def ask(self, client: httpx.AsyncClient) -> None:
        """Asks and follows until the server is gone."""
        try:
            async with client.stream("POST", self.path, json={"content": self.question}) as answer:
                assert answer.status_code == 200, "the conversation cannot be continued"
                self.turn_id = answer.headers["location"].rpartition("/")[2]
                async for event in parse(answer):
                    self.shown.append(event)
        except httpx.HTTPError:
            pass

    async def check(self, client: httpx.AsyncClient) -> str:
        """After the restart: nothing is lost, and all is at an end. Gives how it ended."""
        messages = (await client.get(f"{self.path}?limit=200")).json()["items"]
        asked = [it for it in messages if it["content"] == self.question]
        if self.turn_id is None and not asked:
            return "NOT ACCEPTED"  # and nobody was told otherwise
        assert len(asked) == 1, "the user's message is lost"
        turn_id = asked[0]["turnId"]
        assert self.turn_id in {None, turn_id}
        async with client.stream("GET", f"/api/turns/{turn_id}/events") as answer:
            events = [event async for event in parse(answer)]
        assert [event["seq"] for event in events] == [*range(1, len(events) + 1)]
        assert [event["type"] in {"done", "error"} for event in events] == [False] * (len(events) - 1) + [
            True
        ]
        assert events[: len(self.shown)] == self.shown
        assert WHOLE.startswith(texts(events))
        reply = (await client.get(f"/api/turns/{turn_id}")).json()
        assert reply["status"] in {"FAILED", "COMPLETED"}
        messages = (await client.get(f"{self.path}?limit=200")).json()["items"]
        (said,) = (it for it in messages if it["id"] == reply["assistantMessageId"])
        assert (said["status"], said["content"]) == (reply["status"], texts(events))
        assert (texts(events) == WHOLE) or reply["status"] == "FAILED"
        return reply["status"]


def reply_to(request: Recorded) -> Reply:
    """Most turns are in the middle when they are killed; some may end before."""
    return REPLY if request.number % AT_ONCE == 0 else [*REPLY, Wait(Gate())]


@pytest.mark.requirement("004-R2.3", "004-NFR-reliability-1")
async def test_fifty_turns_are_killed(tmp_path: Path):
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    ends: list[str] = []
    rounds: list[Round] = []
    conversations: list[str] = []
    with ScriptedModel(otherwise=reply_to) as model:
        settings = {
            "gateway": "openai",
            "gateway_url": model.url,
            "gateway_api_key": "sk-scripted",
            "model": "scripted",
        }
        for number in range(KILLS):
            with Server(tmp_path, **settings) as server:
                async with server.async_client() as client:
                    ends += [await it.check(client) for it in rounds]
                    conversations = conversations or [await started(client) for _ in range(AT_ONCE)]
                    rounds = [Round(number, conversation) for conversation in conversations]
                    asking = [asyncio.create_task(it.ask(client)) for it in rounds]
                    if number:  # the first time at once, before anything is begun
                        words = chance.randrange(len(WORDS) * (AT_ONCE - 1))
                        await until(partial(have_shown, rounds, words))
                    server.kill()
                    await asyncio.gather(*asking)
        with Server(tmp_path, **settings) as server:
            async with server.async_client() as client:
                ends += [await it.check(client) for it in rounds]
                model.otherwise = REPLY
                last = Round(KILLS, conversations[0])
                await last.ask(client)
        assert texts(last.shown) == WHOLE
        assert not model.refused
    assert len(ends) == KILLS * AT_ONCE
    assert ends.count("FAILED") > len(ends) // 2, ends


async def started(client: httpx.AsyncClient) -> str:
    """A new conversation for which no title is asked."""
    made = await client.post("/api/agents", json={"name": "Advisor"})
    conversation = (await client.post(f"/api/agents/{made.json()['id']}/conversations")).json()["id"]
    await client.patch(f"/api/conversations/{conversation}", json={"title": "Crash"})
    return conversation


def have_shown(rounds: list[Round], words: int) -> bool:
    """Whether all turns have been begun, and so many words have been shown in all."""
    return all(it.turn_id for it in rounds) and sum(texts(it.shown).count(" ") for it in rounds) >= words
