"""Values of rows are made without checks, and are the values that they would be otherwise."""

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any, cast

import pytest

from tests.making import ALICE, NOW, said
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, TurnId
from threadkeep.domain.message import MessageStatus
from threadkeep.domain.parts import TextPart
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.storage.database.unchecked import unchecked

STARTED = Conversation.start(ALICE, AgentId("a"), NOW, metadata={"a": 1})
BEGUN = STARTED.begin_turn("?", NOW)
CALL = ToolCall(TurnId("t"), "1", BEGUN.assistant_message.id, "add", "math", {}, ToolCallStatus.OK, NOW)


def remade(value: Any, **changes: Any) -> Any:
    make = unchecked(cast("type[Any]", type(value)))
    return make(**{it.name: getattr(value, it.name) for it in fields(value)} | changes)


@pytest.mark.parametrize("value", [STARTED, BEGUN.assistant_message, CALL, *said("Hi.")])
def test_value_is_equal_to_one_that_was_made_as_usual(value: Any):
    made = remade(value)
    assert made == value and type(made) is type(value) and repr(made) == repr(value)
    assert replace(made) == value
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(value)[0].name, None)


def test_what_is_left_out_has_its_default():
    assert unchecked(TextPart)(text="x") == TextPart(text="x")
    arguments: dict[str, Any] = {}
    first = CALL.turn_id, "1", CALL.message_id, "add", "math", arguments, ToolCallStatus.OK, NOW
    one, other = unchecked(ToolCall)(*first), unchecked(ToolCall)(*first)
    assert one == CALL and one.refs is not other.refs


def test_nothing_is_checked():
    blank = remade(BEGUN.assistant_message, parts=said(" "), status=MessageStatus.COMPLETED)
    assert blank.content == " "
