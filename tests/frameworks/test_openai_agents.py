"""The shop written with the OpenAI Agents SDK survives crashes, and remembers what was said on its branch."""

from pathlib import Path

import pytest

from tests.frameworks import suite
from tests.frameworks.openai_agents_shop import served, served_by_chat_completions
from tests.frameworks.scripted import Asked, answering, model_url
from tests.frameworks.shop import FAKES
from tests.postgres import Postgres
from threadkeep.testing import Reply, Say, UseTool, run_agent

EXAMPLE = Path(__file__).parents[2] / "examples" / "openai-agents"


def named(agent: str) -> list[str]:
    """Where the shop is crashed: the SDK's model calls are named after the agent."""
    return [it.replace("step_end model", f"step_end {agent}") for it in suite.SAMPLE]


async def test_a_crashed_shop_of_openai_agents_ends_as_if_nothing_had_happened():
    await suite.crash(served, named("shop"))


async def test_a_shop_of_openai_agents_on_chat_completions_ends_as_if_nothing_had_happened():
    await suite.crash(served_by_chat_completions, ["before step_end chat", "after pause"])


async def test_a_killed_shop_of_openai_agents_goes_on_in_another_process(postgres: Postgres):
    await suite.kill(served, suite.KILLED, postgres)


async def test_a_shop_of_openai_agents_knows_what_was_said_before_on_its_branch():
    await suite.converse(served)


async def test_the_example_of_openai_agents_looks_up_hands_over_asks_and_refunds(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("OPENAI_BASE_URL", model_url())
    monkeypatch.setenv("OPENAI_API_KEY", "scripted")
    monkeypatch.syspath_prepend(EXAMPLE)  # type: ignore[reportUnknownMemberType]

    def answer(said: Asked) -> Reply:
        match said.results:
            case []:
                return [UseTool("find_order", {"order_id": 7}, id="find")]
            case [found]:
                return [Say(f"{found} "), UseTool("transfer_to_billing", {}, id="hand")]
            case [_, _]:
                return [UseTool("refund", {"order_id": 7}, id="refund")]
            case _:
                return [Say(said.results[-1])]

    orders = suite.load_example()
    with answering(answer):
        run = await run_agent(orders, "Refund order 7.", answers=["allow"], steps=FAKES)
    assert suite.words(run.text) == "Order 7 costs 120 euros. Order 7 is refunded."
    assert {"Orders", "Billing"} <= run.steps.keys()
