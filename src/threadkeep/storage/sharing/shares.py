"""Shares in the database: never their tokens, only the hashes."""

from collections.abc import Sequence

from threadkeep.domain.ids import ConversationId, PayloadId, ShareId, UserId
from threadkeep.domain.sharing.share import Share, SharePreview
from threadkeep.storage.database.columns import to_json, to_value
from threadkeep.storage.database.connector import Database, Plan, Row, Statement

_COLUMNS = "id, conversation_id, message_id, title, runs, files, with_tools, created_at, expires_at, preview"
_OF_SHARE = ", ".join(f"share.{name}" for name in _COLUMNS.split(", "))
_FROM = """FROM tk_shares AS share JOIN tk_conversations AS conversation
        ON conversation.id = share.conversation_id AND conversation.deleted_at IS NULL"""

# Held until the commit: two shares are counted one after the other, and nobody purges the conversation.
_LOCK = Statement(
    "SELECT 1 FROM tk_conversations WHERE id = :conversation_id AND deleted_at IS NULL",
    locks="FOR NO KEY UPDATE",
)
_COUNT = Statement("SELECT COUNT(*) FROM tk_shares WHERE conversation_id = :conversation_id")
_ADD = Statement(
    f"""INSERT INTO tk_shares ({_COLUMNS}, hash)
    VALUES (:id, :conversation_id, :message_id, :title, :runs, :files, :with_tools, :created_at, :expires_at,
        :preview, :hash)"""
)
_FIND = Statement(f"SELECT {_OF_SHARE} {_FROM} WHERE share.hash = :hash")
_PREVIEW = Statement(f"SELECT share.title, share.preview, share.expires_at {_FROM} WHERE share.hash = :hash")
_KEEP_PREVIEW = Statement("UPDATE tk_shares SET preview = :preview WHERE id = :id")
_OF_CONVERSATION = Statement(
    f"""SELECT {_OF_SHARE} {_FROM} WHERE share.conversation_id = :conversation_id
    ORDER BY share.created_at DESC, share.id DESC"""
)
_REMOVE = Statement(
    """DELETE FROM tk_shares WHERE id = :id AND EXISTS (
        SELECT 1 FROM tk_conversations AS conversation WHERE conversation.id = tk_shares.conversation_id
            AND conversation.user_id = :user_id AND conversation.deleted_at IS NULL)"""
)


class SqlShares:
    """Shares of conversations, each found by the hash of its token.

    The shares of a deleted conversation are hidden until it is restored; purging it deletes them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, share: Share, token_hash: str, *, most: int) -> bool:
        """Stores a new share; False if its conversation has `most` already, or no longer exists."""
        return await self._database.write(lambda: _add(share, token_hash, most))

    async def find(self, token_hash: str) -> Share | None:
        """The share whose token has this hash, expired or not."""
        rows = await self._database.fetch(_FIND(hash=token_hash))
        return _share(rows[0]) if rows else None

    async def preview(self, token_hash: str) -> SharePreview | None:
        """What its link shows, expired or not; costs the same for every share."""
        rows = await self._database.fetch(_PREVIEW(hash=token_hash))
        return SharePreview(*rows[0]) if rows else None

    async def keep_preview(self, share_id: ShareId, text: str) -> None:
        """Adds to a share of an earlier version what its link shows."""
        await self._database.execute(_KEEP_PREVIEW(id=share_id, preview=text))

    async def of_conversation(self, conversation_id: ConversationId) -> Sequence[Share]:
        """A conversation's shares, newest first."""
        rows = await self._database.fetch(_OF_CONVERSATION(conversation_id=conversation_id))
        return [_share(row) for row in rows]

    async def remove(self, user_id: UserId, share_id: ShareId) -> bool:
        """Deletes a share of one of the user's conversations; False if it doesn't exist."""
        return bool(await self._database.execute(_REMOVE(id=share_id, user_id=user_id)))


def _add(share: Share, token_hash: str, most: int) -> Plan[bool]:
    if not (yield _LOCK(conversation_id=share.conversation_id)):
        return False
    ((count,),) = yield _COUNT(conversation_id=share.conversation_id)
    if count >= most:
        return False
    values = {name: getattr(share, name) for name in Share.__slots__}
    lists = {"runs": to_json(share.runs), "files": to_json(sorted(share.files))}
    yield _ADD(**values | lists | {"hash": token_hash})
    return True


def _share(row: Row) -> Share:
    id_, conversation_id, message_id, title, runs, files, with_tools, created_at, expires_at, preview = row
    return Share(
        id=id_,
        conversation_id=conversation_id,
        message_id=message_id,
        title=title,
        runs=tuple((first, last) for first, last in to_value(runs)),
        files=frozenset(PayloadId(it) for it in to_value(files)),
        with_tools=bool(with_tools),
        created_at=created_at,
        expires_at=expires_at,
        preview=preview,
    )
