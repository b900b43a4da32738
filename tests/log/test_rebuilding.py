"""Replies of version 1 from the logs of their turns: only from one that is whole and agrees with them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.making import NOW, chunk_of
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.events import Done, IterationStart, Text, ToolCalled, ToolResultStored, TurnStart
from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.message import Message, MessageStatus, Usage
from threadkeep.domain.old_reply import OldReply
from threadkeep.domain.parts import ThoughtStep
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.log.rebuilding import rebuild
from threadkeep.ports.turn_log import LogChunk

BEGUN = Conversation.start(UserId("alice"), AgentId("a"), NOW).begin_turn("?", NOW)
TURN = BEGUN.turn.id
CALL = ToolCall(
    TURN, "1", BEGUN.assistant_message.id, "add", "math", {}, ToolCallStatus.OK, NOW, result=3, duration_ms=2
)
OLD = OldReply(
    content="First.Then.",
    created_at=NOW,
    steps=(ThoughtStep("tool", "add", "", NOW, 9, "1"),),
    calls=(CALL,),
)
REPLY = replace(BEGUN.assistant_message, parts=OLD.parts(), status=MessageStatus.COMPLETED)
LOG = (
    chunk_of(
        TURN,
        1,
        TurnStart.of(BEGUN.turn),
        IterationStart(1),
        Text("First."),
        ToolCalled("1", "add", "math", {}),
    ),
    chunk_of(TURN, 5, ToolResultStored("1", "add", "ok", 3, duration_ms=2), IterationStart(2), Text("Then.")),
    chunk_of(TURN, 8, Done("COMPLETED", REPLY.id, Usage(1, 1), "end_turn")),
)


def kinds(message: Message) -> list[tuple[int, str]]:
    return [(part.iteration, part.type) for part in message.parts]


def test_reply_gets_the_order_of_its_log_and_blank_lines_between_texts():
    assert kinds(REPLY) == [(1, "tool_call"), (2, "text")]
    rebuilt = rebuild(REPLY, LOG)
    assert kinds(rebuilt) == [(1, "text"), (1, "tool_call"), (2, "text")]
    assert rebuilt.content == "First.\n\nThen."
    assert rebuilt.tool_calls == REPLY.tool_calls


def with_text(text: str) -> LogChunk:
    return replace(LOG[1], events=LOG[1].events.replace("Then.", text))


@pytest.mark.parametrize(
    "log",
    [
        (),
        LOG[1:],
        LOG[:2],
        (LOG[0], LOG[2]),
        (LOG[0], with_text("Something else."), LOG[2]),
        (LOG[0], replace(LOG[1], events="{"), LOG[2]),
        (LOG[0], replace(LOG[1], events=LOG[1].events.replace('"1"', '"2"')), LOG[2]),
        (*LOG[:2], replace(LOG[2], events=LOG[2].events.replace("COMPLETED", "CANCELLED"))),
    ],
    ids=["gone", "no beginning", "no end", "gap", "another text", "broken", "another call", "another end"],
)
def test_reply_stays_as_it_is_where_its_log_is_not_whole_or_disagrees(log: Sequence[LogChunk]):
    assert rebuild(REPLY, log) is REPLY
