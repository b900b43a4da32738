"""A run of another engine as the parts of a reply."""

from dataclasses import replace

import pytest

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.execution import ExecutedTool, ExecutionEvent, ExecutionEventType
from threadkeep.domain.ids import AgentId, MessageId, PayloadId, UserId
from threadkeep.domain.message import Message, MessageStatus
from threadkeep.domain.parts import FilePart, RetrievalPart, TextPart, ThoughtPart, ToolCallPart
from threadkeep.domain.retrieval import Citation
from threadkeep.domain.tool_call import ToolCallStatus
from threadkeep.engine.fold import fold
from threadkeep.log.replies import events_of
from threadkeep.services.recording import RecordedTurn, record

CONVERSATION = replace(Conversation.start(UserId("u"), AgentId("a"), 0), last_seq=4, tip_id=MessageId("m4"))
FILE = FilePart(file_id=PayloadId("f"), file_name="a.csv", media_type="text/csv", size=7)
START = ExecutionEvent("1", ExecutionEventType.STARTED, "r", 1_000, input="What is due?")
SEARCH = ExecutionEvent(
    "2",
    ExecutionEventType.NODE_COMPLETED,
    "r",
    1_500,
    node="search",
    detail="looked",
    duration_ms=400,
    tools=(ExecutedTool("find", {"q": "due"}, result=1, tool_call_id="c"), ExecutedTool("find", {})),
    citations=(Citation(0, "law.pdf", "§1", 0.5, file_name="law.pdf", page=3),),
)
WRITE = ExecutionEvent("3", ExecutionEventType.NODE_COMPLETED, "r", 1_900, node="write", files=(FILE,))
END = ExecutionEvent("4", ExecutionEventType.COMPLETED, "r", 2_000, output="In May [1].")


def recorded(*events: ExecutionEvent) -> RecordedTurn:
    turn = record(CONVERSATION.id, events)
    assert turn is not None
    return turn


def reply_of(*events: ExecutionEvent) -> Message:
    return recorded(*events).reply


def test_nodes_tools_sources_files_and_output_become_parts_in_their_order():
    reply = reply_of(END, WRITE, SEARCH, START)
    thought, first, second, found, writing, file, said = reply.parts
    assert thought == ThoughtPart(
        text="looked", title="search", started_at=1_100, duration_ms=400, iteration=1
    )
    assert isinstance(first, ToolCallPart)
    assert isinstance(second, ToolCallPart)
    assert [(it.call.tool_call_id, it.iteration) for it in (first, second)] == [("c", 1), ("2:1", 1)]
    assert isinstance(found, RetrievalPart)
    assert (found.query, found.hits[0].source, found.iteration) == ("What is due?", "law.pdf", 1)
    assert isinstance(writing, ThoughtPart)
    assert writing.title == "write"
    assert file == replace(FILE, iteration=2)
    assert said == TextPart(text="In May [1].", iteration=3)


def test_older_fields_are_views_of_these_parts():
    reply = reply_of(START, SEARCH, WRITE, END)
    assert (reply.content, reply.status) == ("In May [1].", MessageStatus.COMPLETED)
    assert [(it.kind, it.title) for it in reply.thought_process] == [
        ("node", "search"),
        ("tool", "find"),
        ("tool", "find"),
        ("retrieval", "What is due?"),
        ("node", "write"),
    ]
    assert [(it.index, it.title, it.file_name, it.page) for it in reply.citations] == [
        (1, "law.pdf", "law.pdf", 3)
    ]
    assert reply.artifact_ids == ("f",)


def test_its_messages_follow_the_end_of_the_path():
    turn = recorded(START, END)
    grown, asked = CONVERSATION.add_run(turn.user_message, turn.reply.id, 3_000, title=turn.title)
    assert (asked.seq, asked.parent_id, turn.reply.parent_id) == (5, "m4", asked.id)
    assert (grown.last_seq, grown.tip_id, grown.title) == (6, turn.reply.id, "What is due?")


@pytest.mark.parametrize("given", [("c", "c", "c"), (None, "2:0", "2:1:1"), ("2:1:1", "2:1:1", "2:1:1")])
def test_each_call_has_an_id_of_its_own_whatever_ids_the_engine_gave(given: tuple[str | None, ...]):
    tools = tuple(ExecutedTool("x", {}, tool_call_id=it) for it in given)
    reply = reply_of(START, replace(SEARCH, tools=tools), END)
    assert len({it.tool_call_id for it in reply.tool_calls}) == 3


def test_log_of_the_run_folds_to_the_same_parts_as_far_as_events_tell():
    turn = recorded(START, SEARCH, WRITE, END)
    reply = turn.reply
    empty = replace(reply, parts=(), status=MessageStatus.PENDING)
    folded = fold(empty, events_of(turn.turn, reply))
    assert [it.type for it in folded.parts] == [it.type for it in reply.parts if it.type != "file"]
    assert [it.iteration for it in folded.parts] == [it.iteration for it in reply.parts if it.type != "file"]
    assert (folded.content, folded.citations) == (reply.content, reply.citations)
    assert [it.detail for it in folded.thought_process if it.kind == "thought"] == ["search: looked", "write"]
    assert [replace(it, duration_ms=None) for it in folded.tool_calls] == list(reply.tool_calls)


def test_tool_that_was_left_running_is_interrupted_and_no_time_is_negative():
    node = replace(
        SEARCH, at=100, duration_ms=400, tools=(ExecutedTool("x", {}, status=ToolCallStatus.RUNNING),)
    )
    thought, call, *_ = reply_of(replace(START, at=0), node, END).parts
    assert isinstance(call, ToolCallPart)
    assert call.call.status is ToolCallStatus.INTERRUPTED
    assert isinstance(thought, ThoughtPart)
    assert (thought.started_at, call.call.created_at) == (0, 0)


def test_run_without_an_end_is_no_turn_yet():
    assert record(CONVERSATION.id, [START, SEARCH]) is None
