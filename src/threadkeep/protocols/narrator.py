"""Narrates one turn for every protocol: what begins, grows and ends, and what calls and requests belong to.

| event | narration |
|---|---|
| text, thought | PartStart once, then the piece; PartEnd before whatever else follows |
| tool_call | Called |
| tool_result | Returned, with its call |
| approval_request | Asked, with the call that it is about |
| approval_response | Decided, with what was asked |
| step | StepBegan and StepEnded, under a name that no other open step has; what still runs when the turn |
| | ends is ended before |
| turn_resumed | none: no client shows it |
| all others | the event |

An encoder names the frames of each piece and of each narration, and nothing else. A text or thought ends
exactly where the reply has a part of its own (`engine/fold.py`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any, Generic, Literal, TypeVar, assert_never

from msgspec import Struct

from threadkeep.domain import events
from threadkeep.domain.approval import ApprovalKind
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.message import Usage
from threadkeep.domain.parts import TextJoin

Kind = Literal["text", "thought"]
Piece = events.Text | events.Thought


# Structs, because every text and thought makes both and a dataclass takes longer to make.
class PartStart(Struct, frozen=True):
    """A text or thought begins; its pieces follow."""

    kind: Kind


class PartEnd(Struct, frozen=True):
    """A text or thought is complete, or was cut off because its model call is repeated."""

    kind: Kind
    text: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call, as far as it has got."""

    event: events.ToolCalled
    arguments: Mapping[str, Any]
    """As its user changed them, if they did."""
    approval: events.ApprovalRequest | None = None
    client_request: events.ApprovalRequest | None = None

    @property
    def is_held(self) -> bool:
        """Whether the client that is to run it must not see it yet: the user hasn't allowed it."""
        return self.event.asks and self.event.server == CLIENT and self.client_request is None


@dataclass(frozen=True, slots=True)
class Asked:
    """The turn asks its user, or the client for a result; `call` is as it was before."""

    request: events.ApprovalRequest
    call: Called | None


@dataclass(frozen=True, slots=True)
class Decided:
    """A request was answered, or expired; `call` has the arguments as its user decided."""

    response: events.ApprovalResponse
    request: events.ApprovalRequest | None
    call: Called | None


@dataclass(frozen=True, slots=True)
class Returned:
    """A call has its result."""

    result: events.ToolResultStored
    call: Called | None


@dataclass(frozen=True, slots=True)
class StepBegan:
    """A step of an agent in code began."""

    event: events.StepChanged
    label: str
    """Its name, or the name with a number: unique among the steps that are open."""


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step has ended, under the name under which it began."""

    event: events.StepChanged
    label: str


Narration = (
    PartStart
    | PartEnd
    | Called
    | events.ToolProgress
    | Returned
    | Asked
    | Decided
    | StepBegan
    | StepEnded
    | events.Retrieval
    | events.UserMessage
    | events.Notice
    | events.IterationStart
    | events.IterationRestart
    | events.UsageReported
    | events.TurnStart
    | events.Done
    | events.Failed
)


FrameT = TypeVar("FrameT")


def _no_frames(_: object) -> Sequence[Any]:
    return ()


class Narrator(Generic[FrameT]):
    """The frames of one turn, narration by narration; takes its events from the first, in order."""

    def __init__(
        self,
        name: Callable[[Narration], Iterable[FrameT]] = _no_frames,
        *,
        text: Callable[[str], Sequence[FrameT]] = _no_frames,
        thought: Callable[[str], Sequence[FrameT]] = _no_frames,
    ) -> None:
        self.usage = Usage(0, 0)
        self.end: events.Done | events.Failed | None = None
        self._name = name
        self._add = {"text": text, "thought": thought}
        """What names a piece: nearly all events are one."""
        self._growing: Kind | None = None
        """What the next piece may add to."""
        self._part: Kind | None = None
        """What hasn't ended. Nothing adds to it once its model call has reported its usage."""
        self._pieces: list[str] = []
        self._calls: dict[str, Called] = {}
        self._open: dict[str, Asked] = {}
        self._steps: dict[str, StepBegan] = {}
        """Those that are open."""
        self._voice: str | None = None
        """The step or model call of a program that speaks."""

    @property
    def open_steps(self) -> Sequence[StepBegan]:
        """The steps of a program that haven't ended."""
        return list(self._steps.values())

    @property
    def open_requests(self) -> Sequence[Asked]:
        """What the turn waits for."""
        return list(self._open.values())

    def narrate(self, body: events.EventBody) -> Sequence[FrameT]:
        """The frames of the next event."""
        if isinstance(body, Piece) and body.type == self._growing:
            self._pieces.append(body.text)
            return self._add[body.type](body.text)
        named = self._named(self._narrations(body))
        return [*named, *self._add[body.type](body.text)] if isinstance(body, Piece) else named

    def say(self, text: str) -> Sequence[FrameT]:
        """The frames of a text of its own that no model wrote, such as a question."""
        return [*self._named(self._start("text", text)), *self._add["text"](text), *self.pause()]

    def pause(self) -> Sequence[FrameT]:
        """Ends the text or thought in progress."""
        return self._named(self._end_part())

    def begin_response(self) -> None:
        """Begins another response of the same turn: what was said and used belongs to the one before."""
        self._end_part()
        self.usage = Usage(0, 0)

    def _named(self, narrated: Sequence[Narration]) -> Sequence[FrameT]:
        return [*chain.from_iterable(map(self._name, narrated))]

    def _narrations(self, body: events.EventBody) -> Sequence[Narration]:
        match body:
            case events.Text():
                return self._start("text", body.text)
            case events.Thought():
                return self._start("thought", body.text)
            case events.ToolProgress() | events.TurnStart():
                return (body,)
            case events.ToolCalled():
                call = self._calls[body.tool_call_id] = Called(body, body.arguments)
                return *self._end_part(), call
            case events.ToolResultStored():
                return (Returned(body, self._calls.get(body.tool_call_id)),)
            case events.UsageReported():
                self._growing = None
                self.usage += body.usage
                return (body,)
            case events.TurnResumed():
                if self._voice != "":  # a text goes on where its part does (`engine/fold.py`)
                    self._growing = None
                return ()
            case events.IterationRestart():
                return *self._end_part(is_cut=True), body
            case events.ApprovalRequest():
                return *self._end_part(), self._ask(body)
            case events.ApprovalResponse():
                return (self._decide(body),)
            case events.StepChanged():
                return self._step(body)
            case events.IterationStart():
                self._voice = body.step_id
                return *self._end_part(), body
            case events.UserMessage() | events.Retrieval() | events.Notice():
                return *self._end_part(), body
            case events.Done() | events.Failed():
                self.end = body
                return *self._end_part(), *self._end_steps(), body
            case _ as never:
                assert_never(never)

    def _start(self, kind: Kind, text: str) -> Sequence[Narration]:
        ended = self._end_part()
        self._growing = self._part = kind
        self._pieces = [text]
        return *ended, PartStart(kind)

    def _end_part(self, *, is_cut: bool = False) -> Sequence[Narration]:
        kind, self._growing, self._part = self._part, None, None
        return () if kind is None else (PartEnd(kind, "".join(self._pieces), is_cut),)

    def _step(self, body: events.StepChanged) -> Sequence[Narration]:
        """A step begins or ends. A text goes on where its part does (`engine/fold.py`)."""
        narrated: Sequence[Narration] = ()
        begun = self._steps.get(body.step_id)
        if begun is None:  # otherwise it was cut off and runs again, or ends
            begun = self._steps[body.step_id] = StepBegan(body, self._label(body.name))
            narrated = *(() if self._voice else self._end_part()), begun
        if body.status == "running":
            return narrated
        del self._steps[body.step_id]
        return *narrated, StepEnded(body, begun.label)

    def _label(self, name: str) -> str:
        taken = {it.label for it in self._steps.values()}
        numbered = (f"{name} ({number})" for number in count(2))
        return next(it for it in chain([name], numbered) if it not in taken)

    def _end_steps(self) -> Sequence[Narration]:
        """Of a step without an end, nobody knows how it ended."""
        ended = [StepEnded(replace(it.event, status="unknown"), it.label) for it in self._steps.values()]
        self._steps.clear()
        return ended

    def _ask(self, body: events.ApprovalRequest) -> Asked:
        call = self._calls.get(body.tool_call_id or "")
        asked = self._open[body.request_id] = Asked(body, call)
        if call is not None and body.kind is ApprovalKind.TOOL:
            self._calls[call.event.tool_call_id] = replace(call, approval=body)
        elif call is not None and body.kind is ApprovalKind.CLIENT_TOOL:
            self._calls[call.event.tool_call_id] = replace(call, client_request=body)
        return asked

    def _decide(self, body: events.ApprovalResponse) -> Decided:
        asked = self._open.pop(body.request_id, None)
        if asked is None:
            return Decided(body, None, None)
        call = self._calls.get(asked.request.tool_call_id or "")
        if call is not None and body.arguments is not None:
            call = self._calls[call.event.tool_call_id] = replace(call, arguments=body.arguments)
        return Decided(body, asked.request, call)


class JoiningNarrator(Narrator[FrameT]):
    """The same for clients that append whatever they receive: pieces without the start and end of parts.

    A text begins with a blank line where a tool call or another model call separates it from the one before,
    a thought where another model call does.
    """

    def __init__(
        self,
        name: Callable[[Narration], Iterable[FrameT]] = _no_frames,
        *,
        text: Callable[[str], Sequence[FrameT]] = _no_frames,
        thought: Callable[[str], Sequence[FrameT]] = _no_frames,
    ) -> None:
        super().__init__(name, text=text, thought=thought)
        self._said = {"text": _Said(), "thought": _Said()}

    def said(self, kind: Kind) -> str:
        """The texts or thoughts that count, as the message has them."""
        return self._said[kind].text

    def narrate(self, body: events.EventBody) -> Sequence[FrameT]:
        """The frames of the next event."""
        if isinstance(body, Piece):
            return self._add[body.type](self._said[body.type].add(body.text))
        match body:
            case events.ToolCalled() | events.UserMessage():
                self._said["text"].separate()
            case events.IterationStart(iteration):
                for said in self._said.values():
                    said.begin_call(iteration)
            case events.IterationRestart(iteration):
                for said in self._said.values():
                    said.repeat_call(iteration)
            case _:
                pass
        return super().narrate(body)

    def say(self, text: str) -> Sequence[FrameT]:
        """The frames of a text of its own that no model wrote, such as a question."""
        self._said["text"].separate()
        return self.narrate(events.Text(text))

    def begin_response(self) -> None:
        """Begins another response of the same turn: what was said and used belongs to the one before."""
        super().begin_response()
        self._said = {"text": _Said(), "thought": _Said()}


class _Said:
    """The texts or the thoughts of a turn, in sections with blank lines between them."""

    def __init__(self) -> None:
        self._shown = TextJoin()
        """Joins all sections, even of model calls that were repeated."""
        self._sections: list[tuple[int, str]] = []
        """Those that count, with their model calls; `_pieces` are of the one in progress."""
        self._pieces: list[str] = []
        self._iteration = 0

    @property
    def text(self) -> str:
        """All that counts."""
        join, said = TextJoin(), list[str]()
        sections = [section for _, section in self._sections]
        for section in (*sections, *(["".join(self._pieces)] if self._pieces else ())):
            said.append(join.add(section))
            join.interrupt()
        return "".join(said)

    def add(self, text: str) -> str:
        """The next piece, as clients append it to what they have."""
        shown = text if self._pieces else self._shown.add("") + text
        self._pieces.append(text)
        return shown

    def separate(self) -> None:
        """The next piece begins a section."""
        if self._pieces:
            section = "".join(self._pieces)
            self._sections.append((self._iteration, section))
            self._pieces = []
            self._shown.add(section)
            self._shown.interrupt()

    def begin_call(self, iteration: int) -> None:
        """Another model call begins, or another step of a program speaks."""
        self.separate()
        self._iteration = iteration

    def repeat_call(self, iteration: int) -> None:
        """A model call or step is repeated: what it said no longer counts."""
        self.separate()
        self._sections = [it for it in self._sections if it[0] != iteration]
        self._iteration = iteration
