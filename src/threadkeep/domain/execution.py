"""A run of another engine, reported by its own events, in any order and possibly repeated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest, MessageContentRequired
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Usage
from threadkeep.domain.parts import FilePart
from threadkeep.domain.retrieval import Citation
from threadkeep.domain.text import check_line, is_blank
from threadkeep.domain.tool_call import ToolCallStatus

MOST_ID_CHARACTERS = 200
MOST_PARTS = 2_000
"""Of a run: its events and their tools, citations and artifacts. It becomes a reply in one transaction."""
MOST_BYTES = 8 * 1024 * 1024
"""Of a run's events as they are stored; large values of tools are stored apart."""


class ExecutionEventType(Choice):
    """What an engine reports about a run."""

    STARTED = "ExecutionStarted"
    NODE_COMPLETED = "NodeCompleted"
    COMPLETED = "ExecutionCompleted"
    FAILED = "ExecutionFailed"
    CANCELLED = "ExecutionCancelled"


ENDS = {ExecutionEventType.COMPLETED, ExecutionEventType.FAILED, ExecutionEventType.CANCELLED}


@dataclass(frozen=True, slots=True)
class ExecutedTool:
    """A tool that a node of the run used."""

    tool_name: str
    arguments: Mapping[str, Any]
    server: str = ""
    result: Any = None
    error: str | None = None
    status: ToolCallStatus = ToolCallStatus.OK
    duration_ms: int | None = None
    tool_call_id: str | None = None
    refs: Mapping[str, PayloadId] = field(default_factory=dict[str, PayloadId])
    """The fields whose values are in the payload store."""


@dataclass(frozen=True, slots=True)
class ExecutionEvent:
    """One event of a run; which fields it needs depends on its type."""

    id: str
    type: ExecutionEventType
    run_id: str
    at: int
    input: str | None = None
    node: str | None = None
    detail: str = ""
    duration_ms: int = 0
    tools: tuple[ExecutedTool, ...] = ()
    output: str = ""
    citations: tuple[Citation, ...] = ()
    artifact_ids: tuple[str, ...] = ()
    files: tuple[FilePart, ...] = ()
    """The same: files of the conversation, and what only the engine has."""
    usage: Usage | None = None
    model: str | None = None
    error: str | None = None

    @property
    def part_count(self) -> int:
        """How much it adds to its run."""
        return 1 + len(self.tools) + len(self.citations) + len(self.artifact_ids)

    def __post_init__(self) -> None:
        check_line(self.id, "id", most=MOST_ID_CHARACTERS)
        check_line(self.run_id, "runId", most=MOST_ID_CHARACTERS)
        for artifact_id in self.artifact_ids:
            check_line(artifact_id, "artifactIds", most=MOST_ID_CHARACTERS)
        if self.type is ExecutionEventType.STARTED and (self.input is None or is_blank(self.input)):
            raise MessageContentRequired(f"{self.type} requires the user's `input`.", param="input")
        if self.type is ExecutionEventType.NODE_COMPLETED and not self.node:
            raise InvalidRequest(f"{self.type} requires `node`, the node's name.", param="node")
        if self.type is ExecutionEventType.FAILED and not self.error:
            raise InvalidRequest(f"{self.type} requires `error`, the reason for the failure.", param="error")
