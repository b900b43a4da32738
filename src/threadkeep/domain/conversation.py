"""A conversation: the aggregate root, which alone decides what may be added to it."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from threadkeep.domain.briefing import Briefing
from threadkeep.domain.choice import Choice
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.errors import Conflict, IllegalTransition, PathChanged, TurnInProgress
from threadkeep.domain.events import LogChunk
from threadkeep.domain.feedback import Feedback
from threadkeep.domain.ids import (
    AgentId,
    ConversationId,
    IdempotencyKey,
    KeyId,
    MessageId,
    TurnId,
    UserId,
    new_uuid,
)
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import CardPart, FilePart, NoticePart, Parts, text_parts
from threadkeep.domain.payload import Payload
from threadkeep.domain.queued import QueueChange
from threadkeep.domain.secret import Secret
from threadkeep.domain.text import check_line, one_line
from threadkeep.domain.turn import ENDS, BegunWith, KeptTurn, Lease, Turn, TurnStatus

MOST_TITLE_CHARACTERS = 200
NOT_OURS = "ADDED_BY_CLIENT"
"""The code of the notice in a reply that a client added."""
NOT_OURS_NOTICE = "A client added this message. The agent didn't write it."


class ConversationStatus(Choice):
    """Whether it is active, or its owner has archived it."""

    ACTIVE = "active"
    ARCHIVED = "archived"


class ListedStatus(Choice):
    """Its status in lists: active or archived, or deleted until it is purged."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    DELETED = "deleted"


_LISTED = {status: ListedStatus(status.value) for status in ConversationStatus}


class TitleSource(Choice):
    """Who set the title; a user's own is never replaced."""

    DERIVED = "derived"
    MODEL = "model"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Branch:
    """A path through the message tree that diverges from the active one."""

    fork_seq: int
    """The last message that the branch and the active path share (0 = they share none)."""
    hidden: int
    """How many messages come after that one on the active path; they leave it."""
    shown: tuple[MessageId, ...] = ()
    """The branch's own messages, which join the path."""
    tip_id: MessageId | None = None
    """The last message of the branch."""
    archived_to_seq: int = 0
    """The last message that a summary covers on the branch."""
    move_id: str | None = None
    """Names its way onto the path, if that has begun: a long one does so in pieces."""


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """Everything stored when a turn begins: the updated conversation, the turn and its messages, and whatever
    else its request changes in the same commit.

    A regenerated turn has no new question. A turn that doesn't follow the end of the active path moves the
    path to its branch.
    """

    conversation: "Conversation"
    turn: Turn
    assistant_message: Message
    previous_tip_id: MessageId | None
    """The end of the active path before; if it has changed, the turn doesn't begin."""
    user_message: Message | None = None
    branch: Branch | None = None
    key: IdempotencyKey | None = None
    """The key of the request that began it."""
    queue: QueueChange | None = None
    waiting_end: "WaitingEnd | None" = None
    """The end of the turn that waited for its user until now."""
    checks_output: bool = False
    """Whether its reply must fit a schema: its log has entries then that earlier versions can't read."""
    outside_id: str | None = None
    """The id that the client gave to the user's message."""
    new_conversation: "Conversation | None" = None
    """Its conversation before it began, if that is stored with its first turn."""
    conversation_outside_id: str | None = None
    """The id that the client gives to the conversation, if it doesn't have it yet."""
    conversation_key: IdempotencyKey | None = None
    """The key by which a repeated request finds the new conversation."""
    lease: Lease | None = None
    """The right to write it, which the node that runs it adds."""
    opening: LogChunk | None = None
    """The first events of its log; likewise."""


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """Everything stored when a turn ends."""

    conversation: "Conversation"
    turn: Turn
    assistant_message: Message


@dataclass(frozen=True, slots=True)
class WaitingEnd:
    """The end of a waiting turn whose user continues without deciding."""

    ended: EndedTurn
    chunk: LogChunk
    fence: int
    state: bytes | None = None
    """What its program keeps with the reply."""


@dataclass(frozen=True, slots=True)
class AddedMessage:
    """What a user's client adds to a conversation: something the user said, or a reply that isn't ours."""

    role: MessageRole
    content: str
    files: tuple[FilePart, ...] = ()

    def parts(self, now: int) -> Parts:
        """Its parts; a reply says that the agent didn't write it."""
        text = text_parts(self.content)
        if self.role is MessageRole.USER:
            return (*self.files, *text)
        return (NoticePart(code=NOT_OURS, message=NOT_OURS_NOTICE, at=now), *text)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One user, one agent, a tree of messages with one active path through it.

    `last_seq` is the number of the newest message. Together with the tip of the path it serves as the
    version: the store refuses an append based on another.
    """

    id: ConversationId
    user_id: UserId
    agent_id: AgentId
    session_id: Secret
    title: str | None
    title_source: TitleSource | None
    status: ConversationStatus
    is_main: bool
    metadata: Mapping[str, object]
    last_seq: int
    message_count: int
    archived_to_seq: int
    active_turn_id: TurnId | None
    created_at: int
    updated_at: int
    last_message_at: int | None = None
    deleted_at: int | None = None
    tip_id: MessageId | None = None
    """The last message of the active path."""
    is_pinned: bool = False
    """Whether its user pinned it to the top of the list; it may also be archived."""
    deletes_at: int | None = None
    """When it is deleted because nobody writes in it; None if that isn't near."""

    @staticmethod
    def start(
        user_id: UserId,
        agent_id: AgentId,
        now: int,
        *,
        is_main: bool = False,
        title: str | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> "Conversation":
        """A new conversation of a user with an agent."""
        started = Conversation(
            id=ConversationId(new_uuid()),
            user_id=user_id,
            agent_id=agent_id,
            session_id=new_session_id(),
            title=None,
            title_source=None,
            status=ConversationStatus.ACTIVE,
            is_main=is_main,
            metadata=metadata or {},
            last_seq=0,
            message_count=0,
            archived_to_seq=0,
            active_turn_id=None,
            created_at=now,
            updated_at=now,
        )
        return started.rename(title) if title is not None else started

    def rename(self, title: str | None) -> "Conversation":
        """Sets or clears the user's own title. A title never moves a conversation in the list."""
        if title is None:
            return replace(self, title=None, title_source=None)
        title = check_line(one_line(title), "title", most=MOST_TITLE_CHARACTERS)
        return replace(self, title=title, title_source=TitleSource.USER)

    def pin(self, *, is_pinned: bool) -> "Conversation":
        """Pins it or no longer does. A pinned one stays, however long nobody writes in it."""
        return replace(self, is_pinned=is_pinned, deletes_at=None if is_pinned else self.deletes_at)

    def begin_turn(
        self,
        content: str,
        now: int,
        *,
        files: tuple[FilePart, ...] = (),
        branch: Branch | None = None,
        model: str | None = None,
        title: str | None = None,
        message_id: MessageId | None = None,
        key_id: KeyId | None = None,
        begun_with: BegunWith | None = None,
        turn_id: TurnId | None = None,
    ) -> BegunTurn:
        """Adds the user's message and an empty reply, and starts the turn that fills it.

        The message follows the active path, or a branch. `title` becomes the conversation's unless it has one
        already. `message_id` is that of a queued message, `key_id` that of the API key that begins the turn,
        `turn_id` one that was reserved for it.
        """
        self.check_idle()
        on_branch = self.following(branch) if branch else self
        turn_id = turn_id or TurnId(new_uuid())
        asked = Message(
            id=message_id or MessageId(new_uuid()),
            conversation_id=self.id,
            seq=self.last_seq + 1,
            turn_id=turn_id,
            role=MessageRole.USER,
            parts=(*files, *text_parts(content)),
            status=MessageStatus.COMPLETED,
            created_at=now,
            completed_at=now,
            parent_id=on_branch.tip_id,
        )
        reply = self._empty_reply(turn_id, asked.id, self.last_seq + 2, now, model)
        grown = on_branch._grown(2, reply, active_turn_id=turn_id)
        turn = self._new_turn(turn_id, asked.id, reply, key_id, begun_with)
        if self.title is None and title is not None:
            grown = replace(grown, title=title, title_source=TitleSource.DERIVED)
        return BegunTurn(grown, turn, reply, self.tip_id, user_message=asked, branch=branch)

    def regenerate(
        self,
        question_id: MessageId,
        branch: Branch,
        now: int,
        *,
        model: str | None = None,
        key_id: KeyId | None = None,
        begun_with: BegunWith | None = None,
        turn_id: TurnId | None = None,
    ) -> BegunTurn:
        """Starts a turn that replies to a question again; its other replies stay.

        `branch` ends with the question; `turn_id` was reserved for the turn.
        """
        self.check_idle()
        on_branch = self.following(branch)
        turn_id = turn_id or TurnId(new_uuid())
        fresh = self._empty_reply(turn_id, branch.tip_id or question_id, self.last_seq + 1, now, model)
        turn = self._new_turn(turn_id, question_id, fresh, key_id, begun_with)
        grown = on_branch._grown(1, fresh, active_turn_id=turn_id)
        return BegunTurn(grown, turn, fresh, self.tip_id, branch=branch)

    @property
    def listed_status(self) -> ListedStatus:
        """The status that clients see."""
        return _LISTED[self.status] if self.deleted_at is None else ListedStatus.DELETED

    @property
    def has_branches(self) -> bool:
        """Whether there are messages off the active path."""
        return self.message_count < self.last_seq

    def following(self, branch: Branch) -> "Conversation":
        """The conversation with a branch as its active path."""
        count = self.message_count - branch.hidden + len(branch.shown)
        return replace(
            self, tip_id=branch.tip_id, message_count=count, archived_to_seq=branch.archived_to_seq
        )

    def check_tip(self, shown_tip: str | None) -> None:
        """Refuses an action that a user took while seeing a path other than the active one."""
        if (shown_tip.lower() if shown_tip else None) != self.tip_id:
            raise PathChanged(
                "The conversation has moved to another branch. Reload it, then repeat the request.",
                param="tip",
                details={"tip": self.tip_id},
            )

    def check_agent(self, agent_id: AgentId | None) -> None:
        """Refuses a request that names another agent than this conversation's."""
        if agent_id not in (None, self.agent_id):
            raise Conflict(
                "This conversation is with another agent. Leave out `agentId`, or start another conversation."
            )

    def end_turn(self, turn: Turn, reply: Message, now: int) -> EndedTurn:
        """Ends the running turn with its reply's outcome, and frees the conversation for the next."""
        if self.active_turn_id != turn.id or reply.id != turn.assistant_message_id:
            raise IllegalTransition("This turn is not the one running in this conversation.")
        ended = turn.end(ENDS[reply.status], now, usage=reply.usage, error=reply.error)
        ended = replace(ended, model=reply.model)  # another than was asked for, after a fallback
        conversation = replace(self, active_turn_id=None, updated_at=now, last_message_at=now)
        return EndedTurn(conversation, ended, reply)

    def add_card(self, briefing: Briefing, now: int) -> tuple["Conversation", Message]:
        """Adds a briefing as a card."""
        message = Message(
            id=MessageId(new_uuid()),
            conversation_id=self.id,
            seq=self.last_seq + 1,
            turn_id=None,
            role=MessageRole.SYSTEM,
            parts=(CardPart(card=briefing.card()),),
            status=MessageStatus.COMPLETED,
            created_at=now,
            completed_at=now,
            parent_id=self.tip_id,
        )
        return self._grown(1, message, active_turn_id=self.active_turn_id), message

    def add(
        self, said: Sequence[AddedMessage], now: int, *, title: str | None = None
    ) -> tuple["Conversation", Sequence[Message]]:
        """Adds messages without a turn. `title` becomes the conversation's unless it has one already."""
        self.check_idle()
        messages: list[Message] = []
        for number, it in enumerate(said, self.last_seq + 1):
            message = Message(
                id=MessageId(new_uuid()),
                conversation_id=self.id,
                seq=number,
                turn_id=None,
                role=it.role,
                parts=it.parts(now),
                status=MessageStatus.COMPLETED,
                created_at=now,
                completed_at=now,
                parent_id=messages[-1].id if messages else self.tip_id,
            )
            messages.append(message)
        grown = self._grown(len(messages), messages[-1], active_turn_id=None)
        if self.title is None and title is not None:
            grown = replace(grown, title=title, title_source=TitleSource.DERIVED)
        return grown, messages

    def add_run(
        self, asked: Message, reply_id: MessageId, now: int, *, title: str | None
    ) -> tuple["Conversation", Message]:
        """Adds a turn that ran elsewhere: its question and, as the next message, its reply. It need not be
        idle. `title` becomes the conversation's unless it has one already.
        """
        asked = replace(asked, seq=self.last_seq + 1, parent_id=self.tip_id)
        grown = replace(
            self,
            last_seq=self.last_seq + 2,
            message_count=self.message_count + 2,
            updated_at=now,
            last_message_at=now,
            tip_id=reply_id,
        )
        if self.title is None:
            grown = replace(grown, title=title, title_source=TitleSource.DERIVED)
        return grown, asked

    def check_idle(self) -> None:
        """Refuses an action while the agent replies."""
        if self.active_turn_id is not None:
            raise TurnInProgress(
                "The agent is still answering in this conversation. Wait until it has finished, or stop it; "
                "a message can wait by itself, with `whenBusy`.",
                self.active_turn_id,
            )

    def _new_turn(
        self,
        turn_id: TurnId,
        user_message_id: MessageId,
        reply: Message,
        key_id: KeyId | None,
        begun_with: BegunWith | None,
    ) -> Turn:
        return Turn(
            id=turn_id,
            conversation_id=self.id,
            user_message_id=user_message_id,
            assistant_message_id=reply.id,
            status=TurnStatus.RUNNING,
            started_at=reply.created_at,
            model=reply.model,
            key_id=key_id,
            begun_with=begun_with,
        )

    def _empty_reply(
        self, turn_id: TurnId, parent_id: MessageId, seq: int, now: int, model: str | None
    ) -> Message:
        return Message(
            id=MessageId(new_uuid()),
            conversation_id=self.id,
            seq=seq,
            turn_id=turn_id,
            role=MessageRole.ASSISTANT,
            parts=(),
            status=MessageStatus.PENDING,
            created_at=now,
            model=model,
            parent_id=parent_id,
        )

    def _grown(self, by: int, tip: Message, *, active_turn_id: TurnId | None) -> "Conversation":
        return replace(
            self,
            last_seq=self.last_seq + by,
            message_count=self.message_count + by,
            active_turn_id=active_turn_id,
            updated_at=tip.created_at,
            last_message_at=tip.created_at,
            tip_id=tip.id,
        )


def new_session_id() -> Secret:
    """256 random bits: its holder may follow the conversation's events, and do nothing else."""
    return Secret(secrets.token_urlsafe(32))


@dataclass(frozen=True, slots=True)
class ConversationFilter:
    """A filter for a user's conversations."""

    agent_id: AgentId | None = None
    status: ListedStatus | None = None
    pinned: bool | None = None
    agents: frozenset[AgentId] | None = None
    """Only those with one of these agents."""


@dataclass(frozen=True, slots=True)
class WholeConversation:
    """A conversation with everything that belongs to it; messages in order, including overwritten ones."""

    conversation: Conversation
    turns: Sequence[KeptTurn]
    messages: Sequence[Message]
    compactions: Sequence[Compaction] = ()
    payloads: Sequence[Payload] = ()
    feedback: Sequence[Feedback] = ()
