"""Gateways: what admins save, and how every gateway is doing."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

from threadkeep.clock import Clock
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import (
    Conflict,
    Forbidden,
    GatewayNotFound,
    InvalidRequest,
    PreconditionFailed,
)
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.model import GatewayConfig, GatewayKind, check_gateway_name
from threadkeep.domain.user import User
from threadkeep.gateways.tester import ProviderTester
from threadkeep.ports.gateways import UNKNOWN, GatewayHealth, GatewayTest, SavedGateway
from threadkeep.services.live_gateways import LiveGateways
from threadkeep.storage.gateways import SqlGateways

MOST_GATEWAYS = 50
MOST_MODELS = 500
MOST_NAME_CHARACTERS = 200
UNSAVED_TEST = "test"
"""No gateway's name: its address tests what isn't saved yet."""


@dataclass(frozen=True, slots=True)
class GatewayReport:
    """A gateway, how it is doing, and how it was saved; None for one from the settings."""

    config: GatewayConfig
    health: GatewayHealth
    saved: SavedGateway | None = None


class Gateways:
    """The use cases of gateways; all are for admins."""

    def __init__(self, store: SqlGateways, live: LiveGateways, tester: ProviderTester, clock: Clock) -> None:
        self._store = store
        self._live = live
        self._tester = tester
        self._clock = clock

    async def reports(self, user: User) -> Sequence[GatewayReport]:
        """Every gateway: first those from the settings, then those that admins saved."""
        _check_admin(user)
        found = await self._all()
        self._live.look_soon()
        return found

    async def get(self, user: User, name: str) -> GatewayReport:
        """One gateway."""
        _check_admin(user)
        for report in await self._all():
            if report.config.name == name:
                return report
        raise GatewayNotFound

    async def create(self, user: User, config: GatewayConfig) -> GatewayReport:
        """Saves a new gateway; every node uses it from now on."""
        _check_admin(user)
        check_gateway_name(config.name)
        if config.name == UNSAVED_TEST:
            raise InvalidRequest(f"The name {config.name!r} is reserved. Choose another.", param="name")
        if any(it.name == config.name for it in self._live.fixed):
            raise Conflict(f"The settings already have a gateway called {config.name!r}.", param="name")
        await self._check(config)
        now = self._clock()
        saved = SavedGateway(config=config, version=1, created_at=now, updated_at=now)
        entry = self._entry(user, "create_gateway", config.name)
        await self._store.add(saved, entry, most=MOST_GATEWAYS)
        await self._live.changed()
        return self._report(config, saved)

    async def update(
        self,
        user: User,
        name: str,
        revise: Callable[[GatewayConfig], GatewayConfig],
        *,
        expected_version: int | None,
    ) -> GatewayReport:
        """Changes a gateway; with `expected_version`, only if nobody else has changed it since."""
        before = await self._saved(user, name)
        # Resolves a name, which no transaction waits for; what is saved in the end is checked below.
        checked = revise(before.config)
        await self._check(checked)

        def change(saved: SavedGateway) -> SavedGateway:
            _check_version(saved, expected_version)
            revised = revise(saved.config)
            if (revised.kind, revised.url) != (checked.kind, checked.url):
                raise PreconditionFailed("Another admin changed the gateway at the same time. Try again.")
            before_change.append(saved.config)
            return replace(saved, config=revised, version=saved.version + 1, updated_at=self._clock())

        def entry(saved: SavedGateway) -> AuditEntry:
            changed = _changed_fields(before_change[-1], saved.config)
            return self._entry(user, "update_gateway", name, changed=changed)

        before_change: list[GatewayConfig] = []
        updated = await self._store.update(name, change, entry)
        if updated is None:
            raise GatewayNotFound
        await self._live.changed()
        return self._report(updated.config, updated)

    async def delete(self, user: User, name: str, *, expected_version: int | None) -> None:
        """Deletes a gateway. Replies in progress finish; agents that name its models need others."""
        await self._saved(user, name)

        def check(saved: SavedGateway) -> None:
            _check_version(saved, expected_version)

        if not await self._store.remove(name, check, self._entry(user, "delete_gateway", name)):
            raise GatewayNotFound
        await self._live.changed()

    async def test(self, user: User, name: str) -> GatewayTest:
        """Connects to a gateway and lists its models."""
        return await self._tester.test((await self.get(user, name)).config)

    async def test_unsaved(self, user: User, config: GatewayConfig) -> GatewayTest:
        """Connects to a gateway that isn't saved, and lists its models."""
        _check_admin(user)
        await self._tester.check(config)
        return await self._tester.test(config)

    async def _all(self) -> Sequence[GatewayReport]:
        fixed = [self._report(it) for it in self._live.fixed]
        return [*fixed, *(self._report(it.config, it) for it in await self._store.all())]

    async def _saved(self, user: User, name: str) -> SavedGateway:
        report = await self.get(user, name)
        if report.saved is None:
            raise Conflict(f"The gateway {name!r} comes from the settings. Change it there.")
        return report.saved

    async def _check(self, config: GatewayConfig) -> None:
        check_config(config)
        await self._tester.check(config)

    def _report(self, config: GatewayConfig, saved: SavedGateway | None = None) -> GatewayReport:
        return GatewayReport(config, self._live.health().get(config.name, UNKNOWN), saved)

    def _entry(self, user: User, action: str, name: str, **details: object) -> AuditEntry:
        return AuditEntry(new_uuid(), self._clock(), user.id, action, None, {"gateway": name, **details})


def check_config(config: GatewayConfig) -> None:
    """Refuses a gateway that could not work."""
    if config.kind is GatewayKind.LOCAL:
        raise InvalidRequest("A `local` gateway can only be configured in the settings.", param="kind")
    if len(config.models) > MOST_MODELS:
        raise InvalidRequest(f"A gateway lists at most {MOST_MODELS} models.", param="models")
    names = [it.name for it in config.models]
    for name in [*names, *filter(None, [config.default_model])]:
        if not name.strip() or not name.isprintable() or len(name) > MOST_NAME_CHARACTERS:
            raise InvalidRequest(f"{name[:50]!r} isn't a valid name of a model.", param="models")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidRequest(f"The model {twice[0]!r} is listed twice.", param="models")
    if config.url and not names and not config.default_model:
        raise InvalidRequest("Name at least one model that the server at this address has.", param="models")


def _check_admin(user: User) -> None:
    if not user.is_admin:
        raise Forbidden("Only an admin can see and change gateways.")


def _check_version(saved: SavedGateway, expected: int | None) -> None:
    if expected not in {None, saved.version}:
        raise PreconditionFailed(
            "The gateway has changed since you read it. Reload it and try again.",
            details={"version": saved.version},
        )


def _changed_fields(before: GatewayConfig, after: GatewayConfig) -> list[str]:
    """Names only: the audit log never has a key."""
    return [it.name for it in fields(before) if getattr(before, it.name) != getattr(after, it.name)]
