"""Typed ids: UUIDv7 strings, so that ids sort by the time they were made."""

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NewType

UserId = NewType("UserId", str)
AgentId = NewType("AgentId", str)
ConversationId = NewType("ConversationId", str)
MessageId = NewType("MessageId", str)
TurnId = NewType("TurnId", str)
BriefingId = NewType("BriefingId", str)
DocumentId = NewType("DocumentId", str)
CompactionId = NewType("CompactionId", str)
PayloadId = NewType("PayloadId", str)
ContentId = NewType("ContentId", str)
MemoryId = NewType("MemoryId", str)
KeyId = NewType("KeyId", str)
ShareId = NewType("ShareId", str)
ImportId = NewType("ImportId", str)
SessionId = NewType("SessionId", str)
InvitationId = NewType("InvitationId", str)

FIRST_UUID = "00000000-0000-0000-0000-000000000000"
LAST_UUID = "ffffffff-ffff-ffff-ffff-ffffffffffff"

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)

STEP_MASK = (1 << 64) - 1

NowNs = Callable[[], int]
RandomBytes = Callable[[int], bytes]


class Ids:
    """Makes UUIDv7s, each greater than all earlier ones and not guessable from them."""

    def __init__(self, now_ns: NowNs = time.time_ns, random_bytes: RandomBytes = os.urandom) -> None:
        self._now_ns = now_ns
        self._random_bytes = random_bytes
        self._lock = threading.Lock()
        self._last = 0

    def new(self) -> str:
        """The next one."""
        # 48 bits of milliseconds, then 12 + 62 random bits. Within one millisecond a random number of 64 bits
        # is added to the previous id: ids of one process ascend, and one doesn't reveal the next.
        random = int.from_bytes(self._random_bytes(18))
        fresh, step = (self._now_ns() // 1_000_000) << 74 | random >> 70, (random & STEP_MASK) + 1
        with self._lock:
            self._last = value = fresh if fresh >> 74 > self._last >> 74 else self._last + step
        return _uuid(value >> 74, value)


_ids = Ids()


def new_uuid() -> str:
    """A UUIDv7, greater than all earlier ones of this process and not guessable from them."""
    return _ids.new()


def make_ids_with(ids: Ids) -> Ids:
    """Makes all ids of this process with others from now on, so that a simulation makes the same each time;
    returns those before.
    """
    global _ids
    before, _ids = _ids, ids
    return before


def derived_uuid(at: int, *names: str) -> str:
    """A UUIDv7 of a time in ms, always the same for the same names, so that duplicates are recognised."""
    text = "\n".join(names).encode("utf-8", "surrogatepass")
    return _uuid(min(max(at, 0), 2**48 - 1), int.from_bytes(hashlib.sha256(text).digest()[:10]) >> 6)


def time_of(uuid: str) -> int:
    """When an id was made, in ms."""
    return int(uuid.replace("-", "")[:12], 16)


def _uuid(milliseconds: int, random: int) -> str:
    """A UUIDv7 of 48 bits of milliseconds and 74 other bits."""
    random_a, random_b = random >> 62 & 0xFFF, random & (1 << 62) - 1
    digits = f"{milliseconds << 80 | 7 << 76 | random_a << 64 | 2 << 62 | random_b:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def is_uuid(value: str) -> bool:
    """Whether a text has the form of an id."""
    return _UUID.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's key for a request, and the request's hash, to recognize a retry."""

    name: str
    request_hash: str

    @staticmethod
    def of(name: "str | IdempotencyKey | None", request: str) -> "IdempotencyKey | None":
        """The key that a client gave, if any, with the hash of what it asked for if it has none yet."""
        if isinstance(name, IdempotencyKey):
            return name
        return IdempotencyKey(name, hashlib.sha256(request.encode()).hexdigest()) if name else None
