"""A request of the Responses API → the turn that replies to it: where it belongs, and what it decides."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import msgspec

from threadkeep.clock import system_clock
from threadkeep.domain.approval import ApprovalAction, ApprovalKind, Decision
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import (
    ApprovalNotFound,
    Conflict,
    ConversationNotFound,
    InvalidRequest,
    MessageContentRequired,
    TurnNotFound,
)
from threadkeep.domain.ids import TurnId
from threadkeep.domain.message import Message, check_user_content
from threadkeep.domain.turn import BegunWith, Turn, TurnStatus
from threadkeep.handling.retries import is_retry
from threadkeep.handling.routing import RequestContext
from threadkeep.protocols.openai import conversations, files
from threadkeep.protocols.openai.decode import CreateResponse, Input, output_of, tool_chosen, tools_of
from threadkeep.protocols.openai.ids import parse_response_id
from threadkeep.protocols.openai.input_items import joined_text
from threadkeep.protocols.openai.items import texts_of_reply
from threadkeep.protocols.openai.models import asked_of
from threadkeep.protocols.openai.reading import PROTOCOL, RequestFields, format_name, no_response
from threadkeep.services.client_tools import check_accepted
from threadkeep.services.outside import new_conversation
from threadkeep.services.sending import NewMessage


@dataclass(frozen=True, slots=True)
class Asked:
    """The turn that replies to a request, and its conversation."""

    turn: Turn
    conversation: Conversation
    seen: int = 0
    """The number of the last event before what the request decided, if it continues the turn."""


async def ask(request: RequestContext, body: CreateResponse, given: Input) -> Asked:
    """Sends a message, or answers what a turn waits for."""
    conversation, after = await _place(request, body, given)
    await _check_claims(request, conversation, given)
    if (before := await _asked_before(request, conversation, after, given)) is not None:
        return before
    waiting = after or (
        conversation and await request.services.outside.newest_turn(request.user, conversation)
    )
    decisions = given.decisions or await _answer(request, waiting, given)
    if conversation is not None and decisions:
        return await _decided(request, conversation, waiting, decisions, given)
    if given.decisions:
        raise ApprovalNotFound(
            "No request with this id is open. It may have been answered, or have expired.", param="input"
        )
    if after is not None and after.status is TurnStatus.RUNNING:
        raise Conflict("The previous response is still in progress. Wait for it, or cancel it.")
    try:
        return Asked(*await _begin(request, conversation, after, body, given))
    except MessageContentRequired:
        # The same request may have begun the reply to what was added since we looked.
        if (before := await _asked_before(request, conversation, after, given)) is not None:
            return before
        raise


async def _asked_before(
    request: RequestContext, conversation: Conversation | None, after: Turn | None, given: Input
) -> Asked | None:
    """What the same request began before: one with its key, or one that an SDK repeats, if that replied to
    added messages or its message was an answer. Other messages are recognized where they are sent.
    """
    if request.key is not None:
        begun = await request.services.sending.begun_before(request.user, conversation, request.key)
        if begun is not None:
            return Asked(*begun)
    if conversation is None or given.decisions or not is_retry(request.http):
        return None
    return await _replied_before(request, conversation, after, given) or await _answered_before(
        request, conversation, after, given
    )


async def _replied_before(
    request: RequestContext, conversation: Conversation, after: Turn | None, given: Input
) -> Asked | None:
    if await _added(request, conversation, after, given) is not None:
        return None  # it asks about these
    async with aclosing(request.services.added_messages.replied(conversation)) as replied:
        async for turn, added in replied:
            if added and _asks_for_reply(given, added, after):
                return Asked(turn, conversation)
    return None


async def _answered_before(
    request: RequestContext, conversation: Conversation, after: Turn | None, given: Input
) -> Asked | None:
    if given.files or not given.text:
        return None
    answered = await request.services.outside.answered(conversation, given.text)
    if answered is None or (after is not None and after.id != answered[0].id):
        return None
    return Asked(answered[0], conversation, answered[1])


async def own_response(request: RequestContext, response_id: str) -> tuple[Turn, Conversation, int]:
    """One of the user's responses: a turn, its conversation, and which part of the turn it is."""
    parsed = parse_response_id(response_id)
    if parsed is None:
        raise no_response()
    try:
        turn = await request.services.turns.get(request.user, parsed[0])
        conversation = await conversations.found(request, turn.conversation_id)
    except (TurnNotFound, ConversationNotFound):
        raise no_response() from None
    return turn, conversation, parsed[1]


async def _place(
    request: RequestContext, body: CreateResponse, given: Input
) -> tuple[Conversation | None, Turn | None]:
    """The conversation that a request continues, and the turn that it follows, if it says so."""
    if body.conversation_id is not None:
        return await conversations.found(request, body.conversation_id), None
    if body.previous_response_id is not None:
        turn, conversation, _ = await own_response(request, body.previous_response_id)
        return conversation, turn
    listed = given.after or await _asking(request, given.decisions)
    if listed is None:
        return None, None
    place = await request.services.outside.place_of(request.user, listed)
    if place is None:
        raise no_response()
    return place


async def _check_claims(request: RequestContext, conversation: Conversation | None, given: Input) -> None:
    """Refuses replies that are not from here: they can't become part of a stored conversation."""
    claimed = set(filter(None, given.claimed))
    if claimed and conversation is not None:
        pages = request.services.outside.newest_first(request.user, conversation, bare=True)
        async with aclosing(pages):
            async for page in pages:
                claimed -= await asyncio.to_thread(_replies_in, page)
                if not claimed:
                    return
    if claimed:
        raise InvalidRequest(
            "The input contains replies that this server didn't produce. Threadkeep stores conversations: "
            "send only what is new, with `previous_response_id` or `conversation`.",
            param="input",
        )


def _replies_in(page: Sequence[Message]) -> set[str]:
    return {text for message in page for text in texts_of_reply(message)}


async def _asking(request: RequestContext, decisions: Mapping[str, Decision]) -> TurnId | None:
    """The turn that waits for one of these decisions."""
    if not decisions:
        return None
    open_ = await request.services.approvals.open(request.user)
    turns = {it.turn_id for it in open_ if it.request_id in decisions or it.tool_call_id in decisions}
    if len(turns) > 1:  # some models number their calls from 1 in each conversation
        raise InvalidRequest(
            "Several responses wait for a call with this id. Send `previous_response_id` or `conversation`.",
            param="input",
        )
    return next(iter(turns), None)


async def _answer(request: RequestContext, turn: Turn | None, given: Input) -> Mapping[str, Decision]:
    """A message as the answer to the question that a turn waits for, if that takes any text."""
    if turn is None or turn.status is not TurnStatus.WAITING or given.files:
        return {}
    asked = await request.services.approvals.open(request.user, turn)
    if len(asked) != 1 or not given.text.strip():
        return {}
    (only,) = asked
    takes_text = only.kind is ApprovalKind.QUESTION and only.schema is None and only.url is None
    answer = Decision(action=ApprovalAction.ANSWER, at=system_clock(), content=given.text)
    return {only.request_id: answer} if takes_text else {}


async def _decided(
    request: RequestContext,
    conversation: Conversation,
    waiting: Turn | None,
    decisions: Mapping[str, Decision],
    given: Input,
) -> Asked:
    """The turn that continues after all that it waited for was decided."""
    newest = await request.services.outside.newest_turn(request.user, conversation)
    if waiting is None or newest is None or newest.id != waiting.id:
        raise ApprovalNotFound("This response no longer waits for anything.", param="input")
    if given.decisions and given.text:
        raise InvalidRequest(
            "Answer what is open first, and send the new message after the response to that.", param="input"
        )
    for it in await request.services.approvals.open(request.user, waiting):
        if it.request_id not in decisions and it.tool_call_id not in decisions:
            what = f"output of the function call {it.tool_call_id}"
            if it.kind is not ApprovalKind.CLIENT_TOOL:
                what = "decision about every request for approval"
            raise InvalidRequest(f"The response also waits for the {what}. Send all at once.", param="input")
    turn, seen = await request.services.outside.answer(request.user, conversation, decisions)
    return Asked(turn, conversation, seen)


async def _begin(
    request: RequestContext,
    conversation: Conversation | None,
    after: Turn | None,
    body: CreateResponse,
    given: Input,
) -> tuple[Turn, Conversation]:
    """Begins the turn that replies to a message."""
    user, services = request.user, request.services
    added = await _added(request, conversation, after, given)
    tools = tools_of(body)
    agent, model = await asked_of(request, body.model) if body.model is not None else (None, None)
    if agent is None and conversation is None:
        agent = await services.agents.default_of(user)
    if agent is not None:
        await check_accepted(agent, tools)
    if added is None:  # a refused message must not create anything
        most = agent.settings.max_message_chars if agent else 0
        check_user_content(given.text, most=most, has_files=bool(given.files), param="input")
    if agent is not None and conversation is not None:
        conversation = await conversations.with_agent(request, conversation, agent)
    fields = RequestFields(
        metadata=body.metadata or {},
        previous_response_id=body.previous_response_id,
        conversation=body.conversation_id,
        background=bool(body.background),
        format_name=format_name(body),
    )
    begun_with = BegunWith(
        protocol=PROTOCOL,
        asked_model=body.model,
        tools=tools,
        instructions=given.instructions or None,
        temperature=body.temperature,
        max_tokens=body.max_output_tokens,
        output=output_of(body),
        tool_choice=tool_chosen(body),
        request_fields=msgspec.to_builtins(fields),
    )
    agent_id = agent.id if agent else None
    if added is not None and conversation is not None:
        turn = await services.added_messages.reply_to(
            user, added, begun_with, model=model, agent_id=agent_id, key=request.key
        )
        return turn, conversation
    message = NewMessage(
        given.text,
        files=await files.file_parts(request, given.files),
        model=model,
        idempotency_key=request.key,
        begun_with=begun_with,
        is_retry=is_retry(request.http),
        agent_id=agent_id,
    )
    if conversation is None:
        assert agent is not None
        return await services.outside.send(user, new_conversation(agent), message)
    before = [after.assistant_message_id] if after else ()
    return await services.outside.send(user, conversation, message, before=before)


async def _added(
    request: RequestContext, conversation: Conversation | None, after: Turn | None, given: Input
) -> Message | None:
    """The message to reply to, if the client has added it before."""
    added = await request.services.added_messages.unanswered(conversation) if conversation else ()
    return added[-1] if added and _asks_for_reply(given, added, after) else None


def _asks_for_reply(given: Input, added: Sequence[Message], after: Turn | None) -> bool:
    """Whether a request asks for a reply to what its client has added: it repeats that, or says nothing."""
    if after is not None and added[0].parent_id != after.assistant_message_id:
        return False
    return (not given.text and not given.files) or _repeats(given, added)


def _repeats(given: Input, added: Sequence[Message]) -> bool:
    """Whether the new messages of a request are those that its client has added before."""
    file_count = sum(len(it.files) for it in added)
    return joined_text(added) == given.text and len(given.files) == file_count
