"""A turn's events → the items of its responses, and the events that stream them.

One builder for streams, for responses that are read later and for lists of items: what a client has received
and what it reads are the same.

| event | item |
|---|---|
| thought | `reasoning` |
| text | `message`; in a model call that is repeated, `incomplete` and without its text |
| tool_call, tool_result | `mcp_call`; `function_call` if the client runs it |
| approval_request | `mcp_approval_request` in place of the call, which follows in the next response; |
| | a question is a `message`: the user answers it with their next one |
| retrieval | `file_search_call` |
| done, error | the response's status |
| all others | none |
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, assert_never

import msgspec

from threadkeep.domain.approval import ApprovalKind
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    Failed,
    IterationRestart,
    IterationStart,
    Notice,
    Retrieval,
    Text,
    Thought,
    ToolCalled,
    ToolProgress,
    ToolResultStored,
    TurnEvent,
    TurnResumed,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.ids import TurnId
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.message import Message, MessageRole, Usage
from threadkeep.domain.parts import QuestionPart, TextPart
from threadkeep.domain.retrieval import PassageNumbers, RetrievalHit
from threadkeep.protocols.openai import frames
from threadkeep.protocols.openai.frames import OutputItem, StreamEvent
from threadkeep.protocols.openai.ids import ItemIds, approval_id

OUR_SERVER = "threadkeep"
"""The label of the server of tools that run in our process."""

_CITED = re.compile(r"\[(\d{1,4})\]")
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class _Growing:
    """The message or thought that the model is writing."""

    kind: Literal["text", "thought"]
    id: str
    index: int
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Items:
    """The items of one turn, part by part; takes its events from the first, in order.

    A part ends where the turn waited for its user. `output`, `usage` and the numbers are those of the current
    part.
    """

    def __init__(self, turn_id: TurnId) -> None:
        self.part = 1
        """Which part of the turn the latest event belongs to."""
        self.output: list[OutputItem] = []
        self.usage = Usage(0, 0)
        self.end: Done | Failed | None = None
        self.next_number = count().__next__
        """The number of the next event of the stream."""
        self._ids = ItemIds(turn_id)
        self._growing: _Growing | None = None
        self._call_began_at = 0
        """Where the items of the current model call begin."""
        self._calls: dict[str, ToolCalled] = {}
        self._open: dict[str, int] = {}
        """Calls without a result, and the places of their items in this part."""
        self._requests: dict[str, str] = {}
        """The requests to approve calls, by call."""
        self._numbers = PassageNumbers()
        self._hits: dict[int, RetrievalHit] = {}
        self._asked_here: set[str] = set()
        """The requests that the current part made."""

    def begins_part(self, event: TurnEvent) -> bool:
        """Whether an event is the first answer to what the current part asked.

        Other answers to the same part may come later, between the results of tools: they belong to the part
        that the first one began.
        """
        return isinstance(event.body, ApprovalResponse) and event.body.request_id in self._asked_here

    def add(self, event: TurnEvent) -> Sequence[StreamEvent]:
        """The stream's events for the next event of the turn."""
        match event.body:  # the most common first: cases are tried in order
            case Text(text):
                return self._say("text", text)
            case Thought(text):
                return self._say("thought", text)
            case ApprovalResponse():
                if self.begins_part(event):
                    self._begin_part()
                return ()
            case body:
                return self._added(body)

    def close(self) -> Sequence[StreamEvent]:
        """Ends what is in progress, where the stream ends."""
        closing = list(self._close())
        for index in self._open.values():
            call = self.output[index]
            assert isinstance(call, frames.McpCallItem)
            closing.append(self._finish(index, msgspec.structs.replace(call, status="incomplete")))
        self._open.clear()
        return closing

    def _begin_part(self) -> None:
        self.part += 1
        self.output, self.usage, self.next_number = [], Usage(0, 0), count().__next__
        self._growing, self._call_began_at = None, 0
        self._open.clear()
        self._asked_here.clear()

    def _added(
        self,
        body: ToolCalled
        | ToolResultStored
        | ApprovalRequest
        | Retrieval
        | IterationStart
        | IterationRestart
        | UsageReported
        | Done
        | Failed
        | UserMessage
        | Notice
        | TurnResumed
        | TurnStart
        | ToolProgress,
    ) -> Sequence[StreamEvent]:
        match body:
            case ToolCalled():
                return [*self._close(), *self._called(body)]
            case ToolResultStored():
                return self._returned(body)
            case ApprovalRequest():
                return [*self._close(), *self._asked(body)]
            case Retrieval():
                return [*self._close(), *self._found(body)]
            case IterationStart():
                closing = list(self._close())
                self._call_began_at = len(self.output)
                return closing
            case IterationRestart():
                closing = list(self._close())
                self._supersede()
                return closing
            case UsageReported():
                self.usage += body.usage
                return ()
            case Done() | Failed():
                self.end = body
                return list(self._close())
            case UserMessage() | Notice() | TurnResumed():
                return list(self._close())
            case TurnStart() | ToolProgress():
                return ()
            case _ as never:
                assert_never(never)

    def _say(self, kind: Literal["text", "thought"], text: str) -> Sequence[StreamEvent]:
        growing = self._growing
        before: Sequence[StreamEvent] = ()
        if growing is None or growing.kind != kind:
            before = [*self._close(), *self._begin(kind)]
            growing = self._growing
            assert growing is not None
        growing.pieces.append(text)
        delta = frames.TextDelta if kind == "text" else frames.SummaryTextDelta
        return (*before, delta(self.next_number(), growing.id, growing.index, text))

    def _begin(self, kind: Literal["text", "thought"]) -> Iterator[StreamEvent]:
        index = len(self.output)
        growing = self._growing = _Growing(kind, self._ids.next("msg" if kind == "text" else "rs"), index)
        if kind == "text":
            yield self._append(frames.MessageItem(growing.id, "in_progress"))
            yield self._content_part("added", growing, frames.OutputText(""))
        else:
            yield self._append(frames.ReasoningItem(growing.id, status="in_progress"))
            yield self._summary_part("added", growing, "")

    def _close(self) -> Iterator[StreamEvent]:
        """Ends the text or thought in progress."""
        growing, self._growing = self._growing, None
        if growing is None:
            return
        text = growing.text
        if growing.kind == "thought":
            yield frames.SummaryTextDone(self.next_number(), growing.id, growing.index, text)
            yield self._summary_part("done", growing, text)
            item = frames.ReasoningItem(growing.id, (frames.SummaryText(text),), "completed")
            yield self._finish(growing.index, item)
            return
        annotations = list(self._annotations(text))
        for at, annotation in enumerate(annotations):
            yield frames.AnnotationAdded(self.next_number(), growing.id, growing.index, at, annotation)
        yield frames.TextDone(self.next_number(), growing.id, growing.index, text)
        part = frames.OutputText(text, annotations)
        yield self._content_part("done", growing, part)
        yield self._finish(growing.index, frames.MessageItem(growing.id, "completed", (part,)))

    def _called(self, body: ToolCalled) -> Iterator[StreamEvent]:
        self._calls[body.tool_call_id] = body
        if not body.asks:
            yield from self._begin_call(body)

    def _begin_call(self, body: ToolCalled) -> Iterator[StreamEvent]:
        """Shows a call; one that the client runs is complete with its arguments."""
        arguments, index = _encode(body.arguments).decode(), len(self.output)
        if body.server == CLIENT:
            id_, kind = self._ids.of_call("fc", body.tool_call_id), "response.function_call_arguments"
            item = frames.FunctionCallItem(id_, body.tool_call_id, body.tool_name, "", "in_progress")
            yield self._append(item)
        else:
            id_, kind = self._ids.of_call("mcp", body.tool_call_id), "response.mcp_call_arguments"
            yield self._append(self._call_item(body, "", "in_progress"))
            yield self._of_call("response.mcp_call.in_progress", id_, index)
            self._open[body.tool_call_id] = index
        yield frames.ArgumentsDelta(f"{kind}.delta", self.next_number(), id_, index, arguments)
        name = body.tool_name if body.server == CLIENT else msgspec.UNSET
        yield frames.ArgumentsDone(f"{kind}.done", self.next_number(), id_, index, arguments, name)
        if body.server == CLIENT:
            done = frames.FunctionCallItem(id_, body.tool_call_id, body.tool_name, arguments, "completed")
            yield self._finish(index, done)
        else:
            self.output[index] = self._call_item(body, arguments, "calling")

    def _returned(self, body: ToolResultStored) -> Sequence[StreamEvent]:
        call = self._calls.get(body.tool_call_id)
        if call is None or call.server == CLIENT:
            return ()
        events = [] if body.tool_call_id in self._open else list(self._begin_call(call))
        index = self._open.pop(body.tool_call_id)
        is_ok, item = body.status == "ok", self.output[index]
        assert isinstance(item, frames.McpCallItem)
        item = _with_result(item, body, is_ok=is_ok)
        kind = "response.mcp_call.completed" if is_ok else "response.mcp_call.failed"
        return [*events, self._of_call(kind, item.id, index), self._finish(index, item)]

    def _call_item(
        self, body: ToolCalled, arguments: str, status: Literal["in_progress", "calling"]
    ) -> frames.McpCallItem:
        return frames.McpCallItem(
            id=self._ids.of_call("mcp", body.tool_call_id),
            server_label=body.server or OUR_SERVER,
            name=body.tool_name,
            arguments=arguments,
            status=status,
            approval_request_id=self._requests.get(body.tool_call_id),
        )

    def _asked(self, body: ApprovalRequest) -> Iterator[StreamEvent]:
        call = self._calls.get(body.tool_call_id or "")
        self._asked_here.add(body.request_id)
        match body.kind:
            case ApprovalKind.TOOL if call is not None:
                id_ = approval_id(body.request_id)
                self._requests[call.tool_call_id] = id_
                yield from self._whole(
                    frames.McpApprovalRequestItem(
                        id_, call.server or OUR_SERVER, call.tool_name, _encode(call.arguments).decode()
                    )
                )
            case ApprovalKind.CLIENT_TOOL:
                if call is not None and call.asks:  # the user has allowed it; now the client runs it
                    yield from self._begin_call(call)
            case _:
                yield from self._say("text", body.message)
                yield from self._close()

    def _found(self, body: Retrieval) -> Iterator[StreamEvent]:
        numbers = self._numbers.add(body.hits)
        self._hits |= dict(zip(numbers, body.hits, strict=True))
        index, id_ = len(self.output), self._ids.next("fs")
        yield self._append(frames.FileSearchItem(id_, (body.query,), "in_progress"))
        for status in ("in_progress", "searching", "completed"):
            yield self._of_call(f"response.file_search_call.{status}", id_, index)
        results = [
            frames.FileSearchResult(it.document_id or "", it.file_name or it.source, it.score, it.text)
            for it in body.hits
        ]
        yield self._finish(index, frames.FileSearchItem(id_, (body.query,), "completed", results))

    def _annotations(self, text: str) -> Iterator[frames.Annotation]:
        for cited in _CITED.finditer(text):
            hit = self._hits.get(int(cited[1]))
            if hit is not None and hit.url is not None:
                yield frames.UrlCitation(cited.start(), cited.end(), hit.url, hit.source)
            elif hit is not None:
                yield frames.FileCitation(hit.document_id or "", hit.file_name or hit.source, cited.start())

    def _supersede(self) -> None:
        """The items of a model call that is repeated no longer count; the protocol can't take them back."""
        for index in range(self._call_began_at, len(self.output)):
            match self.output[index]:
                case frames.MessageItem(id=id_):
                    self.output[index] = frames.MessageItem(id_, "incomplete", (frames.OutputText(""),))
                case frames.ReasoningItem(id=id_):
                    self.output[index] = frames.ReasoningItem(id_, status="incomplete")
                case _:
                    pass

    def _append(self, item: OutputItem) -> StreamEvent:
        self.output.append(item)
        return frames.ItemEvent("response.output_item.added", self.next_number(), len(self.output) - 1, item)

    def _finish(self, index: int, item: OutputItem) -> StreamEvent:
        self.output[index] = item
        return frames.ItemEvent("response.output_item.done", self.next_number(), index, item)

    def _whole(self, item: OutputItem) -> Iterator[StreamEvent]:
        yield self._append(item)
        yield self._finish(len(self.output) - 1, item)

    def _of_call(self, type_: str, item_id: str, index: int) -> StreamEvent:
        return frames.CallEvent(type_, self.next_number(), item_id, index)

    def _content_part(
        self, what: Literal["added", "done"], growing: _Growing, part: frames.OutputText
    ) -> StreamEvent:
        return frames.ContentPartEvent(
            f"response.content_part.{what}", self.next_number(), growing.id, growing.index, 0, part
        )

    def _summary_part(self, what: Literal["added", "done"], growing: _Growing, text: str) -> StreamEvent:
        return frames.SummaryPartEvent(
            f"response.reasoning_summary_part.{what}",
            self.next_number(),
            growing.id,
            growing.index,
            frames.SummaryText(text),
        )


def _with_result(item: frames.McpCallItem, body: ToolResultStored, *, is_ok: bool) -> frames.McpCallItem:
    """A call with its result."""
    if not is_ok:
        error = frames.ToolExecutionError((frames.TextContent(body.error or body.status),))
        return msgspec.structs.replace(item, status="failed", error=error)
    result = body.result if isinstance(body.result, str) else _encode(body.result).decode()
    return msgspec.structs.replace(item, status="completed", output=result)


def texts_of_reply(message: Message) -> set[str]:
    """The texts of the items of a reply, from its message."""
    return {
        part.text if isinstance(part, TextPart) else part.message
        for part in message.parts
        if isinstance(part, TextPart | QuestionPart) and message.role is MessageRole.ASSISTANT
    }
