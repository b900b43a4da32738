"""Agents in the database, and the audit log of their changes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from threadkeep.domain.agent import Agent, AgentCode, AuditEntry, Visibility
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import FIRST_UUID, LAST_UUID, AgentId, UserId
from threadkeep.storage.agent_settings import SettingsColumn, remember_rule
from threadkeep.storage.conversations import GET_MAIN, ConversationRows
from threadkeep.storage.database.columns import to_json, to_object
from threadkeep.storage.database.connector import Database, Plan, Query, Row, Statement
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.seen_tools import accept_tools
from threadkeep.storage.users import ENSURE_USER

_COLUMNS = """id, owner_id, name, description, primary_role_id, system_prompt, model, visibility, settings,
    is_default, version, created_at, updated_at, deleted_at, code_key, code_version, code,
    applied_version, remote"""

_INSERT = """INSERT INTO tk_agents (id, owner_id, name, description, primary_role_id, system_prompt, model,
        visibility, settings, is_default, version, created_at, updated_at, code_key, code_version, code,
        applied_version, remote)
    VALUES (:id, :owner_id, :name, :description, :primary_role_id, :system_prompt, :model,
        :visibility, :settings, :is_default, :version, :created_at, :updated_at, :code_key,
        :code_version, :code, :applied_version, :remote)"""
_ADD = Statement(_INSERT)
# Of two that are created for the same owner at the same time, the second sees the first one's name.
_LOCK_OWNER = Statement("SELECT 1 FROM tk_users WHERE id = :id", locks="FOR NO KEY UPDATE")
_NAMES = Statement("SELECT name FROM tk_agents WHERE owner_id = :owner_id AND deleted_at IS NULL")
# An earlier start, or another node, may have added it already.
_ADD_SHIPPED = Statement(f"{_INSERT} ON CONFLICT DO NOTHING")
_BY_ID = f"SELECT {_COLUMNS} FROM tk_agents WHERE id = :id"
# Even a deleted agent. `_LOCK` lets one change at a time read it and write it back.
_GET = Statement(_BY_ID)
_LOCK = Statement(_BY_ID, locks="FOR UPDATE")
# Of all programs that this node has; a deleted agent has no code any more.
_LOCK_CODE = Statement(
    f"SELECT {_COLUMNS} FROM tk_agents WHERE code_key = :key AND code_key IS NOT NULL", locks="FOR UPDATE"
)
_GET_BY_CODE = Statement(f"SELECT {_COLUMNS} FROM tk_agents WHERE code_key = :key AND code_key IS NOT NULL")
# A unique index allows only one.
_GET_DEFAULT = Statement(f"SELECT {_COLUMNS} FROM tk_agents WHERE is_default")
# The key stays for ever. A trigger takes what hides an agent and leaves its version for a node of the version
# before, which knows no programs.
# Resets `is_cleared`: if this deletes the agent, its documents have yet to be removed.
_UPDATE = Statement(
    """UPDATE tk_agents SET name = :name, description = :description, primary_role_id = :primary_role_id,
        system_prompt = :system_prompt, model = :model, visibility = :visibility, settings = :settings,
        version = :version, updated_at = :updated_at, deleted_at = :deleted_at,
        code_version = :code_version, code = :code, applied_version = :applied_version,
        remote = :remote, is_cleared = FALSE
    WHERE id = :id"""
)
# The user's own agents, other users' public ones, and programs that only admins see are three index ranges;
# each yields up to a page.
_PAGE = Statement(
    f"""SELECT {_COLUMNS} FROM (
        SELECT * FROM (
            SELECT {_COLUMNS} FROM tk_agents WHERE deleted_at IS NULL AND owner_id = :user_id AND id > :after
            ORDER BY id LIMIT :most) AS own
        UNION ALL
        SELECT * FROM (
            SELECT {_COLUMNS} FROM tk_agents WHERE deleted_at IS NULL AND visibility = 'public'
                AND id > :after AND (owner_id IS NULL OR owner_id <> :user_id)
            ORDER BY id LIMIT :most) AS others
        UNION ALL
        SELECT * FROM (
            SELECT {_COLUMNS} FROM tk_agents WHERE code_key IS NOT NULL AND :is_admin AND deleted_at IS NULL
                AND owner_id IS NULL AND visibility <> 'public' AND id > :after
            ORDER BY id LIMIT :most) AS programs
    ) AS visible ORDER BY id LIMIT :limit OFFSET :offset"""
)

_NOTE_PROMPT_BYTES = Statement("UPDATE tk_agents SET prompt_bytes = :size WHERE id = :id")

# Only a first choice: a text in other settings may look the same.
_WITH_COMMANDS = Statement("""SELECT settings FROM tk_agents WHERE settings LIKE '%"command":%'""")

_decode_code = msgspec.json.Decoder(AgentCode).decode

_AUDIT_COLUMNS = "id, at, actor_id, action, agent_id, details"
# A change of an agent and its entry are stored in one transaction.
_AUDIT_ADD = Statement(
    f"""INSERT INTO tk_audit ({_AUDIT_COLUMNS})
    VALUES (:id, :at, :actor_id, :action, :agent_id, :details)"""
)
_AUDIT_PAGE = Statement(
    f"SELECT {_AUDIT_COLUMNS} FROM tk_audit WHERE id < :before ORDER BY id DESC LIMIT :limit OFFSET :offset"
)


class SqlAgents:
    """Agents, and the audit log of their changes."""

    def __init__(self, database: Database, box: SecretBox, rows: ConversationRows) -> None:
        self._database = database
        self._rows = rows
        self._column = SettingsColumn(box)

    async def add(self, agent: Agent, entry: AuditEntry, *, name_once: bool = False) -> bool:
        """Stores a new agent; its owner becomes known. With `name_once`, False if they have its name."""
        return await self._database.write(lambda: self._add(agent, entry, name_once=name_once))

    async def add_shipped(self, agent: Agent) -> None:
        """Stores an agent that exists from the first start on, unless it already exists."""
        await self._database.execute(_ADD_SHIPPED(**self._values(agent)))

    async def declare(self, agent: Agent) -> Agent | None:
        """Stores an agent that is a program, or what newer code declares of it; returns it as stored.

        Older code changes nothing. None if an admin has deleted the agent.
        """
        return await self._database.write(lambda: self._declare(agent))

    def _declare(self, agent: Agent) -> Plan[Agent | None]:
        assert agent.code is not None
        # Another node may have added it already.
        yield _ADD_SHIPPED(**self._values(agent))
        (row,) = yield _LOCK_CODE(key=agent.code.key)
        stored = self._agent(row)
        if stored.code is None:
            return None
        if stored.id == agent.id or stored.code.version > agent.code.version:
            return stored
        changed = stored.declared_by(agent)
        if replace(changed, version=stored.version, updated_at=stored.updated_at) == stored:
            return stored
        yield _UPDATE(**self._values(changed))
        return changed

    async def get_default(self) -> Agent:
        """The default agent, created at the first start."""
        (row,) = await self._database.fetch(_GET_DEFAULT())
        return self._agent(row)

    async def get(self, agent_id: AgentId) -> Agent | None:
        """An agent, deleted or not; the caller decides who may see it."""
        rows = await self._database.fetch(_GET(id=agent_id))
        return self._agent(rows[0]) if rows else None

    async def of_code(self, key: str) -> Agent | None:
        """The agent that is a program, by its key; deleted or not."""
        rows = await self._database.fetch(_GET_BY_CODE(key=key))
        return self._agent(rows[0]) if rows else None

    async def get_with_main(
        self, user_id: UserId, agent_id: AgentId
    ) -> tuple[Agent, Conversation | None] | None:
        """One agent, even a deleted one, and the user's main conversation with it."""
        return await self._database.read(lambda: self._get_with_main(user_id, agent_id))

    async def note_prompt_bytes(self, agent_id: AgentId, size: int) -> None:
        """Records what the files of an agent's prompt take."""
        await self._database.execute(_NOTE_PROMPT_BYTES(id=agent_id, size=size))

    async def page(
        self, user_id: UserId, *, after: str | None, offset: int, limit: int, is_admin: bool = False
    ) -> Sequence[Agent]:
        """The user's own agents and the public ones, oldest first; for admins, also programs that are not."""
        rows = await self._database.fetch(
            _PAGE(
                user_id=user_id,
                is_admin=is_admin,
                after=after or FIRST_UUID,
                most=limit + offset,
                limit=limit,
                offset=offset,
            )
        )
        return [self._agent(row) for row in rows]

    async def update(
        self, agent_id: AgentId, change: Callable[[Agent], Agent], entry: Callable[[Agent], AuditEntry]
    ) -> Agent | None:
        """Reads, changes and writes an agent exclusively; the change must be pure."""
        return await self._database.write(lambda: self._update(agent_id, change, entry))

    async def run_programs(self) -> bool:
        """Whether any agent, deleted or not, has an MCP server that is a program, switched off or not."""
        rows = await self._database.fetch(_WITH_COMMANDS())
        return any(self._column.decode(settings).runs_programs for (settings,) in rows)

    async def note(self, entry: AuditEntry) -> None:
        """Adds an entry to the audit log without changing an agent."""
        await self._database.execute(audit_query(entry))

    async def audit_page(self, *, before: str | None, offset: int, limit: int) -> Sequence[AuditEntry]:
        """The audit log, newest first."""
        rows = await self._database.fetch(_AUDIT_PAGE(before=before or LAST_UUID, offset=offset, limit=limit))
        return [AuditEntry(*fields, details=to_object(details)) for *fields, details in rows]

    def _add(self, agent: Agent, entry: AuditEntry, *, name_once: bool) -> Plan[bool]:
        yield ENSURE_USER(id=agent.owner_id, now=agent.created_at)
        if name_once:
            yield _LOCK_OWNER(id=agent.owner_id)
            names = yield _NAMES(owner_id=agent.owner_id)
            if any(name.casefold() == agent.name.casefold() for (name,) in names):
                return False
        yield _ADD(**self._values(agent))
        yield from self._column.remember_key(agent)
        if agent.settings.delete_after_days:
            yield from remember_rule(agent.id, agent.settings.delete_after_days, agent.updated_at)
        yield audit_query(entry)
        return True

    def _update(
        self, agent_id: AgentId, change: Callable[[Agent], Agent], entry: Callable[[Agent], AuditEntry]
    ) -> Plan[Agent | None]:
        rows = yield _LOCK(id=agent_id)
        if not rows:
            return None
        before = self._agent(rows[0])
        changed = change(before)
        yield _UPDATE(**self._values(changed))
        yield from self._column.remember_key(changed)
        if changed.settings.delete_after_days != before.settings.delete_after_days:
            yield from remember_rule(changed.id, changed.settings.delete_after_days, changed.updated_at)
        yield from accept_tools(before, changed)
        yield audit_query(entry(changed))
        return changed

    def _values(self, agent: Agent) -> dict[str, Any]:
        values = {name: getattr(agent, name) for name in Agent.__slots__}
        code = agent.code
        return values | {
            "settings": self._column.encode(agent.settings),
            "code_key": code.key if code else None,
            "code_version": code.version if code else None,
            "code": to_json(code) if code else None,
            "remote": self._column.encode_remote(agent.remote),
        }

    def _get_with_main(
        self, user_id: UserId, agent_id: AgentId
    ) -> Plan[tuple[Agent, Conversation | None] | None]:
        agents = yield _GET(id=agent_id)
        if not agents:
            return None
        main = yield GET_MAIN(user_id=user_id, agent_id=agent_id)
        return self._agent(agents[0]), self._rows.read(main[0]) if main else None

    def _agent(self, row: Row) -> Agent:
        (
            id_, owner_id, name, description, role, prompt, model, visibility, settings,
            is_default, version, created_at, updated_at, deleted_at, _, code_version, code,
            applied_version, remote,
        ) = row  # fmt: skip
        return Agent(
            id=id_,
            owner_id=owner_id,
            name=name,
            description=description,
            primary_role_id=role,
            system_prompt=prompt,
            model=model,
            visibility=Visibility(visibility),
            settings=self._column.decode(settings),
            is_default=bool(is_default),
            version=version,
            created_at=created_at,
            updated_at=updated_at,
            deleted_at=deleted_at,
            code=_decode_code(code) if code is not None and code_version is not None else None,
            applied_version=applied_version,
            remote=self._column.decode_remote(remote),
        )


def audit_query(entry: AuditEntry) -> Query:
    """Adds an entry to the audit log, in the transaction of the change that it is about."""
    values = {name: getattr(entry, name) for name in AuditEntry.__slots__}
    return _AUDIT_ADD(**values | {"details": to_json(entry.details)})
