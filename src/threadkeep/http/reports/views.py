"""What clients see of what tools gave, and of reports."""

from collections.abc import Sequence

from threadkeep.wire.messages import MessageView, ToolCallView
from threadkeep.wire.view import Id, RunAlias, Time, View
from threadkeep.wire.views import ConversationView


class ToolResultView(ToolCallView, frozen=True, kw_only=True):
    """One use of a tool, and where it was used."""

    conversation_id: Id
    turn_id: Id
    run_id: RunAlias
    message_id: Id
    created_at: Time


class FileView(View, frozen=True, kw_only=True):
    """A file that a tool gave; `GET /api/artifacts/{id}` downloads it."""

    artifact_id: Id
    file_name: str
    media_type: str
    size: int


class ExchangeView(View, frozen=True, kw_only=True):
    """What was asked, and what was done to answer it."""

    asked: MessageView | None
    answered: MessageView | None


class ReportView(View, frozen=True, kw_only=True):
    """A conversation as a report; with `toolName` only what that tool did."""

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
