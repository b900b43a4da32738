"""The steps of a scripted model's replies."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

from threadkeep.testing.waiting import PATIENCE_S

StopReason = Literal["end_turn", "tool_use", "max_tokens", "refusal"]


class Gate:
    """Pauses a reply until the test opens the gate; the two can be in different threads."""

    def __init__(self) -> None:
        self._opened: Future[None] = Future()
        self._reached: Future[None] = Future()

    def open(self) -> None:
        """Lets the reply continue."""
        if not self._opened.done():
            self._opened.set_result(None)

    async def reached(self) -> None:
        """Waits until the model reaches the gate; everything before it has been sent."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.shield(asyncio.wrap_future(self._reached))

    async def pass_through(self) -> None:
        """For the model: reports its arrival and waits."""
        if not self._reached.done():
            self._reached.set_result(None)
        await asyncio.shield(asyncio.wrap_future(self._opened))


# What a model says.


@dataclass(frozen=True, slots=True)
class Say:
    """A chunk of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class SayTime:
    """A chunk that contains the time of sending, as `time.monotonic()` returns it, and a space."""


@dataclass(frozen=True, slots=True)
class Think:
    """A chunk of reasoning; a signature ends the block of reasoning (Anthropic only)."""

    text: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class ThinkUnseen:
    """Reasoning that the provider hides (Anthropic only)."""

    data: str


@dataclass(frozen=True, slots=True)
class UseTool:
    """Calls a tool. Arguments given as a string are sent as is, valid or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of the call."""

    input_tokens: int
    output_tokens: int
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class NoUsage:
    """The provider reports no usage."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the model stops, if not `end_turn` or, after a tool, `tool_use`."""

    reason: StopReason


# When.


@dataclass(frozen=True, slots=True)
class Pause:
    """Sends nothing for a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Sends nothing until the test opens the gate."""

    gate: Gate


# What goes wrong.


@dataclass(frozen=True, slots=True)
class Status:
    """Returns an error, in the provider's format unless `body` is given. Only as the first step."""

    status: int
    message: str = "Something is wrong."
    retry_after: str | None = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Hang:
    """Stops sending and keeps the connection open; as the first step, sends not even a status."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Resets the connection; as the first step, the request gets no response at all."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """Ends the response cleanly, but in the middle of the answer."""


@dataclass(frozen=True, slots=True)
class Fail:
    """An error in the middle of the stream."""

    message: str
    type: str = "overloaded_error"


@dataclass(frozen=True, slots=True)
class BrokenJson:
    """An event that isn't valid JSON."""


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """An event of an unknown type."""


@dataclass(frozen=True, slots=True)
class Ping:
    """A keep-alive: an event or a comment, as the provider sends it."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Raw bytes of the stream."""

    data: bytes


@dataclass(frozen=True, slots=True)
class NoEnd:
    """The answer is complete except for its final marker (`message_stop`, `[DONE]`)."""


Step = (
    Say
    | SayTime
    | Think
    | ThinkUnseen
    | UseTool
    | Usage
    | NoUsage
    | Stop
    | Pause
    | Wait
    | Status
    | Hang
    | Reset
    | CutOff
    | Fail
    | BrokenJson
    | UnknownEvent
    | Ping
    | Raw
    | NoEnd
)
Reply = Sequence[Step]
