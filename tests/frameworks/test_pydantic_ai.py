"""The shop written with pydantic-ai survives crashes, and remembers on each branch what was said there."""

from pathlib import Path

import pytest

from tests.frameworks import suite
from tests.frameworks.pydantic_ai_shop import served
from tests.frameworks.scripted import Asked, answering, model_url
from tests.frameworks.shop import FAKES
from tests.postgres import Postgres
from threadkeep.testing import Reply, Say, UseTool, run_agent

EXAMPLE = Path(__file__).parents[2] / "examples" / "pydantic-ai"


async def test_a_crashed_shop_of_pydantic_ai_ends_as_if_nothing_had_happened():
    await suite.crash(served)


async def test_a_killed_shop_of_pydantic_ai_goes_on_in_another_process(postgres: Postgres):
    await suite.kill(served, suite.KILLED, postgres)


async def test_a_shop_of_pydantic_ai_knows_what_was_said_before_on_its_branch():
    await suite.converse(served)


async def test_the_example_of_pydantic_ai_looks_up_asks_and_refunds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", model_url())
    monkeypatch.setenv("OPENAI_API_KEY", "scripted")
    monkeypatch.syspath_prepend(EXAMPLE)  # type: ignore[reportUnknownMemberType]

    def answer(said: Asked) -> Reply:
        match said.results:
            case []:
                return [UseTool("find_order", {"order_id": 7}, id="find")]
            case [found]:
                return [Say(f"{found} "), UseTool("refund", {"order_id": 7}, id="refund")]
            case _:
                return [Say(said.results[-1])]

    orders = suite.load_example()
    with answering(answer):
        run = await run_agent(orders, "Refund order 7.", answers=["allow"], steps=FAKES)
    assert suite.words(run.text) == "Order 7 costs 120 euros. Order 7 is refunded."
