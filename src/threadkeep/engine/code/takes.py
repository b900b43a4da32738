"""What a program takes from its turn, as it was when it first took it: what the user sent meanwhile, the
history, the tools; and what it brings: calls that it paid for itself, and points to start from.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from threadkeep.domain.events import UsageReported
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Usage
from threadkeep.domain.payload import Lost
from threadkeep.engine.code.claims import OpenClaim
from threadkeep.engine.code.outlet import Alone
from threadkeep.engine.code.running import RunningCode, Unrecordable
from threadkeep.engine.code.tool_calls import ToolCalls
from threadkeep.engine.journal import CallPaid, StateSaved
from threadkeep.engine.loop import LoadContents, Together
from threadkeep.wire.programs import (
    NOTHING,
    ClaimFailed,
    ContentClaim,
    Result,
    SaveClaim,
    ServerTool,
    TakeClaim,
    UsageClaim,
)

NULL = Raw(b"null")
MOST_CONTENT_BYTES = 32 * 1024 * 1024


async def content_of(claim: ContentClaim, load: LoadContents) -> Result:
    """The bytes of a file for a program."""
    id_ = PayloadId(claim.content_id)
    found = (await load([id_]))[id_]
    if isinstance(found, Lost) or len(found) > MOST_CONTENT_BYTES:
        return Result(claim.id, NULL, settle=False)
    encoded = await asyncio.to_thread(msgspec.json.encode, found)
    return Result(claim.id, Raw(encoded), settle=False)


class Takes:
    """Carries out what a program takes and brings."""

    def __init__(self, code: RunningCode, tools: ToolCalls) -> None:
        self._code = code
        self._tools = tools
        self._taking = asyncio.Lock()
        self._loading = asyncio.Lock()

    async def take(self, claim: TakeClaim, open_: OpenClaim) -> None:
        """Records what the program takes now."""
        code = self._code
        begun = code.begun(open_, claim.what, "take", "read")
        async with self._taking:  # so that the log shows which messages each has heard
            value = await self._taken(claim)
            code.outlet.emit(begun)
            code.end(await code.ok(open_, value))

    async def _taken(self, claim: TakeClaim) -> Any:
        match claim.what:
            case "steering":
                return await self._heard()
            case "history":
                return await self._code.around.history(claim.limit, claim.as_context, claim.files)
            case "tools":
                await self._tools.open(claim.scope)
                return [
                    ServerTool(it.name, it.description, dict(it.input_schema))
                    for it in (await self._code.agents.means(claim.scope)).tools.specs
                ]
            case "agents":
                return await (await self._code.agents.means(claim.scope)).offered()

    async def content(self, claim: ContentClaim) -> None:
        """Sends the bytes of a file; one at a time, because they may be large."""
        with self._code.activity.running():
            async with self._loading:
                self._code.send(await content_of(claim, self._code.around.load))

    async def _heard(self) -> Sequence[str]:
        """What the user has sent since the program last asked.

        Taking it in writes to the log; what an earlier run took in and could not pass on comes first.
        """
        code = self._code

        async def take_in() -> None:
            code.steered += await code.around.steering()

        await code.outlet.store(Alone(take_in))
        heard, code.steered = code.steered, []
        return [it.content for it in heard]

    async def usage(self, claim: UsageClaim, open_: OpenClaim) -> None:
        """Charges a model call that the program made itself."""
        code = self._code
        code.outlet.emit(code.begun(open_, "usage", "take", "write"))
        code.end(await code.ok(open_, None), *await self._reported(claim))

    async def note_usage(self, claim: UsageClaim) -> None:
        """The same of a call that a step made: a step that runs again makes it again."""
        self._code.outlet.emit(Together(await self._reported(claim)))

    async def _reported(self, claim: UsageClaim) -> tuple[CallPaid, UsageReported]:
        used = Usage(claim.input_tokens, claim.output_tokens, cache_read_tokens=claim.cache_read_tokens)
        means = await self._code.agents.means(claim.scope)
        priced = means.spending("usage").priced(claim.model, used)
        self._code.used += priced
        return means.own_call(claim.cost), UsageReported.of(priced, claim.model)

    async def save(self, claim: SaveClaim) -> Result | ClaimFailed:
        """Records a point to start from; one that an earlier run recorded is not recorded again."""
        code = self._code
        if not code.claims.has_sent_all:
            return Result(claim.id, NULL, settle=False)
        try:
            value = await code.stored(claim.value)
            state = await code.stored(claim.state) if bytes(claim.state) else None
        except Unrecordable as exc:
            return ClaimFailed(claim.id, exc.error, exc.code, settle=False)
        saved = StateSaved(
            claim.scope,
            code.now(),
            value=value.value,
            ref=value.ref,
            state=state.value if state else NOTHING,
            state_ref=state.ref if state else None,
        )
        await code.outlet.store(Together((saved,)))
        return Result(claim.id, NULL, at=saved.at, settle=False)
