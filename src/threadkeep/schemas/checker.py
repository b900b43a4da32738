"""Checks values against strangers' schemas without holding up anybody."""

import asyncio
import logging
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from typing import Any

import msgspec

from threadkeep.domain.ids import UserId
from threadkeep.fair_slots import FairSlots
from threadkeep.ports.schemas import NOT_CHECKED
from threadkeep.schemas.validation import find_problem
from threadkeep.schemas.work import Budget, TooMuchWork
from threadkeep.workers.process import end_process, start_worker

log = logging.getLogger("threadkeep.schemas")

MOST_S = 20.0
MOST_CPU_S = 2
MOST_BYTES = 4 * 1024**2
"""Of a schema and a value together, for a worker."""
AT_ONCE = 2


class SchemaChecker:
    """Checks what is cheap here, and everything else in a worker that is killed when it takes too long.

    Users take turns for the few workers.
    """

    def __init__(self, *, most_cpu_s: int = MOST_CPU_S, most_s: float = MOST_S) -> None:
        self._most_cpu_s = most_cpu_s
        self._most_s = most_s
        self._workers = FairSlots(AT_ONCE)

    async def problem(self, user_id: UserId, schema: Mapping[str, Any], value: Any) -> str | None:
        """Where a user's value doesn't match a schema; None if it does, or if the schema is broken."""
        try:
            return find_problem(schema, value, Budget(schema, value))
        except TooMuchWork:
            return await self._ask_worker(user_id, schema, value)

    async def _ask_worker(self, user_id: UserId, schema: Mapping[str, Any], value: Any) -> str | None:
        try:
            question = msgspec.json.encode((schema, value))
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
            return NOT_CHECKED
        if len(question) > MOST_BYTES:
            return NOT_CHECKED
        async with self._workers.slot(user_id):
            report = await self._run_worker(question)
        try:
            return msgspec.json.decode(report, type=str | None)
        except msgspec.MsgspecError:  # it died: out of time, or out of memory
            log.info("a value can't be checked against its schema within the limits")
            return NOT_CHECKED

    async def _run_worker(self, question: bytes) -> bytes:
        """What a worker reports; nothing if it dies or takes too long."""
        process = await start_worker("threadkeep.schemas.worker", str(self._most_cpu_s), stdin=PIPE)
        try:
            async with asyncio.timeout(self._most_s):
                report, _ = await process.communicate(question)
                return report
        except TimeoutError:
            return b""
        finally:
            await end_process(process)
