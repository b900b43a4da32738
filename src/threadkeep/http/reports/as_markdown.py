"""A report as Markdown."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from html import escape
from typing import assert_never

from threadkeep.domain.chart import Chart, ChartKind
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import (
    NoticePart,
    QuestionPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.payload import Payload
from threadkeep.domain.retrieval import Citation
from threadkeep.domain.tool_call import ToolCall
from threadkeep.http.reports.text import (
    ShownPart,
    answer_text,
    chart_of,
    file_parts,
    file_text,
    heading_of,
    section_title,
    shown_parts,
    step_heading,
    thought_heading,
    value_text,
    words_of,
)
from threadkeep.services.reports import QuestionAndReply, Report
from threadkeep.wire.view import rfc3339

_BACKTICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~-])")


async def markdown_report(report: Report) -> AsyncIterator[str]:
    """The document, a pair at a time."""
    conversation = report.conversation
    lines = [
        f"# {_line(conversation.title or 'Conversation')}",
        "",
        f"- Agent: {_line(report.agent_name)}",
        f"- Conversation: {conversation.id}",
        f"- Begun: {rfc3339(conversation.created_at)}",
        f"- Report of: {rfc3339(report.made_at)}",
    ]
    if report.tool_name is not None:
        lines.append(f"- Tool: {_line(report.tool_name)}")
    yield _text(lines)
    number = 0
    async for pair in report.pairs:
        number += 1
        async for lines in report.written(_section(number, pair)):
            yield _text(lines)


def _section(number: int, pair: QuestionAndReply) -> Iterator[str]:
    yield from ("", f"## {section_title(number, pair)}", "")
    if pair.asked is not None:
        yield from (f"> {line}" for line in words_of(pair.asked).splitlines() or [""])
        yield from (f">\n> {_line(file_text(file))}" for file in file_parts(pair.asked))
    if pair.reply is not None:
        yield from _reply(pair.reply, pair.files)


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines).replace("\x00", "\ufffd")


def _reply(message: Message, files: Mapping[PayloadId, Payload]) -> Iterator[str]:
    for part in shown_parts(message):
        yield ""
        yield from _part(part)
    if message.error is not None:
        yield f"\n**{message.status}**: {_line(message.error.message)}"
    if message.citations:
        yield "\n**Sources**\n"
        yield from map(_source, message.citations)
    if message.artifact_ids:
        yield "\n**Files**\n"
        for id_ in message.artifact_ids:
            if file := files.get(id_):
                yield f"- [{_line(file.file_name or id_)}](/api/artifacts/{id_})"
            else:  # another engine's, or lost
                yield f"- {_line(id_)}"


def _part(part: ShownPart) -> Iterator[str]:
    match part:
        case TextPart():
            yield part.text
        case ThoughtPart():
            yield f"<details><summary>{escape(' '.join(thought_heading(part).split()))}</summary>\n"
            yield from (f"> {line}" for line in part.text.splitlines())
            yield "\n</details>"
        case ToolCallPart(call=call):
            yield from _call(call)
        case QuestionPart():
            yield f"**Asked:** {_line(part.message)}"
            yield f"**Answered:** {_line(answer_text(part))}"
        case UserTextPart():
            yield from (f"> {line}" for line in part.text.splitlines())
        case StepPart():
            yield f"*{_line(step_heading(part))}*"
        case NoticePart():
            yield f"*{_line(part.message)}*"
        case _ as never:
            assert_never(never)


def _call(call: ToolCall) -> Iterator[str]:
    yield f"### {_line(heading_of(call))}\n"
    yield _fenced(value_text(call.arguments), "json")
    yield _fenced(value_text(call.result if call.error is None else call.error))
    if call.chart_data is not None:
        chart = chart_of(call)
        yield _table(chart) if chart else _fenced(value_text(call.chart_data), "json")


def _table(chart: Chart) -> str:
    """A chart's numbers, since Markdown cannot draw."""
    names = [_line(series.name) or str(number) for number, series in enumerate(chart.series, 1)]
    head = [f"**{_line(chart.title)}**\n"] if chart.title else []
    rows = [f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for index, label in enumerate(chart.labels):
        cells = [_cell(series.values[index : index + 1]) for series in chart.series]
        is_scatter = chart.series[0].kind is ChartKind.SCATTER
        first = _cell(chart.series[0].xs[index : index + 1]) if is_scatter else _line(label)
        rows.append(f"| {first} | {' | '.join(cells)} |")
    return "\n" + "\n".join([*head, *rows]) + "\n"


def _cell(values: tuple[float | None, ...]) -> str:
    return "" if not values or values[0] is None else f"{values[0]:g}"


def _source(citation: Citation) -> str:
    page = f", p. {citation.page}" if citation.page is not None else ""
    return f"- [{citation.index}] {_line(citation.title)}{page}: {_line(citation.snippet)}"


def _line(text: str) -> str:
    """A text as part of a line, with Markdown escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _fenced(text: str, language: str = "") -> str:
    """A block of code that its own content cannot end."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"
