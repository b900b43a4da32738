"""Checks values against strangers' schemas without holding up anybody."""

import asyncio
import logging
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from typing import Any

import msgspec

from threadkeep.confined.process import end_process, start_confined
from threadkeep.domain.ids import UserId
from threadkeep.fair_slots import FairSlots
from threadkeep.ports.schemas import NOT_CHECKED
from threadkeep.schemas.validation import find_problem
from threadkeep.schemas.work import Budget, TooMuchWork

log = logging.getLogger("threadkeep.schemas")

MOST_S = 20.0
MOST_CPU_S = 2
MOST_BYTES = 4 * 1024**2
"""Of a schema and a value together, for a confined process."""
AT_ONCE = 2


class SchemaChecker:
    """Checks what is cheap here, and everything else in a process that is killed if it takes too long.

    Users take turns for the few processes.
    """

    def __init__(self, *, most_cpu_s: int = MOST_CPU_S, most_s: float = MOST_S) -> None:
        self._most_cpu_s = most_cpu_s
        self._most_s = most_s
        self._processes = FairSlots(AT_ONCE)

    async def problem(self, user_id: UserId, schema: Mapping[str, Any], value: Any) -> str | None:
        """Where a user's value doesn't match a schema; None if it does, or if the schema is broken."""
        try:
            return find_problem(schema, value, Budget(schema, value))
        except TooMuchWork:
            return await self._ask_process(user_id, schema, value)

    async def _ask_process(self, user_id: UserId, schema: Mapping[str, Any], value: Any) -> str | None:
        try:
            question = msgspec.json.encode((schema, value))
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
            return NOT_CHECKED
        if len(question) > MOST_BYTES:
            return NOT_CHECKED
        async with self._processes.slot(user_id):
            report = await self._run_process(question)
        try:
            return msgspec.json.decode(report, type=str | None)
        except msgspec.MsgspecError:  # it died: out of time, or out of memory
            log.info("a value can't be checked against its schema within the limits")
            return NOT_CHECKED

    async def _run_process(self, question: bytes) -> bytes:
        """What a confined process reports; nothing if it dies or takes too long."""
        process = await start_confined("threadkeep.schemas.process", str(self._most_cpu_s), stdin=PIPE)
        try:
            async with asyncio.timeout(self._most_s):
                report, _ = await process.communicate(question)
                return report
        except TimeoutError:
            return b""
        finally:
            await end_process(process)
