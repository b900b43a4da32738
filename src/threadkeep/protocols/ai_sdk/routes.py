"""`/api/ai-sdk/chat`: what `useChat` calls, and what the AI SDK leaves to servers: history and stop."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import assert_never

import msgspec

from threadkeep.clock import system_clock
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import (
    ConversationNotFound,
    NothingToRegenerate,
    ThreadkeepError,
)
from threadkeep.domain.ids import MessageId
from threadkeep.domain.key import Scope
from threadkeep.domain.message import Message, MessageStatus, check_user_content
from threadkeep.domain.turn import BegunWith, Turn
from threadkeep.handling.addresses import own_url
from threadkeep.handling.errors import ShapedError
from threadkeep.handling.retries import is_retry
from threadkeep.handling.routing import RequestContext, Route
from threadkeep.handling.stream import EventStream
from threadkeep.program_log import add_to_subject
from threadkeep.protocols.ai_sdk.decode import (
    Answer,
    ChatBody,
    ChatQuery,
    Regenerate,
    Submit,
    model_of,
    request_of,
    tools_of,
)
from threadkeep.protocols.ai_sdk.encode import UIMessageStream
from threadkeep.protocols.ai_sdk.frames import HEADERS, Chat, UIMessage
from threadkeep.protocols.ai_sdk.history import ui_message
from threadkeep.protocols.ai_sdk.parts import Reader
from threadkeep.protocols.dialect import TurnContext
from threadkeep.protocols.files import take_in
from threadkeep.services.outside import MOST_HISTORY_BYTES
from threadkeep.services.sending import NewMessage

PREFIX = "/api/ai-sdk"
REPLAYED_MS = 60_000
"""How long after its end a turn is replayed: the client may have been cut off before the end."""

_TAG = "AI SDK"


async def chat(request: RequestContext, *, query: ChatQuery, body: ChatBody) -> EventStream:
    """Send a message, edit one, regenerate an answer, or answer what a turn waits for; streams the turn."""
    outside, user = request.services.outside, request.user
    model = model_of(body)
    begun_with = BegunWith(protocol="ai-sdk", asked_model=model, tools=await request.aside(tools_of, body))
    after = 0
    if begun := await outside.begun_before(user, body.id, request.key):
        return await _stream(request, query, begun[1], begun[0])
    match await request.aside(lambda it: request_of(it, system_clock()), body):
        case Submit() as sent:
            # Files are stored before the message is: not for one that says nothing.
            check_user_content(sent.content, most=0, has_files=bool(sent.files))
            files = await take_in(request.services.files, user, sent.files, param="messages")
            where = await outside.find_or_new(user, body.id, body.agent_id)
            message = NewMessage(
                sent.content,
                files=files,
                model=model,
                idempotency_key=request.key,
                begun_with=begun_with,
                outside_id=sent.id or None,
                is_retry=is_retry(request.http),
            )
            turn, conversation = await outside.send(
                user, where, message, before=sent.before, starts_over=sent.starts_over
            )
        case Regenerate(question_id, answer_id):
            conversation = await _found(request, body.id)
            turn = await outside.regenerate(
                user,
                conversation,
                begun_with,
                question_id=question_id,
                answer_id=answer_id,
                model=model,
                is_retry=is_retry(request.http),
                key=request.key,
            )
        case Answer(decisions):
            conversation = await _found(request, body.id)
            turn, after = await outside.answer(user, conversation, decisions)
        case _ as never:
            assert_never(never)
    return await _stream(request, query, conversation, turn, after)


async def resume(request: RequestContext, *, chat_id: str, query: ChatQuery) -> EventStream | None:
    """Follow the running turn from its start; for a minute after its end, read it again. 204 otherwise."""
    conversation = await request.services.outside.find(request.user, chat_id)
    turn = conversation and await request.services.outside.newest_turn(request.user, conversation)
    if conversation is None or turn is None or not _is_replayed(turn, query):
        return None
    return await _stream(request, query, conversation, turn)


async def stop(request: RequestContext, *, chat_id: str) -> None:
    """Stop the running turn and keep its text. Clients that follow it receive `abort`."""
    conversation = await request.services.outside.find(request.user, chat_id)
    if conversation is not None:
        await request.services.turns.abort(request.user, conversation.id)


async def history(request: RequestContext, *, chat_id: str, query: ChatQuery) -> Chat:
    """Read the messages of the active path as `useChat` takes them; none if nothing was sent yet.

    As many of the newest as fit into 8 MB.
    """
    outside, shown = request.services.outside, _Newest(_reader(request, query))
    conversation = await outside.find(request.user, chat_id)
    if conversation is None:
        return Chat(id=chat_id, messages=[])
    async with aclosing(outside.newest_first(request.user, conversation)) as pages:
        async for page in pages:
            listed = [it for it in page if _is_listed(it.status, query)]
            ids = await outside.ids_of(conversation, listed)
            if not await asyncio.to_thread(shown.add, listed, ids):
                break
    return Chat(id=chat_id, conversation_id=conversation.id, messages=shown.messages[::-1])


class _Newest:
    """The newest messages that fit, newest first."""

    def __init__(self, reader: Reader) -> None:
        self.messages: list[UIMessage] = []
        self._reader = reader
        self._left = MOST_HISTORY_BYTES

    def add(self, messages: Sequence[Message], ids: Mapping[MessageId, str]) -> bool:
        """Adds older messages; False if one doesn't fit. The newest of all always does."""
        for message in messages:
            shown = ui_message(message, ids[message.id], self._reader)
            self._left -= len(msgspec.json.encode(shown))
            if self._left < 0 and self.messages:
                return False
            self.messages.append(shown)
        return True


def error_shape(error: ThreadkeepError, status: int, request_id: str) -> ShapedError:
    """An error before the stream: the client shows the body as it is, so it is a sentence."""
    return ShapedError(error.message.encode("utf-8", "replace"), "text/plain; charset=utf-8")


async def _found(request: RequestContext, chat_id: str) -> Conversation:
    found = await request.services.outside.find(request.user, chat_id)
    if found is None:
        raise ConversationNotFound
    return found


async def _stream(
    request: RequestContext, query: ChatQuery, conversation: Conversation, turn: Turn, after: int = 0
) -> EventStream:
    add_to_subject(conversation_id=conversation.id, turn_id=turn.id)
    log = await request.services.turns.follow(turn, 0)
    assert log is not None  # a turn has events from its start on
    encoding = UIMessageStream(TurnContext.of(turn, conversation), _reader(request, query), after)
    return EventStream(log, encoding, HEADERS, ends_when_paused=True)


def _reader(request: RequestContext, query: ChatQuery) -> Reader:
    return Reader(query.version, own_url(request.http, ""))


def _is_replayed(turn: Turn, query: ChatQuery) -> bool:
    """Version 5 adds a replay to the answer that it has, so it gets none of a turn that has ended."""
    if turn.ended_at is None:
        return True
    return query.version > 5 and system_clock() - turn.ended_at < REPLAYED_MS


def _is_listed(status: MessageStatus, query: ChatQuery) -> bool:
    """For the same reason, its history leaves out an answer in progress, which the stream brings."""
    return query.version > 5 or status not in (MessageStatus.PENDING, MessageStatus.STREAMING)


_CHAT = f"{PREFIX}/chat"

ROUTES = (
    Route(
        "POST",
        _CHAT,
        chat,
        _TAG,
        errors=(ConversationNotFound, NothingToRegenerate),
        body_has_files=True,
        stores="nothing",
        begins_turn=True,
        scope=Scope.CHAT,
    ),
    Route("GET", f"{_CHAT}/{{chat_id}}", history, _TAG, is_large=True),
    Route("GET", f"{_CHAT}/{{chat_id}}/stream", resume, _TAG, also=(204,)),
    Route("DELETE", f"{_CHAT}/{{chat_id}}/stream", stop, _TAG, 204, scope=Scope.CHAT),
)
