"""Earlier conversations in `threadkeep chat`: the list, and where one goes on."""

from collections.abc import Iterator, Sequence

from threadkeep.domain.message import MessageRole
from threadkeep.wire.messages import MessageView
from threadkeep.wire.views import ConversationDetailView, ConversationView

MOST_LISTED = 20
MOST_LINES = 8
MOST_CHARACTERS = 1000
_UNTITLED = "(no title)"


def title_of(conversation: ConversationView) -> str:
    """A conversation's title in one line."""
    return " ".join((conversation.title or _UNTITLED).split())


def listing(found: Sequence[ConversationView], current_id: str) -> Iterator[str]:
    """A line for each conversation, with the number that opens it."""
    for number, it in enumerate(found, start=1):
        mark = "*" if it.id == current_id else " "
        when = (it.last_message_at or it.created_at)[:16].replace("T", " ")
        yield f"{mark} {number:2}  {when}  {title_of(it)} ({_count(it.message_count)})"


def recap(conversation: ConversationDetailView) -> Iterator[tuple[str, bool]]:
    """Where a conversation goes on: its title, its last question and reply.

    Each line with whether it is an aside. What its running turn has said so far is shown as it goes on.
    """
    said = [it for it in conversation.messages if it.turn_id is None or not _is_running(it, conversation)]
    if not said:
        return
    yield f"Continuing “{title_of(conversation)}” ({_count(conversation.message_count)}).", True
    last = next((at for at in range(len(said) - 1, -1, -1) if said[at].role == MessageRole.USER), -1)
    for message in said[last:]:
        if isinstance(message.content, str) and message.content.strip():
            is_question = message.role == MessageRole.USER
            yield f"{'> ' if is_question else ''}{_shortened(message.content.strip())}", is_question


def _is_running(message: MessageView, conversation: ConversationView) -> bool:
    return message.turn_id == conversation.active_turn_id


def _shortened(text: str) -> str:
    """The end of a text: that is where a conversation goes on."""
    lines = text[-MOST_CHARACTERS:].splitlines()[-MOST_LINES:]
    short = "\n".join(lines)
    return short if short == text else f"… {short}"


def _count(number: int) -> str:
    return f"{number:,} message{'' if number == 1 else 's'}"
