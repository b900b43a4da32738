"""The active path as a request that every provider accepts, and its receipt."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, Literal, NamedTuple

import msgspec

from threadkeep.context.attachments import RECALL_FILE, FileRules, tokens_of_files
from threadkeep.context.cards import CardStyle
from threadkeep.context.estimates import estimate_tokens
from threadkeep.context.history import Rendering
from threadkeep.context.outputs import asking_component, schema_text
from threadkeep.context.prompt import SUMMARY_HEADING, SYSTEM_PROMPT, Component, joined
from threadkeep.context.rendering import (
    common_share,
    line_of,
    messages_of,
    segments,
    tools_of,
    tools_text,
)
from threadkeep.context.tool_results import Form, Shrinkable, choose_forms, prior_forms
from threadkeep.context.window import start_that_fits, window_start
from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.file import file_line
from threadkeep.domain.ids import MessageId, PayloadId
from threadkeep.domain.message import Message, MessageRole
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    Part,
    RetrievalPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
)
from threadkeep.domain.payload import Lost, text_hash
from threadkeep.domain.receipt import ComponentReceipt, Receipt
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall
from threadkeep.ports.gateway import TAKES_NO_FILES, ModelMessage, ModelRequest, TakenFiles, ToolSpec

TOKENS_KEPT_FOR_THE_REPLY = 1024
SHARE_FOR_RESULTS = 4
"""The maximum share of the model's context for results of earlier turns, if it is limited."""


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """One entry of a model's history as text. Every provider accepts these two roles, and no others."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ContextRules:
    """How much of a conversation a model receives, and in which form."""

    cards: CardStyle
    context_tokens: int
    """How much the model reads and writes in one call."""
    context_messages: int = 0
    result_tokens: int = 0
    """The limit for results of earlier turns (0 = no limit)."""
    thoughts: bool = False
    files: TakenFiles = TAKES_NO_FILES
    """Which files the model receives as is."""
    temperature: float | None = None
    max_tokens: int | None = None

    @property
    def result_budget(self) -> int:
        """How much the results of earlier turns may take."""
        if not self.result_tokens:
            return self.context_tokens
        return min(self.result_tokens, self.context_tokens // SHARE_FOR_RESULTS)


@dataclass(frozen=True, slots=True)
class Sources:
    """The inputs of a request."""

    path: Sequence[Message]
    """The latest messages of the active path, oldest first, with the question among them."""
    question_id: MessageId
    components: Sequence[Component] = ()
    tools: Sequence[ToolSpec] = ()
    output: Mapping[str, Any] | None = None
    """The JSON schema that the reply is to fit."""
    found: Sequence[RetrievalHit] = ()
    """The passages found for the question before the reply."""
    payloads: Mapping[PayloadId, bytes | Lost] | None = None
    """The values of the path's calls that are in the payload store."""
    prior: Receipt | None = None
    """The newest receipt on the active path."""
    is_new_window: bool = False
    """Whether the window starts as if there were no receipt: the path or its compactions have changed."""
    model: str = ""
    """The id of the model that is asked."""
    cache_key: str | None = None


class BuiltRequest(NamedTuple):
    """A request, its receipt, and the texts that the receipt refers to by hash."""

    request: ModelRequest
    receipt: Receipt
    texts: Mapping[str, str]


def is_in_context(message: Message) -> bool:
    """Whether to send a message: it is on the path, and has text, a card, a file or a tool call."""
    return message.on_path and any(map(_counts, message.parts))


def _counts(part: Part) -> bool:
    if isinstance(part, TextPart):
        return not part.superseded and not is_blank(part.text)
    if isinstance(part, ToolCallPart) and part.is_of_other_agent:
        return False
    return isinstance(part, CardPart | FilePart | ToolCallPart) and not part.superseded


def to_context(
    messages: Iterable[Message], *, summary: str | None, cards: CardStyle, thoughts: bool = False
) -> list[ContextMessage]:
    """Messages, oldest first, as role and text, for engines that accept nothing else; the summary comes
    first.
    """
    history = [
        ContextMessage("assistant" if message.role is MessageRole.ASSISTANT else "user", text)
        for message in messages
        if is_in_context(message) and not is_blank(text := _as_text(message, cards, thoughts))
    ]
    return [ContextMessage("user", f"{SUMMARY_HEADING}{summary}"), *history] if summary else history


def build_request(sources: Sources, rules: ContextRules) -> BuiltRequest:
    """A request with the history as it happened; it begins like the previous one if possible."""
    components = [it for it in sources.components if not is_blank(it.text)]
    wanted = "" if sources.output is None else schema_text(sources.output)
    if sources.output is not None:
        components.append(asking_component(sources.output))
    described = tools_text(sources.tools) if sources.tools else ""
    overhead = sum(map(estimate_tokens, (described, *(it.text for it in components))))
    window = _window(sources, rules, overhead)
    messages, lines = _alternating(window)
    texts = [described, *(it.text for it in components), *segments(messages, lines)]
    hashes = list(map(text_hash, texts))
    receipt = _receipt(sources, rules, components, window, hashes, overhead)
    if sources.prior:
        receipt = replace(receipt, prefix_share=common_share(_hashes(sources.prior), texts, hashes))
    request = _request(receipt, components, messages, sources.tools, sources.output)
    named = {name: it for name, it in zip(hashes, texts, strict=True) if it}
    if wanted:
        receipt = replace(receipt, output_sha256=text_hash(wanted))
        named[text_hash(wanted)] = wanted
    return BuiltRequest(request, receipt, named)


def rebuild_request(
    receipt: Receipt, texts: Mapping[str, str], *, system_prompt: str | None = None
) -> ModelRequest:
    """Rebuilds a receipt's request from its texts, or with another text as the agent's own prompt."""
    components = [Component(it.name, texts[it.sha256]) for it in receipt.components]
    if system_prompt is not None:
        others = [it for it in components if it.name != SYSTEM_PROMPT]
        components = [Component(SYSTEM_PROMPT, system_prompt), *others]
    messages = messages_of(texts[it] for it in receipt.segments)
    tools = tools_of(texts[receipt.tools_sha256]) if receipt.tools_sha256 else ()
    output = msgspec.json.decode(texts[receipt.output_sha256]) if receipt.output_sha256 else None
    return _request(receipt, components, tuple(messages), tools, output)


def _request(
    receipt: Receipt,
    components: Iterable[Component],
    messages: Sequence[ModelMessage],
    tools: Sequence[ToolSpec],
    output: Mapping[str, Any] | None,
) -> ModelRequest:
    return ModelRequest(
        model=receipt.model or "",
        system=joined(components),
        messages=tuple(messages),
        tools=tuple(tools),
        temperature=receipt.temperature,
        max_tokens=receipt.max_tokens,
        output=output,
        cache_key=receipt.cache_key,
    )


def _hashes(receipt: Receipt) -> list[str]:
    """Everything sent, by name, in the order in which providers cache it."""
    components = (it.sha256 for it in receipt.components)
    return [receipt.tools_sha256 or text_hash(""), *components, *receipt.segments]


@dataclass(frozen=True, slots=True)
class _Window:
    """A request's messages, as the model receives them."""

    path: Sequence[Message]
    entries: Sequence[Sequence[tuple[ModelMessage, str]]]
    """What the model receives for each message of the path, with its lines in the receipt's texts."""
    tokens: int
    left_out: int
    forms: Mapping[str, Form]
    """The results that are shortened, by call id."""


def _window(sources: Sources, rules: ContextRules, overhead: int) -> _Window:
    path = [message for message in sources.path if is_in_context(message)]
    anchor = sources.prior.first_seq if sources.prior and not sources.is_new_window else None
    asked = _index_of(sources.question_id, path)
    first = window_start([it.seq for it in path], rules.context_messages, anchor)
    path, asked = _from(path, first, asked)
    rendering = _rendering(sources, rules)
    rendering.forms = _forms(path, rendering, sources, rules.result_budget)
    entries = [rendering.messages_of(message) for message in path]
    lines = [[line_of(it) for it in entry] for entry in entries]
    sizes = [
        sum(map(estimate_tokens, texts)) + tokens_of_files(entry)
        for texts, entry in zip(lines, entries, strict=True)
    ]
    room = rules.context_tokens - (rules.max_tokens or TOKENS_KEPT_FOR_THE_REPLY) - overhead
    start = start_that_fits(sizes, asked, room) if path else 0
    kept = [at for at in range(len(path)) if at >= start or at == asked]
    return _Window(
        path=[path[at] for at in kept],
        entries=[list(zip(entries[at], lines[at], strict=True)) for at in kept],
        tokens=sum(sizes[at] for at in kept),
        left_out=len(path) - len(kept),
        forms=rendering.forms,
    )


def _index_of(question_id: MessageId, path: Sequence[Message]) -> int:
    """The question's index; by default the last message's."""
    found = (at for at, message in enumerate(path) if message.id == question_id)
    return next(found, max(len(path) - 1, 0))


def _from(path: list[Message], first: int, asked: int) -> tuple[list[Message], int]:
    """The path from a message on; an earlier question stays."""
    if asked >= first:
        return path[first:], asked - first
    return [path[asked], *path[first:]], 0


def _rendering(sources: Sources, rules: ContextRules) -> Rendering:
    passages: dict[str, Sequence[RetrievalHit]] = {}
    for message in sources.path:  # passages were sent even for a reply that failed without text
        if message.on_path and message.parent_id and (hits := _found_before(message)):
            passages[message.parent_id] = hits
    if sources.found:
        passages[sources.question_id] = sources.found
    return Rendering(
        cards=rules.cards,
        thoughts=rules.thoughts,
        calls_as_blocks=bool(sources.tools),
        files=FileRules(
            rules.files,
            rules.context_tokens,
            can_recall=any(it.name == RECALL_FILE for it in sources.tools),
        ),
        passages=passages,
        payloads=sources.payloads or {},
    )


def _found_before(reply: Message) -> list[RetrievalHit]:
    """The passages found before a reply, which were sent with its question."""
    parts = (it for it in reply.parts if isinstance(it, RetrievalPart) and not it.iteration)
    return [hit for part in parts if not part.superseded for hit in part.hits]


def _forms(path: Sequence[Message], rendering: Rendering, sources: Sources, budget: int) -> dict[str, Form]:
    """The parts of earlier turns that are not sent whole: those shortened before, and more if necessary."""
    prior = sources.prior
    forms = prior_forms(prior.shortened, prior.outlined) if prior else {}
    files = rendering.files.forms(path, sources.question_id, forms, rendering.payloads)
    return files | _result_forms(path, rendering, forms, budget) if rendering.calls_as_blocks else files


def _result_forms(
    path: Sequence[Message], rendering: Rendering, prior: Mapping[str, Form], budget: int
) -> dict[str, Form]:
    parts = (it for message in path for it in message.parts if isinstance(it, ToolCallPart))
    whole = Form.WHOLE
    sent = (it for it in parts if not it.superseded and not it.is_of_other_agent)
    calls = [(it.call, prior.get(it.call.sent_id, whole)) for it in sent]
    if sum(len(rendering.reads_as(form, call)) for call, form in calls) <= budget:
        # They fit: a character takes at most a token.
        return {call.sent_id: form for call, form in calls if form is not whole}
    return choose_forms([_sized(call, form, rendering) for call, form in calls], budget)


def _sized(call: ToolCall, form: Form, rendering: Rendering) -> Shrinkable:
    tokens = {it: estimate_tokens(rendering.reads_as(it, call)) for it in Form if it >= form}
    return Shrinkable(call.sent_id, form, tokens)


def _alternating(window: _Window) -> tuple[list[ModelMessage], list[str]]:
    """Messages that every provider accepts: they begin and end with the user, and the roles alternate."""
    entries = [
        (message.role is MessageRole.ASSISTANT, entry)
        for message, entry in zip(window.path, window.entries, strict=True)
    ]
    while entries and entries[0][0]:
        entries.pop(0)
    while entries and entries[-1][0]:
        entries.pop()
    merged: list[ModelMessage] = []
    lines: list[str] = []
    sent = (it for _, entry in entries for it in entry)
    for _, group in groupby(sent, key=lambda it: it[0].role):
        (first, line), *more = group
        if more:
            blocks = chain(first.blocks, *(message.blocks for message, _ in more))
            first = ModelMessage(first.role, tuple(blocks))
            line = line_of(first)
        merged.append(first)
        lines.append(line)
    return merged, lines


def _receipt(
    sources: Sources,
    rules: ContextRules,
    components: Sequence[Component],
    window: _Window,
    hashes: Sequence[str],
    overhead: int,
) -> Receipt:
    return Receipt(
        model=sources.model,
        components=tuple(
            ComponentReceipt(component.name, component.sha256, len(component.text), component.left_out > 0)
            for component in components
        ),
        message_ids=tuple(message.id for message in window.path),
        tools=tuple(it.name for it in sources.tools),
        temperature=rules.temperature,
        max_tokens=rules.max_tokens,
        zone=str(rules.cards.zone),
        token_estimate=overhead + window.tokens,
        dropped_messages=window.left_out,
        tools_sha256=hashes[0] if sources.tools else None,
        sha256=text_hash("\n".join(hashes)),
        thoughts=rules.thoughts,
        segments=tuple(hashes[1 + len(components) :]),
        first_seq=window.path[0].seq if window.path else 0,
        shortened=tuple(sorted(window.forms)),
        outlined=tuple(sorted(id_ for id_, form in window.forms.items() if form is Form.OUTLINE)),
        cache_key=sources.cache_key,
    )


def _as_text(message: Message, cards: CardStyle, thoughts: bool) -> str:
    content = message.content
    if isinstance(content, BriefingCard):
        return cards.render(content)
    files = (file_line(it.file_name, it.media_type, it.size) for it in message.files)
    content = "\n".join([*files, *([content] if content else ())])
    if not thoughts:
        return content
    reasoning = "\n\n".join(
        part.text for part in message.parts if isinstance(part, ThoughtPart) and part.title is None
    )
    return content if is_blank(reasoning) else f"<thinking>\n{reasoning}\n</thinking>\n\n{content}"
