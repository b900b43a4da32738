"""Storage of shares."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.ids import ConversationId, ShareId, UserId
from threadkeep.domain.sharing.share import Share, SharePreview


class ShareStore(Protocol):
    """Shares of conversations, each found by the hash of its token.

    The shares of a deleted conversation are hidden until it is restored; purging it deletes them.
    """

    async def add(self, share: Share, token_hash: str, *, most: int) -> bool:
        """Stores a new share; False if its conversation has `most` already, or no longer exists."""
        ...

    async def find(self, token_hash: str) -> Share | None:
        """The share whose token has this hash, expired or not."""
        ...

    async def preview(self, token_hash: str) -> SharePreview | None:
        """What its link shows, expired or not; costs the same for every share."""
        ...

    async def keep_preview(self, share_id: ShareId, text: str) -> None:
        """Adds to a share of an earlier version what its link shows."""
        ...

    async def of_conversation(self, conversation_id: ConversationId) -> Sequence[Share]:
        """A conversation's shares, newest first."""
        ...

    async def remove(self, user_id: UserId, share_id: ShareId) -> bool:
        """Deletes a share of one of the user's conversations; False if it doesn't exist."""
        ...
