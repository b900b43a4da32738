"""Answers: everything an agent does in a turn, from the model request to the follow-up work."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import tzinfo

from threadkeep.clock import Clock
from threadkeep.context.attachments import MOST_TEXT_BYTES, NO_FILES, FileRules, form_key
from threadkeep.context.history import read_refs
from threadkeep.context.request import BuiltRequest, ContextRules, Sources, build_request
from threadkeep.domain.agent import Agent, OnCrash
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation, TitleSource
from threadkeep.domain.errors import GatewayNotConfigured, ThreadkeepError
from threadkeep.domain.events import Done, Failed, Notice, Retrieval, TurnResumed
from threadkeep.domain.file import is_image
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.domain.payload import Payload
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.user import User
from threadkeep.engine.ending import failed, stopped
from threadkeep.engine.large_values import LargeValues
from threadkeep.engine.loop import HandOff, TurnLimits, TurnStep, TurnTools, run_turn
from threadkeep.engine.replay import NEW_TURN, TurnState
from threadkeep.engine.stop import Stopped
from threadkeep.engine.tools import Toolbox
from threadkeep.jobs.queue import Jobs
from threadkeep.jobs.titles import TITLE_JOB, title_job
from threadkeep.log.writer import persist
from threadkeep.ports.gateway import Gateway, ModelRequest, Models, ToolSpec
from threadkeep.ports.messages import MessageWindow
from threadkeep.ports.payloads import Lost
from threadkeep.ports.schemas import Schemas
from threadkeep.ports.store import Store
from threadkeep.ports.tools import Caller, ReturnedFile, ToolProvider
from threadkeep.ports.turn_log import HeldTurn
from threadkeep.runtime.control import TurnControl
from threadkeep.services.approvals import TurnApprovals
from threadkeep.services.compactions import COMPACTION_JOB, compaction_job, is_due
from threadkeep.services.history import History
from threadkeep.services.passages import Passages
from threadkeep.services.path import latest_messages
from threadkeep.services.prompts import Prompts

MOST_MESSAGES = 10_000  # of a context without a limit of its own
MOST_MESSAGES_AT_ONCE = 300
MOST_BYTES_AT_ONCE = 128 * 1024
"""Up to this many messages, and bytes of results, become a request without delaying other work."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The inputs of a request once the tools are known, and the events that come before it."""

    sources: Sources
    rules: ContextRules
    opening: Sequence[Notice | Retrieval]


_UNSEEN = "This model doesn't accept images; it sees only the name of {}."
_UNREAD = "The model sees only the name of {}, which contains images but no text."

KeepReturnedImage = Callable[[Conversation, ReturnedFile], Awaitable[FilePart | None]]
"""Stores an image that a tool returned; None if it can't be shown."""


class ModelReplies:
    """Lets models answer. Without a model, no turn can start."""

    def __init__(
        self,
        store: Store,
        models: Models,
        prompts: Prompts,
        passages: Passages,
        history: History,
        tools: ToolProvider | None,
        schemas: Schemas,
        jobs: Jobs,
        clock: Clock,
        zone: tzinfo,
        keep_image: KeepReturnedImage,
    ) -> None:
        self._store = store
        self._models = models
        self._prompts = prompts
        self._passages = passages
        self._history = history
        self._tools = tools
        self._schemas = schemas
        self._keep_image = keep_image
        self._jobs = jobs
        self._clock = clock
        self._zone = zone

    def model(self, agent: Agent) -> str:
        """The name of the model that answers for an agent; GatewayNotConfigured if there is none."""
        gateway = self._gateway_of(agent.model)
        return agent.model or gateway.default_model

    async def steps(
        self,
        user: User,
        agent: Agent,
        held: HeldTurn,
        control: TurnControl,
        *,
        state: TurnState = NEW_TURN,
        opening: Sequence[TurnResumed] = (),
    ) -> AsyncGenerator[TurnStep]:
        """Yields a turn's steps from its current state. The caller stores each step before the next."""
        turn, gateway, stop = held.turn, self._gateway_of(held.turn.model), control.stop
        hands_off = agent.settings.on_crash is OnCrash.CONTINUE
        prepared = None
        if state.is_new:
            try:
                prepared = await stop.guard(lambda: self._prepare(agent, held, gateway, state))
            except Stopped as exc:
                is_handed_off = exc.reason == "hand_off" and hands_off
                yield HandOff() if is_handed_off else stopped(turn, exc.reason)
                return
            except ThreadkeepError as exc:
                yield failed(exc, is_prepared=False)
                return

        async def build(tools: Sequence[ToolSpec]) -> ModelRequest:
            assert prepared is not None
            built = await _build(replace(prepared.sources, tools=tools), prepared.rules)
            await persist(lambda: self._store.receipts.add(turn, built.receipt, built.texts))
            return built.request

        run = run_turn(
            turn,
            build,
            gateway,
            self._turn_tools(
                user,
                agent,
                held,
                control,
                found=prepared.sources.found if prepared else state.found,
                used=state.used_servers,
            ),
            TurnLimits(
                agent.settings.max_iterations, agent.settings.generation_timeout_s, hands_off=hands_off
            ),
            stop,
            state=state,
            load=lambda ids: self._store.payloads.load(turn.conversation_id, ids),
            steering=control.steering,
            opening=(*opening, *(prepared.opening if prepared else ())),
        )
        step = None
        async with aclosing(run):
            async for step in run:
                yield step
        if isinstance(step, Done | Failed):  # the caller has stored it by now
            await self._follow_up(agent, held.conversation, gateway)

    def _turn_tools(
        self,
        user: User,
        agent: Agent,
        held: HeldTurn,
        control: TurnControl,
        *,
        found: Sequence[RetrievalHit],
        used: Collection[str],
    ) -> TurnTools:
        """The tools that a turn can use."""
        turn, session = held.turn, None
        if self._tools and self._gateway_of(turn.model).supports_tools:
            session = self._tools.session(Caller(agent, user, held.conversation), used)

        async def keep_payload(payload: Payload, content: bytes) -> None:
            await persist(lambda: self._store.payloads.add(payload, content))

        return TurnTools(
            Toolbox(
                session,
                LargeValues(turn.conversation_id, self._clock, keep_payload),
                self._schemas,
                found=found,
                turn_id=turn.id,
                user_id=user.id,
                keep_image=lambda file: self._keep_image(held.conversation, file),
                file_rules=self.file_rules(turn.model),
            ),
            TurnApprovals(self._store, held, agent.settings.approval_timeout_s, self._clock, control),
            agent.settings.tools,
            lambda ids: self._store.messages.ids_in_use(turn.conversation_id, ids),
        )

    async def _follow_up(self, agent: Agent, conversation: Conversation, gateway: Gateway) -> None:
        """Queues background work that follows from an answer."""
        self._history.note(conversation.id)
        is_first = conversation.title_source is TitleSource.DERIVED and conversation.last_seq <= 4
        if is_first and gateway.supports_tools:
            await self._jobs.add(TITLE_JOB, title_job(conversation))
        if is_due(agent, conversation):
            await self._jobs.add(COMPACTION_JOB, compaction_job(conversation))

    async def _prepare(self, agent: Agent, held: HeldTurn, gateway: Gateway, state: TurnState) -> _Prepared:
        """Prepares a turn, perhaps again: its node may have died after it showed some of this."""
        conversation, asked_id = held.conversation, held.turn.user_message_id
        # Loaded again: it may have been compacted, or that undone, since the turn began.
        compaction = None
        if conversation.archived_to_seq:
            compaction = await self._store.compactions.current(conversation.id)
        path = await self._path(agent, held, compaction)
        # A role stays active until the agent changes: its owner may have given it another one.
        activated = await self._activated_role(agent, conversation)
        summary = compaction.summary if compaction else None
        prompt = await self._prompts.assemble(agent, activated=activated, summary=summary)
        asked = next((message for message in path if message.id == asked_id), None)
        # Passages that were shown keep their numbers: another search may find others.
        found = () if state.found else await self._passages.before(agent, asked, gateway)
        newest = await self._store.receipts.newest(conversation.id)
        prior = newest.receipt if newest else None
        rules = self._rules(agent, gateway, held.turn.model)
        shortened = frozenset(prior.shortened if prior else ())
        sources = Sources(
            path=path,
            question_id=asked_id,
            components=prompt.components,
            found=state.found or [hit for it in found if isinstance(it, Retrieval) for hit in it.hits],
            payloads={
                # Without tools, results are sent as text, whatever form they had before.
                **await self._large_values(
                    conversation, path, shortened if gateway.supports_tools else frozenset()
                ),
                **await self._texts_of_files(conversation, path, rules, shortened),
            },
            prior=prior,
            is_new_window=newest is not None and not newest.is_current,
            model=held.turn.model,
            cache_key=conversation.id,
        )
        notices = _file_notices(asked.files, rules) if asked else ()
        opening = (*prompt.notices, *notices, *found)
        return _Prepared(sources, rules, [it for it in opening if it not in state.noticed])

    async def _path(self, agent: Agent, held: HeldTurn, compaction: Compaction | None) -> Sequence[Message]:
        """The latest messages of the active path, oldest first, with the question."""
        window = MessageWindow(
            after_seq=compaction.to_seq if compaction else 0,
            before_seq=held.reply.seq,
        )
        latest = await latest_messages(
            self._store.messages,
            held.conversation.id,
            window,
            most=agent.settings.context_messages or MOST_MESSAGES,
        )
        asked_id = held.turn.user_message_id
        if any(message.id == asked_id for message in latest):
            return latest
        # The question has since been archived, and is answered again.
        asked = await self._store.messages.get(held.conversation.id, asked_id)
        return [*([asked] if asked else ()), *latest]

    async def _activated_role(self, agent: Agent, conversation: Conversation) -> str | None:
        call = await self._store.messages.activated_role(conversation.id, since=agent.updated_at)
        role_id = call.arguments.get("role") if call else None
        return role_id if isinstance(role_id, str) else None

    async def _large_values(
        self, conversation: Conversation, path: Sequence[Message], shortened: Collection[str]
    ) -> Mapping[PayloadId, bytes | Lost]:
        """The values of the path's calls in the payload store, if the model receives them."""
        calls = [call for message in path for call in message.tool_calls if call.refs]
        if not calls:
            return {}
        refs = (ref for call in calls for ref in read_refs(call, is_short=call.sent_id in shortened))
        return await self._store.payloads.load(conversation.id, refs)

    async def _texts_of_files(
        self,
        conversation: Conversation,
        path: Sequence[Message],
        rules: ContextRules,
        shortened: Collection[str],
    ) -> Mapping[PayloadId, bytes | Lost]:
        """The texts of the path's files, if the model receives them."""
        files = FileRules(rules.files, rules.context_tokens)
        sent = (part for message in path for part in message.files if form_key(part) not in shortened)
        texts: dict[PayloadId, bytes | Lost] = {}
        for ref in dict.fromkeys(ref for it in sent if (ref := files.content_ref(it))):
            # One by one: each may have 100 MB.
            content = (await self._store.payloads.load(conversation.id, [ref]))[ref]
            texts[ref] = content if isinstance(content, Lost) else content[:MOST_TEXT_BYTES]
        return texts

    def file_rules(self, model: str | None) -> FileRules:
        """The files that the model receives as is."""
        gateway = self._models.gateway_of(model)
        if gateway is None:
            return NO_FILES
        return FileRules(gateway.takes_files(model), gateway.context_tokens, can_recall=True)

    def _rules(self, agent: Agent, gateway: Gateway, model: str | None) -> ContextRules:
        settings = agent.settings
        return ContextRules(
            zone=self._zone,
            context_tokens=gateway.context_tokens,
            context_messages=settings.context_messages,
            result_tokens=settings.tool_result_tokens,
            thoughts=settings.context_thoughts,
            files=gateway.takes_files(model),
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
        )

    def _gateway_of(self, model: str | None) -> Gateway:
        gateway = self._models.gateway_of(model)
        if gateway is None:
            raise GatewayNotConfigured
        return gateway


def _file_notices(files: Sequence[FilePart], rules: ContextRules) -> Iterator[Notice]:
    """Notices about files that the model receives only as a line."""
    given = FileRules(rules.files, rules.context_tokens)
    if unseen := [it.file_name for it in files if is_image(it.media_type) and not rules.files.images]:
        yield Notice("IMAGES_NOT_TAKEN", _UNSEEN.format(", ".join(unseen)))
    if scans := [it.file_name for it in files if given.is_unread_scan(it)]:
        yield Notice("PDF_WITHOUT_TEXT", _UNREAD.format(", ".join(scans)))


async def _build(sources: Sources, rules: ContextRules) -> BuiltRequest:
    if len(sources.path) <= MOST_MESSAGES_AT_ONCE and _result_bytes(sources) <= MOST_BYTES_AT_ONCE:
        return build_request(sources, rules)
    return await asyncio.to_thread(build_request, sources, rules)


def _result_bytes(sources: Sources) -> int:
    """The approximate size of a request's results; structured ones in rows are small."""
    loaded = (len(content) for content in (sources.payloads or {}).values() if isinstance(content, bytes))
    calls = (call for message in sources.path for call in message.tool_calls)
    return sum(loaded) + sum(len(call.result) for call in calls if isinstance(call.result, str))
