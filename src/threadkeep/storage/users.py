"""Users in the database: one row for each known id, for foreign keys."""

import hmac
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import msgspec

from threadkeep.domain.guide import GUIDE_ID
from threadkeep.domain.ids import FIRST_UUID, AgentId, ContentId, ConversationId, UserId
from threadkeep.domain.sign_in.session import SuspendedBy
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import LAST_SEQ, Database, Plan, Statement
from threadkeep.storage.file_contents import FileContents
from threadkeep.storage.purging import (
    CONVERSATIONS_AT_ONCE,
    HOLD_OF_USER,
    hold,
    patiently,
    purge,
    purge_agents,
    purge_rest_of_user,
)
from threadkeep.storage.spending.former_users import former_name
from threadkeep.storage.spending.ledger import forget_spending_of


@dataclass(frozen=True, slots=True)
class Purged:
    """What was deleted with a user and may have files to delete."""

    agent_ids: Sequence[AgentId]
    conversation_ids: Sequence[ConversationId]


@dataclass(frozen=True, slots=True)
class Standing:
    """What keeps a user out."""

    deleted_at: int
    """When a user of this id was last deleted; 0 if never."""
    suspended_by: SuspendedBy | None


IDS_AT_ONCE = 1000

# Runs before anything that refers to the user. A host application's table may refuse the id.
ENSURE_USER = Statement(
    "INSERT INTO tk_users (id, created_at) VALUES (:id, :now) ON CONFLICT DO NOTHING",
    refusal="The application doesn't have this user.",
)

_HAS_OTHERS = """EXISTS (SELECT 1 FROM tk_conversations
    WHERE tk_conversations.agent_id = tk_agents.id AND tk_conversations.user_id <> :id)"""
_EMPTY = """UPDATE tk_agents SET owner_id = NULL, description = '', system_prompt = '', settings = '{}',
        delete_after_days = 0, deleted_at = COALESCE(deleted_at, :now), updated_at = :now,
        version = version + 1"""
# Deleting an agent deletes all conversations with it. If others have some, it is emptied and hidden, and no
# longer has an owner, so that `_DELETE_AGENTS` spares it.
_EMPTY_SHARED_AGENTS = Statement(f"{_EMPTY} WHERE owner_id = :id AND {_HAS_OTHERS}")
_DELETE_AGENTS = Statement("DELETE FROM tk_agents WHERE owner_id = :id")
# Read before they are deleted: the caller removes the prompt files of these agents.
_AGENTS = Statement("SELECT id FROM tk_agents WHERE owner_id = :id")
# What nobody else talks to goes with the user, in pieces.
_OWN_AGENTS = Statement(f"SELECT id FROM tk_agents WHERE owner_id = :id AND NOT {_HAS_OTHERS}")
# While the user's data goes in pieces, nobody begins a conversation with their agents.
_HIDE_AGENTS = Statement(
    """UPDATE tk_agents SET deleted_at = :now, updated_at = :now, version = version + 1
    WHERE owner_id = :id AND deleted_at IS NULL"""
)
# The audit log stays but no longer names the user; one user's entries stay linked. Entries of these actions
# name the user in their details.
_NAMES_A_USER = """action IN ('abort_turn', 'create_invitation', 'accept_invitation', 'suspend_user',
        'unsuspend_user', 'delete_user')"""
_IN_AUDIT = Statement(
    f"""SELECT id FROM tk_audit WHERE id > :after AND (actor_id = :id
        OR ({_NAMES_A_USER} AND REPLACE(details, :in_details, '') <> details))
    ORDER BY id LIMIT :limit"""
)
_FORGET_IN_AUDIT = Statement(
    f"""UPDATE tk_audit SET actor_id = CASE WHEN actor_id = :id THEN :name ELSE actor_id END,
        details = CASE WHEN {_NAMES_A_USER} THEN REPLACE(details, :in_details, :name_in_details)
            ELSE details END
    WHERE id IN ({{ids}})"""
)
# Locks out everything that refers to the user.
_LOCK_USER = Statement(
    "SELECT id FROM tk_users WHERE id = :id",
    locks="FOR UPDATE",
)
# From now on the user can do nothing: the tokens are refused, keys and imports are gone.
_BEGIN_DELETION = Statement(
    "UPDATE tk_users SET deleted_at = COALESCE(deleted_at, :now) WHERE id = :id RETURNING deleted_at"
)
_FORGET_KEYS = Statement("DELETE FROM tk_keys WHERE user_id = :id")
_END_IMPORTS = Statement("DELETE FROM tk_imports WHERE user_id = :id")
_END_SESSIONS = Statement("DELETE FROM tk_sessions WHERE user_id = :id")
# Those for the user, and those by them.
_WITHDRAW_INVITATIONS = Statement("DELETE FROM tk_invitations WHERE user_id = :id OR invited_by = :id")
_HALF_DELETED = Statement("SELECT id FROM tk_users WHERE deleted_at IS NOT NULL")
# Each from its own index.
_HAS_CONVERSATIONS = Statement(
    """SELECT EXISTS (SELECT 1 FROM tk_conversations WHERE user_id = :id AND deleted_at IS NULL)
        OR EXISTS (SELECT 1 FROM tk_conversations WHERE user_id = :id AND deleted_at IS NOT NULL)"""
)
# All users, a page at a time.
AFTER = Statement("SELECT id FROM tk_users WHERE id > :after ORDER BY id LIMIT :limit")
# Read before the user is deleted: bytes outside the database are removed after the commit.
_CONTENTS = Statement("SELECT id FROM tk_contents WHERE user_id = :id")
_DELETE_USER = Statement("DELETE FROM tk_users WHERE id = :id")
# The name is a keyed hash of the id. Tokens that were issued before the deletion are refused.
_NOTE_DELETED = Statement(
    """INSERT INTO tk_deleted_users (name, deleted_at) VALUES (:name, :now)
    ON CONFLICT (name) DO UPDATE SET deleted_at = excluded.deleted_at"""
)
# A deletion that goes on is later than any token: a sign-in meanwhile is refused, too.
_STANDING = Statement(
    f"""SELECT deleted_at, NULL FROM tk_deleted_users WHERE name = :name
    UNION ALL SELECT CASE WHEN deleted_at IS NULL THEN 0 ELSE {LAST_SEQ} END, suspended_by
        FROM tk_users WHERE id = :id AND (deleted_at IS NOT NULL OR suspended_at IS NOT NULL)"""
)
# How deleting a user in the host application leaves their agents.
_IS_OWNERLESS = f"owner_id IS NULL AND NOT is_default AND id <> '{GUIDE_ID}' AND code_key IS NULL"
# Only those that are not empty yet, so that the sweep ends.
_EMPTY_OWNERLESS_AGENTS = Statement(
    f"""{_EMPTY} WHERE id IN (SELECT id FROM tk_agents WHERE {_IS_OWNERLESS}
        AND (deleted_at IS NULL OR description <> '' OR system_prompt <> '' OR settings <> '{{}}')
        LIMIT :limit) RETURNING id"""
)
# Hidden in an earlier sweep, so that no conversation with one starts meanwhile.
_DELETE_OWNERLESS_AGENTS = Statement(
    f"""DELETE FROM tk_agents WHERE id IN (SELECT id FROM tk_agents WHERE {_IS_OWNERLESS}
        AND deleted_at < :now
        AND NOT EXISTS (SELECT 1 FROM tk_conversations WHERE tk_conversations.agent_id = tk_agents.id)
        LIMIT :limit) RETURNING id"""
)
SWEPT_AT_ONCE = 20
AGENTS_AT_ONCE = 100
AUDITED_AT_ONCE = 300


_BY_ID = "SELECT id FROM tk_users WHERE id = :id"
# Read without a lock when users sign in: nearly always they are known. `_LOCK` makes those who send a user
# briefings wait for each other.
_GET = Statement(_BY_ID)
_LOCK = Statement(_BY_ID, locks="FOR NO KEY UPDATE")
_INSTRUCTIONS = Statement("SELECT instructions FROM tk_users WHERE id = :id")
_INSTRUCT = Statement("UPDATE tk_users SET instructions = :text WHERE id = :id")
# Whether the host application's table decides who exists; see host_users.
_IS_TIED = Statement(
    "SELECT 1 WHERE FALSE",
    postgres="""SELECT 1 FROM pg_constraint
        WHERE conrelid = to_regclass('tk_users') AND conname = 'tk_users_host'""",
)


def lock_known(user_id: UserId, now: int) -> Plan[bool]:
    """Whether a user is known, to us or to the host application; locks them if so."""
    if (yield _LOCK(id=user_id)):
        return True
    if not (yield _IS_TIED()):
        return False
    yield ENSURE_USER(id=user_id, now=now)
    return True


class SqlUsers:
    """The users of a database."""

    def __init__(self, database: Database, file_contents: FileContents, key: bytes) -> None:
        self._database = database
        self._file_contents = file_contents
        self._key = key

    async def delete(self, user_id: UserId, now: int) -> Purged | None:
        """Removes a user with all their data; None if the user is unknown.

        Their agents that others talk to are emptied and hidden. Rows go in pieces, and the user can do
        nothing meanwhile; after a crash, `half_deleted` names the user, and another call goes on.
        """
        unnamed = self._unnamed(user_id)
        begun_at = await patiently(lambda: self._database.write(lambda: _begin(user_id, now, unnamed)))
        if begun_at is None:
            return None
        conversations: list[ConversationId] = []
        agents = None
        while agents is None:  # again if something began just before the user was locked
            conversations += await self._purge(user_id)
            await self._forget_in_audit(user_id, begun_at)
            agents, contents = await patiently(
                lambda: self._database.write(lambda: _end(user_id, now, unnamed))
            )
            await self._file_contents.remove(contents)
        return Purged(agents, conversations)

    async def half_deleted(self) -> Sequence[UserId]:
        """Users whose deletion has begun but not ended."""
        return [UserId(id_) for (id_,) in await self._database.fetch(_HALF_DELETED())]

    async def standing(self, user_id: UserId) -> Standing:
        """Whether a user may enter."""
        rows = await self._database.fetch(_STANDING(name=self._unnamed(user_id), id=user_id))
        return Standing(
            deleted_at=max((at for at, _ in rows), default=0),
            suspended_by=next((by for _, by in rows if by is not None), None),
        )

    async def _purge(self, user_id: UserId) -> list[ConversationId]:
        """Deletes all that a user has; returns the conversations."""
        database, contents, purged = self._database, self._file_contents, list[ConversationId]()
        while held := await hold(database, HOLD_OF_USER(user_id=user_id, limit=CONVERSATIONS_AT_ONCE)):
            await purge(database, contents, held)
            purged += held
        agents = [AgentId(id_) for (id_,) in await database.fetch(_OWN_AGENTS(id=user_id))]
        for first in range(0, len(agents), AGENTS_AT_ONCE):
            await purge_agents(database, contents, agents[first : first + AGENTS_AT_ONCE])
        await purge_rest_of_user(database, contents, user_id)
        return purged

    async def _forget_in_audit(self, user_id: UserId, begun_at: int) -> None:
        # The same name if this goes on after a crash.
        secret = hmac.digest(self._key, f"audit {begun_at}\n{user_id}".encode(), "sha256")
        name, after = f"deleted-{UUID(bytes=secret[:16])}", FIRST_UUID
        whose = {"id": user_id, "in_details": _in_details(user_id)}
        given = {"name": name, "name_in_details": _in_details(name)}
        while rows := await self._database.fetch(_IN_AUDIT(**whose, after=after, limit=AUDITED_AT_ONCE)):
            ids = [id_ for (id_,) in rows]
            forget = _FORGET_IN_AUDIT(ids=to_json(ids), **whose, **given)
            await patiently(partial(self._database.execute, forget))
            after = ids[-1]

    def _unnamed(self, user_id: UserId) -> str:
        return former_name(self._key, user_id)

    async def meet(self, user_id: UserId, now: int) -> None:
        """Registers a user; Forbidden if the host application doesn't have this user."""
        if not await self._database.fetch(_GET(id=user_id)):
            await self._database.execute(ENSURE_USER(id=user_id, now=now))

    async def instructions(self, user_id: UserId) -> str:
        """What the user tells every agent."""
        rows = await self._database.fetch(_INSTRUCTIONS(id=user_id))
        return rows[0][0] if rows else ""

    async def instruct(self, user_id: UserId, text: str, now: int) -> None:
        """Replaces it."""
        await self._database.write(lambda: _instruct(user_id, text, now))

    async def ids(self) -> AsyncIterator[UserId]:
        """All known users, a page at a time."""
        after = ""
        while rows := await self._database.fetch(AFTER(after=after, limit=IDS_AT_ONCE)):
            for (id_,) in rows:
                yield UserId(id_)
            after = rows[-1][0]

    async def sweep(self, now: int) -> None:
        """Deletes or empties agents whose owner the host application has deleted from its own table."""
        for sweep in (_DELETE_OWNERLESS_AGENTS, _EMPTY_OWNERLESS_AGENTS):
            while await self._database.execute(sweep(now=now, limit=SWEPT_AT_ONCE)):
                pass


def _instruct(user_id: UserId, text: str, now: int) -> Plan[None]:
    yield ENSURE_USER(id=user_id, now=now)
    yield _INSTRUCT(id=user_id, text=text)


def _begin(user_id: UserId, now: int, unnamed: str) -> Plan[int | None]:
    if not (yield _LOCK_USER(id=user_id)):
        return None
    ((begun_at,),) = yield _BEGIN_DELETION(id=user_id, now=now)
    yield _NOTE_DELETED(name=unnamed, now=now)
    yield _FORGET_KEYS(id=user_id)
    yield _END_IMPORTS(id=user_id)
    yield _END_SESSIONS(id=user_id)
    yield _WITHDRAW_INVITATIONS(id=user_id)
    yield _HIDE_AGENTS(id=user_id, now=now)
    return begun_at


def _end(user_id: UserId, now: int, unnamed: str) -> Plan[tuple[list[AgentId] | None, list[ContentId]]]:
    if not (yield _LOCK_USER(id=user_id)):
        return [], []  # another node was faster
    ((has_conversations,),) = yield _HAS_CONVERSATIONS(id=user_id)
    if has_conversations:
        return None, []
    agents = yield _AGENTS(id=user_id)
    contents = [ContentId(id_) for (id_,) in (yield _CONTENTS(id=user_id))]
    yield from forget_spending_of(user_id, unnamed)
    yield _EMPTY_SHARED_AGENTS(id=user_id, now=now)
    yield _DELETE_AGENTS(id=user_id)
    yield _DELETE_USER(id=user_id)
    yield _NOTE_DELETED(name=unnamed, now=now)
    return [AgentId(id_) for (id_,) in agents], contents


def _in_details(user_id: str) -> str:
    """How an entry's details name a user."""
    return msgspec.json.encode({"userId": user_id}).decode()[1:-1]
