"""Turns: begin, follow, stop and regenerate them."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing
from dataclasses import dataclass, replace
from datetime import tzinfo

from threadkeep.dialects.events import decode_chunk, encode_replayed
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import BegunTurn, Conversation, TitleSource
from threadkeep.domain.errors import (
    EventsExpired,
    GatewayNotConfigured,
    IdempotencyMismatch,
    NothingToRegenerate,
    ShuttingDown,
    StorageConflict,
    StorageError,
    ThreadkeepError,
    TurnInProgress,
    TurnNotFound,
)
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    Notice,
    Retrieval,
    Terminal,
    Text,
    TurnEvent,
    TurnStart,
)
from threadkeep.domain.ids import ConversationId, TurnId, UserId, is_uuid
from threadkeep.domain.message import Message, MessageRole, MessageStatus, Usage, check_user_content
from threadkeep.domain.payload import Payload
from threadkeep.domain.receipt import Receipt
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.aside import Aside
from threadkeep.engine.context import build_request, with_tools
from threadkeep.engine.fold import Folding
from threadkeep.engine.loop import TurnLimits, run_turn
from threadkeep.engine.passages import documents_component
from threadkeep.engine.prompt import activated_role
from threadkeep.engine.stop import Stop, Stopped
from threadkeep.engine.titles import derive_title
from threadkeep.engine.tools import Toolbox
from threadkeep.ports.gateway import Gateway, ModelRequest
from threadkeep.ports.messages import MessageWindow
from threadkeep.ports.store import Store
from threadkeep.ports.tools import Caller, ToolProvider
from threadkeep.ports.turn_log import LogChunk
from threadkeep.ports.turns import IdempotencyKey
from threadkeep.services import Clock
from threadkeep.services.access import agent_to_ask, own_conversation
from threadkeep.services.allowances import Allowances
from threadkeep.services.compactions import COMPACTION_JOB, compaction_job, is_due
from threadkeep.services.history import History
from threadkeep.services.jobs import Jobs
from threadkeep.services.live_log import LiveLog
from threadkeep.services.log_writer import persist
from threadkeep.services.node import Node
from threadkeep.services.passages import Passages
from threadkeep.services.payloads import whole_chunks, whole_messages
from threadkeep.services.prompts import Prompts
from threadkeep.services.titles import TITLE_JOB, title_job

TRIES = 5


@dataclass(frozen=True, slots=True)
class Aborted:
    """What was left when a turn was stopped."""

    turn_id: TurnId
    message: Message


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a model is sent first, its receipt, the texts that this names, and what is to be told before."""

    request: ModelRequest
    receipt: Receipt
    texts: Mapping[str, str]
    opening: Sequence[Notice | Retrieval]

    @property
    def cited(self) -> int:
        """How many passages have a number to be cited by."""
        return sum(len(event.hits) for event in self.opening if isinstance(event, Retrieval))


class Turns:
    """The use cases of turns."""

    def __init__(
        self,
        store: Store,
        node: Node,
        gateway: Gateway | None,
        prompts: Prompts,
        passages: Passages,
        history: History,
        tools: ToolProvider | None,
        jobs: Jobs,
        clock: Clock,
        zone: tzinfo,
        allowances: Allowances,
    ) -> None:
        self._allowances = allowances
        self._beginning = Counter[UserId]()
        self._store = store
        self._node = node
        self._gateway = gateway
        self._prompts = prompts
        self._passages = passages
        self._history = history
        self._tools = tools
        self._jobs = jobs
        self._clock = clock
        self._zone = zone

    async def send(
        self, user: User, conversation_id: str, content: str, *, idempotency_key: str | None = None
    ) -> Turn:
        """Begins a turn that answers a user's message; the same key gives the same turn."""
        key = None
        if idempotency_key:
            key = IdempotencyKey(idempotency_key, hashlib.sha256(content.encode()).hexdigest())
        for _ in range(TRIES):
            conversation, agent = await self._open(user, conversation_id)
            check_user_content(content, most=agent.settings.max_message_chars)
            if key and (
                found := await self._store.turns.find_by_key(conversation.id, key.name, self._clock())
            ):
                turn, request_hash = found
                if request_hash != key.request_hash:
                    raise IdempotencyMismatch("This Idempotency-Key was used with another content.")
                return turn
            begun = conversation.begin_turn(
                content, self._clock(), model=self._model(agent), title=derive_title(content)
            )
            try:
                return await self._begin(user, agent, begun, key)
            except StorageConflict:
                continue  # somebody else wrote first: read again and decide anew
        raise TurnInProgress("The conversation changes too quickly; try again.")

    async def regenerate(self, user: User, conversation_id: str) -> Turn:
        """Overwrites the latest reply and answers the same question anew."""
        for _ in range(TRIES):
            conversation, agent = await self._open(user, conversation_id)
            reply = await self._latest_reply(conversation)
            before = await self._store.turns.get(user.id, reply.turn_id) if reply and reply.turn_id else None
            if reply is None or before is None:
                raise NothingToRegenerate("There is no reply in this conversation yet.")
            begun = conversation.regenerate(
                reply, before.user_message_id, self._clock(), model=self._model(agent)
            )
            try:
                return await self._begin(user, agent, begun, None)
            except StorageConflict:
                continue
        raise TurnInProgress("The conversation changes too quickly; try again.")

    async def get(self, user: User, turn_id: str) -> Turn:
        """One of the user's turns."""
        turn = await self._store.turns.get(user.id, TurnId(turn_id.lower())) if is_uuid(turn_id) else None
        if turn is None:
            raise TurnNotFound
        return turn

    @property
    def running_count(self) -> int:
        """How many turns run on this node."""
        return self._node.running_count

    @property
    def is_draining(self) -> bool:
        """Whether this process is ending and begins no further turn."""
        return self._node.is_draining

    async def drain(self, grace_s: float) -> None:
        """Begins no further turn, gives those that run so long to end by themselves, and ends the rest."""
        await self._node.drain(grace_s)

    def watch(self, turn_id: TurnId) -> AbstractAsyncContextManager[LiveLog]:
        """The log of a turn as it is stored."""
        return self._node.watch(turn_id)

    def changes(self, conversation_id: ConversationId) -> AbstractContextManager[asyncio.Event]:
        """An event that is set whenever a turn begins in a conversation, or a change of it is announced."""
        return self._node.changes(conversation_id)

    async def announce_change(self, conversation_id: ConversationId) -> None:
        """Tells those who follow a conversation that it was deleted or has another session."""
        await self._node.announce_change(conversation_id)

    async def ended_log(self, turn: Turn, after_seq: int, *, seen_seq: int = 0) -> LiveLog:
        """The log of a turn that has ended; made from its message where the log has been trimmed.

        That is numbered anew, so it is not for a reader who has seen events up to `seen_seq`.
        """
        live = LiveLog(turn.id)
        chunks = await self._store.log.read(turn.id, after_seq)
        if not chunks:
            if seen_seq:
                raise EventsExpired("The events of this turn are gone; read its message instead.")
            chunks = [_replay(turn, await self._reply(turn))]
        live.extend(chunks, ended=True)
        return live

    async def whole(self, chunks: Sequence[LogChunk]) -> Sequence[LogChunk]:
        """Stored chunks as clients may see them, with the values that were set aside."""
        return await whole_chunks(self._store.payloads, chunks)

    async def finished(self, turn: Turn) -> Message:
        """The reply of a turn, once it has ended."""
        async with self._node.watch(turn.id) as live:
            async for _ in live.follow(live.last_seq):
                pass
        (reply,) = await whole_messages(self._store.payloads, [await self._reply(turn)])
        return reply

    async def abort(self, user: User, conversation_id: str) -> Aborted | None:
        """Stops the turn that runs in a conversation, on whichever node; None when none does."""
        conversation = await own_conversation(self._store, user, conversation_id)
        if conversation.active_turn_id is None:
            return None
        turn = await self.get(user, conversation.active_turn_id)
        if not await self._node.abort(turn.id):
            raise TurnInProgress(
                "The node that runs this turn does not answer; try again in a moment.",
                details={"turnId": turn.id},
            )
        return Aborted(turn.id, await self._reply(turn))

    async def current(self, message: Message) -> Message:
        """A reply that is being written, as far as its log goes."""
        if message.completed_at is not None or message.turn_id is None:
            return message
        folding = Folding()
        for chunk in await self._store.log.read(message.turn_id, 0):
            for event in decode_chunk(chunk.events):
                folding.add(event)
        return folding.message(message)

    def _model_gateway(self) -> Gateway:
        if self._gateway is None:
            raise GatewayNotConfigured
        return self._gateway

    async def _begin(self, user: User, agent: Agent, begun: BegunTurn, key: IdempotencyKey | None) -> Turn:
        if self.is_draining:
            raise ShuttingDown("This process is ending; try again in a moment.")
        # Those that are being stored count too: many may be asked for at the same moment.
        self._allowances.take(user.id, self._node.running_of(user.id) + self._beginning[user.id])
        self._beginning[user.id] += 1
        try:
            await self._node.begin(begun, key, lambda stop: self._events(user, agent, begun, stop))
        except StorageError:
            self._allowances.give_back(user.id)  # what is not begun is not counted, however often it is tried
            raise
        finally:
            self._beginning -= Counter([user.id])
        return begun.turn

    async def _events(
        self, user: User, agent: Agent, begun: BegunTurn, stop: Stop
    ) -> AsyncGenerator[EventBody]:
        turn, gateway = begun.turn, self._model_gateway()
        try:
            prepared = await stop.guard(lambda: self._prepare(agent, begun, gateway))
        except (Stopped, ThreadkeepError) as exc:
            yield _early_end(turn, exc)
            return
        tools = (
            self._tools.session(Caller(agent, user, turn)) if self._tools and gateway.supports_tools else None
        )
        limits = TurnLimits(agent.settings.max_iterations, agent.settings.generation_timeout_s)

        async def keep_receipt(sent: ModelRequest) -> None:
            sealed, described = with_tools(prepared.receipt, sent.tools)
            await persist(lambda: self._store.receipts.add(turn, sealed, {**prepared.texts, **described}))

        async def keep_payload(payload: Payload, content: bytes) -> None:
            await persist(lambda: self._store.payloads.add(payload, content))

        run = run_turn(
            turn,
            prepared.request,
            gateway,
            Toolbox(tools, Aside(turn.conversation_id, self._clock, keep_payload), cited=prepared.cited),
            limits,
            stop,
            opening=prepared.opening,
            sending=keep_receipt,
        )
        async with aclosing(run):
            async for body in run:
                yield body
        # The turn's end is stored by now: whoever takes a yielded event keeps it before taking the next.
        self._history.note(turn.conversation_id)
        is_first = begun.conversation.title_source is TitleSource.DERIVED and begun.conversation.last_seq <= 4
        if is_first and gateway.supports_tools:
            await self._jobs.add(TITLE_JOB, title_job(begun.conversation))
        if is_due(agent, begun.conversation):
            await self._jobs.add(COMPACTION_JOB, compaction_job(begun.conversation))

    async def _prepare(self, agent: Agent, begun: BegunTurn, gateway: Gateway) -> _Prepared:
        conversation, settings = begun.conversation, agent.settings
        # As it is by now: it may have been compacted, or that undone, since the turn began.
        compaction = None
        if conversation.archived_to_seq:
            compaction = await self._store.compactions.current(conversation.id)
        window = MessageWindow(
            after_seq=compaction.to_seq if compaction else 0,
            before_seq=begun.assistant_message.seq,
            newest_first=True,
        )
        latest = await self._store.messages.page(
            conversation.id, window, offset=0, limit=settings.context_messages or 10_000
        )
        asked_id = begun.turn.user_message_id
        if all(message.id != asked_id for message in latest):  # archived since, and answered anew
            asked = await self._store.messages.get(asked_id)
            latest = [*latest, *([asked] if asked else ())]
        # A role stays until the agent is changed: its owner may have given it another one.
        activated = activated_role(latest, since=agent.updated_at)
        summary = compaction.summary if compaction else None
        prompt = await self._prompts.assemble(agent, activated=activated, summary=summary)
        asked = next((message for message in latest if message.id == asked_id), None)
        found = await self._passages.before(agent, asked, gateway)
        components = [
            *prompt.components,
            *(documents_component(it.hits) for it in found if isinstance(it, Retrieval)),
        ]
        request, receipt = build_request(
            latest[::-1],
            components,
            model=begun.turn.model,
            context_tokens=gateway.context_tokens,
            zone=self._zone,
            question_id=asked_id,
            thoughts=settings.context_thoughts,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
        )
        texts = {component.sha256: component.text for component in components}
        return _Prepared(request, receipt, texts, (*prompt.notices, *found))

    def _model(self, agent: Agent) -> str:
        gateway = self._model_gateway()
        return agent.model or gateway.default_model

    async def _open(self, user: User, conversation_id: str) -> tuple[Conversation, Agent]:
        """A conversation in which the user may begin a turn, and its agent."""
        conversation = await own_conversation(self._store, user, conversation_id)
        return conversation, await agent_to_ask(self._store, user, conversation)

    async def _latest_reply(self, conversation: Conversation) -> Message | None:
        window = MessageWindow(newest_first=True)
        latest = await self._store.messages.page(conversation.id, window, offset=0, limit=50)
        return next((message for message in latest if message.role is MessageRole.ASSISTANT), None)

    async def _reply(self, turn: Turn) -> Message:
        reply = await self._store.messages.get(turn.assistant_message_id)
        if reply is None:
            raise TurnNotFound
        return reply


def _early_end(turn: Turn, error: Stopped | ThreadkeepError) -> Terminal:
    """How a turn ends whose model was not asked yet."""
    if isinstance(error, ThreadkeepError):
        return Failed(error.code, error.message, retryable=True)
    if error.reason == "abort":
        return Done("CANCELLED", turn.assistant_message_id, Usage(0, 0), "aborted")
    return Failed("INTERRUPTED", "The server was stopped during this turn.", retryable=True)


def _replay(turn: Turn, reply: Message) -> LogChunk:
    """The events of a turn whose log is gone, as far as its message remembers them."""
    end = Done("COMPLETED", reply.id, reply.usage or Usage(0, 0), "end_turn")
    if reply.error is not None:
        end = Failed(reply.error.code, reply.error.message, reply.error.retryable)
    elif reply.status is MessageStatus.CANCELLED:
        end = replace(end, status="CANCELLED", stop_reason="aborted")
    bodies: list[EventBody] = [TurnStart.of(turn)]
    if isinstance(reply.content, str) and reply.content:
        bodies.append(Text(reply.content))
    at = turn.ended_at or turn.started_at
    events = [TurnEvent(turn.id, seq, at, body) for seq, body in enumerate([*bodies, end], 1)]
    return LogChunk(turn.id, 1, len(events), encode_replayed(events))
