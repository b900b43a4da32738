"""`/v1/chat/completions`: replies to a history that the client brings, stored only in conversations."""

import asyncio

from threadkeep.aside import LogWork
from threadkeep.clock import system_clock
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import ShuttingDown
from threadkeep.domain.turn import BegunWith, Turn
from threadkeep.handling.routing import RequestContext
from threadkeep.handling.stream import EventStream
from threadkeep.log.portions import events_of
from threadkeep.program_log import add_to_subject
from threadkeep.protocols.openai import stateless
from threadkeep.protocols.openai.asking import ask
from threadkeep.protocols.openai.completions_decode import (
    CreateCompletion,
    check_completion,
    files_of,
    history_of,
    new_input,
    output_schema,
    tool_chosen,
)
from threadkeep.protocols.openai.completions_encode import (
    ChatCompletion,
    CompletionEncoder,
    CompletionHead,
    WholeCompletion,
)
from threadkeep.protocols.openai.decode import CreateResponse, FormatParam, TextParam
from threadkeep.protocols.openai.stateless import StatelessRequest


async def create_completion(
    request: RequestContext, *, body: CreateCompletion
) -> EventStream | ChatCompletion:
    """Reply to a history as the agent that `model` names.

    Nothing is stored, unless `conversation` names one: then only what follows the last reply counts, and it
    continues the conversation.
    """
    await asyncio.to_thread(check_completion, body)  # it may be long
    if body.conversation is None:
        return await _stateless(request, body)
    new = await request.aside(lambda it: new_input(it, system_clock()), body)
    asked = await ask(request, _as_response(body), new)
    turn = asked.turn
    add_to_subject(conversation_id=turn.conversation_id, turn_id=turn.id)
    return await _of_turn(request, body, turn, asked.conversation, asked.seen)


async def _stateless(request: RequestContext, body: CreateCompletion) -> EventStream | ChatCompletion:
    """A completion that stores nothing but its cost."""
    completion, agent = await stateless.begin(request, await request.aside(_asked, body))
    head = CompletionHead.of(completion.turn, body.model or agent.name)
    if body.stream:
        return stateless.stream(completion, encoder(head, body))
    whole = WholeCompletion(head)
    await stateless.read_whole(request, completion, whole.add)
    return whole.completion()


def _asked(body: CreateCompletion) -> StatelessRequest:
    return StatelessRequest(
        model=body.model,
        files=files_of(body),
        history=lambda files: history_of(body.messages, files),
        field="messages",
        begun_with=BegunWith(
            instructions=body.instructions,
            tools=body.client_tools,
            temperature=body.temperature,
            max_tokens=body.most_tokens,
            output=output_schema(body),
            tool_choice=tool_chosen(body),
        ),
    )


def _as_response(body: CreateCompletion) -> CreateResponse:
    """What a completion in a conversation asks for, besides its new messages."""
    return CreateResponse(
        model=body.model,
        conversation=body.conversation,
        tools=body.flat_tools,
        temperature=body.temperature,
        max_output_tokens=body.most_tokens,
        tool_choice=body.tool_choice,
        text=_text(body),
    )


def _text(body: CreateCompletion) -> TextParam | None:
    """The format that a completion asks for, as responses have it."""
    output = output_schema(body)
    if output is None:
        return None
    return TextParam(FormatParam("json_schema", schema=dict(output)))


async def _of_turn(
    request: RequestContext, body: CreateCompletion, turn: Turn, conversation: Conversation, seen: int
) -> EventStream | ChatCompletion:
    """A completion that is a turn of a conversation, or the rest of one after an event."""
    head = CompletionHead.of(turn, body.model or conversation.agent_id, seen)
    log = await request.services.turns.follow(turn, 0)
    assert log is not None  # a turn has events from its start on
    if body.stream:
        return EventStream(log, encoder(head, body), {}, ends_when_paused=True)
    whole, work = WholeCompletion(head), LogWork()
    async with log:
        async for chunks in log:
            await work.take(lambda it: whole.add(events_of(it)), chunks, at_end=log.has_ended)
            if log.is_paused:
                break
        if not log.has_ended and not log.is_paused:
            raise ShuttingDown("The reply continues in another process. Read the conversation.")
    return await work.end(whole.completion)


def encoder(head: CompletionHead, body: CreateCompletion) -> CompletionEncoder:
    """What makes the chunks that a request asks for."""
    options = body.stream_options
    return CompletionEncoder(head, with_usage=bool(options and options.include_usage))
