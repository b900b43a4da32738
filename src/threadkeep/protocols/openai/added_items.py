"""Items that clients add to a conversation: those that it has already, and the others as messages.

A client may add what it has said itself, and replies that are not ours; those are marked as such. Items that
only a response can have, such as calls, are never new here. Sessions of `openai-agents` add all items of each
run, also those of our own responses, most without their ids: what the conversation ends with isn't added
again.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta

from threadkeep.domain.approval import Approval
from threadkeep.domain.conversation import AddedMessage
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.message import MessageRole
from threadkeep.handling.routing import RequestContext
from threadkeep.protocols.openai import frames
from threadkeep.protocols.openai.decode import SentItem, files_of, text_of
from threadkeep.protocols.openai.files import file_parts
from threadkeep.protocols.openai.ids import parse_approval_id
from threadkeep.protocols.openai.input_items import approval_response, function_output

MOST_ITEMS_AT_ONCE = 20
MOST_PARTS_OF_AN_ITEM = 1_000

SentItems = Annotated[list[SentItem], Meta(max_length=MOST_ITEMS_AT_ONCE)]
Item = frames.InputItem | frames.OutputItem


async def messages_of(request: RequestContext, items: Sequence[SentItem]) -> Sequence[AddedMessage]:
    """New items as messages."""
    said: list[AddedMessage] = []
    for item in items:
        if _is_message(item, "assistant"):
            said.append(AddedMessage(MessageRole.ASSISTANT, text_of(item)))
        elif _is_message(item, "user"):
            files = await file_parts(request, files_of(item, "items"), "items")
            said.append(AddedMessage(MessageRole.USER, text_of(item), files))
        else:
            what = f"A {item.role} message" if item.role else f"An item of the type {item.type!r}"
            raise InvalidRequest(
                f"{what} can't be added, unless it is of a response in this conversation. Add messages of "
                "the user and of the assistant.",
                param="items",
            )
    return said


def check_parts(items: Sequence[SentItem]) -> None:
    """Refuses an item that has more parts than anybody writes."""
    for item in items:
        if isinstance(item.content, list) and len(item.content) > MOST_PARTS_OF_AN_ITEM:
            raise InvalidRequest(f"An item can have at most {MOST_PARTS_OF_AN_ITEM} parts.", param="items")


def known_items(items: Sequence[SentItem], path: Sequence[Sequence[Item]]) -> Sequence[Item]:
    """The items at the start of the list that the conversation already ends with; `path` has each message's.

    The conversation may have items in between that the client left out. The last one must be of the last
    message: the user may say the same again.
    """
    flat = [it for group in path for it in group]
    last = next((group for group in reversed(path) if group), ())  # a card, or a reply to come, has none
    last_begins = len(flat) - len(last)
    numbers = _Numbers()
    sent = [_Numbered(it.id, numbers.of(_said_by_client(it))) for it in items]
    ours = [_Numbered(it.id, numbers.of(_said_here(it))) for it in flat]
    for count in range(len(sent), 0, -1):
        places = _places(sent[:count], ours)
        if places and places[-1] >= last_begins:
            return [flat[at] for at in places]
    return ()


class _Numbered(NamedTuple):
    """An item by its id, and by the number of what it says, since texts may be long."""

    id: str | None
    says: int | None

    def is_same(self, other: "_Numbered") -> bool:
        is_said = self.says is not None and self.says == other.says
        return is_said or (self.id is not None and self.id == other.id)


class _Numbers:
    """Equal numbers for what says the same."""

    def __init__(self) -> None:
        self._by_said: dict[_Said, int] = {}

    def of(self, said: "_Said | None") -> int | None:
        return None if said is None else self._by_said.setdefault(said, len(self._by_said))


def _places(sent: Sequence[_Numbered], ours: Sequence[_Numbered]) -> Sequence[int]:
    """Where the conversation has these items, in order, as late as possible; empty if it lacks one."""
    places: list[int] = []
    end = len(ours)
    for item in reversed(sent):
        end = next((at for at in range(end - 1, -1, -1) if item.is_same(ours[at])), -1)
        if end < 0:
            return ()
        places.append(end)
    return places[::-1]


_Said = tuple[str, str | None, int]
"""By which an item is recognized without its id: its kind, its text or the id in it, its count of files."""
_CALLS = ("function_call", "function_call_output")
_RESPONSE = "mcp_approval_response"


def _said_by_client(sent: SentItem) -> _Said | None:
    if _is_message(sent, "user"):
        return "user", text_of(sent), sent.file_count
    if _is_message(sent, "assistant"):
        return "assistant", text_of(sent), 0
    if sent.type in _CALLS:
        return sent.type, sent.call_id, 0
    return (_RESPONSE, sent.approval_request_id, 0) if sent.type == _RESPONSE else None


def _said_here(item: Item) -> _Said | None:
    match item:
        case frames.UserMessageItem(content=content):
            texts = [it.text for it in content if isinstance(it, frames.InputText)]
            return "user", "\n".join(texts), len(content) - len(texts)
        case frames.MessageItem(content=content):
            return "assistant", "\n".join(map(_text_of, content)), 0
        case frames.FunctionCallItem(call_id=call_id):
            return "function_call", call_id, 0
        case frames.FunctionOutputItem(call_id=call_id):
            return "function_call_output", call_id, 0
        case frames.ApprovalResponseItem(approval_request_id=id_):
            return _RESPONSE, id_, 0
        case _:
            return None


def _is_message(sent: SentItem, role: str) -> bool:
    return sent.type in (None, "message") and sent.role == role


def awaited_item(sent: SentItem, open_: Sequence[Approval]) -> Item | None:
    """An item that decides what a turn waits for; it decides once a response is asked for with it."""
    for it in open_:
        if sent.type == "function_call_output" and sent.call_id and sent.call_id == it.tool_call_id:
            return function_output(it.request_id, sent.call_id, sent.output)
        request_id = parse_approval_id(sent.approval_request_id or "")
        if sent.type == "mcp_approval_response" and request_id == it.request_id:
            return approval_response(it.request_id, approve=bool(sent.approve))
    return None


def _text_of(part: frames.MessagePart) -> str:
    return part.refusal if isinstance(part, frames.RefusalText) else part.text
