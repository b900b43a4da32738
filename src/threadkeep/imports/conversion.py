"""Converts a conversation from another product into one of ours; pure.

All ids derive from the other product's ids and times: importing the same file again yields the same ids, and
lists and searches by time show everything in its place.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import msgspec

from threadkeep.context.titles import derive_title
from threadkeep.domain.conversation import (
    MOST_TITLE_CHARACTERS,
    Conversation,
    ConversationStatus,
    TitleSource,
    WholeConversation,
)
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, PayloadId, TurnId, UserId, derived_uuid
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import (
    FilePart,
    Part,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    text_parts,
)
from threadkeep.domain.payload import Payload, PayloadKind
from threadkeep.domain.text import is_blank, one_line, storable
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import ENDS, KeptTurn, Turn, TurnOrigin
from threadkeep.domain.uploaded_file import ORIGINAL, UploadedFile
from threadkeep.engine.json_values import clean
from threadkeep.engine.large_values import MOST_INLINE_BYTES
from threadkeep.imports.foreign import (
    ForeignCall,
    ForeignConversation,
    ForeignFile,
    ForeignMessage,
    ForeignPart,
    ForeignText,
    ForeignThought,
    MoreParagraphs,
)

MOST_NAME_CHARACTERS = 200
NO_FILES: Mapping[ForeignFile, UploadedFile] = {}


def foreign_id(foreign: ForeignConversation) -> ConversationId:
    """Our id for another product's conversation."""
    # Independent of the time of import: the same file yields the same ids tomorrow.
    return ConversationId(derived_uuid(_created_at(foreign) or 0, foreign.product, foreign.id))


def files_in(conversation: ForeignConversation) -> Iterator[ForeignFile]:
    """The files that a conversation names, each once."""
    parts = (part for message in conversation.messages for part in message.parts)
    return iter(dict.fromkeys(part for part in parts if isinstance(part, ForeignFile)))


def convert_conversation(
    foreign: ForeignConversation,
    user_id: UserId,
    agent_id: AgentId,
    now: int,
    files: Mapping[ForeignFile, UploadedFile] = NO_FILES,
) -> tuple[WholeConversation, Mapping[str, bytes]]:
    """The complete conversation of a user with an agent, and the contents of its values by their hashes.

    `now` replaces unknown times. `files` are stored elsewhere; a text replaces any other file.
    """
    foreign = replace(foreign, messages=[_with_known_files(it, files) for it in foreign.messages])
    conversion = _Conversion(foreign, now, files)
    for said in foreign.messages:
        conversion.add(said)
    started = Conversation.start(user_id, agent_id, conversion.created_at, metadata=_origin(foreign))
    title, source = _title(foreign)
    messages = conversion.messages()
    tip = next((it for it in reversed(messages) if it.on_path), None)
    conversation = replace(
        started,
        id=conversion.id,
        title=title,
        title_source=source,
        status=ConversationStatus.ARCHIVED if foreign.is_archived else ConversationStatus.ACTIVE,
        last_seq=len(messages),
        message_count=sum(it.on_path for it in messages),
        tip_id=tip.id if tip else None,
        updated_at=foreign.updated_at or conversion.at,
        last_message_at=messages[-1].created_at if messages else None,
    )
    return WholeConversation(
        conversation, conversion.turns, messages, (), conversion.payloads
    ), conversion.contents


class _Conversion:
    """The conversation as converted so far."""

    def __init__(
        self, foreign: ForeignConversation, now: int, files: Mapping[ForeignFile, UploadedFile]
    ) -> None:
        self._names = (foreign.product, foreign.id)
        created_at = _created_at(foreign)
        self.created_at = self.at = created_at or now
        self._id_at = created_at or 0
        self.id = foreign_id(foreign)
        self._files = files
        self.turns: list[KeptTurn] = []
        self.payloads: list[Payload] = []
        self.contents: dict[str, bytes] = {}
        self._last = foreign.last
        self._messages: dict[MessageId, Message] = {}
        self._by_foreign_id: dict[str | None, Message | None] = {None: None}
        """Messages by the other product's ids; one that was left out maps to the message before it."""
        self._call_count = 0

    def messages(self) -> list[Message]:
        """All messages; those of the visible branch are on the path."""
        shown: set[MessageId] = set()
        at = self._by_foreign_id.get(self._last)
        while at is not None:
            shown.add(at.id)
            at = self._messages.get(at.parent_id) if at.parent_id else None
        return [it if it.id in shown else replace(it, on_path=False) for it in self._messages.values()]

    def add(self, said: ForeignMessage) -> None:
        """Adds a message, unless it is empty."""
        parent = self._by_foreign_id[said.follows]
        says_nothing = is_blank(storable(said.text)) and not _has_files(said)
        if says_nothing if said.is_question else not said.parts:
            self._by_foreign_id[said.id] = parent
            return
        message = self._question(said, parent) if said.is_question else self._reply(said, parent)
        self._messages[message.id] = self._by_foreign_id[said.id] = message

    def _question(self, said: ForeignMessage, parent: Message | None) -> Message:
        id_ = self._message_id(said)
        files = [part for part in said.parts if isinstance(part, ForeignFile)]
        return Message(
            id=id_,
            conversation_id=self.id,
            seq=len(self._messages) + 1,
            turn_id=None,
            role=MessageRole.USER,
            parts=(
                *(self._file(file, id_, number, iteration=0) for number, file in enumerate(files, 1)),
                *text_parts(storable(said.text)),
            ),
            status=MessageStatus.COMPLETED,
            created_at=self.at,
            completed_at=self.at,
            parent_id=parent.id if parent else None,
        )

    def _reply(self, said: ForeignMessage, parent: Message | None) -> Message:
        """A reply, with its turn if there is a question; a greeting has none."""
        question = parent if parent and parent.role is MessageRole.USER else None
        turn_id = TurnId(self._id("turn", said.id, said.at)) if question else None
        id_ = self._message_id(said)
        # Thoughts or calls but no text: the reply was stopped.
        is_stopped = is_blank(storable(said.text)) and not _has_files(said)
        reply = Message(
            id=id_,
            conversation_id=self.id,
            seq=len(self._messages) + 1,
            turn_id=turn_id,
            role=MessageRole.ASSISTANT,
            parts=tuple(self._parts(said, id_, turn_id)),
            status=MessageStatus.CANCELLED if is_stopped else MessageStatus.COMPLETED,
            created_at=self.at,
            completed_at=self.at,
            model=storable(said.model)[:MOST_NAME_CHARACTERS] if said.model else None,
            parent_id=parent.id if parent else None,
        )
        if question and turn_id:
            self.turns.append(KeptTurn(_turn(turn_id, question, reply)))
            self._begin_with(question, turn_id)
        return reply

    def _begin_with(self, question: Message, turn_id: TurnId) -> None:
        """A question belongs to the turn that replied to it first."""
        if self._messages[question.id].turn_id is None:
            self._messages[question.id] = replace(question, turn_id=turn_id)

    def _message_id(self, said: ForeignMessage) -> MessageId:
        self.at = said.at or self.at
        return MessageId(self._id("message", said.id, said.at))

    def _id(self, kind: str, id_: str, at: int | None) -> str:
        # Ascending like all our ids: the word index has room for few in the same millisecond.
        self._id_at = max(at or 0, self._id_at + 1)
        return derived_uuid(self._id_at, *self._names, kind, id_)

    def _parts(self, said: ForeignMessage, message_id: MessageId, turn_id: TurnId | None) -> Iterator[Part]:
        """The parts of a reply; a tool call belongs to a turn, so a greeting has none."""
        for number, part in enumerate(said.parts, 1):
            match part:
                case ForeignFile():
                    yield self._file(part, message_id, number, iteration=part.iteration)
                case ForeignText(text, iteration):
                    if not is_blank(text := storable(text)):
                        yield TextPart(text=text, iteration=iteration)
                case ForeignThought(text, iteration):
                    yield ThoughtPart(text=storable(text), started_at=self.at, iteration=iteration)
                case ForeignCall():
                    if turn_id is not None:
                        call = self._call(part, message_id, turn_id)
                        yield ToolCallPart(call=call, iteration=part.iteration)

    def _call(self, call: ForeignCall, message_id: MessageId, turn_id: TurnId) -> ToolCall:
        """A tool call; values too large for a row are stored separately, as for our own."""
        self._call_count += 1
        values = {"arguments": clean(call.arguments), "result": clean(call.result)}
        refs: dict[str, PayloadId] = {}
        for name, value in values.items():
            content = msgspec.json.encode(value)
            if len(content) > MOST_INLINE_BYTES:
                refs[name] = self._set_aside(content, message_id, f"{self._call_count} {name}")
                values[name] = {} if name == "arguments" else None
        return ToolCall(
            turn_id=turn_id,
            # Numbered throughout the conversation: models reject duplicate ids.
            tool_call_id=f"call_{self._call_count}",
            message_id=message_id,
            tool_name=storable(call.name)[:MOST_NAME_CHARACTERS] or "tool",
            server="",
            status=ToolCallStatus.ERROR if call.failed else ToolCallStatus.OK,
            created_at=self.at,
            error="The tool failed." if call.failed else None,
            refs=refs,
            **values,
        )

    def _file(self, file: ForeignFile, message_id: MessageId, number: int, *, iteration: int) -> FilePart:
        """Adds a file to the conversation."""

        def id_of(form: str) -> PayloadId:
            name = f"file {number} {form}"
            return PayloadId(derived_uuid(self._id_at, *self._names, "payload", message_id, name))

        found = self._files[file]
        renditions = {name: replace(it, id=id_of(name)) for name, it in found.renditions.items()}
        own = replace(found, id=id_of(ORIGINAL), created_at=self.at, renditions=renditions)
        self.payloads += own.payloads(self.id)
        return replace(own.part, iteration=iteration)

    def _set_aside(self, content: bytes, message_id: MessageId, name: str) -> PayloadId:
        payload = Payload.of(content, self.id, PayloadKind.VALUE, "application/json", self.at)
        id_ = PayloadId(derived_uuid(self._id_at, *self._names, "payload", message_id, name))
        self.payloads.append(replace(payload, id=id_))
        self.contents[payload.sha256] = content
        return id_


def _with_known_files(said: ForeignMessage, files: Mapping[ForeignFile, UploadedFile]) -> ForeignMessage:
    """The same message with a text in place of each file that isn't stored."""
    parts: list[ForeignPart] = []
    more = MoreParagraphs()
    for part in said.parts:
        if not isinstance(part, ForeignFile) or part in files:
            parts.append(part)
        elif part.instead:
            last = parts[-1] if parts else None
            if isinstance(last, ForeignText) and last.iteration == part.iteration:
                more.add(len(parts) - 1, part.instead)
            else:
                parts.append(ForeignText(part.instead, part.iteration))
    return replace(said, parts=more.added_to(parts))


def _has_files(said: ForeignMessage) -> bool:
    return any(isinstance(part, ForeignFile) for part in said.parts)


def _turn(turn_id: TurnId, question: Message, reply: Message) -> Turn:
    return Turn(
        id=turn_id,
        conversation_id=reply.conversation_id,
        user_message_id=question.id,
        assistant_message_id=reply.id,
        status=ENDS[reply.status],
        started_at=question.created_at,
        origin=TurnOrigin.RECORDED,
        model=reply.model,
        ended_at=reply.created_at,
    )


def _title(foreign: ForeignConversation) -> tuple[str | None, TitleSource | None]:
    title = one_line(storable(foreign.title or ""))
    if not is_blank(title):
        return title[:MOST_TITLE_CHARACTERS], TitleSource.USER
    texts = (it.text for it in foreign.messages if it.is_question)
    derived = next((title for text in texts if (title := derive_title(storable(text)))), None)
    return derived, TitleSource.DERIVED if derived else None


def _origin(foreign: ForeignConversation) -> dict[str, object]:
    return {"importedFrom": {"product": foreign.product, "id": storable(foreign.id)}}


def _created_at(foreign: ForeignConversation) -> int | None:
    return foreign.created_at or min((it.at for it in foreign.messages if it.at), default=None)
