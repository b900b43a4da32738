"""What a scripted model does, step by step: the words that scripts are written in."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

from threadkeep.testing.waiting import PATIENCE_S

StopReason = Literal["end_turn", "tool_use", "max_tokens", "refusal"]


class Gate:
    """Holds a reply back until the test opens it; the two may live in different threads."""

    def __init__(self) -> None:
        self._opened: Future[None] = Future()
        self._reached: Future[None] = Future()

    def open(self) -> None:
        """Lets the reply go on."""
        if not self._opened.done():
            self._opened.set_result(None)

    async def reached(self) -> None:
        """Until the model stands at the gate; everything before it has been sent."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.shield(asyncio.wrap_future(self._reached))

    async def pass_through(self) -> None:
        """For the model: says that it is here, and waits."""
        if not self._reached.done():
            self._reached.set_result(None)
        await asyncio.shield(asyncio.wrap_future(self._opened))


# What a model says.


@dataclass(frozen=True, slots=True)
class Say:
    """A piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class SayTime:
    """A piece that holds the moment of its sending, as `time.monotonic()` has it, and a space."""


@dataclass(frozen=True, slots=True)
class Think:
    """A piece of reasoning; a signature ends the block of reasoning (Anthropic only)."""

    text: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class ThinkUnseen:
    """Reasoning that the provider hides (Anthropic only)."""

    data: str


@dataclass(frozen=True, slots=True)
class UseTool:
    """Asks for a tool. Arguments that are a text are sent as they are, broken or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What the call costs."""

    input_tokens: int
    output_tokens: int
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class NoUsage:
    """The provider does not say what the call costs."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the model stops, where it is not `end_turn` or, after a tool, `tool_use`."""

    reason: StopReason


# When.


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is sent for a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is sent until the test opens the gate."""

    gate: Gate


# What goes wrong.


@dataclass(frozen=True, slots=True)
class Status:
    """Answers with an error, in the provider's shape unless `body` is given. Only as the first step."""

    status: int
    message: str = "Something is wrong."
    retry_after: str | None = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Hang:
    """Sends nothing any more and keeps the connection; as the first step, not even a status."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Breaks the connection; as the first step, the request is not answered at all."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """Ends the response in good order, but in the middle of the answer."""


@dataclass(frozen=True, slots=True)
class Fail:
    """An error in the middle of the stream."""

    message: str
    type: str = "overloaded_error"


@dataclass(frozen=True, slots=True)
class BrokenJson:
    """An event that is no JSON."""


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """An event of a kind that nobody knows yet."""


@dataclass(frozen=True, slots=True)
class Ping:
    """A sign of life: an event or a comment, as the provider does it."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes of the stream as they are."""

    data: bytes


@dataclass(frozen=True, slots=True)
class NoEnd:
    """The answer is whole but for its terminal marker (`message_stop`, `[DONE]`)."""


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
