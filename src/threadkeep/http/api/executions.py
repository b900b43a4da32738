"""Turns that ran in another engine, over HTTP."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from threadkeep.domain.execution import ExecutedTool, ExecutionEvent, ExecutionEventType
from threadkeep.domain.message import Usage
from threadkeep.domain.retrieval import Citation
from threadkeep.domain.times import LATEST_MS
from threadkeep.domain.tool_call import ToolCallStatus
from threadkeep.handling.routing import RequestContext
from threadkeep.services.executions import MOST_EVENTS_AT_ONCE
from threadkeep.wire.executions import RunsView, RunView

MOST_OF_AN_EVENT = 1_000

Milliseconds = Annotated[
    int, Meta(ge=0, le=LATEST_MS, description="Milliseconds since 1970 (UTC), before the year 10000.")
]
Length = Annotated[int, Meta(ge=0, le=2**40)]


class _Body(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pass


class ExecutedToolBody(_Body, frozen=True, kw_only=True):
    """A tool that a node used."""

    tool_name: Annotated[
        str, Meta(min_length=1, max_length=200, description="The tool that the node called.")
    ]
    arguments: Annotated[dict[str, Any], Meta(description="What the tool was called with.")] = {}
    server: Annotated[
        str, Meta(max_length=200, description="The MCP server or program that the tool belongs to.")
    ] = ""
    result: Annotated[Any, Meta(description="What the tool returned: any JSON value.")] = None
    error: Annotated[str | None, Meta(description="Why the call failed, if it did.")] = None
    status: Annotated[
        ToolCallStatus, Meta(description="How the call ended; `ok` unless you say otherwise.")
    ] = ToolCallStatus.OK
    duration_ms: Annotated[Length | None, Meta(description="How long the call took, in milliseconds.")] = None
    tool_call_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        Meta(description="The engine's id of the call; generated if it is missing."),
    ] = None


class CitationBody(_Body, frozen=True, kw_only=True):
    """A source; sources are numbered in order of arrival."""

    title: Annotated[str, Meta(description="What readers see as the source's name.")]
    snippet: Annotated[str, Meta(description="The sentence or passage that was cited.")] = ""
    score: Annotated[float, Meta(ge=0, le=1, description="How well it matches, from 0 to 1.")] = 1.0
    url: Annotated[str | None, Meta(description="Where readers can open the source.")] = None
    file_name: Annotated[str | None, Meta(description="The name of the file that was cited.")] = None
    document_id: Annotated[str | None, Meta(description="The outside engine's id of the document.")] = None
    page: Annotated[
        Annotated[int, Meta(ge=1, le=2**31)] | None,
        Meta(description="The page of the document, counted from 1."),
    ] = None


class ExecutionUsageBody(_Body, frozen=True, kw_only=True):
    """The tokens that a run spent."""

    input_tokens: Annotated[Length, Meta(description="The tokens of all input, cached ones included.")]
    output_tokens: Annotated[Length, Meta(description="The tokens that the model wrote.")]
    estimated: Annotated[
        bool, Meta(description="Whether these numbers are estimates rather than the provider's.")
    ] = False


class ExecutionEventBody(_Body, frozen=True, kw_only=True):
    """An event of a run. `ExecutionStarted` has the user's `input`, `NodeCompleted` its `node`,
    `ExecutionCompleted` the `output`, `ExecutionFailed` the `error`.
    """

    id: Annotated[
        str, Meta(description="The engine's id of the event; an event that arrives twice counts once.")
    ]
    type: Annotated[
        ExecutionEventType, Meta(description="What happened: the run started, a node or the run ended.")
    ]
    run_id: Annotated[str, Meta(description="Your id of the run, at most 200 characters.")]
    at: Milliseconds
    input: Annotated[str | None, Meta(description="Of `ExecutionStarted`: what the user asked for.")] = None
    node: Annotated[
        Annotated[str, Meta(max_length=500)] | None,
        Meta(description="Of `NodeCompleted`: the name of the node."),
    ] = None
    detail: Annotated[str, Meta(description="What the node did, in a sentence for readers.")] = ""
    duration_ms: Annotated[Length, Meta(description="How long the node took, in milliseconds.")] = 0
    tools: Annotated[
        list[ExecutedToolBody],
        Meta(max_length=MOST_OF_AN_EVENT, description="The tools that the node called, at most 1,000."),
    ] = []
    output: Annotated[
        str, Meta(description="Of `NodeCompleted`, what it made; of `ExecutionCompleted`, the answer.")
    ] = ""
    citations: Annotated[
        list[CitationBody],
        Meta(max_length=MOST_OF_AN_EVENT, description="The sources that the node used, at most 1,000."),
    ] = []
    artifact_ids: Annotated[
        list[Annotated[str, Meta(max_length=200)]],
        Meta(
            max_length=MOST_OF_AN_EVENT,
            description="Files of this conversation, or the engine's own ids, which are only shown.",
        ),
    ] = []
    usage: Annotated[
        ExecutionUsageBody | None, Meta(description="The tokens that the run used, if they are known.")
    ] = None
    model: Annotated[
        Annotated[str, Meta(max_length=200)] | None,
        Meta(description="The model that wrote the answer, if one did."),
    ] = None
    error: Annotated[str | None, Meta(description="Of `ExecutionFailed`: why the run failed.")] = None


class ExecutionsBody(_Body, frozen=True, kw_only=True):
    """Events of one or more runs."""

    events: Annotated[
        Sequence[ExecutionEventBody],
        Meta(
            max_length=MOST_EVENTS_AT_ONCE,
            description="At most 1,000 events, in any order; sending one twice changes nothing.",
        ),
    ]


async def record_executions(
    request: RequestContext, *, conversation_id: str, body: ExecutionsBody
) -> RunsView:
    """Record turns that ran in another engine.

    Events can arrive in any order and more than once. Threadkeep keeps them until both the start and the end
    of the run have arrived; then the run becomes a turn with its messages, once. Later events are ignored.
    A run can have at most 2,000 events, tools, citations and artifacts together, and 8 MB of text without
    large values of tools; its start and its end have as much room again. What is more is refused with
    `PAYLOAD_TOO_LARGE`, and nothing of that request is kept; `details.limit` is `runParts` or `runBytes`.
    """
    events = await request.aside(_events, body)
    runs = await request.services.executions.record(request.user, conversation_id, events)
    return RunsView(items=[RunView(run_id=run.run_id, turn_id=run.turn_id) for run in runs])


def _events(body: ExecutionsBody) -> Sequence[ExecutionEvent]:
    return [_event(event) for event in body.events]


def _event(body: ExecutionEventBody) -> ExecutionEvent:
    fields = {name: getattr(body, name) for name in ExecutionEventBody.__struct_fields__}
    fields["tools"] = tuple(ExecutedTool(**_fields(tool)) for tool in body.tools)
    fields["citations"] = tuple(Citation(index=0, **_fields(citation)) for citation in body.citations)
    fields["artifact_ids"] = tuple(body.artifact_ids)
    fields["usage"] = Usage(**_fields(body.usage)) if body.usage else None
    return ExecutionEvent(**fields)


def _fields(body: Struct) -> dict[str, Any]:
    return {name: getattr(body, name) for name in body.__struct_fields__}
