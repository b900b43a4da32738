"""Replies of agents in code: a program runs instead of our loop, with the same models, tools and rules."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Raw

from threadkeep.domain.agent import Agent, OnCrash
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import Done, Failed, TurnResumed
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import MessageWindow
from threadkeep.domain.payload import Lost
from threadkeep.domain.user import User
from threadkeep.engine.code.replay import CodeState
from threadkeep.engine.code.run import run_code
from threadkeep.engine.code.running import MOST_STEPS, CodeSurroundings
from threadkeep.engine.ending import failed
from threadkeep.engine.journal import CodeStarted, StateSaved
from threadkeep.engine.large_values import LargeValues
from threadkeep.engine.loop import HandOff, TurnStep
from threadkeep.engine.replay import NEW_TURN
from threadkeep.engine.turn_models import TurnModels
from threadkeep.ports.models import ConnectedModel
from threadkeep.ports.programs import Code, Programs
from threadkeep.runtime.control import TurnControl
from threadkeep.services.equipment import limits_of
from threadkeep.services.path import latest_messages
from threadkeep.services.replies.model_replies import ModelReplies
from threadkeep.services.replies.model_requests import ModelRequests
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.wire.messages import message_view
from threadkeep.wire.programs import (
    NOTHING,
    ProgramTool,
    Start,
    StartConversation,
    StartFile,
    StartMessage,
    StartUser,
)

MOST_HISTORY = 1_000
"""How many messages a program can ask for at once."""


class CodeReplies:
    """Runs the programs of agents in code."""

    def __init__(
        self, store: Store, replies: ModelReplies, requests: ModelRequests, programs: Programs
    ) -> None:
        self._store = store
        self._replies = replies
        self._requests = requests
        self._programs = programs

    def code_of(self, held: HeldTurn) -> Code | None:
        """The code that runs a turn on this node: of the version that began it, else a higher one."""
        needed = held.turn.code
        if needed is None:
            return None
        fitting = (it for it in self._programs.codes if it.key == needed.key)
        return next((it for it in fitting if needed.version is None or it.version >= needed.version), None)

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
        code = self.code_of(held)
        if code is None:  # a node that has the program runs it
            yield HandOff()
            return
        try:
            model = self._replies.model_of(held.turn, NEW_TURN)
            start = await self._start(user, agent, held, state, code)
            around = await self._around(user, agent, held, control, model, start)
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
        start: Start,
    ) -> CodeSurroundings:
        replies, turn = self._replies, held.turn
        equipment = replies.equipment
        spending = await equipment.spending.of_turn(user, held, agent, control.calling)

        def models(name: str | None) -> TurnModels:
            chosen = model if name is None else equipment.models.get(equipment.choice.chosen(agent, name).id)
            return equipment.turn_models(agent, chosen)

        async def history(limit: int | None, as_context: bool) -> Sequence[Mapping[str, Any]]:
            if as_context:
                return await self._context(agent, held, model)
            return await self._history(held, limit)

        return CodeSurroundings(
            program=self._programs.start(start),
            models=models,
            spending=lambda call: spending,
            tools=replies.turn_tools(user, agent, held, control, model),
            toolbox=lambda session: replies.toolbox(session, user, agent, held, model),
            rules=agent.settings.tools,
            requests=replies.user_requests(agent, held, control),
            values=LargeValues(turn.conversation_id, equipment.clock, replies.keep),
            load=lambda ids: self._store.payloads.load(turn.conversation_id, ids),
            history=history,
            result_tokens=model.model.context_tokens // 4,
            limits=limits_of(agent, hands_off=agent.settings.on_crash is OnCrash.CONTINUE),
            clock=equipment.clock,
            stop=control.stop,
            steering=control.steering,
            most_steps=MOST_STEPS,
        )

    async def _start(self, user: User, agent: Agent, held: HeldTurn, state: CodeState, code: Code) -> Start:
        turn, conversation = held.turn, held.conversation
        message = await self._store.messages.get(conversation.id, turn.user_message_id)
        files = message.files if message else ()
        begun_with = turn.begun_with
        return Start(
            turn=turn.id,
            run=held.fence,
            agent=code.key,
            version=state.code.version if state.code else code.version,
            user=StartUser(user.id, user.role.value),
            conversation=StartConversation(
                conversation.id, conversation.title or "", dict(conversation.metadata)
            ),
            message=StartMessage(
                turn.user_message_id,
                message.text if message else "",
                tuple(StartFile(it.file_id, it.file_name, it.media_type, it.size) for it in files),
            ),
            at=turn.started_at,
            attempt=held.attempts,
            is_resumed=state.code is not None,
            model=turn.model,
            client_tools=tuple(
                ProgramTool(it.name, it.description, dict(it.parameters))
                for it in (begun_with.tools if begun_with else ())
            ),
            state=await self._state(held, state),
            saved={scope: await self._saved(held, it) for scope, it in state.saved.items()},
        )

    async def _state(self, held: HeldTurn, state: CodeState) -> Raw:
        """The state as the turn last saved it, else that of the nearest reply before it on its path."""
        if (saved := state.saved_state()) is not None:
            return saved.state if saved.state_ref is None else await self._load(held, saved.state_ref)
        return NOTHING

    async def _saved(self, held: HeldTurn, saved: StateSaved) -> Raw:
        return saved.value if saved.ref is None else await self._load(held, saved.ref)

    async def _load(self, held: HeldTurn, ref: str) -> Raw:
        id_ = PayloadId(ref)
        content = (await self._store.payloads.load(held.conversation.id, [id_]))[id_]
        if isinstance(content, Lost):
            raise LookupError(f"a saved value is lost: {content.reason}")
        return Raw(content)

    async def _history(self, held: HeldTurn, limit: int | None) -> Sequence[Mapping[str, Any]]:
        """The messages before the turn's, as clients have them, oldest first."""
        question = await self._store.messages.get(held.conversation.id, held.turn.user_message_id)
        before = question.seq if question else held.reply.seq
        most = min(limit or MOST_HISTORY, MOST_HISTORY)
        window = MessageWindow(after_seq=0, before_seq=before)
        found = await latest_messages(self._store.messages, held.conversation.id, window, most=most)
        return [msgspec.to_builtins(message_view(it)) for it in found]

    async def _context(
        self, agent: Agent, held: HeldTurn, model: ConnectedModel
    ) -> Sequence[Mapping[str, Any]]:
        """The messages up to the turn's question, as a model receives them."""
        prepared = await self._requests.prepare(agent, held, model, NEW_TURN)
        built = await prepared.build(())
        return [
            {"role": it.role, "content": [msgspec.to_builtins(block) for block in it.blocks]}
            for it in built.request.messages
        ]
