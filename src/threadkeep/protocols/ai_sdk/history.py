"""Stored messages → messages as the client would have built them from their streams. Pure, like `encode.py`.

The text of a model call that was repeated isn't in it: versions 5 and 6 can't remove it while they stream,
and a page that is loaded again no longer shows it.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec import UNSET, UnsetType

from threadkeep.domain.approval import CallApproval
from threadkeep.domain.file import is_image
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    OutputPart,
    QuestionPart,
    RetrievalPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
    card_of,
)
from threadkeep.domain.parts import Part as OurPart
from threadkeep.domain.tool_call import ToolCallStatus
from threadkeep.protocols.ai_sdk import frames, parts
from threadkeep.protocols.ai_sdk.frames import Part, ToolState, UIMessage
from threadkeep.protocols.ai_sdk.parts import Reader, Sources


def ui_message(message: Message, id_: str, reader: Reader) -> UIMessage:
    """A message under the id by which the client knows it."""
    match message.role:
        case MessageRole.USER:
            return UIMessage(id=id_, role="user", parts=_of_user(message, reader))
        case MessageRole.ASSISTANT:
            known = parts.started(message.turn_id)
            if message.status is MessageStatus.COMPLETED:
                known = {**known, **parts.completed(message.model, message.usage)}
            built = _Building(reader).parts_of(message)
            return UIMessage(id=id_, role="assistant", metadata=known, parts=built)
        case MessageRole.SYSTEM:
            # Pages show no system messages; as the agent's words, a briefing gets read.
            card = card_of(message.parts)
            return UIMessage(id=id_, role="assistant", parts=[_text(card.text if card else message.text)])
        case _ as never:
            assert_never(never)


def _of_user(message: Message, reader: Reader) -> list[Part]:
    """Files come before the text, as clients send them."""
    files = [
        reader.file(it.file_id, it.media_type, it.file_name, is_image=is_image(it.media_type))
        for it in message.files
    ]
    return [*files, *([frames.Text(text=message.text)] if message.text else [])]


def _text(text: str) -> frames.Text:
    return frames.Text(text=text, state="done")


class _Building:
    """An answer's parts; each model call begins a step with the first thing that it adds."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._version = reader.version
        self._built: list[Part] = []
        self._requests: list[Part] = []
        self._charts: list[Part] = []
        """Streams send both after all calls of a step."""
        self._iteration = 0
        self._grown = 0
        self._sources = Sources()

    def parts_of(self, message: Message) -> list[Part]:
        """All parts."""
        for part in message.parts:
            # A superseded step was reset, not removed.
            if not part.superseded or self._version == 7:
                self._begin_step(part.iteration)
            if not part.superseded:
                self._add(part)
        self._end_calls()
        if message.error is not None:
            error = message.error
            self._built.append(parts.failure(error.code, error.message, retryable=error.retryable))
        return self._built

    def _begin_step(self, iteration: int) -> None:
        if iteration == self._iteration:
            return
        self._end_calls()
        self._iteration, self._grown = iteration, 0
        self._built.append(frames.StepStart())

    def _end_calls(self) -> None:
        self._built += self._requests + self._charts
        self._requests, self._charts = [], []

    def _add(self, part: OurPart) -> None:
        if isinstance(part, ToolCallPart):
            self._built.append(self._call(part))
            if part.approval is not None and self._version == 5:
                self._requests.append(_text(part.approval.message))
            if part.call.chart_data is not None:
                self._charts.append(parts.chart(part.call.tool_call_id, part.call.chart_data))
            return
        self._end_calls()
        self._built += self._others(part)

    def _others(self, part: OurPart) -> Sequence[Part]:
        match part:
            case TextPart():
                self._grown += 1
                return [_text(part.text)]
            case ThoughtPart():
                return [self._thought(part)]
            case RetrievalPart():
                return self._sources.found(part.query, part.hits)
            case QuestionPart():
                return [_text(part.message) if self._version == 5 else parts.question(part, part.decision)]
            case UserTextPart():
                return [self._reader.steering(part.message_id, part.text)]
            case StepPart():
                return [parts.step(part)]
            case NoticePart():
                return [parts.notice(part.code, part.message)]
            case FilePart(is_elsewhere=True) | CardPart() | ToolCallPart():
                return []
            case OutputPart(value=value):
                return [parts.output(value)]
            case FilePart():
                is_shown = is_image(part.media_type)
                return [self._reader.file(part.file_id, part.media_type, is_image=is_shown)]
            case _ as never:
                assert_never(never)

    def _thought(self, part: ThoughtPart) -> frames.Reasoning:
        self._grown += 1
        text = part.text if part.title is None else f"{part.title}: {part.text}"
        return frames.Reasoning(id=f"{self._iteration}.{self._grown}", text=text)

    def _call(self, part: ToolCallPart) -> frames.Tool:
        call = part.call
        is_ours = call.server != CLIENT
        state = self._state(part)
        is_error = state == "output-error"
        return frames.Tool(
            type="dynamic-tool" if is_ours else f"tool-{call.tool_name}",
            tool_name=call.tool_name if is_ours else UNSET,
            tool_call_id=call.tool_call_id,
            state=state,
            input=call.arguments,
            output=call.result if state == "output-available" else UNSET,
            error_text=parts.error_text(call.error, call.status.value) if is_error else UNSET,
            provider_executed=True if is_ours else UNSET,
            call_provider_metadata=parts.call_metadata(call.server),
            approval=self._approval(part.approval),
        )

    def _state(self, part: ToolCallPart) -> ToolState:
        is_asked = part.approval is not None and self._version > 5
        match part.call.status:
            case ToolCallStatus.RUNNING if is_asked and part.approval and not part.client_request:
                return "approval-requested" if part.approval.decision is None else "approval-responded"
            case ToolCallStatus.RUNNING:
                return "input-available"
            case ToolCallStatus.OK:
                return "output-available"
            case ToolCallStatus.DENIED if is_asked:
                return "output-denied"
            case _:
                return "output-error"

    def _approval(self, asked: CallApproval | None) -> frames.Approval | UnsetType:
        if asked is None or self._version == 5:
            return UNSET
        return frames.Approval(
            id=asked.request_id,
            request_reason=asked.message if self._version == 7 else UNSET,
            approved=UNSET if asked.decision is None else parts.is_approval(asked.decision.action),
        )
