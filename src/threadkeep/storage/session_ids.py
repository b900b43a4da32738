"""Session ids at rest: encrypted if there is a key, and looked up by hash.

What the database stores, or a copy of it, does not let a reader open any conversation.
"""

import hashlib
import logging
from typing import Any

from threadkeep.domain.conversation import new_session_id
from threadkeep.domain.ids import FIRST_UUID
from threadkeep.domain.secret import Secret
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.secrets import SealedSecret, SecretBox

log = logging.getLogger("threadkeep.storage")

_AT_ONCE = 200
# Those without a hash, or not sealed with the current key.
_NOT_SEALED_BY = Statement(
    """SELECT id, session_id FROM tk_conversations
    WHERE id > :after AND (session_hash IS NULL OR session_id NOT LIKE :key || '.%')
    ORDER BY id LIMIT :limit"""
)
# Those without a hash, or sealed although there is no key now.
_SEALED = Statement(
    """SELECT id, session_id FROM tk_conversations
    WHERE id > :after AND (session_hash IS NULL OR session_id LIKE '%.%' AND :key = '')
    ORDER BY id LIMIT :limit"""
)
# Unless the session id has changed since it was read.
_KEEP = Statement(
    """UPDATE tk_conversations SET session_id = :session_id, session_hash = :session_hash
    WHERE id = :id AND session_id = :before"""
)
# The key that all are sealed with; empty while there is none.
_KEY = Statement("SELECT value FROM tk_meta WHERE name = 'session_key'")
# Written last: after an interruption, the next start continues.
_REMEMBER_KEY = Statement(
    """INSERT INTO tk_meta (name, value) VALUES ('session_key', :value)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
)


def session_hash(session_id: str) -> str:
    """The lookup key of a session id, which has 256 random bits and can't be derived from its hash."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


def kept_session(box: SecretBox, kept: str) -> Secret:
    """A stored session id: sealed ones contain a dot, others don't."""
    return box.kept(kept) if "." in kept else Secret(kept)


def sealed_session(box: SecretBox, session_id: Secret) -> dict[str, Any]:
    """The columns of a session id."""
    revealed = session_id.reveal()
    kept = box.seal(session_id) if box.can_seal else revealed
    return {"session_id": kept, "session_hash": session_hash(revealed)}


async def seal_sessions(database: Database, box: SecretBox) -> None:
    """Seals every session id that the first key has not sealed; does nothing if it has sealed all.

    One whose key is missing is replaced: its readers have to ask for the new one, and nothing else is lost.
    """
    if box.can_seal and box.sealing_key is None:
        box.make_key()
    key = box.sealing_key or ""
    rows = await database.fetch(_KEY())
    if rows and rows[0][0] == key:
        return
    others, after, replaced = _NOT_SEALED_BY if key else _SEALED, FIRST_UUID, 0
    while found := await database.fetch(others(after=after, key=key, limit=_AT_ONCE)):
        kept = [(id_, before, kept_session(box, before)) for id_, before in found]
        lost = [it for *_, it in kept if isinstance(it, SealedSecret) and not it.is_readable]
        fresh = [(id_, before, new_session_id() if it in lost else it) for id_, before, it in kept]
        await database.write(lambda fresh=fresh: _keep(box, fresh))
        after, replaced = found[-1][0], replaced + len(lost)
    if replaced:
        log.warning("can't decrypt %d session ids with the configured keys; created new ones", replaced)
    await database.execute(_REMEMBER_KEY(value=key))


def _keep(box: SecretBox, sessions: list[tuple[str, str, Secret]]) -> Plan[None]:
    for id_, before, session_id in sessions:
        yield _KEEP(id=id_, before=before, **sealed_session(box, session_id))
