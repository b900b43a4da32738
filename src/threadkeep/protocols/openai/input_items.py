"""What a response was given, as items: the user's message, or what was decided since the response before."""

from collections.abc import Sequence
from typing import Any

import msgspec

from threadkeep.domain.approval import ApprovalAction, ApprovalKind
from threadkeep.domain.events import TurnEvent
from threadkeep.domain.file import is_image
from threadkeep.domain.message import Message
from threadkeep.domain.parts import BLANK_LINE, FilePart
from threadkeep.domain.turn import Turn
from threadkeep.protocols.narrator import Decided, Narration, Narrator
from threadkeep.protocols.openai import frames
from threadkeep.protocols.openai.ids import approval_id, file_id, message_item_id
from threadkeep.protocols.openai.items import Items
from threadkeep.services.turns import Turns


async def decisions_for(turns: Turns, turn: Turn, part: int) -> Sequence[frames.InputItem]:
    """What was decided before a part of a turn."""
    decided: list[frames.InputItem] = []
    items, narrator = Items(turn.id), Narrator(decision)

    def take(event: TurnEvent) -> None:
        items.add(event)
        narrated = narrator.narrate(event.body)
        if items.part == part:
            decided.extend(narrated)

    await turns.read(turn, take)
    return decided


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


def decision(narrated: Narration) -> Sequence[frames.InputItem]:
    """A decision as an item; none if nobody made it."""
    if not isinstance(narrated, Decided) or narrated.request is None:
        return ()
    request, response = narrated.request, narrated.response
    if response.action is ApprovalAction.EXPIRE:
        return ()
    if request.kind is ApprovalKind.CLIENT_TOOL and request.tool_call_id is not None:
        return (function_output(request.request_id, request.tool_call_id, response.content),)
    if request.kind is ApprovalKind.TOOL:
        is_approved = response.action is not ApprovalAction.DENY
        return (approval_response(request.request_id, approve=is_approved),)
    text = response.content if isinstance(response.content, str) else ""
    return (frames.UserMessageItem(f"{approval_id(request.request_id)}_answer", (frames.InputText(text),)),)


def function_output(request_id: str, tool_call_id: str, output: Any) -> frames.FunctionOutputItem:
    """What a function of the client returned."""
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    return frames.FunctionOutputItem(f"{approval_id(request_id)}_output", tool_call_id, text)


def approval_response(request_id: str, *, approve: bool) -> frames.ApprovalResponseItem:
    """Whether a call was approved."""
    id_ = approval_id(request_id)
    return frames.ApprovalResponseItem(f"{id_}_answer", id_, approve)
