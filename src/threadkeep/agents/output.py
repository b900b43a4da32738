"""What a turn shows, on its way to the server."""

import asyncio
from collections.abc import Callable

from threadkeep.agents.errors import TurnMisused
from threadkeep.agents.values import with_article
from threadkeep.domain.text import storable
from threadkeep.wire.programs import (
    MOST_UNACKNOWLEDGED_BYTES,
    NoticeItem,
    Output,
    OutputItem,
    TextItem,
    ThoughtItem,
    output_size,
)


def text_item(kind: type[TextItem | ThoughtItem | NoticeItem], text: object) -> OutputItem:
    """A text to show; refuses what is none."""
    if not isinstance(text, str):
        raise TurnMisused(
            f"A turn shows texts; this is {with_article(type(text).__qualname__)}. Use `str(…)`."
        )
    return kind(storable(text))


class Outputs:
    """Sends what is shown in order, in few messages, and no more than the server keeps up with."""

    def __init__(self, send: Callable[[Output], None]) -> None:
        self._send = send
        self._unsent: list[OutputItem] = []
        self._step: int | None = None
        self._unacknowledged = 0
        self._room = asyncio.Event()
        self._room.set()

    async def room(self) -> None:
        """Returns when the server has stored enough of what was sent before."""
        await self._room.wait()

    def add(self, item: OutputItem, step: int | None) -> None:
        """Shows something soon; texts that follow each other at once go together."""
        if step != self._step:
            self.flush()
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self.flush)
        self._step = step
        self._unsent.append(item)
        self._count(output_size(item))

    def flush(self) -> None:
        """Sends what was added."""
        if self._unsent:
            items, self._unsent = tuple(self._unsent), []
            self._send(Output(items, self._step))

    def acknowledge(self, size: int) -> None:
        """The server has stored so much."""
        self._count(-size)

    def _count(self, size: int) -> None:
        self._unacknowledged = max(0, self._unacknowledged + size)
        if self._unacknowledged >= MOST_UNACKNOWLEDGED_BYTES:
            self._room.clear()
        else:
            self._room.set()
