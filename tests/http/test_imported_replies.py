"""Replies of imported conversations, by every protocol: no turn of ours wrote a log of them."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import Json
from tests.http.replies import READS_OF_A_REPLY, ReadReply, place_of
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.turn import Turn
from threadkeep.testing import until

ANSWER = "The imported answer"
TALK: Json = {
    "uuid": "talk",
    "name": "Imported",
    "chat_messages": [
        {"uuid": "q", "sender": "human", "text": "Question"},
        {"uuid": "r", "sender": "assistant", "text": ANSWER},
    ],
}


async def imported(client: httpx.AsyncClient) -> Json:
    """The ids of a conversation that Claude has exported."""
    files = {"files": ("conversations.json", json.dumps([TALK]).encode())}
    begun = await client.post("/api/imports", files=files)
    path = f"/api/imports/{begun.json()['id']}"

    async def run() -> Any:
        return (await client.get(path)).json()

    async def has_ended() -> bool:
        return (await run())["status"] != "RUNNING"

    await until(has_ended)
    (conversation,) = (await run())["conversations"]
    return await place_of(client, conversation)


@ONLY_SQLITE
@pytest.mark.parametrize("read", READS_OF_A_REPLY.values(), ids=READS_OF_A_REPLY)
async def test_imported_reply_is_read_like_any_other(api: Api, alice: httpx.AsyncClient, read: ReadReply):
    came = await read(api, alice, await imported(alice))
    assert ANSWER.encode() in came


@ONLY_SQLITE
@pytest.mark.parametrize(
    "path",
    [
        "/api/turns/{turn}/events?after=2",
        "/api/turns/{turn}/events?dialect=agentx&after=2",
        "/v1/responses/{response}?stream=true&starting_after=2",
    ],
)
async def test_rest_of_an_imported_reply_is_refused(api: Api, alice: httpx.AsyncClient, path: str):
    """Its events get their numbers each time that they are made."""
    place = await imported(alice)
    response = await alice.get(path.format(**place))
    assert response.status_code == 410, response.text
    assert response.json()["error"]["code"].upper() == "EVENTS_EXPIRED"


@ONLY_SQLITE
async def test_file_that_claims_one_event_for_a_turn_makes_no_error_of_ours(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    place, get = await imported(alice), api.store.turns.get

    async def claimed(user_id: UserId, turn_id: TurnId) -> Turn | None:
        turn = await get(user_id, turn_id)
        return turn and replace(turn, last_event_seq=1)

    monkeypatch.setattr(api.store.turns, "get", claimed)
    response = await alice.get(f"/v1/responses/{place['response']}?stream=true&starting_after=2")
    assert response.status_code == 410, response.text
