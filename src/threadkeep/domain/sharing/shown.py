"""What a share shows of a message: the conversation, but nothing private to its owner or the operator.

It hides approvals, notices and servers' forms. It also hides the tools that return the agent's prompts, its
memories of the owner, and other messages.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from threadkeep.domain.ids import PayloadId
from threadkeep.domain.mcp import HISTORY, PROMPTX, RESULTS, USER
from threadkeep.domain.message import Failure, Message
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    OutputPart,
    Part,
    QuestionPart,
    RetrievalPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_call import shown_refs

_PRIVATE = frozenset({PROMPTX, HISTORY, RESULTS})
"""The servers whose calls no share shows."""
FAILED = "The answer failed."

_FENCE = re.compile(r" {0,3}(```|~~~)")
_CODE_OR_MARK = re.compile(r"`+[^`]*`+| ?\[(\d{1,3})\](?!\()")


def shown_of(message: Message, *, with_tools: bool) -> Message:
    """A message as a share shows it."""
    shown = _Shown(message, with_tools=with_tools)
    parts = tuple(it for part in message.parts if not part.superseded for it in shown.of(part))
    # What its error says may name the operator's machines; its code doesn't.
    error = Failure(message.error.code, FAILED) if message.error else None
    return replace(message, parts=parts, error=error, usage=None, token_count=None, model=None)


def files_of(message: Message) -> Iterator[PayloadId]:
    """The files that a shown message refers to."""
    for part in message.parts:
        if isinstance(part, FilePart) and not part.is_elsewhere:
            yield part.file_id
        elif isinstance(part, ToolCallPart):
            yield from part.call.artifact_ids


class _Shown:
    def __init__(self, message: Message, *, with_tools: bool) -> None:
        calls = [part.call for part in message.parts if isinstance(part, ToolCallPart)]
        self._private = {call.tool_call_id for call in calls if call.server in _PRIVATE}
        self._asking = {call.tool_call_id for call in calls if call.server == USER}
        self._hidden = self._private | self._asking
        self._with_tools = with_tools
        self._marks_left_out = 0 if with_tools else len(message.citations)

    def of(self, part: Part) -> Iterator[Part]:
        match part:
            case TextPart(text=text) if self._marks_left_out:
                yield replace(part, text=_without_marks(text, self._marks_left_out))
            case TextPart():
                yield part
            case UserTextPart():
                yield replace(part, message_id="")
            case ThoughtPart() | StepPart():
                if self._with_tools:
                    yield part
            case ToolCallPart(call=call):
                # A question is shown itself, not the call that asked it.
                if self._with_tools and call.tool_call_id not in self._hidden:
                    shown = replace(call, refs=shown_refs(call.refs))
                    yield replace(part, call=shown, approval=None, client_request=None)
            case RetrievalPart():
                if self._with_tools:
                    yield _without_hits(part) if part.tool_call_id in self._private else part
            case FilePart():
                if part.tool_call_id not in self._private:
                    yield part
            case QuestionPart():
                # What an agent in code asks is of no call; what is of another is a form for a server.
                if part.tool_call_id is None or part.tool_call_id in self._asking:
                    yield part
            case CardPart(card=card):
                yield replace(part, card=replace(card, data=None, actions=()))
            case NoticePart() | OutputPart():
                pass
            case _ as never:
                assert_never(never)


def _without_hits(part: RetrievalPart) -> RetrievalPart:
    """Empty hits in place of private ones: the reply cites those after them by their numbers."""
    return replace(part, query="", hits=tuple(RetrievalHit("", "", 0.0) for _ in part.hits))


def _without_marks(text: str, sources: int) -> str:
    """A reply without its marks `[1]` for so many sources, which aren't shown; code stays as it is."""

    def kept(found: re.Match[str]) -> str:
        number = found[1]
        return "" if number and 1 <= int(number) <= sources else found[0]

    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opened = _FENCE.match(line)
        is_code = bool(fence or opened)
        if opened and fence in ("", opened[1]):
            fence = "" if fence else opened[1]
        lines.append(line if is_code else _CODE_OR_MARK.sub(kept, line))
    return "\n".join(lines)
