"""What the AI SDK's and assistant-ui's requests mean."""

import base64
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.recorded import patient, values
from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.client_tool import ClientTool
from threadkeep.domain.errors import InvalidRequest
from threadkeep.protocols.ai_sdk.decode import (
    Answer,
    ChatBody,
    Regenerate,
    Request,
    Submit,
    model_of,
    request_of,
    tools_of,
)
from threadkeep.protocols.files import ReceivedFile
from threadkeep.wire.decoding import decode_body

decoder = msgspec.json.Decoder(ChatBody)
NOW = 1_000
HI = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
HELLO = {
    "id": "a1",
    "role": "assistant",
    "parts": [{"type": "step-start"}, {"type": "text", "text": "Hello."}],
}
AGAIN = {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "Again"}]}


def body(**fields: Any) -> ChatBody:
    return decode_body(msgspec.json.encode({"id": "c1", **fields}), decoder)


def asked(**fields: Any) -> Request:
    return request_of(body(**fields), NOW)


def test_message_is_placed_by_the_ids_before_it():
    assert asked(messages=[HI, HELLO, AGAIN]) == Submit("u2", "Again", (), ("u1", "a1"), False)


def test_list_of_one_is_added_to_the_end_unless_it_must_be_the_whole_list():
    assert asked(messages=[HI]) == Submit("u1", "Hi", (), (), False)
    assert asked(messages=[HI], messageId="u1") == Submit("u1", "Hi", (), (), True)  # an edit
    assert asked(messages=[HI], tools={}) == Submit("u1", "Hi", (), (), True)  # assistant-ui
    assert asked(message=HI, tools={}) == Submit("u1", "Hi", (), (), False)  # the newest alone


def test_regenerate_names_the_question_and_maybe_the_answer():
    assert asked(messages=[HI], trigger="regenerate-message", messageId="a1") == Regenerate("u1", "a1")
    assert asked(messages=[HI], trigger="regenerate-message") == Regenerate("u1", None)


def test_files_come_as_data_urls_or_are_ours():
    png = base64.b64encode(b"\x89PNG").decode()
    ours = "01890a5d-ac96-774b-bcce-b302099a8057"
    urls = [
        ("folder\\dot.png", f"data:image/png;base64,{png}"),
        (None, "data:text/plain,a%20b"),
        ("old.png", f"https://here/api/files/{ours}?preview=true"),
    ]
    parts = [{"type": "file", "mediaType": "x/y", "url": url, "filename": name} for name, url in urls]
    sent = asked(messages=[{"id": "u1", "role": "user", "parts": parts}])
    assert isinstance(sent, Submit)
    assert sent.files == (
        ReceivedFile("folder\\dot.png", f"data:image/png;base64,{png}"),
        ReceivedFile("file", "data:text/plain,a%20b"),
        ReceivedFile("old.png", file_id=ours),
    )


@pytest.mark.parametrize("url", ["https://example.com/a.png", "", "blob:x"])
def test_other_files_are_refused(url: str):
    part = {"type": "file", "mediaType": "image/png", "url": url}
    with pytest.raises(InvalidRequest):
        asked(messages=[{"id": "u1", "role": "user", "parts": [part]}])


def tool(id_: str, state: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool-locate", "toolCallId": id_, "state": state, "input": {}, **fields}


def test_answers_are_those_of_the_last_step():
    parts: list[Any] = [
        tool("t0", "output-available", output="old"),
        {"type": "step-start"},
        tool("t1", "approval-responded", approval={"id": "r1", "approved": True}),
        tool("t2", "approval-responded", approval={"id": "r2", "approved": False, "reason": "No."}),
        tool("t3", "output-available", output={"at": 1}),
        tool("t4", "output-error", errorText="No signal."),
        tool("t5", "output-available", output="ours", providerExecuted=True),
        tool("t6", "input-available"),
        {"type": "data-anything", "text": 5, "url": []},
    ]
    sent = asked(messages=[HI, {"id": "a1", "role": "assistant", "parts": parts}], messageId="a1")
    assert sent == Answer(
        {
            "r1": Decision(action=ApprovalAction.ALLOW, at=NOW),
            "r2": Decision(action=ApprovalAction.DENY, at=NOW),
            "t3": Decision(action=ApprovalAction.RESULT, at=NOW, content={"at": 1}),
            "t4": Decision(action=ApprovalAction.RESULT, at=NOW, error="No signal."),
        }
    )


@pytest.mark.parametrize("messages", [[], [HI, HELLO], [{"id": "s", "role": "system", "parts": []}]])
def test_request_without_anything_new_is_refused(messages: list[Any]):
    with pytest.raises(InvalidRequest):
        asked(messages=messages)


def test_assistant_ui_brings_tools_and_a_model():
    schema = {"type": "object"}
    sent = body(
        tools={"locate": {"description": "Where?", "parameters": schema}},
        config={"modelName": "big", "apiKey": "…"},
        system="Obey.",
        callSettings={"temperature": 2},
        metadata=None,
    )
    assert tools_of(sent) == (ClientTool(name="locate", description="Where?", parameters=schema),)
    assert model_of(sent) == "big"
    assert model_of(body(model="small", config={"modelName": "big"})) == "small"
    assert (tools_of(body()), model_of(body())) == ((), None)
    with pytest.raises(InvalidRequest):
        tools_of(body(tools=[{"name": "locate"}]))


fields = st.dictionaries(st.sampled_from(["text", "url", "state", "toolCallId", "approval"]), values)
types = st.sampled_from(["text", "file", "tool-x", "dynamic-tool", "step-start", "data-x"])
any_parts = st.lists(st.tuples(fields, types))


@patient
@given(any_parts, st.sampled_from(["user", "assistant"]))
def test_any_parts_are_read_or_refused(sent: list[tuple[dict[str, Any], str]], role: str):
    parts = [{**others, "type": type_} for others, type_ in sent]
    with suppress(InvalidRequest):
        asked(messages=[HI, {"id": "x", "role": role, "parts": parts}])
