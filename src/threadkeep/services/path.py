"""The messages on a path of a conversation: the latest, as many as a context needs, or all up to one."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from threadkeep.context.request import is_in_context
from threadkeep.domain.conversation import Branch
from threadkeep.domain.ids import ConversationId
from threadkeep.domain.message import Message, MessageWindow
from threadkeep.storage.messages import SqlMessages

MESSAGES_A_PAGE = 1000
ROWS_AT_ONCE = 500
TRIES = 5


async def latest_messages(
    messages: SqlMessages,
    conversation_id: ConversationId,
    window: MessageWindow,
    *,
    most: int,
    most_characters: int | None = None,
) -> list[Message]:
    """The latest messages of a window, oldest first, until `most` (0 = all) of them belong in a context, or
    until they have `most_characters`.

    Those that don't belong in it are included but don't count: fewer than `most` means that there are no
    earlier ones.
    """
    found: list[Message] = []
    counted, characters, limit = 0, 0, min(most, MESSAGES_A_PAGE) or MESSAGES_A_PAGE
    window = replace(window, newest_first=True)
    while page := await messages.page(conversation_id, window, offset=0, limit=limit):
        for message in page:
            found.append(message)
            counted += is_in_context(message)
            characters += len(message.text) if most_characters else 0
            if (most and counted == most) or (most_characters and characters >= most_characters):
                return found[::-1]
        if len(page) < limit and not page.is_cut:
            break
        window = replace(window, before_seq=page[-1].seq)
    return found[::-1]


async def branch_pages(
    messages: SqlMessages, conversation_id: ConversationId, branch: Branch
) -> AsyncGenerator[Sequence[Message]]:
    """The messages of a branch, from the first one on, a page at a time."""
    on_path = MessageWindow(before_seq=branch.fork_seq + 1)
    async for page in _pages(messages, conversation_id, on_path):
        yield page
    if own := frozenset(branch.shown):
        after = MessageWindow(branch.fork_seq, with_overwritten=True)
        async for page in _pages(messages, conversation_id, after):
            yield [it for it in page if it.id in own]


async def _pages(
    messages: SqlMessages, conversation_id: ConversationId, window: MessageWindow
) -> AsyncGenerator[Sequence[Message]]:
    while page := await messages.page(conversation_id, window, offset=0, limit=ROWS_AT_ONCE):
        yield page
        window = replace(window, after_seq=page[-1].seq)
