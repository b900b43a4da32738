"""Turns that resume from their logs: after a crash, a deploy, or their user's decision."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace

from threadkeep.context.attachments import NO_FILES
from threadkeep.context.request import rebuild_request
from threadkeep.domain.agent import Agent, OnCrash
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.errors import AgentAbsent, GatewayNotConfigured, ModelNotFound
from threadkeep.domain.events import (
    EventBody,
    Failed,
    Terminal,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    TurnResumed,
)
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.turn import TurnCode
from threadkeep.domain.user import User, UserRole
from threadkeep.engine.code.replay import CodeState, ReplayingCode
from threadkeep.engine.ending import ABANDONED, PROCESS_ENDED, last_events, stopped
from threadkeep.engine.journal import BegunByAdmin
from threadkeep.engine.loop import HandOff, Together, TurnStep
from threadkeep.engine.replay import Replaying, TurnState
from threadkeep.log.format import LogEntry
from threadkeep.ports.models import ConnectedModel
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.turn_course import TurnCourse
from threadkeep.services.replies.code_replies import CodeReplies, last_without_program
from threadkeep.services.replies.model_replies import ModelReplies, file_rules
from threadkeep.services.replies.turn_starts import TurnStarts
from threadkeep.storage.code.programs import AWAITED_MS
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn

MOST_ATTEMPTS = 3
"""After this many losses of its node without a finished model call, a turn is not resumed."""

HOUR_MS = 60 * 60 * 1000


class ResumedTurns:
    """Resumes turns if that is allowed."""

    def __init__(
        self,
        store: Store,
        replies: ModelReplies,
        starts: TurnStarts,
        code_replies: CodeReplies,
        *,
        within_hours: float,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._store = store
        self._replies = replies
        self._starts = starts
        self._code_replies = code_replies
        self._within_ms = int(within_hours * HOUR_MS)
        self._caps = caps

    @property
    def within_ms(self) -> int:
        """How long after the loss of its node a turn is resumed."""
        return self._within_ms

    def knows(self, model: str | None) -> bool:
        """Whether this node has a turn's model."""
        return self._found(model) is not None

    def _found(self, model: str | None) -> ConnectedModel | None:
        try:
            return self._replies.equipment.models.get(model)
        except (GatewayNotConfigured, ModelNotFound):
            return None

    def resume(self, held: HeldTurn) -> "ReadTurn":
        """A turn that this node holds, before its log is read."""
        return ReadTurn(self, held)

    def course(self, read: "ReadTurn", *, is_takeover: bool) -> TurnCourse:
        """How a turn runs from the end of its log."""
        user = read.user
        return TurnCourse(
            lambda held, control: self._steps(user, held, read, control, is_takeover=is_takeover),
            self._starts.prepare_next_of(user),
        )

    async def _steps(
        self, user: User, held: HeldTurn, read: "ReadTurn", control: TurnControl, *, is_takeover: bool
    ) -> AsyncGenerator[TurnStep]:
        """Yields a turn's steps from the end of its log; ends the turn if it can't resume."""
        if held.turn.code is not None:
            steps = self._code_steps(user, held, held.turn.code, read, control, is_takeover=is_takeover)
            async with aclosing(steps):
                async for step in steps:
                    yield step
            return
        state = await self._state(held, read)
        agent = await self._store.agents.get(held.conversation.agent_id)
        if agent is None or not agent.is_visible_to(user):
            end = Failed("INTERRUPTED", "This conversation's agent is no longer available.")
        else:
            end = self._refusal(held, agent, state, is_takeover=is_takeover)
        if agent is None or end is not None:
            reason = control.stop.reason
            end = stopped(held.turn, reason) if reason else end or ABANDONED
            for event in self._last_events(held, end, state):
                yield event
            return
        opening = (TurnResumed(held.attempts),) if is_takeover else ()
        agent = self._caps.limited(agent)
        steps = self._replies.steps(user, agent, held, control, state=state, opening=opening)
        async with aclosing(steps):
            async for step in steps:
                yield step

    async def _code_steps(
        self,
        user: User,
        held: HeldTurn,
        code: TurnCode,
        read: "ReadTurn",
        control: TurnControl,
        *,
        is_takeover: bool,
    ) -> AsyncGenerator[TurnStep]:
        """The same for a turn that needs a program."""
        assert read.replaying_code is not None
        payloads = await self._store.payloads.load(held.conversation.id, read.refs)
        state = await asyncio.to_thread(read.replaying_code.state, payloads)
        agent = await self._store.agents.get(held.conversation.agent_id)
        if agent is None or not agent.is_visible_to(user):
            end = Failed("INTERRUPTED", "This conversation's agent is no longer available.")
        elif not self._starts.programs.can_run(code):
            if control.stop.reason is None and not self._is_left_too_long(held, state):
                yield HandOff()  # since it took the turn over, this node has begun to end
                return
            end = absent(code.key) if state.code is None else ABANDONED
        else:
            end = self._is_given_up(held, agent, is_takeover=is_takeover)
        for paid, reported in await self._code_replies.unpaid(held, state):
            yield Together((paid, reported))
            state = replace(state, usage=state.usage + reported.usage)
        reason = control.stop.reason
        if agent is None or end is not None or reason in ("abort", "expire"):  # it isn't run to be stopped
            end = stopped(held.turn, reason) if reason else end or ABANDONED
            for step in last_without_program(held, state, end):
                yield step
            return
        opening = (TurnResumed(held.attempts),) if is_takeover and state.code is not None else ()
        steps = self._code_replies.steps(
            user, self._caps.limited(agent), held, control, state=state, opening=opening
        )
        async with aclosing(steps):
            async for step in steps:
                yield step

    def _is_left_too_long(self, held: HeldTurn, state: CodeState) -> bool:
        """Whether nobody has had a turn's program for so long that any node ends it."""
        most_ms = AWAITED_MS if state.code is None else self._within_ms
        return held.ownerless_ms > most_ms

    def _is_given_up(self, held: HeldTurn, agent: Agent, *, is_takeover: bool) -> Failed | None:
        """Whether a turn has lost its node too often, or for too long."""
        is_too_late = held.attempts > MOST_ATTEMPTS or held.ownerless_ms > self._within_ms
        if is_takeover and (is_too_late or agent.settings.on_crash is OnCrash.INTERRUPT):
            return ABANDONED
        return None

    def _refusal(self, held: HeldTurn, agent: Agent, state: TurnState, *, is_takeover: bool) -> Failed | None:
        """Why a turn ends; None if it resumes."""
        if (end := self._is_given_up(held, agent, is_takeover=is_takeover)) is not None:
            return end
        try:
            self._replies.model_of(held.turn, state)
        except (GatewayNotConfigured, ModelNotFound) as exc:
            return Failed("INTERRUPTED", exc.message, retryable=True)
        return None

    async def _state(self, held: HeldTurn, read: "ReadTurn") -> TurnState:
        """The turn's state, made in a thread: its log may be long. A turn that died before its receipt was
        stored is prepared again.
        """
        turn = held.turn
        sent = await self._store.receipts.get(turn.conversation_id, turn.id)
        if sent is None:
            return await asyncio.to_thread(read.replaying.state, None, {}, NO_FILES)
        payloads = await self._store.payloads.load(turn.conversation_id, read.refs)
        model = self._found(turn.model)
        files = file_rules(model) if model else NO_FILES
        return await asyncio.to_thread(lambda: read.replaying.state(rebuild_request(*sent), payloads, files))

    def _last_events(self, held: HeldTurn, end: Terminal, state: TurnState) -> Iterator[EventBody]:
        model = state.model or held.turn.model
        return last_events(
            end,
            open_calls=state.open_calls,
            why=PROCESS_ENDED,
            reported=state.usage,
            unreported=state.unreported and self._replies.equipment.spending.priced(model, state.unreported),
            model=model,
            waiting=state.waiting,
        )


class ReadTurn:
    """What a turn's log says, entry by entry."""

    def __init__(self, turns: ResumedTurns, held: HeldTurn) -> None:
        self._turns = turns
        self.user = User(held.conversation.user_id)
        """The turn's user, with the role they had when it started."""
        self.replaying = Replaying()
        self.replaying_code = ReplayingCode() if held.turn.code is not None else None
        """Instead, where the turn needs a program."""
        self.refs: list[PayloadId] = []
        """The values of its calls that are stored apart."""

    def add(self, entry: LogEntry) -> None:
        """The next entry."""
        (self.replaying_code or self.replaying).add(entry)
        match entry:
            case BegunByAdmin():
                self.user = User(self.user.id, UserRole.ADMIN)
            case TurnEvent(body=ToolCalled() | ToolResultStored() as body):
                self.refs += body.refs.values()
            case _:
                pass

    def course(self, *, is_takeover: bool) -> TurnCourse:
        """How the turn runs on."""
        return self._turns.course(self, is_takeover=is_takeover)


def absent(key: str) -> Failed:
    """Nobody runs a turn's program."""
    return Failed(AgentAbsent.code, f"The agent's program ({key}) isn't running.", retryable=True)
