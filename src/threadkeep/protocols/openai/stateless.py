"""Replies of which nothing is stored: what chat completions and responses with `store: false` share."""

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
from threadkeep.protocols.files import SentFile, load
from threadkeep.protocols.openai.completions_encode import CompletionEncoder
from threadkeep.protocols.openai.encode import ResponseEncoder
from threadkeep.protocols.openai.models import asked_of
from threadkeep.requests.leaving import unless_client_leaves
from threadkeep.requests.routing import Call
from threadkeep.requests.stream import EventStream
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
    file: SentFile


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


async def begin(call: Call, asked: StatelessRequest) -> tuple[Completion, Agent]:
    """Begins the reply; it ends when its client leaves."""
    agent, model = await _agent_asked(call, asked.model)
    await check_accepted(agent, asked.begun_with.tools)  # before the files are loaded
    files = await _load(call, asked.files[-MOST_FILES_OF_A_MESSAGE:], asked.field)
    history = await asyncio.to_thread(asked.history, files)  # it may be long
    begin = call.services.completions.begin
    return await begin(call.user, agent, history, asked.begun_with, model=model), agent


def stream(completion: Completion, encoder: CompletionEncoder | ResponseEncoder) -> EventStream:
    """The reply while it is made."""
    return EventStream(completion, _OfEvents(encoder), {}, ends_when_paused=True)


async def read_whole(call: Call, completion: Completion, add: Callable[[Iterable[TurnEvent]], None]) -> None:
    """Hands over every event of the reply as it comes."""

    async def read() -> None:
        async with completion:
            async for events in completion:
                add(events)

    await unless_client_leaves(call.request, read())
    if not completion.has_ended and not completion.is_paused:
        raise ShuttingDown("This process is shutting down. Try again in a moment.")


def arguments_of(text: str) -> Mapping[str, Any]:
    """The arguments of a call; what a model wrote that isn't an object stays readable."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.MsgspecError:
        return {"arguments": text}


async def _agent_asked(call: Call, model: str | None) -> tuple[Agent, str | None]:
    if model is None:
        return await call.services.agents.default_of(call.user), None
    return await asked_of(call, model)


async def _load(call: Call, placed: Sequence[PlacedFile], field: str) -> FilesByPlace:
    loaded = await load(call.services.files, call.user, [it.file for it in placed], param=field)
    files: defaultdict[int, list[LoadedFile]] = defaultdict(list)
    for it, file in zip(placed, loaded, strict=True):
        files[it.at].append(file)
    return files


class _OfEvents:
    """The frames of events that no log has."""

    def __init__(self, encoder: CompletionEncoder | ResponseEncoder) -> None:
        self.encode_chunk = encoder.encode
        self.end = encoder.end
