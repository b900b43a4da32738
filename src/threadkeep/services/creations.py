"""What users create: how often outside turns, and whether there is room for it.

The edge asks for each request, by its route. So no use case has to remember it, except those that store more
than they are sent, and those that begin turns.
"""

from threadkeep.clock import monotonic
from threadkeep.domain.caps import OperatorCaps
from threadkeep.domain.ids import ConversationId, UserId
from threadkeep.domain.user import LOCAL, User
from threadkeep.ports.allowances import Allowances
from threadkeep.storage.allowances import UserBytes

FAR_BYTES = 256 * 1024 * 1024
"""A user with this much room left is not checked at each turn."""
FAR_S = 60
MOST_FAR = 10_000


class Creations:
    """The limits on creations."""

    def __init__(self, stored: UserBytes, allowances: Allowances, caps: OperatorCaps) -> None:
        self._stored = stored
        self._allowances = allowances
        self._caps = caps
        self._far_until: dict[UserId, float] = {}

    async def take(self, user: User) -> None:
        """Takes one of the user's writes per minute; a user alone on the machine has no limit."""
        if user.id != LOCAL:
            await self._allowances.take_write(user.id)

    async def check_room(self, user_id: UserId, size: int) -> None:
        """Refuses what would give a user too many bytes in all."""
        if self._caps.bytes:
            self._caps.check_bytes(await self._stored.of_user(user_id) + size)

    async def check_turn(self, user_id: UserId, size: int) -> None:
        """The same for what begins a turn, or waits for one. What the turn then stores is never refused."""
        most, now = self._caps.bytes, monotonic()
        if not most or now < self._far_until.get(user_id, 0):
            return
        stored = await self._stored.of_user(user_id) + size
        self._caps.check_bytes(stored)
        if most - stored >= FAR_BYTES:
            if len(self._far_until) >= MOST_FAR:
                self._far_until.clear()
            self._far_until[user_id] = now + FAR_S

    async def check_copy(self, user_id: UserId, conversation_id: ConversationId) -> None:
        """The same for a copy of a conversation; part of one counts like all of it."""
        if self._caps.bytes:
            await self.check_room(user_id, await self._stored.of_conversation(conversation_id))
