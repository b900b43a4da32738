"""Messages as a model is sent them again: what was said, called and returned, in order, in blocks.

A call never goes without its result, whatever happened to its turn: every provider accepts the history.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any

import msgspec

from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.mcp import OWN_SERVERS
from threadkeep.domain.message import Message, MessageRole
from threadkeep.domain.parts import (
    CardPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
)
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.text import is_blank, one_line
from threadkeep.domain.times import time_in
from threadkeep.domain.tool_call import SHOWN, ToolCall, ToolCallStatus
from threadkeep.engine.passages import passages_text
from threadkeep.engine.tool_names import outside_name
from threadkeep.engine.tool_results import SentResult, cut_result, result_text, shortened
from threadkeep.ports.gateway import Block, ModelMessage, TextBlock, ToolResultBlock, ToolUseBlock

MOST_SUMMARY_CHARACTERS = 500
MOST_DESCRIBED_CHARACTERS = 2_000

_is_sendable = re.compile(r"[A-Za-z0-9_-]{1,40}").fullmatch
_NO_RESULT = "The turn ended before the tool."


@dataclass(slots=True)
class Rendering:
    """How messages are rendered for one request."""

    zone: tzinfo
    thoughts: bool
    """Whether the reasoning of earlier replies is sent with them."""
    calls_as_blocks: bool
    """Whether the request has tools; providers refuse tool blocks where it has none."""
    passages: Mapping[str, Sequence[RetrievalHit]] = field(default_factory=dict[str, Sequence[RetrievalHit]])
    """What was found before a reply, by the id of its question."""
    large: Mapping[PayloadId, bytes] = field(default_factory=dict[PayloadId, bytes])
    """The values that lie in the payload store."""
    short: frozenset[str] = frozenset()
    """The calls whose results are sent in their short form."""
    _sent_ids: set[str] = field(default_factory=set[str])
    _renamed: Counter[str] = field(default_factory=Counter[str])
    """How often an id was given another; to begin at 0 again would take longer each time."""
    _results: dict[int, str] = field(default_factory=dict[int, str])

    def messages_of(self, message: Message) -> list[ModelMessage]:
        """A message as the model is sent it."""
        if message.role is not MessageRole.ASSISTANT:
            blocks = tuple(self._said(message))
            return [ModelMessage("user", blocks)] if blocks else []
        if not self.calls_as_blocks:
            text = "\n\n".join(self._described(message))
            return [] if is_blank(text) else [ModelMessage("assistant", (TextBlock(text),))]
        return list(self._reply(message))

    def _said(self, message: Message) -> Iterator[Block]:
        if hits := self.passages.get(message.id):
            yield TextBlock(passages_text(hits))
        for part in message.parts:
            match part:
                case TextPart(text=text) if not is_blank(text):
                    yield TextBlock(text)
                case CardPart(card=card):
                    yield TextBlock(render_card(card, self.zone))
                case _:
                    pass

    def _reply(self, reply: Message) -> Iterator[ModelMessage]:
        """Each model call as one message, followed by one with the results of its tools."""
        blocks: list[Block] = []
        results: list[Block] = []
        iteration = 0
        for part in reply.parts:
            if part.superseded:
                continue
            if part.iteration != iteration:
                yield from _model_call(blocks, results)
                blocks, results, iteration = [], [], part.iteration
            if isinstance(part, TextPart):
                if not is_blank(part.text):
                    blocks.append(TextBlock(part.text))
            elif isinstance(part, ToolCallPart):
                call, sent_id = part.call, self._sent_id(part.call)
                blocks.append(ToolUseBlock(sent_id, model_name_of(call), self._arguments(call)))
                results.append(self._result(sent_id, call))
            elif isinstance(part, ThoughtPart) and self.thoughts and not is_blank(part.text):
                blocks.append(TextBlock(_as_thought(part.text)))
        yield from _model_call(blocks, results)

    def _described(self, reply: Message) -> Iterator[str]:
        for part in reply.parts:
            if part.superseded:
                continue
            match part:
                case TextPart(text=text) if not is_blank(text):
                    yield text
                case ThoughtPart(text=text) if self.thoughts and not is_blank(text):
                    yield _as_thought(text)
                case ToolCallPart(call=call):
                    given = msgspec.json.encode(self._arguments(call)).decode()[:MOST_DESCRIBED_CHARACTERS]
                    returned = self.result_of(call)[:MOST_DESCRIBED_CHARACTERS]
                    yield f"[Called {call.tool_name} with {given}. It returned ({call.status}): {returned}]"
                case _:
                    pass

    def _result(self, sent_id: str, call: ToolCall) -> ToolResultBlock:
        text = self.result_of(call)
        if call.tool_call_id in self.short:
            text = shortened(call.tool_name, SentResult(call.tool_call_id, text))
        return ToolResultBlock(sent_id, text, is_error=call.status is not ToolCallStatus.OK)

    def result_of(self, call: ToolCall) -> str:
        """What the model was sent of a result in its own turn."""
        # Asked for twice: to see whether all fit, and to be sent.
        text = self._results.get(id(call))
        if text is None:
            text = self._results[id(call)] = self._read_result(call)
        return text

    def _read_result(self, call: ToolCall) -> str:
        if call.status is ToolCallStatus.RUNNING:
            return _NO_RESULT
        if not call.refs:
            return result_text(call.tool_call_id, call.result, call.error)
        if shown := self._value(call, SHOWN):
            return msgspec.json.decode(shown, type=str)
        if "result" in call.refs and call.error is None:
            # A record that was made before, or elsewhere.
            content = self._value(call, "result") or b"null"
            text = content.decode("utf-8", "replace")
            return cut_result(call.tool_call_id, msgspec.json.decode(content) if text[:1] == '"' else text)
        return result_text(call.tool_call_id, call.result, call.error)

    def _arguments(self, call: ToolCall) -> Mapping[str, Any]:
        content = self._value(call, "arguments") if call.refs else None
        return msgspec.json.decode(content, type=dict[str, Any]) if content else call.arguments

    def _value(self, call: ToolCall, name: str) -> bytes | None:
        ref = call.refs.get(name)
        return self.large.get(ref) if ref else None

    def _sent_id(self, call: ToolCall) -> str:
        """The call's id; another where a provider would refuse it or the request has it already."""
        wanted, name = call.tool_call_id, f"{call.turn_id}\n{call.tool_call_id}"
        while wanted in self._sent_ids or not _is_sendable(wanted):
            numbered = f"{name}\n{self._renamed[name]}"
            wanted = f"call_{hashlib.sha256(numbered.encode('utf-8', 'replace')).hexdigest()[:32]}"
            self._renamed[name] += 1
        self._sent_ids.add(wanted)
        return wanted


def _model_call(blocks: list[Block], results: list[Block]) -> Iterator[ModelMessage]:
    if blocks:
        yield ModelMessage("assistant", tuple(blocks))
    if results:
        yield ModelMessage("user", tuple(results))


def _as_thought(text: str) -> str:
    """Earlier reasoning as text: a provider takes its own blocks of it only within their turn."""
    return f"<thinking>\n{text}\n</thinking>"


def sent_refs(call: ToolCall) -> Iterator[PayloadId]:
    """Which of a call's values that lie in the payload store a model is sent."""
    result = SHOWN if SHOWN in call.refs else "result"
    return (ref for name, ref in call.refs.items() if name in {"arguments", result})


def model_name_of(call: ToolCall) -> str:
    """What the model called the tool; a record of before, or of elsewhere, is given the name by our rule."""
    if call.model_name:
        return call.model_name
    is_own = not call.server or call.server in OWN_SERVERS
    return call.tool_name if is_own else outside_name(call.server, call.tool_name)


def render_card(card: BriefingCard, zone: tzinfo) -> str:
    """A briefing card as the model reads it."""
    sent = time_in(card.sent_at, zone)
    # One line each: a break in what somebody wrote would begin a line that looks like ours.
    title, summary = one_line(card.title), one_line(card.summary)
    if len(summary) > MOST_SUMMARY_CHARACTERS:
        summary = summary[:MOST_SUMMARY_CHARACTERS] + "..."
    return f"[简报 {sent:%Y-%m-%d %H:%M}]\n标题：{title}\n摘要：{summary}\n优先级：{card.priority}"
