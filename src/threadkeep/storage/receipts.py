"""Receipts of turns in the database; the texts that they name are kept once, by content."""

from collections.abc import Mapping

import msgspec

from threadkeep.domain.ids import ConversationId, TurnId
from threadkeep.domain.receipt import Receipt
from threadkeep.domain.turn import Turn
from threadkeep.storage.columns import to_json
from threadkeep.storage.database import LAST_SEQ, Database, Plan, Statement

_ADD = Statement(
    """INSERT INTO tk_receipts (turn_id, conversation_id, receipt)
    VALUES (:turn_id, :conversation_id, :receipt) ON CONFLICT DO NOTHING"""
)
_ADD_TEXT = Statement(
    "INSERT INTO tk_prompt_texts (sha256, text) VALUES (:sha256, :text) ON CONFLICT DO NOTHING"
)
_USE_TEXT = Statement(
    "INSERT INTO tk_receipt_texts (turn_id, sha256) VALUES (:turn_id, :sha256) ON CONFLICT DO NOTHING"
)
_GET = Statement("SELECT receipt FROM tk_receipts WHERE turn_id = :turn_id")
# Nearly always the reply before: it is found by going back along the path.
NEWEST = Statement(
    """SELECT kept.turn_id, kept.receipt FROM tk_messages AS reply
    JOIN tk_receipts AS kept ON kept.turn_id = reply.turn_id
    WHERE reply.conversation_id = :conversation_id AND reply.seq < :before_seq AND reply.on_path
        AND reply.role = 'assistant'
    ORDER BY reply.seq DESC LIMIT 1"""
)
_TEXTS = Statement(
    """SELECT kept.sha256, kept.text FROM tk_receipt_texts AS used
    JOIN tk_prompt_texts AS kept ON kept.sha256 = used.sha256 WHERE used.turn_id = :turn_id"""
)
_FORGET = Statement(
    """DELETE FROM tk_prompt_texts WHERE NOT EXISTS (
        SELECT 1 FROM tk_receipt_texts AS used WHERE used.sha256 = tk_prompt_texts.sha256)
    RETURNING sha256"""
)

_decode = msgspec.json.Decoder(Receipt).decode


class SqlReceipts:
    """The receipts of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, turn: Turn, receipt: Receipt, texts: Mapping[str, str]) -> None:
        """Keeps a turn's receipt with the texts that it names."""
        await self._database.write(lambda: _add(turn, receipt, texts))

    async def get(self, turn_id: TurnId) -> tuple[Receipt, Mapping[str, str]] | None:
        """A turn's receipt, and the texts that it names by their hash."""
        rows = await self._database.fetch(_GET(turn_id=turn_id))
        if not rows:
            return None
        return _decode(rows[0][0]), dict(await self._database.fetch(_TEXTS(turn_id=turn_id)))

    async def newest(
        self, conversation_id: ConversationId, *, before_seq: int | None = None
    ) -> tuple[Receipt, Mapping[str, str]] | None:
        """The newest receipt of a turn whose reply is on the active path, and its texts."""
        return await self._database.read(
            lambda: _newest(conversation_id, LAST_SEQ if before_seq is None else before_seq)
        )

    async def forget_texts(self) -> int:
        """Removes the texts that no receipt names any more."""
        return len(await self._database.execute(_FORGET()))


def _newest(
    conversation_id: ConversationId, before_seq: int
) -> Plan[tuple[Receipt, Mapping[str, str]] | None]:
    rows = yield NEWEST(conversation_id=conversation_id, before_seq=before_seq)
    if not rows:
        return None
    turn_id, receipt = rows[0]
    texts = yield _TEXTS(turn_id=turn_id)
    return _decode(receipt), dict(texts)


def _add(turn: Turn, receipt: Receipt, texts: Mapping[str, str]) -> Plan[None]:
    yield _ADD(turn_id=turn.id, conversation_id=turn.conversation_id, receipt=to_json(receipt))
    # All in the same order: two that keep the same texts at the same time would else wait for each other.
    for sha256, text in sorted(texts.items()):
        yield _ADD_TEXT(sha256=sha256, text=text)
        yield _USE_TEXT(turn_id=turn.id, sha256=sha256)
