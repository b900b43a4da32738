"""Which role a model has taken on, as its conversation tells."""

from dataclasses import replace

from tests.making import ALICE, NOW
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, MessageId, TurnId, new_uuid
from threadkeep.domain.message import Message
from threadkeep.domain.parts import ToolCallPart
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.engine.prompt import activated_role, role_in_force
from threadkeep.ports.roles import Role

ACTIVATED = ToolCall(
    TurnId("t"), "1", MessageId("m"), "promptx_action", "promptx", {"role": "lawyer"}, ToolCallStatus.OK, 100
)


def reply(*calls: ToolCall) -> Message:
    begun = Conversation.start(ALICE, AgentId(new_uuid()), NOW).begin_turn("?", NOW, model=None)
    return replace(begun.assistant_message, parts=tuple(ToolCallPart(call=call) for call in calls))


def test_no_role_is_activated_at_first():
    assert activated_role([], since=0) is None
    assert activated_role([reply()], since=0) is None


def test_role_that_was_activated_last_counts():
    later = replace(ACTIVATED, arguments={"role": "poet"})
    assert activated_role([reply(ACTIVATED, later), reply(ACTIVATED)], since=0) == "poet"
    assert activated_role([reply(), reply(ACTIVATED)], since=0) == "lawyer"


def test_what_failed_or_is_of_another_server_does_not_count():
    for other in (
        replace(ACTIVATED, status=ToolCallStatus.ERROR),
        replace(ACTIVATED, status=ToolCallStatus.INTERRUPTED),
        replace(ACTIVATED, server="somebody's"),
        replace(ACTIVATED, tool_name="promptx_recall"),
        replace(ACTIVATED, arguments={"role": 7}),
        replace(ACTIVATED, arguments={}),
    ):
        assert activated_role([reply(other)], since=0) is None
        assert activated_role([reply(ACTIVATED, other)], since=0) == "lawyer"


def test_role_from_before_the_agent_was_changed_does_not_count():
    assert activated_role([reply(ACTIVATED)], since=100) == "lawyer"
    assert activated_role([reply(ACTIVATED)], since=101) is None


def test_role_in_force_is_told_whole():
    told = role_in_force(Role("lawyer", "律师", "<role>Doubt.</role>"))
    assert "`lawyer`" in told
    assert told.endswith("<role>Doubt.</role>")
