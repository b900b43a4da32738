"""One turn: model, tools, model …; whatever happens, it ends once and leaves nothing open."""

import asyncio
import json
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, Literal

import pytest

from tests.engine.in_memory import (
    InMemoryGateway,
    InMemoryTools,
    Kept,
    NobodyAsked,
    Run,
    Step,
    adds,
    gives,
    large_values,
    single,
)
from tests.making import make_receipt
from threadkeep.context.call_ids import TakenIds, none_taken
from threadkeep.context.estimates import estimate_request_tokens
from threadkeep.context.request import BuiltRequest
from threadkeep.context.tool_results import MOST_RESULT_CHARACTERS
from threadkeep.domain.errors import UNEXPECTED, DatabaseAway, StorageConflict, StorageUnavailable
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    IterationStart,
    Notice,
    Retrieval,
    RetrievalHit,
    Text,
    Thought,
    ToolCalled,
    ToolProgress,
    ToolResultStored,
    UsageReported,
)
from threadkeep.domain.ids import ConversationId, MessageId, TurnId
from threadkeep.domain.message import Usage
from threadkeep.domain.model import Model
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.tool_call import MODEL_READS
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.domain.turn import Turn, TurnStatus
from threadkeep.engine.call_state import UNKNOWN
from threadkeep.engine.journal import JOURNAL_ENTRIES
from threadkeep.engine.loop import HandOff, Pause, Surroundings, TurnLimits, run_turn
from threadkeep.engine.spending import FreeSpending
from threadkeep.engine.stop import Stop, TurnLost
from threadkeep.engine.timer import TurnTimer
from threadkeep.engine.tools import MOST_TOOLS, Toolbox
from threadkeep.engine.turn_models import TurnModels
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.gateways.anthropic import anthropic_body
from threadkeep.gateways.encoding import encode
from threadkeep.gateways.openai import openai_body
from threadkeep.gateways.responses import responses_body
from threadkeep.ports.gateway import (
    GatewayError,
    GatewayUnavailable,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelStopped,
    ModelUsage,
    ReplyBrokeOff,
    Retrying,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThoughtDelta,
    ThoughtSigned,
    ToolResultBlock,
    ToolSpec,
    ToolUse,
    ToolUseBlock,
    UnshownDelta,
)
from threadkeep.ports.schemas import NOT_CHECKED
from threadkeep.ports.tools import Progress, Returned, Tool, Unavailable
from threadkeep.schemas.checker import SchemaChecker
from threadkeep.testing.provider_rules import (
    check_anthropic,
    check_openai,
    check_responses,
)

TURN = Turn(
    TurnId("t"), ConversationId("c"), MessageId("q"), MessageId("a"), TurnStatus.RUNNING, 0, model="scripted"
)
REQUEST = ModelRequest("", "Be brief.", (ModelMessage("user", (TextBlock("1 + 2?"),)),))
UNLIMITED = TurnLimits(0, 0)


async def build(tools: Sequence[ToolSpec]) -> BuiltRequest:
    return BuiltRequest(replace(REQUEST, tools=tuple(tools)), make_receipt(), {})


def turn(
    gateway: InMemoryGateway,
    tools: InMemoryTools | None = None,
    *,
    limits: TurnLimits = UNLIMITED,
    stop: Stop | None = None,
) -> AsyncGenerator[EventBody]:
    return events_of(Toolbox(tools, large_values(), SchemaChecker()), gateway, limits=limits, stop=stop)


async def events_of(
    toolbox: Toolbox,
    gateway: InMemoryGateway,
    *,
    limits: TurnLimits = UNLIMITED,
    stop: Stop | None = None,
    taken_ids: TakenIds = none_taken,
) -> AsyncGenerator[EventBody]:
    """The events of a turn, without the entries of its journal and its receipt."""
    tools = TurnTools(toolbox, NobodyAsked(), taken_ids=taken_ids)
    models, stop = TurnModels(gateway.model), stop or Stop()
    around = Surroundings(models=models, tools=tools, limits=limits, stop=stop)
    async with aclosing(single(run_turn(TURN, build, around))) as steps:
        async for step in steps:
            if not isinstance(step, (*JOURNAL_ENTRIES, TurnReceipt)):
                assert not isinstance(step, Pause | HandOff)
                yield step


async def run(
    gateway: InMemoryGateway, tools: InMemoryTools | None = None, *, limits: TurnLimits = UNLIMITED
) -> list[EventBody]:
    """A turn to its end; all that holds for every turn is checked."""
    events = [event async for event in turn(gateway, tools, limits=limits)]
    check(events, gateway, tools)
    return events


def check(events: Sequence[EventBody], gateway: InMemoryGateway, tools: InMemoryTools | None) -> None:
    """What holds for every turn, however it went."""
    assert [isinstance(it, Done | Failed) for it in events] == [False] * (len(events) - 1) + [True]
    called = [it.tool_call_id for it in events if isinstance(it, ToolCalled)]
    resulted = [it.tool_call_id for it in events if isinstance(it, ToolResultStored)]
    assert len(called) == len(set(called))
    assert sorted(called) == sorted(resulted)
    for at, event in enumerate(events):
        if isinstance(event, ToolResultStored | ToolProgress):
            assert event.tool_call_id in {it.tool_call_id for it in events[:at] if isinstance(it, ToolCalled)}
    spent = [it for it in events if isinstance(it, UsageReported)]
    assert len(spent) == len(gateway.requests)
    if isinstance(events[-1], Done):
        assert events[-1].usage.input_tokens == sum(it.input_tokens for it in spent)
        assert events[-1].usage.output_tokens == sum(it.output_tokens for it in spent)
        assert events[-1].usage.estimated == any(it.estimated for it in spent)
    assert gateway.open_streams == 0
    assert tools is None or tools.open_calls == 0


def reply(*events: ModelEvent) -> list[ModelEvent]:
    return [*events, ModelUsage(10, 5), ModelStopped("end_turn")]


def use(*uses: ToolUse) -> list[ModelEvent]:
    return [*uses, ModelUsage(10, 5), ModelStopped("tool_use")]


def results(events: Iterable[EventBody]) -> dict[str, ToolResultStored]:
    return {event.tool_call_id: event for event in events if isinstance(event, ToolResultStored)}


async def use_once(run_tool: Run, call: ToolUse | None = None, **options: Any) -> ToolResultStored:
    """The result of one call of a tool, after which the model has its last word."""
    gateway = InMemoryGateway(use(call or ToolUse("1", "tool", {})), reply(TextDelta("Done.")))
    events = await run(gateway, InMemoryTools(tool=run_tool, **options))
    assert isinstance(events[-1], Done)
    return results(events)["1"]


@pytest.mark.parametrize("supports_tools", [True, False])
async def test_calls_with_the_same_id_or_none_get_ids_of_their_own(supports_tools: bool):
    twice = use(ToolUse("1", "adds", {"a": 1}), ToolUse("1", "adds", {"a": 2}), ToolUse("", "adds", {"a": 3}))
    gateway = InMemoryGateway(twice, use(ToolUse("1", "adds", {"a": 4})), reply(TextDelta("Done.")))
    events = await run(gateway, InMemoryTools(adds=adds) if supports_tools else None)
    assert isinstance(events[-1], Done)
    called = [it for it in events if isinstance(it, ToolCalled)]
    assert called[0].tool_call_id == "1"
    if supports_tools:
        sums = {it.tool_call_id: it.result for it in results(events).values()}
        assert [sums[it.tool_call_id] for it in called] == [{"sum": n} for n in (1, 2, 3, 4)]
    for request in gateway.requests:
        check_anthropic(anthropic_body(request, "m"))
        check_openai(openai_body(request, "m"))
        check_responses(responses_body(request, "m"))


async def test_text_tool_text_are_told_in_order():
    gateway = InMemoryGateway(
        [
            ThoughtDelta("Add "),
            ThoughtDelta("them."),
            ThoughtSigned("s1"),
            TextDelta("Let me see. "),
            *use(ToolUse("1", "adds", {"a": 1, "b": 2})),
        ],
        reply(TextDelta("Three.")),
    )
    events = await run(gateway, InMemoryTools(adds=adds))
    result = results(events)["1"]
    assert events == [
        IterationStart(1),
        Thought("Add "),
        Thought("them."),
        Text("Let me see. "),
        ToolCalled("1", "adds", "test", {"a": 1, "b": 2}, model_name="adds"),
        UsageReported(10, 5, model="in-memory/scripted"),
        ToolResultStored("1", "adds", "ok", {"sum": 3}, duration_ms=result.duration_ms),
        IterationStart(2),
        Text("Three."),
        UsageReported(10, 5, model="in-memory/scripted"),
        Done("COMPLETED", "a", Usage(20, 10), "end_turn"),
    ]
    assert gateway.requests[1].messages[1:] == (
        ModelMessage(
            "assistant",
            (
                ThinkingBlock("Add them.", "s1", "in-memory/scripted"),
                TextBlock("Let me see. "),
                ToolUseBlock("1", "adds", {"a": 1, "b": 2}),
            ),
        ),
        ModelMessage("user", (ToolResultBlock("1", '{"sum":3}', is_error=False),)),
    )
    for request in gateway.requests:
        check_anthropic(anthropic_body(request, "m"))
        check_openai(openai_body(request, "m"))
        check_responses(responses_body(request, "m"))


async def test_blocks_of_a_reply_go_back_in_the_order_in_which_they_came():
    gateway = InMemoryGateway(
        [
            TextDelta("First."),
            ThoughtDelta("Hm."),
            ThoughtSigned("s1"),
            ToolUse("1", "adds", {"a": 1}),
            ThoughtSigned("redacted_thinking:data"),
            TextDelta("Then."),
            *use(ToolUse("2", "adds", {"a": 2})),
        ],
        reply(TextDelta("Three.")),
    )
    await run(gateway, InMemoryTools(adds=adds))
    assert gateway.requests[1].messages[1].blocks == (
        TextBlock("First."),
        ThinkingBlock("Hm.", "s1", "in-memory/scripted"),
        ToolUseBlock("1", "adds", {"a": 1}),
        ThinkingBlock("", "redacted_thinking:data", "in-memory/scripted"),
        TextBlock("Then."),
        ToolUseBlock("2", "adds", {"a": 2}),
    )


async def test_id_that_an_earlier_turn_has_used_is_replaced_before_anyone_sees_it():
    async def taken(ids: Collection[str]) -> Collection[str]:
        return {"1"} & set(ids)

    gateway = InMemoryGateway(
        use(ToolUse("1", "adds", {"a": 1}), ToolUse("2", "adds", {"a": 2})), reply(TextDelta("Three."))
    )
    toolbox = Toolbox(InMemoryTools(adds=adds), large_values(), SchemaChecker())
    events = [event async for event in events_of(toolbox, gateway, taken_ids=taken)]
    first, second = (it.tool_call_id for it in events if isinstance(it, ToolCalled))
    assert (first == "1", second) == (False, "2")
    assert sorted(results(events)) == sorted([first, second])
    for request in gateway.requests:
        check_anthropic(anthropic_body(request, "m"))
        check_openai(openai_body(request, "m"))
        check_responses(responses_body(request, "m"))


async def test_200_calls_of_one_reply_get_results_that_are_sent_back():
    calls = [ToolUse(f"call_{number % 150}", "adds", {"a": number}) for number in range(200)]
    gateway = InMemoryGateway(use(*calls), reply(TextDelta("Done.")))
    events = await run(gateway, InMemoryTools(adds=adds))
    assert len(results(events)) == 200
    check_anthropic(anthropic_body(gateway.requests[1], "m"))
    check_openai(openai_body(gateway.requests[1], "m"))


async def test_tools_run_at_the_same_time_and_the_model_reads_them_in_order():
    first_may_end, second_began = asyncio.Event(), asyncio.Event()

    async def first(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Returned]:
        await second_began.wait()
        yield Progress(0.5, 1, "half")
        await first_may_end.wait()
        yield Returned("ok", "first")

    async def second(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Returned]:
        second_began.set()
        yield Returned("ok", "second")
        raise AssertionError("nobody reads on after the result")

    gateway = InMemoryGateway(
        use(ToolUse("1", "first", {}), ToolUse("2", "second", {})), reply(TextDelta("Both."))
    )
    events: list[EventBody] = []
    tools = InMemoryTools(first=first, second=second)
    async for event in turn(gateway, tools):
        events.append(event)
        if isinstance(event, ToolResultStored) and event.tool_call_id == "2":
            first_may_end.set()
    check(events, gateway, tools)
    assert [*results(events)] == ["2", "1"]
    assert ToolProgress("1", 0.5, 1, "half") in events
    answers = gateway.requests[1].messages[-1].blocks
    assert answers == (
        ToolResultBlock("1", "first", is_error=False),
        ToolResultBlock("2", "second", is_error=False),
    )


async def test_what_a_tool_found_is_told_before_its_result():
    hit = RetrievalHit("a.pdf", "text", 0.9, document_id="d", page=3)
    gateway = InMemoryGateway(use(ToolUse("1", "tool", {})), reply(TextDelta("Found.")))
    returned = Returned("ok", "1 hit", query="law\x00", hits=(hit,), chart_data={"x": [1]})
    events = await run(gateway, InMemoryTools(tool=gives(returned)))
    found = events.index(Retrieval("law\ufffd", (hit,), "1"))
    result = results(events)["1"]
    assert events[found + 1] is result
    assert (result.chart_data, [*result.refs]) == (None, ["chart_data"])


@pytest.mark.parametrize(
    ("tool", "call", "status", "error"),
    [
        (gives(Returned("error", error="No.")), None, "error", "No."),
        (gives(Returned("denied", error="Not you.")), None, "denied", "Not you."),
        (gives(ValueError("the password is 1234")), None, "unknown", UNKNOWN),
        (gives(TimeoutError()), None, "unknown", UNKNOWN),
        (gives(Progress(1)), None, "unknown", UNKNOWN),
        (adds, ToolUse("1", "made_up", {}), "error", "Tool 'made_up' not found."),
        (adds, ToolUse("1", "tool", {}, "The arguments are not a JSON object."), "error",
         "The arguments are not a JSON object."),
    ],
    ids=["error", "denied", "exception", "its own timeout", "no result", "unknown", "broken arguments"],
)  # fmt: skip
async def test_tool_that_fails_is_told_to_the_model_and_the_turn_goes_on(
    tool: Run, call: ToolUse | None, status: str, error: str
):
    result = await use_once(tool, call)
    assert (result.status, result.error, result.result) == (status, error, None)


@pytest.mark.parametrize(
    ("tool", "error"),
    [
        (gives(ValueError("the password is 1234")), "The tool failed: ValueError."),
        (gives(Progress(1)), "The tool ended without returning a result."),
        (gives(Returned("error", error="Lost the connection.", lost=True)), "Lost the connection."),
    ],
)
async def test_call_that_is_safe_to_repeat_fails_with_its_reason(tool: Run, error: str):
    result = await use_once(tool, effect=ToolEffect.READ)
    assert (result.status, result.error) == ("error", error)


async def test_failure_of_our_storage_is_no_failure_of_the_tool():
    gateway = InMemoryGateway(use(ToolUse("1", "tool", {})))
    events = await run(gateway, InMemoryTools(tool=gives(StorageUnavailable("The database is away."))))
    assert events[-1] == Failed("STORAGE_UNAVAILABLE", "The database is away.", retryable=False)
    assert results(events)["1"].status == "interrupted"


async def test_turn_that_cannot_reach_the_database_is_left_to_be_resumed_if_another_node_may():
    tools = InMemoryTools(tool=gives(DatabaseAway("The database is away.")))
    with pytest.raises(DatabaseAway):
        await run(InMemoryGateway(use(ToolUse("1", "tool", {}))), tools)
    not_resumed = replace(UNLIMITED, hands_off=False)
    events = await run(InMemoryGateway(use(ToolUse("1", "tool", {}))), tools, limits=not_resumed)
    assert events[-1] == Failed("STORAGE_UNAVAILABLE", "The database is away.", retryable=False)


async def test_tool_that_takes_too_long_is_ended():
    result = await use_once(gives(asyncio.Event()), timeout_s=0.01)
    assert (result.status, result.error) == ("timeout", "The tool took longer than 0.01 seconds.")


async def test_numbers_and_texts_that_json_does_not_have_are_replaced():
    deep: Any = "bottom"
    for _ in range(50):
        deep = [deep]
    odd = {"a\x00": float("nan"), "b": [float("inf"), "\ud83d"], "big": 10**30, "deep": deep, "set": {1}}
    gateway = InMemoryGateway(
        [
            TextDelta("a\x00b"),
            TextDelta("\ud83d"),
            ThoughtDelta("\udc00"),
            *use(ToolUse("1", "tool", odd)),
        ],
        reply(TextDelta("ok")),
    )
    returned = Returned("ok", odd)
    events = await run(
        gateway, InMemoryTools(tool=gives(Progress(float("nan"), float("inf"), "\x00"), returned))
    )
    assert Text("a\ufffdb") in events
    assert Text("?") in events
    assert Thought("?") in events
    assert ToolProgress("1", 0.0, None, "\ufffd") in events
    kept = {"a\x00": None, "b": [None, "?"], "big": 10**30, "deep": deep, "set": "{1}"}
    called = next(it for it in events if isinstance(it, ToolCalled))
    assert called.arguments == kept
    assert results(events)["1"].result == kept


@pytest.mark.parametrize("where", ["arguments", "result", "chart_data"])
async def test_value_that_is_nested_too_deeply_is_an_error_that_is_told(where: str):
    deep: Any = "bottom"
    for _ in range(5_000):
        deep = [deep]
    returned = Returned("ok", **({} if where == "arguments" else {where: deep}))
    arguments = {"deep": deep} if where == "arguments" else {}
    result = await use_once(gives(returned), ToolUse("1", "tool", arguments))
    assert result.status == "error"
    assert str(result.error).endswith("nested too deeply.")


async def test_result_is_cut_for_the_model_and_kept_whole():
    long = "law " * 10_000
    kept: Kept = {}
    gateway = InMemoryGateway(use(ToolUse("1", "tool", {})), reply(TextDelta("Done.")))
    toolbox = Toolbox(
        InMemoryTools(tool=gives(Returned("ok", {"text": long}))), large_values(kept), SchemaChecker()
    )
    events = [it async for it in events_of(toolbox, gateway)]
    result = results(events)["1"]
    assert result.status == "ok"
    assert json.loads(kept[result.refs["result"]]) == {"text": long}
    (block,) = gateway.requests[1].messages[-1].blocks
    assert isinstance(block, ToolResultBlock)
    shown, _, mark = block.content.partition("\n")
    assert shown == f'{{"text":"{long}"}}'[:MOST_RESULT_CHARACTERS]
    assert mark == '… [40011 characters, cut here; recall_result with id "1" and offset 20000 returns more]'
    assert json.loads(kept[result.refs[MODEL_READS]]) == block.content
    # The record carries what a short form needs.
    whole = f'{{"text":"{long}"}}'
    assert result.result == {"characters": len(whole), "head": whole[:600], "tail": whole[-200:]}


async def test_results_of_one_reply_fit_the_model_and_the_next_turns_are_sent_the_same():
    calls = [ToolUse(f"call_{number}", "reads", {}) for number in range(200)]
    results_sent: list[str] = []
    kept: Kept = {}
    gateway = InMemoryGateway(
        use(*calls), use(ToolUse("more", "reads", {})), reply(TextDelta("Done.")), context_tokens=32_000
    )
    toolbox = Toolbox(
        InMemoryTools(reads=gives(Returned("ok", "工具 " * 3000))), large_values(kept), SchemaChecker()
    )
    events = [it async for it in events_of(toolbox, gateway)]
    ended = results(events)
    for request in gateway.requests:
        assert estimate_request_tokens(request) <= gateway.context_tokens
    for block in gateway.requests[1].messages[-1].blocks:
        assert isinstance(block, ToolResultBlock)
        assert "recall_result" in block.content
        assert json.loads(kept[ended[block.tool_use_id].refs[MODEL_READS]]) == block.content
        results_sent.append(block.content)
    assert len(results_sent) == 200
    assert isinstance(events[-1], Done)


async def test_call_that_does_not_fit_the_schema_is_told_and_the_tool_does_not_run():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = InMemoryTools(weather=gives(Returned("ok", "sunny")), schema=schema)
    gateway = InMemoryGateway(
        use(ToolUse("1", "weather", {"city": 5})),
        use(ToolUse("2", "weather", {"city": "北京"})),
        reply(TextDelta("Sunny.")),
    )
    events = await run(gateway, tools)
    assert [(it.status, it.error) for it in results(events).values()] == [
        ("error", "The arguments don't match the tool's schema. `city` has to be a text; it is 5."),
        ("ok", None),
    ]
    assert tools.calls == [("weather", {"city": "北京"})]


async def test_tool_of_a_stranger_has_a_name_of_its_own_for_the_model_and_keeps_its_own_in_the_record():
    tools = InMemoryTools(adds=adds, is_own=False)
    gateway = InMemoryGateway(use(ToolUse("1", "test__adds", {"a": 1})), reply(TextDelta("One.")))
    events = await run(gateway, tools)
    assert [spec.name for spec in gateway.requests[0].tools] == ["test__adds"]
    assert ToolCalled("1", "adds", "test", {"a": 1}, model_name="test__adds") in events
    assert (results(events)["1"].tool_name, results(events)["1"].status) == ("adds", "ok")
    (asked,) = gateway.requests[1].messages[-2].blocks
    assert asked == ToolUseBlock("1", "test__adds", {"a": 1})


async def test_more_tools_than_a_provider_takes_are_left_out_with_a_notice():
    gateway = InMemoryGateway(reply(TextDelta("Hello.")))
    tools: dict[str, Any] = {f"tool{n}": adds for n in range(MOST_TOOLS + 2)}
    events = await run(gateway, InMemoryTools(**tools))
    assert len(gateway.requests[0].tools) == MOST_TOOLS
    assert Notice("TOO_MANY_TOOLS", "Models accept at most 128 tools; 2 were left out.") in events
    check_openai(openai_body(gateway.requests[0], "m"))


async def test_server_that_is_away_is_noticed_and_the_turn_goes_on():
    events = await run(
        InMemoryGateway(reply(TextDelta("Hello."))), InMemoryTools(Unavailable("files", "not started"))
    )
    assert events[0] == Notice("MCP_SERVER_UNAVAILABLE", "Couldn't connect to files: not started")
    assert isinstance(events[-1], Done)


BUSY = Retrying(GatewayUnavailable("Busy."), 1)


async def test_retry_is_noticed():
    events = await run(InMemoryGateway(reply(BUSY, TextDelta("Hello."))))
    assert Notice("MODEL_RETRIED", "Busy. Retrying in 1.0 s.") in events


async def test_turn_that_never_stops_using_tools_is_stopped():
    gateway = InMemoryGateway(*([TextDelta("."), *use(ToolUse(str(n), "adds", {}))] for n in range(1, 5)))
    tools = InMemoryTools(adds=adds)
    events = await run(gateway, tools, limits=TurnLimits(3, 0))
    assert [it.iteration for it in events if isinstance(it, IterationStart)] == [1, 2, 3]
    assert [(id_, it.status) for id_, it in results(events).items()] == [
        ("1", "ok"),
        ("2", "ok"),
        ("3", "interrupted"),
    ]
    assert len(tools.calls) == 2
    assert events[-3].type == "notice"
    assert events[-1] == Done("COMPLETED", "a", Usage(30, 15), "max_iterations")


async def test_turn_that_only_ever_used_tools_says_so():
    gateway = InMemoryGateway(*(use(ToolUse(str(n), "adds", {})) for n in range(1, 4)))
    events = await run(gateway, InMemoryTools(adds=adds), limits=TurnLimits(2, 0))
    message = "The agent reached its limit of tool rounds without answering."
    assert events[-1] == Failed("AGENTX_ERROR", message, retryable=True)


@pytest.mark.parametrize(
    "unshown", [(UnshownDelta(200), UnshownDelta(202)), (ToolUse("1", "t", {"a": "b" * 393}),)]
)
async def test_what_nobody_saw_counts_when_the_reply_breaks_off(unshown: tuple[ModelEvent, ...]):
    gateway = InMemoryGateway(*[[*unshown, ReplyBrokeOff("It broke off.")]] * 2)
    events = await run(gateway)
    assert isinstance(events[-1], Failed)
    spent = [(it.output_tokens, it.estimated) for it in events if isinstance(it, UsageReported)]
    assert spent == [(101, True)] * 2


class LostTurn(FreeSpending):
    """Pays for a turn that another node has taken over."""

    is_limited = True
    releases = 0

    async def reserve(self, model: Model, request: ModelRequest) -> ModelRequest:
        """Refuses."""
        raise StorageConflict("Another node runs it.")

    async def release(self) -> None:
        """Is not to be called."""
        self.releases += 1


async def test_turn_that_could_not_reserve_gives_nothing_back():
    gateway, spending = InMemoryGateway(), LostTurn()
    tools = TurnTools(Toolbox(None, large_values(), SchemaChecker()), NobodyAsked())
    models = TurnModels(gateway.model)
    around = Surroundings(models=models, tools=tools, limits=UNLIMITED, spending=spending)
    events = [step async for step in run_turn(TURN, build, around)]
    assert isinstance(events[-1], Failed)
    assert (gateway.requests, spending.releases) == ([], 0)


class TakenOver(FreeSpending):
    """Stores what came before a call, and learns that another node has the turn."""

    async def reserve(self, model: Model, request: ModelRequest) -> ModelRequest:
        """Can't."""
        raise TurnLost


async def test_turn_that_another_node_took_over_has_no_end_here(caplog: pytest.LogCaptureFixture):
    tools = TurnTools(Toolbox(None, large_values(), SchemaChecker()), NobodyAsked())
    models = TurnModels(InMemoryGateway().model)
    around = Surroundings(models=models, tools=tools, limits=UNLIMITED, spending=TakenOver())
    events: list[object] = []
    with pytest.raises(TurnLost):
        async for step in run_turn(TURN, build, around):
            events.append(step)  # noqa: PERF401 - it raises at the end
    assert not any(isinstance(it, Done | Failed) for it in events)
    assert not caplog.records  # it isn't a fault


class Counting(FreeSpending):
    """Notes what is paid."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    async def reserve(self, model: Model, request: ModelRequest) -> ModelRequest:
        """A call begins."""
        self.paid.append("reserved")
        return request

    async def release(self) -> None:
        """It was not billed."""
        self.paid.append("released")

    async def charge(self, usage: Usage) -> None:
        """It was."""
        self.paid.append(f"{usage.output_tokens}")


@pytest.mark.parametrize(
    ("replies", "paid"),
    [
        ([reply(TextDelta("Hello."))], "reserved 5"),
        ([use(ToolUse("1", "adds", {})), reply(TextDelta("So."))], "reserved 5 reserved 5"),
        ([[TextDelta("Because."), ReplyBrokeOff("…")]] * 2, "reserved 2 reserved 2"),
        ([[TextDelta("Because."), GatewayError("…")]], "reserved 2"),
        ([[GatewayError("Refused.")]], "reserved released"),
        ([[GatewayUnavailable("Busy.")]], "reserved released"),
        ([[TextDelta("Because."), asyncio.Event()]], "reserved 2"),
    ],
    ids=["whole", "with a tool", "broke off twice", "failed", "refused", "unavailable", "left"],
)
async def test_every_call_is_charged_once_or_gives_back_what_it_reserved(
    replies: Sequence[Sequence[Step]], paid: str
):
    gateway, spending = InMemoryGateway(*replies), Counting()
    tools = TurnTools(Toolbox(InMemoryTools(adds=adds), large_values(), SchemaChecker()), NobodyAsked())
    around = Surroundings(models=TurnModels(gateway.model), tools=tools, limits=UNLIMITED, spending=spending)

    async def read() -> list[UsageReported]:
        return [it async for it in single(run_turn(TURN, build, around)) if isinstance(it, UsageReported)]

    reading = asyncio.create_task(read())
    if isinstance(replies[-1][-1], asyncio.Event):
        for _ in range(50):
            await asyncio.sleep(0)
        reading.cancel()  # whoever reads it leaves
    with suppress(asyncio.CancelledError):
        reported = await reading
        assert [f"{it.output_tokens}" for it in reported] == [it for it in spending.paid if it.isdigit()]
    assert " ".join(spending.paid) == paid


@pytest.mark.parametrize("usage", [ModelUsage(10, 10**30), ModelUsage(-1, 5), ModelUsage(10**12, 5)])
async def test_usage_that_cannot_be_is_estimated_instead(usage: ModelUsage):
    events = await run(InMemoryGateway([TextDelta("Hello."), usage, ModelStopped("end_turn")]))
    (spent,) = (event for event in events if isinstance(event, UsageReported))
    assert spent.estimated
    assert 0 < spent.output_tokens < 10


async def test_cached_tokens_are_told_and_summed():
    gateway = InMemoryGateway(
        [ToolUse("1", "adds", {}), ModelUsage(100, 5, 0, 80), ModelStopped("tool_use")],
        [TextDelta("Done."), ModelUsage(120, 3, 80, 30), ModelStopped("end_turn")],
    )
    events = await run(gateway, InMemoryTools(adds=adds))
    first, second = (it for it in events if isinstance(it, UsageReported))
    assert (first.cache_read_tokens, first.cache_write_tokens) == (0, 80)
    assert (second.cache_read_tokens, second.cache_write_tokens) == (80, 30)
    assert events[-1] == Done(
        "COMPLETED", "a", Usage(220, 8, cache_read_tokens=80, cache_write_tokens=110), "end_turn"
    )


@pytest.mark.parametrize(
    ("read", "written", "told"),
    [(-5, -1, (0, 0)), (500, 0, (100, 0)), (60, 60, (60, 40)), (10**30, 10**30, (100, 0))],
)
async def test_cached_tokens_that_cannot_be_are_cut_to_the_input(
    read: int, written: int, told: tuple[int, int]
):
    usage = ModelUsage(100, 5, read, written)
    events = await run(InMemoryGateway([TextDelta("Hello."), usage, ModelStopped("end_turn")]))
    (spent,) = (event for event in events if isinstance(event, UsageReported))
    assert (spent.input_tokens, spent.estimated) == (100, False)
    assert (spent.cache_read_tokens, spent.cache_write_tokens) == told


@pytest.mark.parametrize(
    "said", [[], [TextDelta("")], [TextDelta(" \n"), TextDelta("\u200b")], [ThoughtDelta("Hm.")]]
)
async def test_empty_reply_is_a_failure(said: list[ModelEvent]):
    events = await run(InMemoryGateway(reply(*said)))
    assert events[-1] == Failed("AGENTX_ERROR", "The model returned an empty reply.", retryable=True)


@pytest.mark.parametrize(
    ("exception", "failed"),
    [
        (GatewayError("Busy.", retryable=True), Failed("AGENTX_ERROR", "Busy.", retryable=True)),
        (GatewayError("Refused."), Failed("AGENTX_ERROR", "Refused.")),
        (
            ZeroDivisionError("secret"),
            Failed("INTERNAL_ERROR", UNEXPECTED),
        ),
        (
            TimeoutError(),
            Failed("INTERNAL_ERROR", UNEXPECTED),
        ),
    ],
    ids=["retryable", "refused", "ours", "timeout within"],
)
async def test_gateway_that_breaks_off_fails_the_turn_and_keeps_what_was_said(
    exception: Exception, failed: Failed
):
    events = await run(InMemoryGateway([TextDelta("half"), exception]))
    assert events[1] == Text("half")
    assert events[-1] == failed
    assert any(isinstance(it, UsageReported) and it.estimated for it in events)


def long_turn() -> tuple[InMemoryGateway, InMemoryTools]:
    """A turn that does all that a turn can do, and an await before each of it."""
    gateway = InMemoryGateway(
        [
            BUSY,
            ThoughtDelta("Hm."),
            ThoughtSigned("s"),
            TextDelta("One "),
            TextDelta("moment. "),
            *use(ToolUse("1", "slow", {}), ToolUse("2", "adds", {"a": 1}), ToolUse("3", "made_up", {})),
        ],
        [TextDelta("Again. "), *use(ToolUse("4", "slow", {}))],
        reply(TextDelta("So "), TextDelta("it is.")),
    )
    tools = InMemoryTools(
        Unavailable("files", "gone"),
        slow=gives(
            Progress(1), Progress(2), Returned("ok", "slow", query="q", hits=(RetrievalHit("s", "t", 1),))
        ),
        adds=adds,
    )
    return gateway, tools


Reason = Literal["abort", "interrupt"]
ENDS: Mapping[str, EventBody] = {
    "abort": Done("CANCELLED", "a", Usage(0, 0), "aborted"),
    "interrupt": Failed("INTERRUPTED", "The server stopped during this turn.", retryable=True),
}


def check_stopped(events: Sequence[EventBody], reason: Reason) -> None:
    end, expected = events[-1], ENDS[reason]
    if isinstance(end, Done) and isinstance(expected, Done):
        assert (end.status, end.stop_reason) == (expected.status, expected.stop_reason)
    else:
        assert end == expected


@pytest.mark.parametrize("reason", ["abort", "interrupt"])
async def test_stop_after_any_event_ends_the_turn_once_and_leaves_nothing_open(reason: Reason):
    gateway, tools = long_turn()
    whole = await run(gateway, tools)
    assert len(whole) > 25
    for count in range(1, len(whole)):
        gateway, tools = long_turn()
        stop, events = Stop(), list[EventBody]()
        async for event in turn(gateway, tools, stop=stop):
            events.append(event)
            if isinstance(event, Done | Failed):
                check(events, gateway, tools)  # already, when the last event comes
            elif len(events) == count:
                stop.request(reason)
                stop.request("timeout")  # the first reason counts
        check(events, gateway, tools)
        check_stopped(events, reason)


@pytest.mark.parametrize("reason", ["abort", "interrupt"])
async def test_stop_within_any_await_ends_the_turn_once_and_leaves_nothing_open(reason: Reason):
    after, in_time = 0, True
    while in_time:
        after += 1
        gateway, tools = long_turn()
        stop, events = Stop(), list[EventBody]()

        async def stop_later(stop: Stop = stop, steps: int = after) -> None:
            for _ in range(steps):
                await asyncio.sleep(0)
            stop.request(reason)

        stopping = asyncio.create_task(stop_later())
        events = [event async for event in turn(gateway, tools, stop=stop)]
        in_time = stopping.done()
        await stopping
        check(events, gateway, tools)
        if not (isinstance(events[-1], Done) and events[-1].status == "COMPLETED"):
            check_stopped(events, reason)
    assert after > 20


async def test_whoever_stops_listening_at_any_event_leaves_nothing_open():
    for count in range(1, len(await run(*long_turn()))):
        gateway, tools = long_turn()
        events = turn(gateway, tools)
        for _ in range(count):
            await anext(events)
        await events.aclose()
        assert (gateway.open_streams, tools.open_calls) == (0, 0)


@pytest.mark.parametrize("hangs", ["model", "tool", "list"])
async def test_turn_that_takes_too_long_is_ended_wherever_it_hangs(hangs: str):
    never = asyncio.Event()
    gateway = InMemoryGateway(
        [TextDelta("half"), *([never] if hangs == "model" else use(ToolUse("1", "t", {})))]
    )
    tools = HangingTools() if hangs == "list" else InMemoryTools(t=gives(Progress(1), never))
    events = await run(gateway, tools, limits=TurnLimits(0, 0.02))
    assert events[-1] == Failed("GENERATION_TIMEOUT", "The turn took longer than 0.02 s.", retryable=True)
    assert [it.status for it in results(events).values()] == (["interrupted"] if hangs == "tool" else [])


class HangingTools(InMemoryTools):
    """Tools of a server that does not answer."""

    async def list(self) -> tuple[Sequence[Tool], Sequence[Unavailable]]:
        """Never returns."""
        await asyncio.Event().wait()
        raise AssertionError


async def test_tool_that_clings_to_life_does_not_keep_the_turn():
    async def stubborn(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Returned]:
        yield Progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)

    stop = Stop()
    gateway, tools = InMemoryGateway(use(ToolUse("1", "t", {}))), InMemoryTools(t=stubborn)
    events: list[EventBody] = []
    async for event in turn(gateway, tools, stop=stop):
        events.append(event)
        if isinstance(event, ToolProgress):
            stop.request("abort")
    check(events, gateway, tools)
    assert results(events)["1"].status == "interrupted"


@pytest.mark.parametrize("said", ["", "One moment."])
async def test_model_that_was_offered_no_tools_and_asks_for_one_is_told_in_words(said: str):
    gateway = InMemoryGateway(
        [TextDelta(said), *use(ToolUse("1", "made_up", {}), ToolUse("2", "other", {}))],
        reply(TextDelta("So.")),
    )
    events = await run(gateway)
    assert isinstance(events[-1], Done)
    assert [it.status for it in results(events).values()] == ["error", "error"]
    check_anthropic(anthropic_body(gateway.requests[1], "m"))
    check_openai(openai_body(gateway.requests[1], "m"))


async def test_arguments_that_no_wire_takes_go_back_to_the_model_mended():
    odd = {"nan": float("nan"), "big": 10**30, "half": "\ud83d"}
    gateway = InMemoryGateway(use(ToolUse("1", "tool", odd)), reply(TextDelta("So.")))
    await run(gateway, InMemoryTools(tool=gives(Returned("ok", odd))))
    assert encode(anthropic_body(gateway.requests[1], "m"))
    assert encode(openai_body(gateway.requests[1], "m"))


async def test_call_whose_arguments_cannot_be_checked_within_the_limits_is_not_made():
    class Exhausted:
        async def problem(self, user_id: str, schema: Mapping[str, Any], value: Any) -> str | None:
            return NOT_CHECKED

    tools = InMemoryTools(adds=adds)
    gateway = InMemoryGateway(use(ToolUse("1", "adds", {"a": 1})), reply(TextDelta("Done.")))
    events = [it async for it in events_of(Toolbox(tools, large_values(), Exhausted()), gateway)]
    assert (results(events)["1"].status, results(events)["1"].error) == ("error", NOT_CHECKED)
    assert not tools.calls


async def test_clock_of_a_turn_stays_stopped_when_a_pause_ends_after_it():
    ended: list[bool] = []
    timer = TurnTimer(0.001, 0, lambda: ended.append(True))
    with timer.paused():
        timer.stop()
    await asyncio.sleep(0.02)
    assert not ended
