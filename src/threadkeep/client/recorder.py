"""Sends another engine's events in the background, so that the engine never waits."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Self

from threadkeep.client.client import Client
from threadkeep.client.errors import ClientError, NotReached
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.client")

MOST_AT_ONCE = 500
PAUSE_S = 1.0
TRYING_AGAIN_HELPS = 500
PATIENCE_S = 60.0
"""How long to wait by default for a server that accepts nothing."""


class Recorder:
    """Records the runs of another engine in a conversation: `recorder.handle(event)` returns immediately.

    Sends events in order and in batches. While the server is unreachable, they wait; the server counts each
    event once, so retries are safe. Leaving the block sends the remaining events. If the server accepts none
    for `patience_s`, it raises NotReached, and `unsent` has them.
    """

    def __init__(self, client: Client, conversation_id: str, *, patience_s: float = PATIENCE_S) -> None:
        self._client = client
        self._conversation_id = conversation_id
        self._patience_s = patience_s
        self._unsent: deque[Mapping[str, Any]] = deque()
        self._added, self._progressed = asyncio.Event(), asyncio.Event()
        self._sending: asyncio.Task[None] | None = None
        self._problem = "Enter the recorder's block to send them."

    async def __aenter__(self) -> Self:
        self._sending = asyncio.create_task(self._send_all())
        self._sending.add_done_callback(lambda _: self._progressed.set())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        try:
            await self.flush()
        except NotReached as problem:
            if kind is None:
                raise
            log.error("%s", problem.message)  # the block's own error is more important
        finally:
            if self._sending is not None:
                await end_tasks(self._sending)

    @property
    def unsent(self) -> Sequence[Mapping[str, Any]]:
        """The events that the server hasn't accepted, oldest first."""
        return list(self._unsent)

    def handle(self, event: Mapping[str, Any]) -> None:
        """Adds an event of a run, in the form of `POST …/executions`."""
        self._unsent.append(event)
        self._added.set()

    async def flush(self) -> None:
        """Waits until all events are sent; NotReached if the server accepts none for too long."""
        while self._unsent:
            self._progressed.clear()
            if self._sending is not None and self._sending.done() and not self._sending.cancelled():
                self._sending.result()  # our own failure, after which nothing is sent
            try:
                async with asyncio.timeout(self._patience_s):
                    await self._progressed.wait()
            except TimeoutError:
                raise NotReached(f"Couldn't record {len(self._unsent)} events. {self._problem}") from None

    async def _send_all(self) -> None:
        while True:
            # What a recorder left behind when its block ended comes first.
            while batch := list(islice(self._unsent, MOST_AT_ONCE)):
                await self._send(batch)
                for _ in batch:
                    self._unsent.popleft()
                self._progressed.set()
            self._added.clear()
            await self._added.wait()

    async def _send(self, batch: list[Mapping[str, Any]]) -> None:
        while True:
            try:
                await self._client.record(self._conversation_id, batch)
            except NotReached as exc:
                self._problem = exc.message
            except ClientError as exc:
                if exc.status < TRYING_AGAIN_HELPS:
                    await self._send_one_by_one(batch, exc)
                    return
                self._problem = exc.message
            else:
                return
            log.warning("recording paused: %s", self._problem)
            await asyncio.sleep(PAUSE_S)

    async def _send_one_by_one(self, batch: list[Mapping[str, Any]], refusal: ClientError) -> None:
        """Sends events singly, so that a bad one doesn't lose the others."""
        if len(batch) == 1:
            about = f" ({refusal.param})" if refusal.param else ""
            log.error("couldn't record an event: %s%s", refusal.message, about)
            return
        for event in batch:
            await self._send([event])
            self._progressed.set()
