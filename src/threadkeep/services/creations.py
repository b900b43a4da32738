"""What users create outside turns: how often, and whether there is room for it.

The edge asks for each request, by its route. So no use case has to remember it, except those that store more
than they are sent.
"""

from threadkeep.domain.caps import OperatorCaps
from threadkeep.domain.ids import ConversationId, UserId
from threadkeep.domain.user import LOCAL, User
from threadkeep.ports.allowances import Allowances
from threadkeep.storage.allowances import UserBytes


class Creations:
    """The limits on creations."""

    def __init__(self, stored: UserBytes, allowances: Allowances, caps: OperatorCaps) -> None:
        self._stored = stored
        self._allowances = allowances
        self._caps = caps

    async def take(self, user: User) -> None:
        """Takes one of the user's writes per minute; a user alone on the machine has no limit."""
        if user.id != LOCAL:
            await self._allowances.take_write(user.id)

    async def check_room(self, user_id: UserId, size: int) -> None:
        """Refuses what would give a user too many bytes in all."""
        if self._caps.bytes:
            self._caps.check_bytes(await self._stored.of_user(user_id) + size)

    async def check_copy(self, user_id: UserId, conversation_id: ConversationId) -> None:
        """The same for a copy of a conversation; part of one counts like all of it."""
        if self._caps.bytes:
            await self.check_room(user_id, await self._stored.of_conversation(conversation_id))
