"""A share: which messages it has, and what it shows of them."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.contract.test_shares import make_share
from tests.domain.test_message import message
from threadkeep.domain.approval import ApprovalAction, CallApproval, Decision
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, MessageId, PayloadId, TurnId, UserId, new_uuid
from threadkeep.domain.message import Failure, Message, MessageStatus, Usage
from threadkeep.domain.parts import (
    FilePart,
    NoticePart,
    Part,
    QuestionPart,
    RetrievalPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
    citations_of,
)
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.sharing.share import runs_of
from threadkeep.domain.sharing.shown import FAILED, files_of, shown_of
from threadkeep.domain.tool_call import MODEL_READS, ToolCall, ToolCallStatus

SECRET = "only-for-the-owner"
ASKED = CallApproval(
    request_id=new_uuid(),
    message=SECRET,
    expires_at=9,
    decision=Decision(action=ApprovalAction.EDIT, at=1, arguments={"a": SECRET}),
)
ANSWER = Decision(action=ApprovalAction.ANSWER, at=1, content="Oslo")


def call(id_: str, server: str, **changes: Any) -> ToolCallPart:
    made = ToolCall(
        turn_id=TurnId(new_uuid()),
        tool_call_id=id_,
        message_id=MessageId(new_uuid()),
        tool_name=f"{server}_tool",
        server=server,
        arguments={},
        status=ToolCallStatus.OK,
        created_at=1,
        result=SECRET,
    )
    return ToolCallPart(call=replace(made, **changes), approval=ASKED)


def image(name: str, tool_call_id: str | None = None) -> FilePart:
    return FilePart(file_id=PayloadId(new_uuid()), file_name=name, tool_call_id=tool_call_id)


def question(tool_call_id: str | None, text: str) -> QuestionPart:
    return QuestionPart(
        request_id=new_uuid(), message=text, at=1, expires_at=9, tool_call_id=tool_call_id, decision=ANSWER
    )


FOUND = RetrievalHit("harbour.md", "Ferries leave at noon.", 0.9, chunk_id="c", document_id="d")
PARTS: tuple[Part, ...] = (
    TextPart(text=SECRET, superseded=True),
    ThoughtPart(text="A thought.", started_at=1),
    call("role", "promptx"),
    RetrievalPart(query=SECRET, hits=(RetrievalHit("memory", SECRET, 1.0, "m"),), at=1, tool_call_id="role"),
    image(SECRET, "role"),
    call("again", "results"),
    call("before", "history"),
    RetrievalPart(query="ferry", hits=(FOUND,), at=1),
    call("ask", "user", result="Oslo"),
    question("ask", "Which town?"),
    question("book", SECRET),  # a form that a server asked for
    question(None, "Which port?"),  # by an agent in code
    call(
        "book",
        "office",
        result="Booked.",
        artifact_ids=(PayloadId("made"),),
        refs={MODEL_READS: PayloadId(SECRET), "result": PayloadId("whole")},
    ),
    image("map.png", "book"),
    UserTextPart(message_id=SECRET, text="Hurry.", at=1),
    StepPart(step_id="1", name="find_ferry", status="ok", at=1, duration_ms=4),
    NoticePart(code="MODEL_FALLBACK", message=SECRET, at=1),
    TextPart(text="At noon [2]."),
)


def reply() -> Message:
    failure = Failure("E", SECRET)
    return message(MessageStatus.STREAMING).finish(
        MessageStatus.FAILED, PARTS, 2, usage=Usage(1, 1), error=failure
    )


def kinds(shown: Message) -> list[str]:
    return [part.type for part in shown.parts]


def test_share_with_tools_shows_the_work_and_nothing_private():
    shown = shown_of(reply(), with_tools=True)
    assert SECRET not in repr(shown)
    assert kinds(shown) == [
        "thought", "retrieval", "retrieval", "question", "question", "tool_call", "file", "user_text", "step",
        "text",
    ]  # fmt: skip
    assert (shown.usage, shown.model) == (None, None)
    assert shown.error == Failure("E", FAILED)
    assert citations_of(shown.parts)[1].title == "harbour.md"  # still the second
    assert len(list(files_of(shown))) == 2


def test_share_without_tools_shows_what_was_said():
    shown = shown_of(reply(), with_tools=False)
    assert SECRET not in repr(shown)
    assert kinds(shown) == ["question", "question", "file", "user_text", "text"]
    assert len(list(files_of(shown))) == 1


def test_share_without_tools_leaves_out_the_marks_of_its_sources_and_no_others():
    said = "Noon [2], or one[1][2].\n`a[1]` and [1](b) and [3]\n```\nrow[2]\n~~~\n```\nEnd [1]"
    cited = replace(reply(), parts=(*PARTS[:-1], TextPart(text=said)))
    assert shown_of(cited, with_tools=True).content == said
    shown = shown_of(cited, with_tools=False)
    assert shown.content == "Noon, or one.\n`a[1]` and [1](b) and [3]\n```\nrow[2]\n~~~\n```\nEnd"
    uncited = message(content=said)
    assert shown_of(uncited, with_tools=False).content == said


@given(st.lists(st.integers(1, 60), unique=True, min_size=1).map(sorted), st.integers(0, 60))
def test_runs_are_the_numbers_they_were_made_of(seqs: list[int], after: int):
    share = make_share(Conversation.start(UserId("a"), AgentId(new_uuid()), 1), runs=runs_of(seqs))
    assert share.message_count == len(seqs)
    assert [share.position(seq) for seq in seqs] == [*range(1, len(seqs) + 1)]
    assert [share.seq_at(number) for number in range(len(seqs) + 2)] == [None, *seqs, None]
    rest = [seq for first, last in share.runs_after(after) for seq in range(first, last + 1)]
    assert rest == [seq for seq in seqs if seq > after]
