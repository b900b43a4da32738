"""What the floor and Threadkeep both do, each in its own way, on its own copy of the same rows."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.ids import AgentId, ConversationId, UserId


class Contender(Protocol):
    """Whoever is measured."""

    async def append(self, conversation_id: ConversationId) -> None:
        """A turn in two commits: question and empty reply, then the reply with its text."""
        ...

    async def latest(self, conversation_id: ConversationId, limit: int) -> Sequence[object]:
        """The newest messages of a conversation."""
        ...

    async def conversations(self, user_id: UserId, limit: int) -> Sequence[object]:
        """A user's conversations, the last touched first."""
        ...

    async def main(self, user_id: UserId, agent_id: AgentId) -> Sequence[object]:
        """The main conversation of a user with an agent, which exists."""
        ...

    async def close(self) -> None:
        """Lets go of the database."""
        ...


class Floor(Contender, Protocol):
    """The least that any program has to do: the driver, and the best SQL for the task."""

    async def append_at_once(self, conversation_id: ConversationId) -> None:
        """A whole turn in one commit, as by a program that stores nothing before the reply is there."""
        ...

    async def fetch(self, sql: str, *values: object) -> Sequence[tuple[object, ...]]:
        """The rows of any reading statement, with `?` for parameters."""
        ...
