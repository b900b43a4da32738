"""Large request bodies: on the disk until they are decoded, and only so many of them at once."""

import asyncio
import mmap
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

import msgspec

from threadkeep.domain.errors import RateLimited, StorageUnavailable, TooManyConnections
from threadkeep.domain.ids import UserId
from threadkeep.fair_slots import FairSlots
from threadkeep.wire.decoding import Content, decode_body_aside

HELD_BYTES = 1024 * 1024
"""How much of a body is in memory while it arrives; only larger bodies count."""
BODIES_OF_A_USER = 2
BODIES_OF_A_NODE = 8
"""How many of the largest allowed bodies a user may send at once, and all users of a node."""
DECODED_AT_ONCE = 2

T = TypeVar("T")


class LargeBodies:
    """The large bodies that a node has received and not yet handled: users can't keep each other out."""

    def __init__(self, most_of_one: int) -> None:
        self._most_of_user = max(BODIES_OF_A_USER * most_of_one, HELD_BYTES)
        self._most = max(BODIES_OF_A_NODE * most_of_one, HELD_BYTES)
        self._by_user: Counter[UserId] = Counter()
        self._decoding = FairSlots(DECODED_AT_ONCE)

    @contextmanager
    def of(self, user_id: UserId) -> Generator["Body"]:
        """A user's body while it arrives and is handled."""
        body = Body(lambda size: self._take(user_id, size))
        try:
            yield body
        finally:
            body.close()
            self._by_user[user_id] -= body.taken
            if not self._by_user[user_id]:
                del self._by_user[user_id]

    async def decode(self, user_id: UserId, body: "Body", decoder: "msgspec.json.Decoder[T]") -> T:
        """A body as its Struct; users take turns with large ones."""
        content = await body.content()
        if not body.taken:
            return await decode_body_aside(content, decoder)
        async with self._decoding.slot(user_id):
            return await decode_body_aside(content, decoder)

    def _take(self, user_id: UserId, size: int) -> None:
        if self._by_user[user_id] + size > self._most_of_user:
            raise RateLimited(
                "You are sending too many large requests at once. Send this one when others have ended.",
                details={"most": self._most_of_user},
            )
        if self._by_user.total() + size > self._most:
            raise TooManyConnections("This node is receiving too many large requests. Try again in a moment.")
        self._by_user[user_id] += size


class Body:
    """A body as it arrives: its end in memory, what came before it in a file without a name."""

    def __init__(self, take: Callable[[int], None]) -> None:
        self.taken = 0
        """How many of its bytes count."""
        self.size = 0
        self._take = take
        self._parts: list[bytes] = []
        self._held = 0
        self._file: _File | None = None

    async def add(self, part: bytes) -> None:
        """Adds what has arrived."""
        self._parts.append(part)
        self._held += len(part)
        self.size += len(part)
        if self._held > HELD_BYTES:
            await self._spool()

    async def content(self) -> Content:
        """All of it, once it has arrived; the bytes of a large one stay on the disk."""
        if self._file is None:
            return b"".join(self._parts)
        await self._spool()
        return self._file.content()

    def close(self) -> None:
        """Forgets it; what was decoded of it stays readable."""
        self._parts.clear()
        if self._file is not None:
            self._file.close()

    async def _spool(self) -> None:
        self._take(self._held)
        self.taken += self._held
        parts, self._parts, self._held = self._parts, [], 0
        try:
            self._file = self._file or await asyncio.to_thread(_File)
            await asyncio.to_thread(self._file.write, parts)
        except OSError as exc:
            raise StorageUnavailable(
                f"The request body couldn't be kept until it is complete: {exc.strerror}."
            ) from exc


class _File:
    """A file that vanishes when it is closed. A client may leave while a thread still writes."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - `close` does
        self._free = Lock()

    def write(self, parts: list[bytes]) -> None:
        with self._free:
            if not self._file.closed:
                self._file.writelines(parts)
                self._file.flush()

    def content(self) -> mmap.mmap:
        with self._free:
            return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    def close(self) -> None:
        with self._free:
            self._file.close()
