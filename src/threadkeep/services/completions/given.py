"""A history as a client gives it, and as a model receives it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, Literal

from threadkeep.context.attachments import FileRules, tokens_of_files
from threadkeep.context.call_ids import is_sendable_id
from threadkeep.context.estimates import estimate_tokens
from threadkeep.context.passages import passages_text
from threadkeep.context.rendering import line_of, tools_text
from threadkeep.context.request import TOKENS_KEPT_FOR_THE_REPLY
from threadkeep.context.tool_results import Form
from threadkeep.context.window import start_that_fits
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.text import is_blank, storable
from threadkeep.engine.model_call import FinishedCall
from threadkeep.ports.gateway import Block, ModelMessage, TextBlock, ToolResultBlock, ToolSpec, ToolUse
from threadkeep.services.files import LoadedFile

_BEGINNING = ModelMessage("user", (TextBlock("[The conversation begins with your message.]"),))
"""Providers accept no history that begins with the model."""


@dataclass(frozen=True, slots=True)
class GivenCall:
    """A call of one of the client's functions, and what it returned."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenMessage:
    """A message of the history; a reply may call functions, which have returned."""

    role: Literal["user", "assistant"]
    text: str
    files: Sequence[LoadedFile] = ()
    calls: Sequence[GivenCall] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRules:
    """How a model receives a history."""

    files: FileRules
    system: str
    tools: Sequence[ToolSpec]
    max_tokens: int | None
    found: Sequence[RetrievalHit] = ()
    """The passages found for the last message."""


def model_messages(history: Sequence[GivenMessage], rules: GivenRules) -> tuple[ModelMessage, ...]:
    """The latest messages that fit the model, from a question on; the last question always stays."""
    rounds = list(_rounds(history, rules))
    lines = ((estimate_tokens(line_of(it)) for it in messages) for messages in rounds)
    sizes = [sum(size) + tokens_of_files(it) for size, it in zip(lines, rounds, strict=True)]
    described = tools_text(rules.tools) if rules.tools else ""
    reply = rules.max_tokens or TOKENS_KEPT_FOR_THE_REPLY
    room = rules.files.context_tokens - reply - sum(map(estimate_tokens, (rules.system, described)))
    start = start_that_fits(sizes, len(rounds) - 1, room)
    return tuple(_alternating(chain.from_iterable(rounds[start:])))


def whole_history(history: Sequence[GivenMessage], rules: GivenRules) -> tuple[ModelMessage, ...]:
    """All messages, whether or not they fit."""
    return tuple(_alternating(chain.from_iterable(_rounds(history, rules))))


def _rounds(history: Sequence[GivenMessage], rules: GivenRules) -> Iterator[list[ModelMessage]]:
    """The history in pieces that each begin with a message of the user."""
    rendering = _Rendering(rules)
    last = max((at for at, it in enumerate(history) if it.role == "user"), default=-1)
    messages: list[ModelMessage] = []
    for at, message in enumerate(history):
        if message.role == "user" and messages:
            yield messages
            messages = []
        messages += rendering.messages_of(message, found=rules.found if at == last else ())
    yield messages


def _alternating(messages: Iterable[ModelMessage]) -> Iterator[ModelMessage]:
    """Messages whose roles alternate, beginning with the user."""
    is_first = True
    for _, (first, *more) in groupby(messages, key=lambda it: it.role):
        if is_first and first.role == "assistant":
            yield _BEGINNING
        is_first = False
        yield ModelMessage(first.role, tuple(chain(first.blocks, *(it.blocks for it in more))))


class _Rendering:
    """Renders a history's messages in order."""

    def __init__(self, rules: GivenRules) -> None:
        self._files = rules.files
        self._calls_as_blocks = bool(rules.tools)
        self._sent_ids: set[str] = set()

    def messages_of(
        self, message: GivenMessage, *, found: Sequence[RetrievalHit] = ()
    ) -> Sequence[ModelMessage]:
        """A message as the model receives it; none if it is empty."""
        text = storable(message.text)
        said = () if is_blank(text) else (TextBlock(text),)
        if message.role == "user":
            passages = (TextBlock(passages_text(found)),) if found else ()
            blocks: tuple[Block, ...] = (*passages, *self._blocks_of(message.files), *said)
            return [ModelMessage("user", blocks)] if blocks else []
        if not message.calls:
            return [ModelMessage("assistant", said)] if said else []
        uses = [ToolUse(self._sent_id(it.id), it.name, it.arguments) for it in message.calls]
        results = [
            ToolResultBlock(use.id, storable(call.result), is_error=False)
            for use, call in zip(uses, message.calls, strict=True)
        ]
        called = FinishedCall(0, "tool_use", (*said, *uses))
        return called.with_results([(it,) for it in results], as_blocks=self._calls_as_blocks)

    def _blocks_of(self, files: Sequence[LoadedFile]) -> Iterator[Block]:
        parts = [it.part for it in files]
        contents: dict[PayloadId, Any] = {id_: it for file in files for id_, it in file.contents.items()}
        text_tokens = self._files.text_tokens(parts)
        for part in parts:
            yield from self._files.blocks(part, Form.WHOLE, contents, text_tokens=text_tokens)

    def _sent_id(self, id_: str) -> str:
        """A call's id, or another if providers would refuse that."""
        if id_ in self._sent_ids or not is_sendable_id(id_):
            id_ = f"given_{len(self._sent_ids)}"
        self._sent_ids.add(id_)
        return id_
