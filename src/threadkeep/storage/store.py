"""Opens a database and builds the store on it."""

import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from threadkeep.domain.errors import SettingsError
from threadkeep.extras import adding
from threadkeep.loops import Loops
from threadkeep.storage.agent_settings import reseal_settings
from threadkeep.storage.agents import SqlAgents
from threadkeep.storage.allowances import UserBytes
from threadkeep.storage.approvals import SqlApprovals
from threadkeep.storage.branches import SqlBranches
from threadkeep.storage.briefings import SqlBriefings
from threadkeep.storage.code.programs import SqlPrograms
from threadkeep.storage.code.states import SqlStates
from threadkeep.storage.compactions import SqlCompactions
from threadkeep.storage.conversations import ConversationRows, SqlConversations
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.database.migrate import check_migrated, migrations
from threadkeep.storage.database.snapshot import Snapshot, sqlite_snapshot
from threadkeep.storage.database.sqlite import SqliteDatabase
from threadkeep.storage.documents.chunk_index import SqlChunkIndex
from threadkeep.storage.documents.documents import SqlDocuments
from threadkeep.storage.executions import SqlExecutions
from threadkeep.storage.feedback import SqlFeedback
from threadkeep.storage.file_contents import FileContents, TableFileContents
from threadkeep.storage.file_folder import FolderFileContents
from threadkeep.storage.files import SqlFiles
from threadkeep.storage.gateways import SqlGateways, reseal_gateway_keys
from threadkeep.storage.history import SqlHistory
from threadkeep.storage.imports.runs import SqlImportRuns
from threadkeep.storage.imports.whole_conversations import SqlWholeConversations
from threadkeep.storage.keys import SqlKeys
from threadkeep.storage.memories import SqlMemories
from threadkeep.storage.messages import SqlMessages
from threadkeep.storage.outside_ids import SqlOutsideIds
from threadkeep.storage.payloads.database import SqlPayloads, TableContents
from threadkeep.storage.payloads.folder import FolderContents
from threadkeep.storage.queue import SqlQueue
from threadkeep.storage.receipts import SqlReceipts
from threadkeep.storage.repeats import SqlRepeats
from threadkeep.storage.retention.idle_conversations import SqlIdleConversations
from threadkeep.storage.running.absences import SqlAbsences
from threadkeep.storage.running.active_turns import SqlActiveTurns
from threadkeep.storage.secrets import REMEMBER_KEY, SECRET_KEY, SecretBox
from threadkeep.storage.seen_tools import SqlSeenTools
from threadkeep.storage.session_ids import seal_sessions
from threadkeep.storage.sharing.shares import SqlShares
from threadkeep.storage.sign_in.attempts import SqlSignInAttempts
from threadkeep.storage.sign_in.grants import SqlGrants, reseal_grants
from threadkeep.storage.sign_in.invitations import SqlInvitations
from threadkeep.storage.sign_in.known_users import SqlKnownUsers
from threadkeep.storage.sign_in.sessions import SqlSessions
from threadkeep.storage.spending.ledger import SqlLedger
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.storage.turns import SqlTurns
from threadkeep.storage.users import SqlUsers

if TYPE_CHECKING:
    from threadkeep.storage.database.postgres import PostgresDatabase


@dataclass(frozen=True, slots=True)
class Store:
    """Everything stored, one attribute per noun.

    To a method that takes a user's id, other people's items don't exist. Every write is committed when its
    method returns. Errors are StorageErrors.
    """

    agents: SqlAgents
    seen_tools: SqlSeenTools
    conversations: SqlConversations
    messages: SqlMessages
    branches: SqlBranches
    turns: SqlTurns
    active: SqlActiveTurns
    absences: SqlAbsences
    queue: SqlQueue
    log: SqlTurnLog
    ledger: SqlLedger
    approvals: SqlApprovals
    compactions: SqlCompactions
    receipts: SqlReceipts
    briefings: SqlBriefings
    executions: SqlExecutions
    memories: SqlMemories
    keys: SqlKeys
    sessions: SqlSessions
    invitations: SqlInvitations
    known_users: SqlKnownUsers
    sign_in_attempts: SqlSignInAttempts
    grants: SqlGrants
    idle: SqlIdleConversations
    feedback: SqlFeedback
    outside_ids: SqlOutsideIds
    repeats: SqlRepeats
    shares: SqlShares
    users: SqlUsers
    documents: SqlDocuments
    chunks: SqlChunkIndex
    history: SqlHistory
    programs: SqlPrograms
    states: SqlStates
    payloads: SqlPayloads
    files: SqlFiles
    gateways: SqlGateways
    whole_conversations: SqlWholeConversations
    import_runs: SqlImportRuns
    stored_bytes: UserBytes
    key: bytes
    """Random bytes of this database, the same on every node; they sign the cursors of lists."""
    installation: str
    """An id of this database, which a restored backup keeps: what a browser kept for one is for no other."""
    ping: Callable[[], Awaitable[None]]
    """Raises StorageError if the database is unreachable."""
    close: Callable[[], Awaitable[None]]
    """Finishes accepted work and closes the database."""


log = logging.getLogger("threadkeep.storage")

# `sqlite3` releases the GIL at every step, so more readers than this only contend for it.
MOST_SQLITE_READERS = 2

# For the readiness check: whether the database responds.
_PING = Statement("SELECT 1")
# `key`: for cursors, and to recognize deleted users; `installation`: what front ends know this database by.
# The first start makes them; of several nodes, the first one's count.
_ADD_IDENTITY = Statement(
    """INSERT INTO tk_meta (name, value) VALUES ('key', :key), ('installation', :installation)
    ON CONFLICT DO NOTHING"""
)
_GET_IDENTITY = Statement("SELECT name, value FROM tk_meta WHERE name IN ('key', 'installation')")


async def open_store(url: str, *, schema: str | None = None, pool_size: int = 8) -> Store:
    """Opens the database at a URL, migrates it, and returns its store."""
    return await store_on(await open_database(url, schema=schema, pool_size=pool_size))


async def open_database(
    url: str,
    *,
    schema: str | None = None,
    pool_size: int = 8,
    user_table: str | None = None,
    loops: Loops | None = None,
) -> Database:
    """Opens the database at a URL and migrates it."""
    if url.startswith("sqlite:"):
        readers = min(pool_size, MOST_SQLITE_READERS)
        return await SqliteDatabase.open(sqlite_path(url), reader_count=readers, loops=loops)
    return await _postgres().open(url, schema=schema, pool_size=pool_size, user_table=user_table)


async def open_snapshot(url: str, *, schema: str | None = None, as_found: bool = False) -> Snapshot:
    """The database at a URL as of this moment, read-only, even while a server runs.

    It must be of this version, unless `as_found`; then reading it leaves nothing beside it.
    """
    if url.startswith("sqlite:"):
        snapshot = await sqlite_snapshot(sqlite_path(url), leave_no_trace=as_found)
    else:
        snapshot = await _postgres().snapshot(url, schema=schema)
    if not as_found:
        try:
            await snapshot.read(lambda: check_migrated(migrations(snapshot.dialect)))
        except BaseException:
            await snapshot.close()
            raise
    return snapshot


async def delivers_notifications(url: str) -> bool:
    """Whether LISTEN works on the PostgreSQL database at a URL."""
    return await _postgres().delivers_notifications(url)


def _postgres() -> "type[PostgresDatabase]":
    try:
        from threadkeep.storage.database.postgres import PostgresDatabase  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise SettingsError(f"PostgreSQL requires an extra. Run: {adding('postgres')}") from exc
    return PostgresDatabase


async def store_on(
    database: Database, box: SecretBox | None = None, payload_folder: Path | None = None
) -> Store:
    """The store on an open database.

    Without a box it can't store secrets; without a folder large values go into the database.
    """
    await database.execute(_ADD_IDENTITY(key=secrets.token_hex(32), installation=secrets.token_hex(16)))
    await _use_keys(database, box or SecretBox())
    if box is not None:
        await seal_sessions(database, box)
    return await store_reading(database, box, payload_folder)


async def _use_keys(database: Database, box: SecretBox) -> None:
    """Re-encrypts every secret that the first key did not encrypt; refuses to continue without a key."""
    rows = await database.fetch(SECRET_KEY())
    if not rows or rows[0][0] == box.sealing_key:
        return
    if box.sealing_key is None:
        raise SettingsError(
            "The database contains encrypted secrets, but their key is missing. Set THREADKEEP_SECRET_KEY, "
            "or restore the key file to the data folder."
        )
    unreadable = await reseal_settings(database, box) + await reseal_gateway_keys(database, box)
    await reseal_grants(database, box)
    if unreadable:
        log.error("can't decrypt %d stored secrets with the configured keys", unreadable)
    else:
        await database.execute(REMEMBER_KEY(value=box.sealing_key))


async def store_reading(
    database: Database, box: SecretBox | None = None, payload_folder: Path | None = None
) -> Store:
    """The store on a database that is already in use: opening it writes nothing."""
    box = box or SecretBox()
    rows = ConversationRows(box)

    async def ping() -> None:
        await database.fetch(_PING())

    identity = dict(await database.fetch(_GET_IDENTITY()))  # empty if it has never been written
    key = bytes.fromhex(identity.get("key", ""))
    turn_log = SqlTurnLog(database, rows)
    contents = FolderContents(payload_folder) if payload_folder else TableContents(database)
    file_contents = _file_contents(database, payload_folder)
    return Store(
        agents=SqlAgents(database, box, rows),
        seen_tools=SqlSeenTools(database),
        conversations=SqlConversations(database, rows, file_contents),
        messages=SqlMessages(database, rows),
        branches=SqlBranches(database),
        turns=SqlTurns(database, rows),
        log=turn_log,
        ledger=SqlLedger(database, key),
        approvals=SqlApprovals(database, turn_log),
        queue=SqlQueue(database, file_contents),
        compactions=SqlCompactions(database),
        receipts=SqlReceipts(database),
        briefings=SqlBriefings(database),
        executions=SqlExecutions(database, rows),
        memories=SqlMemories(database),
        keys=SqlKeys(database),
        sessions=SqlSessions(database),
        invitations=SqlInvitations(database),
        known_users=SqlKnownUsers(database),
        sign_in_attempts=SqlSignInAttempts(database),
        grants=SqlGrants(database, box),
        idle=SqlIdleConversations(database),
        feedback=SqlFeedback(database),
        outside_ids=SqlOutsideIds(database, rows),
        repeats=SqlRepeats(database),
        shares=SqlShares(database),
        users=SqlUsers(database, file_contents, key),
        documents=SqlDocuments(database),
        chunks=SqlChunkIndex(database),
        history=SqlHistory(database),
        programs=SqlPrograms(database),
        active=SqlActiveTurns(database),
        absences=SqlAbsences(database),
        states=SqlStates(database),
        payloads=SqlPayloads(database, contents, file_contents),
        files=SqlFiles(database, file_contents),
        gateways=SqlGateways(database, box),
        whole_conversations=SqlWholeConversations(database, contents, file_contents, rows),
        import_runs=SqlImportRuns(database),
        stored_bytes=UserBytes(database),
        key=key,
        installation=identity.get("installation", ""),
        ping=ping,
        close=database.close,
    )


def _file_contents(database: Database, payload_folder: Path | None) -> FileContents:
    return FolderFileContents(payload_folder, database) if payload_folder else TableFileContents(database)


def sqlite_path(url: str) -> Path:
    """The file that sqlite:///relative/path or sqlite:////absolute/path names."""
    parts = urlsplit(url)
    if parts.netloc or len(parts.path) < 2:
        raise SettingsError("A SQLite URL has the form sqlite:///folder/file.db.")
    return Path(unquote(parts.path[1:]))
