"""Replies that store nothing: what chat completions and responses with `store: false` share."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from threadkeep.domain.agent import Agent
from threadkeep.domain.errors import ShuttingDown
from threadkeep.domain.events import TurnEvent
from threadkeep.domain.turn import BegunWith
from threadkeep.handling.leaving import unless_client_leaves
from threadkeep.handling.routing import RequestContext
from threadkeep.handling.stream import EventStream
from threadkeep.protocols.files import ReceivedFile, load
from threadkeep.protocols.openai.completions_encode import CompletionEncoder
from threadkeep.protocols.openai.encode import ResponseEncoder
from threadkeep.protocols.openai.models import asked_of
from threadkeep.services.client_tools import check_accepted
from threadkeep.services.completions.completion import Completion
from threadkeep.services.completions.given import GivenMessage
from threadkeep.services.files import MOST_FILES_OF_A_MESSAGE, LoadedFile

FilesByPlace = Mapping[int, Sequence[LoadedFile]]
"""Files by the numbers of the messages or items that have them."""


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A file, and the number of its message or item."""

    at: int
    file: ReceivedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class StatelessRequest:
    """What either API asks for."""

    model: str | None
    """An agent, perhaps with a model of it; by default the user's own agent."""
    files: Sequence[PlacedFile]
    """All files of the history. A client sends them each time; of too many, the model sees the newest."""
    history: Callable[[FilesByPlace], Sequence[GivenMessage]]
    field: str
    """The field of the request that has them, for its errors."""
    begun_with: BegunWith
    """Instructions, tools, temperature and the most tokens."""


async def begin(request: RequestContext, asked: StatelessRequest) -> tuple[Completion, Agent]:
    """Begins the reply; it ends when its client leaves."""
    agent, model = await _agent_asked(request, asked.model)
    await check_accepted(agent, asked.begun_with.tools)  # before the files are loaded
    files = await load_placed(request, asked.files[-MOST_FILES_OF_A_MESSAGE:], asked.field)
    history = await asyncio.to_thread(asked.history, files)  # it may be long
    begin = request.services.completions.begin
    return await begin(request.user, agent, history, asked.begun_with, model=model), agent


def stream(completion: Completion, encoder: CompletionEncoder | ResponseEncoder) -> EventStream:
    """The reply while it is made."""
    return EventStream(completion, _OfEvents(encoder), {}, ends_when_paused=True)


async def read_whole(
    request: RequestContext, completion: Completion, add: Callable[[Iterable[TurnEvent]], None]
) -> None:
    """Hands over every event of the reply as it comes."""

    async def read() -> None:
        async with completion:
            async for events in completion:
                add(events)

    await unless_client_leaves(request.http, read())
    if not completion.has_ended and not completion.is_paused:
        raise ShuttingDown("This process is shutting down. Try again in a moment.")


def arguments_of(text: str) -> Mapping[str, Any]:
    """The arguments of a call; what a model wrote that isn't an object stays readable."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.MsgspecError:
        return {"arguments": text}


async def _agent_asked(request: RequestContext, model: str | None) -> tuple[Agent, str | None]:
    if model is None:
        return await request.services.agents.default_of(request.user), None
    return await asked_of(request, model)


async def load_placed(request: RequestContext, placed: Sequence[PlacedFile], field: str) -> FilesByPlace:
    """The files of a history, by the numbers of their messages."""
    loaded = await load(request.services.files, request.user, [it.file for it in placed], param=field)
    files: defaultdict[int, list[LoadedFile]] = defaultdict(list)
    for it, file in zip(placed, loaded, strict=True):
        files[it.at].append(file)
    return files


class _OfEvents:
    """The frames of events that no log has."""

    def __init__(self, encoder: CompletionEncoder | ResponseEncoder) -> None:
        self.encode_chunk = encoder.encode
        self.end = encoder.end
