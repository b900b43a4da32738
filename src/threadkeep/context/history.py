"""Messages as the model receives them again: texts, calls and results, in order, in blocks.

Every call has a result, however its turn ended, so every provider accepts the history.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from threadkeep.context.attachments import NO_FILES, FileRules, form_key
from threadkeep.context.call_ids import is_sendable_id
from threadkeep.context.cards import CardStyle
from threadkeep.context.passages import passages_text
from threadkeep.context.tool_names import outside_name
from threadkeep.context.tool_results import (
    TURN_ENDED,
    Excerpt,
    Form,
    describe_call,
    model_reads,
    outline,
    short_form,
    stored_text,
)
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.mcp import OWN_SERVERS
from threadkeep.domain.message import Message, MessageRole
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.payload import Lost
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import MODEL_READS, ToolCall, ToolCallStatus, derived_id
from threadkeep.ports.gateway import (
    Block,
    ModelMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)

# Naming an enumeration's member is slow, and a long history has many calls.
_WHOLE, _OK, _RUNNING = Form.WHOLE, ToolCallStatus.OK, ToolCallStatus.RUNNING

MOST_DESCRIBED_CHARACTERS = 2_000


@dataclass(slots=True)
class Rendering:
    """How messages are rendered for one request."""

    cards: CardStyle
    thoughts: bool
    """Whether earlier replies are sent with their reasoning."""
    calls_as_blocks: bool
    """Whether the request has tools; providers reject tool blocks if it has none."""
    files: FileRules = NO_FILES
    passages: Mapping[str, Sequence[RetrievalHit]] = field(default_factory=dict[str, Sequence[RetrievalHit]])
    """The passages found before each reply, by its question's id."""
    payloads: Mapping[PayloadId, bytes | Lost] = field(default_factory=dict[PayloadId, bytes | Lost])
    """The values from the payload store."""
    forms: Mapping[str, Form] = field(default_factory=dict[str, Form])
    """The results that are not sent whole, by the ids of their calls."""
    _sent_ids: set[str] = field(default_factory=set[str])
    _renamed: Counter[str] = field(default_factory=Counter[str])
    """How often each id was replaced; starting at 0 again would take longer each time."""
    _cached_reads: dict[int, str] = field(default_factory=dict[int, str])

    def messages_of(self, message: Message) -> list[ModelMessage]:
        """A message as the model receives it."""
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
        text_tokens = self.files.text_tokens(message.files)
        for part in message.parts:
            match part:
                case TextPart(text=text) if not is_blank(text):
                    yield TextBlock(text)
                case CardPart(card=card):
                    yield TextBlock(self.cards.render(card))
                case FilePart():
                    form = self.forms.get(form_key(part), Form.WHOLE)
                    yield from self.files.blocks(part, form, self.payloads, text_tokens=text_tokens)
                case _:
                    pass

    def _reply(self, reply: Message) -> Iterator[ModelMessage]:
        """Each model call as one message, followed by one with the results of its tools."""
        blocks: list[Block] = []
        results: list[Block] = []
        iteration = 0
        sent_ids: dict[str, str] = {}
        for part in reply.parts:
            if part.superseded or (isinstance(part, ToolCallPart) and part.is_of_other_agent):
                continue
            if part.iteration != iteration:
                yield from _model_call(blocks, results)
                blocks, results, iteration = [], [], part.iteration
            if isinstance(part, TextPart):
                if not is_blank(part.text):
                    blocks.append(TextBlock(part.text))
            elif isinstance(part, ToolCallPart):
                call = part.call
                wanted_id = call.sent_id
                sent_ids[call.tool_call_id] = sent_id = self._sent_id(call, wanted_id)
                blocks.append(ToolUseBlock(sent_id, model_name_of(call), self.arguments_of(call)))
                reads = self.reads_as(self.forms.get(wanted_id, _WHOLE), call)
                results.append(ToolResultBlock(sent_id, reads, call.status is not _OK))
            elif isinstance(part, UserTextPart):
                results.append(TextBlock(part.text))
            elif isinstance(part, FilePart) and part.tool_call_id in sent_ids:
                sent_id, form = sent_ids[part.tool_call_id], self.forms.get(form_key(part), Form.WHOLE)
                results += self.files.blocks(part, form, self.payloads, text_tokens=0, tool_use_id=sent_id)
            elif isinstance(part, ThoughtPart) and self.thoughts and not is_blank(part.text):
                blocks.append(TextBlock(_as_thought(part.text)))
        yield from _model_call(blocks, results)

    def _described(self, reply: Message) -> Iterator[str]:
        for part in reply.parts:
            if part.superseded or (isinstance(part, ToolCallPart) and part.is_of_other_agent):
                continue
            match part:
                case TextPart(text=text) if not is_blank(text):
                    yield text
                case ThoughtPart(text=text) if self.thoughts and not is_blank(text):
                    yield _as_thought(text)
                case UserTextPart(text=text):
                    yield f"[The user added: {text}]"
                case ToolCallPart(call=call):
                    yield describe_call(
                        call.tool_name,
                        self.arguments_of(call),
                        call.status,
                        self.reads(call),
                        most_given=MOST_DESCRIBED_CHARACTERS,
                        most_read=MOST_DESCRIBED_CHARACTERS,
                    )
                case _:
                    pass

    def reads_as(self, form: Form, call: ToolCall) -> str:
        """What the model reads of a result in one of its forms."""
        if form is _WHOLE:
            return self.reads(call)
        shortened = short_form if form is Form.SHORT else outline
        return shortened(call.tool_name, call.sent_id, self._excerpt(call))

    def _excerpt(self, call: ToolCall) -> Excerpt:
        if (stored := stored_excerpt(call)) is not None:
            return stored
        # The model may have read only the result's beginning, or a note before it.
        reads, text = Excerpt.of(self.reads(call)), self._stored_text(call)
        return reads if text is None else replace(Excerpt.of(text), head=reads.head)

    def _stored_text(self, call: ToolCall) -> str | None:
        """A result's whole text as stored, if it is loaded."""
        if call.status is ToolCallStatus.RUNNING:
            return None
        if "result" not in call.refs:
            return stored_text(call.result, call.error)
        content = self._value(call, "result")
        return _decoded(content) if isinstance(content, bytes) else None

    def reads(self, call: ToolCall) -> str:
        """What the model read of a result in the call's own turn."""
        # Cached because it is needed twice: to check whether all results fit, and to send it.
        text = self._cached_reads.get(id(call))
        if text is None:
            text = self._cached_reads[id(call)] = self._reads_of(call)
        return text

    def _reads_of(self, call: ToolCall) -> str:
        if call.status is _RUNNING:
            return TURN_ENDED
        if not call.refs:
            return model_reads(call.sent_id, stored_text(call.result, call.error))
        content = self._value(call, MODEL_READS)
        if content is None and call.error is None:  # an older record, or an imported one
            content = self._value(call, "result")
        match content:
            case Lost(reason):
                return f"[The result is no longer available: {reason}]"
            case bytes():
                return model_reads(call.sent_id, _decoded(content))
            case None if excerpt := stored_excerpt(call):  # shortened, so not loaded
                return short_form(call.tool_name, call.sent_id, excerpt)
            case None:
                return model_reads(call.sent_id, stored_text(call.result, call.error))

    def arguments_of(self, call: ToolCall) -> Mapping[str, Any]:
        """The arguments of a call, even if they are in the payload store."""
        if not call.refs:
            return call.arguments
        match self._value(call, "arguments"):
            case Lost(reason):
                return {"unavailable": True, "reason": reason}
            case bytes() as content:
                return msgspec.json.decode(content, type=dict[str, Any])
            case None:
                return call.arguments

    def _value(self, call: ToolCall, name: str) -> bytes | Lost | None:
        ref = call.refs.get(name)
        return self.payloads.get(ref) if ref else None

    def _sent_id(self, call: ToolCall, wanted: str) -> str:
        """The id that the call always has in requests; another if that would make this one invalid."""
        while wanted in self._sent_ids or not is_sendable_id(wanted):
            name = f"{call.turn_id}\n{call.tool_call_id}"
            self._renamed[name] += 1
            wanted = derived_id(call.turn_id, f"{call.tool_call_id}\n{self._renamed[name]}")
        self._sent_ids.add(wanted)
        return wanted


def _decoded(content: bytes) -> str:
    """A value from the payload store as text: a string as is, anything else as JSON."""
    return msgspec.json.decode(content) if content[:1] == b'"' else content.decode("utf-8", "replace")


def _model_call(blocks: list[Block], results: list[Block]) -> Iterator[ModelMessage]:
    if blocks:
        yield ModelMessage("assistant", tuple(blocks))
    if results:  # first of all: providers accept nothing before them
        results.sort(key=lambda block: not isinstance(block, ToolResultBlock))
        yield ModelMessage("user", tuple(results))


def _as_thought(text: str) -> str:
    """Earlier reasoning as text: a provider accepts its own reasoning blocks only within their turn."""
    return f"<thinking>\n{text}\n</thinking>"


def stored_excerpt(call: ToolCall) -> Excerpt | None:
    """The excerpt that replaces a result whose full text is in the payload store."""
    return Excerpt.stored(call.result) if "result" in call.refs else None


def read_refs(call: ToolCall, *, is_short: bool) -> Iterator[PayloadId]:
    """Which of a call's values in the payload store the model reads."""
    if "arguments" in call.refs:
        yield call.refs["arguments"]
    result = call.refs.get(MODEL_READS) or call.refs.get("result")
    if result and not (is_short and stored_excerpt(call)):
        yield result


def model_name_of(call: ToolCall) -> str:
    """The model's name for the tool; for an older or imported record, the name by our rule."""
    if call.model_name:
        return call.model_name
    is_own = not call.server or call.server in OWN_SERVERS
    return call.tool_name if is_own else outside_name(call.server, call.tool_name)
