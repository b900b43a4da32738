"""`/v1/responses`: turns, or the parts of those that waited for their user."""

from typing import Literal

import msgspec

from threadkeep.clock import system_clock
from threadkeep.domain.errors import Conflict, EventsExpired, InvalidRequest, MessageNotFound
from threadkeep.domain.turn import TurnStatus
from threadkeep.handling.routing import RequestContext
from threadkeep.handling.stream import EventStream
from threadkeep.program_log import add_to_subject
from threadkeep.protocols.openai import frames
from threadkeep.protocols.openai.asking import Asked, ask, own_response
from threadkeep.protocols.openai.decode import (
    CreateResponse,
    RetrieveQuery,
    check_references,
    input_of,
)
from threadkeep.protocols.openai.encode import NOTHING_SEEN
from threadkeep.protocols.openai.input_items import decisions_for, user_message
from threadkeep.protocols.openai.items import Items
from threadkeep.protocols.openai.reading import ended, head_of, part_after, so_far, stream
from threadkeep.protocols.openai.unstored import unstored
from threadkeep.runtime.following import NO_LONGER_STORED


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted."""

    id: str
    object: Literal["response"] = "response"
    deleted: bool = True


async def create_response(request: RequestContext, *, body: CreateResponse) -> EventStream | frames.Response:
    """Send a message, or answer what a response asked for; streams the response, or waits for it."""
    if body.store is False:
        return await unstored(request, body)
    await request.aside(_check, body)
    asked = await ask(request, body, await request.aside(lambda it: input_of(it, system_clock()), body))
    return await _told(request, asked, body)


async def get_response(
    request: RequestContext, *, response_id: str, query: RetrieveQuery
) -> EventStream | frames.Response:
    """Read a response; with `stream`, follow it after any of its events."""
    turn, conversation, part = await own_response(request, response_id)
    head = head_of(turn, conversation, part)
    read = await so_far(request.services.turns, turn, head)
    if not query.stream:
        return read
    after = NOTHING_SEEN if query.starting_after is None else query.starting_after
    # The numbers of a turn whose log was trimmed are others: a reader who knows some gets none of them.
    log = await request.services.turns.follow(turn, 0 if after == NOTHING_SEEN else 1, from_first=True)
    if log is None:  # a file can claim that a turn had one event
        raise EventsExpired(NO_LONGER_STORED)
    return stream(log, head, after)


async def cancel_response(request: RequestContext, *, response_id: str) -> frames.Response:
    """Stop a response that is in progress, and keep its text."""
    turn, conversation, part = await own_response(request, response_id)
    head = head_of(turn, conversation, part)
    read = await so_far(request.services.turns, turn, head)
    is_last = turn.status is TurnStatus.WAITING or read.status == "in_progress"
    if not (is_last and turn.is_active and conversation.active_turn_id == turn.id):
        return read
    await request.services.turns.abort(request.user, conversation.id)
    return await so_far(request.services.turns, await request.services.turns.get(request.user, turn.id), head)


async def delete_response(request: RequestContext, *, response_id: str) -> Deleted:
    """Delete a response that is its whole conversation."""
    turn, conversation, _ = await own_response(request, response_id)
    asked = await request.services.outside.message(conversation, turn.user_message_id)
    is_whole = asked is not None and asked.parent_id is None and conversation.last_seq <= 2
    if not is_whole or head_of(turn, conversation).conversation is not None:  # its client has that, too
        raise Conflict("This response is a part of a conversation. Delete the conversation instead.")
    await request.services.conversations.delete(request.user, conversation.id, purge=False)
    return Deleted(id=response_id)


async def list_input_items(request: RequestContext, *, response_id: str) -> frames.ItemList:
    """List what a response was given: the user's message, or what was decided."""
    turn, conversation, part = await own_response(request, response_id)
    if part > 1:
        return frames.ItemList.of(await decisions_for(request.services.turns, turn, part))
    asked = await request.services.outside.message(conversation, turn.user_message_id)
    if asked is None:
        raise MessageNotFound
    return frames.ItemList.of([user_message(asked)])


def _check(body: CreateResponse) -> None:
    """Refuses what can't be meant."""
    if body.conversation_id is not None and body.previous_response_id is not None:
        raise InvalidRequest(
            "Send either `conversation` or `previous_response_id`.", param="previous_response_id"
        )
    check_references(body)


async def _told(request: RequestContext, asked: Asked, body: CreateResponse) -> EventStream | frames.Response:
    """A response as its request wants it."""
    turn, seen = asked.turn, asked.seen
    add_to_subject(conversation_id=turn.conversation_id, turn_id=turn.id)
    part = await part_after(request.services.turns, turn, seen) if seen else 1
    head = head_of(turn, asked.conversation, part)
    if body.background and not body.stream:
        return head.response(Items(turn.id), "queued")
    log = await request.services.turns.follow(turn, 0)
    assert log is not None  # a turn has events from its start on
    return stream(log, head) if body.stream else await ended(log, head)
