"""The requests of signed-in clients, one handler each: calls services, returns the response's frame."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from threadkeep.domain.conversation import Conversation, ConversationFilter
from threadkeep.domain.errors import (
    UNEXPECTED,
    AgentNotFound,
    ConversationNotFound,
    InvalidRequest,
    ThreadkeepError,
)
from threadkeep.domain.ids import AgentId
from threadkeep.domain.key import Scope
from threadkeep.domain.message import MessageWindow
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.user import User
from threadkeep.handling.services import Services
from threadkeep.protocols.agentx import frames
from threadkeep.protocols.agentx.decode import (
    Container,
    Image,
    ImageCreate,
    ImageOrAgent,
    ImagesOf,
    ImageUpdate,
    MessageSend,
    NoData,
    Request,
    RunningAgent,
    files_of,
    text_of,
)
from threadkeep.protocols.agentx.files import file_parts, sent_file
from threadkeep.protocols.agentx.frames import Response
from threadkeep.protocols.agentx.history import agent_id_of, history, image_record, is_online
from threadkeep.protocols.agentx.started_agents import StartedAgents, StartedByUser
from threadkeep.protocols.files import HistoryFiles, take_in
from threadkeep.services.reach import check_reach
from threadkeep.services.sending import NewMessage
from threadkeep.wire.decoding import invalid_request

log = logging.getLogger("threadkeep.ws")

DEFAULT_CONTAINER = "default"

# AgentX has no paging, so lists are cut: they contain the newest.
MOST_LISTED = 2_000
MOST_HISTORY_MESSAGES = 2_000
MOST_HISTORY_BYTES = 16 * 1024 * 1024
ROWS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request, and what its handler may use."""

    user: User
    services: Services
    started: StartedAgents


async def respond(
    services: Services,
    sign_in: Callable[[], Awaitable[User]],
    request: Request,
    started_by: StartedByUser,
) -> Response:
    """The response to a request, an error included. Checks the user each time, because tokens expire."""
    response = await _respond(services, sign_in, request, started_by)
    return msgspec.structs.replace(response, request_id=request.request_id)


async def _respond(
    services: Services,
    sign_in: Callable[[], Awaitable[User]],
    request: Request,
    started_by: StartedByUser,
) -> Response:
    try:
        user = await sign_in()
        if request.refusal is not None:
            raise request.refusal
        kind, scope, handle = _find(request.name)
        if user.key is not None:
            user.key.check_scope(scope)
        body = _body(request, kind)
        await check_reach(services.store, user, _ids_in(body))
        return await handle(Caller(user, services, started_by.of(user.id)), body)
    except ThreadkeepError as exc:
        return _error(exc)
    except Exception:
        log.exception("%s_request failed", request.name)
        return _error(internal_error())


def internal_error() -> ThreadkeepError:
    """The error that clients get when our own code fails."""
    return ThreadkeepError(UNEXPECTED)


def _error(error: ThreadkeepError) -> frames.ErrorResponse:
    return frames.ErrorResponse(error=error.message, error_code=error.code)


def _find(name: str) -> "tuple[type[Struct], Scope, Handler]":
    if name not in REQUESTS:
        raise InvalidRequest(f"Unknown request `{name}_request`.", param="type")
    return REQUESTS[name]


def _ids_in(body: Struct) -> dict[str, str]:
    """The ids that a request names, as our routes call them: images and running agents are conversations."""
    image_id = getattr(body, "image_id", None) or getattr(body, "agent_id", None)
    container_id = getattr(body, "container_id", None)
    ids = {
        "conversation_id": image_id,
        "agent_id": None if container_id == DEFAULT_CONTAINER else container_id,
    }
    return {name: id_ for name, id_ in ids.items() if id_}


def _body(request: Request, kind: type[Struct]) -> Struct:
    try:
        return msgspec.convert(request.data, kind)
    except msgspec.ValidationError as exc:
        raise invalid_request(exc, kind) from None


# Containers


async def _create_container(caller: Caller, body: Container) -> Response:
    return frames.OneContainer(container_id=await _container(caller, body.container_id))


async def _get_container(caller: Caller, body: Container) -> Response:
    try:
        container_id = await _container(caller, body.container_id)
    except AgentNotFound:
        return frames.ContainerStatus(exists=False)
    return frames.ContainerStatus(container_id=container_id, exists=True)


async def _list_containers(caller: Caller, body: NoData) -> Response:
    found: list[str] = []
    while len(found) < MOST_LISTED:
        after = found[-1] if found else None
        page = await caller.services.agents.page(caller.user, after=after, offset=0, limit=ROWS_AT_ONCE)
        found += (agent.id for agent in page)
        if len(page) < ROWS_AT_ONCE:
            break
    return frames.ContainerList(container_ids=found)


# Images


async def _create_image(caller: Caller, body: ImageCreate) -> Response:
    container_id = await _container(caller, body.container_id)
    title = body.config.name if body.config else None
    await caller.services.creations.take(caller.user)
    await caller.services.creations.check_room(caller.user.id, len(title or ""))
    conversation, _ = await caller.services.conversations.create(
        caller.user, container_id, title=title, metadata=None
    )
    return _found(conversation)


async def _get_image(caller: Caller, body: Image) -> Response:
    try:
        return _found(await caller.services.conversations.get(caller.user, body.image_id))
    except ConversationNotFound:
        return frames.ImageFound(record=None, subscriptions=())


def _found(conversation: Conversation) -> Response:
    record = image_record(conversation)
    return frames.ImageFound(record=record, subscriptions=(record.session_id,))


async def _list_images(caller: Caller, body: ImagesOf) -> Response:
    records = [image_record(it) for it in await _conversations(caller, body.container_id)]
    return frames.ImageList(records=records, subscriptions=[it.session_id for it in records])


async def _update_image(caller: Caller, body: ImageUpdate) -> Response:
    name = body.updates.name

    def rename(conversation: Conversation) -> Conversation:
        return conversation if name is None else conversation.rename(name)

    conversation = await caller.services.conversations.update(caller.user, body.image_id, rename)
    return frames.ImageUpdated(record=image_record(conversation))


async def _delete_image(caller: Caller, body: Image) -> Response:
    await caller.services.conversations.delete(caller.user, body.image_id, purge=False)
    caller.started.remove(body.image_id)
    return frames.OneImage(image_id=body.image_id)


async def _list_messages(caller: Caller, body: Image) -> Response:
    """The messages of the active path, as many of the newest as fit into one response."""
    newest_first: list[frames.Message] = []
    files = HistoryFiles(caller.services.files)
    window, count, size = MessageWindow(newest_first=True), 0, 0
    while count < MOST_HISTORY_MESSAGES:
        page = await caller.services.conversations.messages(
            caller.user, body.image_id, window, offset=0, limit=ROWS_AT_ONCE
        )
        for message in page.messages:
            shown = history(message, await file_parts(files, message))
            size += sum(len(frames.encode_json(it)) for it in shown)
            if size > MOST_HISTORY_BYTES:
                return _messages(body, newest_first)
            newest_first += reversed(shown)
        count += len(page.messages)
        if len(page.messages) < ROWS_AT_ONCE and not page.is_cut:
            break
        window = MessageWindow(before_seq=page.messages[-1].seq, newest_first=True)
    return _messages(body, newest_first)


def _messages(body: Image, newest_first: list[frames.Message]) -> Response:
    return frames.ImageMessages(image_id=body.image_id, messages=newest_first[::-1])


async def _run_image(caller: Caller, body: Image) -> Response:
    """Starts nothing: a conversation answers whenever it gets a message."""
    conversation = await caller.services.conversations.get(caller.user, body.image_id)
    caller.started.add(conversation.id)
    return frames.ImageRunning(
        image_id=conversation.id, agent_id=agent_id_of(conversation), reused=is_online(conversation)
    )


async def _stop_image(caller: Caller, body: Image) -> Response:
    await caller.services.turns.abort(caller.user, body.image_id)
    caller.started.remove(body.image_id)
    return frames.OneImage(image_id=body.image_id)


# Agents


async def _get_agent(caller: Caller, body: RunningAgent) -> Response:
    try:
        conversation = await caller.services.conversations.get(caller.user, body.agent_id)
    except ConversationNotFound:
        return frames.AgentStatus(exists=False)
    if not is_online(conversation) and conversation.id not in caller.started:
        return frames.AgentStatus(exists=False)
    return frames.AgentStatus(
        agent_id=agent_id_of(conversation), container_id=conversation.agent_id, exists=True
    )


async def _list_agents(caller: Caller, body: Container) -> Response:
    online = await _online(caller, body.container_id)
    listed = {it.id for it in online}
    started = [it for it in await _started(caller, body.container_id) if it.id not in listed]
    return frames.AgentList(agents=[_listed(it) for it in (*online, *started)])


def _listed(conversation: Conversation) -> frames.ListedAgent:
    return frames.ListedAgent(
        image_id=conversation.id, agent_id=agent_id_of(conversation), container_id=conversation.agent_id
    )


async def _destroy_agent(caller: Caller, body: RunningAgent) -> Response:
    await caller.services.turns.abort(caller.user, body.agent_id)
    caller.started.remove(body.agent_id)
    return frames.AgentDestroyed(agent_id=body.agent_id)


async def _destroy_all_agents(caller: Caller, body: Container) -> Response:
    async def abort(conversation: Conversation) -> None:
        with suppress(ConversationNotFound):  # deleted meanwhile
            await caller.services.turns.abort(caller.user, conversation.id)

    await asyncio.gather(*map(abort, await _online(caller, body.container_id)))
    for conversation in await _started(caller, body.container_id):
        caller.started.remove(conversation.id)
    return frames.OneContainer(container_id=body.container_id)


async def _interrupt_agent(caller: Caller, body: ImageOrAgent) -> Response:
    conversation = await caller.services.conversations.get(caller.user, _conversation_id(body))
    await caller.services.turns.abort(caller.user, conversation.id)
    return frames.AgentInterrupted(image_id=conversation.id, agent_id=agent_id_of(conversation))


async def _send_message(caller: Caller, body: MessageSend) -> Response:
    services, user = caller.services, caller.user
    conversation_id, files = _conversation_id(body), ()
    if attached := files_of(body.content):
        await services.conversations.get(user, conversation_id)  # nothing is stored for an unknown one
        files = await take_in(services.files, user, list(map(sent_file, attached)), param="content")
    sent = await services.sending.send(user, conversation_id, NewMessage(text_of(body.content), files))
    if isinstance(sent, QueuedMessage):  # messages were held: the first of them is getting its reply
        conversation = await services.conversations.get(user, sent.conversation_id)
        turn_id, queued = conversation.active_turn_id, True
    else:
        turn, conversation = sent
        turn_id, queued = turn.id, UNSET
    caller.started.add(conversation.id)
    return frames.MessageSent(
        image_id=conversation.id, agent_id=agent_id_of(conversation), turn_id=turn_id, queued=queued
    )


# Shared


async def _container(caller: Caller, container_id: str) -> AgentId:
    """The agent that a client means; raises not found if the user may not see it."""
    agents = caller.services.agents
    if container_id == DEFAULT_CONTAINER:
        return (await agents.default_of(caller.user)).id
    return (await agents.get(caller.user, container_id)).id


async def _conversations(caller: Caller, container_id: str | None) -> list[Conversation]:
    """The user's conversations, newest activity first: all, or those with an agent, even a deleted one."""
    which = ConversationFilter(await _listed_container(caller, container_id))
    found: list[Conversation] = []
    while len(found) < MOST_LISTED:
        after = (found[-1].updated_at, found[-1].id) if found else None
        page = await caller.services.conversations.page(
            caller.user, which, after=after, offset=0, limit=ROWS_AT_ONCE
        )
        found += page
        if len(page) < ROWS_AT_ONCE:
            break
    return found


async def _online(caller: Caller, container_id: str) -> list[Conversation]:
    """An agent's conversations in which a turn runs."""
    return [it for it in await _conversations(caller, container_id) if is_online(it)]


async def _started(caller: Caller, container_id: str) -> list[Conversation]:
    """An agent's conversations that the user has started over AgentX."""
    agent_id = await _listed_container(caller, container_id)
    return await caller.started.of(caller.services.conversations, caller.user, agent_id)


async def _listed_container(caller: Caller, container_id: str | None) -> AgentId | None:
    """The agent whose conversations are listed, which may be deleted; None for all."""
    if container_id == DEFAULT_CONTAINER:
        return (await caller.services.agents.default_of(caller.user)).id
    return None if container_id is None else AgentId(container_id.lower())


def _conversation_id(body: ImageOrAgent) -> str:
    if (given := body.image_id or body.agent_id) is None:
        raise InvalidRequest("Name the conversation with `imageId`.", param="imageId")
    return given


Handler = Callable[[Caller, Any], Awaitable[Response]]
REQUESTS: Mapping[str, tuple[type[Struct], Scope, Handler]] = {
    "container_create": (Container, Scope.CHAT, _create_container),
    "container_get": (Container, Scope.READ, _get_container),
    "container_list": (NoData, Scope.READ, _list_containers),
    "image_create": (ImageCreate, Scope.CHAT, _create_image),
    "image_get": (Image, Scope.READ, _get_image),
    "image_list": (ImagesOf, Scope.READ, _list_images),
    "image_update": (ImageUpdate, Scope.CHAT, _update_image),
    "image_delete": (Image, Scope.CHAT, _delete_image),
    "image_messages": (Image, Scope.READ, _list_messages),
    "image_run": (Image, Scope.CHAT, _run_image),
    "image_stop": (Image, Scope.CHAT, _stop_image),
    "agent_get": (RunningAgent, Scope.READ, _get_agent),
    "agent_list": (Container, Scope.READ, _list_agents),
    "agent_destroy": (RunningAgent, Scope.CHAT, _destroy_agent),
    "agent_destroy_all": (Container, Scope.CHAT, _destroy_all_agents),
    "agent_interrupt": (ImageOrAgent, Scope.CHAT, _interrupt_agent),
    "message_send": (MessageSend, Scope.CHAT, _send_message),
}
