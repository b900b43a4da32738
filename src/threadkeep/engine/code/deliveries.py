"""How a program receives results: one at a time, in the order in which they were recorded."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from msgspec import Raw

from threadkeep.engine.code.claims import Claims, OpenClaim
from threadkeep.engine.journal import StepEnded
from threadkeep.wire.programs import ClaimFailed, ProgramError, Result, ToProgram

LoadValue = Callable[[str], Awaitable[bytes | None]]
"""A value that is stored apart from the log, as long as it is there."""


class Deliveries:
    """Passes the results of claims to the program; `received` hears of each that it has."""

    def __init__(
        self,
        claims: Claims,
        send: Callable[[ToProgram], None],
        load: LoadValue,
        received: Callable[[OpenClaim], None],
    ) -> None:
        self._claims = claims
        self._send = send
        self._load = load
        self._received = received
        self._settled: dict[int, asyncio.Event] = {}
        self.last: OpenClaim | None = None
        """The claim whose result was sent last without waiting; the program may cancel it meanwhile."""

    async def run(self) -> NoReturn:
        """Delivers what the program has claimed, until it is cancelled."""
        while True:
            delivery = await self._claims.next()
            id_ = delivery.claim.id
            message = await self._message(id_, delivery.ended, settles=delivery.settles)
            self._claims.note_sent()
            if delivery.settles:
                settled = self._settled[id_] = asyncio.Event()
                self._send(message)
                await settled.wait()
                del self._settled[id_]
            else:
                self.last = delivery.claim
                self._send(message)
            self._received(delivery.claim)
            self._claims.delivered(delivery.claim)

    async def at_once(self, id_: int, ended: StepEnded) -> None:
        """Delivers a result that has no place in the order: from before the last saved point."""
        self._send(await self._message(id_, ended, settles=False))

    def note_settled(self, id_: int) -> None:
        """The program has reacted to a result, or no longer waits for it."""
        if (settled := self._settled.get(id_)) is not None:
            settled.set()

    async def _message(self, id_: int, ended: StepEnded, *, settles: bool) -> ToProgram:
        if ended.status != "ok":
            error = ended.error or ProgramError("", "")
            return ClaimFailed(id_, error, code=ended.code, at=ended.at, settle=settles)
        value = ended.value
        if ended.ref is not None:
            value = await self._loaded(ended.ref)
        return Result(id_, value, at=ended.at, settle=settles)

    async def _loaded(self, ref: str) -> Raw:
        if (content := await self._load(ref)) is None:
            raise LookupError("the result of a step is lost")
        return Raw(content)
