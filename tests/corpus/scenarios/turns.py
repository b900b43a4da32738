"""Turns over HTTP: in every dialect, resumed, waited for, failed, stopped, queued, branched."""

from tests.corpus.stage import JSON, UNKNOWN, Json, Stage
from threadkeep.testing import (
    CutOff,
    Fail,
    Gate,
    NoUsage,
    Say,
    Status,
    Stop,
    Think,
    Usage,
    Wait,
    until,
)

SEND = "POST /api/conversations/{conversation_id}/messages"
MESSAGES = "GET /api/conversations/{conversation_id}/messages"
REGENERATE = "POST /api/conversations/{conversation_id}/regenerate"
TURN = "GET /api/turns/{turn_id}"
EVENTS = "GET /api/turns/{turn_id}/events"
DIALECTS = ("events", "text", "agentx")


def turn_of(location: str) -> str:
    """The turn that a `Location` names."""
    return location.rsplit("/", 1)[1]


async def streams(stage: Stage) -> None:
    """A turn in every dialect: while it runs, afterwards, and from the middle on."""
    conversation = await stage.conversation(systemPrompt="Be brief.")
    turn = ""
    for dialect in DIALECTS:
        reply = [Think("Hmm,"), Think(" yes."), Say("One,\n"), Say("two\r\n"), Say("[DONE]"), Usage(12, 5)]
        stage.script(reply)
        sent = await stage.call(
            SEND,
            wire=dialect,
            conversation_id=conversation,
            query={"dialect": dialect},
            body={"content": "Count."},
        )
        turn = turn_of(sent.headers["location"])
        await stage.call(EVENTS, wire=dialect, turn_id=turn, query={"dialect": dialect})
        for after in ("3", "5", "99"):
            query = {"dialect": dialect, "after": after}
            await stage.call(EVENTS, wire=dialect, turn_id=turn, query=query)
        last = {"Last-Event-ID": f"{turn}:7:0" if dialect == "agentx" else "7"}
        await stage.call(EVENTS, wire=dialect, turn_id=turn, query={"dialect": dialect}, headers=last)
        for after in ("x", "-1", f"{UNKNOWN}:3:0", f"{turn}:3:x"):
            query = {"dialect": dialect, "after": after}
            await stage.call(EVENTS, wire=dialect, turn_id=turn, query=query)
    await stage.call(EVENTS, turn_id=UNKNOWN)
    await stage.call(EVENTS, turn_id=turn, query={"dialect": "morse"})
    await stage.call(EVENTS, turn_id=turn, user="bob")
    await stage.call(TURN, turn_id=turn)
    await stage.call(f"{TURN}/context", turn_id=turn)
    await stage.call(MESSAGES, conversation_id=conversation)


async def turns(stage: Stage) -> None:
    """Sending: waited for, accepted, repeated with a key, refused; what is read of it later."""
    conversation = await stage.conversation(settings={"maxMessageChars": 100})
    stage.script([Say("Because."), Usage(1000, 20, cache_read=100)])
    waited: Json = {"query": {"wait": "true"}, "headers": JSON}
    message = await stage.ask(SEND, conversation_id=conversation, body={"content": "Why “法”?"}, **waited)
    stage.script([Say("Indeed."), NoUsage(), Stop("max_tokens")])
    key = {**JSON, "Idempotency-Key": "once"}
    body = {"content": "Really?", "tip": message["id"]}
    begun = await stage.ask(SEND, conversation_id=conversation, body=body, headers=key)
    await stage.ended(begun["turnId"])
    await stage.call(SEND, conversation_id=conversation, body=body, headers=key)
    await stage.call(SEND, conversation_id=conversation, body={"content": "Other"}, headers=key)
    await stage.call(SEND, conversation_id=conversation, body=body, headers=JSON)
    for bad in (
        {},
        {"content": " "},
        {"content": "x" * 101},
        {"content": 7},
        {"content": "x", "files": [UNKNOWN]},
        {"content": "x", "parentId": UNKNOWN},
        {"content": "x", "whenBusy": "cry"},
        {"content": "x", "colour": "blue"},
    ):
        await stage.call(SEND, conversation_id=conversation, body=bad, headers=JSON)
    await stage.call(SEND, conversation_id=conversation, content=b'{"content": "\\ud800"}', headers=JSON)
    await stage.call(SEND, conversation_id=conversation, body={"content": "x"}, query={"dialect": "morse"})
    await stage.call(SEND, conversation_id=conversation, body={"content": "x"}, user="bob")
    await stage.call(TURN, turn_id=begun["turnId"])
    await stage.call(f"{TURN}/context", turn_id=begun["turnId"])
    page = await stage.ask(MESSAGES, conversation_id=conversation, query={"limit": 3})
    await stage.call(MESSAGES, conversation_id=conversation, query={"limit": 3, "cursor": page["nextCursor"]})
    for query in ({"order": "desc", "limit": 1}, {"afterSeq": 2}, {"beforeSeq": 2}, {"order": "up"}):
        await stage.call(MESSAGES, conversation_id=conversation, query=query)
    await stage.call("GET /api/conversations/{conversation_id}", conversation_id=conversation)
    await stage.call("GET /api/conversations/{conversation_id}/context", conversation_id=conversation)
    for query in ({"q": "indeed"}, {"q": "法"}, {"q": "nothing"}, {"q": ""}):
        await stage.call("GET /api/search", query=query)
    for form in ("json", "md", "html"):
        export = "GET /api/conversations/{conversation_id}/export"
        await stage.call(export, conversation_id=conversation, query={"format": form})
    await stage.call("GET /api/usage")
    await stage.call("GET /api/usage", query={"from": "2000-01-01", "to": "2000-01-03"})
    await stage.call("GET /api/usage", query={"from": "yesterday"})


async def failures(stage: Stage) -> None:
    """A model that fails: as a stream in every dialect, and as a response."""
    conversation = await stage.conversation()
    for dialect in DIALECTS:
        for reply in (
            [Status(400, "no such model")],
            [Say("Half of"), Fail("broken", "invalid_request_error")],
        ):
            stage.script(reply)
            await stage.call(
                SEND,
                wire=dialect,
                conversation_id=conversation,
                query={"dialect": dialect},
                body={"content": "Break."},
            )
    for reply in (
        [Status(401, "wrong key")],
        [Say("Half of"), Fail("broken", "invalid_request_error")],
        [Say(" ")],
    ):
        stage.script(reply)
        failed = await stage.call(
            SEND,
            conversation_id=conversation,
            query={"wait": "true"},
            headers=JSON,
            body={"content": "Break."},
        )
        assert not failed.is_success
    stage.script([Say("Half"), CutOff()])
    await stage.call(SEND, wire="events", conversation_id=conversation, body={"content": "Break off."})
    await stage.call(MESSAGES, conversation_id=conversation)


async def stopping(stage: Stage) -> None:
    """A running turn: what is refused meanwhile, stopped by its user, by an admin; a waiting sender hears."""
    conversation = await stage.conversation()
    abort = "POST /api/conversations/{conversation_id}/stop"
    await stage.call(abort, conversation_id=conversation)
    for user in ("alice", "root"):
        gate = Gate()
        stage.script([Say("Once upon a time"), Wait(gate), Say(" it ended.")])
        turn = await stage.begin(conversation, "Tell me a story.")
        await stage.said(turn)
        await stage.call(TURN, turn_id=turn)
        if user == "alice":
            await stage.call(SEND, conversation_id=conversation, body={"content": "Faster!"}, headers=JSON)
            await stage.call(
                "POST /api/conversations/{conversation_id}/regenerate", conversation_id=conversation, body={}
            )
            await stage.call("GET /api/conversations/{conversation_id}", conversation_id=conversation)
            await stage.call(abort, conversation_id=conversation, user="bob")
            await stage.call(abort, conversation_id=conversation)
        else:
            stop = "POST /api/admin/turns/{turn_id}/stop"
            await stage.call("GET /api/admin/turns", user=user)
            await stage.call("GET /api/admin/turns")
            await stage.call(stop, turn_id=turn)
            await stage.call(stop, turn_id=turn, user=user)
            await stage.call(stop, turn_id=turn, user=user)
            await stage.call(stop, turn_id=UNKNOWN, user=user)
            await stage.call("GET /api/admin/audit", user=user)
        gate.open()
        for dialect in DIALECTS:
            await stage.call(EVENTS, wire=dialect, turn_id=turn, query={"dialect": dialect})
    await stage.call(MESSAGES, conversation_id=conversation)


async def queueing(stage: Stage) -> None:
    """Messages for a busy agent: queued, changed, removed, held, sent, and joining the turn."""
    conversation = await stage.conversation()
    one = "GET /api/conversations/{conversation_id}"
    queued = "/api/conversations/{conversation_id}/queued/{message_id}"
    change, remove, send = f"PATCH {queued}", f"DELETE {queued}", f"POST {queued}/send"
    gate = Gate()
    stage.script([Say("Once"), Wait(gate), Say(" more.")])
    turn = await stage.begin(conversation, "First.")
    await gate.reached()
    ids: list[str] = []
    for text in ("Second.", "Third.", "Fourth."):
        body = {"content": text, "whenBusy": "queue"}
        response = await stage.ask(SEND, conversation_id=conversation, body=body, headers=JSON)
        ids.append(response["messageId"])
    bad = {"content": "x", "whenBusy": "queue", "parentId": None}
    await stage.call(SEND, conversation_id=conversation, body=bad, headers=JSON)
    await stage.call(change, conversation_id=conversation, message_id=ids[0], body={"content": "2nd."})
    for content in (" ", "x" * 10_001, 7):
        await stage.call(change, conversation_id=conversation, message_id=ids[0], body={"content": content})
    await stage.call(remove, conversation_id=conversation, message_id=ids[1])
    await stage.call(remove, conversation_id=conversation, message_id=ids[1])
    await stage.call(send, conversation_id=conversation, message_id=ids[0], headers=JSON)
    await stage.call(one, conversation_id=conversation)
    await stage.call("POST /api/conversations/{conversation_id}/abort", conversation_id=conversation)
    gate.open()
    await stage.ended(turn)
    await stage.call(one, conversation_id=conversation)
    stage.script([Say("To the second.")], [Say("To the fourth.")])
    await stage.call(
        f"POST {queued}/send",
        conversation_id=conversation,
        message_id=ids[0],
        query={"wait": "true"},
        headers=JSON,
    )

    async def is_idle() -> bool:
        now = await stage.quietly("GET", f"/api/conversations/{conversation}")
        return now["activeTurnId"] is None and not now["queued"]

    await until(is_idle)
    await stage.call(one, conversation_id=conversation)
    await stage.call(MESSAGES, conversation_id=conversation)


async def branches(stage: Stage) -> None:
    """Versions of replies and questions: regenerated, edited, chosen, forked."""
    conversation = await stage.conversation()
    choose = "POST /api/conversations/{conversation_id}/path"
    fork = "POST /api/conversations/{conversation_id}/fork"
    waited: Json = {"query": {"wait": "true"}, "headers": JSON, "conversation_id": conversation}
    await stage.call(REGENERATE, conversation_id=conversation, body={})
    stage.script([Say("First.")], [Say("Again.")], [Say("Other.")], [Say("Streamed.")])
    first = await stage.ask(SEND, body={"content": "Why?"}, **waited)
    again = await stage.ask(REGENERATE, body={"messageId": first["id"], "tip": first["id"]}, **waited)
    await stage.call(REGENERATE, body={"tip": first["id"]}, **waited)
    await stage.call(REGENERATE, body={"messageId": UNKNOWN}, **waited)
    await stage.call(SEND, body={"content": "Why not?", "parentId": None}, **waited)
    await stage.call(MESSAGES, conversation_id=conversation)
    await stage.call(MESSAGES, conversation_id=conversation, query={"include": "overwritten"})
    await stage.call(choose, conversation_id=conversation, body={"messageId": first["id"]})
    await stage.call(
        choose, conversation_id=conversation, body={"messageId": again["id"], "tip": again["id"]}
    )
    await stage.call(choose, conversation_id=conversation, body={"messageId": UNKNOWN})
    await stage.call(choose, conversation_id=conversation, body={})
    await stage.call(REGENERATE, wire="events", conversation_id=conversation)
    made = await stage.ask(fork, conversation_id=conversation, body={"messageId": first["id"]})
    await stage.call(fork, conversation_id=conversation, body={"messageId": UNKNOWN})
    await stage.call(MESSAGES, conversation_id=made["id"])
    await stage.call("GET /api/conversations/{conversation_id}/export", conversation_id=conversation)


async def chat(stage: Stage) -> None:
    """The simplest client: one main conversation with the default agent, which gets a title."""
    waited: Json = {"query": {"wait": "true"}, "headers": JSON}
    stage.script([Say("It pulls.")], [Say("Gravity")])
    await stage.call("POST /api/chat", body={"content": "What is gravity?"}, **waited)

    async def has_title() -> bool:
        return (await stage.quietly("GET", "/api/conversations"))["items"][0]["title"] == "Gravity"

    await until(has_title)
    stage.script([Say("Text.")])
    await stage.call("POST /api/chat", wire="text", body={"content": "As text"}, query={"dialect": "text"})
    await stage.call("POST /api/chat", body={}, headers=JSON)
    await stage.call("GET /api/chat/messages")
    await stage.call("GET /api/chat/messages", query={"order": "desc", "limit": 1})
    await stage.call("GET /api/chat/messages", user="bob")
    await stage.call("GET /api/conversations")


SCENARIOS = (streams, turns, failures, stopping, queueing, branches, chat)
