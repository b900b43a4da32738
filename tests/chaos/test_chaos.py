"""Half a minute of chaos on each engine; `make chaos` goes on for as long as one likes."""

from pathlib import Path

import pytest

from tests.chaos.run import Chaos
from tests.chaos.world import Engine
from tests.pooling import NEEDS_PGBOUNCER

SECONDS = 10
SEED = 43


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=NEEDS_PGBOUNCER)])
async def test_nothing_promised_is_lost_whatever_breaks(engine: Engine, tmp_path: Path):
    record = await Chaos(engine, SEED, tmp_path, people=4).run(SECONDS)
    assert record.losses == []
    assert record.faults.total() and record.turns.total() and all(it.acknowledged for it in record.sent)
