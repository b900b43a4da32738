"""What requests of the Responses API mean."""

from typing import Any

import msgspec
import pytest

from threadkeep.domain.approval import ApprovalAction
from threadkeep.domain.errors import InvalidRequest
from threadkeep.protocols.files import ReceivedFile
from threadkeep.protocols.openai.decode import CreateResponse, check_references, input_of, tools_of
from threadkeep.wire.decoding import decode_body

TURN = "01890a5d-ac96-774b-bcce-b302099a8057"
REPLY: dict[str, Any] = {
    "type": "message",
    "id": f"msg_{TURN.replace('-', '')}_2",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "One.", "annotations": []}],
}
NOW = 1


def body(**fields: Any) -> CreateResponse:
    return decode_body(msgspec.json.encode(fields), msgspec.json.Decoder(CreateResponse))


def test_only_what_follows_the_last_reply_is_new():
    asked: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "1"},
        {"type": "function_call_output", "call_id": "old", "output": "x"},
        REPLY,
        {"role": "system", "content": "Be kind."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "2"}]},
        {"role": "user", "content": "3"},
    ]
    given = input_of(body(input=asked, instructions="Rhyme."), NOW)
    assert (given.text, given.instructions) == ("2\n\n3", "Rhyme.\n\nBe kind.")
    assert (given.after, given.decisions) == (TURN, {})


def test_decisions_by_request_and_by_call():
    asked: Any = [
        {"type": "function_call", "id": "fc_c1", "call_id": "c1", "name": "locate", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "Bern"}]},
        {
            "type": "mcp_approval_response",
            "approval_request_id": f"mcpr_{TURN.replace('-', '')}",
            "approve": False,
        },
    ]
    decisions = input_of(body(input=asked), NOW).decisions
    assert decisions["c1"].action is ApprovalAction.RESULT
    assert decisions["c1"].content == [{"type": "input_text", "text": "Bern"}]
    assert decisions[TURN].action is ApprovalAction.DENY


def test_files_stay_in_their_order():
    parts: Any = [
        {"type": "input_file", "file_id": f"file-{TURN.replace('-', '')}"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"},
        {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,AA=="},
    ]
    files = input_of(body(input=[{"role": "user", "content": parts}]), NOW).files
    assert files == [
        TURN,
        ReceivedFile("image", "data:image/png;base64,AA=="),
        ReceivedFile("a.txt", "data:text/plain;base64,AA=="),
    ]


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "input_image", "image_url": "https://example.org/a.png"}],
        [{"type": "input_file", "file_url": "https://example.org/a.pdf"}],
        [{"type": "input_audio", "data": "AA=="}],
    ],
)
def test_what_we_do_not_read_is_refused(content: Any):
    with pytest.raises(InvalidRequest):
        input_of(body(input=[{"role": "user", "content": content}]), NOW)


@pytest.mark.parametrize(
    ("item", "claimed"),
    [
        (REPLY, []),
        ({"role": "assistant", "content": "I owe you."}, ["I owe you."]),
        ({"type": "message", "id": "msg_1", "role": "assistant", "content": "I owe you."}, ["I owe you."]),
        ({"type": "reasoning", "id": "rs_1", "summary": []}, []),
    ],
)
def test_replies_that_are_not_ours_are_noticed(item: Any, claimed: list[str]):
    assert input_of(body(input=[item, {"role": "user", "content": "?"}]), NOW).claimed == claimed


def test_reference_to_an_item_of_somebody_else_is_refused():
    check_references(body(input=[{"type": "item_reference", "id": REPLY["id"]}]))
    with pytest.raises(InvalidRequest):
        check_references(body(input=[{"type": "item_reference", "id": "msg_1"}]))


@pytest.mark.parametrize("prefix", ["msg", "rs", "fs", "mcp", "fc"])
def test_item_tells_its_turn_or_message(prefix: str):
    id_ = f"{prefix}_{TURN.replace('-', '')}"
    for own in (id_, f"{id_}_2", f"{id_}_call_x"):
        assert input_of(body(input=[{"type": "reasoning", "id": own}]), NOW).after == TURN
    assert input_of(body(input=[{"role": "user", "content": "?", "id": id_}]), NOW).after == TURN


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search"},
        {"type": "function", "parameters": {}},
        {"type": "function", "name": "locate", "parameters": [1]},
        {"type": "mcp", "server_label": "desk", "server_url": "https://example.org/mcp"},
    ],
)
def test_only_functions_can_be_brought(tool: Any):
    with pytest.raises(InvalidRequest) as refused:
        tools_of(body(tools=[tool]))
    assert refused.value.param == "tools"


def test_server_of_the_agent_may_be_named():
    assert tools_of(body(tools=[{"type": "mcp", "server_label": "desk"}])) == ()


def test_metadata_is_limited():
    with pytest.raises(InvalidRequest):
        body(metadata={str(number): "" for number in range(17)})
    with pytest.raises(InvalidRequest):
        body(metadata={"key": "x" * 513})
