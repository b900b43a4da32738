"""Complete conversations from outside: what they say of their files can be in a header and in a list."""

from dataclasses import replace

import pytest

from tests.making import ALICE, NOW
from threadkeep.domain.conversation import Conversation, WholeConversation
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import AgentId, MessageId, PayloadId, new_uuid
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import FilePart, Part, StepPart, TextPart
from threadkeep.domain.payload import Payload, PayloadKind
from threadkeep.imports.checks import check_whole

TYPES = {
    "text/plain": "text/plain",
    "image/svg+xml": "image/svg+xml",
    "Text/HTML; charset=utf-8": "text/html",
    "text/html\r\nX-Injected: 1\r\n\r\n<script>": "application/octet-stream",
    "text/中": "application/octet-stream",
    "text/\x00": "application/octet-stream",
    "": "application/octet-stream",
    "x" * 1000: "application/octet-stream",
}
NAMES = {
    "Lease: \"May\" <draft>?.md": "Lease: \"May\" <draft>?.md",
    "租约.pdf": "租约.pdf",
    "a\r\nX-Injected: 1": "a_X-Injected_ 1",
    "../\x1b[31m": "_[31m",
    "\u202etxt.exe": "_txt.exe",
    " ": "file.txt",
    "x" * 1000 + ".txt": "x" * 196 + ".txt",
}  # fmt: skip


def whole_with(media_type: str, file_name: str) -> WholeConversation:
    started = Conversation.start(ALICE, AgentId(new_uuid()), NOW)
    id_ = PayloadId(new_uuid())
    payload = Payload(id_, started.id, PayloadKind.FILE, media_type, file_name, 1, "0" * 64, NOW)
    part = FilePart(file_id=id_, file_name=file_name, media_type=media_type, size=1)
    user, completed = MessageRole.USER, MessageStatus.COMPLETED
    asked = Message(MessageId(new_uuid()), started.id, 1, None, user, (part,), completed, NOW, NOW)
    return WholeConversation(replace(started, last_seq=1), (), [asked], (), [payload])


@pytest.mark.parametrize("given", TYPES)
def test_media_types_are_ones_that_a_header_can_have(given: str):
    checked = check_whole(whole_with(given, "a.txt"))
    (payload,), (part,) = checked.payloads, checked.messages[0].parts
    assert payload.media_type == TYPES[given]
    assert isinstance(part, FilePart) and part.media_type == (TYPES[given] if given else "")


@pytest.mark.parametrize("given", NAMES)
def test_names_are_ones_that_a_header_and_a_list_can_show(given: str):
    checked = check_whole(whole_with("text/plain", given))
    (payload,), (part,) = checked.payloads, checked.messages[0].parts
    assert isinstance(part, FilePart)
    assert [payload.file_name, part.file_name] == [NAMES[given]] * 2


def whole_with_step(part: Part) -> WholeConversation:
    started = Conversation.start(ALICE, AgentId(new_uuid()), NOW)
    parts, role, completed = (part, TextPart(text="Done.")), MessageRole.ASSISTANT, MessageStatus.COMPLETED
    reply = Message(MessageId(new_uuid()), started.id, 1, None, role, parts, completed, NOW, NOW)
    return WholeConversation(replace(started, last_seq=1), (), [reply], (), ())


STEP = StepPart(
    step_id="1", name="refund", status="ok", at=NOW, title="Refunded", parent_id="2", agent="billing"
)


def test_steps_of_a_program_are_taken_as_they_are():
    assert check_whole(whole_with_step(STEP)).messages[0].parts[0] == STEP


@pytest.mark.parametrize(
    "change",
    [
        {"status": "running"},
        {"step_id": ""},
        {"name": "x" * 129},
        {"title": "x" * 201},
        {"parent_id": "x" * 10_000},
        {"agent": "\x00"},
    ],
)
def test_step_that_no_program_could_have_had_is_refused(change: dict[str, str]):
    with pytest.raises(InvalidRequest):
        check_whole(whole_with_step(replace(STEP, **change)))
