"""The requests of signed-in clients, one handler each.

In AgentX's terms a container is one of our agents, an image is a conversation, and an agent is the running
side of a conversation.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import (
    AgentNotFound,
    ConversationNotFound,
    InvalidRequest,
    ThreadkeepError,
)
from threadkeep.domain.ids import AgentId
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.user import User
from threadkeep.ports.conversations import ConversationFilter
from threadkeep.ports.messages import MessageWindow
from threadkeep.protocols.agentx.decode import (
    Container,
    Image,
    ImageCreate,
    ImageList,
    ImageOrAgent,
    ImageUpdate,
    MessageSend,
    NoData,
    Request,
    RunningAgent,
    files_of,
    text_of,
)
from threadkeep.protocols.agentx.files import HistoryFiles, take_in
from threadkeep.protocols.agentx.messages import Shown, history
from threadkeep.protocols.agentx.records import agent_id_of, image_record, is_online
from threadkeep.protocols.agentx.started import StartedAgents, StartedByUser
from threadkeep.services.sending import NewMessage
from threadkeep.services.services import Services
from threadkeep.wire.decoding import invalid_request

log = logging.getLogger("threadkeep.ws")

DEFAULT_CONTAINER = "default"

# AgentX has no paging, so lists are cut: they contain the newest.
MOST_LISTED = 2_000
MOST_HISTORY_MESSAGES = 2_000
MOST_HISTORY_BYTES = 16 * 1024 * 1024
ROWS_AT_ONCE = 100

Data = dict[str, Any]


async def answer(
    services: Services,
    sign_in: Callable[[], Awaitable[User]],
    request: Request,
    started_by: StartedByUser,
) -> Data:
    """The answer to a request, an error included. Checks the user each time, because tokens expire."""
    try:
        user = await sign_in()
        if request.refusal is not None:
            raise request.refusal
        kind, handle = _find(request.name)
        body = _body(request, kind)
        data = await handle(services, user, body)
        started = started_by.of(user.id)
        started.note(request.name, data)
        return await _with_started(services, user, request.name, body, data, started)
    except ThreadkeepError as exc:
        return _error(exc)
    except Exception:
        log.exception("%s_request failed", request.name)
        return _error(internal_error())


async def _with_started(
    services: Services, user: User, name: str, body: Struct, data: Data, started: StartedAgents
) -> Data:
    """Started agents exist like those with a running turn; none is left if all are destroyed."""
    if name == "agent_get":
        exists = data["exists"] or data.get("agentId", "") in started
        return data | {"exists": True} if exists else {"exists": False}
    if name not in {"agent_list", "agent_destroy_all"} or not isinstance(body, Container):
        return data
    container_id = await _listed_container(services, body.container_id)
    found = await started.of(services.conversations, user, container_id)
    if name == "agent_destroy_all":
        started.end(found)
        return data
    listed = {it["agentId"] for it in data["agents"]}
    more = [_named(it) | {"containerId": it.agent_id} for it in found if it.id not in listed]
    return {"agents": [*data["agents"], *more]}


def internal_error() -> ThreadkeepError:
    """The error that clients get when our own code fails."""
    return ThreadkeepError("Something went wrong on our side. The error has been logged.")


def _error(error: ThreadkeepError) -> Data:
    return {"error": error.message, "errorCode": error.code}


def _find(name: str) -> "tuple[type[Struct], Handler]":
    if name not in REQUESTS:
        raise InvalidRequest(f"Unknown request `{name}_request`.", param="type")
    return REQUESTS[name]


def _body(request: Request, kind: type[Struct]) -> Struct:
    try:
        return msgspec.convert(request.data, kind)
    except msgspec.ValidationError as exc:
        raise invalid_request(exc, kind) from None


# Containers


async def _create_container(services: Services, user: User, body: Container) -> Data:
    return {"containerId": await _container(services, user, body.container_id)}


async def _get_container(services: Services, user: User, body: Container) -> Data:
    try:
        return {"containerId": await _container(services, user, body.container_id), "exists": True}
    except AgentNotFound:
        return {"exists": False}


async def _list_containers(services: Services, user: User, body: NoData) -> Data:
    found: list[str] = []
    while len(found) < MOST_LISTED:
        after = found[-1] if found else None
        page = await services.agents.page(user, after=after, offset=0, limit=ROWS_AT_ONCE)
        found += (agent.id for agent in page)
        if len(page) < ROWS_AT_ONCE:
            break
    return {"containerIds": found}


# Images


async def _create_image(services: Services, user: User, body: ImageCreate) -> Data:
    container_id = await _container(services, user, body.container_id)
    title = body.config.name if body.config else None
    conversation, _ = await services.conversations.create(user, container_id, title=title, metadata=None)
    return _with_subscription(conversation)


async def _get_image(services: Services, user: User, body: Image) -> Data:
    try:
        return _with_subscription(await services.conversations.get(user, body.image_id))
    except ConversationNotFound:
        return {"record": None, "__subscriptions": []}


async def _list_images(services: Services, user: User, body: ImageList) -> Data:
    found = await _conversations(services, user, body.container_id)
    records = [image_record(conversation) for conversation in found]
    return {"records": records, "__subscriptions": [record["sessionId"] for record in records]}


async def _update_image(services: Services, user: User, body: ImageUpdate) -> Data:
    name = body.updates.name

    def rename(conversation: Conversation) -> Conversation:
        return conversation if name is None else conversation.rename(name)

    return {"record": image_record(await services.conversations.update(user, body.image_id, rename))}


async def _delete_image(services: Services, user: User, body: Image) -> Data:
    await services.conversations.delete(user, body.image_id, purge=False)
    return {"imageId": body.image_id}


async def _list_messages(services: Services, user: User, body: Image) -> Data:
    """The messages of the active path, as many of the newest as fit into one answer."""
    found: list[Shown] = []
    files = HistoryFiles(services.files)
    window, count, size = MessageWindow(newest_first=True), 0, 0
    while count < MOST_HISTORY_MESSAGES:
        page = await services.conversations.messages(
            user, body.image_id, window, offset=0, limit=ROWS_AT_ONCE
        )
        for message in page.messages:
            shown = history(message, await files.parts(message))
            size += sum(len(msgspec.json.encode(it)) for it in shown)
            if size > MOST_HISTORY_BYTES:
                return _messages(body, found)
            found += reversed(shown)
        count += len(page.messages)
        if len(page.messages) < ROWS_AT_ONCE:
            break
        window = MessageWindow(before_seq=page.messages[-1].seq, newest_first=True)
    return _messages(body, found)


def _messages(body: Image, newest_first: list[Shown]) -> Data:
    return {"imageId": body.image_id, "messages": newest_first[::-1]}


async def _run_image(services: Services, user: User, body: Image) -> Data:
    """Starts nothing: a conversation answers whenever it gets a message."""
    conversation = await services.conversations.get(user, body.image_id)
    return _named(conversation) | {"reused": is_online(conversation)}


async def _stop_image(services: Services, user: User, body: Image) -> Data:
    await services.turns.abort(user, body.image_id)
    return {"imageId": body.image_id}


# Agents


async def _get_agent(services: Services, user: User, body: RunningAgent) -> Data:
    try:
        conversation = await services.conversations.get(user, body.agent_id)
    except ConversationNotFound:
        return {"exists": False}
    return {
        "agentId": agent_id_of(conversation),
        "containerId": conversation.agent_id,
        "exists": is_online(conversation),
    }


async def _list_agents(services: Services, user: User, body: Container) -> Data:
    found = await _conversations(services, user, body.container_id)
    return {
        "agents": [_named(it) | {"containerId": it.agent_id} for it in found if is_online(it)],
    }


async def _destroy_agent(services: Services, user: User, body: RunningAgent) -> Data:
    await services.turns.abort(user, body.agent_id)
    return {"agentId": body.agent_id, "success": True}


async def _destroy_all_agents(services: Services, user: User, body: Container) -> Data:
    found = await _conversations(services, user, body.container_id)

    async def abort(conversation: Conversation) -> None:
        with suppress(ConversationNotFound):  # deleted meanwhile
            await services.turns.abort(user, conversation.id)

    await asyncio.gather(*(abort(it) for it in found if is_online(it)))
    return {"containerId": body.container_id}


async def _interrupt_agent(services: Services, user: User, body: ImageOrAgent) -> Data:
    conversation = await services.conversations.get(user, _conversation_id(body))
    await services.turns.abort(user, conversation.id)
    return _named(conversation)


async def _send_message(services: Services, user: User, body: MessageSend) -> Data:
    conversation_id, files = _conversation_id(body), ()
    if attached := files_of(body.content):
        conversation = await services.conversations.get(user, conversation_id)
        files = await take_in(services.files, user, attached)
    sent = await services.sending.send(user, conversation_id, NewMessage(text_of(body.content), files))
    if isinstance(sent, QueuedMessage):  # messages were held: the first of them is being answered
        conversation = await services.conversations.get(user, sent.conversation_id)
        return _named(conversation) | {"turnId": conversation.active_turn_id, "queued": True}
    turn, conversation = sent
    return _named(conversation) | {"turnId": turn.id}


# Shared


async def _container(services: Services, user: User, container_id: str) -> AgentId:
    """The agent that a client means; raises not found if the user may not see it."""
    if container_id == DEFAULT_CONTAINER:
        return (await services.agents.default()).id
    return (await services.agents.get(user, container_id)).id


async def _conversations(services: Services, user: User, container_id: str | None) -> list[Conversation]:
    """The user's conversations, newest activity first: all, or those with an agent, even a deleted one."""
    which = ConversationFilter(await _listed_container(services, container_id))
    found: list[Conversation] = []
    while len(found) < MOST_LISTED:
        after = (found[-1].updated_at, found[-1].id) if found else None
        page = await services.conversations.page(user, which, after=after, offset=0, limit=ROWS_AT_ONCE)
        found += page
        if len(page) < ROWS_AT_ONCE:
            break
    return found


async def _listed_container(services: Services, container_id: str | None) -> AgentId | None:
    """The agent whose conversations are listed, which may be deleted; None for all."""
    if container_id == DEFAULT_CONTAINER:
        return (await services.agents.default()).id
    return None if container_id is None else AgentId(container_id.lower())


def _conversation_id(body: ImageOrAgent) -> str:
    if (given := body.image_id or body.agent_id) is None:
        raise InvalidRequest("Name the conversation with `imageId`.", param="imageId")
    return given


def _with_subscription(conversation: Conversation) -> Data:
    record = image_record(conversation)
    return {"record": record, "__subscriptions": [record["sessionId"]]}


def _named(conversation: Conversation) -> Data:
    return {"imageId": conversation.id, "agentId": agent_id_of(conversation)}


Handler = Callable[[Services, User, Any], Awaitable[Data]]
REQUESTS: Mapping[str, tuple[type[Struct], Handler]] = {
    "container_create": (Container, _create_container),
    "container_get": (Container, _get_container),
    "container_list": (NoData, _list_containers),
    "image_create": (ImageCreate, _create_image),
    "image_get": (Image, _get_image),
    "image_list": (ImageList, _list_images),
    "image_update": (ImageUpdate, _update_image),
    "image_delete": (Image, _delete_image),
    "image_messages": (Image, _list_messages),
    "image_run": (Image, _run_image),
    "image_stop": (Image, _stop_image),
    "agent_get": (RunningAgent, _get_agent),
    "agent_list": (Container, _list_agents),
    "agent_destroy": (RunningAgent, _destroy_agent),
    "agent_destroy_all": (Container, _destroy_all_agents),
    "agent_interrupt": (ImageOrAgent, _interrupt_agent),
    "message_send": (MessageSend, _send_message),
}
