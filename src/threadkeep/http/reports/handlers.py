"""Tool results, reports, exports and files over HTTP."""

from collections.abc import Sequence
from typing import Annotated, Literal
from urllib.parse import quote

from msgspec import Meta, Struct, field
from msgspec.structs import asdict

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import ConversationId, TurnId
from threadkeep.domain.tool_call import ToolCallFilter, ToolCallStatus, ToolRecord
from threadkeep.handling.moments import Moment, milliseconds
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import Document, RequestContext
from threadkeep.http.reports.as_html import POLICY, html_report
from threadkeep.http.reports.as_json import json_export, json_report
from threadkeep.http.reports.as_markdown import markdown_report
from threadkeep.http.reports.images import ReportImages
from threadkeep.http.reports.views import ExportView, ReportView, ToolResultView
from threadkeep.http.reports.words import Reader, reader_of
from threadkeep.services.files import Files
from threadkeep.services.reports import Report
from threadkeep.wire.messages import tool_call_view
from threadkeep.wire.view import PageView, rfc3339

ToolName = Annotated[str, Meta(max_length=200)]
Language = Annotated[Literal["en", "zh"], Meta(description="The language of an HTML report's own words.")]
TimeZone = Annotated[
    Annotated[str, Meta(max_length=64)] | None,
    Meta(description="The time zone of an HTML report, such as `Europe/Oslo`; UTC if none is given."),
]


class ToolResultQuery(PageQuery, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which tool calls to list."""

    tool_name: Annotated[ToolName | None, Meta(description="Only calls of the tool with this name.")] = None
    status: Annotated[ToolCallStatus | None, Meta(description="Only calls with this status are listed.")] = (
        None
    )
    turn_id: Annotated[str | None, Meta(description="Only calls that were made in this turn.")] = None
    since: Annotated[Moment | None, Meta(description="Calls at or after this time (RFC 3339).")] = field(
        name="from", default=None
    )
    until: Annotated[Moment | None, Meta(description="Only calls before this time (RFC 3339).")] = field(
        name="to", default=None
    )


class ReportQuery(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The format, and which tool."""

    format: Annotated[
        Literal["md", "html", "json"],
        Meta(description="`md` and `html` are for readers, `json` for programs."),
    ] = "md"
    tool_name: Annotated[ToolName | None, Meta(description="Only the calls of this tool.")] = None
    lang: Language = "en"
    time_zone: TimeZone = None


class ExportQuery(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The format."""

    format: Annotated[
        Literal["json", "md", "html"],
        Meta(description="`json` has everything; `md` and `html` are for readers."),
    ] = "json"
    lang: Language = "en"
    time_zone: TimeZone = None


async def list_tool_results(request: RequestContext, *, query: ToolResultQuery) -> PageView[ToolResultView]:
    """List the results of tools in all your conversations, newest first."""
    return await _page(request, query, None)


async def list_conversation_tool_results(
    request: RequestContext, *, conversation_id: str, query: ToolResultQuery
) -> PageView[ToolResultView]:
    """List the results of tools in a conversation, newest first."""
    conversation = await request.services.conversations.get(request.user, conversation_id)
    return await _page(request, query, conversation.id)


async def get_report(
    request: RequestContext, *, conversation_id: str, query: ReportQuery
) -> ReportView | Document:
    """Report a conversation's questions, answers and tool calls, with charts and sources."""
    report = await request.services.reports.report(request.user, conversation_id, tool_name=query.tool_name)
    if query.format == "json":
        return Document(json_report(report), media_type="application/json")
    return _document(report, query.format, request.services.files, _reader(query))


async def export_conversation(
    request: RequestContext, *, conversation_id: str, query: ExportQuery
) -> ExportView | Document:
    """Export a conversation with every branch; messages off the active path are `OVERWRITTEN`."""
    report = await request.services.reports.export(request.user, conversation_id)
    if query.format == "json":
        return Document(json_export(report), media_type="application/json")
    return _document(report, query.format, request.services.files, _reader(query))


def disposition(file_name: str) -> str:
    """The header that names an attachment (RFC 6266, RFC 5987), with a plain name for old clients."""
    plain = "".join(it if it.isascii() and it.isprintable() and it not in '"\\%' else "_" for it in file_name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file_name, safe='')}"


async def _page(
    request: RequestContext, query: ToolResultQuery, conversation_id: ConversationId | None
) -> PageView[ToolResultView]:
    which = ToolCallFilter(
        conversation_id,
        query.tool_name,
        query.status,
        None if query.turn_id is None else TurnId(query.turn_id.lower()),
        milliseconds(query.since, "from"),
        milliseconds(query.until, "to"),
    )
    pager = Pager(request.cursors, request.user, f"tool results {which}", query)
    found, is_cut = await request.services.reports.tool_results(
        request.user,
        which,
        before=pager.after(tuple[int, str, str]),
        offset=pager.offset,
        limit=pager.fetch_limit,
    )
    return pager.page(
        found,
        lambda it: (it.call.created_at, it.call.turn_id, it.call.tool_call_id),
        _views,
        is_cut=is_cut,
    )


def _views(records: Sequence[ToolRecord]) -> list[ToolResultView]:
    return [
        ToolResultView(
            **asdict(tool_call_view(call)),
            conversation_id=record.conversation_id,
            turn_id=call.turn_id,
            run_id=call.turn_id,
            message_id=call.message_id,
            created_at=rfc3339(call.created_at),
        )
        for record in records
        for call in (record.call,)
    ]


def _reader(query: ReportQuery | ExportQuery) -> Reader:
    try:
        return reader_of(query.lang, query.time_zone)
    except ValueError as error:
        raise InvalidRequest(str(error), param="timeZone") from error


def _document(report: Report, form: Literal["md", "html"], files: Files, reader: Reader) -> Document:
    if form == "md":
        return Document(markdown_report(report), media_type="text/markdown")
    headers = {"Content-Security-Policy": f"{POLICY}; sandbox"}
    return Document(html_report(report, ReportImages(files), reader), media_type="text/html", headers=headers)
