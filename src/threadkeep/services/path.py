"""The latest messages on a conversation's active path, as many as a context needs."""

from dataclasses import replace

from threadkeep.context.request import is_in_context
from threadkeep.domain.ids import ConversationId
from threadkeep.domain.message import Message
from threadkeep.ports.messages import MessageStore, MessageWindow

MESSAGES_A_PAGE = 1000


async def latest_messages(
    messages: MessageStore, conversation_id: ConversationId, window: MessageWindow, *, most: int
) -> list[Message]:
    """The latest messages of a window, oldest first, until `most` (0 = all) of them belong in a context.

    Those that don't belong in it are included but don't count: fewer than `most` means that there are no
    earlier ones.
    """
    found: list[Message] = []
    counted, limit = 0, min(most, MESSAGES_A_PAGE) or MESSAGES_A_PAGE
    window = replace(window, newest_first=True)
    while page := await messages.page(conversation_id, window, offset=0, limit=limit):
        for message in page:
            found.append(message)
            counted += is_in_context(message)
            if most and counted == most:
                return found[::-1]
        if len(page) < limit:
            break
        window = replace(window, before_seq=page[-1].seq)
    return found[::-1]
