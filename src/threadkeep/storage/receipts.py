"""Receipts of turns in the database; the texts that they name are kept once, by content."""

from collections.abc import Mapping

import msgspec

from threadkeep.domain.ids import ConversationId, TurnId
from threadkeep.domain.receipt import Receipt
from threadkeep.domain.turn import Turn
from threadkeep.storage.columns import to_json
from threadkeep.storage.database import Database, Plan, Statement

_ADD = Statement(
    """INSERT INTO tk_receipts (turn_id, conversation_id, receipt)
    VALUES (:turn_id, :conversation_id, :receipt) ON CONFLICT DO NOTHING"""
)
# All texts of a receipt at once: it has one for each turn that it tells of.
_TEXTS_OF = """(SELECT json_extract(value, '$[0]') AS sha256, json_extract(value, '$[1]') AS text
    FROM json_each(:texts))"""
_TEXTS_OF_POSTGRES = (
    "(SELECT value ->> 0 AS sha256, value ->> 1 AS text FROM json_array_elements(:texts::json))"
)
_ADD_TEXTS_SQL = """INSERT INTO tk_prompt_texts (sha256, text)
    SELECT sha256, text FROM TEXTS AS given WHERE TRUE ON CONFLICT DO NOTHING"""
_USE_TEXTS_SQL = """INSERT INTO tk_receipt_texts (turn_id, sha256)
    SELECT :turn_id, sha256 FROM TEXTS AS given WHERE TRUE ON CONFLICT DO NOTHING"""
_ADD_TEXTS, _USE_TEXTS = (
    Statement(
        sql.replace("TEXTS", _TEXTS_OF),
        postgres=sql.replace(":turn_id", ":turn_id::uuid").replace("TEXTS", _TEXTS_OF_POSTGRES),
    )
    for sql in (_ADD_TEXTS_SQL, _USE_TEXTS_SQL)
)
_GET = Statement(
    "SELECT receipt FROM tk_receipts WHERE turn_id = :turn_id AND conversation_id = :conversation_id"
)
# Nearly always the reply before: it is found by going back along the path.
NEWEST = Statement(
    """SELECT kept.receipt FROM tk_messages AS reply
    JOIN tk_receipts AS kept ON kept.turn_id = reply.turn_id
    WHERE reply.conversation_id = :conversation_id AND reply.on_path AND reply.role = 'assistant'
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

# By their hashes, for most texts of a request are those of the one before. On PostgreSQL they are locked, as
# one that nobody names could be forgotten meanwhile.
_USE_KNOWN = Statement(
    """INSERT INTO tk_receipt_texts (turn_id, sha256)
    SELECT :turn_id, sha256 FROM tk_prompt_texts
    WHERE sha256 IN (SELECT value FROM json_each(:known)) ON CONFLICT DO NOTHING RETURNING sha256""",
    postgres="""WITH kept AS MATERIALIZED (
        SELECT sha256 FROM tk_prompt_texts
        WHERE sha256 IN (SELECT value FROM json_array_elements_text(:known::json)) FOR KEY SHARE)
    INSERT INTO tk_receipt_texts (turn_id, sha256)
    SELECT :turn_id::uuid, sha256 FROM kept ON CONFLICT DO NOTHING RETURNING sha256""",
)


class SqlReceipts:
    """The receipts of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, turn: Turn, receipt: Receipt, texts: Mapping[str, str]) -> None:
        """Keeps a turn's receipt with the texts that it names."""
        await self._database.write(lambda: _add(turn, receipt, texts))

    async def get(
        self, conversation_id: ConversationId, turn_id: TurnId
    ) -> tuple[Receipt, Mapping[str, str]] | None:
        """A turn's receipt, and the texts that it names by their hash."""
        rows = await self._database.fetch(_GET(turn_id=turn_id, conversation_id=conversation_id))
        if not rows:
            return None
        return _decode(rows[0][0]), dict(await self._database.fetch(_TEXTS(turn_id=turn_id)))

    async def newest(self, conversation_id: ConversationId) -> Receipt | None:
        """The receipt of the newest turn that has one and whose reply is on the active path."""
        rows = await self._database.fetch(NEWEST(conversation_id=conversation_id))
        return _decode(rows[0][0]) if rows else None

    async def forget_texts(self) -> int:
        """Removes the texts that no receipt names any more."""
        return len(await self._database.execute(_FORGET()))


def _add(turn: Turn, receipt: Receipt, texts: Mapping[str, str]) -> Plan[None]:
    yield _ADD(turn_id=turn.id, conversation_id=turn.conversation_id, receipt=to_json(receipt))
    known = {sha256 for (sha256,) in (yield _USE_KNOWN(turn_id=turn.id, known=to_json(sorted(texts))))}
    # All in the same order: two that keep the same texts at the same time would else wait for each other.
    named = to_json([it for it in sorted(texts.items()) if it[0] not in known])
    yield _ADD_TEXTS(texts=named)
    yield _USE_TEXTS(turn_id=turn.id, texts=named)
