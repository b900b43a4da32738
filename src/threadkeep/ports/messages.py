"""Storage of messages and of their tools' results."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.feedback import FeedbackByMessage
from threadkeep.domain.ids import ConversationId, MessageId, UserId
from threadkeep.domain.message import Message, MessageWindow
from threadkeep.domain.tool_call import ToolCall, ToolCallFilter, ToolRecord
from threadkeep.ports.branches import Siblings

MOST_PAGE_BYTES = 4 * 1024 * 1024
"""A page of messages ends with the one that reaches this size, so it has at least one."""
MOST_CALLS_A_PAGE = 500
"""A page ends before the message whose tool calls would be more; their large values are stored apart."""


class MessageRun(list[Message]):
    """Messages in a row."""

    is_cut = False
    """Whether more of those that were asked for follow: the page ended because of its size."""


class MessagePage(NamedTuple):
    """A range of a conversation's messages; the siblings and the feedback of those that have any."""

    conversation: Conversation
    messages: Sequence[Message]
    siblings: Siblings
    feedback: FeedbackByMessage
    is_cut: bool = False
    """Whether more of the messages that were asked for follow: the page ended because of its size."""


class MessageStore(Protocol):
    """Messages, and their tools' results."""

    async def page(
        self, conversation_id: ConversationId, which: MessageWindow, *, offset: int, limit: int
    ) -> MessageRun:
        """A range of messages with their tool calls, in the requested order; it ends early where they are
        large.
        """
        ...

    async def page_of(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        which: MessageWindow,
        *,
        offset: int,
        limit: int,
    ) -> MessagePage | None:
        """A conversation of the user that isn't deleted, with a range of its messages."""
        ...

    async def get(self, conversation_id: ConversationId, message_id: MessageId) -> Message | None:
        """One message of a conversation with its tool calls."""
        ...

    async def add_card(self, conversation: Conversation, message: Message) -> None:
        """Stores a card; StorageConflict if the conversation has changed since it was read."""
        ...

    async def add(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Stores messages without a turn, all or none; StorageConflict if the conversation has changed since
        it was read, or a turn has begun.
        """
        ...

    async def tool_calls(
        self,
        user_id: UserId,
        which: ToolCallFilter,
        *,
        before: tuple[int, str, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[ToolRecord]:
        """The user's tool calls by `(created_at, turn_id, tool_call_id)`, newest first, after a position."""
        ...

    async def ids_in_use(self, conversation_id: ConversationId, ids: Iterable[str]) -> set[str]:
        """Which of these ids tool calls of a conversation already have; a turn's count from its end."""
        ...

    async def tool_call(self, conversation_id: ConversationId, tool_call_id: str) -> ToolCall | None:
        """The newest tool call of a conversation that has this id or is sent under it, on any branch."""
        ...

    async def activated_role(self, conversation_id: ConversationId, *, since: int) -> ToolCall | None:
        """The newest call on the active path that activated a role, since a time."""
        ...
