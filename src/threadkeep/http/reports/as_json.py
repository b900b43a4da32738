"""A report and an export as JSON, written while they are read: the views, an entry at a time."""

from collections.abc import AsyncIterator, Iterator

import msgspec

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.message import Message
from threadkeep.http.reports.views import ExchangeView, ExportView, FileView, ReportView
from threadkeep.services.reports import QuestionAndReply, Report
from threadkeep.wire.messages import MessageView, message_view
from threadkeep.wire.view import rfc3339
from threadkeep.wire.views import conversation_view

_encode = msgspec.json.Encoder().encode


async def json_report(report: Report) -> AsyncIterator[bytes]:
    """A ReportView."""
    view = ReportView(
        conversation=conversation_view(report.conversation),
        agent_name=report.agent_name,
        tool_name=report.tool_name,
        exchanges=(),
        files=(),
        made_at=rfc3339(report.made_at),
    )
    # A text that looks like this has backslashes before its quotation marks.
    before, after = _encode(view).split(b'"exchanges":[],"files":[]')
    files: list[FileView] = []
    yield before + b'"exchanges":['
    comma = b""
    async for it in report.pairs:
        async for pieces in report.written(_pair(report.conversation, it)):
            yield comma + b"".join(pieces)
        comma = b","
        files += (
            FileView(
                artifact_id=file.id,
                file_name=file.file_name or file.id,
                media_type=file.media_type,
                size=file.size,
            )
            for file in it.files.values()
        )
    yield b'],"files":' + _encode(files) + after


async def json_export(report: Report) -> AsyncIterator[bytes]:
    """An ExportView."""
    view = ExportView(
        conversation=conversation_view(report.conversation),
        messages=(),
        exported_at=rfc3339(report.made_at),
    )
    before, after = _encode(view).split(b'"messages":[]')
    yield before + b'"messages":['
    comma = b""
    async for it in report.pairs:
        messages = [message for message in (it.asked, it.reply) if message is not None]
        views = (_encode(_message(report.conversation, message)) for message in messages)
        async for pieces in report.written(views):
            yield comma + b",".join(pieces)
            comma = b","
    yield b"]" + after


def _pair(conversation: Conversation, pair: QuestionAndReply) -> Iterator[bytes]:
    asked, reply = (_message(conversation, message) for message in (pair.asked, pair.reply))
    yield _encode(ExchangeView(asked=asked, answered=reply))


def _message(conversation: Conversation, message: Message | None) -> MessageView | None:
    if message is None:
        return None
    return message_view(message, archived=message.seq <= conversation.archived_to_seq)
