"""`/v1/conversations/{id}/items`: the items of a conversation's active path."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import accumulate, takewhile
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import Conflict, MessageNotFound
from threadkeep.domain.message import Message, MessageRole
from threadkeep.handling.routing import RequestContext
from threadkeep.protocols.openai import frames
from threadkeep.protocols.openai.added_items import (
    Item,
    SentItems,
    awaited_item,
    check_parts,
    known_items,
    messages_of,
)
from threadkeep.protocols.openai.conversations import ConversationView, found, view
from threadkeep.protocols.openai.decode import SentItem
from threadkeep.protocols.openai.ids import message_item_id, owner_of_item
from threadkeep.protocols.openai.input_items import joined_text, user_message
from threadkeep.protocols.openai.reading import items_of

MOST_ITEMS = 100
MOST_PAGE_BYTES = 8 * 1024 * 1024
LEFT_OUT = 20
"""How many items of a response a client may leave out when it adds the others again."""


class ItemsQuery(Struct, frozen=True):
    """Which items to list."""

    limit: Annotated[int, Meta(ge=1, le=MOST_ITEMS)] = 20
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None


class AddItems(Struct, frozen=True):
    """The items to add."""

    items: SentItems


async def list_items(request: RequestContext, *, conversation: str, query: ItemsQuery) -> frames.ItemList:
    """List the items of a conversation's active path, newest first unless asked otherwise."""
    own = await found(request, conversation)
    page: list[Item] = []
    left = MOST_PAGE_BYTES
    is_newest_first, is_after = query.order == "desc", query.after is None
    start = await _place_of(request, own, query.after) if query.after else None
    async with aclosing(_path(request, own, newest_first=is_newest_first, start=start)) as path:
        async for _, items in path:
            for item in reversed(items) if is_newest_first else items:
                if is_after:
                    page.append(item)
                is_after = is_after or item.id == query.after
            if len(page) > query.limit or left <= 0:
                break
            left -= await asyncio.to_thread(_size, items)
    if not is_after:
        raise _no_item("after")
    count = min(query.limit, await asyncio.to_thread(_fitting, page))
    return frames.ItemList.of(page[:count], has_more=len(page) > count)


def _size(items: Sequence[Item]) -> int:
    return sum(len(msgspec.json.encode(it)) for it in items)


def _fitting(items: Sequence[Item]) -> int:
    """How many of the first items a page has room for; at least one."""
    sizes = accumulate(len(msgspec.json.encode(it)) for it in items)
    return max(1, sum(1 for _ in takewhile(lambda size: size <= MOST_PAGE_BYTES, sizes)))


async def get_item(request: RequestContext, *, conversation: str, item: str) -> Item:
    """Read an item of a conversation's active path."""
    _, items = await _message_with(request, await found(request, conversation), item)
    return next(it for it in items if it.id == item)


async def add_items(request: RequestContext, *, conversation: str, body: AddItems) -> frames.ItemList:
    """Add messages without a response, at most 20; those that the conversation ends with aren't repeated."""
    check_parts(body.items)
    own = await found(request, conversation)
    known = await _known(request, own, body.items)
    if not known and (answered := await _answered_elsewhere(request, own, body.items)) is not None:
        own, known = answered
    open_ = await request.services.outside.open_requests(request.user, own)
    told, new = list(known), list[SentItem]()
    for sent in body.items[len(known) :]:
        if (awaited := awaited_item(sent, open_)) is not None:
            told.append(awaited)
        else:
            new.append(sent)
    if said := await messages_of(request, new):
        told += map(_added, await request.services.added_messages.add(request.user, own.id, said))
    return frames.ItemList.of(told)


async def delete_item(request: RequestContext, *, conversation: str, item: str) -> ConversationView:
    """Take the newest item off the conversation's path, with the other items of its response."""
    own = await found(request, conversation)
    message, items = await _message_with(request, own, item)
    if message.id != own.tip_id or items[-1].id != item:
        raise Conflict("Only the newest item of a conversation can be deleted.")
    return view(await request.services.branches.take_back(request.user, own.id, message.id), conversation)


def _no_item(param: str | None = None) -> MessageNotFound:
    return MessageNotFound("Item not found.", param=param)


async def _message_with(
    request: RequestContext, conversation: Conversation, item_id: str
) -> tuple[Message, Sequence[Item]]:
    """The message on the active path that an item belongs to, and all items of it."""
    start = await _place_of(request, conversation, item_id)
    async with aclosing(_path(request, conversation, newest_first=True, start=start)) as path:
        async for message, items in path:
            if any(it.id == item_id for it in items):
                return message, items
    raise _no_item()


async def _known(request: RequestContext, conversation: Conversation, items: SentItems) -> Sequence[Item]:
    """Those of the items that a conversation has already."""
    newest = await _newest(request, conversation, len(items) + LEFT_OUT)
    return await asyncio.to_thread(known_items, items, newest)  # both may be long


async def _answered_elsewhere(
    request: RequestContext, conversation: Conversation, items: SentItems
) -> tuple[Conversation, Sequence[Item]] | None:
    """The conversation that a session's first response began, and those of the items that it has.

    A session of `openai-agents` adds the user's message to its conversation, asks for a response without
    naming that, and adds the response's items. So there are two conversations with the same question: the one
    with the reply becomes the session's. What proves it is the reply, since others may ask the same: one key
    may serve many people. If several have the same reply, nobody knows whose is whose, and none is taken.
    """
    messages = request.services.added_messages
    added = await messages.unanswered(conversation)
    if not added or len(added) != conversation.last_seq or all(it.is_message for it in items):
        return None
    others = await messages.asked_elsewhere(
        request.user, joined_text(added), conversation, since=added[-1].created_at
    )
    found_ = [(other, await _known(request, other, items)) for other in others]
    same = [it for it in found_ if not all(isinstance(item, frames.UserMessageItem) for item in it[1])]
    if len(same) != 1:
        return None
    ((other, known),) = same
    return await messages.give_id_to(request.user, other, conversation), known


async def _newest(
    request: RequestContext, conversation: Conversation, count: int
) -> Sequence[Sequence[Item]]:
    """At least so many of the newest items, if there are, by message, the oldest first."""
    found_: list[Sequence[Item]] = []
    async with aclosing(_path(request, conversation, newest_first=True)) as path:
        async for _, items in path:
            found_.append(items)
            if sum(map(len, found_)) >= count:
                break
    return found_[::-1]


async def _place_of(request: RequestContext, conversation: Conversation, item_id: str) -> int | None:
    """The number of the message that an item belongs to; None if only the items themselves show it."""
    owner = owner_of_item(item_id)
    if owner is None:
        return None
    message = await request.services.outside.message_of(request.user, conversation, owner)
    if message is None or not message.on_path:
        raise _no_item()
    return message.seq


async def _path(
    request: RequestContext, conversation: Conversation, *, newest_first: bool, start: int | None = None
) -> AsyncGenerator[tuple[Message, Sequence[Item]]]:
    """The messages of the active path with their items, from one on; each is read when it is due."""
    async with aclosing(
        request.services.outside.path(conversation, start, newest_first=newest_first)
    ) as path:
        async for message in path:
            yield message, await _of_message(request, message)


async def _of_message(request: RequestContext, message: Message) -> Sequence[Item]:
    if message.role is MessageRole.USER:
        return [user_message(message)]
    if message.turn_id is not None:
        turn = await request.services.turns.get(request.user, message.turn_id)
        return await items_of(request.services.turns, turn)
    return [_added(message)] if message.role is MessageRole.ASSISTANT else ()  # a card isn't an item


def _added(message: Message) -> Item:
    """A message that no turn wrote."""
    if message.role is MessageRole.USER:
        return user_message(message)
    return frames.MessageItem(message_item_id(message.id), "completed", (frames.OutputText(message.text),))
