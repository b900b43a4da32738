"""Views of tool results and reports."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.wire.messages import MessageView, ToolCallView
from threadkeep.wire.view import Id, OfConversation, OfTurn, RunAlias, Time, View
from threadkeep.wire.views import ConversationView


class ToolResultView(ToolCallView, frozen=True, kw_only=True):
    """A tool call, and where it was made."""

    conversation_id: OfConversation
    turn_id: OfTurn
    run_id: RunAlias
    message_id: Annotated[Id, Meta(description="The answer that the call is part of.")]
    created_at: Annotated[Time, Meta(description="When the answer with this call was begun.")]


class FileView(View, frozen=True, kw_only=True):
    """A file that a tool returned; download it with `GET /api/artifacts/{id}`."""

    artifact_id: Annotated[Id, Meta(description="What to download it with: `GET /api/artifacts/{id}`.")]
    file_name: Annotated[str, Meta(description="The name under which to save it.")]
    media_type: Annotated[str, Meta(description="What kind of file it is, such as `image/png`.")]
    size: Annotated[int, Meta(description="How many bytes it has.")]


class ExchangeView(View, frozen=True, kw_only=True):
    """A question, and the work done to answer it."""

    asked: Annotated[MessageView | None, Meta(description="The user's question; null if the agent began.")]
    answered: Annotated[MessageView | None, Meta(description="The agent's answer; null if there is none.")]


class ReportView(View, frozen=True, kw_only=True):
    """A conversation as a report; with `toolName`, only that tool's calls."""

    conversation: Annotated[ConversationView, Meta(description="The conversation, without its messages.")]
    agent_name: Annotated[str, Meta(description="The name of the agent that answered.")]
    tool_name: Annotated[str | None, Meta(description="The tool to which the report is limited, if it is.")]
    exchanges: Annotated[
        Sequence[ExchangeView], Meta(description="The questions with their answers, oldest first.")
    ]
    files: Annotated[Sequence[FileView], Meta(description="The files that tools returned on the way.")]
    made_at: Annotated[Time, Meta(description="When this report was made.")]


class ExportView(View, frozen=True, kw_only=True):
    """A whole conversation."""

    conversation: Annotated[ConversationView, Meta(description="The conversation, without its messages.")]
    messages: Annotated[
        Sequence[MessageView], Meta(description="All messages of every branch, oldest first.")
    ]
    exported_at: Annotated[Time, Meta(description="When this export was made.")]
