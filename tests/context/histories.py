"""Conversations as they may have happened, for tests of what a model is sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from threadkeep.context.tool_results import MOST_RESULT_CHARACTERS, Excerpt
from threadkeep.domain.briefing import BriefingCard, Priority
from threadkeep.domain.ids import BriefingId, ConversationId, MessageId, PayloadId, TurnId
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import (
    CardPart,
    NoticePart,
    Part,
    Parts,
    RetrievalPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    text_parts,
)
from threadkeep.domain.payload import Lost
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.text import BLANK_CHARACTERS, is_blank
from threadkeep.domain.tool_call import MODEL_READS, ToolCall, ToolCallStatus
from threadkeep.gateways.encoding import encode

AT = 1_767_751_200_000  # 2026-01-07 02:00 UTC
SECRET_THOUGHT = "what-the-model-only-thought"

STATUSES = list(ToolCallStatus)
IDS = ["call_1", "call_2", "", "a b", "x" * 41, "工具", *map(str, range(30))]
TRICKY = [
    "\n",
    "[DONE]",
    "{}",
    '"',
    "\\",
    "😀",
    "e\u0301",
    "\u202e",
    "<thinking>",
    "工具",
    "\ud7ff",
    "\uffff",
]


class Chance:
    """Draws what may happen; the same seed always draws the same."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.payloads: dict[PayloadId, bytes | Lost] = {}
        """The values of calls that lie in the payload store, or are lost there."""

    def once_in(self, times: int) -> bool:
        return self.random.randrange(times) == 0

    def blank(self) -> str:
        return "".join(self.random.choices(BLANK_CHARACTERS, k=self.random.randrange(4)))

    def words(self) -> str:
        """Something to read, with odd characters in it."""
        letters = self.random.choices(["a", "b", " ", *TRICKY], k=self.random.randrange(1, 12))
        return "w" + "".join(letters)

    def value(self, depth: int = 2) -> Any:
        kinds: list[Any] = [None, True, 7, -1.5, "", self.words()]
        if depth:
            inner = [self.value(depth - 1) for _ in range(self.random.randrange(3))]
            kinds += [inner, {self.words(): it for it in inner}]
        return self.random.choice(kinds)

    def result(self) -> Any:
        return "long " * self.random.randrange(1, 9000) if self.once_in(6) else self.value()

    def reply(self, turn: str) -> tuple[Parts, MessageStatus]:
        """Any reply: what several model calls said, thought, found and called, broken off anywhere."""
        parts: list[Part] = []
        if self.once_in(3):
            hits = (RetrievalHit("a.md", self.words(), 0.5, document_id="d"),)
            parts.append(RetrievalPart(query="q", hits=hits, at=AT))
        # Every call of a turn has an id of its own; those of two turns may be the same.
        ids = iter(self.random.sample(IDS, len(IDS)))
        for iteration in range(1, self.random.randrange(1, 5)):
            superseded = self.once_in(5)
            count = self.random.randrange(6)
            parts += [self._part(turn, ids, iteration, superseded) for _ in range(count)]
        said = any(isinstance(it, TextPart) and not it.superseded and not is_blank(it.text) for it in parts)
        ends = [MessageStatus.FAILED, MessageStatus.CANCELLED, *([MessageStatus.COMPLETED] if said else [])]
        return tuple(parts), self.random.choice(ends)

    def _part(self, turn: str, ids: Iterator[str], iteration: int, superseded: bool) -> Part:
        common: dict[str, Any] = {"iteration": iteration, "superseded": superseded}
        match self.random.choice(["text", "text", "thought", "call", "call", "notice"]):
            case "text":
                return TextPart(text=self.random.choice([self.blank(), self.words()]), **common)
            case "thought":
                return ThoughtPart(text=SECRET_THOUGHT, started_at=AT, **common)
            case "notice":
                return NoticePart(code="X", message="x", at=AT, **common)
            case _:
                return ToolCallPart(call=self._apart(self._call(turn, next(ids))), **common)

    def _apart(self, call: ToolCall) -> ToolCall:
        """A call of which some values lie in the payload store."""
        refs: dict[str, PayloadId] = {}
        excerpt = None
        if self.once_in(4):
            refs["result"] = self._store(call.result)
            if not self.once_in(3):
                sent = str(self.result())[:MOST_RESULT_CHARACTERS]
                refs[MODEL_READS] = self._store(sent)
                excerpt = self.random.choice([None, Excerpt.of(sent).to_store()])
        if self.once_in(8):
            refs["arguments"] = self._store(call.arguments)
        return replace(
            call,
            refs=refs,
            result=excerpt if "result" in refs else call.result,
            arguments={} if "arguments" in refs else call.arguments,
        )

    def _store(self, value: Any) -> PayloadId:
        ref = PayloadId(f"p{len(self.payloads)}")
        self.payloads[ref] = Lost("The content is missing.") if self.once_in(3) else encode(value)
        return ref

    def _call(self, turn: str, id_: str) -> ToolCall:
        return call(
            id_,
            self.result(),
            turn=turn,
            status=self.random.choice(STATUSES),
            arguments={self.words(): self.value() for _ in range(self.random.randrange(3))},
            server=self.random.choice(["", "promptx", "web search", "s" * 60]),
            tool_name=self.words(),
            error=self.random.choice([None, self.words()]),
            model_name=self.random.choice(["", "web__search"]),
        )


def card(title: str = "政策更新", summary: str = "新规发布。", sent_at: int = AT) -> BriefingCard:
    return BriefingCard(BriefingId("b"), title, summary, Priority.P1, sent_at)


def call(
    call_id: str = "call_1",
    result: Any = "42",
    *,
    turn: str = "t",
    status: ToolCallStatus = ToolCallStatus.OK,
    arguments: dict[str, Any] | None = None,
    **fields: Any,
) -> ToolCall:
    return ToolCall(
        turn_id=TurnId(turn),
        tool_call_id=call_id,
        message_id=MessageId("m"),
        tool_name=fields.pop("tool_name", "add"),
        server=fields.pop("server", "sums"),
        arguments=arguments or {},
        status=status,
        created_at=AT,
        result=result,
        model_name=fields.pop("model_name", "sums__add"),
        **fields,
    )


@dataclass
class Conversation:
    """A path that grows; every message follows the one before."""

    messages: list[Message] = field(default_factory=list[Message])

    def add(
        self,
        role: MessageRole,
        parts: Parts,
        status: MessageStatus = MessageStatus.COMPLETED,
        *,
        on_path: bool = True,
    ) -> Message:
        seq = self.messages[-1].seq + 1 if self.messages else 1
        before = next((it.id for it in reversed(self.messages) if it.on_path), None)
        message = Message(
            id=MessageId(f"m{seq}"),
            conversation_id=ConversationId("c"),
            seq=seq,
            turn_id=TurnId(f"t{seq}"),
            role=role,
            parts=parts,
            status=status,
            created_at=AT,
            completed_at=AT,
            parent_id=before,
            on_path=on_path,
        )
        self.messages.append(message)
        return message

    def ask(self, text: str) -> Message:
        return self.add(MessageRole.USER, text_parts(text))

    def reply(self, *parts: Part | str, status: MessageStatus = MessageStatus.COMPLETED) -> Message:
        made = tuple(TextPart(text=it) if isinstance(it, str) else it for it in parts)
        return self.add(MessageRole.ASSISTANT, made, status)

    def tell(self, briefing: BriefingCard) -> Message:
        return self.add(MessageRole.SYSTEM, (CardPart(card=briefing),))


def exchanges(count: int, *, result: str = "") -> Conversation:
    """Questions with replies, each with the call of a tool where it has a result."""
    conversation = Conversation()
    for number in range(1, count + 1):
        conversation.ask(f"question {number}")
        used: Sequence[Part] = ()
        if result:
            used = (ToolCallPart(call=call(f"call_{number}", f"{number} {result}"), iteration=1),)
        conversation.reply(*used, TextPart(text=f"answer {number}", iteration=2))
    return conversation


def message(seq: int, role: MessageRole, content: str | BriefingCard, status: MessageStatus) -> Message:
    """One message by itself."""
    parts = text_parts(content) if isinstance(content, str) else (CardPart(card=content),)
    return Message(
        id=MessageId(f"m{seq}"),
        conversation_id=ConversationId("c"),
        seq=seq,
        turn_id=TurnId("t"),
        role=role,
        parts=parts,
        status=status,
        created_at=AT,
    )


def asked(seq: int, content: str) -> Message:
    """A question by itself."""
    return message(seq, MessageRole.USER, content, MessageStatus.COMPLETED)


def replied(seq: int, content: str, status: MessageStatus = MessageStatus.COMPLETED) -> Message:
    """A reply by itself."""
    return message(seq, MessageRole.ASSISTANT, content, status)
