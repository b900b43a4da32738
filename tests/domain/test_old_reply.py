"""Replies of version 1 as parts: whatever was beside their text is shown as it was."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.ids import ConversationId, MessageId, PayloadId, TurnId
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.old_reply import OldReply
from threadkeep.domain.parts import FilePart, Part, ThoughtStep, ToolCallPart
from threadkeep.domain.retrieval import Citation, RetrievalHit
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
sources = st.lists(st.sampled_from(["a", "b", "a, b"]), min_size=1, max_size=4)


def call(id_: str, at: int, took: int = 0) -> ToolCall:
    return ToolCall(
        turn_id=TurnId("t"),
        tool_call_id=id_,
        message_id=MessageId("m"),
        tool_name=f"tool {id_}",
        server="s",
        arguments={},
        status=ToolCallStatus.OK,
        created_at=at,
        duration_ms=took,
    )


def reply(old: OldReply) -> Message:
    return Message(
        id=MessageId("m"),
        conversation_id=ConversationId("c"),
        seq=2,
        turn_id=TurnId("t"),
        role=MessageRole.ASSISTANT,
        parts=old.parts(),
        status=MessageStatus.FAILED,
        created_at=0,
    )


@st.composite
def old_replies(draw: st.DrawFn) -> OldReply:
    """A reply as the fold of version 1 made it."""
    steps: list[ThoughtStep] = []
    citations: list[Citation] = []
    calls: list[ToolCall] = []
    at = 0
    for kind in draw(
        st.lists(st.sampled_from(["thought", "tool", "retrieval", "notice", "node"]), max_size=8)
    ):
        at += draw(st.integers(0, 3))
        took = draw(st.integers(0, 3))
        match kind:
            case "tool":
                calls.append(call(str(len(calls)), at, took))
                steps.append(ThoughtStep("tool", calls[-1].tool_name, "", at, took, calls[-1].tool_call_id))
            case "retrieval":
                found = draw(sources)
                hits = [
                    RetrievalHit(it, draw(texts), 0.5, document_id=draw(st.sampled_from([None, "d"])))
                    for it in found
                ]
                citations += [Citation.of(hit, len(citations) + number) for number, hit in enumerate(hits, 1)]
                steps.append(
                    ThoughtStep(
                        "retrieval", draw(st.text(min_size=1)), ", ".join(dict.fromkeys(found)), at, 0
                    )
                )
            case "notice":
                steps.append(ThoughtStep("notice", draw(texts), draw(texts), at, 0))
            case "thought":
                steps.append(ThoughtStep("thought", "Thought", draw(texts), at, took))
            case _:
                steps.append(ThoughtStep("node", draw(texts), draw(texts), at, took))
    return OldReply(
        content=draw(texts),
        created_at=0,
        steps=tuple(steps),
        citations=tuple(citations),
        files=tuple(FilePart(file_id=PayloadId(it)) for it in draw(st.lists(texts, max_size=2))),
        calls=tuple(calls),
    )


@given(old_replies())
def test_parts_show_what_was_kept(old: OldReply):
    rebuilt = reply(old)
    assert rebuilt.content == old.content
    assert rebuilt.thought_process == old.steps
    assert rebuilt.citations == old.citations
    assert rebuilt.tool_calls == old.calls
    assert rebuilt.artifact_ids == tuple(file.file_id for file in old.files)
    iterations = [part.iteration for part in rebuilt.parts]
    assert iterations == sorted(iterations)


def iterations_of(old: OldReply) -> list[tuple[int, str]]:
    return [(part.iteration, name_of(part)) for part in old.parts()]


def name_of(part: Part) -> str:
    return part.call.tool_call_id if isinstance(part, ToolCallPart) else part.type


def test_tools_that_ran_at_the_same_time_belong_to_one_call_of_the_model():
    calls = (call("a", 10, 5), call("b", 11, 2), call("c", 20, 1), call("d", 21, 1))
    steps = tuple(
        ThoughtStep("tool", it.tool_name, "", it.created_at, it.duration_ms or 0, it.tool_call_id)
        for it in calls
    )
    old = OldReply(content="Done.", created_at=0, steps=steps, calls=calls)
    assert iterations_of(old) == [(1, "a"), (1, "b"), (2, "c"), (2, "d"), (3, "text")]


def test_thought_after_a_tool_begins_the_next_call_of_the_model():
    tool = call("a", 10)
    thought = ThoughtStep("thought", "Thought", "Hm.", 10, 0)
    steps = (thought, ThoughtStep("tool", tool.tool_name, "", 10, 0, "a"), thought)
    old = OldReply(content="Done.", created_at=0, steps=steps, calls=(tool,))
    assert iterations_of(old) == [(1, "thought"), (1, "a"), (2, "thought"), (2, "text")]


def test_calls_without_a_step_come_before_the_text():
    old = OldReply(content="Done.", created_at=0, calls=(call("a", 10), call("b", 10)))
    assert iterations_of(old) == [(1, "a"), (1, "b"), (2, "text")]


def test_sources_without_a_search_are_cited_and_are_no_step():
    citation = Citation(1, "law.pdf", "§ 1", 0.5, url="https://example.org", file_name="law.pdf", page=3)
    old = OldReply(content="So [1].", created_at=5, citations=(citation,))
    assert (reply(old).citations, reply(old).thought_process) == ((citation,), ())


def test_search_whose_sources_do_not_fit_the_citations_loses_none_of_them():
    step = ThoughtStep("retrieval", "q", "elsewhere", 5, 0)
    citation = Citation(1, "law.pdf", "§ 1", 0.5)
    old = OldReply(content="So [1].", created_at=5, steps=(step, step), citations=(citation,))
    assert reply(old).citations == (citation,)
    assert [it.title for it in reply(old).thought_process] == ["q", "q"]


def test_text_alone_is_of_the_first_call():
    old = OldReply(content="Hello.", created_at=0)
    assert iterations_of(old) == [(1, "text")]
    assert replace(old, content="").parts() == ()
