"""Turns over HTTP: streamed, followed, stopped, regenerated, never lost."""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE
from tests.talking import JSON, Talk, parse, talking
from threadkeep.domain.ids import TurnId
from threadkeep.log.live import LiveLog
from threadkeep.runtime.following import Following
from threadkeep.services.replies.passages import Passages
from threadkeep.testing import Gate, Reply, Say, ScriptedModel, Status, Think, Usage, Wait, scripted_settings


def texts(events: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in events if event["type"] == "text")


async def test_reply_is_streamed_and_kept(talk: Talk, model: ScriptedModel):
    model.script([Think("Hm."), Say("Be"), Say("cause.\n"), Say("因为"), Usage(7, 3)])
    conversation = await talk.conversation(systemPrompt="Be brief.")
    path = f"/api/conversations/{conversation}/messages"
    async with talk.client.stream("POST", path, json={"content": "Why?"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [event async for event in parse(response)]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "turn_start"
    assert (events[-1]["type"], events[-1]["status"]) == ("done", "COMPLETED")
    assert texts(events) == "Because.\n因为"
    asked, reply = await talk.messages(conversation)
    assert (asked["content"], asked["status"]) == ("Why?", "COMPLETED")
    assert (reply["content"], reply["status"], reply["tokenCount"]) == ("Because.\n因为", "COMPLETED", 3)
    assert reply["thoughtProcess"][0]["detail"] == "Hm."
    assert response.headers["location"] == f"/api/turns/{reply['turnId']}"
    turn = (await talk.client.get(response.headers["location"])).json()
    assert (turn["status"], turn["usage"]["inputTokens"]) == ("COMPLETED", 7)
    told, *messages = model.requests[0].body["messages"]
    assert told["role"] == "system"
    assert told["content"].startswith("Be brief.\n\nYour role is `assistant`.")
    assert messages == [{"role": "user", "content": "Why?"}]


@ONLY_SQLITE
@pytest.mark.usefixtures("piece_by_piece")
async def test_text_dialect_is_pieces_and_done(talk: Talk, model: ScriptedModel):
    model.script([Say("one\ntwo"), Say(" three")])
    conversation = await talk.conversation()
    response = await talk.client.post(
        f"/api/conversations/{conversation}/messages?dialect=text", json={"content": "?"}
    )
    assert response.text == "data: one\ndata: two\n\ndata:  three\n\ndata: [DONE]\n\n"


@ONLY_SQLITE
async def test_closed_page_does_not_stop_the_turn(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("first "), Wait(gate), Say("second")])
    conversation = await talk.conversation()
    path = f"/api/conversations/{conversation}/messages"
    async with talk.client.stream("POST", path, json={"content": "?"}) as response:
        turn_id = response.headers["location"].split("/")[-1]
        async for event in parse(response):
            if event["type"] == "text":
                break
    gate.open()
    assert texts(await talk.events(turn_id)) == "first second"
    assert (await talk.messages(conversation))[1]["status"] == "COMPLETED"


@pytest.mark.usefixtures("piece_by_piece")
async def test_reconnecting_anywhere_gives_exactly_the_rest(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([*(Say(f"{n}") for n in range(5)), Wait(gate), Say("end")])
    turn_id = await talk.begin(await talk.conversation())
    live = asyncio.create_task(talk.events(turn_id))
    await gate.reached()
    later = [asyncio.create_task(talk.events(turn_id, after)) for after in (0, 1, 3)]
    await asyncio.sleep(0.05)
    gate.open()
    whole = await live
    assert texts(whole) == "01234end"
    for after, task in zip((0, 1, 3), later, strict=True):
        assert await task == whole[after:]
    for after in range(len(whole)):
        assert await talk.events(turn_id, after) == whole[after:]
    done = await talk.client.get(f"/api/turns/{turn_id}/events?after={len(whole)}")
    assert done.status_code == 204


@pytest.mark.usefixtures("piece_by_piece")
async def test_agentx_stream_of_an_ended_turn_resumes_anywhere(talk: Talk, model: ScriptedModel):
    model.script([Say("a"), Say("b"), Usage(7, 3)])
    path = f"/api/turns/{(await talk.ask(await talk.conversation()))['turnId']}/events?dialect=agentx"
    frames = [f"{frame}\n\n" for frame in (await talk.client.get(path)).text.split("\n\n") if frame]
    assert len(frames) == 10
    cursors = [frame.partition("\n")[0].removeprefix("id: ") for frame in frames]
    for number, cursor in enumerate(cursors[:-1], 1):
        rest = await talk.client.get(path, headers={"Last-Event-ID": cursor})
        assert rest.text == "".join(frames[number:])  # the end tells the whole text, wherever one was
    assert (await talk.client.get(path, headers={"Last-Event-ID": cursors[-1]})).status_code == 204
    await talk.store.log.trim(2**60)
    gone = await talk.client.get(path, headers={"Last-Event-ID": cursors[3]})
    assert (gone.status_code, gone.json()["error"]["code"]) == (410, "EVENTS_EXPIRED")


async def test_reply_is_readable_while_it_is_written(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("so far"), Wait(gate), Say(" and on")])
    conversation = await talk.conversation()
    turn_id = await talk.begin(conversation)
    async for event in talk.follow(turn_id):
        if event.get("text") == "so far":
            reply = (await talk.messages(conversation))[1]
            assert (reply["content"], reply["status"]) == ("so far", "STREAMING")
            gate.open()
    assert (await talk.messages(conversation))[1]["content"] == "so far and on"


async def test_second_turn_is_refused_while_one_runs(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Wait(gate), Say("done")])
    conversation = await talk.conversation()
    turn_id = await talk.begin(conversation)
    path = f"/api/conversations/{conversation}"
    for call in ("messages", "regenerate"):
        refused = await talk.client.post(
            f"{path}/{call}", json={"content": "?"} if call == "messages" else None
        )
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "TURN_IN_PROGRESS")
        assert refused.json()["error"]["details"] == {"turnId": turn_id}
    gate.open()
    await talk.events(turn_id)
    assert (await talk.ask(conversation))["status"] == "COMPLETED"


async def test_stopping_keeps_the_text(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("half an ans"), Wait(gate), Say("wer")])
    conversation = await talk.conversation()
    turn_id = await talk.begin(conversation)
    async for event in talk.follow(turn_id):
        if event["type"] == "text":
            break
    stopped = (await talk.client.post(f"/api/conversations/{conversation}/abort")).json()
    assert (stopped["status"], stopped["content"]) == ("GENERATION_ABORTED", "half an ans")
    again = await talk.client.post(f"/api/conversations/{conversation}/stop")
    assert again.json() == {"status": "IDLE"}
    events = await talk.events(turn_id)
    assert (events[-1]["type"], events[-1]["status"]) == ("done", "CANCELLED")
    reply = (await talk.messages(conversation))[1]
    assert (reply["status"], reply["content"]) == ("CANCELLED", "half an ans")
    assert reply["usage"]["estimated"]
    assert await model.requests[0].until_over() == "disconnected"
    assert (await talk.ask(conversation))["status"] == "COMPLETED"


async def test_turn_is_stopped_before_the_model_is_asked(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    searching = asyncio.Event()

    async def search(*_: object) -> None:
        searching.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Passages, "before", search)
    conversation = await talk.conversation()
    turn_id = await talk.begin(conversation)
    await searching.wait()
    stopped = await talk.client.post(f"/api/conversations/{conversation}/abort")
    assert stopped.json()["status"] == "GENERATION_ABORTED"
    assert [event["type"] for event in await talk.events(turn_id)] == ["turn_start", "done"]
    assert (await talk.messages(conversation))[1]["status"] == "CANCELLED"
    assert model.requests == []


async def test_regenerating_overwrites_and_replies_anew(talk: Talk, model: ScriptedModel):
    model.script([Say("first")], [Say("title")], [Say("second")])
    conversation = await talk.conversation()
    await talk.ask(conversation)
    await model.until_requests(2)  # the title
    path = f"/api/conversations/{conversation}/regenerate?wait=true"
    fresh = (await talk.client.post(path, headers=JSON)).json()
    assert fresh["content"] == "second"
    states = [(it["seq"], it["content"], it["status"]) for it in await talk.messages(conversation)]
    assert states == [(1, "Why?", "COMPLETED"), (2, "first", "OVERWRITTEN"), (3, "second", "COMPLETED")]
    assert (await talk.client.get(f"/api/conversations/{conversation}")).json()["messageCount"] == 2
    assert [it["content"] for it in model.requests[-1].body["messages"][1:]] == ["Why?"]


async def test_regenerating_nothing_is_refused(talk: Talk):
    conversation = await talk.conversation()
    refused = await talk.client.post(f"/api/conversations/{conversation}/regenerate")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "NOTHING_TO_REGENERATE")


async def test_two_regenerates_at_once_make_one_turn(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation(settings={"contextMessages": 5})
    await talk.ask(conversation)
    gate = Gate()  # the turn that wins does not end before the others have asked
    model.otherwise = [Wait(gate), Say("Again.")]
    path = f"/api/conversations/{conversation}/regenerate"
    responses = await asyncio.gather(*(talk.client.post(path, headers=JSON) for _ in range(5)))
    gate.open()
    assert sorted(it.status_code for it in responses) == [202, 409, 409, 409, 409]


async def test_same_idempotency_key_never_regenerates_twice(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation(settings={"contextMessages": 5})
    await talk.ask(conversation)
    tip = (await talk.messages(conversation))[-1]["id"]
    path = f"/api/conversations/{conversation}/regenerate"
    headers = {**JSON, "Idempotency-Key": "one"}
    responses = await asyncio.gather(
        *(talk.client.post(path, json={"tip": tip}, headers=headers) for _ in range(5))
    )
    assert {it.status_code for it in responses} == {202}
    await talk.events(responses[0].json()["turnId"])
    later = await talk.client.post(path, json={"tip": tip}, headers=headers)
    assert {it.json()["turnId"] for it in (*responses, later)} == {responses[0].json()["turnId"]}
    other = await talk.client.post(path, json={"messageId": tip}, headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (422, "IDEMPOTENCY_MISMATCH")
    assert (await talk.messages(conversation))[-1]["siblings"]["ids"][0] == tip
    assert len((await talk.messages(conversation))[-1]["siblings"]["ids"]) == 2


async def test_what_was_sent_stays_sent_though_the_agent_no_longer_accepts_it(talk: Talk):
    conversation = await talk.titled_conversation()
    path = f"/api/conversations/{conversation}/messages"
    headers = {**JSON, "Idempotency-Key": "one"}
    sent = await talk.client.post(path, json={"content": "Long?"}, headers=headers)
    await talk.events(sent.json()["turnId"])
    agent = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]
    await talk.client.patch(f"/api/agents/{agent}", json={"settings": {"maxMessageChars": 1}})
    again = await talk.client.post(path, json={"content": "Long?"}, headers=headers)
    assert (again.status_code, again.json()) == (202, sent.json())


async def test_same_idempotency_key_never_starts_a_second_turn(talk: Talk, model: ScriptedModel):
    conversation = await talk.conversation()
    path = f"/api/conversations/{conversation}/messages"
    headers = {**JSON, "Idempotency-Key": "one"}
    responses = await asyncio.gather(
        *(talk.client.post(path, json={"content": "?"}, headers=headers) for _ in range(10))
    )
    assert {it.status_code for it in responses} == {202}
    assert len({it.json()["turnId"] for it in responses}) == 1
    other = await talk.client.post(path, json={"content": "!"}, headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (422, "IDEMPOTENCY_MISMATCH")
    await talk.events(responses[0].json()["turnId"])
    assert len(await talk.messages(conversation)) == 2


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [
        ([Status(401, "bad key sk-scripted")], 502, "AGENTX_ERROR"),
        ([Say("")], 502, "AGENTX_ERROR"),
    ],
    ids=["refused", "empty"],
)
async def test_failing_model_is_told_and_the_conversation_goes_on(
    talk: Talk, model: ScriptedModel, reply: Reply, status: int, code: str
):
    model.script(reply)
    conversation = await talk.conversation()
    path = f"/api/conversations/{conversation}/messages?wait=true"
    failed = await talk.client.post(path, json={"content": "?"}, headers=JSON)
    assert (failed.status_code, failed.json()["error"]["code"]) == (status, code)
    assert "sk-scripted" not in failed.text
    assert failed.json()["error"]["details"]["message"]["status"] == "FAILED"
    assert (await talk.ask(conversation))["status"] == "COMPLETED"


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("query", "accept", "status", "kind"),
    [
        ("", "*/*", 200, "text/event-stream"),
        ("", "application/json", 202, "application/json"),
        ("?wait=true", "*/*", 200, "application/json"),
        ("?wait=true", "text/event-stream", 200, "text/event-stream"),
    ],
)
async def test_client_chooses_the_form_of_its_response(
    talk: Talk, query: str, accept: str, status: int, kind: str
):
    path = f"/api/conversations/{await talk.conversation()}/messages{query}"
    response = await talk.client.post(path, json={"content": "?"}, headers={"Accept": accept})
    assert response.status_code == status
    assert response.headers["content-type"].startswith(kind)


@ONLY_SQLITE
async def test_turn_that_takes_too_long_ends(talk: Talk, model: ScriptedModel):
    model.script([Say("begun"), Wait(Gate())])
    conversation = await talk.conversation(settings={"generationTimeoutS": 4})
    path = f"/api/conversations/{conversation}/messages?wait=true"
    late = await talk.client.post(path, json={"content": "?"}, headers=JSON)
    assert (late.status_code, late.json()["error"]["code"]) == (504, "GENERATION_TIMEOUT")
    assert late.json()["error"]["details"]["message"]["content"] == "begun"


async def test_title_is_derived_at_once_and_bettered_by_the_model(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Wait(gate), Say("有三个风险。")], [Say("《合同风险分析》")])
    conversation = await talk.conversation()
    turn_id = await talk.begin(conversation, "请帮我分析这份合同的风险点")
    path = f"/api/conversations/{conversation}"
    assert (await talk.client.get(path)).json()["title"] == "分析这份合同的风险点"
    gate.open()
    await talk.events(turn_id)
    await model.until_requests(2)
    await model.requests[1].until_over()
    title = ""
    while title != "合同风险分析":  # the test's time limit ends it
        await asyncio.sleep(0.02)
        title = (await talk.client.get(path)).json()["title"]


async def test_users_own_title_is_never_replaced(talk: Talk, model: ScriptedModel):
    conversation = await talk.conversation()
    path = f"/api/conversations/{conversation}"
    await talk.client.patch(path, json={"title": "Mine"})
    await talk.ask(conversation)
    assert (await talk.client.get(path)).json()["title"] == "Mine"
    assert len(model.requests) == 1


async def test_user_begins_no_more_than_allowed_at_the_same_moment(
    database_url: str, model: ScriptedModel, tmp_path: Path
):
    settings = scripted_settings(
        model, data=tmp_path / "data", database_url=database_url, user_running_turns=2
    )
    gate = Gate()
    model.otherwise = [Wait(gate), Say("done")]
    async with talking(settings) as talk:
        paths = [f"/api/conversations/{await talk.conversation()}/messages" for _ in range(6)]
        responses = await asyncio.gather(
            *(talk.client.post(path, json={"content": "?"}, headers=JSON) for path in paths)
        )
        assert sorted(it.status_code for it in responses) == [202, 202, 429, 429, 429, 429]
        gate.open()
        for it in responses:
            if it.status_code == 202:
                await talk.events(it.json()["turnId"])
        assert (await talk.client.post(paths[0], json={"content": "?"}, headers=JSON)).status_code == 202


async def test_deleting_a_conversation_stops_its_turn(talk: Talk, model: ScriptedModel):
    model.script([Say("x"), Wait(Gate())])
    conversation = await talk.conversation()
    turn_id = await talk.begin(conversation)
    await model.until_requests(1)
    assert (await talk.client.delete(f"/api/conversations/{conversation}")).status_code == 204
    assert await model.requests[0].until_over() == "disconnected"
    assert (await talk.client.get(f"/api/turns/{turn_id}")).status_code == 404


async def test_fifty_followers_see_the_same(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("a"), Wait(gate), *(Say(str(n)) for n in range(50))])
    turn_id = await talk.begin(await talk.conversation())
    async with httpx.AsyncClient(
        base_url=talk.url, timeout=30, limits=httpx.Limits(max_connections=60)
    ) as client:
        many = Talk(talk.app, talk.store, talk.url, client)
        followers = [asyncio.create_task(many.events(turn_id)) for _ in range(50)]
        await asyncio.sleep(0.1)
        gate.open()
        seen = await asyncio.gather(*followers)
    assert all(events == seen[0] for events in seen)
    assert texts(seen[0]) == "a" + "".join(map(str, range(50)))


@ONLY_SQLITE
@pytest.mark.parametrize("last_id", ["-1", "x", "1.5", "99999999999999999999"])
async def test_strange_last_event_id_is_refused(talk: Talk, last_id: str):
    conversation = await talk.conversation()
    turn_id = (await talk.ask(conversation))["turnId"]
    refused = await talk.client.get(f"/api/turns/{turn_id}/events", headers={"Last-Event-ID": last_id})
    assert refused.status_code == 422


async def test_trimmed_log_is_replayed_from_the_message(talk: Talk, model: ScriptedModel):
    model.script([Say("kept")])
    conversation = await talk.conversation()
    turn_id = (await talk.ask(conversation))["turnId"]
    assert await talk.store.log.trim(2**60)
    events = await talk.events(turn_id)
    assert [(it["type"], it["replayed"]) for it in events] == [
        ("turn_start", True),
        ("iteration_start", True),
        ("text", True),
        ("usage", True),
        ("done", True),
    ]
    gone = await talk.client.get(f"/api/turns/{turn_id}/events?after=2")
    assert (gone.status_code, gone.json()["error"]["code"]) == (410, "EVENTS_EXPIRED")


async def test_who_waits_on_a_node_that_ends_is_told_to_ask_again(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    gate = Gate()
    model.script([Say("half"), Wait(gate)])
    conversation = await talk.conversation()

    def show_no_more(following: Following, turn_id: TurnId) -> AbstractAsyncContextManager[LiveLog]:
        live = LiveLog(turn_id)
        live.close()
        return nullcontext(live)

    with monkeypatch.context() as patch:
        patch.setattr(Following, "watch", show_no_more)
        path = f"/api/conversations/{conversation}/messages?wait=true"
        response = await talk.client.post(path, json={"content": "?"}, headers=JSON)
    gate.open()
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (503, "SHUTTING_DOWN")
    assert response.headers["retry-after"] == "1"
    assert (await talk.client.get(f"/api/turns/{error['details']['turnId']}")).status_code == 200
