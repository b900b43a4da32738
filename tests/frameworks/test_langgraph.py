"""The shop written with LangChain survives crashes, and remembers on each branch what was said there."""

from tests.frameworks import suite
from tests.frameworks.langgraph_shop import served
from tests.postgres import Postgres


async def test_a_crashed_shop_of_langgraph_ends_as_if_nothing_had_happened():
    await suite.crash(served)


async def test_a_killed_shop_of_langgraph_goes_on_in_another_process(postgres: Postgres):
    await suite.kill(served, suite.KILLED, postgres)


async def test_a_shop_of_langgraph_knows_what_was_said_before_on_its_branch():
    await suite.converse(served)
