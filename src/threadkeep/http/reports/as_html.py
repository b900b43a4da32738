"""A report as one HTML file, to read and to print: no script, nothing fetched, charts drawn."""

from collections.abc import AsyncIterator, Iterator, Mapping
from html import escape
from typing import assert_never, cast

import msgspec

from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Message, MessageRole
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
from threadkeep.domain.payload import Payload
from threadkeep.domain.tool_call import ToolCall
from threadkeep.http.reports.chart_svg import draw
from threadkeep.http.reports.images import ReportImages
from threadkeep.http.reports.markdown_html import Typesetter
from threadkeep.http.reports.text import (
    MOST_BYTES_LAID_OUT,
    ShownPart,
    answer_text,
    chart_of,
    file_parts,
    file_text,
    shown_parts,
    value_text,
    words_of,
)
from threadkeep.http.reports.words import Reader, Words, duration
from threadkeep.services.reports import QuestionAndReply, Report
from threadkeep.wire.view import rfc3339

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
MOST_PREVIEW = 60
_STYLE = """
:root { color-scheme: light dark; --ink: #23211d; --soft: #5b574f; --line: #e3dfd7; --ground: #fdfcfa;
  --sunk: #f6f4f0; --pine: #24604f; --wrong: #a3271c; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #ece8e0; --soft: #bab4a8; --line: #33302c;
  --ground: #1b1a18; --sunk: #252320; --pine: #7cc4ab; --wrong: #f2998c; } }
* { box-sizing: border-box; }
body { font: 16px/1.6 ui-sans-serif, system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans", sans-serif;
  color: var(--ink); background: var(--ground); margin: 0; }
main { max-width: 46rem; margin: 0 auto; padding: 3rem 1.5rem 4rem; overflow-wrap: break-word; }
h1, h2, h3, h4, h5, h6 { line-height: 1.3; break-after: avoid; text-wrap: balance; }
h1 { font-size: 1.9rem; letter-spacing: -.01em; margin: 0 0 .5rem; }
h3 { font-size: 1.2rem; } h4 { font-size: 1.05rem; } h5, h6 { font-size: 1rem; }
h3, h4, h5, h6 { margin: 1.6em 0 .5em; }
.about { color: var(--soft); font-size: .9rem; margin: 0; padding-bottom: 1.5rem;
  border-bottom: 1px solid var(--line); }
section { margin-top: 2.25rem; }
.who { display: flex; gap: .6rem; align-items: baseline; font-size: .85rem; margin: 1.75rem 0 .5rem;
  color: var(--pine); }
.who time, .who small { font-size: .8rem; font-weight: 400; color: var(--soft); }
.asked { padding: .7rem 1rem; background: var(--sunk); border-radius: 12px; }
.asked, .thought, .plain { white-space: pre-wrap; overflow-wrap: anywhere; }
.thought, .notice, summary, figcaption { color: var(--soft); font-size: .9rem; }
a { color: var(--pine); text-underline-offset: .2em; overflow-wrap: anywhere; }
p, ul, ol, blockquote, table, pre, figure, details { margin: .8rem 0; }
blockquote { margin-inline: 0; padding-left: 1rem; border-left: 3px solid var(--line); color: var(--soft); }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .85em; }
:not(pre) > code { padding: .1em .35em; background: var(--sunk); border-radius: 5px; }
pre { padding: .8rem 1rem; background: var(--sunk); border-radius: 8px; overflow: auto; max-height: 30rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { padding: .45rem .7rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
th { border-bottom-width: 2px; }
hr { margin: 2rem 0; border: 0; border-top: 1px solid var(--line); }
summary { cursor: pointer; } summary code { font-size: 1em; }
.math { font-size: .9em; font-style: italic; }
.math.block { display: block; padding: .6rem 1rem; white-space: pre-wrap; }
.question { padding-left: 1rem; border-left: 3px solid var(--pine); }
.footnotes { padding-top: .5rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .9rem; }
li.task { list-style: none; margin-left: -1.2rem; }
.sources { font-size: .9rem; } .sources p, .files p { margin-bottom: .2rem; font-weight: 600; }
.failed { color: var(--wrong); }
svg { width: 100%; max-width: 640px; } .chart { break-inside: avoid; color: #23211d; background: #fdfcfa; }
img { display: block; max-width: 100%; max-height: 30rem; border-radius: 8px; }
@page { margin: 18mm 16mm 20mm;
  @bottom-right { content: counter(page) " / " counter(pages); font: 8pt system-ui, sans-serif;
    color: #5b574f; } }
@media print {
  body { font-size: 10.5pt; background: none; } main { max-width: none; padding: 0; }
  p, li, pre { orphans: 3; widows: 3; }
  .asked { border: 1px solid var(--line); }
  pre { max-height: none; overflow: visible; border: 1px solid var(--line);
    -webkit-box-decoration-break: clone; box-decoration-break: clone; }
  details pre { padding: .5rem .7rem; font-size: .7em; line-height: 1.35; }
  table { font-size: .85rem; } thead { display: table-header-group; }
  tr, li, figure, blockquote, .asked { break-inside: avoid-page; }
  li:has(li, p, pre) { break-inside: auto; }
  summary { list-style: none; break-after: avoid; } summary::-webkit-details-marker { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  a { text-decoration: none; }
  a[href^="http"]::after { content: " (" attr(href) ")"; font-size: .8em; color: var(--soft); }
}
"""


async def html_report(report: Report, images: ReportImages, reader: Reader) -> AsyncIterator[str]:
    """The document, a pair at a time."""
    words = reader.words
    title = escape(report.conversation.title or words.conversation)
    about = [
        escape(report.agent_name),
        reader.day(report.conversation.created_at),
        *([escape(report.tool_name)] if report.tool_name is not None else []),
        f"{words.exported} {reader.day(report.made_at)}",
    ]
    yield "".join(
        [
            f'<!doctype html><html lang="{words.language}"><head><meta charset="utf-8">',
            f"<title>{title}</title>",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            f"<style>{_STYLE}</style></head><body><main><h1>{title}</h1>",
            f'<p class="about">{" · ".join(about)}</p>',
        ]
    )
    typesetter = Typesetter()
    async for pair in report.pairs:
        shown = await images.of(pair)
        section = _section(report.agent_name, pair, shown, reader, typesetter)
        async for pieces in report.written(section):
            yield "".join(pieces)
    if typesetter.is_used_up:
        yield f'<p class="notice">{words.not_typeset}</p>'
    yield "</main></body></html>"


def _section(
    agent_name: str,
    pair: QuestionAndReply,
    images: Mapping[PayloadId, str],
    reader: Reader,
    typesetter: Typesetter,
) -> Iterator[str]:
    words = reader.words
    branch = "" if pair.on_path else words.other_branch
    yield "<section>"
    if (asked := pair.asked) is not None:
        is_card = asked.role is MessageRole.SYSTEM
        yield _who(words.briefing if is_card else words.you, asked.created_at, branch, reader)
        if text := words_of(asked):
            yield f'<div class="asked">{escape(text)}</div>'
        yield from (_file(file, images.get(file.file_id)) for file in file_parts(asked))
    if (reply := pair.reply) is not None:
        yield _who(agent_name or words.agent, reply.completed_at or reply.created_at, branch, reader)
        shown = (file for file in file_parts(reply) if file.file_id in images)
        yield from (_file(file, images[file.file_id]) for file in shown)
        yield from _reply(reply, pair.files, words, typesetter)
    yield "</section>"


def _who(name: str, at: int, branch: str, reader: Reader) -> str:
    """Who wrote what follows, and when."""
    moment = f'<time datetime="{rfc3339(at)}">{reader.moment(at)}</time>'
    return f'<h2 class="who">{escape(name)} {moment}{f" <small>{branch}</small>" if branch else ""}</h2>'


def _file(file: FilePart, image: str | None) -> str:
    """An image itself if there is room for it, any other file as a line."""
    line = escape(file_text(file))
    if image is None:
        return f'<p class="notice">{line}</p>'
    alt = escape(file.file_name)
    return f'<figure><img src="{image}" alt="{alt}"><figcaption>{line}</figcaption></figure>'


def _reply(
    message: Message, files: Mapping[PayloadId, Payload], words: Words, typesetter: Typesetter
) -> Iterator[str]:
    for part in shown_parts(message):
        yield from _part(part, words, typesetter)
    if message.error is not None:
        yield f'<p class="failed">{escape(message.status)}: {escape(message.error.message)}</p>'
    if message.citations:
        yield f'<div class="sources"><p>{words.sources}</p><ol>'
        for citation in message.citations:
            page = f", {words.page} {citation.page}" if citation.page is not None else ""
            source = f"<b>{escape(citation.title)}</b>{page}"
            yield f'<li value="{citation.index}">{source}: {escape(citation.snippet)}</li>'
        yield "</ol></div>"
    if message.artifact_ids:
        yield f'<div class="files"><p>{words.files}</p><ul>'
        for id_ in message.artifact_ids:
            if file := files.get(id_):
                name = escape(file.file_name or id_)
                yield f'<li><a href="/api/artifacts/{escape(id_)}">{name}</a></li>'
            else:  # another engine's, or lost
                yield f"<li>{escape(id_)}</li>"
        yield "</ul></div>"


def _part(part: ShownPart, words: Words, typesetter: Typesetter) -> Iterator[str]:
    match part:
        case TextPart():
            yield typesetter.html(part.text)
        case ThoughtPart():
            yield f"<details><summary>{escape(_thought_line(part, words))}</summary>"
            yield f'<div class="thought">{escape(part.text)}</div></details>'
        case ToolCallPart(call=call):
            yield from _call(call, words)
        case QuestionPart():
            answer = words.no_answer if part.decision is None else answer_text(part)
            yield f'<div class="question">{typesetter.html(part.message)}<p>→ {escape(answer)}</p></div>'
        case UserTextPart():
            yield f'<div class="asked">{escape(part.text)}</div>'
        case StepPart():
            yield f'<p class="notice">{_step_line(part, words)}</p>'
        case NoticePart():
            yield f'<p class="notice">{escape(part.message)}</p>'
        case _ as never:
            assert_never(never)


def _call(call: ToolCall, words: Words) -> Iterator[str]:
    yield f"<details><summary>{_call_line(call, words)}</summary>"
    yield f"<pre>{escape(value_text(call.arguments))}</pre>"
    failed = ' class="failed"' if call.error is not None else ""
    given = value_text(call.result if call.error is None else call.error)
    yield f"<pre{failed}>{escape(given)}</pre></details>"
    if call.chart_data is not None:
        chart = chart_of(call)
        yield (
            f'<figure class="chart">{draw(chart)}</figure>'
            if chart
            else f"<pre>{escape(value_text(call.chart_data))}</pre>"
        )


def _thought_line(part: ThoughtPart, words: Words) -> str:
    name = words.thought if part.title is None else part.title
    return f"{name} · {duration(part.duration_ms)}" if part.duration_ms else name


def _step_line(part: StepPart, words: Words) -> str:
    about = [part.agent or part.title or part.name, words.statuses.get(part.status, "")]
    if part.duration_ms is not None:
        about.append(duration(part.duration_ms))
    return " · ".join(escape(it) for it in about if it)


def _call_line(call: ToolCall, words: Words) -> str:
    """Which call it is, how it ended if not well, and how long that took."""
    name = f"<code>{escape(call.tool_name)}</code>"
    if shown := _preview(call.arguments):
        name += f"{words.between}{escape(shown)}"
    about = [call.server, words.statuses.get(call.status, "")]
    if call.duration_ms is not None:
        about.append(duration(call.duration_ms))
    return " · ".join([name, *(escape(it) for it in about if it)])


def _preview(arguments: object) -> str:
    """The values in which calls of one tool differ, in a line."""
    if isinstance(arguments, msgspec.Raw):
        if len(bytes(arguments)) > MOST_BYTES_LAID_OUT:
            return ""
        arguments = msgspec.json.decode(arguments)
    if not isinstance(arguments, Mapping):
        return ""
    values = [
        value
        for value in cast("Mapping[str, object]", arguments).values()
        if isinstance(value, str | int | float)
    ]
    text = " ".join(", ".join(str(it)[:MOST_PREVIEW] for it in values[:3]).split())
    return text if len(text) <= MOST_PREVIEW else f"{text[: MOST_PREVIEW - 1]}…"
