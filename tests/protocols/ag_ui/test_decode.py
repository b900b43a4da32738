"""What AG-UI clients send, and what of it counts."""

from typing import Any

import msgspec
import pytest

from threadkeep.domain.approval import ApprovalAction, ApprovalScope, Decision
from threadkeep.domain.errors import InvalidRequest
from threadkeep.protocols.ag_ui.decode import RunInput, decisions_of, question_of, results_of, tools_of
from threadkeep.protocols.files import ReceivedFile

FILE = "01890a5d-ac96-774b-bcce-b302099a8057"


def sent(*messages: dict[str, Any], **fields: Any) -> RunInput:
    body: dict[str, Any] = {
        "threadId": "t",
        "runId": "r",
        "context": [],
        "forwardedProps": {},
        "messages": messages,
    }
    return msgspec.json.decode(msgspec.json.encode(body | fields), type=RunInput)


def user(content: Any, id_: str = "u1") -> dict[str, Any]:
    return {"id": id_, "role": "user", "content": content}


def test_version_is_told_since_1_0():
    assert sent(protocolVersion="1.0").is_1_0
    assert not sent().is_1_0


def test_question_is_the_last_message_after_the_texts_of_the_list():
    asked = question_of(
        sent(
            user("Hi"),
            {"id": "a1-thought", "role": "reasoning", "content": "hm"},
            {"id": "a1", "role": "assistant", "content": "Hello"},
            {"id": "c1", "role": "assistant", "toolCalls": [{"id": "c1", "type": "function"}]},
            {"id": "c1-result", "role": "tool", "toolCallId": "c1", "content": "4"},
            {"id": "a1-sources", "role": "activity", "activityType": "x", "content": {"sources": []}},
            user("Why?", "u2"),
        )
    )
    assert asked is not None
    assert (asked.id, asked.text, asked.before) == ("u2", "Why?", ["u1", "a1"])
    assert question_of(sent(user("Hi"), {"id": "a1", "role": "assistant", "content": "Hello"})) is None
    assert question_of(sent()) is None


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "url", "value": "data:image/png;base64,aGk="}},
        {"type": "binary", "mimeType": "image/png", "data": "aGk="},
        {"type": "binary", "mimeType": "image/png", "url": "data:image/png;base64,aGk="},
        {
            "type": "document",
            "source": {"type": "data", "value": "aGk=", "mimeType": "text/plain"},
            "metadata": {"filename": "a.txt"},
        },
    ],
)
def test_file_arrives_in_every_form(part: dict[str, Any]):
    asked = question_of(sent(user([{"type": "text", "text": "Look:"}, part, {"type": "text", "text": "?"}])))
    assert asked is not None
    assert asked.text == "Look:\n?"
    name = "a.txt" if "metadata" in part else part["type"]
    (file,) = asked.files
    assert (file.name, file.data.rpartition(",")[2]) == (name, "aGk=")
    assert isinstance(file, ReceivedFile)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "binary", "mimeType": "image/png", "id": FILE},
        {"type": "image", "source": {"type": "url", "value": f"https://host/chat/api/files/{FILE}"}},
        {"type": "document", "source": {"type": "url", "value": f"/api/files/{FILE}?preview=true"}},
    ],
)
def test_own_file_is_named_instead_of_sent(part: dict[str, Any]):
    asked = question_of(sent(user([part])))
    assert asked is not None
    (file,) = asked.files
    assert (file.data, file.file_id) == ("", FILE)


def test_addresses_are_not_fetched():
    elsewhere = {"type": "image", "source": {"type": "url", "value": "https://host/a.png"}}
    with pytest.raises(InvalidRequest, match="doesn't fetch addresses"):
        question_of(sent(user([elsewhere])))


def test_results_are_those_since_the_last_question():
    def result(call: str, **fields: Any) -> dict[str, Any]:
        return {"id": f"of {call}", "role": "tool", "toolCallId": call, **fields}

    given = results_of(
        sent(
            result("c0", content="old"),
            user("Hi"),
            {"id": "c1", "role": "assistant", "toolCalls": []},
            result("c1", content="4"),
            {"id": "c2", "role": "assistant", "toolCalls": []},
            result("c2", content="", error="No."),
        ),
        now=7,
    )
    assert given == {
        "c1": Decision(action=ApprovalAction.RESULT, at=7, content="4"),
        "c2": Decision(action=ApprovalAction.RESULT, at=7, error="No."),
    }


def decided(payload: Any, status: str = "resolved") -> Decision:
    resume = [{"interruptId": "q1", "status": status, "payload": payload, "metadata": {"by": "me"}}]
    return decisions_of(sent(resume=resume), now=7)["q1"]


def test_answers_to_interrupts():
    def decision(action: str, **fields: Any) -> Decision:
        return Decision(action=ApprovalAction(action), at=7, **fields)

    everywhere, edited = ApprovalScope.CONVERSATION, {"to": "bob"}
    assert decided(True) == decided({"approved": True}) == decided({"action": "allow"}) == decision("allow")
    assert decided(False) == decided({"approved": False}) == decided(True, "cancelled") == decision("deny")
    assert decided({"approved": True, "scope": "conversation"}) == decision("allow", scope=everywhere)
    assert decided({"approved": True, "arguments": edited}) == decision("edit", arguments=edited)
    assert decided({"action": "edit", "arguments": edited}) == decision("edit", arguments=edited)
    assert decided("Blue") == decided({"action": "answer", "content": "Blue"})
    assert decided({"colour": "blue"}) == decision("answer", content={"colour": "blue"})
    assert decisions_of(sent(resume=None), now=7) == {}


@pytest.mark.parametrize(
    "payload", [None, {"approved": True, "scope": "all"}, {"approved": True, "arguments": "x"}]
)
def test_answer_that_says_nothing_is_refused(payload: Any):
    with pytest.raises(InvalidRequest):
        decided(payload)


def test_tools_of_the_client():
    schema = {"type": "object"}
    (tool, bare) = tools_of(
        sent(tools=[{"name": "a", "description": "A", "parameters": schema}, {"name": "b"}])
    )
    assert (tool.name, tool.description, tool.parameters) == ("a", "A", schema)
    assert (bare.description, bare.parameters) == ("", {})
    with pytest.raises(InvalidRequest, match="JSON schema"):
        tools_of(sent(tools=[{"name": "a", "parameters": []}]))
