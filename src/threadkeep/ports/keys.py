"""Storage of API keys."""

from collections.abc import Sequence
from typing import Literal, Protocol

from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.ids import AgentId, KeyId, UserId
from threadkeep.domain.key import Key

OfAgents = Literal[
    "conversation_id", "turn_id", "message_id", "briefing_id", "artifact_id", "file_id", "share"
]
"""Ids of things that belong to agents, as routes call them."""


class KeyStore(Protocol):
    """Users' API keys, each found by the hash of its value."""

    async def add(self, key: Key, key_hash: str, entry: AuditEntry, *, most: int) -> bool:
        """Stores a new key; False if its user has `most` already. The user becomes known.

        Unauthenticated if the key that makes it was revoked meanwhile.
        """
        ...

    async def find(self, key_hash: str) -> Key | None:
        """The key whose value has this hash, expired or not."""
        ...

    async def of_user(self, user_id: UserId) -> Sequence[Key]:
        """A user's keys, newest first."""
        ...

    async def remove(self, user_id: UserId, key_id: KeyId, entry: AuditEntry) -> bool:
        """Deletes a user's key, and those that it has made; False if there is none."""
        ...

    async def agents_of(self, user_id: UserId, name: OfAgents, id_: str) -> Sequence[AgentId]:
        """The agents that a thing belongs to, deleted or not; a briefing must be the user's.

        A file belongs to every agent that it was sent to, and to none before that, like an unknown id.
        """
        ...

    async def note_use(self, key_id: KeyId, now: int) -> None:
        """Records that a key was used."""
        ...

    async def has_admin_keys(self, user_id: UserId) -> bool:
        """Whether a key of the user acts with the admin role."""
        ...

    async def take_admin_role(self, user_id: UserId) -> None:
        """Takes the admin role from the user's keys."""
        ...
