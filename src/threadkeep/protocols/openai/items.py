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
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Literal, assert_never

import msgspec

from threadkeep.domain import events
from threadkeep.domain.approval import ApprovalKind
from threadkeep.domain.ids import TurnId
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.message import Message, MessageRole, Usage
from threadkeep.domain.outputs.json_text import json_in
from threadkeep.domain.parts import QuestionPart, TextPart
from threadkeep.domain.retrieval import PassageNumbers, RetrievalHit
from threadkeep.protocols import narrator
from threadkeep.protocols.checked import CheckedReplies
from threadkeep.protocols.openai import frames
from threadkeep.protocols.openai.frames import OutputItem, StreamEvent
from threadkeep.protocols.openai.ids import ItemIds, approval_id

OUR_SERVER = "threadkeep"
"""The label of the server of tools that run in our process."""

_CITED = re.compile(r"\[(\d{1,4})\]")
_encode = msgspec.json.Encoder().encode


class Items:
    """The items of one turn, part by part; takes its events from the first, in order.

    A part ends where the turn waited for its user. `output`, `usage` and the numbers are those of the current
    part.
    """

    def __init__(self, turn_id: TurnId) -> None:
        self.part = 1
        """Which part of the turn the latest event belongs to."""
        self.output: list[OutputItem] = []
        self.next_number = count().__next__
        """The number of the next event of the stream."""
        self._narrator = narrator.Narrator(self._events, text=self._text, thought=self._thought)
        self._checked = CheckedReplies(only_json=True)
        self._ids = ItemIds(turn_id)
        self._id, self._index = "", 0
        """Those of the message or thought in progress."""
        self._iteration = 0
        self._iterations: list[int] = []
        """The model call, or the step of a program, of each item of this part."""
        self._open: dict[str, int] = {}
        """Calls without a result, and the places of their items in this part."""
        self._numbers = PassageNumbers()
        self._hits: dict[int, RetrievalHit] = {}
        self._asked_here: set[str] = set()
        """The requests that the current part made."""

    @property
    def usage(self) -> Usage:
        """What the current part has used."""
        return self._narrator.usage

    @property
    def end(self) -> events.Done | events.Failed | None:
        """How the turn ended."""
        return self._narrator.end

    def begins_part(self, event: events.TurnEvent) -> bool:
        """Whether an event is the first answer to what the current part asked.

        Other answers to the same part may come later, between the results of tools: they belong to the part
        that the first one began.
        """
        return isinstance(event.body, events.ApprovalResponse) and event.body.request_id in self._asked_here

    def add(self, event: events.TurnEvent) -> Sequence[StreamEvent]:
        """The stream's events for the next event of the turn."""
        passing = self._checked.passing(event.body)
        added = [*chain.from_iterable(map(self._narrator.narrate, passing))]
        if isinstance(event.body, events.Done) and (refusal := self._checked.refusal) is not None:
            added += self._refused(refusal)
        return added

    def close(self) -> Sequence[StreamEvent]:
        """Ends what is in progress, where the stream ends."""
        closing = list(self._narrator.pause())
        for index in self._open.values():
            call = self.output[index]
            assert isinstance(call, frames.McpCallItem)
            closing.append(self._finish(index, msgspec.structs.replace(call, status="incomplete")))
        self._open.clear()
        return closing

    def _begin_part(self) -> None:
        self.part += 1
        self.output, self.next_number, self._iterations = [], count().__next__, []
        self._narrator.begin_response()
        self._open.clear()
        self._asked_here.clear()

    def _text(self, text: str) -> Sequence[StreamEvent]:
        return (frames.TextDelta(self.next_number(), self._id, self._index, text),)

    def _thought(self, text: str) -> Sequence[StreamEvent]:
        return (frames.SummaryTextDelta(self.next_number(), self._id, self._index, text),)

    def _events(self, narrated: narrator.Narration) -> Iterable[StreamEvent]:
        match narrated:
            case narrator.PartStart(kind):
                return self._begin(kind)
            case narrator.PartEnd("text", text):
                return self._end_message(text)
            case narrator.PartEnd(_, text):
                return self._end_thought(text)
            case narrator.Called(called):
                return () if called.asks else self._begin_call(narrated)
            case narrator.Returned(result, call):
                return self._returned(result, call)
            case narrator.Asked():
                return self._asked(narrated)
            case narrator.Decided(response):
                if response.request_id in self._asked_here:
                    self._begin_part()
                return ()
            case events.Retrieval():
                return self._found(narrated)
            case events.IterationStart(iteration):
                self._iteration = iteration
                return ()
            case events.IterationRestart(iteration):
                self._iteration = iteration
                self._supersede()
                return ()
            case events.UsageReported() | events.UserMessage() | events.Notice() | events.ToolProgress():
                return ()
            case events.TurnStart() | events.Done() | events.Failed():
                return ()
            case narrator.StepBegan() | narrator.StepEnded():
                return ()
            case _ as never:
                assert_never(never)

    def _begin(self, kind: narrator.Kind) -> Iterator[StreamEvent]:
        self._id, self._index = self._ids.next("msg" if kind == "text" else "rs"), len(self.output)
        if kind == "text":
            yield self._append(frames.MessageItem(self._id, "in_progress"))
            yield self._content_part("added", frames.OutputText(""))
        else:
            yield self._append(frames.ReasoningItem(self._id, status="in_progress"))
            yield self._summary_part("added", "")

    def _end_thought(self, text: str) -> Iterator[StreamEvent]:
        yield frames.SummaryTextDone(self.next_number(), self._id, self._index, text)
        yield self._summary_part("done", text)
        item = frames.ReasoningItem(self._id, (frames.SummaryText(text),), "completed")
        yield self._finish(self._index, item)

    def _refused(self, text: str) -> Iterator[StreamEvent]:
        """What the model says instead of the JSON that it was asked for, as an item of its own."""
        self._id, self._index = self._ids.next("msg"), len(self.output)
        yield self._append(frames.MessageItem(self._id, "in_progress"))
        yield self._content_part("added", frames.RefusalText(""))
        yield frames.RefusalDelta(self.next_number(), self._id, self._index, text)
        yield frames.RefusalDone(self.next_number(), self._id, self._index, text)
        part = frames.RefusalText(text)
        yield self._content_part("done", part)
        yield self._finish(self._index, frames.MessageItem(self._id, "completed", (part,)))

    def _end_message(self, text: str) -> Iterator[StreamEvent]:
        annotations = list(self._annotations(text))
        for at, annotation in enumerate(annotations):
            yield frames.AnnotationAdded(self.next_number(), self._id, self._index, at, annotation)
        yield frames.TextDone(self.next_number(), self._id, self._index, text)
        part = frames.OutputText(text, annotations)
        yield self._content_part("done", part)
        yield self._finish(self._index, frames.MessageItem(self._id, "completed", (part,)))

    def _begin_call(self, call: narrator.Called) -> Iterator[StreamEvent]:
        """Shows a call; one that the client runs is complete with its arguments."""
        called = call.event
        arguments, index = _encode(called.arguments).decode(), len(self.output)
        if called.server == CLIENT:
            id_, kind = self._ids.of_call("fc", called.tool_call_id), "response.function_call_arguments"
            item = frames.FunctionCallItem(id_, called.tool_call_id, called.tool_name, "", "in_progress")
            yield self._append(item)
        else:
            id_, kind = self._ids.of_call("mcp", called.tool_call_id), "response.mcp_call_arguments"
            yield self._append(self._call_item(call, "", "in_progress"))
            yield self._of_call("response.mcp_call.in_progress", id_, index)
            self._open[called.tool_call_id] = index
        yield frames.ArgumentsDelta(f"{kind}.delta", self.next_number(), id_, index, arguments)
        name = called.tool_name if called.server == CLIENT else msgspec.UNSET
        yield frames.ArgumentsDone(f"{kind}.done", self.next_number(), id_, index, arguments, name)
        if called.server == CLIENT:
            done = frames.FunctionCallItem(id_, called.tool_call_id, called.tool_name, arguments, "completed")
            yield self._finish(index, done)
        else:
            self.output[index] = self._call_item(call, arguments, "calling")

    def _returned(
        self, result: events.ToolResultStored, call: narrator.Called | None
    ) -> Iterator[StreamEvent]:
        if call is None or call.event.server == CLIENT:
            return
        if result.tool_call_id not in self._open:
            yield from self._begin_call(call)
        index = self._open.pop(result.tool_call_id)
        is_ok, item = result.status == "ok", self.output[index]
        assert isinstance(item, frames.McpCallItem)
        kind = "response.mcp_call.completed" if is_ok else "response.mcp_call.failed"
        yield self._of_call(kind, item.id, index)
        yield self._finish(index, _with_result(item, result, is_ok=is_ok))

    def _call_item(
        self, call: narrator.Called, arguments: str, status: Literal["in_progress", "calling"]
    ) -> frames.McpCallItem:
        return frames.McpCallItem(
            id=self._ids.of_call("mcp", call.event.tool_call_id),
            server_label=call.event.server or OUR_SERVER,
            name=call.event.tool_name,
            arguments=arguments,
            status=status,
            approval_request_id=approval_id(call.approval.request_id) if call.approval else None,
        )

    def _asked(self, asked: narrator.Asked) -> Iterator[StreamEvent]:
        request, call = asked.request, asked.call
        self._asked_here.add(request.request_id)
        match request.kind:
            case ApprovalKind.TOOL if call is not None:
                label, name = call.event.server or OUR_SERVER, call.event.tool_name
                arguments = _encode(call.event.arguments).decode()
                id_ = approval_id(request.request_id)
                yield from self._whole(frames.McpApprovalRequestItem(id_, label, name, arguments))
            case ApprovalKind.CLIENT_TOOL:
                if call is not None and call.event.asks:  # the user has allowed it; now the client runs it
                    yield from self._begin_call(call)
            case _:
                yield from self._narrator.say(request.message)

    def _found(self, body: events.Retrieval) -> Iterator[StreamEvent]:
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
        for index, iteration in enumerate(self._iterations):
            if iteration != self._iteration:
                continue
            match self.output[index]:
                case frames.MessageItem(id=id_):
                    self.output[index] = frames.MessageItem(id_, "incomplete", (frames.OutputText(""),))
                case frames.ReasoningItem(id=id_):
                    self.output[index] = frames.ReasoningItem(id_, status="incomplete")
                case _:
                    pass

    def _append(self, item: OutputItem) -> StreamEvent:
        self.output.append(item)
        self._iterations.append(self._iteration)
        return frames.ItemEvent("response.output_item.added", self.next_number(), len(self.output) - 1, item)

    def _finish(self, index: int, item: OutputItem) -> StreamEvent:
        self.output[index] = item
        return frames.ItemEvent("response.output_item.done", self.next_number(), index, item)

    def _whole(self, item: OutputItem) -> Iterator[StreamEvent]:
        yield self._append(item)
        yield self._finish(len(self.output) - 1, item)

    def _of_call(self, type_: str, item_id: str, index: int) -> StreamEvent:
        return frames.CallEvent(type_, self.next_number(), item_id, index)

    def _content_part(self, what: Literal["added", "done"], part: frames.MessagePart) -> StreamEvent:
        type_ = f"response.content_part.{what}"
        return frames.ContentPartEvent(type_, self.next_number(), self._id, self._index, 0, part)

    def _summary_part(self, what: Literal["added", "done"], text: str) -> StreamEvent:
        type_, part = f"response.reasoning_summary_part.{what}", frames.SummaryText(text)
        return frames.SummaryPartEvent(type_, self.next_number(), self._id, self._index, part)


def _with_result(
    item: frames.McpCallItem, body: events.ToolResultStored, *, is_ok: bool
) -> frames.McpCallItem:
    """A call with its result."""
    if not is_ok:
        error = frames.ToolExecutionError((frames.TextContent(body.error or body.status),))
        return msgspec.structs.replace(item, status="failed", error=error)
    result = body.result if isinstance(body.result, str) else _encode(body.result).decode()
    return msgspec.structs.replace(item, status="completed", output=result)


def texts_of_reply(message: Message) -> set[str]:
    """The texts of the items of a reply, from its message."""
    if message.role is not MessageRole.ASSISTANT:
        return set()
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    bare = map(json_in, texts) if message.output is not None else ()
    asked = (part.message for part in message.parts if isinstance(part, QuestionPart))
    return {*texts, *bare, *asked}
