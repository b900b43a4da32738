"""Replies that must be JSON of a schema: checked, asked for again once, wherever the turn is cut off."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.in_memory import InMemoryGateway, InMemoryTools, NobodyAsked, adds, large_values
from tests.engine.test_loop import REQUEST, TURN, UNLIMITED, reply, use
from threadkeep.context.request import BuiltRequest
from threadkeep.domain.errors import BudgetExceeded
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    IterationRestart,
    IterationStart,
    Text,
    TurnEvent,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.ids import UserId
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.model import Model
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.engine.fold import fold
from threadkeep.engine.journal import JOURNAL_ENTRIES
from threadkeep.engine.loop import Surroundings, Together, TurnLimits, TurnStep, run_turn
from threadkeep.engine.outputs import output_check
from threadkeep.engine.replay import NEW_TURN, TurnState, replay
from threadkeep.engine.spending import FreeSpending
from threadkeep.engine.stop import Stop
from threadkeep.engine.tools import Toolbox
from threadkeep.engine.turn_models import TurnModels
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.log.format import LogEntry, decode_entries, encode_chunk
from threadkeep.ports.gateway import (
    ModelEvent,
    ModelRequest,
    ModelStopped,
    ReplyBrokeOff,
    TextBlock,
    TextDelta,
    ToolResultBlock,
    ToolSpec,
    ToolUse,
)
from threadkeep.schemas.checker import SchemaChecker

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["name", "people"],
}
GOOD, BAD = '{"name": "Oslo", "people": 7}', '{"name": "Oslo"}'
OSLO = {"name": "Oslo", "people": 7}
CHECK = output_check(SchemaChecker(), UserId("ada"))


def says(*texts: str, stop: str = "end_turn") -> list[ModelEvent]:
    return [*map(TextDelta, texts), *reply()[:-1], ModelStopped(stop)]


def around(
    gateway: InMemoryGateway,
    tools: InMemoryTools | None = None,
    *,
    limits: TurnLimits = UNLIMITED,
    **given: Any,
) -> Surroundings:
    toolbox = Toolbox(tools, large_values(), SchemaChecker())
    return Surroundings(
        models=TurnModels(gateway.model),
        tools=TurnTools(toolbox, NobodyAsked()),
        check_output=CHECK,
        limits=limits,
        **given,
    )


async def build(tools: Sequence[ToolSpec]) -> BuiltRequest | ModelRequest:
    return replace(REQUEST, tools=tuple(tools), output=SCHEMA)


async def run(gateway: InMemoryGateway, tools: InMemoryTools | None = None, **given: Any) -> list[EventBody]:
    """The events of a turn."""
    found: list[EventBody] = []
    async with aclosing(run_turn(TURN, build, around(gateway, tools, **given))) as steps:
        async for step in steps:
            entries = step.entries if isinstance(step, Together) else (step,)
            found += [it for it in entries if not isinstance(it, (*JOURNAL_ENTRIES, TurnReceipt))]  # type: ignore[misc]
    return found


def asked(request: ModelRequest) -> str:
    """What a request ends with."""
    blocks = request.messages[-1].blocks
    return "".join(it.text for it in blocks if isinstance(it, TextBlock))


async def test_a_reply_that_fits_is_the_output_and_one_that_does_not_is_asked_for_again():
    (start, *_, done) = await run(InMemoryGateway(says(f"```json\n{GOOD}\n```")))
    assert start == IterationStart(1, is_checked=True)
    assert isinstance(done, Done) and done.output == OSLO
    gateway = InMemoryGateway(says("Oslo "), says(BAD, " "), says("[1]"))
    events = await run(InMemoryGateway(says('{"na', 'me": "Oslo"}'), says(GOOD)))
    kinds = [type(it) for it in events]
    assert kinds == [
        IterationStart, Text, Text, UsageReported, IterationRestart, Text, UsageReported, Done
    ]  # fmt: skip
    assert isinstance(events[-1], Done) and events[-1].output == OSLO
    failed = (await run(gateway))[-1]
    assert isinstance(failed, Failed) and (failed.code, failed.retryable) == ("OUTPUT_INVALID", True)
    assert "people" in failed.message and len(gateway.requests) == 2
    again = gateway.requests[1].messages
    assert [it.role for it in again] == ["user", "assistant", "user"] and "isn't JSON" in asked(
        gateway.requests[1]
    )


@pytest.mark.parametrize(
    ("replies", "code", "words"),
    [
        pytest.param([says("", " "), says("")], "OUTPUT_INVALID", "empty", id="empty"),
        pytest.param([says(BAD[:5], stop="max_tokens")], "OUTPUT_INVALID", "limit of tokens", id="cut off"),
        pytest.param([says("No.", stop="refusal")], None, "", id="refusal"),
        pytest.param(
            [[TextDelta("{"), ReplyBrokeOff("gone")], says(BAD), says(GOOD)], None, "", id="broke off"
        ),
        pytest.param([says(BAD), [TextDelta("{"), ReplyBrokeOff("gone")], says(GOOD)], None, "", id="again"),
    ],
)
async def test_odd_replies(replies: Any, code: str | None, words: str):
    gateway = InMemoryGateway(*replies)
    end = (await run(gateway))[-1]
    assert len(gateway.requests) == len(replies)
    if code is None:
        assert isinstance(end, Done) and end.output == (None if end.stop_reason == "refusal" else OSLO)
    else:
        assert isinstance(end, Failed) and end.code == code and words in end.message


async def test_only_the_last_reply_is_checked_and_a_turn_without_one_fails():
    tools = InMemoryTools(adds=adds)
    calls = [TextDelta("Let me add."), *use(ToolUse("1", "adds", {"a": 1}))]
    end = (await run(InMemoryGateway(calls, says(GOOD)), tools))[-1]
    assert isinstance(end, Done) and end.output == OSLO
    most = TurnLimits(1, 0)
    end = (await run(InMemoryGateway(calls, says(GOOD)), InMemoryTools(adds=adds), limits=most))[-1]
    assert isinstance(end, Failed) and end.code == "OUTPUT_INVALID" and "tool rounds" in end.message


async def test_a_turn_that_is_stopped_keeps_what_was_said_and_is_no_error():
    stop = Stop()
    gateway = InMemoryGateway([TextDelta(BAD[:6]), asyncio.Event()])
    found: list[EventBody] = []
    async with aclosing(run_turn(TURN, build, around(gateway, stop=stop))) as steps:
        async for step in steps:
            if isinstance(step, Text):
                stop.request("abort")
            found.append(step)  # type: ignore[arg-type]
    assert Text(BAD[:6]) in found
    assert isinstance(found[-1], Done) and (found[-1].status, found[-1].output) == ("CANCELLED", None)


class Poor(FreeSpending):
    """A budget that has room for one call."""

    def __init__(self) -> None:
        self.calls = 0

    async def reserve(self, model: Model, request: ModelRequest) -> ModelRequest:
        """Takes the room, or refuses."""
        self.calls += 1
        if self.calls > 1:
            raise BudgetExceeded("The budget is used up.")
        return request


async def test_a_budget_that_ends_before_the_repair_ends_the_turn_as_such():
    events = await run(InMemoryGateway(says(BAD), says(GOOD)), spending=Poor())
    assert isinstance(events[-1], Failed) and events[-1].code == "BUDGET_EXCEEDED"
    assert sum(isinstance(it, UsageReported) for it in events) == 1


async def test_the_tool_that_a_client_wants_is_called_first_and_then_the_model_decides():
    calls = use(ToolUse("1", "adds", {"a": 1}))
    gateway = InMemoryGateway(calls, says(BAD), says(GOOD))
    await run(gateway, InMemoryTools(adds=adds), tool_choice="adds")
    assert [it.tool_choice for it in gateway.requests] == ["adds", None, None]
    for unknown in ("other", ""):
        gateway = InMemoryGateway(says(GOOD))
        await run(gateway, tool_choice=unknown)  # no tool is offered
        assert gateway.requests[0].tool_choice is None


class Deciding(InMemoryGateway):
    """A model whose replies follow from what it is asked, as often as it is."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Calls a tool, replies with what doesn't fit, and then with what does."""
        has_result = any(isinstance(b, ToolResultBlock) for it in request.messages for b in it.blocks)
        if not has_result:
            self._replies = [[TextDelta("Hm."), *use(ToolUse("1", "adds", {"a": 1}))]]
        else:
            self._replies = [
                says(GOOD[:9], GOOD[9:]) if "doesn't match" in asked(request) else says(BAD, " ")
            ]
        async with aclosing(super().stream(request)) as said:
            async for event in said:
                yield event


def commits_of(steps: Sequence[TurnStep], seq: int) -> list[list[LogEntry]]:
    """What each commit adds to the log, as the log gives it back."""
    found: list[list[LogEntry]] = []
    began = seq
    for step in steps:
        if isinstance(step, TurnReceipt):
            continue
        commit: list[LogEntry] = []
        for it in step.entries if isinstance(step, Together) else (step,):
            if isinstance(it, JOURNAL_ENTRIES):
                commit.append(it)
                continue
            seq += 1
            began = seq if isinstance(it, IterationStart) else began
            body = replace(it, from_seq=began) if isinstance(it, IterationRestart) else it
            commit.append(TurnEvent(TURN.id, seq, 0, body))  # type: ignore[arg-type]
        found.append(list(decode_entries(encode_chunk(commit))))
    return found


async def steps_from(state: TurnState) -> tuple[list[TurnStep], Deciding]:
    gateway, tools = Deciding(), InMemoryTools(adds=adds)
    async with aclosing(run_turn(TURN, build, around(gateway, tools), state=state)) as steps:
        return [step async for step in steps], gateway


async def test_a_turn_that_dies_after_any_commit_ends_the_same():
    start = TurnEvent(TURN.id, 1, 0, TurnStart("c", "q", "a", "scripted"))
    whole, gateway = await steps_from(NEW_TURN)
    request = replace(gateway.requests[0], model="")
    commits = commits_of(whole, 1)
    assert len(commits) > 12
    for at in range(len(commits)):
        before: list[LogEntry] = [start, *(it for commit in commits[:at] for it in commit)]
        resumed, _ = await steps_from(replay(before, request, {}))
        seq = max(it.seq for it in before if isinstance(it, TurnEvent))
        after = [it for commit in commits_of(resumed, seq) for it in commit]
        reply_ = fold(unwritten(), [it for it in (*before, *after) if isinstance(it, TurnEvent)])
        assert (reply_.status, reply_.output) == (MessageStatus.COMPLETED, OSLO), at
        assert reply_.text == f"Hm.\n\n{GOOD}", at


def unwritten() -> Message:
    return Message(
        id=TURN.assistant_message_id,
        conversation_id=TURN.conversation_id,
        seq=2,
        turn_id=TURN.id,
        role=MessageRole.ASSISTANT,
        parts=(),
        status=MessageStatus.PENDING,
        created_at=0,
    )


async def test_what_the_user_says_before_the_repair_belongs_to_it():
    steered = [UserMessage("m", "In English.")]

    async def steering() -> Sequence[UserMessage]:
        return [steered.pop()] if steered else []

    gateway = InMemoryGateway(says(BAD), says(GOOD))
    await run(gateway, steering=steering)
    assert "In English." in asked(replace(gateway.requests[1], messages=gateway.requests[1].messages[:1]))
