"""Replies of agents in code: a program runs instead of our loop, with the same models, tools and rules."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from threadkeep.domain.agent import ASKING_OTHERS, Agent, OnCrash
from threadkeep.domain.approval import ApprovalAction
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import (
    ApprovalResponse,
    Done,
    EventBody,
    Failed,
    Terminal,
    TurnResumed,
    UsageReported,
)
from threadkeep.domain.file import FileKind
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.image import ImageTokenRule
from threadkeep.domain.message import MessageWindow, Usage
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.code.means import AskedFirst, nothing_first
from threadkeep.engine.code.outside_calls import LiveRuns
from threadkeep.engine.code.programs import Start
from threadkeep.engine.code.replay import CodeState
from threadkeep.engine.code.run import run_code
from threadkeep.engine.code.running import MOST_STEPS, CodeSurroundings
from threadkeep.engine.code.start import as_clients_have, as_models_receive
from threadkeep.engine.ending import PROCESS_ENDED, failed, last_events
from threadkeep.engine.journal import CallPaid, CodeStarted
from threadkeep.engine.loop import HandOff, TurnStep
from threadkeep.engine.outputs import output_check
from threadkeep.engine.replay import NEW_TURN
from threadkeep.engine.turn_models import TurnModels
from threadkeep.log.writer import persist
from threadkeep.metrics import Metrics
from threadkeep.ports.models import ConnectedModel
from threadkeep.runtime.control import TurnControl
from threadkeep.services.equipment import limits_of
from threadkeep.services.path import latest_messages
from threadkeep.services.replies.code_checks import CodeChecks
from threadkeep.services.replies.model_replies import ModelReplies
from threadkeep.services.replies.model_requests import ModelRequests
from threadkeep.services.replies.other_agents import AgentsOfTurn, once
from threadkeep.services.replies.program_starts import ProgramStarts
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn

LEAST_FOREIGN_CONTEXT = 128_000
"""How many tokens a model of a program's own takes at least, as far as anybody knows."""
MOST_HISTORY = 1_000
"""How many messages a program can ask for at once."""


class CodeReplies:
    """Runs the programs of agents in code."""

    def __init__(
        self,
        store: Store,
        replies: ModelReplies,
        requests: ModelRequests,
        starts: ProgramStarts,
        checks: CodeChecks,
        metrics: Metrics,
        live: LiveRuns,
        *,
        patience_s: float,
        pause_after_s: float,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._caps = caps
        self._metrics = metrics
        self._live = live
        self._patience_s = patience_s
        self._pause_after_s = pause_after_s
        self._store = store
        self._replies = replies
        self._requests = requests
        self._starts = starts
        self._checks = checks

    async def steps(
        self,
        user: User,
        agent: Agent,
        held: HeldTurn,
        control: TurnControl,
        *,
        state: CodeState,
        opening: Sequence[TurnResumed] = (),
    ) -> AsyncGenerator[TurnStep]:
        """Yields a turn's steps. The caller stores each step before the next."""
        turn, code = held.turn, self._starts.code_of(held.turn)
        if code is None:  # a node that has the program runs it
            yield HandOff()
            return
        try:
            model = self._replies.model_of(turn, NEW_TURN)
            start = await persist(
                lambda: self._starts.prepare(
                    user,
                    turn,
                    held.conversation,
                    state,
                    code,
                    run=held.fence,
                    attempt=held.attempts,
                    settings=agent.program_settings,
                )
            )
            prepared = await self._around(user, agent, held, control, model, start)
        except ThreadkeepError as exc:
            for event in last_without_program(held, state, failed(exc, is_prepared=False)):
                yield event
            return
        self._metrics.replayed[code.key] += len(state.recorded)
        begun = (
            (CodeStarted(code.key, code.version, user=start.user, conversation=start.conversation),)
            if state.code is None
            else ()
        )
        step = None
        # Nothing is awaited between the program's start and the code that ends it.
        with self._live.living(turn.id, held.fence) as outside:
            around = replace(prepared, outside=outside)
            async with aclosing(run_code(turn, around, state=state, opening=(*begun, *opening))) as steps:
                async for step in steps:
                    yield step
        if isinstance(step, Done | Failed):  # the caller has stored it by now
            await self._replies.follow_up(agent, held, model)
            self._checks.begin(user, agent, turn, held.conversation)

    async def unpaid(self, held: HeldTurn, state: CodeState) -> Sequence[tuple[CallPaid, UsageReported]]:
        """What the model calls have used that were cut off with nothing reserved: providers bill those, too.

        One whose receipt isn't stored has not begun.
        """
        turn, spending = held.turn, self._replies.equipment.spending
        found: list[tuple[CallPaid, UsageReported]] = []
        for call in state.unpaid:
            sent = await self._store.receipts.get_call(turn.conversation_id, turn.id, call.number)
            if sent is not None:
                receipt, _ = sent
                used = Usage(receipt.token_estimate, call.written_tokens, estimated=True)
                priced = spending.priced(receipt.model, used)
                paid = CallPaid(new_uuid(), call.at, call=call.step_id, agents=call.agents)
                found.append((paid, UsageReported.of(priced, receipt.model)))
        return found

    async def _around(
        self,
        user: User,
        agent: Agent,
        held: HeldTurn,
        control: TurnControl,
        model: ConnectedModel,
        start: Start,
    ) -> CodeSurroundings:
        """What the program runs with; it is started last, when nothing can fail any more."""
        replies, turn = self._replies, held.turn
        equipment = replies.equipment
        account = await equipment.spending.of_program(user, held, agent)

        def models(name: str | None) -> TurnModels:
            chosen = model if name is None else equipment.models.get(equipment.choice.chosen(agent, name).id)
            return equipment.turn_models(agent, chosen)

        async def history(
            limit: int | None, as_context: bool, files: Sequence[FileKind] | None
        ) -> Sequence[Mapping[str, Any]]:
            if as_context:
                return await self._context(agent, held, model if files is None else _foreign(model, files))
            return await self._history(held, limit)

        async def keep_value(content: bytes) -> str:
            id_ = new_uuid()
            await persist(lambda: self._store.states.add_value(turn.id, turn.conversation_id, id_, content))
            return id_

        tools = replies.turn_tools(user, agent, held, control, model)
        requests = replies.user_requests(agent, held, control)

        async def asked_first() -> AskedFirst:
            prepared = await self._requests.prepare(agent, held, model, NEW_TURN)
            request = (await prepared.build(())).request
            return AskedFirst(request.system, request.temperature, request.max_tokens, request.output)

        others = AgentsOfTurn(
            self._store,
            replies,
            self._requests,
            self._starts,
            self._caps,
            await self._user_of(user, turn),
            agent,
            held,
            control,
        )
        return CodeSurroundings(
            program=self._starts.run(start),
            agents=others,
            first=once(asked_first) if agent.program == ASKING_OTHERS else nothing_first,
            offered=lambda: others.offered(agent),
            models=models,
            spending=account.of_call,
            own_call=account.own_call,
            tools=tools,
            toolbox=lambda session: replies.toolbox(session, user, agent, held, model),
            rules=agent.settings.tools,
            requests=requests,
            keep_value=keep_value,
            value=lambda id_: persist(lambda: self._store.states.value(turn.id, id_)),
            load=lambda ids: persist(lambda: self._store.payloads.load(turn.conversation_id, ids)),
            history=history,
            result_tokens=model.model.context_tokens // 4,
            limits=limits_of(agent, hands_off=agent.settings.on_crash is OnCrash.CONTINUE),
            clock=equipment.clock,
            stop=control.stop,
            steering=control.steering,
            check_output=output_check(equipment.schemas, user.id),
            most_steps=(agent.code and agent.code.max_steps) or MOST_STEPS,
            patience_s=self._patience_s,
            pause_after_s=self._pause_after_s,
        )

    async def _user_of(self, user: User, turn: Turn) -> User | None:
        """A turn's user as far as the key allows that began it; None if that was deleted since."""
        if turn.key_id is None:
            return user
        found = await self._replies.equipment.spending.with_key(user, turn.key_id)
        return found if found.key is not None else None

    async def _history(self, held: HeldTurn, limit: int | None) -> Sequence[Mapping[str, Any]]:
        """The messages before the turn's, as clients have them, oldest first."""
        question = await self._store.messages.get(held.conversation.id, held.turn.user_message_id)
        before = question.seq if question else held.reply.seq
        most = min(limit or MOST_HISTORY, MOST_HISTORY)
        window = MessageWindow(after_seq=0, before_seq=before)
        found = await latest_messages(self._store.messages, held.conversation.id, window, most=most)
        return as_clients_have(found)

    async def _context(
        self, agent: Agent, held: HeldTurn, model: ConnectedModel
    ) -> Sequence[Mapping[str, Any]]:
        """The messages up to the turn's question, as a model receives them."""
        prepared = await self._requests.prepare(agent, held, model, NEW_TURN)
        built = await prepared.build(())
        return as_models_receive(built.request.messages)


def _foreign(model: ConnectedModel, files: Sequence[FileKind]) -> ConnectedModel:
    """A model of the program's own; only the files that it takes are known, and its context is guessed."""
    known = model.model
    images = (known.images or ImageTokenRule.OPENAI_TILES) if "images" in files else None
    context_tokens = max(known.context_tokens, LEAST_FOREIGN_CONTEXT)
    supposed = replace(known, images=images, pdfs="pdfs" in files, context_tokens=context_tokens)
    return replace(model, model=supposed)


def last_without_program(held: HeldTurn, state: CodeState, end: Terminal) -> Iterator[EventBody]:
    """Ends a turn whose program isn't run."""
    if isinstance(end, Done) and end.stop_reason == "expired":
        for request_id in state.open_requests:
            yield ApprovalResponse(request_id, ApprovalAction.EXPIRE)
    yield from last_events(
        end,
        open_calls=state.open_calls,
        why=PROCESS_ENDED,
        reported=state.usage,
        unreported=None,
        model=held.turn.model,
        waiting={id_ for id_, call in state.calls.items() if call.open_requests},
    )
