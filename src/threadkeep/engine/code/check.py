"""Checks whether a program does the same again: it runs once more, against what its turn has recorded.

It receives what was recorded, and nothing new: no step runs, nothing is stored, shown or charged.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from threadkeep.domain.events import Failed, Terminal, Text
from threadkeep.domain.text import storable
from threadkeep.domain.turn import Turn
from threadkeep.engine.code import codes
from threadkeep.engine.code.claims import Claims, Diverged, OpenClaim
from threadkeep.engine.code.deliveries import Deliveries, LoadValue
from threadkeep.engine.code.places import ambiguous, place_of
from threadkeep.engine.code.programs import ProgramRun
from threadkeep.engine.code.replay import CodeState
from threadkeep.engine.code.shown import ShownOutput, body_of
from threadkeep.engine.code.takes import NULL, content_of
from threadkeep.engine.loop import LoadContents, nothing_stored
from threadkeep.wire.claim_keys import describe_key
from threadkeep.wire.programs import (
    Ack,
    Claim,
    ContentClaim,
    End,
    FromProgram,
    Output,
    ProgramLost,
    Result,
    SaveClaim,
    Settled,
    StepDone,
    StepRepeats,
    UsageClaim,
    output_size,
)

PATIENCE_S = 10.0
MOST_PATIENCE_S = 120.0
"""How long a program may ask for nothing that is recorded, if it asks for nothing new, either."""
PATIENCE_WITH_NEW_S = 0.5
MOST_PATIENCE_WITH_NEW_S = 10.0
"""The same if it asks for something new. The first run may have, too, and have cancelled it at once."""


@dataclass(frozen=True, slots=True)
class _NewClaim:
    open: OpenClaim
    name: str
    """For the program's author."""


class _Different(Exception):
    """The program does something else; says what."""


async def difference(
    turn: Turn,
    program: ProgramRun,
    state: CodeState,
    load: LoadValue,
    end: Terminal,
    contents: LoadContents = nothing_stored,
) -> str | None:
    """What a program does otherwise than in its turn, which ended like this; None if it does the same."""
    check = _Check(turn, program, state, load, end, contents)
    working = [asyncio.create_task(check.read()), asyncio.create_task(check.deliver())]
    try:
        done, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return None
    except _Different as exc:
        return str(exc)
    except ProgramLost:  # its process ends
        return None
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)


class _Check:
    def __init__(
        self,
        turn: Turn,
        program: ProgramRun,
        state: CodeState,
        load: LoadValue,
        end: Terminal,
        contents: LoadContents,
    ) -> None:
        self._program = program
        self._contents = contents
        self._state = state
        self._end = end
        self._claims = Claims(state.recorded, state.optional, began_at=turn.started_at)
        self._deliveries = Deliveries(self._claims, program.send, load, self._note_received)
        self._shown = ShownOutput(state.shown)
        self._new: dict[int, _NewClaim] = {}
        """What the program asks for that the first run has not begun."""
        self._last: str | None = None
        """What the program has received last."""

    async def deliver(self) -> None:
        """Gives the program what is recorded."""
        await self._deliveries.run()

    def _note_received(self, claim: OpenClaim) -> None:
        self._last = _named(claim.key)

    async def read(self) -> None:
        """Compares what the program does with what is recorded; raises _Different."""
        while not isinstance(message := await self._next(), End):
            await self._take(message)
        self._compare_end(message)

    async def _next(self) -> FromProgram:
        while True:
            moves = self._claims.moves
            try:
                async with asyncio.timeout(self._patience_s()):
                    return await self._program.receive()
            except TimeoutError:
                if self._claims.moves == moves and self._program.answers:
                    raise self._stuck() from None

    def _patience_s(self) -> float | None:
        has_caught_up = self._claims.has_caught_up
        if self._new:
            least, most = PATIENCE_WITH_NEW_S, MOST_PATIENCE_WITH_NEW_S
            return least if has_caught_up else self._claims.patience_s(least, most)
        return None if has_caught_up else self._claims.patience_s(PATIENCE_S, MOST_PATIENCE_S)

    async def _take(self, message: FromProgram) -> None:
        match message:
            case Output():
                self._compare_output(message)
            case Settled(re):
                self._deliveries.note_settled(re)
            case StepDone(re):
                self._new.pop(re, None)
                self._claims.cancel(re)
                self._deliveries.note_settled(re)
            case SaveClaim():
                if message.is_read:
                    self._claims.pass_saved_point(message.scope)
                self._program.send(Result(message.id, NULL, settle=False))
            case ContentClaim():
                self._program.send(await content_of(message, self._contents))
            case UsageClaim(step=int()) | StepRepeats() | End():
                pass
            case _:
                await self._claim(message)

    async def _claim(self, claim: Claim) -> None:
        place = place_of(claim)
        if self._claims.is_ambiguous(*place):
            self._program.send(ambiguous(claim))
            return
        open_ = self._claims.add(claim.id, *place)
        if (ended := self._claims.optional(open_.key)) is not None:
            self._claims.close(open_)
            await self._deliveries.at_once(claim.id, ended)
        elif not self._claims.is_recorded(open_.key) and open_.key not in self._state.begun:
            self._new[claim.id] = _NewClaim(open_, _named(open_.key))

    def _compare_output(self, output: Output) -> None:
        if output.step is None:
            for body in filter(None, map(body_of, output.items)):
                if self._shown.new(body) is not None:
                    raise self._different("said something else")
        self._program.send(Ack(sum(map(output_size, output.items))))

    def _compare_end(self, end: End) -> None:
        ended = f"raised {end.error.type.removeprefix('builtins.')}" if end.error else "ended"
        try:
            self._claims.check_end()
        except Diverged:
            raise self._different(f"asked for {self._next_recorded()}", ended) from None
        has_failed = isinstance(self._end, Failed) and self._end.message != codes.NOTHING_SAID
        if has_failed != (end.status == "failed"):
            raise self._different("failed" if has_failed else "ended", ended)
        if end.text and self._shown.new(Text(storable(end.text))) is not None:
            raise self._different("said something else")
        if not self._shown.is_complete:
            raise self._different("said more")

    def _stuck(self) -> _Different:
        if self._claims.has_caught_up:
            return self._different("ended", f"asked for {', '.join(it.name for it in self._new.values())}")
        return self._different(f"asked for {self._next_recorded()}", f"for {', '.join(self._asked())}")

    def _asked(self) -> Iterator[str]:
        """What the program asks for instead of what is recorded."""
        recorded = self._claims.next_recorded or ""
        for it in self._new.values():
            is_same = _without_hash(it.open.key) == _without_hash(recorded)
            yield f"{it.name} with other arguments" if is_same else it.name
        if not self._new:
            yield "nothing"

    def _next_recorded(self) -> str:
        recorded = self._claims.next_recorded
        return _named(recorded) if recorded else "nothing"

    def _different(self, first: str, this: str | None = None) -> _Different:
        when = f"after {self._last}" if self._last else "at its start"
        if this is None:
            return _Different(f"{when}, the first run {first} than this one")
        return _Different(f"{when}, the first run {first}, this one {this}")


def _named(key: str) -> str:
    """A claim for the program's author: a step by its name, anything else as a call of the turn."""
    scope, kind, *_ = key.rsplit("/", 3)
    is_step = kind.startswith(("step:", "call:"))
    return describe_key(key) if is_step or scope else f"turn.{describe_key(key)}"


def _without_hash(key: str) -> str:
    return key.rpartition("/")[0].rpartition("/")[0]
