"""Nodes whose hearts beat quickly."""

from collections.abc import AsyncIterator

import pytest

from tests.runtime.nodes import Nodes
from threadkeep.log import writer as log_writer
from threadkeep.runtime import heartbeat, leases, mirrors
from threadkeep.storage.database.connector import Database
from threadkeep.storage.store import Store


@pytest.fixture
async def nodes(store: Store, database: Database) -> AsyncIterator[Nodes]:
    nodes = Nodes(store, database)
    yield nodes
    for node in nodes.made:
        await node.close()


@pytest.fixture(autouse=True)
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.02)
    monkeypatch.setattr(mirrors, "LOOK_EVERY_S", 0.02)


@pytest.fixture
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that nobody runs any more is soon ended."""
    monkeypatch.setattr(leases, "LEASE_MS", 100)
