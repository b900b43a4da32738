"""Taking data along: out of a database, into another, from one user to another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, ConversationId, MemoryId, PayloadId, TurnId, UserId
from threadkeep.domain.memory import Memory
from threadkeep.domain.message import Message
from threadkeep.domain.payload import Payload
from threadkeep.domain.turn import Turn

Owned = Literal["agent", "conversation", "memory", "document"]


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn, and the name under which another engine told us of it."""

    turn: Turn
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class KeptMemory:
    """A memory, and the agent that has it."""

    agent_id: AgentId
    memory: Memory


@dataclass(frozen=True, slots=True)
class WholeConversation:
    """A conversation with all that belongs to it; its messages in their order, overwritten ones too."""

    conversation: Conversation
    turns: Sequence[KeptTurn]
    messages: Sequence[Message]
    compactions: Sequence[Compaction] = ()
    payloads: Sequence[Payload] = ()


@dataclass(frozen=True, slots=True)
class Moved:
    """What has become another user's.

    `former_mains` are conversations that were main ones and are further ones now, for the user has a main
    one with the same agent. `unsearchable` are those whose words must be indexed anew.
    """

    conversations: int
    agents: int
    briefings: int
    memories: int
    former_mains: Sequence[ConversationId] = ()
    unsearchable: Sequence[ConversationId] = ()


class ExchangeStore(Protocol):
    """What only those need who take data along."""

    async def owner_of(self, kind: Owned, id_: str) -> str | None:
        """Whose a thing is, deleted or not: a user's, a document an agent's. None when there is none."""
        ...

    async def turns(
        self, conversation_id: ConversationId, *, after: TurnId | None, limit: int
    ) -> Sequence[KeptTurn]:
        """The turns of a conversation by id."""
        ...

    async def payloads(
        self, conversation_id: ConversationId, *, after: PayloadId | None, limit: int
    ) -> Sequence[Payload]:
        """What is known of a conversation's values and files, by id."""
        ...

    async def memories(self, user_id: UserId, *, after: MemoryId | None, limit: int) -> Sequence[KeptMemory]:
        """What agents remember of a user, by id."""
        ...

    async def add(self, whole: WholeConversation, content: Callable[[Payload], bytes]) -> bool:
        """Keeps a whole conversation, all or nothing; tells whether it is a main one.

        It is not where the user has a main one with this agent. `content` is asked for each payload, and
        again where the work is tried again. StorageConflict where one of its ids is taken.
        """
        ...

    async def reassign(self, giver: UserId, receiver: UserId, now: int, *, alone: bool) -> Moved:
        """Makes everything of one user another's, all or nothing; UserNotFound where nothing is kept.

        TurnInProgress while a turn of the giver runs, unless we are known to be `alone` on this database.
        """
        ...
