"""What a response was given, as items: the user's message, or what was decided since the response before."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from threadkeep.domain.approval import ApprovalAction, ApprovalKind
from threadkeep.domain.events import ApprovalRequest, ApprovalResponse, LogChunk, TurnEvent
from threadkeep.domain.file import is_image
from threadkeep.domain.message import Message
from threadkeep.domain.parts import BLANK_LINE, FilePart
from threadkeep.domain.turn import Turn
from threadkeep.log.format import decode_chunk
from threadkeep.protocols.openai import frames
from threadkeep.protocols.openai.ids import approval_id, file_id, message_item_id
from threadkeep.protocols.openai.items import Items


def input_items(turn: Turn, asked: Message, chunks: Iterable[LogChunk], part: int) -> list[frames.InputItem]:
    """The items that a part of a turn was given."""
    if part == 1:
        return [user_message(asked)]
    events = (event for chunk in chunks for event in decode_chunk(chunk.events))
    return list(_decisions(turn, events, part))


def user_message(message: Message) -> frames.UserMessageItem:
    """A user's message."""
    text = (frames.InputText(message.text),) if message.text else ()
    return frames.UserMessageItem(message_item_id(message.id), (*text, *map(_file, message.files)))


def joined_text(messages: Sequence[Message]) -> str:
    """The text of several messages, as a request that brings them all has it."""
    return BLANK_LINE.join(it.text for it in messages if it.text)


def _file(file: FilePart) -> frames.InputImage | frames.InputFile:
    id_ = file_id(file.file_id)
    return frames.InputImage(id_) if is_image(file.media_type) else frames.InputFile(id_, file.file_name)


class Decisions:
    """What was decided in a turn, as items; takes the turn's events in order."""

    def __init__(self) -> None:
        self._asked: dict[str, ApprovalRequest] = {}

    def add(self, event: TurnEvent) -> frames.InputItem | None:
        """The decision that an event tells, if it does."""
        body = event.body
        if isinstance(body, ApprovalRequest):
            self._asked[body.request_id] = body
        if isinstance(body, ApprovalResponse) and (asked := self._asked.get(body.request_id)) is not None:
            return _decision(asked, body)
        return None


def _decisions(turn: Turn, events: Iterable[TurnEvent], part: int) -> Iterator[frames.InputItem]:
    items, decisions = Items(turn.id), Decisions()
    for event in events:
        items.add(event)
        decided = decisions.add(event)
        if items.part == part and decided is not None:
            yield decided


def _decision(asked: ApprovalRequest, answer: ApprovalResponse) -> frames.InputItem | None:
    """A decision; None if nobody made it."""
    if answer.action is ApprovalAction.EXPIRE:
        return None
    if asked.kind is ApprovalKind.CLIENT_TOOL and asked.tool_call_id is not None:
        return function_output(asked.request_id, asked.tool_call_id, answer.content)
    if asked.kind is ApprovalKind.TOOL:
        return approval_response(asked.request_id, approve=answer.action is not ApprovalAction.DENY)
    text = answer.content if isinstance(answer.content, str) else ""
    return frames.UserMessageItem(f"{approval_id(asked.request_id)}_answer", (frames.InputText(text),))


def function_output(request_id: str, tool_call_id: str, output: Any) -> frames.FunctionOutputItem:
    """What a function of the client returned."""
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    return frames.FunctionOutputItem(f"{approval_id(request_id)}_output", tool_call_id, text)


def approval_response(request_id: str, *, approve: bool) -> frames.ApprovalResponseItem:
    """Whether a call was approved."""
    id_ = approval_id(request_id)
    return frames.ApprovalResponseItem(f"{id_}_answer", id_, approve)
