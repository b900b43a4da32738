"""Views of tool results and reports."""

from collections.abc import Sequence

from threadkeep.wire.messages import MessageView, ToolCallView
from threadkeep.wire.view import Id, RunAlias, Time, View
from threadkeep.wire.views import ConversationView


class ToolResultView(ToolCallView, frozen=True, kw_only=True):
    """A tool call, and where it was made."""

    conversation_id: Id
    turn_id: Id
    run_id: RunAlias
    message_id: Id
    created_at: Time


class FileView(View, frozen=True, kw_only=True):
    """A file that a tool returned; download it with `GET /api/artifacts/{id}`."""

    artifact_id: Id
    file_name: str
    media_type: str
    size: int


class ExchangeView(View, frozen=True, kw_only=True):
    """A question, and the work done to answer it."""

    asked: MessageView | None
    answered: MessageView | None


class ReportView(View, frozen=True, kw_only=True):
    """A conversation as a report; with `toolName`, only that tool's calls."""

    conversation: ConversationView
    agent_name: str
    tool_name: str | None
    exchanges: Sequence[ExchangeView]
    files: Sequence[FileView]
    made_at: Time


class ExportView(View, frozen=True, kw_only=True):
    """A whole conversation."""

    conversation: ConversationView
    messages: Sequence[MessageView]
    exported_at: Time
