"""Gateways that admins save, in the database, with their keys encrypted."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import Conflict
from threadkeep.domain.model import GatewayConfig, GatewayKind, ListedModel
from threadkeep.ports.gateways import SavedGateway
from threadkeep.storage.agents import audit_query
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.secrets import REMEMBER_KEY, SealedSecret, SecretBox

_COLUMNS = "name, kind, url, api_key, models, default_model, version, created_at, updated_at"
# Few: an account each, and at most as many as the caller allows.
ALL_GATEWAYS = Statement(f"SELECT {_COLUMNS} FROM tk_gateways ORDER BY created_at, name")
_LOCK = Statement(f"SELECT {_COLUMNS} FROM tk_gateways WHERE name = :name", locks="FOR UPDATE")
_COUNT = Statement("SELECT COUNT(*) FROM tk_gateways")
_ADD = Statement(
    f"""INSERT INTO tk_gateways ({_COLUMNS})
    VALUES (:name, :kind, :url, :api_key, :models, :default_model, :version, :created_at, :updated_at)
    ON CONFLICT DO NOTHING RETURNING name"""
)
_UPDATE = Statement(
    """UPDATE tk_gateways SET kind = :kind, url = :url, api_key = :api_key, models = :models,
        default_model = :default_model, version = :version, updated_at = :updated_at
    WHERE name = :name"""
)
_REMOVE = Statement("DELETE FROM tk_gateways WHERE name = :name")
_NAMES_WITH_KEY = Statement("SELECT name FROM tk_gateways WHERE api_key IS NOT NULL ORDER BY name")

_models = msgspec.json.Decoder(tuple[ListedModel, ...])


class SqlGateways:
    """The gateways of a database, with their keys encrypted. Each change is also in the audit log."""

    def __init__(self, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def all(self) -> Sequence[SavedGateway]:
        """All of them, oldest first."""
        return gateways_in(await self._database.fetch(ALL_GATEWAYS()), self._box)

    async def add(self, gateway: SavedGateway, entry: AuditEntry, *, most: int) -> None:
        """Stores a new one; Conflict if its name is taken, or there are `most` already."""
        await self._database.write(lambda: self._add(gateway, entry, most))

    async def update(
        self,
        name: str,
        change: Callable[[SavedGateway], SavedGateway],
        entry: Callable[[SavedGateway], AuditEntry],
    ) -> SavedGateway | None:
        """Reads, changes and writes one exclusively; the change must be pure."""
        return await self._database.write(lambda: self._update(name, change, entry))

    async def remove(self, name: str, check: Callable[[SavedGateway], None], entry: AuditEntry) -> bool:
        """Removes one that `check` accepts; False if there is none."""
        return await self._database.write(lambda: self._remove(name, check, entry))

    def _add(self, gateway: SavedGateway, entry: AuditEntry, most: int) -> Plan[None]:
        ((count,),) = yield _COUNT()
        if count >= most:
            raise Conflict(f"There can be at most {most} gateways. Delete one first.")
        if not (yield _ADD(**_values(gateway, self._box))):
            raise Conflict(f"There is already a gateway called {gateway.config.name!r}.", param="name")
        yield from self._remember_key(gateway)
        yield audit_query(entry)

    def _update(
        self,
        name: str,
        change: Callable[[SavedGateway], SavedGateway],
        entry: Callable[[SavedGateway], AuditEntry],
    ) -> Plan[SavedGateway | None]:
        rows = yield _LOCK(name=name)
        if not rows:
            return None
        changed = change(_gateway(rows[0], self._box))
        yield _UPDATE(**_values(changed, self._box))
        yield from self._remember_key(changed)
        yield audit_query(entry(changed))
        return changed

    def _remove(self, name: str, check: Callable[[SavedGateway], None], entry: AuditEntry) -> Plan[bool]:
        rows = yield _LOCK(name=name)
        if not rows:
            return False
        check(_gateway(rows[0], self._box))
        yield _REMOVE(name=name)
        yield audit_query(entry)
        return True

    def _remember_key(self, gateway: SavedGateway) -> Plan[None]:
        if gateway.config.api_key is not None:
            yield REMEMBER_KEY(value=self._box.sealing_key)


async def reseal_gateway_keys(database: Database, box: SecretBox) -> int:
    """Re-encrypts gateways' keys with the first key; returns how many are unreadable."""
    names = await database.fetch(_NAMES_WITH_KEY())
    return sum([await database.write(lambda name=name: _reseal(name, box)) for (name,) in names])


def _reseal(name: str, box: SecretBox) -> Plan[int]:
    rows = yield _LOCK(name=name)
    if not rows:
        return 0
    gateway = _gateway(rows[0], box)
    yield _UPDATE(**_values(gateway, box))
    key = gateway.config.api_key
    return int(isinstance(key, SealedSecret) and not key.is_readable)


def gateways_in(rows: Sequence[Row], box: SecretBox) -> list[SavedGateway]:
    """What rows hold."""
    return [_gateway(row, box) for row in rows]


def _gateway(row: Row, box: SecretBox) -> SavedGateway:
    name, kind, url, api_key, models, default_model, version, created_at, updated_at = row
    config = GatewayConfig(
        name=name,
        kind=GatewayKind(kind),
        url=url,
        api_key=None if api_key is None else box.kept(api_key),
        models=_models.decode(models),
        default_model=default_model,
    )
    return SavedGateway(config=config, version=version, created_at=created_at, updated_at=updated_at)


def _values(gateway: SavedGateway, box: SecretBox) -> dict[str, Any]:
    config = gateway.config
    return {
        "name": config.name,
        "kind": config.kind,
        "url": config.url,
        "api_key": None if config.api_key is None else box.seal(config.api_key),
        "models": to_json(config.models),
        "default_model": config.default_model,
        "version": gateway.version,
        "created_at": gateway.created_at,
        "updated_at": gateway.updated_at,
    }
