"""Sends another engine's events in the background, so that the engine never waits."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Self

from threadkeep.client.client import Client
from threadkeep.client.errors import ClientError, NotReached
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.client")

MOST_AT_ONCE = 500
PAUSE_S = 1.0
TRYING_AGAIN_HELPS = 500


class Recorder:
    """Records the runs of another engine in a conversation: `recorder.handle(event)` returns immediately.

    Sends events in order and in batches. While the server is unreachable, they wait; the server counts each
    event once, so retries are safe. Leaving the block sends the remaining events.
    """

    def __init__(self, client: Client, conversation_id: str) -> None:
        self._client = client
        self._conversation_id = conversation_id
        self._events: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._sending: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._sending = asyncio.create_task(self._send_all())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.flush()
        if self._sending is not None:
            await end_tasks(self._sending)

    def handle(self, event: Mapping[str, Any]) -> None:
        """Adds an event of a run, in the form of `POST …/executions`."""
        self._events.put_nowait(event)

    async def flush(self) -> None:
        """Waits until all events have been sent."""
        await self._events.join()

    async def _send_all(self) -> None:
        while True:
            batch = [await self._events.get()]
            while len(batch) < MOST_AT_ONCE and not self._events.empty():
                batch.append(self._events.get_nowait())
            await self._send(batch)
            for _ in batch:
                self._events.task_done()

    async def _send(self, batch: list[Mapping[str, Any]]) -> None:
        while True:
            try:
                await self._client.record(self._conversation_id, batch)
            except NotReached as exc:
                log.warning("recording paused: %s", exc.message)
            except ClientError as exc:
                if exc.status < TRYING_AGAIN_HELPS:
                    await self._send_one_by_one(batch, exc)
                    return
                log.warning("recording paused: %s", exc.message)
            else:
                return
            await asyncio.sleep(PAUSE_S)

    async def _send_one_by_one(self, batch: list[Mapping[str, Any]], refusal: ClientError) -> None:
        """Sends events singly, so that a bad one doesn't lose the others."""
        if len(batch) == 1:
            about = f" ({refusal.param})" if refusal.param else ""
            log.error("couldn't record an event: %s%s", refusal.message, about)
            return
        for event in batch:
            await self._send([event])
