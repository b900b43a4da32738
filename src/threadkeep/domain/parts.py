"""The parts of a message, in order of arrival.

Everything else that a message shows (its text, its thought process, its tool calls, its citations, its
artifacts) is a view of its parts, computed only here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeGuard

from threadkeep.domain.approval import CallApproval, Decision
from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.retrieval import Citation, PassageNumbers, RetrievalHit
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall

BLANK_LINE = "\n\n"
MOST_STEP_NAME_CHARACTERS = 128
MOST_STEP_TITLE_CHARACTERS = 200

StepStatus = Literal["running", "ok", "error", "cancelled", "unknown"]
"""`unknown`: it was cut off, and nobody knows whether it took effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Text that the user or the model wrote."""

    type: ClassVar[str] = "text"
    text: str
    iteration: int = 0
    """The model call that it belongs to, from 1; 0 before the first, and in messages of users."""
    superseded: bool = False
    """Whether its model call was repeated: it stays visible but no longer counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtPart:
    """The model's reasoning; `title` names a step of another engine's run."""

    type: ClassVar[str] = "thought"
    text: str
    started_at: int
    duration_ms: int = 0
    title: str | None = None
    iteration: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallPart:
    """A tool call with its result, and the requests about it: to the user, and to the client that runs it."""

    type: ClassVar[str] = "tool_call"
    call: ToolCall
    approval: CallApproval | None = None
    client_request: CallApproval | None = None
    """Its decision doesn't repeat what the client returned: the call has it."""
    parent_id: str | None = None
    """The step that ran the agent that called it, unless that is the reply's own."""
    iteration: int = 0
    superseded: bool = False

    @property
    def is_of_other_agent(self) -> bool:
        """Whether another agent called it on the way: models of later turns don't receive it."""
        return self.parent_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalPart:
    """Passages found before the reply or by a tool call."""

    type: ClassVar[str] = "retrieval"
    query: str
    hits: tuple[RetrievalHit, ...]
    at: int
    tool_call_id: str | None = None
    iteration: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPart:
    """What the model, an agent in code or an MCP server asked the user; `decision` is None while it waits."""

    type: ClassVar[str] = "question"
    request_id: str
    message: str
    at: int
    expires_at: int
    tool_call_id: str | None = None
    schema: Mapping[str, Any] | None = None
    url: str | None = None
    decision: Decision | None = None
    iteration: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTextPart:
    """The user's message while the turn ran, at the point where the turn accepted it."""

    type: ClassVar[str] = "user_text"
    message_id: str
    text: str
    at: int
    iteration: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPart:
    """A step of an agent in code: a function that ran once, whatever crashed."""

    type: ClassVar[str] = "step"
    step_id: str
    name: str
    status: StepStatus
    at: int
    """When it began."""
    title: str | None = None
    duration_ms: int | None = None
    parent_id: str | None = None
    """The step that ran the agent whose step it is."""
    agent: str | None = None
    iteration: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticePart:
    """Something degraded, but the turn continued."""

    type: ClassVar[str] = "notice"
    code: str
    message: str
    at: int
    iteration: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A file that the user attached, an image that a tool returned, or a file from another engine's run."""

    type: ClassVar[str] = "file"
    file_id: PayloadId
    file_name: str = ""
    media_type: str = ""
    size: int = 0
    width: int | None = None
    height: int | None = None
    refs: Mapping[str, PayloadId] = field(default_factory=dict[str, PayloadId])
    """Other forms of a file: an image for models and for lists, a document's text."""
    pages: int | None = None
    """The page count of a PDF that opens without a password."""
    tool_call_id: str | None = None
    """The call that returned it."""
    is_elsewhere: bool = False
    """Whether only another engine has it, under an id of its own: there is nothing to download."""
    iteration: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPart:
    """A briefing."""

    type: ClassVar[str] = "card"
    card: BriefingCard
    iteration: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPart:
    """The reply as a value, where it is structured; the text says the same as JSON."""

    type: ClassVar[str] = "output"
    value: Any
    iteration: int = 0
    superseded: bool = False


Part = (
    TextPart
    | ThoughtPart
    | ToolCallPart
    | RetrievalPart
    | QuestionPart
    | UserTextPart
    | StepPart
    | NoticePart
    | FilePart
    | CardPart
    | OutputPart
)
Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ThoughtStep:
    """One step on the agent's way to its reply, which the page shows in a folding card."""

    kind: str
    title: str
    detail: str
    started_at: int
    duration_ms: int
    tool_call_id: str | None = None


class TextJoin:
    """Joins the texts of a reply, with a blank line where a tool call or another model call separates them.

    Append-only streams separate texts alike, so what they show equals the final message.
    """

    def __init__(self) -> None:
        self._has_text = False
        self._is_broken = False

    def interrupt(self) -> None:
        """A tool call or another model call separates the next text from the previous one."""
        self._is_broken = True

    def add(self, text: str) -> str:
        """The next text with its separator."""
        separator = BLANK_LINE if self._is_broken and self._has_text else ""
        self._is_broken = False
        self._has_text = self._has_text or not is_blank(text)
        return separator + text


def text_parts(text: str) -> Parts:
    """The parts of a text-only message."""
    return (TextPart(text=text),) if text else ()


def card_of(parts: Parts) -> BriefingCard | None:
    """The briefing that a message shows, if it is one."""
    return parts[0].card if parts and isinstance(parts[0], CardPart) else None


def is_one_text(parts: Parts) -> TypeGuard[tuple[TextPart]]:
    """Whether there is only a text. Asked first because most messages are, and pages have many messages."""
    return len(parts) == 1 and isinstance(parts[0], TextPart)


def content_of(parts: Parts) -> str:
    """A message's text."""
    if is_one_text(parts) and not parts[0].superseded:
        return parts[0].text
    return "".join(text for _, text in joined_texts(parts))


def joined_texts(parts: Iterable[Part]) -> Iterator[tuple[TextPart, str]]:
    """The text parts that count, each with its separator from the one before."""
    join, iteration = TextJoin(), 0
    for part in _counting(parts):
        if part.iteration != iteration:
            join.interrupt()
            iteration = part.iteration
        if isinstance(part, TextPart):
            yield part, join.add(part.text)
        elif isinstance(part, ToolCallPart | UserTextPart):
            join.interrupt()


def tool_calls_of(parts: Parts) -> tuple[ToolCall, ...]:
    """The tool calls, in the order in which the model made them."""
    if is_one_text(parts):
        return ()
    return tuple(part.call for part in _counting(parts) if isinstance(part, ToolCallPart))


def with_calls(parts: Parts, change: Callable[[ToolCall], ToolCall]) -> Parts:
    """The same parts with each tool call changed, including superseded ones."""
    return tuple(
        replace(part, call=change(part.call)) if isinstance(part, ToolCallPart) else part for part in parts
    )


def citations_of(parts: Parts) -> tuple[Citation, ...]:
    """Everything found, each chunk once, under the number by which the model cites it."""
    hits = [hit for part in _counting(parts) if isinstance(part, RetrievalPart) for hit in part.hits]
    numbers = PassageNumbers().add(hits)
    places = enumerate(zip(numbers, hits, strict=True), 1)
    return tuple(Citation.of(hit, number) for place, (number, hit) in places if number == place)


def artifact_ids_of(parts: Parts) -> tuple[PayloadId, ...]:
    """The files that the turn produced."""
    found: list[PayloadId] = []
    for part in _counting(parts):
        if isinstance(part, ToolCallPart):
            found += part.call.artifact_ids
        elif isinstance(part, FilePart) and not part.tool_call_id:  # a tool's files are in its call
            found.append(part.file_id)
    return tuple(found)


def output_of(parts: Parts) -> Any:
    """The reply as a value; None if it is only a text."""
    if is_one_text(parts):
        return None
    return next((part.value for part in reversed(parts) if isinstance(part, OutputPart)), None)


def thought_process_of(parts: Parts) -> tuple[ThoughtStep, ...]:
    """How the agent reached its reply, step by step."""
    return tuple(step for part in _counting(parts) if (step := _step(part)) is not None)


def _step(part: Part) -> ThoughtStep | None:
    match part:
        case ThoughtPart():
            kind = "thought" if part.title is None else "node"
            title = "Thought" if part.title is None else part.title
            return ThoughtStep(kind, title, part.text, part.started_at, part.duration_ms)
        case ToolCallPart(call=call):
            took = call.duration_ms or 0
            error = call.error or ""
            return ThoughtStep("tool", call.tool_name, error, call.created_at, took, call.tool_call_id)
        case RetrievalPart(query=""):  # sources without a search
            return None
        case RetrievalPart():
            sources = ", ".join(dict.fromkeys(hit.source for hit in part.hits))
            return ThoughtStep("retrieval", part.query, sources, part.at, 0, part.tool_call_id)
        case StepPart():
            fault = "" if part.status == "ok" else part.status
            return ThoughtStep("node", part.title or part.name, fault, part.at, part.duration_ms or 0)
        case NoticePart():
            return ThoughtStep("notice", part.code, part.message, part.at, 0)
        case QuestionPart():
            asked = "" if part.decision is None else part.decision.action
            return ThoughtStep("question", part.message, asked, part.at, 0, part.tool_call_id)
        case TextPart() | UserTextPart() | FilePart() | CardPart() | OutputPart():
            return None


def _counting(parts: Iterable[Part]) -> Iterator[Part]:
    return (part for part in parts if not part.superseded)
