"""The agent of examples/orders in real processes, on either database, and the signals that they end by."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from examples.orders import shop

from tests.conftest import TEMPLATE, secret_key_for
from tests.faults.bank import refund
from tests.postgres import Postgres
from threadkeep.agents import Agent
from threadkeep.testing import Say, ScriptedModel
from threadkeep.testing.agents import Course, Fakes
from threadkeep.testing.crashes import Courses, Killed
from threadkeep.testing.processes import Processes

TEXT = "Refund order 7."
KIND = "Enjoy your evening!"
WAIT_S = 60.0
DRIVER = "threadkeep.storage.database.postgres:PostgresDatabase"

# The database's clock is what leases go by.
EXPIRE = """UPDATE tk_turns SET lease_until = (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1
    WHERE status = 'RUNNING'"""


def kind_model() -> ScriptedModel:
    """Says one sentence, as often as it is asked."""
    return ScriptedModel(otherwise=[Say(KIND)])


@dataclass(kw_only=True)
class PostgresCourses(Courses):
    """The turn on PostgreSQL, each time in an empty database."""

    postgres: Postgres
    expires: bool = True
    """Whether a lost turn's lease expires at once, and not in its time."""

    async def prepare(self) -> None:
        """The server has a template."""

    @asynccontextmanager
    async def ground(self) -> AsyncGenerator[tuple[Path, Mapping[str, Any]]]:
        """A folder and a database."""
        url = await asyncio.to_thread(self.postgres.borrow_database, TEMPLATE)
        try:
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                yield (
                    Path(folder),
                    {**self.settings, "database_url": url, "secret_key": secret_key_for(url)},
                )
        finally:
            await asyncio.to_thread(self.postgres.give_back, url)

    async def lose(self, settings: Mapping[str, Any]) -> None:
        """Lets the time pass in which the dead process might still be alive."""
        if self.expires:
            async with await psycopg.AsyncConnection.connect(
                settings["database_url"], autocommit=True
            ) as connection:
                await connection.execute(EXPIRE)


@asynccontextmanager
async def order_courses(
    postgres: Postgres | None = None, *, expires: bool = True
) -> AsyncGenerator[tuple[Courses, Processes]]:
    """The turn of the example in processes, on PostgreSQL if that is given, else on SQLite."""
    async with killed_courses(
        shop.orders, TEXT, ["yes"], {"refund": refund}, postgres, model=kind_model, expires=expires
    ) as it:
        yield it


@asynccontextmanager
async def killed_courses(
    agent: Agent,
    text: str,
    answers: Sequence[str],
    fakes: Fakes,
    postgres: Postgres | None,
    *,
    model: Callable[[], ScriptedModel],
    expires: bool = True,
    course_of: type[Course] = Course,
    wait_s: float = WAIT_S,
) -> AsyncGenerator[tuple[Courses, Processes]]:
    """A turn, or a course of several, in processes, on PostgreSQL if that is given, else on SQLite."""
    async with AsyncExitStack() as stack:
        processes = await stack.enter_async_context(Processes([agent], fakes, [DRIVER] if postgres else []))
        given: dict[str, Any] = {
            "agent": agent,
            "text": text,
            "answers": answers,
            "model": model,
            "fakes": fakes,
            "timeout_s": wait_s,
            "settings": {"agents_pause_after_s": 0.05, "embedding_url": "off"},
            "pauses": True,
            "lives": Killed(processes),
            "course_of": course_of,
            "folder": Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="threadkeep-"))),
        }
        if postgres is None:
            yield Courses(**given), processes
        else:
            yield PostgresCourses(**given, postgres=postgres, expires=expires), processes
