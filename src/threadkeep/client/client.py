"""Threadkeep's API for Python: `async with Client(url) as client: async for event in client.send(…)`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self
from urllib.parse import quote

from msgspec import UNSET, UnsetType

from threadkeep.client.connection import ApiConnection, user_header, without_none
from threadkeep.client.errors import MessageQueued, TurnWaiting
from threadkeep.client.files import GivenFile, MessageFiles
from threadkeep.client.in_process import AsgiApplication, InProcessTransport
from threadkeep.client.sending import Sending, SentFile
from threadkeep.domain.document import DocumentStatus
from threadkeep.domain.events import ApprovalRequest, TurnEvent
from threadkeep.domain.ids import new_uuid
from threadkeep.wire.approvals import ApprovalsView, ApprovalView
from threadkeep.wire.documents import DocumentsView, DocumentView, HitsView
from threadkeep.wire.executions import RunsView
from threadkeep.wire.feedback import FeedbackView
from threadkeep.wire.files import UploadedFileView
from threadkeep.wire.gateways import GatewaysView, GatewayTestView, GatewayView
from threadkeep.wire.keys import KeyView, NewKeyView
from threadkeep.wire.mcp_servers import McpServerView
from threadkeep.wire.messages import MessageView
from threadkeep.wire.models import ModelsView, ModelView
from threadkeep.wire.queue import QueuedMessageView, QueuedView, SteeredView
from threadkeep.wire.rated_answers import RatedAnswerView
from threadkeep.wire.reruns import RerunView
from threadkeep.wire.steps import StepView
from threadkeep.wire.turns import AbortView, ReceiptView, StartedTurnView, TurnView, UsageReportView
from threadkeep.wire.view import View
from threadkeep.wire.views import (
    AgentDetailView,
    AgentPreviewView,
    AgentView,
    ContextView,
    ConversationDetailView,
    ConversationView,
    MeView,
)

USUAL_URL = "http://127.0.0.1:8710"
HEALTH_S = 1.0
LOOK_EVERY_S = 0.2

Json = Mapping[str, Any]
Status = Literal["active", "archived", "deleted"]
Visibility = Literal["private", "public"]
MessageRef = str | UnsetType | None
"""A message's id; None for the position before the first message."""
WhenBusy = Literal["reject", "queue", "steer", "stop"]
"""What to do with a message while the agent answers."""
OnDisconnect = Literal["continue", "stop"]
"""What happens to a turn that nobody follows any more."""
AnswerAction = Literal["allow", "deny", "edit", "answer", "result"]
"""For a tool: `allow`, `deny` or `edit`; for a question: `answer` or `deny`; for a tool of yours: `result` or
`deny`.
"""
Rating = Literal["up", "down"]
"""A good or a bad answer."""
AnswerScope = Literal["once", "conversation"]
"""Whether the approval covers this call, or every call of this tool in the conversation."""
KeyScope = Literal["read", "chat", "admin"]
"""What an API key may do; each includes those before it."""
GatewayKind = Literal["anthropic", "openai", "responses", "local"]
"""The API that a model provider speaks."""
ACCEPTED = 202
_AS_JSON = {"Accept": "application/json"}


class _Accepted(View, frozen=True, kw_only=True):
    """The state of an unanswered message: a turn, which may wait, or a place in the queue."""

    turn_id: str = ""
    user_message_id: str = ""
    assistant_message_id: str = ""
    message_id: str = ""
    queued: bool = False
    steered: bool = False
    approvals: Sequence[ApprovalView] = ()

    def place(self) -> StartedTurnView | QueuedView | SteeredView:
        """Which of them."""
        if self.queued:
            return QueuedView(message_id=self.message_id)
        if self.steered:
            return SteeredView(turn_id=self.turn_id, message_id=self.message_id)
        return StartedTurnView(
            turn_id=self.turn_id,
            user_message_id=self.user_message_id,
            assistant_message_id=self.assistant_message_id,
        )


class Client:
    """A Threadkeep server, and the user to sign in as.

    `token` signs a user in: an access token or an API key. `headers` are sent with every request, for a host
    application with its own sign-in. With `app`, calls go to an application in this process instead of over
    the network.

    If the server rejects a request, calls raise ClientError with its `code`; if it can't be reached,
    NotReached.
    """

    def __init__(
        self,
        url: str = USUAL_URL,
        *,
        token: str | None = None,
        user: str | None = None,
        headers: Mapping[str, str] | None = None,
        app: AsgiApplication | None = None,
    ) -> None:
        sign_in = {"Authorization": f"Bearer {token}"} if token else {}
        sign_in |= {} if user is None else user_header(user)
        self._connection = ApiConnection(
            url, {**(headers or {}), **sign_in}, InProcessTransport(app) if app else None
        )
        self._files = MessageFiles(self._connection)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._connection.close()

    def acting_for(self, user: str) -> "Client":
        """A client for one of an application's users; the token must be an API key that acts for them.

        It shares this client's connections, which only this one closes.
        """
        other = copy(self)
        other._connection = self._connection.acting_for(user)
        other._files = MessageFiles(other._connection)
        return other

    async def is_there(self) -> bool:
        """Whether a Threadkeep server responds."""
        return await self._connection.is_threadkeep(HEALTH_S)

    async def me(self) -> MeView:
        """The signed-in user."""
        return await self._connection.ask(MeView, "GET", "/api/me")

    async def delete_user(self, user_id: str) -> None:
        """Deletes a user with all their data: yourself; for admins anybody, for acting keys their realm's."""
        await self._connection.send("DELETE", f"/api/users/{quote(user_id, safe='')}")

    # Agents

    def agents(self) -> AsyncGenerator[AgentView]:
        """Your own agents and the public ones."""
        return self._connection.pages(AgentView, "/api/agents", {})

    async def agent(self, agent_id: str) -> AgentDetailView:
        """One agent; for its owner and admins, with its MCP servers."""
        return await self._connection.ask(AgentDetailView, "GET", f"/api/agents/{agent_id}")

    async def create_agent(
        self,
        name: str,
        *,
        description: str | None = None,
        primary_role_id: str | None = None,
        system_prompt: str | None = None,
        model: str | None = None,
        visibility: Visibility | None = None,
        settings: Json | None = None,
        engine: Json | None = None,
        applied: bool | None = None,
    ) -> AgentView:
        """Creates an agent; `settings` uses the API's names, such as `contextMessages`.

        `engine` is the server that runs it, if another one does: `{"kind": "ag-ui", "url": …}`.
        `applied` if a file describes it: `applied_version` then tells later changes elsewhere.
        """
        fields = {
            "name": name,
            "description": description,
            "primaryRoleId": primary_role_id,
            "systemPrompt": system_prompt,
            "model": model,
            "visibility": visibility,
            "settings": settings,
            "engine": engine,
            "applied": applied,
        }
        return await self._connection.ask(AgentView, "POST", "/api/agents", json=without_none(fields))

    async def update_agent(
        self, agent_id: str, patch: Json, *, version: int | UnsetType | None = None
    ) -> AgentView:
        """Changes an agent with a JSON merge patch; with `version`, only if nobody has changed it since."""
        headers = {"If-Match": f'"{version}"'} if isinstance(version, int) else {}
        path = f"/api/agents/{agent_id}"
        return await self._connection.ask(AgentView, "PATCH", path, json=patch, headers=headers)

    async def preview_agent(self, fields: Json, *, agent_id: str | None = None) -> AgentPreviewView:
        """What creating an agent, or changing one with a merge patch, would change; stores nothing."""
        path = f"/api/agents/{agent_id}/preview" if agent_id else "/api/agents/preview"
        return await self._connection.ask(AgentPreviewView, "POST", path, json=fields)

    async def duplicate_agent(self, agent_id: str) -> AgentView:
        """Makes a private copy of an agent that you can change, without its documents."""
        return await self._connection.ask(AgentView, "POST", f"/api/agents/{agent_id}/duplicate")

    async def delete_agent(self, agent_id: str) -> None:
        """Deletes an agent; conversations with it stay readable."""
        await self._connection.send("DELETE", f"/api/agents/{agent_id}")

    async def test_mcp_server(self, agent_id: str, name: str) -> McpServerView:
        """Connects to one of an agent's MCP servers and lists its tools; `error` says why it can't."""
        path = f"/api/agents/{agent_id}/mcp-servers/{name}/test"
        return await self._connection.ask(McpServerView, "POST", path)

    # Documents

    def documents(self, agent_id: str) -> AsyncGenerator[DocumentView]:
        """An agent's documents, newest first."""
        return self._connection.pages(DocumentView, f"/api/agents/{agent_id}/documents", {})

    async def add_document(self, agent_id: str, file_name: str, file: BinaryIO | bytes) -> DocumentView:
        """Uploads a file for an agent to search; an already added file returns its document."""
        path = f"/api/agents/{agent_id}/documents"
        sent = {"files": (file_name, file)}
        return (await self._connection.ask(DocumentsView, "POST", path, files=sent)).items[0]

    async def upload(
        self,
        agent_id: str,
        paths: Iterable[str | PathLike[str]],
        *,
        on_progress: Callable[[Sending], None] | None = None,
    ) -> list[DocumentView]:
        """Uploads files from disk one after another, in chunks; reports each chunk to `on_progress`."""
        sent: list[DocumentView] = []
        for path in map(Path, paths):
            with SentFile(path, on_progress) as file:
                sent.append(await self.add_document(agent_id, path.name, file))
        return sent

    async def until_read(
        self,
        agent_id: str,
        document_id: str,
        *,
        on_progress: Callable[[DocumentView], None] | None = None,
    ) -> DocumentView:
        """Waits until a document is ready or has failed; reports its status to `on_progress`."""
        while (found := await self.document(agent_id, document_id)).status is DocumentStatus.PROCESSING:
            if on_progress is not None:
                on_progress(found)
            await asyncio.sleep(LOOK_EVERY_S)
        return found

    async def document(self, agent_id: str, document_id: str) -> DocumentView:
        """A document's status."""
        return await self._connection.ask(
            DocumentView, "GET", f"/api/agents/{agent_id}/documents/{document_id}"
        )

    async def retry_document(self, agent_id: str, document_id: str) -> DocumentView:
        """Processes a failed document again."""
        path = f"/api/agents/{agent_id}/documents/{document_id}/retry"
        return await self._connection.ask(DocumentView, "POST", path)

    async def delete_document(self, agent_id: str, document_id: str) -> None:
        """Deletes a document and removes it from search."""
        await self._connection.send("DELETE", f"/api/agents/{agent_id}/documents/{document_id}")

    async def search_documents(
        self, agent_id: str, query: str, *, top_k: int | None = None, threshold: float | None = None
    ) -> HitsView:
        """Searches an agent's documents, best match first."""
        params = without_none({"q": query, "topK": top_k, "threshold": threshold})
        return await self._connection.ask(HitsView, "GET", f"/api/agents/{agent_id}/search", params=params)

    # Files for messages

    async def upload_file(
        self, file: GivenFile, *, on_progress: Callable[[Sending], None] | None = None
    ) -> UploadedFileView:
        """Uploads a file for one or more messages; streams a path from disk in chunks.

        Accepts a path, `bytes`, or a pair of name and `bytes`. The server deletes files that no message uses
        after a day.
        """
        return await self._files.upload(file, on_progress)

    async def read_file(self, file_id: str, *, preview: bool = False) -> bytes:
        """The content of one of your files; for an image, optionally its small preview."""
        return await self._files.read(file_id, preview=preview)

    async def save_file(self, file_id: str, path: str | PathLike[str], *, preview: bool = False) -> Path:
        """Saves one of your files to disk, in chunks."""
        await self._files.save(file_id, target := Path(path), preview=preview)
        return target

    # Conversations

    def conversations(
        self, *, agent_id: str | None = None, status: Status | None = None, pinned: bool | None = None
    ) -> AsyncGenerator[ConversationView]:
        """Your conversations, latest activity first; with `pinned` only those, or only the others.

        With the status `deleted`, latest deletion first: those you can restore until their `purge_at`.
        """
        path = f"/api/agents/{agent_id}/conversations" if agent_id else "/api/conversations"
        return self._connection.pages(ConversationView, path, {"status": status, "pinned": pinned})

    async def main_conversation(self, agent_id: str) -> ConversationView:
        """The main conversation with an agent, created if needed."""
        return await self._connection.ask(ConversationView, "PUT", f"/api/agents/{agent_id}/conversation")

    async def create_conversation(
        self,
        agent_id: str,
        *,
        title: str | None = None,
        metadata: Json | None = None,
        idempotency_key: str | None = None,
    ) -> ConversationView:
        """Starts another conversation with an agent."""
        path = f"/api/agents/{agent_id}/conversations"
        body = without_none({"title": title, "metadata": metadata})
        headers = {"Idempotency-Key": idempotency_key or new_uuid()}
        return await self._connection.ask_once(ConversationView, path, json=body, headers=headers)

    async def conversation(self, conversation_id: str) -> ConversationDetailView:
        """A conversation with its latest messages."""
        return await self._connection.ask(
            ConversationDetailView, "GET", f"/api/conversations/{conversation_id}"
        )

    async def update_conversation(self, conversation_id: str, patch: Json) -> ConversationView:
        """Changes title, status, pin or metadata with a JSON merge patch."""
        path = f"/api/conversations/{conversation_id}"
        return await self._connection.ask(ConversationView, "PATCH", path, json=patch)

    async def delete_conversation(
        self, conversation_id: str, *, purge: bool = False, if_deleted: bool = False
    ) -> None:
        """Deletes a conversation; you can restore it unless it is purged.

        With `if_deleted`, purges only a deleted one, and fails if it was restored meanwhile.
        """
        query = {"purge": "true"} if purge else {}
        if if_deleted:
            query["ifDeleted"] = "true"
        await self._connection.send("DELETE", f"/api/conversations/{conversation_id}", params=query)

    async def restore_conversation(self, conversation_id: str) -> ConversationView:
        """Restores a deleted conversation."""
        path = f"/api/conversations/{conversation_id}/restore"
        return await self._connection.ask(ConversationView, "POST", path)

    async def choose_path(
        self, conversation_id: str, message_id: str, *, tip: MessageRef = UNSET
    ) -> ConversationView:
        """Makes the branch through a message the active path."""
        path = f"/api/conversations/{conversation_id}/path"
        body = _set({"messageId": message_id, "tip": tip})
        return await self._connection.ask(ConversationView, "POST", path, json=body)

    async def fork(self, conversation_id: str, message_id: str) -> ConversationView:
        """Starts a new conversation with everything up to a message."""
        path = f"/api/conversations/{conversation_id}/fork"
        return await self._connection.ask(ConversationView, "POST", path, json={"messageId": message_id})

    def messages(
        self,
        conversation_id: str,
        *,
        newest_first: bool = False,
        after_seq: int | None = None,
        include_overwritten: bool = False,
    ) -> AsyncGenerator[MessageView]:
        """The messages on the active path, or on every branch."""
        query = {
            "order": "desc" if newest_first else "asc",
            "afterSeq": after_seq,
            "include": "overwritten" if include_overwritten else None,
        }
        return self._connection.pages(MessageView, f"/api/conversations/{conversation_id}/messages", query)

    async def context(self, conversation_id: str, *, limit: int | None = None) -> ContextView:
        """The latest messages in a form that another engine can send."""
        path = f"/api/conversations/{conversation_id}/context"
        return await self._connection.ask(ContextView, "GET", path, params=without_none({"limit": limit}))

    async def record(self, conversation_id: str, events: Sequence[Json]) -> RunsView:
        """Records turns that ran in another engine; `Recorder` does so in the background."""
        path = f"/api/conversations/{conversation_id}/executions"
        return await self._connection.ask(RunsView, "POST", path, json={"events": list(events)})

    # Turns

    async def models(self, agent_id: str | None = None) -> Sequence[ModelView]:
        """The models you can choose for a message to an agent, or for an agent of your own; default first."""
        query = {"agentId": agent_id} if agent_id else {}
        return (await self._connection.ask(ModelsView, "GET", "/api/models", params=query)).items

    async def send(
        self,
        conversation_id: str,
        content: str = "",
        *,
        files: Sequence[GivenFile] = (),
        parent_id: MessageRef = UNSET,
        tip: MessageRef = UNSET,
        when_busy: WhenBusy = "reject",
        model: str | None = None,
        tools: Sequence[Json] = (),
        on_disconnect: OnDisconnect = "continue",
        idempotency_key: str | None = None,
    ) -> AsyncGenerator[TurnEvent]:
        """Sends a message and yields the turn's events until it ends, even if the connection breaks.

        If the turn asks its user, it sends the event `approval_request`: call `answer`, and further events
        follow; the stream waits as long as the turn does. The turn continues if you stop listening; `abort`
        stops it, and so does `on_disconnect="stop"` once nobody has listened for about 5 seconds.

        `parent_id` is the message that this one follows: to send an edited version of a message, use that
        message's parent. `tip` is the last message you have seen: if the conversation has moved on, nothing
        is sent (PATH_CHANGED). `model` is the one that is to answer, among those of `models`.

        `tools` are tools that you run yourself, each with `name`, `description` and `parameters`. When the
        model calls one, the turn asks for its result (kind `client_tool`): `answer` with `result`.

        While the agent answers, `when_busy` queues the message or steers the answer with it. Then there are
        no events, and likewise if held messages go first: `queued` lists queued messages, and `post` returns
        what happened.

        `files` are uploaded first: paths, `bytes`, pairs of name and `bytes`, or results of `upload_file`. If
        the server rejects one, the message is not sent.
        """
        how = {
            "whenBusy": UNSET if when_busy == "reject" else when_busy,
            "onDisconnect": UNSET if on_disconnect == "continue" else on_disconnect,
            **_how(model, tools),
        }
        events = self._connection.stream(
            "POST",
            f"/api/conversations/{conversation_id}/messages",
            json=await self._message(content, files, parentId=parent_id, tip=tip, **how),
            headers={"Idempotency-Key": idempotency_key or new_uuid()},
        )
        async with aclosing(events):
            async for event in events:
                yield event

    async def ask(
        self,
        conversation_id: str,
        content: str = "",
        *,
        files: Sequence[GivenFile] = (),
        parent_id: MessageRef = UNSET,
        tip: MessageRef = UNSET,
        model: str | None = None,
        tools: Sequence[Json] = (),
        idempotency_key: str | None = None,
    ) -> MessageView:
        """Sends a message like `send` and waits for the whole answer, even while the server restarts.

        Raises TurnWaiting if the turn asks its user: `answer` its requests, then `reply` returns the answer.
        Raises MessageQueued if held messages in the conversation go first.
        """
        path = f"/api/conversations/{conversation_id}/messages"
        headers = {**_AS_JSON, "Idempotency-Key": idempotency_key or new_uuid()}
        body = await self._message(content, files, parentId=parent_id, tip=tip, **_how(model, tools))
        response = await self._connection.send_once(
            "POST", path, json=body, headers=headers, params={"wait": "true"}, timeout=None
        )
        if response.status_code == ACCEPTED:
            accepted = self._connection.read(_Accepted, response)
            if accepted.queued:
                raise MessageQueued(accepted.message_id)
            raise TurnWaiting(accepted.turn_id, accepted.approvals)
        return self._connection.read(MessageView, response)

    async def start(
        self,
        conversation_id: str,
        content: str = "",
        *,
        files: Sequence[GivenFile] = (),
        parent_id: MessageRef = UNSET,
        tip: MessageRef = UNSET,
        model: str | None = None,
        tools: Sequence[Json] = (),
        idempotency_key: str | None = None,
    ) -> StartedTurnView:
        """Sends a message like `send` without waiting; `follow` yields the events.

        Raises MessageQueued if held messages in the conversation go first.
        """
        path = f"/api/conversations/{conversation_id}/messages"
        headers = {**_AS_JSON, "Idempotency-Key": idempotency_key or new_uuid()}
        body = await self._message(content, files, parentId=parent_id, tip=tip, **_how(model, tools))
        accepted = await self._connection.ask_once(_Accepted, path, json=body, headers=headers)
        if isinstance(started := accepted.place(), StartedTurnView):
            return started
        raise MessageQueued(started.message_id)

    async def post(
        self,
        conversation_id: str,
        content: str = "",
        *,
        files: Sequence[GivenFile] = (),
        when_busy: WhenBusy = "queue",
        model: str | None = None,
        tools: Sequence[Json] = (),
        idempotency_key: str | None = None,
    ) -> StartedTurnView | QueuedView | SteeredView:
        """Sends a message, even while the agent answers, and returns what happened without waiting."""
        path = f"/api/conversations/{conversation_id}/messages"
        headers = {**_AS_JSON, "Idempotency-Key": idempotency_key or new_uuid()}
        body = await self._message(content, files, whenBusy=when_busy, **_how(model, tools))
        return (await self._connection.ask_once(_Accepted, path, json=body, headers=headers)).place()

    async def queued(self, conversation_id: str) -> Sequence[QueuedMessageView]:
        """The queued messages of a conversation, next one first."""
        return (await self.conversation(conversation_id)).queued

    async def edit_queued(self, conversation_id: str, message_id: str, content: str) -> QueuedMessageView:
        """Edits a queued message; MESSAGE_NOT_FOUND once it has been sent."""
        path = f"/api/conversations/{conversation_id}/queued/{message_id}"
        return await self._connection.ask(QueuedMessageView, "PATCH", path, json={"content": content})

    async def remove_queued(self, conversation_id: str, message_id: str) -> None:
        """Removes a queued message; MESSAGE_NOT_FOUND once it has been sent."""
        await self._connection.send("DELETE", f"/api/conversations/{conversation_id}/queued/{message_id}")

    def send_held(
        self, conversation_id: str, message_id: str, *, idempotency_key: str | None = None
    ) -> AsyncGenerator[TurnEvent]:
        """Sends a held message now and yields its turn's events; the other held messages follow it."""
        path = f"/api/conversations/{conversation_id}/queued/{message_id}/send"
        headers = {"Idempotency-Key": idempotency_key or new_uuid()}
        return self._connection.stream("POST", path, headers=headers)

    def regenerate(
        self,
        conversation_id: str,
        message_id: str | None = None,
        *,
        tip: MessageRef = UNSET,
        model: str | None = None,
        tools: Sequence[Json] = (),
        idempotency_key: str | None = None,
    ) -> AsyncGenerator[TurnEvent]:
        """Regenerates an answer and keeps the old one as a version; by default, the latest answer."""
        path = f"/api/conversations/{conversation_id}/regenerate"
        body = _set({"messageId": message_id or UNSET, "tip": tip, **_how(model, tools)})
        headers = {"Idempotency-Key": idempotency_key or new_uuid()}
        return self._connection.stream("POST", path, json=body, headers=headers)

    def follow(self, turn_id: str, *, after: int = 0) -> AsyncGenerator[TurnEvent]:
        """Yields a turn's events with numbers above `after`, until the turn ends."""
        headers = {"Last-Event-ID": str(after)} if after else {}
        return self._connection.stream("GET", f"/api/turns/{turn_id}/events", headers=headers)

    async def reply(self, turn_id: str) -> MessageView:
        """The whole answer of a turn once it has ended, however it ended: check its `status`.

        Raises TurnWaiting if the turn asks its user.
        """
        async for event in self.follow(turn_id):
            if isinstance(event.body, ApprovalRequest):
                asked = [it for it in await self.approvals() if it.turn_id == turn_id]
                if any(it.request_id == event.body.request_id for it in asked):
                    raise TurnWaiting(turn_id, asked)
        turn = await self.turn(turn_id)
        messages = self.messages(turn.conversation_id, newest_first=True, include_overwritten=True)
        return await anext(message async for message in messages if message.id == turn.assistant_message_id)

    async def approvals(self) -> Sequence[ApprovalView]:
        """The open requests of your turns in all conversations, oldest first."""
        return (await self._connection.ask(ApprovalsView, "GET", "/api/approvals")).items

    async def answer(
        self,
        turn_id: str,
        request_id: str,
        action: AnswerAction,
        *,
        scope: AnswerScope | None = None,
        arguments: Json | None = None,
        content: Any = None,
        error: str | None = None,
    ) -> TurnView:
        """Answers a turn's request; the turn continues. Repeating the same answer changes nothing.

        Pass `arguments` with `edit`, and `content` with `answer`: a text for a question, an object that
        matches the schema for a form, nothing for a URL. With `result`, pass what your tool returned as
        `content`, or why it failed as `error`. Raises APPROVAL_ANSWERED if the request already has a
        different answer.
        """
        fields = {
            "action": action,
            "scope": scope,
            "arguments": arguments,
            "content": content,
            "error": error,
        }
        path = f"/api/turns/{turn_id}/approvals/{request_id}"
        return await self._connection.ask_once(TurnView, path, json=without_none(fields))

    async def abort(self, conversation_id: str) -> AbortView:
        """Stops the turn running in a conversation and keeps its partial answer."""
        return await self._connection.ask(AbortView, "POST", f"/api/conversations/{conversation_id}/abort")

    async def turn(self, turn_id: str) -> TurnView:
        """A turn's status."""
        return await self._connection.ask(TurnView, "GET", f"/api/turns/{turn_id}")

    async def receipt(self, turn_id: str) -> ReceiptView:
        """What the model received in a turn."""
        return await self._connection.ask(ReceiptView, "GET", f"/api/turns/{turn_id}/context")

    def steps(self, turn_id: str, *, values: bool = False) -> AsyncGenerator[StepView]:
        """What an agent in code did in a turn, in order of begin.

        With `values`, results and hidden steps, too, if the agent's insides are yours to see.
        """
        query = {"values": "true" if values else None}
        return self._connection.pages(StepView, f"/api/turns/{turn_id}/steps", query)

    async def feedback(
        self, message_id: str, rating: Rating | None, *, note: str = "", share_text: bool = False
    ) -> FeedbackView | None:
        """Rates an answer, replacing an earlier rating with its note; None removes it.

        With `share_text`, the agent's owner may read everything that the model received in that turn.
        """
        body = {"rating": rating, "note": note, "shareText": share_text}
        path = f"/api/messages/{message_id}/feedback"
        response = await self._connection.send_once("POST", path, json=body)
        return self._connection.read(FeedbackView, response) if rating else None

    def agent_feedback(
        self,
        agent_id: str,
        *,
        rating: Rating | None = None,
        model: str | None = None,
        since: str | None = None,
    ) -> AsyncGenerator[RatedAnswerView]:
        """Users' ratings of an agent's answers, newest first; for its owner. `since` is an RFC 3339 time."""
        query = {"rating": rating, "model": model, "from": since}
        return self._connection.pages(RatedAnswerView, f"/api/agents/{agent_id}/feedback", query)

    async def rerun(
        self,
        turn_id: str,
        *,
        model: str | None = None,
        temperature: float | None = None,
        system_prompt: str | None = None,
    ) -> RerunView:
        """Runs a turn's stored request again, changing nothing in its conversation, and returns both runs.

        Tool calls that the turn made, too, take its results; any other ends the rerun with `NEEDS_TOOL`. Only
        the agent's owner can pass a `system_prompt`.
        """
        fields = {"model": model, "temperature": temperature, "systemPrompt": system_prompt}
        response = await self._connection.send(
            "POST", f"/api/turns/{turn_id}/rerun", json=without_none(fields), headers=_AS_JSON, timeout=None
        )
        return self._connection.read(RerunView, response)

    async def usage(self, **query: str) -> UsageReportView:
        """What your model calls used and cost, in groups, such as `by="day,model"`; and your budgets."""
        return await self._connection.ask(UsageReportView, "GET", "/api/usage", params=query)

    # Keys

    def keys(self) -> AsyncGenerator[KeyView]:
        """Your API keys, newest first, without the keys themselves."""
        return self._connection.pages(KeyView, "/api/keys", {})

    async def create_key(
        self,
        name: str,
        scopes: Sequence[KeyScope],
        *,
        agents: Sequence[str] | None = None,
        budget_month: str | float | None = None,
        expires_at: datetime | None = None,
        act_as: str | None = None,
        may_delete: bool = False,
    ) -> NewKeyView:
        """Makes an API key; only this response has its value. `Client(token=…)` takes it like a token.

        With the realm `act_as`, it acts for the users of an application: see `Client(user=…)`.
        """
        body = {
            "name": name,
            "scopes": scopes,
            "agents": agents,
            "budgetMonth": budget_month,
            "expiresAt": expires_at and expires_at.isoformat(),
            "actAs": None if act_as is None else {"realm": act_as},
            "mayDelete": may_delete or None,
        }
        return await self._connection.ask(NewKeyView, "POST", "/api/keys", json=without_none(body))

    async def revoke_key(self, key_id: str) -> None:
        """Revokes an API key; what it has open ends within 5 seconds."""
        await self._connection.send("DELETE", f"/api/keys/{key_id}")

    # Gateways, for admins

    async def gateways(self) -> Sequence[GatewayView]:
        """Every account with a model provider: those of the settings first, which are read-only."""
        return (await self._connection.ask(GatewaysView, "GET", "/api/admin/gateways")).items

    async def create_gateway(
        self,
        name: str,
        kind: GatewayKind,
        *,
        url: str | None = None,
        api_key: str | None = None,
        models: Sequence[str | Json] = (),
        default_model: str | None = None,
    ) -> GatewayView:
        """Connects a gateway; its models have the ids `name/model`."""
        body = {
            "name": name,
            "kind": kind,
            "url": url,
            "apiKey": api_key,
            "models": list(models),
            "defaultModel": default_model,
        }
        return await self._connection.ask(GatewayView, "POST", "/api/admin/gateways", json=without_none(body))

    async def delete_gateway(self, name: str) -> None:
        """Disconnects a gateway; agents that name its models need others."""
        await self._connection.send("DELETE", f"/api/admin/gateways/{name}")

    async def test_gateway(self, name: str) -> GatewayTestView:
        """Connects to a gateway and lists its models; `error` says why it can't."""
        return await self._connection.ask(GatewayTestView, "POST", f"/api/admin/gateways/{name}/test")

    async def _message(self, content: str, files: Sequence[GivenFile], **place: MessageRef) -> dict[str, Any]:
        """A message in the server's format, after uploading its files."""
        file_ids = {"files": await self._files.ids(files)} if files else {}
        return {"content": content, **file_ids, **_set(place)}


def _how(model: str | None, tools: Sequence[Json]) -> dict[str, Any]:
    """What a request says about its answer: the model that gives it, and the tools that the client runs."""
    return {"model": model or UNSET, "tools": list(tools) or UNSET}


def _set(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were set; None counts as set."""
    return {name: value for name, value in fields.items() if not isinstance(value, UnsetType)}
