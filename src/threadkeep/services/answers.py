"""Answers: what an agent does for a turn, from what its model is sent to what is done afterwards."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import tzinfo

from threadkeep.clock import Clock
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import BegunTurn, Conversation, TitleSource
from threadkeep.domain.errors import GatewayNotConfigured, ThreadkeepError
from threadkeep.domain.events import Done, EventBody, Failed, Notice, Retrieval, Terminal
from threadkeep.domain.message import Usage
from threadkeep.domain.payload import Payload
from threadkeep.domain.receipt import Receipt
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.context import build_request, with_tools
from threadkeep.engine.large_values import LargeValues
from threadkeep.engine.loop import TurnLimits, run_turn
from threadkeep.engine.passages import documents_component
from threadkeep.engine.prompt import activated_role
from threadkeep.engine.stop import Stop, Stopped
from threadkeep.engine.tools import Toolbox
from threadkeep.jobs.queue import Jobs
from threadkeep.jobs.titles import TITLE_JOB, title_job
from threadkeep.log.writer import persist
from threadkeep.ports.gateway import Gateway, ModelRequest
from threadkeep.ports.messages import MessageWindow
from threadkeep.ports.store import Store
from threadkeep.ports.tools import Caller, ToolProvider
from threadkeep.services.compactions import COMPACTION_JOB, compaction_job, is_due
from threadkeep.services.history import History
from threadkeep.services.passages import Passages
from threadkeep.services.prompts import Prompts

MOST_MESSAGES = 10_000  # of a context without a limit of its own


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


class Answers:
    """Has models answer. Where there is none, no turn can begin."""

    def __init__(
        self,
        store: Store,
        gateway: Gateway | None,
        prompts: Prompts,
        passages: Passages,
        history: History,
        tools: ToolProvider | None,
        jobs: Jobs,
        clock: Clock,
        zone: tzinfo,
    ) -> None:
        self._store = store
        self._gateway = gateway
        self._prompts = prompts
        self._passages = passages
        self._history = history
        self._tools = tools
        self._jobs = jobs
        self._clock = clock
        self._zone = zone

    def model(self, agent: Agent) -> str:
        """The name of the model that answers for an agent; GatewayNotConfigured where none can be asked."""
        gateway = self._model_gateway()
        return agent.model or gateway.default_model

    async def events(
        self, user: User, agent: Agent, begun: BegunTurn, stop: Stop
    ) -> AsyncGenerator[EventBody]:
        """The events of a turn that has begun. Whoever takes one keeps it before taking the next."""
        turn, gateway = begun.turn, self._model_gateway()
        try:
            prepared = await stop.guard(lambda: self._prepare(agent, begun, gateway))
        except (Stopped, ThreadkeepError) as exc:
            yield _early_end(turn, exc)
            return
        caller = Caller(agent, user, begun.conversation)
        tools = self._tools.session(caller) if self._tools and gateway.supports_tools else None
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
            Toolbox(
                tools, LargeValues(turn.conversation_id, self._clock, keep_payload), cited=prepared.cited
            ),
            limits,
            stop,
            opening=prepared.opening,
            sending=keep_receipt,
        )
        async with aclosing(run):
            async for body in run:
                yield body
        await self._follow_up(agent, begun.conversation, gateway)  # the turn's end is kept by now

    async def _follow_up(self, agent: Agent, conversation: Conversation, gateway: Gateway) -> None:
        """Has done in the background what an answer gives reason for."""
        self._history.note(conversation.id)
        is_first = conversation.title_source is TitleSource.DERIVED and conversation.last_seq <= 4
        if is_first and gateway.supports_tools:
            await self._jobs.add(TITLE_JOB, title_job(conversation))
        if is_due(agent, conversation):
            await self._jobs.add(COMPACTION_JOB, compaction_job(conversation))

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
            conversation.id, window, offset=0, limit=settings.context_messages or MOST_MESSAGES
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

    def _model_gateway(self) -> Gateway:
        if self._gateway is None:
            raise GatewayNotConfigured
        return self._gateway


def _early_end(turn: Turn, error: Stopped | ThreadkeepError) -> Terminal:
    """How a turn ends whose model was not asked yet."""
    if isinstance(error, ThreadkeepError):
        return Failed(error.code, error.message, retryable=True)
    if error.reason == "abort":
        return Done("CANCELLED", turn.assistant_message_id, Usage(0, 0), "aborted")
    return Failed("INTERRUPTED", "The server was stopped during this turn.", retryable=True)
