"""A turn that is cut off anywhere goes on from its log: nothing finished is done again, nothing is lost."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

import pytest

from tests.engine.in_memory import (
    InMemoryGateway,
    InMemoryTools,
    Kept,
    NobodyAsked,
    adds,
    large_values,
    single,
)
from tests.engine.test_loop import REQUEST, TURN, UNLIMITED, build, reply, use
from threadkeep.domain.approval import ApprovalAction, ApprovalKind
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    IterationRestart,
    IterationStart,
    Notice,
    Text,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    TurnResumed,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.message import Usage
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.engine.journal import JOURNAL_ENTRIES, CallFinished, Dispatch, Dispatched, UseNoted
from threadkeep.engine.loop import (
    HandOff,
    Pause,
    StateLeft,
    Surroundings,
    Together,
    TurnLimits,
    TurnStep,
    run_turn,
)
from threadkeep.engine.replay import NEW_TURN, TurnState, replay, signature
from threadkeep.engine.tools import Toolbox
from threadkeep.engine.turn_models import TurnModels
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.engine.user_requests import Asking
from threadkeep.log.format import LogEntry, decode_entries, encode_chunk
from threadkeep.ports.gateway import (
    TextDelta,
    ThinkingBlock,
    ThoughtDelta,
    ThoughtSigned,
    ToolResultBlock,
    ToolSpec,
    ToolUse,
)
from threadkeep.ports.tools import Unavailable
from threadkeep.schemas.checker import SchemaChecker

REPLIES = (
    use(
        ToolUse("1", "adds", {"a": 1}),
        ToolUse("2", "adds", {"a": 2}),
    ),
    [
        ThoughtDelta("Hm."),
        ThoughtSigned("s"),
        TextDelta("So "),
        TextDelta("far."),
        *use(ToolUse("3", "adds", {"a": 3})),
    ],
    reply(TextDelta("Six.")),
)


class UserAsked(NobodyAsked):
    """User requests of a turn whose user says nothing."""

    def __init__(self) -> None:
        self.askings: list[Asking] = []

    async def ask(self, asking: Asking) -> None:
        """Takes note of it."""
        self.askings.append(asking)


async def steps_of(
    gateway: InMemoryGateway,
    tools: InMemoryTools,
    kept: Kept,
    state: TurnState = NEW_TURN,
    approvals: NobodyAsked | None = None,
    limits: TurnLimits = UNLIMITED,
) -> list[TurnStep]:
    """All that a turn does from where it stands."""
    opening = () if state.is_new else (TurnResumed(1),)
    turn_tools = TurnTools(Toolbox(tools, large_values(kept), SchemaChecker()), approvals or NobodyAsked())
    around = Surroundings(models=TurnModels(gateway.model), tools=turn_tools, limits=limits)
    run = single(run_turn(TURN, build, around, state=state, opening=opening))
    async with aclosing(run) as steps:
        return [step async for step in steps if not isinstance(step, TurnReceipt)]


def log_of(steps: Sequence[TurnStep], first: int = 1) -> list[LogEntry]:
    """What is stored of these steps, as it is read again."""
    entries: list[LogEntry] = []
    for step in steps:
        assert not isinstance(step, Pause | HandOff | Together | TurnReceipt | StateLeft)
        if isinstance(step, JOURNAL_ENTRIES):
            entries.append(step)
        else:
            seq = first + sum(isinstance(it, TurnEvent) for it in entries)
            entries.append(TurnEvent(TURN.id, seq, seq * 10, step))
    return decode_entries(encode_chunk(entries))


def cuts(steps: Sequence[TurnStep]) -> list[int]:
    """Where a log can end: a model call that is complete is stored whole."""
    held, found = False, list[int]()
    for number, step in enumerate(steps):
        if not held:
            found.append(number)
        held = isinstance(step, ToolCalled | CallFinished) or (held and not isinstance(step, UsageReported))
    return found


def tools_with(effect: ToolEffect) -> InMemoryTools:
    return InMemoryTools(Unavailable("files", "not started"), effect=effect, adds=adds)


@pytest.mark.parametrize("effect", list(ToolEffect))
async def test_turn_that_is_cut_off_anywhere_ends_as_if_it_had_not_been(effect: ToolEffect):
    kept: Kept = {}
    gateway = InMemoryGateway(*REPLIES)
    whole = [TurnStart("c", "q", "a", None), *await steps_of(gateway, tools_with(effect), kept)]
    assert isinstance(whole[-1], Done)
    points = cuts(whole)[1:]
    assert len(points) > 12
    for point in points:
        before = log_of(whole[:point])
        finished = sum(isinstance(it, CallFinished) for it in before)
        began = any(isinstance(it, TurnEvent) and isinstance(it.body, IterationStart) for it in before)
        sent = replace(gateway.requests[0], messages=REQUEST.messages) if began else None
        state = replay(before, sent, kept)
        tools, again = tools_with(effect), InMemoryGateway(*REPLIES[finished:])
        after = await steps_of(again, tools, dict(kept), state)
        check(before, after, tools, effect)
        if effect.is_repeatable and again.requests:
            assert again.requests[-1].messages == gateway.requests[-1].messages


def check(
    before: Sequence[LogEntry], after: Sequence[TurnStep], tools: InMemoryTools, effect: ToolEffect
) -> None:
    """What holds wherever a turn was cut off."""
    done = after[-1]
    assert isinstance(done, Done)
    assert done.status == "COMPLETED"
    bodies = [it.body for it in before if isinstance(it, TurnEvent)]
    told = [it for it in (*bodies, *after) if isinstance(it, ToolResultStored)]
    assert sorted(it.tool_call_id for it in told) == ["1", "2", "3"]
    assert sum(isinstance(it, Notice) for it in (*bodies, *after)) == 1
    handed = [call.id for it in before if isinstance(it, Dispatched) for call in it.calls]
    again = [call.id for it in after if isinstance(it, Dispatched) for call in it.calls]
    resulted = {it.tool_call_id for it in bodies if isinstance(it, ToolResultStored)}
    assert not resulted & set(again)
    lost = set(handed) - resulted
    assert lost & set(again) == (lost if effect.is_repeatable else set())
    unknown = {it.tool_call_id for it in told if it.status == "unknown"}
    assert unknown == (set() if effect.is_repeatable else lost)
    spent = sum((it.usage for it in (*bodies, *after) if isinstance(it, UsageReported)), Usage(0, 0))
    assert (spent.input_tokens, spent.output_tokens) == (done.usage.input_tokens, done.usage.output_tokens)


async def test_limit_of_tool_rounds_is_noticed_once():
    limits = TurnLimits(1, 0)
    gateway = InMemoryGateway([TextDelta("So."), *use(ToolUse("1", "adds", {"a": 1}))])
    whole = [
        TurnStart("c", "q", "a", None),
        *await steps_of(gateway, InMemoryTools(adds=adds), {}, limits=limits),
    ]
    (noticed,) = (number for number, step in enumerate(whole) if isinstance(step, Notice))
    sent = replace(gateway.requests[0], messages=REQUEST.messages)
    state = replay(log_of(whole[: noticed + 1]), sent, {})
    after = await steps_of(InMemoryGateway(), InMemoryTools(adds=adds), {}, state, limits=limits)
    assert not any(isinstance(step, Notice) for step in after)
    assert after[-1] == whole[-1]


def entries(*bodies: TurnStep) -> list[LogEntry]:
    return log_of([TurnStart("c", "q", "a", None), *bodies])


def test_turn_that_died_before_its_receipt_is_new():
    assert replay(entries(), None, {}).is_new


def test_call_that_was_cut_off_is_made_again_from_where_it_began():
    state = replay(entries(IterationStart(1), Text("Ha")), REQUEST, {})
    assert (state.iteration, state.restart_from, state.has_spoken) == (1, 2, False)
    assert state.unreported
    assert state.unreported.estimated
    again = replay(
        entries(IterationStart(1), Text("Ha"), UsageReported(1, 1), IterationRestart(1, 2), Text("Ho")),
        REQUEST,
        {},
    )
    assert (again.restart_from, again.usage.input_tokens) == (5, 1)


def test_reply_that_is_complete_only_lacks_its_end():
    finished = CallFinished(1, "max_tokens")
    state = replay(entries(IterationStart(1), Text("Yes."), finished, UsageReported(1, 1)), REQUEST, {})
    assert (state.stop_reason, state.restart_from, state.has_spoken) == ("max_tokens", None, True)


def test_signed_thoughts_go_back_as_the_provider_gave_them():
    thought = ThinkingBlock("Hm.", "s", "in-memory/scripted")
    state = replay(
        entries(
            IterationStart(1),
            ToolCalled("1", "adds", "test", {"a": 1}, model_name="adds"),
            CallFinished(1, "tool_use", (thought, UseNoted("1"))),
            UsageReported(1, 1),
            Dispatched((Dispatch("1"),)),
            ToolResultStored("1", "adds", "ok", {"sum": 1}),
        ),
        replace(REQUEST, tools=(ToolSpec("adds", "Adds.", {}),)),
        {},
    )
    assert state.request
    asked, told = state.request.messages[-2:]
    assert asked.blocks[0] == thought
    assert told.blocks == (ToolResultBlock("1", '{"sum":1}', is_error=False),)
    assert (state.batch, state.restart_from) == (None, None)


def test_time_that_a_turn_waited_does_not_count_whatever_comes_after_it():
    week_ms = 7 * 24 * 3600 * 1000
    asked = ApprovalRequest("r", ApprovalKind.TOOL, "Call it?", 0, "1")
    before = entries(
        IterationStart(1),
        ToolCalled("1", "adds", "test", {"a": 1}, model_name="adds"),
        CallFinished(1, "tool_use", (UseNoted("1"),)),
        UsageReported(1, 1),
        asked,
    )
    last = before[-1]
    assert isinstance(last, TurnEvent)
    at, ran_ms = last.at + week_ms, replay(before, REQUEST, {}).ran_ms
    away = TurnEvent(TURN.id, last.seq + 1, at, Notice("MCP_SERVER_UNAVAILABLE", "It is away."))
    decided = TurnEvent(TURN.id, last.seq + 2, at + 5, ApprovalResponse("r", ApprovalAction.ALLOW))
    ended = TurnEvent(TURN.id, last.seq + 3, at + 12, ToolResultStored("1", "adds", "ok", {"sum": 1}))
    state = replay([*before, away, decided, Dispatched((Dispatch("1"),)), ended], REQUEST, {})
    assert state.ran_ms == ran_ms + 7


async def test_call_that_may_have_taken_effect_is_repeated_only_with_permission():
    """Also by the very run that found out, before anybody has read its log again."""
    kept: Kept = {}
    gateway = InMemoryGateway(use(ToolUse("1", "adds", {"a": 1})), reply(TextDelta("One.")))
    whole = [TurnStart("c", "q", "a", None), *await steps_of(gateway, tools_with(ToolEffect.WRITE), kept)]
    (handed_over,) = (number for number, step in enumerate(whole) if isinstance(step, Dispatched))
    sent = replace(gateway.requests[0], messages=REQUEST.messages)
    state = replay(log_of(whole[: handed_over + 1]), sent, kept)
    tools, asked = tools_with(ToolEffect.WRITE), UserAsked()
    again = InMemoryGateway(use(ToolUse("2", "adds", {"a": 1}), ToolUse("3", "adds", {"a": 2})))
    after = await steps_of(again, tools, kept, state, asked)
    assert isinstance(after[-1], Pause)
    assert [asking.request.tool_call_id for asking in asked.askings] == ["2"]
    assert tools.calls == [("adds", {"a": 2})]


@pytest.mark.parametrize("effect", list(ToolEffect))
def test_call_that_took_too_long_may_have_taken_effect(effect: ToolEffect):
    state = replay(
        entries(
            IterationStart(1),
            ToolCalled("1", "adds", "test", {"a": 1}, model_name="adds"),
            CallFinished(1, "tool_use", (UseNoted("1"),)),
            UsageReported(1, 1),
            Dispatched((Dispatch("1", effect),)),
            ToolResultStored("1", "adds", "timeout", error="The tool took longer than 1 seconds."),
        ),
        REQUEST,
        {},
    )
    repeated = signature("test", "adds", {"a": 1})
    assert (repeated in state.unknown) == (not effect.is_repeatable)
