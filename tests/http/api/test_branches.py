"""Branches over HTTP: messages are edited, answered again, chosen and forked, and nothing is lost."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE
from tests.talking import JSON, Talk
from threadkeep.domain.conversation import Branch
from threadkeep.domain.ids import ConversationId, MessageId
from threadkeep.domain.message import Message as StoredMessage
from threadkeep.domain.message import MessageWindow
from threadkeep.storage.branches import SqlBranches
from threadkeep.storage.messages import SqlMessages
from threadkeep.testing import Gate, Say, ScriptedModel, UseTool, Wait

Message = dict[str, Any]


async def path_of(talk: Talk, conversation: str) -> list[Message]:
    return (await talk.client.get(f"/api/conversations/{conversation}/messages")).json()["items"]


async def texts(talk: Talk, conversation: str) -> list[str]:
    return [it["content"] for it in await path_of(talk, conversation)]


async def send(talk: Talk, conversation: str, content: str, **more: Any) -> httpx.Response:
    path = f"/api/conversations/{conversation}/messages?wait=true"
    return await talk.client.post(path, json={"content": content, **more}, headers=JSON)


async def straight(talk: Talk, model: ScriptedModel, **agent: Any) -> str:
    """Two questions and their replies."""
    conversation = await talk.titled_conversation(**agent)
    for number in (1, 2):
        model.script([Say(f"a{number}")])
        await talk.ask(conversation, f"q{number}")
    return conversation


def refusal(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def test_sent_message_is_edited_and_the_model_sees_the_new_path_only(talk: Talk, model: ScriptedModel):
    conversation = await straight(talk, model)
    _, first_reply, asked, _ = await path_of(talk, conversation)
    model.script([Say("a2 again")])
    reply = (await send(talk, conversation, "q2 again", parentId=asked["parentId"])).json()
    assert await texts(talk, conversation) == ["q1", "a1", "q2 again", "a2 again"]
    assert [it["content"] for it in model.requests[-1].body["messages"][1:]] == ["q1", "a1", "q2 again"]
    edited = (await path_of(talk, conversation))[2]
    assert edited["parentId"] == first_reply["id"]
    assert edited["siblings"] == {"ids": [asked["id"], edited["id"]], "index": 1}
    assert "siblings" not in reply
    states = {it["content"]: it["status"] for it in await talk.messages(conversation)}
    assert (states["q2"], states["a2"], states["q2 again"]) == ("OVERWRITTEN", "OVERWRITTEN", "COMPLETED")


async def test_first_message_is_edited_with_no_parent(talk: Talk, model: ScriptedModel):
    conversation = await straight(talk, model)
    model.script([Say("fresh")])
    await send(talk, conversation, "other", parentId=None)
    assert await texts(talk, conversation) == ["other", "fresh"]
    detail = (await talk.client.get(f"/api/conversations/{conversation}")).json()
    assert (detail["messageCount"], len(detail["messages"])) == (2, 2)
    assert detail["messages"][0]["siblings"]["index"] == 1


async def test_any_reply_can_be_given_again_and_chosen(talk: Talk, model: ScriptedModel):
    conversation = await straight(talk, model)
    first = (await path_of(talk, conversation))[1]
    model.script([Say("a1 again")])
    path = f"/api/conversations/{conversation}/regenerate?wait=true"
    again = (await talk.client.post(path, json={"messageId": first["id"]}, headers=JSON)).json()
    assert again["siblings"] == {"ids": [first["id"], again["id"]], "index": 1}
    assert await texts(talk, conversation) == ["q1", "a1 again"]
    chosen = await talk.client.post(
        f"/api/conversations/{conversation}/path", json={"messageId": first["id"]}
    )
    assert (chosen.status_code, chosen.json()["messageCount"]) == (200, 4)
    assert await texts(talk, conversation) == ["q1", "a1", "q2", "a2"]


async def test_client_that_shows_another_path_is_refused_and_told_the_new_tip(
    talk: Talk, model: ScriptedModel
):
    conversation = await straight(talk, model)
    *_, asked, tip = await path_of(talk, conversation)
    model.script([Say("a2 again")])
    await send(talk, conversation, "q2 again", parentId=asked["parentId"], tip=tip["id"])
    new_tip = (await path_of(talk, conversation))[-1]["id"]
    refused = await send(talk, conversation, "late", tip=tip["id"])
    assert refusal(refused) == (409, "PATH_CHANGED")
    assert refused.json()["error"]["details"] == {"tip": new_tip}
    for call, body in (("regenerate", {}), ("path", {"messageId": tip["id"]})):
        stale = await talk.client.post(
            f"/api/conversations/{conversation}/{call}", json={**body, "tip": tip["id"]}, headers=JSON
        )
        assert refusal(stale) == (409, "PATH_CHANGED")
    assert await texts(talk, conversation) == ["q1", "a1", "q2 again", "a2 again"]
    model.script([Say("a3")])
    assert (await send(talk, conversation, "q3", tip=new_tip.upper())).json()["content"] == "a3"


async def test_message_sent_again_with_its_key_is_the_same_turn_although_the_tip_has_moved(
    talk: Talk, model: ScriptedModel
):
    conversation = await straight(talk, model)
    tip = (await path_of(talk, conversation))[-1]["id"]
    path = f"/api/conversations/{conversation}/messages?wait=true"
    headers = {**JSON, "Idempotency-Key": "k"}
    body = {"content": "q3", "tip": tip, "parentId": tip}
    first, second = [(await talk.client.post(path, json=body, headers=headers)).json() for _ in range(2)]
    assert first["id"] == second["id"]
    other = await talk.client.post(path, json={**body, "parentId": None}, headers=headers)
    assert refusal(other) == (422, "IDEMPOTENCY_MISMATCH")


async def test_parent_that_is_not_of_this_conversation_does_not_exist(talk: Talk, model: ScriptedModel):
    conversation, other = await straight(talk, model), await straight(talk, model)
    theirs = (await path_of(talk, other))[0]["id"]
    for id_ in (theirs, "0190a0b0-0000-7000-8000-000000000000", "nonsense"):
        assert refusal(await send(talk, conversation, "?", parentId=id_)) == (404, "MESSAGE_NOT_FOUND")
        for call in ("path", "fork", "regenerate"):
            response = await talk.client.post(
                f"/api/conversations/{conversation}/{call}", json={"messageId": id_}, headers=JSON
            )
            assert refusal(response) == (404, "MESSAGE_NOT_FOUND")
    assert await texts(talk, conversation) == ["q1", "a1", "q2", "a2"]


@ONLY_SQLITE
async def test_question_is_no_reply_to_give_again(talk: Talk, model: ScriptedModel):
    conversation = await straight(talk, model)
    asked = (await path_of(talk, conversation))[0]["id"]
    path = f"/api/conversations/{conversation}/regenerate"
    assert refusal(await talk.client.post(path, json={"messageId": asked})) == (409, "NOTHING_TO_REGENERATE")


async def test_path_stays_while_a_turn_runs(talk: Talk, model: ScriptedModel):
    conversation = await straight(talk, model)
    first, *_ = await path_of(talk, conversation)
    gate = Gate()
    model.script([Wait(gate), Say("a3")])
    turn = await talk.begin(conversation, "q3")
    for call, body in (
        ("messages", {"content": "?", "parentId": None}),
        ("path", {"messageId": first["id"]}),
        ("regenerate", {"messageId": first["id"]}),
    ):
        response = await talk.client.post(
            f"/api/conversations/{conversation}/{call}", json=body, headers=JSON
        )
        assert refusal(response) == (409, "TURN_IN_PROGRESS")
        assert response.json()["error"]["details"] == {"turnId": turn}
    running = (await path_of(talk, conversation))[-1]["id"]
    fork = await talk.client.post(f"/api/conversations/{conversation}/fork", json={"messageId": running})
    assert refusal(fork) == (409, "TURN_IN_PROGRESS")
    assert fork.json()["error"]["details"] == {"turnId": turn}
    gate.open()
    await talk.events(turn)
    assert await texts(talk, conversation) == ["q1", "a1", "q2", "a2", "q3", "a3"]


async def test_two_tabs_that_branch_at_once_make_one_turn(talk: Talk, model: ScriptedModel):
    conversation = await straight(talk, model)
    messages = await path_of(talk, conversation)
    tip = messages[-1]["id"]
    gate = Gate()
    model.otherwise = [Wait(gate), Say("x")]
    path = f"/api/conversations/{conversation}/messages"
    bodies = [{"content": f"{n}", "parentId": messages[1]["id"], "tip": tip} for n in range(4)]
    responses = await asyncio.gather(*(talk.client.post(path, json=it, headers=JSON) for it in bodies))
    gate.open()
    assert sorted(it.status_code for it in responses) == [202, 409, 409, 409]
    assert {"q1", "a1", "q2", "a2"} <= {it["content"] for it in await talk.messages(conversation)}


async def test_fork_is_a_conversation_of_its_own_up_to_the_message(talk: Talk, model: ScriptedModel):
    conversation = await straight(talk, model)
    _, reply, asked, _ = await path_of(talk, conversation)
    model.script([Say("a2 again")])
    await send(talk, conversation, "q2 again", parentId=asked["parentId"])
    made = await talk.client.post(f"/api/conversations/{conversation}/fork", json={"messageId": asked["id"]})
    assert made.status_code == 201
    fork = made.json()
    assert made.headers["location"] == f"/api/conversations/{fork['id']}"
    assert fork["id"] != conversation and not fork["isMain"] and fork["sessionId"]
    assert await texts(talk, fork["id"]) == ["q1", "a1", "q2"]
    copies = await path_of(talk, fork["id"])
    assert [it["seq"] for it in copies] == [1, 2, 3]
    assert not {it["id"] for it in copies} & {it["id"] for it in await talk.messages(conversation)}
    assert copies[1]["turnId"] not in (None, reply["turnId"])
    assert await texts(talk, conversation) == ["q1", "a1", "q2 again", "a2 again"]
    model.script([Say("on")])
    await talk.ask(fork["id"], "go on")
    sent = [it["content"] for it in model.requests[-1].body["messages"][1:]]
    assert [it for it in sent if isinstance(it, str)][:2] == ["q1", "a1"]
    usage = (await talk.client.get("/api/usage")).json()
    assert sum(it["turns"] for it in usage["items"]) == 4


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Ferry", "Ferry (2)"),
        ("Ferry (2)", "Ferry (3)"),
        ("Ferry (old)", "Ferry (old) (2)"),
        ("Born (1987)", "Born (1987) (2)"),
        ("x" * 200, "x" * 196 + " (2)"),
    ],
)
async def test_fork_can_be_told_from_its_original(
    talk: Talk, model: ScriptedModel, title: str, expected: str
):
    conversation = await talk.titled_conversation()
    model.script([Say("a1")])
    await talk.ask(conversation, "q1")
    await talk.client.patch(f"/api/conversations/{conversation}", json={"title": title})
    (asked, _) = await path_of(talk, conversation)
    body = {"messageId": asked["id"]}
    fork = (await talk.client.post(f"/api/conversations/{conversation}/fork", json=body)).json()
    assert fork["title"] == expected


async def test_fork_takes_the_results_of_tools_along(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation()
    large = "x" * 40_000
    model.script([UseTool("search_documents", {"query": large})], [Say("Nothing.")])
    await talk.ask(conversation, "Look it up")
    (_, reply) = await path_of(talk, conversation)
    body = {"messageId": reply["id"]}
    fork = (await talk.client.post(f"/api/conversations/{conversation}/fork", json=body)).json()["id"]
    assert (await talk.client.delete(f"/api/conversations/{conversation}?purge=true")).status_code == 204
    (_, copy) = await path_of(talk, fork)
    assert [it["arguments"] for it in copy["toolCalls"]] == [it["arguments"] for it in reply["toolCalls"]]
    assert copy["toolCalls"][0]["result"] == reply["toolCalls"][0]["result"]


async def test_search_finds_every_branch_and_says_which_is_active(talk: Talk, model: ScriptedModel):
    conversation = await straight(talk, model)
    asked = (await path_of(talk, conversation))[2]
    model.script([Say("zebra two")])
    await send(talk, conversation, "zebra one", parentId=asked["parentId"])
    model.script([Say("other")])
    await send(talk, conversation, "else", parentId=asked["parentId"])

    async def found() -> dict[str, bool]:
        items = (await talk.client.get("/api/search", params={"q": "zebra"})).json()["items"]
        return {it["snippet"]: it["onPath"] for it in items}

    for _ in range(200):
        if len(await found()) == 2:
            break
        await asyncio.sleep(0.05)
    assert await found() == {"zebra one": False, "zebra two": False}


async def test_card_that_is_off_the_path_is_added_again_at_its_end(talk: Talk, model: ScriptedModel):
    agent = (await talk.client.post("/api/agents", json={"name": "Watch"})).json()["id"]
    body = {"agentId": agent, "userId": "local", "title": "Late", "summary": "30 h", "priority": "P1"}
    briefing = (await talk.client.post("/api/briefings", json=body)).json()["id"]
    open_card = f"/api/briefings/{briefing}/actions/start_conversation"
    first = (await talk.client.post(open_card)).json()
    conversation = first["conversationId"]
    model.otherwise = [Say("ok")]
    await send(talk, conversation, "without it", parentId=None)
    again = (await talk.client.post(open_card)).json()
    assert again["conversationId"] == conversation and again["messageId"] != first["messageId"]
    assert (await talk.client.post(open_card)).json()["messageId"] == again["messageId"]
    kinds = [it["contentType"] for it in await path_of(talk, conversation)]
    assert kinds == ["text", "text", "briefing_card"]
    await talk.client.post(f"/api/conversations/{conversation}/path", json={"messageId": first["messageId"]})
    assert (await talk.client.post(open_card)).json()["messageId"] == first["messageId"]
    assert len(await path_of(talk, conversation)) == 1


async def test_card_that_names_another_briefing_is_not_taken_for_that_ones_card(
    talk: Talk, model: ScriptedModel
):
    agent = (await talk.client.post("/api/agents", json={"name": "Watch"})).json()["id"]
    body = {"agentId": agent, "userId": "local", "title": "Late", "summary": "30 h", "priority": "P1"}
    first = (await talk.client.post("/api/briefings", json=body)).json()["id"]
    body["data"] = {"briefing_id": first}
    second = (await talk.client.post("/api/briefings", json=body)).json()["id"]
    opened = (await talk.client.post(f"/api/briefings/{first}/actions/start_conversation")).json()
    model.otherwise = [Say("ok")]
    await send(talk, opened["conversationId"], "without it", parentId=None)
    other = (await talk.client.post(f"/api/briefings/{second}/actions/start_conversation")).json()
    again = (await talk.client.post(f"/api/briefings/{first}/actions/start_conversation")).json()
    assert again["messageId"] not in {opened["messageId"], other["messageId"]}
    assert (await path_of(talk, opened["conversationId"]))[-1]["id"] == again["messageId"]


@pytest.mark.parametrize("purged", [False, True])
async def test_conversation_with_branches_is_deleted_whole(talk: Talk, model: ScriptedModel, purged: bool):
    conversation = await straight(talk, model)
    model.script([Say("x")])
    await send(talk, conversation, "other", parentId=None)
    ids = [it["id"] for it in await talk.messages(conversation)]
    await talk.client.delete(f"/api/conversations/{conversation}", params={"purge": purged})
    gone = await talk.client.post(f"/api/conversations/{conversation}/fork", json={"messageId": ids[0]})
    assert refusal(gone) == (404, "CONVERSATION_NOT_FOUND")
    window = MessageWindow(with_overwritten=True)
    kept = await talk.store.messages.page(ConversationId(conversation), window, offset=0, limit=99)
    assert [it.id for it in kept] == ([] if purged else ids)


async def archived(talk: Talk, model: ScriptedModel) -> str:
    """Three questions with their replies, of which the first two are archived."""
    conversation = await straight(talk, model, settings={"compactionThreshold": 4})
    model.script([Say("a3")])
    await talk.ask(conversation, "q3")
    model.script([Say("Summary of q1 and q2.")])
    done = await talk.client.post(f"/api/conversations/{conversation}/compact", json={"keepLast": 2})
    assert done.status_code == 200, done.text
    return conversation


async def sent_to_the_model(talk: Talk, model: ScriptedModel, conversation: str, content: str, **more: Any):
    """What the model is asked with when this is sent."""
    model.script([Say("told")])
    assert (await send(talk, conversation, content, **more)).status_code == 200
    return [it["content"] for it in model.requests[-1].body["messages"][1:]]


async def test_edit_of_an_archived_message_leaves_the_summary_behind(talk: Talk, model: ScriptedModel):
    conversation = await archived(talk, model)
    second = (await path_of(talk, conversation))[2]
    assert second["archived"]
    sent = await sent_to_the_model(talk, model, conversation, "q2 again", parentId=second["parentId"])
    assert sent == ["q1", "a1", "q2 again"]
    assert (await talk.client.get(f"/api/conversations/{conversation}")).json()["summary"] is None
    last = (await talk.messages(conversation))[5]
    await talk.client.post(f"/api/conversations/{conversation}/path", json={"messageId": last["id"]})
    detail = (await talk.client.get(f"/api/conversations/{conversation}")).json()
    assert detail["summary"]
    assert [it["archived"] for it in await path_of(talk, conversation)] == [True] * 4 + [False] * 2


async def test_message_off_the_path_is_not_archived_by_a_summary_of_the_path(
    talk: Talk, model: ScriptedModel
):
    conversation = await straight(talk, model, settings={"compactionThreshold": 4})
    first = (await path_of(talk, conversation))[1]
    for number in (2, 3):
        model.script([Say(f"b{number}")])
        await send(talk, conversation, f"p{number}", **({"parentId": first["id"]} if number == 2 else {}))
    model.script([Say("Summary of q1 and p2.")])
    await talk.client.post(f"/api/conversations/{conversation}/compact", json={"keepLast": 2})
    flagged = [it["content"] for it in await talk.messages(conversation) if it["archived"]]
    assert flagged == ["q1", "a1", "p2", "b2"]


async def test_summary_of_one_branch_is_not_sent_on_another(talk: Talk, model: ScriptedModel):
    conversation = await archived(talk, model)
    tip = (await path_of(talk, conversation))[-1]
    assert await sent_to_the_model(talk, model, conversation, "other", parentId=None) == ["other"]
    assert "Summary" not in str(model.requests[-1].body["messages"])
    await talk.client.post(f"/api/conversations/{conversation}/path", json={"messageId": tip["id"]})
    sent = await sent_to_the_model(talk, model, conversation, "q4")
    assert sent[-3:] == ["q3", "a3", "q4"]
    assert "Summary of q1 and q2." in str(model.requests[-1].body["messages"])


async def test_reply_to_a_question_after_a_card_is_given_again_with_the_card(
    talk: Talk, model: ScriptedModel
):
    agent = (await talk.client.post("/api/agents", json={"name": "Watch"})).json()["id"]
    body = {"agentId": agent, "userId": "local", "title": "Late", "summary": "30 h", "priority": "P1"}
    briefing = (await talk.client.post("/api/briefings", json=body)).json()["id"]
    card = (await talk.client.post(f"/api/briefings/{briefing}/actions/start_conversation")).json()
    conversation = card["conversationId"]
    await talk.client.patch(
        f"/api/conversations/{conversation}", json={"title": "Late"}
    )  # so none is asked for
    path = f"/api/conversations/{conversation}/regenerate?wait=true"
    nothing = await talk.client.post(path, json={"messageId": card["messageId"]}, headers=JSON)
    assert nothing.status_code in {404, 409}
    model.otherwise = [Say("ok")]
    reply = (await send(talk, conversation, "Why late?")).json()
    again = (await talk.client.post(path, json={"messageId": reply["id"]}, headers=JSON)).json()
    assert again["siblings"]["ids"] == [reply["id"], again["id"]]
    asked = model.requests[-1].body["messages"]
    assert "标题：Late" in str(asked) and asked[-1]["content"].endswith("Why late?")


async def test_card_that_comes_while_its_branch_is_left_is_on_the_path_once(talk: Talk, model: ScriptedModel):
    agent = (await talk.client.post("/api/agents", json={"name": "Watch"})).json()["id"]
    conversation = (await talk.client.put(f"/api/agents/{agent}/conversation")).json()["id"]
    model.otherwise = [Say("ok")]
    first = (await send(talk, conversation, "one")).json()
    await send(talk, conversation, "two", parentId=None)
    body = {"agentId": agent, "userId": "local", "title": "Late", "summary": "30 h", "priority": "P1"}
    briefing = (await talk.client.post("/api/briefings", json=body)).json()["id"]
    opened, chosen = await asyncio.gather(
        talk.client.post(f"/api/briefings/{briefing}/actions/start_conversation"),
        talk.client.post(f"/api/conversations/{conversation}/path", json={"messageId": first["id"]}),
    )
    assert opened.status_code == chosen.status_code == 200
    await talk.client.post(f"/api/briefings/{briefing}/actions/start_conversation")
    path = await path_of(talk, conversation)
    assert [it["contentType"] for it in path].count("briefing_card") == 1
    parents = [None, *(it["id"] for it in path[:-1])]
    assert [it["parentId"] for it in path] == parents


async def test_unfinished_message_is_no_parent(talk: Talk, model: ScriptedModel):
    conversation = await straight(talk, model)
    gate = Gate()
    model.script([Say("half"), Wait(gate)])
    turn = await talk.begin(conversation, "q3")
    unfinished = (await path_of(talk, conversation))[-1]
    assert refusal(await send(talk, conversation, "q4", parentId=unfinished["id"])) == (
        409,
        "TURN_IN_PROGRESS",
    )
    fork = await talk.client.post(
        f"/api/conversations/{conversation}/fork", json={"messageId": unfinished["id"]}
    )
    assert refusal(fork) == (409, "TURN_IN_PROGRESS")
    gate.open()
    await talk.events(turn)


@pytest.mark.parametrize("format_", ["json", "md", "html"])
async def test_export_has_every_branch_and_a_report_the_active_path(
    talk: Talk, model: ScriptedModel, format_: str
):
    conversation = await straight(talk, model)
    model.script([Say("fresh")])
    await send(talk, conversation, "other", parentId=None)
    export = await talk.client.get(f"/api/conversations/{conversation}/export", params={"format": format_})
    report = await talk.client.get(f"/api/conversations/{conversation}/report", params={"format": format_})
    assert all(text in export.text for text in ("q1", "q2", "other", "fresh"))
    assert "fresh" in report.text and "q2" not in report.text


def once_the_branch_is_read(monkeypatch: pytest.MonkeyPatch, do: Callable[[], Awaitable[Any]]) -> None:
    """Does something between the reading of a branch and the reading of its messages, the first time."""
    read, left = SqlBranches.up_to, [do]

    async def read_then_do(
        self: SqlBranches, conversation_id: ConversationId, message_id: MessageId | None
    ) -> Branch | None:
        branch = await read(self, conversation_id, message_id)
        if left:
            await left.pop()()
        return branch

    monkeypatch.setattr(SqlBranches, "up_to", read_then_do)


@pytest.mark.parametrize("parent", [None, "a1"])
async def test_fork_that_is_made_while_the_path_is_left_has_all_up_to_its_message(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, parent: str | None
):
    conversation = await straight(talk, model)
    ids = {it["content"]: it["id"] for it in await path_of(talk, conversation)}
    model.otherwise = [Say("fresh")]
    other = (await send(talk, conversation, "other", parentId=parent and ids[parent])).json()["id"]
    path = f"/api/conversations/{conversation}/path"
    await talk.client.post(path, json={"messageId": ids["a2"]})
    once_the_branch_is_read(monkeypatch, lambda: talk.client.post(path, json={"messageId": other}))
    forked = await talk.client.post(f"/api/conversations/{conversation}/fork", json={"messageId": ids["a2"]})
    assert forked.status_code == 201
    assert await texts(talk, forked.json()["id"]) == ["q1", "a1", "q2", "a2"]


async def test_fork_of_a_conversation_that_is_purged_meanwhile_is_refused(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    conversation = await straight(talk, model)
    tip = (await path_of(talk, conversation))[-1]["id"]
    purge = f"/api/conversations/{conversation}?purge=true"
    once_the_branch_is_read(monkeypatch, lambda: talk.client.delete(purge))
    forked = await talk.client.post(f"/api/conversations/{conversation}/fork", json={"messageId": tip})
    assert refusal(forked) == (404, "CONVERSATION_NOT_FOUND")


async def test_summary_is_of_one_path_although_that_is_left_while_it_is_read(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    conversation = await straight(talk, model, settings={"compactionThreshold": 4})
    tip = (await path_of(talk, conversation))[-1]["id"]
    model.otherwise = [Say("fresh")]
    await send(talk, conversation, "other", parentId=None)
    other = (await send(talk, conversation, "more")).json()["id"]
    path = f"/api/conversations/{conversation}/path"
    await talk.client.post(path, json={"messageId": tip})
    monkeypatch.setattr("threadkeep.services.compactions.MESSAGES_A_PAGE", 2)
    read, left = SqlMessages.page, [other]

    async def read_then_leave(
        self: SqlMessages, conversation_id: ConversationId, which: MessageWindow, *, offset: int, limit: int
    ) -> Sequence[StoredMessage]:
        page = await read(self, conversation_id, which, offset=offset, limit=limit)
        if left:
            await talk.client.post(path, json={"messageId": left.pop()})
        return page

    monkeypatch.setattr(SqlMessages, "page", read_then_leave)
    done = await talk.client.post(f"/api/conversations/{conversation}/compact", json={"keepLast": 0})
    assert (done.status_code, done.json()["archivedCount"]) == (200, 4)
    summarised = str(model.requests[-1].body["messages"])
    assert "other" in summarised and "q1" not in summarised
