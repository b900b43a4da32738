"""Items that clients add to a conversation: those that it has already, and the others as messages.

A client may add what it has said itself, and replies that are not ours; those are marked as such. Items that
only a response can have, such as calls, are never new here. Sessions of `openai-agents` add all items of each
run, also those of our own responses, most without their ids: what the conversation ends with isn't added
again.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.domain.conversation import AddedMessage
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.message import MessageRole
from threadkeep.ports.approvals import Approval
from threadkeep.protocols.openai import frames
from threadkeep.protocols.openai.decode import SentItem, files_of, text_of
from threadkeep.protocols.openai.files import file_parts
from threadkeep.protocols.openai.ids import parse_approval_id
from threadkeep.protocols.openai.input_items import approval_response, function_output
from threadkeep.requests.routing import Call

MOST_ITEMS_AT_ONCE = 20

SentItems = Annotated[list[SentItem], Meta(max_length=MOST_ITEMS_AT_ONCE)]
Item = frames.InputItem | frames.OutputItem


async def messages_of(call: Call, items: Sequence[SentItem]) -> Sequence[AddedMessage]:
    """New items as messages."""
    said: list[AddedMessage] = []
    for item in items:
        if _is_message(item, "assistant"):
            said.append(AddedMessage(MessageRole.ASSISTANT, text_of(item)))
        elif _is_message(item, "user"):
            files = await file_parts(call, files_of(item, "items"), "items")
            said.append(AddedMessage(MessageRole.USER, text_of(item), files))
        else:
            what = f"A {item.role} message" if item.role else f"An item of the type {item.type!r}"
            raise InvalidRequest(
                f"{what} can't be added, unless it is of a response in this conversation. Add messages of "
                "the user and of the assistant.",
                param="items",
            )
    return said


def known_items(items: Sequence[SentItem], path: Sequence[Sequence[Item]]) -> Sequence[Item]:
    """Those with which the list begins and the conversation ends; `path` has the items of each message.

    The conversation may have items in between that the client left out. The last one must be of the last
    message: the user may say the same again.
    """
    flat = [it for group in path for it in group]
    last = next((group for group in reversed(path) if group), ())  # a card, or a reply to come, has none
    last_begins = len(flat) - len(last)
    for count in range(len(items), 0, -1):
        places = _places(items[:count], flat)
        if places and places[-1] >= last_begins:
            return [flat[at] for at in places]
    return ()


def _places(items: Sequence[SentItem], flat: Sequence[Item]) -> Sequence[int]:
    """Where the conversation has these items, in order, as late as possible; empty if it lacks one."""
    places: list[int] = []
    end = len(flat)
    for item in reversed(items):
        end = next((at for at in range(end - 1, -1, -1) if _is_same(item, flat[at])), -1)
        if end < 0:
            return ()
        places.append(end)
    return places[::-1]


def _is_same(sent: SentItem, item: Item) -> bool:
    if sent.id is not None and sent.id == item.id:
        return True
    match item:
        case frames.UserMessageItem(content=content):
            texts = [it.text for it in content if isinstance(it, frames.InputText)]
            has_as_many_files = sent.file_count == len(content) - len(texts)
            return _is_message(sent, "user") and has_as_many_files and text_of(sent) == "\n".join(texts)
        case frames.MessageItem(content=content):
            return _is_message(sent, "assistant") and text_of(sent) == "\n".join(it.text for it in content)
        case frames.FunctionCallItem(call_id=call_id):
            return sent.type == "function_call" and sent.call_id == call_id
        case frames.FunctionOutputItem(call_id=call_id):
            return sent.type == "function_call_output" and sent.call_id == call_id
        case frames.ApprovalResponseItem(approval_request_id=id_):
            return sent.type == "mcp_approval_response" and sent.approval_request_id == id_
        case _:
            return False


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
