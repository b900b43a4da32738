"""A report as one HTML file: no script, nothing fetched, charts drawn, every text escaped."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from html import escape
from typing import assert_never

from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import (
    FilePart,
    NoticePart,
    QuestionPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.payload import Payload
from threadkeep.domain.tool_call import ToolCall
from threadkeep.http.reports.chart_svg import draw
from threadkeep.http.reports.images import ReportImages
from threadkeep.http.reports.text import (
    ShownPart,
    answer_text,
    chart_of,
    file_parts,
    file_text,
    heading_of,
    section_title,
    shown_parts,
    thought_heading,
    value_text,
    words_of,
)
from threadkeep.services.reports import Exchange, Report
from threadkeep.wire.view import rfc3339

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
  color: #23211d; }
h1 { font-size: 1.5rem; } h2 { font-size: 1rem; color: #5b574f; }
h3 { font-size: .9rem; margin-bottom: .3rem; }
.asked { border-left: 3px solid #24604f; padding-left: .8rem; }
.asked, .answered, .thought { white-space: pre-wrap; overflow-wrap: anywhere; }
.answered { margin: .8rem 0; } .thought, .notice, summary { color: #5b574f; }
pre { background: #f6f4f0; padding: .6rem; overflow: auto; max-height: 24rem; white-space: pre-wrap; }
.failed { color: #a3271c; } section { border-top: 1px solid #e3dfd7; margin-top: 1.5rem; }
svg { width: 100%; max-width: 640px; } figure { margin: .8rem 0; } figcaption { color: #5b574f; }
img { display: block; max-width: 100%; max-height: 30rem; }
"""


async def html_report(report: Report, images: ReportImages) -> AsyncIterator[str]:
    """The document, an exchange at a time."""
    title = escape(report.conversation.title or "Conversation")
    yield "".join(
        [
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            f"<style>{_STYLE}</style></head><body><main><h1>{title}</h1><p>",
            f"{escape(report.agent_name)} · {rfc3339(report.conversation.created_at)}",
            f" · {escape(report.tool_name)}" if report.tool_name is not None else "",
            f" · report of {rfc3339(report.made_at)}</p>",
        ]
    )
    number = 0
    async for exchange in report.exchanges:
        number += 1
        shown = await images.of(exchange)
        # In a thread: tools' results may be large, and would block others here.
        yield await asyncio.to_thread(_section, number, exchange, shown)
    yield "</main></body></html>"


def _section(number: int, exchange: Exchange, images: Mapping[PayloadId, str]) -> str:
    parts = [f"<section><h2>{section_title(number, exchange)}</h2>"]
    if exchange.asked is not None:
        parts.append(f'<div class="asked">{escape(words_of(exchange.asked))}</div>')
        parts += [_file(file, images.get(file.file_id)) for file in file_parts(exchange.asked)]
    if exchange.reply is not None:
        shown = [file for file in file_parts(exchange.reply) if file.file_id in images]
        parts += [_file(file, images[file.file_id]) for file in shown]
        parts += _reply(exchange.reply, exchange.files)
    return "".join([*parts, "</section>"])


def _file(file: FilePart, image: str | None) -> str:
    """An image itself if there is room for it, any other file as a line."""
    line = escape(file_text(file))
    if image is None:
        return f'<p class="notice">{line}</p>'
    alt = escape(file.file_name)
    return f'<figure><img src="{image}" alt="{alt}"><figcaption>{line}</figcaption></figure>'


def _reply(message: Message, files: Mapping[PayloadId, Payload]) -> Iterator[str]:
    for part in shown_parts(message):
        yield from _part(part)
    if message.error is not None:
        yield f'<p class="failed">{escape(message.status)}: {escape(message.error.message)}</p>'
    if message.citations:
        yield "<h3>Sources</h3><ol>"
        for citation in message.citations:
            page = f", p. {citation.page}" if citation.page is not None else ""
            yield f"<li>{escape(citation.title)}{page}: {escape(citation.snippet)}</li>"
        yield "</ol>"
    if message.artifact_ids:
        yield "<h3>Files</h3><ul>"
        for id_ in message.artifact_ids:
            if file := files.get(id_):
                name = escape(file.file_name or id_)
                yield f'<li><a href="/api/artifacts/{escape(id_)}">{name}</a></li>'
            else:  # another engine's, or lost
                yield f"<li>{escape(id_)}</li>"
        yield "</ul>"


def _part(part: ShownPart) -> Iterator[str]:
    match part:
        case TextPart():
            yield f'<div class="answered">{escape(part.text)}</div>'
        case ThoughtPart():
            yield f"<details><summary>{escape(thought_heading(part))}</summary>"
            yield f'<div class="thought">{escape(part.text)}</div></details>'
        case ToolCallPart(call=call):
            yield from _call(call)
        case QuestionPart():
            yield f'<p class="notice">{escape(part.message)} → {escape(answer_text(part))}</p>'
        case UserTextPart():
            yield f'<div class="asked">{escape(part.text)}</div>'
        case NoticePart():
            yield f'<p class="notice">{escape(part.message)}</p>'
        case _ as never:
            assert_never(never)


def _call(call: ToolCall) -> Iterator[str]:
    yield f"<h3>{escape(heading_of(call))}</h3><pre>{escape(value_text(call.arguments))}</pre>"
    failed = ' class="failed"' if call.error is not None else ""
    yield f"<pre{failed}>{escape(value_text(call.result if call.error is None else call.error))}</pre>"
    if call.chart_data is not None:
        chart = chart_of(call)
        yield draw(chart) if chart else f"<pre>{escape(value_text(call.chart_data))}</pre>"
