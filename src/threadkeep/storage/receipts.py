"""Receipts of turns in the database; the texts they name are stored once, by hash."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import msgspec

from threadkeep.domain.ids import ConversationId, TurnId
from threadkeep.domain.receipt import Receipt, TurnReceipt
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.path_moves import on_path


@dataclass(frozen=True, slots=True)
class PriorReceipt:
    """The newest receipt on a conversation's active path."""

    receipt: Receipt
    is_current: bool
    """Whether neither the path nor its compactions have changed since."""


# A turn has one receipt: what the node that holds it has sent. One of a node that has lost the turn isn't
# kept, and one that was stored before is replaced. Many turns start together, so each statement takes all of
# their receipts.
_ADD = Statement(
    """INSERT INTO tk_receipts (turn_id, conversation_id, receipt)
    SELECT turn.id, turn.conversation_id, json_extract(value, '$[2]')
    FROM json_each(:receipts)
    JOIN tk_turns AS turn ON turn.id = json_extract(value, '$[0]')
        AND turn.fence = json_extract(value, '$[1]')
    WHERE TRUE ON CONFLICT (turn_id) DO UPDATE SET receipt = excluded.receipt RETURNING turn_id""",
    postgres="""INSERT INTO tk_receipts (turn_id, conversation_id, receipt)
    SELECT turn.id, turn.conversation_id, value ->> 2
    FROM json_array_elements(:receipts::json)
    JOIN tk_turns AS turn ON turn.id = CAST(value ->> 0 AS uuid) AND turn.fence = CAST(value ->> 1 AS bigint)
    ON CONFLICT (turn_id) DO UPDATE SET receipt = excluded.receipt RETURNING turn_id""",
)
# Those of a program's later calls; the turn's texts hang on the first one.
_ADD_CALLS = Statement(
    """INSERT INTO tk_call_receipts (turn_id, call, receipt)
    SELECT turn.id, json_extract(value, '$[2]'), json_extract(value, '$[3]')
    FROM json_each(:receipts)
    JOIN tk_turns AS turn ON turn.id = json_extract(value, '$[0]')
        AND turn.fence = json_extract(value, '$[1]')
    JOIN tk_receipts AS first ON first.turn_id = turn.id
    WHERE TRUE ON CONFLICT (turn_id, call) DO UPDATE SET receipt = excluded.receipt
    RETURNING turn_id, call""",
    postgres="""INSERT INTO tk_call_receipts (turn_id, call, receipt)
    SELECT turn.id, CAST(value ->> 2 AS bigint), value ->> 3
    FROM json_array_elements(:receipts::json)
    JOIN tk_turns AS turn ON turn.id = CAST(value ->> 0 AS uuid) AND turn.fence = CAST(value ->> 1 AS bigint)
    JOIN tk_receipts AS first ON first.turn_id = turn.id
    ON CONFLICT (turn_id, call) DO UPDATE SET receipt = excluded.receipt RETURNING turn_id, call""",
)
# By hash, since a request repeats most texts of the previous one. On PostgreSQL they are locked, since
# an unnamed one could be deleted meanwhile.
_USE_KNOWN = Statement(
    """INSERT INTO tk_receipt_texts (turn_id, sha256)
    SELECT json_extract(value, '$[0]'), kept.sha256
    FROM json_each(:uses) JOIN tk_prompt_texts AS kept ON kept.sha256 = json_extract(value, '$[1]')
    WHERE TRUE ON CONFLICT DO NOTHING RETURNING turn_id, sha256""",
    postgres="""WITH given AS (
        SELECT CAST(value ->> 0 AS uuid) AS turn_id, value ->> 1 AS sha256
        FROM json_array_elements(:uses::json)),
    kept AS MATERIALIZED (
        SELECT sha256 FROM tk_prompt_texts WHERE sha256 IN (SELECT sha256 FROM given) FOR KEY SHARE)
    INSERT INTO tk_receipt_texts (turn_id, sha256)
    SELECT given.turn_id, kept.sha256 FROM given JOIN kept ON kept.sha256 = given.sha256
    ON CONFLICT DO NOTHING RETURNING turn_id, sha256""",
)
# On PostgreSQL this locks existing texts, which could otherwise be deleted before the receipt names them; the
# lock is a shared one. The update locks a text that another transaction is adding.
_ADD_TEXTS = Statement(
    """INSERT INTO tk_prompt_texts (sha256, text)
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]')
    FROM json_each(:texts) WHERE TRUE ON CONFLICT DO NOTHING""",
    postgres="""WITH given AS (
        SELECT value ->> 0 AS sha256, value ->> 1 AS text FROM json_array_elements(:texts::json)),
    known AS MATERIALIZED (
        SELECT sha256 FROM tk_prompt_texts WHERE sha256 IN (SELECT sha256 FROM given) FOR KEY SHARE)
    INSERT INTO tk_prompt_texts (sha256, text)
    SELECT sha256, text FROM given WHERE sha256 NOT IN (SELECT sha256 FROM known) ORDER BY sha256
    ON CONFLICT (sha256) DO UPDATE SET text = excluded.text""",
)
# A text stays as long as a receipt uses it.
_USE_TEXTS = Statement(
    """INSERT INTO tk_receipt_texts (turn_id, sha256)
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]')
    FROM json_each(:uses) WHERE TRUE ON CONFLICT DO NOTHING""",
    postgres="""INSERT INTO tk_receipt_texts (turn_id, sha256)
    SELECT CAST(value ->> 0 AS uuid), value ->> 1
    FROM json_array_elements(:uses::json) ON CONFLICT DO NOTHING""",
)
_GET = Statement(
    "SELECT receipt FROM tk_receipts WHERE turn_id = :turn_id AND conversation_id = :conversation_id"
)
# Nearly always the previous reply: found by walking back along the path.
NEWEST = Statement(
    f"""SELECT kept.receipt, reply.seq > conversation.window_reset_seq FROM tk_messages AS reply
    JOIN tk_receipts AS kept ON kept.turn_id = reply.turn_id
    JOIN tk_conversations AS conversation ON conversation.id = reply.conversation_id
    WHERE reply.conversation_id = :conversation_id AND {on_path("reply")} AND reply.role = 'assistant'
    ORDER BY reply.seq DESC LIMIT 1"""
)
# The calls up to one: each may begin like an earlier one.
_CALLS = Statement(
    """SELECT kept.call, kept.receipt FROM tk_receipts AS first
    JOIN tk_call_receipts AS kept ON kept.turn_id = first.turn_id
    WHERE first.turn_id = :turn_id AND first.conversation_id = :conversation_id AND kept.call <= :call"""
)
_TEXTS = Statement(
    """SELECT kept.sha256, kept.text FROM tk_receipt_texts AS used
    JOIN tk_prompt_texts AS kept ON kept.sha256 = used.sha256 WHERE used.turn_id = :turn_id"""
)
_SOME_OF = Statement("SELECT turn_id FROM tk_receipts WHERE conversation_id IN ({ids}) LIMIT :limit")
_NAMED_BY = Statement("SELECT DISTINCT sha256 FROM tk_receipt_texts WHERE turn_id IN ({ids})")
_FORGET_CALLS = Statement(
    """DELETE FROM tk_call_receipts WHERE (turn_id, call) IN (
        SELECT turn_id, call FROM tk_call_receipts WHERE turn_id IN ({ids}) LIMIT :limit)"""
)
_FORGET_RECEIPTS = Statement("DELETE FROM tk_receipts WHERE turn_id IN ({ids})")
# Lists are passed as JSON.
_UNNAMED = "NOT EXISTS (SELECT 1 FROM tk_receipt_texts AS used WHERE used.sha256 = kept.sha256)"
_AMONG = "kept.sha256 IN (SELECT value FROM json_each(:hashes))"
_AMONG_POSTGRES = "kept.sha256 IN (SELECT value FROM json_array_elements_text(:hashes::json))"
_LOCKED = "FOR UPDATE OF kept SKIP LOCKED"
# Texts whose last receipt may be gone: a trigger notes them whenever a receipt is deleted.
_LOCK_LET_GO = Statement(
    "SELECT id, sha256 FROM tk_let_go_texts WHERE id > :after ORDER BY id LIMIT :limit",
    locks="FOR UPDATE SKIP LOCKED",
)
# A text without a receipt that is still there is locked: another transaction may be about to use it.
_STRIKE = Statement(
    f"""DELETE FROM tk_let_go_texts WHERE id IN (SELECT value FROM json_each(:ids)) AND NOT EXISTS (
        SELECT 1 FROM tk_prompt_texts AS kept WHERE kept.sha256 = tk_let_go_texts.sha256 AND {_UNNAMED})""",
    postgres=f"""DELETE FROM tk_let_go_texts
    WHERE id IN (SELECT value::bigint FROM json_array_elements_text(:ids::json)) AND NOT EXISTS (
        SELECT 1 FROM tk_prompt_texts AS kept WHERE kept.sha256 = tk_let_go_texts.sha256 AND {_UNNAMED})""",
)
LET_GO_AT_ONCE = 200
# Locks what `_FORGET` then checks again, and skips what a receipt is about to name.
_FIND_UNNAMED_AMONG = Statement(
    f"SELECT sha256 FROM tk_prompt_texts AS kept WHERE {_AMONG} AND {_UNNAMED}",
    postgres=f"SELECT sha256 FROM tk_prompt_texts AS kept WHERE {_AMONG_POSTGRES} AND {_UNNAMED} {_LOCKED}",
)
_FORGET = Statement(
    f"DELETE FROM tk_prompt_texts AS kept WHERE {_AMONG} AND {_UNNAMED} RETURNING sha256",
    postgres=f"DELETE FROM tk_prompt_texts AS kept WHERE {_AMONG_POSTGRES} AND {_UNNAMED} RETURNING sha256",
)

_decode = msgspec.json.Decoder(Receipt).decode


class SqlReceipts:
    """What the models received; a turn's receipt is stored with its log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(
        self, conversation_id: ConversationId, turn_id: TurnId
    ) -> tuple[Receipt, Mapping[str, str]] | None:
        """A turn's receipt, and the texts that it names by hash."""
        rows = await self._database.fetch(_GET(turn_id=turn_id, conversation_id=conversation_id))
        if not rows:
            return None
        return _decode(rows[0][0]), dict(await self._database.fetch(_TEXTS(turn_id=turn_id)))

    async def get_call(
        self, conversation_id: ConversationId, turn_id: TurnId, call: int
    ) -> tuple[Receipt, Mapping[str, str]] | None:
        """The receipt of one model call of a program's turn, whole, and the texts that it names by hash."""
        first = await self.get(conversation_id, turn_id)
        if first is None or call == 1:
            return first
        asked = _CALLS(turn_id=turn_id, conversation_id=conversation_id, call=call)
        receipts = {1: first[0]} | {number: _decode(it) for number, it in await self._database.fetch(asked)}
        if call not in receipts:
            return None
        return replace(
            receipts[call], segments=_all_segments(receipts, call), shared=0, shared_call=0
        ), first[1]

    async def newest(self, conversation_id: ConversationId) -> PriorReceipt | None:
        """The receipt of the newest turn that has one and whose reply is on the active path."""
        rows = await self._database.fetch(NEWEST(conversation_id=conversation_id))
        prior = _decode(rows[0][0]) if rows else None
        # What a program sends is its own: no request goes on from there.
        return PriorReceipt(prior, bool(rows[0][1])) if prior is not None and prior.message_ids else None

    async def forget_texts(self) -> int:
        """Deletes texts that no receipt names, some at a time."""
        forgotten, after = 0, 0
        while True:
            last, count = await self._database.write(partial(_forget_let_go, after))
            forgotten += count
            if last is None:
                return forgotten
            after = last


def _all_segments(receipts: Mapping[int, Receipt], call: int) -> tuple[str, ...]:
    """The messages of a call, with those that it shares with earlier ones."""
    tails: list[tuple[str, ...]] = []
    needed: int | None = None
    while True:
        receipt = receipts[call]
        own = receipt.segments if needed is None else receipt.segments[: max(needed - receipt.shared, 0)]
        tails.append(own)
        needed = receipt.shared if needed is None else min(needed, receipt.shared)
        if not needed or receipt.shared_call not in receipts or receipt.shared_call >= call:
            return tuple(chain.from_iterable(reversed(tails)))
        call = receipt.shared_call


def forget_some_receipts(conversation_ids: Sequence[ConversationId], *, limit: int) -> Plan[int]:
    """Deletes some receipts of conversations, and the texts that no other receipt names; returns how many."""
    ids = to_json([id_ for (id_,) in (yield _SOME_OF(ids=to_json(conversation_ids), limit=limit))])
    if ids == "[]":
        return 0
    calls = yield _FORGET_CALLS(ids=ids, limit=limit)
    if len(calls) == limit:
        return limit
    texts = yield _NAMED_BY(ids=ids)
    gone = yield _FORGET_RECEIPTS(ids=ids)
    yield from forget_unnamed([sha256 for (sha256,) in texts])
    return len(calls) + len(gone)


def forget_unnamed(hashes: Sequence[str]) -> Plan[int]:
    """Deletes those texts that no receipt names; returns how many."""
    # Locks first, then checks again: a receipt may have named a text since. Skips locked texts: a receipt is
    # naming them, and waiting for it could deadlock.
    found = yield _FIND_UNNAMED_AMONG(hashes=to_json(hashes))
    return len((yield _FORGET(hashes=to_json([sha256 for (sha256,) in found]))))


def _forget_let_go(after: int) -> Plan[tuple[int | None, int]]:
    """Deletes some texts that were let go; returns where to go on, if there is more, and how many."""
    rows = yield _LOCK_LET_GO(after=after, limit=LET_GO_AT_ONCE)
    if not rows:
        return None, 0
    forgotten = yield from forget_unnamed(sorted({sha256 for _, sha256 in rows}))
    yield _STRIKE(ids=to_json([id_ for id_, _ in rows]))
    return rows[-1][0], forgotten


def add_receipts(fenced: Sequence[tuple[TurnReceipt, int]]) -> Plan[None]:
    """Stores receipts, each under its turn's fence, with the texts that they name."""
    first, later = [it for it in fenced if it[0].call == 1], [it for it in fenced if it[0].call > 1]
    added: set[tuple[TurnId, int]] = set()
    if first:
        rows = to_json([(it.turn_id, fence, to_json(it.receipt)) for it, fence in first])
        added |= {(turn_id, 1) for (turn_id,) in (yield _ADD(receipts=rows))}
    if later:
        rows = to_json([(it.turn_id, fence, it.call, to_json(it.receipt)) for it, fence in later])
        added.update((yield _ADD_CALLS(receipts=rows)))
    receipts = [it for it, _ in fenced if (it.turn_id, it.call) in added]
    if not receipts:
        return
    # Sorted: two transactions that store the same texts could otherwise deadlock.
    uses = sorted({(sha256, it.turn_id) for it in receipts for sha256 in it.texts})
    known = set((yield _USE_KNOWN(uses=to_json([(turn_id, sha256) for sha256, turn_id in uses]))))
    new = [it for it in uses if it[::-1] not in known]
    texts = {sha256: text for it in receipts for sha256, text in it.texts.items()}
    yield _ADD_TEXTS(texts=to_json([(it, texts[it]) for it in dict.fromkeys(sha256 for sha256, _ in new)]))
    yield _USE_TEXTS(uses=to_json([(turn_id, sha256) for sha256, turn_id in new]))
