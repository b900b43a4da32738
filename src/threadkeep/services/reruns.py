"""Reruns: a turn's stored request, run again beside its conversation, which stays as it is."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal

from threadkeep.clock import Clock
from threadkeep.context.attachments import FileRules, files_in
from threadkeep.context.cards import CardStyle
from threadkeep.context.history import Rendering, model_name_of, read_refs
from threadkeep.context.request import rebuild_request
from threadkeep.domain.agent import ANY_MODEL, Agent
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.errors import (
    AgentNotFound,
    ConversationNotFound,
    Forbidden,
    InvalidRequest,
    NotRerunnable,
    TurnNotFound,
)
from threadkeep.domain.events import Failed, IterationStart, TurnEvent, UserMessage
from threadkeep.domain.ids import PayloadId, TurnId, is_uuid
from threadkeep.domain.message import Message, Usage
from threadkeep.domain.money import Purpose
from threadkeep.domain.parts import FilePart, ToolCallPart, UserTextPart, content_of, tool_calls_of
from threadkeep.domain.payload import Lost
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.fold import Folding
from threadkeep.engine.loop import Surroundings, TurnLimits, run_turn
from threadkeep.engine.model_call import ModelReads
from threadkeep.engine.recorded_calls import (
    CallKey,
    NeedsTool,
    RecordedCall,
    RecordedTools,
    call_key,
    in_both,
)
from threadkeep.engine.spending import ModelSpending
from threadkeep.engine.turn_models import TurnModels, why_unfit
from threadkeep.ports.gateway import ImageBlock, ModelRequest, ToolResultBlock, ToolSpec
from threadkeep.ports.models import ConnectedModel
from threadkeep.program_log import add_to_subject
from threadkeep.services.access import agent_to_ask, own_conversation, own_turn
from threadkeep.services.completions.completion import Completion, Contents
from threadkeep.services.equipment import Equipment, limits_of
from threadkeep.services.replies.reply_places import ReplyPlaces
from threadkeep.storage.store import Store

# The model read no result of these.
_UNREAD = {ToolCallStatus.RUNNING, ToolCallStatus.INTERRUPTED}


@dataclass(frozen=True, slots=True)
class RunCall:
    """A tool call of a run, with the model's own arguments."""

    call: ToolCall
    arguments: Mapping[str, Any]
    reads: ModelReads | None = None
    """What the model read of it, if a rerun can take that."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """What a rerun takes from the turn that it repeats."""

    turn: Turn
    question: str
    request: ModelRequest
    calls: Sequence[RecordedCall]
    steered: Sequence[UserTextPart]
    """What the user sent while the turn ran; each belongs after the model call of its iteration."""
    contents: Mapping[PayloadId, bytes]
    """The files of the request and of the calls' results."""
    run: Run


class Reruns:
    """The use cases of reruns."""

    def __init__(
        self,
        store: Store,
        equipment: Equipment,
        places: ReplyPlaces,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._store = store
        self._equipment = equipment
        self._places = places
        self._caps = caps

    async def prepare(
        self,
        user: User,
        turn_id: str,
        *,
        model: str | None = None,
        temperature: float | None = None,
        system_prompt: str | None = None,
    ) -> "Rerun":
        """Begins a rerun with these changes. Refuses what can't be run again, or not by this user."""
        turn, agent = await self._readable(user, turn_id)
        agent = self._caps.limited(agent)
        if system_prompt is not None and not agent.is_owned_by(user):
            raise Forbidden("Only the agent's owner can change the system prompt.", param="systemPrompt")
        if turn.is_active:
            raise NotRerunnable("The turn has not ended yet.")
        chosen = self._model(user, agent, model or turn.model)
        request = await self._request(turn, chosen, system_prompt)
        if temperature is not None:
            request = replace(request, temperature=temperature)
        if reason := why_unfit(request, chosen):
            raise InvalidRequest(f"{chosen.id} can't answer this request: {reason}", param="model")
        original = await self._original(turn, request, chosen)
        place = await self._places.take(user.id)
        add_to_subject(turn_id=turn.id)
        spending, clock = self._equipment.spending, self._equipment.clock
        account = spending.account(user, agent, Purpose.RERUN)
        return Rerun(original, chosen, limits_of(agent), account, clock, self._places.hold(place))

    async def _readable(self, user: User, turn_id: str) -> tuple[Turn, Agent]:
        """One of the user's turns, or one that is shared with them as the agent's owner, and its agent."""
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
            return turn, agent
        try:
            conversation = await own_conversation(self._store, user, turn.conversation_id)
            agent = await agent_to_ask(self._store, user, conversation)
        except (ConversationNotFound, AgentNotFound) as exc:
            raise TurnNotFound if isinstance(exc, ConversationNotFound) else exc from exc
        return turn, agent

    def _model(self, user: User, agent: Agent, wanted: str | None) -> ConnectedModel:
        """The model to try: one that the agent offers; its owner could offer any."""
        if agent.is_owned_by(user):
            agent = replace(agent, settings=replace(agent.settings, models=(ANY_MODEL,)))
        return self._equipment.choice.chosen(agent, wanted)

    async def _request(self, turn: Turn, model: ConnectedModel, system_prompt: str | None) -> ModelRequest:
        if turn.code is not None:
            raise NotRerunnable("The agent is a program, whose turns can't be run again.")
        found = await self._store.receipts.get(turn.conversation_id, turn.id)
        if found is None:
            raise NotRerunnable("What the model received in this turn is not stored.")
        receipt, texts = found
        try:
            request = rebuild_request(receipt, texts, system_prompt=system_prompt)
        except KeyError as exc:
            raise NotRerunnable("Some of what the model received in this turn is no longer stored.") from exc
        most = (request.max_tokens, self._caps.reply_tokens or None, model.model.max_output_tokens)
        return replace(request, max_tokens=min((it for it in most if it), default=None), cache_key=None)

    async def _original(self, turn: Turn, request: ModelRequest, model: ConnectedModel) -> Original:
        asked = await self._store.messages.get(turn.conversation_id, turn.user_message_id)
        reply = await self._store.messages.get(turn.conversation_id, turn.assistant_message_id)
        if reply is None:
            raise TurnNotFound
        calls = await self._calls(turn, reply, request, model)
        known = [(it, it.reads) for it in calls if it.reads]
        return Original(
            turn=turn,
            question=asked.text if asked else "",
            request=request,
            calls=[RecordedCall(it.call, model_name_of(it.call), it.arguments, reads) for it, reads in known],
            steered=[it for it in reply.parts if isinstance(it, UserTextPart) and not it.superseded],
            contents=await self._contents(turn, request, calls),
            run=_original_run(turn, reply, calls),
        )

    async def _calls(
        self, turn: Turn, reply: Message, request: ModelRequest, model: ConnectedModel
    ) -> list[RunCall]:
        """The calls of a turn with what the model read of them."""
        calls = [it.call for it in reply.parts if isinstance(it, ToolCallPart) and not it.superseded]
        refs = {ref for call in calls for ref in read_refs(call, is_short=False)}
        payloads = await self._load(turn, refs)
        rendering = Rendering(
            CardStyle(),
            thoughts=False,
            calls_as_blocks=bool(request.tools),
            files=FileRules(model.files, model.model.context_tokens),
            payloads=payloads,
        )
        images = [it for it in reply.parts if isinstance(it, FilePart) and it.tool_call_id]
        return [_known(call, rendering, images) for call in calls]

    async def _contents(
        self, turn: Turn, request: ModelRequest, calls: Iterable[RunCall]
    ) -> Mapping[PayloadId, bytes]:
        """The files that the model received or may receive again."""
        sent = {it.content_id for it in files_in(request.messages)}
        read = (block for call in calls for block in call.reads or ())
        returned = {block.content_id for block in read if isinstance(block, ImageBlock)}
        return await self._load(turn, map(PayloadId, sent | returned))

    async def _load(self, turn: Turn, ids: Iterable[PayloadId]) -> dict[PayloadId, bytes]:
        found = await self._store.payloads.load(turn.conversation_id, ids)
        kept = {id_: it for id_, it in found.items() if not isinstance(it, Lost)}
        if len(kept) < len(found):
            raise NotRerunnable("A file or a tool's result of this turn is no longer stored.")
        return kept


def _known(call: ToolCall, rendering: Rendering, images: Sequence[FilePart]) -> RunCall:
    """A call of the original, with what the model read of it."""
    arguments = rendering.arguments_of(call)
    if call.status in _UNREAD:
        return RunCall(call, arguments)
    result = ToolResultBlock(call.tool_call_id, rendering.reads(call), call.status is not ToolCallStatus.OK)
    own = (it for it in images if it.tool_call_id == call.tool_call_id)
    return RunCall(call, arguments, (result, *rendering.files.image_blocks(own, call.tool_call_id)))


def _original_run(turn: Turn, reply: Message, calls: Sequence[RunCall]) -> Run:
    return Run(
        model=reply.model or turn.model,
        text=reply.text,
        calls=calls,
        usage=reply.usage or turn.usage or Usage(0, 0),
        duration_ms=(turn.ended_at or turn.started_at) - turn.started_at,
    )


class Rerun(Completion):
    """A turn's request that runs again: its events as they come, then what came of it.

    It asks for one model, and once for each of its replies.
    """

    def __init__(
        self,
        original: Original,
        model: ConnectedModel,
        limits: TurnLimits,
        spending: ModelSpending,
        clock: Clock,
        place: AbstractAsyncContextManager[None],
    ) -> None:
        self._original = original
        self._model = model
        self.spending = spending
        self._steered = original.steered
        self._calls = 0
        self._folding = Folding()
        self._failure: Failed | None = None
        self._began_at = self._ended_at = clock()

        contents, turn = Contents(original.contents), replace(original.turn, model=model.id)

        async def build(tools: Sequence[ToolSpec]) -> ModelRequest:
            return original.request

        around = Surroundings(
            models=TurnModels(model),
            tools=RecordedTools(original.calls),
            limits=limits,
            spending=spending,
            load=contents.load,
            asks_again=False,
            steering=self._steered_by_now,
            after_reply=self._all_steered,
        )
        super().__init__(turn, run_turn(turn, build, around), around.stop, contents, clock, place)

    def _show(self, event: TurnEvent) -> None:
        super()._show(event)
        self._folding.add(event)
        self._ended_at = event.at
        if isinstance(event.body, Failed):
            self._failure = event.body
        self._calls += isinstance(event.body, IterationStart)

    async def _steered_by_now(self) -> Sequence[UserMessage]:
        """What the user had sent after as many model calls."""
        return self._take_in([it for it in self._steered if self._calls >= max(it.iteration, 1)])

    async def _all_steered(self) -> Sequence[UserMessage]:
        """All the rest, as nothing else is to follow."""
        return self._take_in(self._steered)

    def _take_in(self, due: Sequence[UserTextPart]) -> Sequence[UserMessage]:
        self._steered = [it for it in self._steered if it not in due]
        messages = [UserMessage(it.message_id, it.text) for it in due]
        for message in messages:
            self.add(message)
        return messages

    def finished(self) -> FinishedRerun:
        """What came of it, once its events have ended."""
        run, before, failure = self._run_again(), self._original.run, self._failure
        needs_tool = failure is not None and failure.code == NeedsTool.code
        return FinishedRerun(
            turn_id=self.turn.id,
            question=self._original.question,
            outcome="NEEDS_TOOL" if needs_tool else "FAILED" if failure else "COMPLETED",
            failure=failure,
            rerun=run.beside(before),
            original=before.beside(run),
        )

    def _run_again(self) -> Run:
        parts = tuple(self._folding.parts)
        return Run(
            model=self._model.id,
            text=content_of(parts),
            calls=[RunCall(it, it.arguments) for it in tool_calls_of(parts)],
            usage=self._folding.usage,
            duration_ms=self._ended_at - self._began_at,
        )
