"""Turns over HTTP: sending, following, stopping, regenerating."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from threadkeep.aside import LogWork
from threadkeep.domain.client_tool import ClientTool
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import (
    GenerationAborted,
    InvalidRequest,
    ShuttingDown,
)
from threadkeep.domain.events import LogChunk
from threadkeep.domain.message import Message, MessageStatus
from threadkeep.domain.queued import QueuedMessage, WhenBusy
from threadkeep.domain.turn import BegunWith, Turn, WaitsFor
from threadkeep.handling.errors import error_of_turn
from threadkeep.handling.idempotency import idempotency_key
from threadkeep.handling.routing import RequestContext, ViewResponse
from threadkeep.handling.stream import EventStream
from threadkeep.ports.gateway import ImageBlock
from threadkeep.program_log import add_to_subject
from threadkeep.protocols.dialect import START, Encoder, TurnContext
from threadkeep.protocols.dialects import DIALECTS, DialectName
from threadkeep.runtime.following import Follower
from threadkeep.services.sending import NewConversation, NewMessage
from threadkeep.wire.approvals import WaitingTurnView, approval_view
from threadkeep.wire.messages import MessageView, cost_view, failure_view, message_view, usage_view
from threadkeep.wire.queue import QueuedView, SteeredView, queued_view
from threadkeep.wire.turns import (
    AbortView,
    ComponentReceiptView,
    ReceiptView,
    SentFileView,
    StartedTurnView,
    TurnView,
)
from threadkeep.wire.view import rfc3339, time_or_none

DialectChoice = Annotated[DialectName, Meta(description="The format of the streamed events.")]


Tip = Annotated[
    str | UnsetType | None,
    Meta(description="The last message the client shows; 409 if the active path ends elsewhere."),
]


WantedModel = Annotated[
    str | None,
    Meta(description="The model that is to answer, one that the agent offers; by default, the agent's own."),
]


class ClientToolBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A tool that the client runs."""

    name: Annotated[str, Meta(description="1 to 64 characters: letters, digits, `-` and `_`.")]
    description: Annotated[str, Meta(description="Tells the model what it does.")] = ""
    parameters: Annotated[
        Mapping[str, Any], Meta(description="A JSON Schema of its arguments, of type `object`.")
    ] = {}


BroughtTools = Annotated[
    list[ClientToolBody],
    Meta(
        description="Tools that the client runs, offered to the model beside the agent's own. A call of one "
        "pauses the turn (a request of kind `client_tool`) until the client sends its result."
    ),
]


class ChatBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The user's message."""

    content: Annotated[str | None, Meta(description="The text; needed unless files are attached.")] = None
    files: Annotated[
        list[str],
        Meta(description="Ids of files uploaded to `/api/files`. A message with files needs no content."),
    ] = []


class MessageBody(ChatBody, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The user's message, and where it goes."""

    parent_id: Annotated[
        str | UnsetType | None,
        Meta(
            description="The message that this one follows (`null`: none). To edit a sent message, use that "
            "message's parent. If omitted, the end of the active path."
        ),
    ] = UNSET
    tip: Tip = UNSET
    when_busy: Annotated[
        WhenBusy,
        Meta(
            description="While the agent answers: `reject` (409, the default), `queue` (202; sent when the "
            "turn has completed), `steer` (202; joins the turn before its next model call, or is sent next) "
            "or `stop` (ends the turn, keeps its text, and sends this message before all that is queued). A "
            "queued message can't set `parentId`."
        ),
    ] = WhenBusy.REJECT
    model: WantedModel = None
    tools: BroughtTools = []
    on_disconnect: Annotated[
        Literal["continue", "stop"],
        Meta(
            description="What happens when nobody follows the turn any more, here or elsewhere, for about 5 "
            "seconds: it continues (the default), or it stops and keeps its text. `stop` needs a streamed "
            "response."
        ),
    ] = "continue"


class RegenerateBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which answer to regenerate."""

    message_id: Annotated[str | None, Meta(description="The answer; by default, the latest.")] = None
    tip: Tip = UNSET
    when_busy: Annotated[
        Literal["reject", "stop"],
        Meta(description="While the agent answers: `reject` (409, the default) or `stop` (ends that turn)."),
    ] = "reject"
    model: WantedModel = None
    tools: BroughtTools = []


class SendQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to respond."""

    dialect: DialectChoice = "events"
    wait: Annotated[
        bool, Meta(description="Respond when the turn is done, with the finished message as JSON.")
    ] = False


class EventsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events to send, and in which form."""

    dialect: DialectChoice = "events"
    after: Annotated[str | None, Meta(description="Like `Last-Event-ID`: the last event received.")] = None


TurnResponse = EventStream | ViewResponse[StartedTurnView | MessageView | WaitingTurnView]
SentResponse = TurnResponse | ViewResponse[QueuedView | SteeredView]


async def send_message(
    request: RequestContext, *, conversation_id: str, query: SendQuery, body: MessageBody
) -> SentResponse:
    """Send a message to the agent: starts a turn and streams it.

    With `Accept: application/json`, the response is a 202 with the turn's ids; with `wait=true`, it is the
    finished message, or a 202 with the turn's requests to its user. The same `Idempotency-Key` never starts a
    second turn.

    While the agent answers, you can queue a message or steer the turn with it (`whenBusy`): 202 with its id.
    With `stop`, it ends that turn and starts its own.
    After a failed or stopped turn, the queue is held; the next message releases it and is queued behind it. A
    message sent while a turn waits for its user ends that turn and starts its own.
    """
    return await _send(request, conversation_id, query, body)


async def _send(
    request: RequestContext, where: str | NewConversation, query: SendQuery, body: MessageBody
) -> SentResponse:
    """Sends a message to a conversation, or to one that it opens."""
    stops = body.on_disconnect == "stop"
    if stops and (not _is_streamed(request, query) or body.when_busy in {WhenBusy.QUEUE, WhenBusy.STEER}):
        raise InvalidRequest(
            '`"onDisconnect": "stop"` needs a response that streams the turn: leave out `wait` and `Accept: '
            "application/json`, and don't queue the message.",
            param="onDisconnect",
        )
    files = await request.services.files.parts(request.user, body.files) if body.files else ()
    message = NewMessage(
        body.content or "",
        files=files,
        parent_id=body.parent_id,
        tip_id=body.tip,
        when_busy=body.when_busy,
        model=body.model,
        begun_with=_begun_with(body.tools, stops_unfollowed=stops),
        idempotency_key=idempotency_key(request.http),
    )
    sent = await request.services.sending.send(request.user, where, message)
    if isinstance(sent, QueuedMessage):
        return ViewResponse(queued_view(sent), 202, {"Location": request.link(_place_of(sent))})
    turn, conversation = sent
    return await _respond(request, turn, conversation, query)


async def regenerate(
    request: RequestContext, *, conversation_id: str, query: SendQuery, body: RegenerateBody
) -> TurnResponse:
    """Regenerate an answer and keep the old one as a version; responds like sending a message."""
    turn, conversation = await request.services.sending.regenerate(
        request.user,
        conversation_id,
        message_id=body.message_id,
        tip_id=body.tip,
        model=body.model,
        when_busy=WhenBusy(body.when_busy),
        begun_with=_begun_with(body.tools),
        idempotency_key=idempotency_key(request.http),
    )
    return await _respond(request, turn, conversation, query)


def _begun_with(tools: Sequence[ClientToolBody], *, stops_unfollowed: bool = False) -> BegunWith | None:
    """What a request brings with it for its turn, if anything."""
    if not tools and not stops_unfollowed:
        return None
    brought = (ClientTool(name=it.name, description=it.description, parameters=it.parameters) for it in tools)
    return BegunWith(tools=tuple(brought), stops_unfollowed=stops_unfollowed)


async def send_held_message(
    request: RequestContext, *, conversation_id: str, message_id: str, query: SendQuery
) -> TurnResponse:
    """Send a held message now; the other held messages follow it. Responds like sending a message."""
    turn, conversation = await request.services.sending.send_held(
        request.user, conversation_id, message_id, idempotency_key=idempotency_key(request.http)
    )
    return await _respond(request, turn, conversation, query)


async def send_chat(request: RequestContext, *, query: SendQuery, body: ChatBody) -> SentResponse:
    """Send a message in your main conversation with the default agent, creating it if needed."""
    agent = await request.services.agents.default_of(request.user)
    message = MessageBody(content=body.content, files=body.files)
    return await _send(request, NewConversation(agent.id, is_main=True), query, message)


async def stop_turn(request: RequestContext, *, conversation_id: str) -> AbortView:
    """Stop the turn running in a conversation and keep its partial answer. `IDLE` if none is running."""
    aborted = await request.services.turns.abort(request.user, conversation_id)
    if aborted is None:
        return AbortView(status="IDLE")
    message = aborted.message
    return AbortView(
        status="GENERATION_ABORTED",
        turn_id=aborted.turn_id,
        message_id=message.id,
        content=message.content if isinstance(message.content, str) else "",
    )


async def get_turn(request: RequestContext, *, turn_id: str) -> TurnView:
    """Read a turn's status."""
    turn = await request.services.turns.get(request.user, turn_id)
    return turn_view(turn, await request.services.running_turns.waits_for(turn))


def turn_view(turn: Turn, waits_for: WaitsFor | None) -> TurnView:
    """A turn's status."""
    return TurnView(
        id=turn.id,
        run_id=turn.id,
        conversation_id=turn.conversation_id,
        user_message_id=turn.user_message_id,
        assistant_message_id=turn.assistant_message_id,
        status=turn.status,
        waits_for=waits_for,
        model=turn.model,
        started_at=rfc3339(turn.started_at),
        ended_at=time_or_none(turn.ended_at),
        usage=usage_view(turn.usage) if turn.usage else None,
        cost=cost_view(turn.usage.cost if turn.usage else None),
        error=failure_view(turn.error) if turn.error else None,
    )


class CallQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Which model call."""

    call: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Of an agent in code, the number of a model call, from 1.")
    ] = 1


async def get_turn_context(request: RequestContext, *, turn_id: str, query: CallQuery) -> ReceiptView:
    """Read what the model received in a turn. Only the agent's owner and admins see the prompt's text."""
    shown = await request.services.receipts.get(request.user, turn_id, query.call)
    receipt = shown.receipt
    return ReceiptView(
        turn_id=turn_id.lower(),
        sha256=receipt.sha256,
        model=receipt.model,
        components=[
            ComponentReceiptView(
                name=component.name,
                sha256=component.sha256,
                length=component.length,
                truncated=component.truncated,
                text=shown.texts.get(component.sha256, UNSET),
            )
            for component in receipt.components
        ],
        summary=shown.summary,
        message_ids=receipt.message_ids,
        thoughts=receipt.thoughts,
        tools=receipt.tools,
        temperature=receipt.temperature,
        max_tokens=receipt.max_tokens,
        token_estimate=receipt.token_estimate,
        dropped_messages=receipt.dropped_messages,
        shortened_results=receipt.shortened,
        files=[
            SentFileView(
                type="image" if isinstance(file, ImageBlock) else "document",
                file_name=file.file_name,
                tokens=file.tokens,
            )
            for file in shown.files
        ],
        prefix_share=receipt.prefix_share,
    )


async def get_turn_events(request: RequestContext, *, turn_id: str, query: EventsQuery) -> EventStream | None:
    """Follow a turn's events live, from the start or after `Last-Event-ID`; 204 if none are left."""
    turn = await request.services.turns.get(request.user, turn_id)
    last_id = query.after if query.after is not None else request.http.headers.get("last-event-id")
    conversation = await request.services.conversations.get(request.user, turn.conversation_id)
    return await _stream(request, turn, conversation, query.dialect, last_id or None)


async def _respond(
    request: RequestContext, turn: Turn, conversation: Conversation, query: SendQuery
) -> TurnResponse:
    add_to_subject(conversation_id=conversation.id, turn_id=turn.id)
    location = {"Location": request.link(f"/api/turns/{turn.id}")}
    if _is_streamed(request, query):
        stream = await _stream(request, turn, conversation, query.dialect, None)
        assert stream is not None
        stream.headers.update(location)
        return stream
    if query.wait:
        finished = await request.services.turns.finished(turn)
        if finished is None:
            waiting = [approval_view(it) for it in await request.services.approvals.open(request.user, turn)]
            return ViewResponse(
                WaitingTurnView(status="WAITING", turn_id=turn.id, approvals=waiting), 202, location
            )
        message = _good(turn, finished)
        siblings = await request.services.branches.siblings(message) if conversation.has_branches else ()
        return ViewResponse(message_view(message, siblings=siblings), 200, location)
    started = StartedTurnView(
        turn_id=turn.id,
        user_message_id=turn.user_message_id,
        assistant_message_id=turn.assistant_message_id,
    )
    return ViewResponse(started, 202, location)


def _is_streamed(request: RequestContext, query: SendQuery) -> bool:
    """Whether the response streams the turn."""
    accept = request.http.headers.get("accept", "")
    as_json = query.wait or "application/json" in accept
    return not as_json or "text/event-stream" in accept


def _place_of(message: QueuedMessage) -> str:
    """The URL where a client sees what happens to a queued message."""
    if message.steers_turn_id is not None:
        return f"/api/turns/{message.steers_turn_id}"
    return f"/api/conversations/{message.conversation_id}"


def _good(turn: Turn, message: Message) -> Message:
    if message.status is MessageStatus.COMPLETED:
        return message
    if message.status in {MessageStatus.PENDING, MessageStatus.STREAMING}:
        raise ShuttingDown(
            "The turn continues in another process. Send the request again with the same Idempotency-Key.",
            details={"turnId": turn.id},
        )
    details = {"message": message_view(message)}
    if message.error is None:
        raise GenerationAborted("The turn was stopped.", details=details)
    raise error_of_turn(message.error.code)(message.error.message, details=details)


async def _stream(
    request: RequestContext, turn: Turn, conversation: Conversation, dialect_name: str, last_id: str | None
) -> EventStream | None:
    """The events after `last_id` in a dialect; None if nothing is left."""
    dialect = DIALECTS[dialect_name]
    context = TurnContext.of(turn, conversation)
    after = dialect.position(context, last_id) if last_id is not None else START
    log = await request.services.turns.follow(turn, after.seq, from_first=dialect.remembers)
    if log is not None and after.frames and not turn.is_active:
        # The reader may already have all frames of the last event.
        if not await _has_frames(log, dialect.start(context, after)):
            return None
        log = await request.services.turns.follow(turn, after.seq, from_first=dialect.remembers)
    return None if log is None else EventStream(log, dialect.start(context, after), dialect.headers)


async def _has_frames(log: Follower, encoder: Encoder) -> bool:
    def encode(chunks: Sequence[LogChunk]) -> bool:
        return any(map(encoder.encode_chunk, chunks))

    work = LogWork()
    async with log:
        async for chunks in log:
            if await work.take(encode, chunks, at_end=log.has_ended):
                return True
    return False
