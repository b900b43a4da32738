"""`/api/runs/v1/chat/completions`: the server's models for a program's own SDK, while the program runs."""

import asyncio

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.key import Scope
from threadkeep.domain.turn import BegunWith, HeldRun
from threadkeep.handling.leaving import unless_client_leaves
from threadkeep.handling.routing import RequestContext, Route
from threadkeep.handling.stream import EventStream
from threadkeep.program_log import add_to_subject
from threadkeep.protocols.openai import stateless
from threadkeep.protocols.openai.completions import encoder
from threadkeep.protocols.openai.completions_decode import (
    CreateCompletion,
    check_completion,
    files_of,
    history_of,
    output_schema,
    tool_chosen,
)
from threadkeep.protocols.openai.completions_encode import ChatCompletion, CompletionHead, WholeCompletion
from threadkeep.services.completions.completion import Completion
from threadkeep.services.completions.run_replies import OWN_MODEL, RunRequest
from threadkeep.services.files import MOST_FILES_OF_A_MESSAGE

PREFIX = "/api/runs/v1"


async def create_run_completion(
    request: RequestContext, *, body: CreateCompletion
) -> EventStream | ChatCompletion:
    """Ask a model of the server for a program's SDK, with the token of the program's run.

    `model` is one that the agent offers, or `default` for the one of the turn.
    """
    run: HeldRun = request.http.state.run
    add_to_subject(conversation_id=run.turn.conversation_id, turn_id=run.turn.id)
    await asyncio.to_thread(check_completion, body)  # it may be long
    completion = await request.services.run_replies.begin(run, await _asked(request, body))
    head = CompletionHead.of(completion.turn, body.model or OWN_MODEL)
    if body.stream:
        await unless_client_leaves(request.http, _begun(completion))
        return stateless.stream(completion, encoder(head, body))
    whole = WholeCompletion(head)
    await stateless.read_whole(request, completion, whole.add)
    return whole.completion()


async def _asked(request: RequestContext, body: CreateCompletion) -> RunRequest:
    placed = files_of(body)
    if any(it.file.file_id for it in placed):
        raise InvalidRequest("A run can't read files by their ids: send their content.", param="messages")
    files = await stateless.load_placed(request, placed[-MOST_FILES_OF_A_MESSAGE:], "messages")
    return RunRequest(
        model=body.model,
        history=await request.aside(lambda it: history_of(it.messages, files), body),
        begun_with=BegunWith(
            instructions=body.instructions,
            tools=body.client_tools,
            temperature=body.temperature,
            max_tokens=body.most_tokens,
        ),
        asks_again=not body.stream,
        output=output_schema(body),
        tool_choice=tool_chosen(body),
    )


async def _begun(completion: Completion) -> None:
    """Returns when there is something to stream: until then an error has a status of its own."""
    try:
        await completion.begun()
    except BaseException:
        await completion.cancel()
        raise


ROUTES = (
    Route(
        "POST",
        f"{PREFIX}/chat/completions",
        create_run_completion,
        "OpenAI",
        scope=Scope.CHAT,
        of_run=True,
        body_has_files=True,
        stores="nothing",
    ),
)
