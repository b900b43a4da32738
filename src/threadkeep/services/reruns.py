"""Reruns: a turn's stored request, run again beside its conversation, which stays as it is."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, Literal

from threadkeep.clock import Clock
from threadkeep.context.attachments import FileRules, files_in
from threadkeep.context.history import Rendering, model_name_of, read_refs
from threadkeep.context.request import rebuild_request
from threadkeep.domain.agent import ANY_MODEL, Agent
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.errors import (
    AgentNotFound,
    BudgetExceeded,
    ConversationNotFound,
    Forbidden,
    InvalidRequest,
    NotRerunnable,
    TurnNotFound,
)
from threadkeep.domain.events import Failed, TurnEvent
from threadkeep.domain.ids import PayloadId, TurnId, is_uuid
from threadkeep.domain.message import Message, Usage
from threadkeep.domain.parts import FilePart, ToolCallPart, UserTextPart, content_of, tool_calls_of
from threadkeep.domain.payload import Lost
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.fold import Folding
from threadkeep.engine.loop import TurnLimits
from threadkeep.engine.recorded_calls import CallKey, RecordedCall, call_key, in_both
from threadkeep.engine.rerun import NEEDS_TOOL, Original, rerun
from threadkeep.engine.turn_models import why_unfit
from threadkeep.ports.gateway import Block, ImageBlock, ModelEvent, ModelRequest, ToolResultBlock
from threadkeep.ports.models import ConnectedModel
from threadkeep.services.access import agent_to_ask, own_conversation, own_turn
from threadkeep.services.model_choice import ModelChoice
from threadkeep.services.reply_places import ReplyPlaces
from threadkeep.storage.store import Store

# The model read no result of these.
_UNREAD = {ToolCallStatus.RUNNING, ToolCallStatus.INTERRUPTED}

Meter = Callable[[ConnectedModel, Agent, User], ConnectedModel]
"""A model whose calls are reserved and charged, within the budgets of a user and an agent."""
PriceUsage = Callable[[str | None, Usage], Usage]
"""A model's usage with its cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunChanges:
    """What a rerun changes; the rest is as it was."""

    model: str | None = None
    temperature: float | None = None
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class RunCall:
    """A tool call of a run, with the model's own arguments."""

    call: ToolCall
    arguments: Mapping[str, Any]
    in_both: bool = False
    """Whether the other run made it, too."""

    @property
    def key(self) -> CallKey:
        """Equal for the same calls of two runs."""
        return call_key(model_name_of(self.call), self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a model said to a request, which tools it called, and what that took."""

    model: str | None
    text: str
    calls: Sequence[RunCall]
    usage: Usage
    duration_ms: int

    def beside(self, other: "Run") -> "Run":
        """This run, with each call marked that the other one made, too."""
        marks = in_both([it.key for it in self.calls], [it.key for it in other.calls])
        calls = [replace(it, in_both=mark) for it, mark in zip(self.calls, marks, strict=True)]
        return replace(self, calls=calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRerun:
    """A rerun beside the original."""

    turn_id: TurnId
    question: str
    outcome: Literal["COMPLETED", "NEEDS_TOOL", "FAILED"]
    failure: Failed | None
    rerun: Run
    original: Run


@dataclass(frozen=True, slots=True)
class Readable:
    """A turn that the user may run again, with its agent."""

    turn: Turn
    agent: Agent
    is_owner: bool
    """Whether the agent is the user's own."""


class Reruns:
    """The use cases of reruns."""

    def __init__(
        self,
        store: Store,
        choice: ModelChoice,
        places: ReplyPlaces,
        clock: Clock,
        caps: OperatorCaps = NO_CAPS,
        *,
        meter: Meter,
        price: PriceUsage,
    ) -> None:
        self._store = store
        self._choice = choice
        self._places = places
        self._clock = clock
        self._caps = caps
        self._meter = meter
        self._price = price

    async def prepare(self, user: User, turn_id: str, changes: RerunChanges) -> "Rerun":
        """A rerun that is about to begin. Refuses what can't be run again, or not by this user."""
        readable = await self._readable(user, turn_id)
        turn, agent = readable.turn, self._caps.limited(readable.agent)
        if changes.system_prompt is not None and not readable.is_owner:
            raise Forbidden("Only the agent's owner can change the system prompt.", param="systemPrompt")
        if turn.is_active:
            raise NotRerunnable("The turn has not ended yet.")
        model = self._model(agent, changes.model or turn.model, is_owner=readable.is_owner)
        request = await self._request(turn, changes, model)
        if reason := why_unfit(request, model):
            raise InvalidRequest(f"{model.id} can't answer this request: {reason}", param="model")
        asked, reply = await self._messages(turn)
        recorded = await self._recorded(turn, reply, request, model)
        contents = await self._contents(turn, request, recorded)
        place = await self._places.take(user.id)
        original = Original(
            turn=turn,
            request=request,
            calls=[it.recorded for it in recorded if it.recorded],
            steered=[it for it in reply.parts if isinstance(it, UserTextPart) and not it.superseded],
            contents=contents,
        )
        return Rerun(
            asked.text if asked else "",
            _original_run(turn, reply, [it.shown for it in recorded]),
            original,
            self._meter(model, agent, user),
            TurnLimits(agent.settings.max_iterations, agent.settings.generation_timeout_s),
            self._clock,
            self._price,
            lambda: self._places.hold(place),
        )

    async def _readable(self, user: User, turn_id: str) -> Readable:
        """One of the user's turns, or one that is shared with them as the agent's owner."""
        shared = await self._store.feedback.shared_turn(TurnId(turn_id.lower())) if is_uuid(turn_id) else None
        try:
            turn = await own_turn(self._store, user, turn_id)
        except TurnNotFound:
            agent = await self._store.agents.get(shared.agent_id) if shared else None
            if shared is None or agent is None or not (agent.is_owned_by(user) and user.may_use(agent.id)):
                raise
            turn = await self._store.turns.get(shared.user_id, TurnId(turn_id.lower()))
            if turn is None:
                raise
            return Readable(turn, agent, is_owner=True)
        try:
            conversation = await own_conversation(self._store, user, turn.conversation_id)
            agent = await agent_to_ask(self._store, user, conversation)
        except (ConversationNotFound, AgentNotFound) as exc:
            raise TurnNotFound if isinstance(exc, ConversationNotFound) else exc from exc
        return Readable(turn, agent, is_owner=agent.is_owned_by(user))

    def _model(self, agent: Agent, wanted: str | None, *, is_owner: bool) -> ConnectedModel:
        """The model to try: one that the agent offers; its owner could offer any."""
        if is_owner:
            agent = replace(agent, settings=replace(agent.settings, models=(ANY_MODEL,)))
        return self._choice.chosen(agent, wanted)

    async def _request(self, turn: Turn, changes: RerunChanges, model: ConnectedModel) -> ModelRequest:
        found = await self._store.receipts.get(turn.conversation_id, turn.id)
        if found is None:
            raise NotRerunnable("What the model received in this turn is not stored.")
        receipt, texts = found
        try:
            request = rebuild_request(receipt, texts, system_prompt=changes.system_prompt)
        except KeyError as exc:
            raise NotRerunnable("Some of what the model received in this turn is no longer stored.") from exc
        most = (request.max_tokens, self._caps.reply_tokens or None, model.model.max_output_tokens)
        return replace(
            request,
            temperature=request.temperature if changes.temperature is None else changes.temperature,
            max_tokens=min((it for it in most if it), default=None),
            cache_key=None,
        )

    async def _messages(self, turn: Turn) -> tuple[Message | None, Message]:
        asked = await self._store.messages.get(turn.conversation_id, turn.user_message_id)
        reply = await self._store.messages.get(turn.conversation_id, turn.assistant_message_id)
        if reply is None:
            raise TurnNotFound
        return asked, reply

    async def _recorded(
        self, turn: Turn, reply: Message, request: ModelRequest, model: ConnectedModel
    ) -> "list[_KnownCall]":
        """The calls of a turn with what the model read of them."""
        calls = [it.call for it in reply.parts if isinstance(it, ToolCallPart) and not it.superseded]
        refs = {ref for call in calls for ref in read_refs(call, is_short=False)}
        payloads = await self._load(turn, refs)
        rendering = Rendering(
            UTC,
            thoughts=False,
            calls_as_blocks=bool(request.tools),
            files=FileRules(model.files, model.model.context_tokens),
            payloads=payloads,
        )
        images = [it for it in reply.parts if isinstance(it, FilePart) and it.tool_call_id]
        return [_known(call, rendering, images) for call in calls]

    async def _contents(
        self, turn: Turn, request: ModelRequest, recorded: "Iterable[_KnownCall]"
    ) -> Mapping[PayloadId, bytes]:
        """The files that the model received or may receive again."""
        sent = {it.content_id for it in files_in(request.messages)}
        returned = {
            block.content_id
            for it in recorded
            if it.recorded
            for block in it.recorded.reads
            if isinstance(block, ImageBlock)
        }
        return await self._load(turn, map(PayloadId, sent | returned))

    async def _load(self, turn: Turn, ids: Iterable[PayloadId]) -> dict[PayloadId, bytes]:
        found = await self._store.payloads.load(turn.conversation_id, ids)
        kept = {id_: it for id_, it in found.items() if not isinstance(it, Lost)}
        if len(kept) < len(found):
            raise NotRerunnable("A file or a tool's result of this turn is no longer stored.")
        return kept


@dataclass(frozen=True, slots=True)
class _KnownCall:
    """A call of the original; `recorded` if the model read its result."""

    shown: RunCall
    recorded: RecordedCall | None


def _known(call: ToolCall, rendering: Rendering, images: Sequence[FilePart]) -> _KnownCall:
    arguments = rendering.arguments_of(call)
    if call.status in _UNREAD:
        return _KnownCall(RunCall(call, arguments), None)
    result = ToolResultBlock(call.tool_call_id, rendering.reads(call), call.status is not ToolCallStatus.OK)
    own = (it for it in images if it.tool_call_id == call.tool_call_id)
    blocks: Iterable[Block] = rendering.files.image_blocks(own, call.tool_call_id)
    recorded = RecordedCall(call, model_name_of(call), arguments, (result, *blocks))
    return _KnownCall(RunCall(call, arguments), recorded)


def _original_run(turn: Turn, reply: Message, calls: Sequence[RunCall]) -> Run:
    return Run(
        model=reply.model or turn.model,
        text=reply.text,
        calls=calls,
        usage=reply.usage or turn.usage or Usage(0, 0),
        duration_ms=(turn.ended_at or turn.started_at) - turn.started_at,
    )


class Rerun:
    """A rerun: its events as they come, then what came of it."""

    def __init__(
        self,
        question: str,
        run_before: Run,
        original: Original,
        model: ConnectedModel,
        limits: TurnLimits,
        clock: Clock,
        price: PriceUsage,
        in_place: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        self._in_place = in_place
        self._question = question
        self._run_before = run_before
        self._original = original
        self._model = model
        self._limits = limits
        self._clock = clock
        self._price = price
        self._folding = Folding()
        self._failure: Failed | None = None
        self.over_budget: BudgetExceeded | None = None
        """The budget that had no room for it, if one ended it."""
        self._began_at = self._ended_at = clock()

    async def events(self) -> AsyncGenerator[TurnEvent]:
        """Runs it, like a turn."""
        self._began_at = self._clock()
        running = rerun(
            self._original,
            self._call_model,
            self._limits,
            model=self._model.id,
            signed_by=self._model.signer,
        )
        seq = 0
        async with self._in_place(), aclosing(running):
            async for body in running:
                seq, self._ended_at = seq + 1, self._clock()
                event = TurnEvent(self._original.turn.id, seq, self._ended_at, body)
                self._folding.add(event)
                if isinstance(body, Failed):
                    self._failure = body
                yield event

    async def _call_model(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        try:
            async with aclosing(self._model.stream(request)) as stream:
                async for event in stream:
                    yield event
        except BudgetExceeded as exc:
            self.over_budget = exc
            raise

    def finished(self) -> FinishedRerun:
        """What came of it, once its events have ended."""
        run, before, failure = self._run(), self._run_before, self._failure
        outcome = "COMPLETED" if failure is None else "NEEDS_TOOL" if failure.code == NEEDS_TOOL else "FAILED"
        return FinishedRerun(
            turn_id=self._original.turn.id,
            question=self._question,
            outcome=outcome,
            failure=failure,
            rerun=run.beside(before),
            original=before.beside(run),
        )

    def _run(self) -> Run:
        parts = tuple(self._folding.parts)
        return Run(
            model=self._model.id,
            text=content_of(parts),
            calls=[RunCall(it, it.arguments) for it in tool_calls_of(parts)],
            usage=self._price(self._model.id, self._folding.usage),
            duration_ms=self._ended_at - self._began_at,
        )
