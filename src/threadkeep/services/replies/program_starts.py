"""Starts programs for turns: with what the turn began with, and the state that it continues from."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Raw

from threadkeep.domain.agent import Code
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.message import Message
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.code.programs import ProgramRun, Start
from threadkeep.engine.code.replay import CodeState
from threadkeep.engine.code.start import start_of
from threadkeep.log.writer import persist
from threadkeep.runtime.own_address import OwnAddress
from threadkeep.runtime.programs import NodePrograms
from threadkeep.services.replies.run_tokens import RunTokens
from threadkeep.storage.store import Store


class ProgramStarts:
    """Runs programs' functions from the top."""

    def __init__(self, store: Store, programs: NodePrograms, tokens: RunTokens, address: OwnAddress) -> None:
        self._store = store
        self._programs = programs
        self._tokens = tokens
        self._address = address

    def code_of(self, turn: Turn) -> Code | None:
        """The code that runs a turn on this node: of the version that began it, else a higher one."""
        needed = turn.code
        if needed is None:
            return None
        fitting = (it for it in self._programs.codes if it.key == needed.key)
        return next((it for it in fitting if it.version >= (needed.version or 0)), None)

    def version_of(self, key: str) -> int | None:
        """The version of a program that runs on this node; None if it doesn't."""
        return self._programs.version_of(key)

    async def prepare(
        self,
        user: User,
        turn: Turn,
        conversation: Conversation,
        state: CodeState,
        code: Code,
        *,
        run: int,
        attempt: int = 0,
        is_check: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> Start:
        """What a run of a program begins with."""
        message = await self._store.messages.get(conversation.id, turn.user_message_id)
        if state.code is None and user.name is None:
            user = await self._described(user)
        token = None if is_check else await self._tokens.make(turn.id, run, run)
        start = start_of(
            turn,
            conversation,
            user,
            message,
            code,
            state,
            run=run,
            attempt=attempt,
            kept=await self._state(turn, state, message),
            saved={scope: await self._value(turn, it.value, it.ref) for scope, it in state.saved.items()},
            is_check=is_check,
        )
        return msgspec.structs.replace(
            start, token=token or "", url=self._address.url or "", settings=dict(settings or {})
        )

    def run(self, start: Start) -> ProgramRun:
        """Runs a program's function from the top."""
        return self._programs.start(start)

    async def _described(self, user: User) -> User:
        """A user as their last sign-in described them: a key, or another node, doesn't say."""
        known = await self._store.known_users.find(user.id)
        return user if known is None else replace(user, name=known.name, groups=known.groups)

    async def _state(self, turn: Turn, state: CodeState, question: Message | None) -> bytes | None:
        """The state as the turn last saved it, else that of the nearest reply before it on its path."""
        if (saved := state.saved_state()) is not None:
            return await self._value(turn, saved.state, saved.state_ref)
        before = question.parent_id if question else None
        return await self._store.states.before(turn.conversation_id, before)

    async def _value(self, turn: Turn, value: Raw, ref: str | None) -> bytes:
        if ref is None:
            return bytes(value)
        content = await persist(lambda: self._store.states.value(turn.id, ref))
        if content is None:
            raise LookupError("a saved value is lost")
        return content
