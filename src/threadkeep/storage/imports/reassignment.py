"""Gives everything that one user owns to another, in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass

from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import TurnInProgress, UserNotFound
from threadkeep.domain.ids import ConversationId, UserId
from threadkeep.storage.agents import audit_query
from threadkeep.storage.database.connector import Plan, Statement
from threadkeep.storage.file_rows import lock_user
from threadkeep.storage.outside_ids import move_outside_ids
from threadkeep.storage.sign_in.sessions import end_sessions
from threadkeep.storage.spending.ledger import move_spending
from threadkeep.storage.users import ENSURE_USER


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved to another user.

    `former_mains` are conversations that are no longer main ones, because the user already has a main one
    with the same agent. `unsearchable` are those that must be indexed again.
    """

    conversations: int
    agents: int
    briefings: int
    memories: int
    former_mains: Sequence[ConversationId] = ()
    unsearchable: Sequence[ConversationId] = ()


MOVABLE = Statement(
    """SELECT
        (SELECT COUNT(*) FROM tk_conversations WHERE user_id = :giver AND deleted_at IS NULL),
        (SELECT COUNT(*) FROM tk_agents WHERE owner_id = :giver AND deleted_at IS NULL),
        (SELECT COUNT(*) FROM tk_briefings WHERE user_id = :giver),
        (SELECT COUNT(*) FROM tk_memories WHERE user_id = :giver)"""
)
# Whether there is anything to give; locks the giver, so that they cannot be deleted meanwhile.
_KNOWN = Statement("SELECT id FROM tk_users WHERE id = :giver", locks="FOR UPDATE")
# A turn that a live node is running; one whose lease is over has lost its node and can move.
_RUNNING = Statement(
    """SELECT id FROM tk_turns
    WHERE user_id = :giver AND status = 'RUNNING' AND origin = 'live' AND lease_until >= {now} LIMIT 1"""
)

# A user has one main conversation per agent: the receiver's own stays the main one.
_MAKE_FURTHER = Statement(
    """UPDATE tk_conversations SET is_main = FALSE
    WHERE user_id = :giver AND is_main AND deleted_at IS NULL AND EXISTS (
        SELECT 1 FROM tk_conversations AS own
        WHERE own.user_id = :receiver AND own.agent_id = tk_conversations.agent_id
            AND own.is_main AND own.deleted_at IS NULL)
    RETURNING id"""
)
# Where both users have the same key, briefing or memory, the receiver's stays and the giver's is deleted;
# otherwise moving it would break a unique key or make a duplicate.
_FORGET_SAME_KEYS = Statement(
    """DELETE FROM tk_creation_keys WHERE user_id = :giver AND idempotency_key IN (
        SELECT idempotency_key FROM tk_creation_keys WHERE user_id = :receiver)"""
)
_FORGET_SAME_BRIEFINGS = Statement(
    """DELETE FROM tk_briefings WHERE user_id = :giver
        AND id IN (SELECT id FROM tk_briefings WHERE user_id = :receiver)"""
)
_FORGET_SAME_MEMORIES = Statement(
    """DELETE FROM tk_memories WHERE user_id = :giver AND EXISTS (
        SELECT 1 FROM tk_memories AS own
        WHERE own.user_id = :receiver AND own.agent_id = tk_memories.agent_id
            AND own.content = tk_memories.content)"""
)

# What signs in as one user must never sign in as another.
_FORGET_API_KEYS = Statement("DELETE FROM tk_keys WHERE user_id = :giver")
_FORGET_GRANT = Statement("DELETE FROM tk_sign_in_grants WHERE user_id = :giver")
# Their names come from the user's id, so that nobody else could repeat them.
_FORGET_REQUESTS = Statement("DELETE FROM tk_requests WHERE user_id = :giver")

# Each term is prefixed with its collection's number, so two collections cannot be merged: the giver's terms
# are removed and indexed again.
_HAS_COLLECTION = Statement("SELECT 1 FROM tk_collections WHERE user_id = :receiver")
_FORGET_ENTRIES = Statement(
    """DELETE FROM tk_entries
    WHERE conversation_id IN (SELECT id FROM tk_conversations WHERE user_id = :giver)"""
)
_FORGET_SEARCHABLE = Statement(
    """DELETE FROM tk_searchable
    WHERE conversation_id IN (SELECT id FROM tk_conversations WHERE user_id = :giver)"""
)
_FORGET_COLLECTION = Statement("DELETE FROM tk_collections WHERE user_id = :giver")
# A receiver without a collection gets the giver's as it is.
_MOVE_COLLECTION = Statement("UPDATE tk_collections SET user_id = :receiver WHERE user_id = :giver")


# Nothing conflicts now, so these rows only change their owner; ids return where the caller reports them.
_MOVE_CONVERSATIONS = Statement(
    "UPDATE tk_conversations SET user_id = :receiver WHERE user_id = :giver RETURNING id"
)
_MOVE_KEYS = Statement("UPDATE tk_creation_keys SET user_id = :receiver WHERE user_id = :giver")
_MOVE_TURNS = Statement("UPDATE tk_turns SET user_id = :receiver WHERE user_id = :giver")
_MOVE_TOOL_CALLS = Statement("UPDATE tk_tool_calls SET user_id = :receiver WHERE user_id = :giver")
_MOVE_AGENTS = Statement("UPDATE tk_agents SET owner_id = :receiver WHERE owner_id = :giver RETURNING id")
_MOVE_BRIEFINGS = Statement("UPDATE tk_briefings SET user_id = :receiver WHERE user_id = :giver RETURNING id")
_MOVE_MEMORIES = Statement("UPDATE tk_memories SET user_id = :receiver WHERE user_id = :giver RETURNING id")
_MOVE_IMPORTS = Statement("UPDATE tk_imports SET user_id = :receiver WHERE user_id = :giver")
_MOVE_FILES = Statement("UPDATE tk_files SET user_id = :receiver WHERE user_id = :giver")
# Bytes that both have are kept once: the giver's files get the receiver's.
_SHARE_CONTENTS = Statement(
    """UPDATE tk_file_forms
    SET content_id = (SELECT own.id FROM tk_contents AS given
        JOIN tk_contents AS own ON own.user_id = :receiver AND own.sha256 = given.sha256
        WHERE given.user_id = :giver AND given.id = tk_file_forms.content_id)
    WHERE content_id IN (SELECT given.id FROM tk_contents AS given
        JOIN tk_contents AS own ON own.user_id = :receiver AND own.sha256 = given.sha256
        WHERE given.user_id = :giver)"""
)
_FORGET_SAME_CONTENTS = Statement(
    """DELETE FROM tk_contents WHERE id IN (SELECT given.id FROM tk_contents AS given
        JOIN tk_contents AS own ON own.user_id = :receiver AND own.sha256 = given.sha256
        WHERE given.user_id = :giver)"""
)
_MOVE_CONTENTS = Statement("UPDATE tk_contents SET user_id = :receiver WHERE user_id = :giver")
# A receiver with an allowance of their own keeps only that.
_MOVE_ALLOWANCE = Statement(
    """UPDATE tk_allowances SET user_id = :receiver WHERE user_id = :giver
        AND NOT EXISTS (SELECT 1 FROM tk_allowances AS own WHERE own.user_id = :receiver)"""
)


# The receiver's own instructions stay.
_MOVE_INSTRUCTIONS = Statement(
    """UPDATE tk_users SET instructions = (SELECT instructions FROM tk_users WHERE id = :giver)
    WHERE id = :receiver AND instructions = ''"""
)
_FORGET_INSTRUCTIONS = Statement("UPDATE tk_users SET instructions = '' WHERE id = :giver")


def reassign(
    giver: UserId, receiver: UserId, now: int, entry: AuditEntry | None, *, alone: bool
) -> Plan[Moved]:
    """Moves all rows, and notes who had that done; refuses while a turn of the giver runs elsewhere."""
    whose = {"giver": giver, "receiver": receiver}
    if not (yield _KNOWN(**whose)):
        raise UserNotFound(f"No data found for the user {giver!r}.")
    if not alone and (running := (yield _RUNNING(**whose))):
        raise TurnInProgress(
            f"An agent is answering {giver!r} right now. Try again when it has finished.", running[0][0]
        )
    yield ENSURE_USER(id=receiver, now=now)
    former_mains = yield _MAKE_FURTHER(**whose)
    yield _FORGET_SAME_KEYS(**whose)
    yield _FORGET_SAME_BRIEFINGS(**whose)
    yield _FORGET_SAME_MEMORIES(**whose)
    yield _FORGET_API_KEYS(**whose)
    yield from end_sessions(giver)
    yield _FORGET_GRANT(**whose)
    yield _FORGET_REQUESTS(**whose)
    reindexed = bool((yield _HAS_COLLECTION(**whose)))
    if reindexed:
        for statement in (_FORGET_ENTRIES, _FORGET_SEARCHABLE, _FORGET_COLLECTION):
            yield statement(**whose)
    else:
        yield _MOVE_COLLECTION(**whose)
    conversations = yield _MOVE_CONVERSATIONS(**whose)
    yield _MOVE_KEYS(**whose)
    yield from move_outside_ids(giver, receiver)
    yield _MOVE_TURNS(**whose)
    yield _MOVE_TOOL_CALLS(**whose)
    agents = yield _MOVE_AGENTS(**whose)
    briefings = yield _MOVE_BRIEFINGS(**whose)
    memories = yield _MOVE_MEMORIES(**whose)
    yield _MOVE_IMPORTS(**whose)
    yield _MOVE_FILES(**whose)
    yield lock_user(receiver)
    yield _SHARE_CONTENTS(**whose)
    yield _FORGET_SAME_CONTENTS(**whose)
    yield _MOVE_CONTENTS(**whose)
    yield _MOVE_ALLOWANCE(**whose)
    yield _MOVE_INSTRUCTIONS(**whose)
    yield _FORGET_INSTRUCTIONS(**whose)
    yield from move_spending(giver, receiver)
    if entry is not None and (conversations or agents or briefings or memories):
        yield audit_query(entry)
    return Moved(
        len(conversations),
        len(agents),
        len(briefings),
        len(memories),
        [id_ for (id_,) in former_mains],
        [id_ for (id_,) in conversations] if reindexed else (),
    )
