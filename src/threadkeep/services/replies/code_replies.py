"""Replies of agents in code: a program runs instead of our loop, with the same models, tools and rules."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import Raw

from threadkeep.domain.agent import Agent, Code, OnCrash
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import Done, Failed, TurnResumed
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.message import Message, MessageWindow
from threadkeep.domain.user import User
from threadkeep.engine.code.programs import ProgramRun
from threadkeep.engine.code.replay import CodeState
from threadkeep.engine.code.run import run_code
from threadkeep.engine.code.running import MOST_STEPS, CodeSurroundings
from threadkeep.engine.code.start import as_clients_have, as_models_receive, start_of
from threadkeep.engine.ending import failed
from threadkeep.engine.journal import CodeStarted
from threadkeep.engine.loop import HandOff, TurnStep
from threadkeep.engine.replay import NEW_TURN
from threadkeep.engine.turn_models import TurnModels
from threadkeep.log.writer import persist
from threadkeep.ports.models import ConnectedModel
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.programs import NodePrograms
from threadkeep.services.equipment import limits_of
from threadkeep.services.path import latest_messages
from threadkeep.services.replies.model_replies import ModelReplies
from threadkeep.services.replies.model_requests import ModelRequests
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn

MOST_HISTORY = 1_000
"""How many messages a program can ask for at once."""


class CodeReplies:
    """Runs the programs of agents in code."""

    def __init__(
        self, store: Store, replies: ModelReplies, requests: ModelRequests, programs: NodePrograms
    ) -> None:
        self._store = store
        self._replies = replies
        self._requests = requests
        self._programs = programs

    def _code_of(self, held: HeldTurn) -> Code | None:
        """The code that runs a turn on this node: of the version that began it, else a higher one."""
        needed = held.turn.code
        if needed is None or self._programs.port is None:
            return None
        fitting = (it for it in self._programs.codes if it.key == needed.key)
        return next((it for it in fitting if it.version >= (needed.version or 0)), None)

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
        code = self._code_of(held)
        if code is None:  # a node that has the program runs it
            yield HandOff()
            return
        try:
            model = self._replies.model_of(held.turn, NEW_TURN)
            program = await self._program(user, held, state, code)
            around = await self._around(user, agent, held, control, model, program)
        except ThreadkeepError as exc:
            yield failed(exc, is_prepared=False)
            return
        if state.code is None:
            yield CodeStarted(code.key, code.version)
        step = None
        async with aclosing(run_code(held.turn, around, state=state, opening=opening)) as steps:
            async for step in steps:
                yield step
        if isinstance(step, Done | Failed):  # the caller has stored it by now
            await self._replies.follow_up(agent, held, model)

    async def _around(
        self,
        user: User,
        agent: Agent,
        held: HeldTurn,
        control: TurnControl,
        model: ConnectedModel,
        program: ProgramRun,
    ) -> CodeSurroundings:
        replies, turn = self._replies, held.turn
        equipment = replies.equipment
        account = await equipment.spending.of_program(user, held, agent)

        def models(name: str | None) -> TurnModels:
            chosen = model if name is None else equipment.models.get(equipment.choice.chosen(agent, name).id)
            return equipment.turn_models(agent, chosen)

        async def history(limit: int | None, as_context: bool) -> Sequence[Mapping[str, Any]]:
            if as_context:
                return await self._context(agent, held, model)
            return await self._history(held, limit)

        async def keep_value(content: bytes) -> str:
            id_ = new_uuid()
            await persist(lambda: self._store.states.add_value(turn.id, turn.conversation_id, id_, content))
            return id_

        return CodeSurroundings(
            program=program,
            models=models,
            spending=account.of_call,
            tools=replies.turn_tools(user, agent, held, control, model),
            toolbox=lambda session: replies.toolbox(session, user, agent, held, model),
            rules=agent.settings.tools,
            requests=replies.user_requests(agent, held, control),
            keep_value=keep_value,
            value=lambda id_: self._store.states.value(turn.id, id_),
            load=lambda ids: self._store.payloads.load(turn.conversation_id, ids),
            history=history,
            result_tokens=model.model.context_tokens // 4,
            limits=limits_of(agent, hands_off=agent.settings.on_crash is OnCrash.CONTINUE),
            clock=equipment.clock,
            stop=control.stop,
            steering=control.steering,
            most_steps=(agent.code and agent.code.max_steps) or MOST_STEPS,
        )

    async def _program(self, user: User, held: HeldTurn, state: CodeState, code: Code) -> ProgramRun:
        """Runs the program's function from the top."""
        turn, conversation = held.turn, held.conversation
        message = await self._store.messages.get(conversation.id, turn.user_message_id)
        start = start_of(
            turn,
            conversation,
            user,
            message,
            code,
            state,
            run=held.fence,
            attempt=held.attempts,
            kept=await self._state(held, state, message),
            saved={scope: await self._value(held, it.value, it.ref) for scope, it in state.saved.items()},
        )
        assert self._programs.port is not None
        return self._programs.port.start(start)

    async def _state(self, held: HeldTurn, state: CodeState, question: Message | None) -> bytes | None:
        """The state as the turn last saved it, else that of the nearest reply before it on its path."""
        if (saved := state.saved_state()) is not None:
            return await self._value(held, saved.state, saved.state_ref)
        before = question.parent_id if question else None
        return await self._store.states.before(held.conversation.id, before)

    async def _value(self, held: HeldTurn, value: Raw, ref: str | None) -> bytes:
        if ref is None:
            return bytes(value)
        content = await self._store.states.value(held.turn.id, ref)
        if content is None:
            raise LookupError("a saved value is lost")
        return content

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
