"""`/api/ag-ui`: runs of AG-UI clients, and what CopilotKit asks its runtime for.

| a run whose list ends with | does |
|---|---|
| a question | sends it; asks again if it has been answered as it is |
| a question's reply, and answers to interrupts (`resume`) or to calls of the client's tools | answers them |
| anything else | continues to follow the conversation, like `connect` |
"""

import asyncio

from starlette.responses import Response

from threadkeep.clock import system_clock
from threadkeep.domain.approval import ApprovalKind, Decision
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import ConversationNotFound, ThreadkeepError
from threadkeep.domain.key import Scope
from threadkeep.domain.message import Message, check_user_content
from threadkeep.domain.turn import BegunWith, Turn
from threadkeep.handling.errors import ShapedError
from threadkeep.handling.retries import is_retry
from threadkeep.handling.routing import RequestContext, Route
from threadkeep.handling.stream import EventStream
from threadkeep.program_log import add_to_subject
from threadkeep.protocols.ag_ui import frames
from threadkeep.protocols.ag_ui.decode import (
    Question,
    RunInput,
    StopInput,
    decisions_of,
    question_of,
    results_of,
    tools_of,
)
from threadkeep.protocols.ag_ui.encode import Run, RunEncoder
from threadkeep.protocols.ag_ui.history import history
from threadkeep.protocols.files import take_in
from threadkeep.services.sending import NewMessage
from threadkeep.sse import MEDIA_TYPE

PREFIX = "/api/ag-ui"
PROTOCOL = "ag-ui"
RUNTIME_VERSION = "1.74.0"
"""The version of CopilotKit's runtime that has these routes."""
DEFAULT_AGENT = "default"
"""CopilotKit's name of an agent, unless the application chooses one: here, the user's default agent."""
MOST_AGENTS = 200


async def run(request: RequestContext, *, agent: str, body: RunInput) -> EventStream | Response:
    """Run an agent."""
    outside = request.services.outside
    if begun := await outside.begun_before(request.user, body.thread_id, request.key):
        return await _stream(request, begun[0], _run(body))
    question = None if body.resume else await request.aside(question_of, body)
    if question is not None:
        return await _asked(request, agent, body, question)
    conversation = await outside.find(request.user, body.thread_id)
    if conversation is None:
        raise ConversationNotFound
    decisions, results = await _answers(request, conversation, body)
    if not decisions:
        return await _followed(request, conversation, body)
    turn, seen = await outside.answer(request.user, conversation, decisions)
    return await _stream(request, turn, _run(body, results=results), seen)


async def connect(request: RequestContext, *, agent: str, body: RunInput) -> EventStream | Response:
    """Send a conversation and the turn that runs in it; an empty response if the conversation is unknown."""
    conversation = await request.services.outside.find(request.user, body.thread_id)
    if conversation is None:
        return Response(media_type=MEDIA_TYPE)
    return await _followed(request, conversation, body)


async def stop(request: RequestContext, *, agent: str, thread_id: str, body: StopInput) -> frames.Stopped:
    """Stop the turn that runs in a conversation, and keep its text."""
    conversation = await request.services.outside.find(request.user, thread_id)
    if conversation is None:
        raise ConversationNotFound
    return frames.Stopped(await request.services.turns.abort(request.user, conversation.id) is not None)


async def info(request: RequestContext) -> frames.Info:
    """List the agents."""
    agents = await request.services.agents.page(request.user, after=None, offset=0, limit=MOST_AGENTS)
    default = await request.services.agents.default()
    named = [(DEFAULT_AGENT, default)] if default.is_visible_to(request.user) else []
    listed = {
        id_: frames.Agent(it.name, it.description) for id_, it in (*named, *((it.id, it) for it in agents))
    }
    return frames.Info(version=RUNTIME_VERSION, agents=listed)


async def _asked(
    request: RequestContext, agent: str, body: RunInput, question: Question
) -> EventStream | Response:
    """A run that replies to a question."""
    # Files are stored before the message is: not for one that says nothing.
    check_user_content(question.text, most=0, has_files=bool(question.files))
    outside = request.services.outside
    agent_id = None if agent == DEFAULT_AGENT else agent
    where = await outside.find_or_new(request.user, body.thread_id, agent_id)
    begun_with = BegunWith(protocol=PROTOCOL, run_id=body.run_id, tools=await request.aside(tools_of, body))
    if isinstance(where, Conversation) and (asked := await _asked_before(request, where, question)):
        turn = await _same_run(request, where, body, asked)
        if turn is None and where.active_turn_id is None:
            turn = await outside.regenerate(
                request.user, where, begun_with, question_id=question.id, key=request.key
            )
        if turn is not None:
            return await _stream(request, turn, _run(body))
    files = await take_in(request.services.files, request.user, question.files, param="messages")
    message = NewMessage(
        question.text,
        files=files,
        idempotency_key=request.key,
        begun_with=begun_with,
        outside_id=question.id or None,
        is_retry=is_retry(request.http),
    )
    turn, _ = await outside.send(request.user, where, message, before=question.before)
    return await _stream(request, turn, _run(body))


async def _same_run(
    request: RequestContext, conversation: Conversation, body: RunInput, asked: Message
) -> Turn | None:
    """The turn that this very run has begun, unless it ended long ago: a retry repeats the run's id, and a
    client that wants another answer begins another run.
    """
    retried = await request.services.outside.retried(conversation)
    turns = [it for it in retried if it.user_message_id == asked.id]
    same = (it for it in turns if body.run_id and it.begun_with and it.begun_with.run_id == body.run_id)
    return next(same, turns[0] if turns and is_retry(request.http) else None)


async def _asked_before(
    request: RequestContext, conversation: Conversation, question: Question
) -> Message | None:
    """A question that was sent before, with the same text: once it has its reply, it is asked again."""
    if not question.id:
        return None
    message = await request.services.outside.message(conversation, question.id)
    return message if message is not None and message.text == question.text else None


async def _answers(
    request: RequestContext, conversation: Conversation, body: RunInput
) -> tuple[dict[str, Decision], frozenset[str]]:
    """What a run decides, by request, and the calls whose results it brings."""
    now = system_clock()
    decisions, results = await request.aside(lambda it: (decisions_of(it, now), results_of(it, now)), body)
    brought: set[str] = set()
    for opened in await request.services.approvals.open(request.user) if results else ():
        call_id = opened.tool_call_id
        if opened.conversation_id != conversation.id or opened.kind is not ApprovalKind.CLIENT_TOOL:
            continue
        if call_id is not None and call_id in results:
            decisions[opened.request_id] = results[call_id]
            brought.add(call_id)
    return decisions, frozenset(brought)


async def _followed(
    request: RequestContext, conversation: Conversation, body: RunInput
) -> EventStream | Response:
    """The whole conversation, and the turn that runs in it."""
    if conversation.active_turn_id is None:
        shown = _run(body, await history(request, conversation))
        headers = {"Cache-Control": "no-store"}
        content = await asyncio.to_thread(lambda: shown.opening() + shown.finished())
        return Response(content, headers=headers, media_type=MEDIA_TYPE)
    turn = await request.services.turns.get(request.user, conversation.active_turn_id)
    before = await history(request, conversation, without=turn.assistant_message_id)
    return await _stream(request, turn, _run(body, before))


async def _stream(request: RequestContext, turn: Turn, run: Run, seen: int = 0) -> EventStream | Response:
    add_to_subject(conversation_id=turn.conversation_id, turn_id=turn.id)
    log = await request.services.turns.follow(turn, seen, from_first=True)
    if log is None:  # it was stopped just when its client answered
        return Response(run.opening(turn.id) + run.finished(), media_type=MEDIA_TYPE)
    encoder = RunEncoder(run, turn.id, turn.assistant_message_id, seen)
    location = {"Location": request.link(f"/api/turns/{turn.id}")}
    return EventStream(log, encoder, location, ends_when_paused=True)


def _run(
    body: RunInput, shown: list[frames.Message] | None = None, *, results: frozenset[str] = frozenset()
) -> Run:
    return Run(
        thread_id=body.thread_id,
        run_id=body.run_id,
        is_1_0=body.is_1_0,
        state=body.state,
        history=shown,
        results=results,
    )


def error_shape(error: ThreadkeepError, status: int, request_id: str) -> ShapedError:
    """An error as CopilotKit reads it; AG-UI defines none."""
    body = frames.Error(
        error=error.code,
        message=error.message,
        request_id=request_id,
        param=error.param,
        details=error.details,
    )
    return ShapedError(frames.encode_json(body) + b"\n")


ROUTES = (
    Route("GET", f"{PREFIX}/info", info, "AG-UI"),
    Route(
        "POST",
        f"{PREFIX}/{{agent}}",
        run,
        "AG-UI",
        scope=Scope.CHAT,
        body_has_files=True,
        stores="nothing",
        begins_turn=True,
    ),
    Route(
        "POST",
        f"{PREFIX}/agent/{{agent}}/run",
        run,
        "AG-UI",
        scope=Scope.CHAT,
        body_has_files=True,
        stores="nothing",
        begins_turn=True,
    ),
    Route(
        "POST",
        f"{PREFIX}/agent/{{agent}}/connect",
        connect,
        "AG-UI",
        scope=Scope.READ,
        body_has_files=True,
        stores="nothing",
    ),
    Route(
        "POST",
        f"{PREFIX}/agent/{{agent}}/stop/{{thread_id}}",
        stop,
        "AG-UI",
        scope=Scope.CHAT,
        stores="nothing",
    ),
)
