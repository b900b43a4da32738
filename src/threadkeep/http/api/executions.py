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

    tool_name: Annotated[str, Meta(min_length=1, max_length=200)]
    arguments: dict[str, Any] = {}
    server: Annotated[str, Meta(max_length=200)] = ""
    result: Any = None
    error: str | None = None
    status: ToolCallStatus = ToolCallStatus.OK
    duration_ms: Length | None = None
    tool_call_id: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class CitationBody(_Body, frozen=True, kw_only=True):
    """A source; sources are numbered in order of arrival."""

    title: str
    snippet: str = ""
    score: Annotated[float, Meta(ge=0, le=1)] = 1.0
    url: str | None = None
    file_name: str | None = None
    document_id: str | None = None
    page: Annotated[int, Meta(ge=1, le=2**31)] | None = None


class ExecutionUsageBody(_Body, frozen=True, kw_only=True):
    """Tokens spent."""

    input_tokens: Length
    output_tokens: Length
    estimated: bool = False


class ExecutionEventBody(_Body, frozen=True, kw_only=True):
    """An event of a run. `ExecutionStarted` has the user's `input`, `NodeCompleted` its `node`,
    `ExecutionCompleted` the `output`, `ExecutionFailed` the `error`.
    """

    id: Annotated[
        str, Meta(description="The engine's id of the event; an event that arrives twice counts once.")
    ]
    type: ExecutionEventType
    run_id: str
    at: Milliseconds
    input: str | None = None
    node: Annotated[str, Meta(max_length=500)] | None = None
    detail: str = ""
    duration_ms: Length = 0
    tools: Annotated[list[ExecutedToolBody], Meta(max_length=MOST_OF_AN_EVENT)] = []
    output: str = ""
    citations: Annotated[list[CitationBody], Meta(max_length=MOST_OF_AN_EVENT)] = []
    artifact_ids: Annotated[
        list[Annotated[str, Meta(max_length=200)]],
        Meta(
            max_length=MOST_OF_AN_EVENT,
            description="Files of this conversation, or the engine's own ids, which are only shown.",
        ),
    ] = []
    usage: ExecutionUsageBody | None = None
    model: Annotated[str, Meta(max_length=200)] | None = None
    error: str | None = None


class ExecutionsBody(_Body, frozen=True, kw_only=True):
    """Events of one or more runs."""

    events: Annotated[Sequence[ExecutionEventBody], Meta(max_length=MOST_EVENTS_AT_ONCE)]


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
