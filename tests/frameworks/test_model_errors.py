"""A model that fails ends the turn of a framework's agent as it ends the turn of any agent."""

import pytest

from tests.frameworks import langgraph_shop, openai_agents_shop, pydantic_ai_shop
from tests.frameworks.scripted import answering
from threadkeep.agents import Agent
from threadkeep.testing import Status, run_agent

KEY = "sk-proj-0123456789abcdef0123456789abcdef"
SHOPS = {
    "pydantic-ai": pydantic_ai_shop.served,
    "openai-agents": openai_agents_shop.served,
    "openai-agents on chat completions": openai_agents_shop.served_by_chat_completions,
    "langgraph": langgraph_shop.served,
}
AT_ONCE = {"x-should-retry": "false"}


@pytest.mark.parametrize("agent", SHOPS.values(), ids=SHOPS)
async def test_a_context_that_is_too_long_is_told_and_no_key_with_it(agent: Agent):
    too_long = Status(400, f"The context is longer than 8192 tokens; {KEY}")
    with answering(lambda _: [too_long]):
        run = await run_agent(agent, "Hi", check=False)
    assert run.error is not None
    assert (run.error.code, run.error.retryable) == ("AGENTX_ERROR", False)
    assert run.error.message == (
        "The model provider rejected the request (400): The context is longer than 8192 tokens; ***."
    )


@pytest.mark.parametrize("agent", SHOPS.values(), ids=SHOPS)
async def test_a_model_that_is_busy_can_be_asked_again_later(agent: Agent):
    with answering(lambda _: [Status(429, "Slow down.", headers=AT_ONCE)]):
        run = await run_agent(agent, "Hi", check=False)
    assert run.error is not None
    assert (run.error.code, run.error.retryable) == ("AGENTX_ERROR", True)
    assert run.error.message == "The model provider is busy (429): Slow down."
