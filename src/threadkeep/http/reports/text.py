"""The texts and values that both forms of a report share."""

from collections.abc import Iterator

import msgspec

from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.chart import Chart, read_chart
from threadkeep.domain.file import file_line
from threadkeep.domain.message import Message
from threadkeep.domain.parts import (
    FilePart,
    NoticePart,
    QuestionPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall
from threadkeep.services.reports import QuestionAndReply

MOST_VALUE_CHARACTERS = 20_000
MOST_BYTES_LAID_OUT = 256 * 1024

_SHOWN = (TextPart, ThoughtPart, ToolCallPart, QuestionPart, UserTextPart, StepPart, NoticePart)
ShownPart = TextPart | ThoughtPart | ToolCallPart | QuestionPart | UserTextPart | StepPart | NoticePart


def words_of(message: Message) -> str:
    """A message's text."""
    content = message.content
    return f"{content.title}\n\n{content.summary}" if isinstance(content, BriefingCard) else content


def section_title(number: int, pair: QuestionAndReply) -> str:
    """The heading of a pair."""
    return str(number) if pair.on_path else f"{number} (another branch)"


def shown_parts(message: Message) -> Iterator[ShownPart]:
    """The parts of a reply that a report shows, in order; sources and files are listed below it."""
    for part in message.parts:
        if part.superseded or (isinstance(part, TextPart) and is_blank(part.text)):
            continue
        if isinstance(part, _SHOWN):
            yield part


def file_parts(message: Message) -> list[FilePart]:
    """The files that are parts of a message."""
    return [part for part in message.parts if isinstance(part, FilePart) and not part.superseded]


def file_text(part: FilePart) -> str:
    """A file as a line."""
    return file_line(part.file_name or part.file_id, part.media_type, part.size)


def answer_text(part: QuestionPart) -> str:
    """The user's answer to a question, for people."""
    if part.decision is None:
        return "no answer"
    content = part.decision.content
    return part.decision.action if content is None else value_text(content)


def thought_heading(part: ThoughtPart) -> str:
    """A thought in a line: what the step is called, and how long it took."""
    name = "Thought" if part.title is None else part.title
    return f"{name} ({part.duration_ms} ms)" if part.duration_ms else name


def step_heading(part: StepPart) -> str:
    """A step of an agent in code in a line."""
    took = "" if part.duration_ms is None else f", {part.duration_ms} ms"
    return f"{part.agent or part.title or part.name} ({part.status}{took})"


def value_text(value: object) -> str:
    """A value for people: a text as is, anything else as indented JSON; truncated if long."""
    if isinstance(value, msgspec.Raw) and bytes(value).startswith(b'"'):
        value = msgspec.json.decode(value)
    text = value if isinstance(value, str) else _laid_out(msgspec.json.encode(value))
    shown = text[:MOST_VALUE_CHARACTERS].replace("\x00", "\ufffd")
    return shown if len(text) <= MOST_VALUE_CHARACTERS else f"{shown}\n… [{len(text)} characters in all]"


def _laid_out(value: bytes) -> str:
    """Indented JSON, unless it is so long that hardly any of it will be shown."""
    return (msgspec.json.format(value, indent=2) if len(value) <= MOST_BYTES_LAID_OUT else value).decode()


def chart_of(call: ToolCall) -> Chart | None:
    """The chart in a tool's result, if any."""
    chart = call.chart_data
    return read_chart(msgspec.json.decode(chart) if isinstance(chart, msgspec.Raw) else chart)


def heading_of(call: ToolCall) -> str:
    """A tool call in a line."""
    name = f"{call.server} / {call.tool_name}" if call.server else call.tool_name
    took = "" if call.duration_ms is None else f", {call.duration_ms} ms"
    return f"{name} ({call.status}{took})"
