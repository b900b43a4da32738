"""Turns to tell: a recorded one with everything in it, and any that Hypothesis thinks of."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from threadkeep.domain.approval import ApprovalAction, ApprovalKind, ApprovalScope
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    EventBody,
    Failed,
    IterationRestart,
    IterationStart,
    Notice,
    Retrieval,
    StepChanged,
    Text,
    Thought,
    ToolCalled,
    ToolProgress,
    ToolResultStored,
    TurnEvent,
    TurnResumed,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, TurnId
from threadkeep.domain.message import Message, MessageRole, MessageStatus, Usage
from threadkeep.domain.parts import StepStatus
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.secret import Secret
from threadkeep.handling.stream import StreamEnd
from threadkeep.protocols.dialect import START, Dialect, Position, TurnContext

CONTEXT = TurnContext(
    TurnId("01890a5d-ac96-774b-bcce-b302099a8057"),
    MessageId("m2"),
    ConversationId("c1"),
    AgentId("a1"),
    Secret("s1"),
)
AT = 1_800_000_000_000
UNSHOWN = "docs__search_as_the_model_calls_it"
"""What is stored and never shown."""
REPLY = Message(
    id=CONTEXT.message_id,
    conversation_id=CONTEXT.conversation_id,
    seq=2,
    turn_id=CONTEXT.turn_id,
    role=MessageRole.ASSISTANT,
    parts=(),
    status=MessageStatus.PENDING,
    created_at=AT,
)

BEGINNING = (
    TurnStart("c1", "m1", "m2", "scripted"),
    IterationStart(1),
    Thought("Let me\nlook."),
    Text('Looking …\n"now"\r\n'),
    UsageReported(10, 4),
    ToolCalled("t1", "search", "docs", {"query": "合同"}, model_name=UNSHOWN),
    ToolProgress("t1", 1, message="half"),
    Retrieval("合同", (RetrievalHit("a.pdf", "条款", 0.5, page=3),), "t1"),
    ToolResultStored("t1", "search", "ok", {"found": 1}, duration_ms=12),
    Notice("MCP_SERVER_UNAVAILABLE", "mail is away"),
    IterationStart(2),
    Text("你好 👋"),
    UsageReported(30, 2, estimated=True),
)
COMPLETED = Done("COMPLETED", "m2", Usage(40, 6, estimated=True), "end_turn")
CANCELLED = Done("CANCELLED", "m2", Usage(40, 6, estimated=True), "aborted")
TIMED_OUT = Failed("GENERATION_TIMEOUT", "The turn took longer than 60 s.", retryable=True)


def turn(*bodies: EventBody) -> list[TurnEvent]:
    """Events as a turn numbers them."""
    return [TurnEvent(CONTEXT.turn_id, seq, AT + seq, body) for seq, body in enumerate(bodies, 1)]


RECORDED = turn(*BEGINNING, COMPLETED)


def told(dialect: Dialect, events: list[TurnEvent], after: Position = START) -> bytes:
    """All that a reader gets of a turn that has ended."""
    encoder = dialect.start(CONTEXT, after)
    first_seq = dialect.first_seq(after)
    return b"".join([encoder.encode(it) for it in events if it.seq >= first_seq]) + encoder.end(
        StreamEnd.OVER
    )


# A busy machine is no reason to fail.
patient = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])

texts = st.text(st.characters(exclude_categories=["Cs"]))
maybe_texts = st.none() | texts
counts = st.integers(0, 2**53)
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=8,
)
hits = st.builds(
    RetrievalHit, texts, texts, numbers, maybe_texts, maybe_texts, st.none() | st.integers(0, 10_000)
)
KINDS: dict[type[EventBody], st.SearchStrategy[EventBody]] = {
    TurnStart: st.builds(TurnStart, texts, texts, texts, maybe_texts),
    Retrieval: st.builds(Retrieval, texts, st.lists(hits, min_size=1).map(tuple), maybe_texts),
    IterationStart: st.builds(IterationStart, counts, maybe_texts),
    TurnResumed: st.builds(TurnResumed, counts),
    IterationRestart: st.builds(IterationRestart, counts, counts, maybe_texts),
    UserMessage: st.builds(UserMessage, texts, texts),
    ApprovalRequest: st.builds(
        ApprovalRequest,
        request_id=texts,
        kind=st.sampled_from(ApprovalKind),
        message=texts,
        expires_at=counts,
        tool_call_id=maybe_texts,
        schema=st.none() | st.dictionaries(texts, values),
        url=maybe_texts,
    ),
    ApprovalResponse: st.builds(
        ApprovalResponse,
        request_id=texts,
        action=st.sampled_from(ApprovalAction),
        scope=st.none() | st.sampled_from(ApprovalScope),
        arguments=st.none() | st.dictionaries(texts, values),
        content=values,
    ),
    Thought: st.builds(Thought, texts),
    Text: st.builds(Text, texts),
    ToolCalled: st.builds(ToolCalled, texts, texts, texts, st.dictionaries(texts, values), model_name=texts),
    ToolProgress: st.builds(ToolProgress, texts, numbers, st.none() | numbers, maybe_texts),
    ToolResultStored: st.builds(
        ToolResultStored,
        tool_call_id=texts,
        tool_name=texts,
        status=st.sampled_from(["ok", "error", "timeout", "denied", "interrupted"]),
        result=values,
        error=maybe_texts,
        duration_ms=counts,
        chart_data=values,
        artifact_ids=st.lists(texts).map(tuple),
    ),
    StepChanged: st.builds(
        StepChanged,
        step_id=texts,
        name=texts,
        kind=st.sampled_from(["step", "stream"]),
        status=st.sampled_from(["running", "ok", "error", "cancelled", "unknown"]),
        title=maybe_texts,
        duration_ms=st.none() | counts,
        parent_id=maybe_texts,
        agent=maybe_texts,
    ),
    Notice: st.builds(Notice, texts, texts),
    UsageReported: st.builds(UsageReported, counts, counts, st.booleans()),
    Done: st.builds(
        Done,
        status=st.sampled_from(["COMPLETED", "CANCELLED"]),
        message_id=texts,
        usage=st.builds(Usage, counts, counts, st.booleans()),
        stop_reason=texts,
    ),
    Failed: st.builds(Failed, texts, texts, st.booleans()),
}
turns = st.lists(st.one_of(*KINDS.values()), min_size=1, max_size=12).map(lambda it: turn(*it))


@st.composite
def model_calls(draw: st.DrawFn) -> list[TurnEvent]:
    """Turns as models make them: calls that think, speak and use tools, each tool with its result."""
    bodies: list[EventBody] = [TurnStart("c1", "m1", "m2", "scripted")]
    said = st.sampled_from(["Numbers", " first.", "\n", " ", "", "\n\nAnd", "合同", "👋"])
    for iteration in range(1, draw(st.integers(1, 4)) + 1):
        bodies.append(IterationStart(iteration))
        called: list[str] = []
        for number, kind in enumerate(draw(st.lists(st.sampled_from(["text", "thought", "tool", "notice"])))):
            match kind:
                case "text":
                    bodies += map(Text, draw(st.lists(said, max_size=3)))
                case "thought":
                    bodies.append(Thought(draw(said)))
                case "tool":
                    called.append(f"{iteration}.{number}")
                    bodies.append(ToolCalled(called[-1], "search", "docs", {"n": number}))
                case _:
                    bodies.append(Notice("X", "away"))
        bodies += [ToolResultStored(id_, "search", "ok", {"of": id_}, duration_ms=3) for id_ in called]
        bodies.append(UsageReported(draw(counts), 1))
    return turn(*bodies)


replies = model_calls()


# Turns as they happen

said = st.sampled_from(["Numbers", " first.", "\n", " ", "", "合同", "👋", "[DONE]", "As [1] says."])
found = st.builds(
    RetrievalHit, st.sampled_from(["a.pdf", "memory"]), said, st.just(0.5), st.none() | st.just("k1")
)
searches = st.builds(Retrieval, st.just("law"), st.lists(found, min_size=1, max_size=2).map(tuple))
spoken: st.SearchStrategy[list[EventBody]] = st.lists(
    st.builds(Text, said) | st.builds(Thought, said) | st.just(Notice("X", "away")) | searches, max_size=5
)
LOST: tuple[list[EventBody], ...] = (
    [],
    [UsageReported(1, 1)],
    [TurnResumed(2)],
    [TurnResumed(2), UsageReported(1, 1)],
)
"""What precedes a model call's restart: its connection has broken, or its node."""


@st.composite
def programs(draw: st.DrawFn) -> list[TurnEvent]:
    """Turns of agents in code: steps begin and end while any of them, or the program itself, speaks."""
    names = draw(st.lists(st.sampled_from(["find", "refund"]), min_size=1, max_size=4))
    begun: dict[str, str] = {}
    spoke: dict[str, int] = {}
    open_: list[str] = []
    bodies: list[EventBody] = [TurnStart("c1", "m1", "m2", None)]
    iteration, voice, waiting = 0, None, list(enumerate(names, 1))
    for act in draw(st.lists(st.sampled_from(["begin", "end", "say", "resume", "ask"]), max_size=14)):
        if act == "begin" and waiting:
            number, name = waiting.pop(0)
            begun[str(number)] = name
            open_.append(str(number))
            bodies.append(StepChanged(str(number), name, "stream", "running", title=draw(maybe_texts)))
        elif act == "end" and open_:
            id_ = open_.pop(draw(st.integers(0, len(open_) - 1)))
            spoke.pop(id_, None)
            status: StepStatus = draw(st.sampled_from(["ok", "error", "cancelled", "unknown"]))
            bodies.append(StepChanged(id_, begun[id_], "stream", status, duration_ms=7))
        elif act == "say":
            speaker = draw(st.sampled_from(["", *open_]))
            if speaker != voice:
                iteration, voice = iteration + 1, speaker
                bodies.append(IterationStart(iteration, speaker))
                spoke[speaker] = iteration
            bodies += draw(spoken)
        elif act == "ask":
            request = f"q{len(bodies)}"
            bodies.append(ApprovalRequest(request, ApprovalKind.QUESTION, "Refund it?", AT))
            bodies.append(ApprovalResponse(request, ApprovalAction.ANSWER, content="yes"))
        elif act == "resume":
            bodies.append(TurnResumed(1))
            cut_off = [id_ for id_ in open_ if id_ in spoke]
            for id_ in cut_off:
                bodies.append(IterationRestart(spoke.pop(id_), 1, id_))
            bodies += [StepChanged(id_, begun[id_], "stream", "running") for id_ in open_]
            voice = None
    bodies += [IterationStart(iteration + 1, ""), Text("The end."), UsageReported(3, 2)]
    return turn(*bodies, draw(st.sampled_from([COMPLETED, CANCELLED, TIMED_OUT])))


@st.composite
def _logs_of_models(draw: st.DrawFn) -> list[TurnEvent]:
    """Turns with repeated model calls, tools of ours and of the client that may ask, and steering."""
    bodies: list[EventBody] = [TurnStart("c1", "m1", "m2", "scripted"), *draw(st.lists(searches, max_size=1))]
    for iteration in range(1, draw(st.integers(1, 3)) + 1):
        bodies.append(IterationStart(iteration))
        for lost in draw(st.lists(st.sampled_from(LOST), max_size=2)):
            bodies += [*draw(spoken), *lost, IterationRestart(iteration)]
        bodies += [*draw(spoken), UsageReported(3, 2, model=draw(st.sampled_from([None, "other"])))]
        calls = [
            ToolCalled(f"{iteration}.{at}", "search", server, {"n": at}, model_name="search", asks=asks)
            for at, (server, asks) in enumerate(
                draw(st.lists(st.tuples(st.sampled_from(["docs", "client", ""]), st.booleans()), max_size=3))
            )
        ]
        bodies += [*calls, *draw(_interleaved([draw(_executed(call)) for call in calls]))]
        bodies += draw(st.lists(st.builds(UserMessage, st.just(f"s{iteration}"), said), max_size=1))
    bodies += [IterationStart(9), Text("The end."), UsageReported(3, 2)]
    return turn(*bodies, draw(st.sampled_from([COMPLETED, CANCELLED, TIMED_OUT])))


def logs() -> st.SearchStrategy[list[TurnEvent]]:
    """Turns of models, and of programs."""
    return _logs_of_models() | programs()


@st.composite
def _executed(draw: st.DrawFn, call: ToolCalled) -> list[EventBody]:
    """A call from its request, if it asks, to its result."""
    id_, steps = call.tool_call_id, list[EventBody]()
    action = draw(st.sampled_from([ApprovalAction.ALLOW, ApprovalAction.EDIT, ApprovalAction.DENY]))
    is_allowed = not call.asks or action is not ApprovalAction.DENY
    if call.asks:
        edited = {"n": 9} if action is ApprovalAction.EDIT else None
        steps += _asked(id_, ApprovalKind.TOOL, ApprovalResponse(f"{id_}-tool", action, arguments=edited))
    if is_allowed and call.server == "client":
        answer = ApprovalResponse(f"{id_}-client_tool", ApprovalAction.RESULT, content="here")
        steps += _asked(id_, ApprovalKind.CLIENT_TOOL, answer)
    elif is_allowed and draw(st.booleans()):
        kind = draw(st.sampled_from([ApprovalKind.QUESTION, ApprovalKind.ELICITATION]))
        steps += _asked(id_, kind, ApprovalResponse(f"{id_}-{kind}", ApprovalAction.ANSWER, content="this"))
    steps += draw(st.lists(st.just(ToolProgress(id_, 0.5)) | searches | st.just(TurnResumed(3)), max_size=2))
    if is_allowed and draw(st.booleans()):
        return [*steps, ToolResultStored(id_, call.tool_name, "ok", draw(said))]
    return [*steps, ToolResultStored(id_, call.tool_name, "error" if is_allowed else "denied", error="No.")]


def _asked(call_id: str, kind: ApprovalKind, answer: ApprovalResponse) -> list[EventBody]:
    return [ApprovalRequest(answer.request_id, kind, "May I?", AT, call_id), answer]


@st.composite
def _interleaved(draw: st.DrawFn, sequences: list[list[EventBody]]) -> list[EventBody]:
    order = draw(st.permutations([at for at, it in enumerate(sequences) for _ in it]))
    following = [iter(it) for it in sequences]
    return [next(following[at]) for at in order]
