"""The shop written with the OpenAI Agents SDK survives crashes, and remembers what was said on its branch."""

from tests.frameworks import suite
from tests.frameworks.openai_agents_shop import served, served_by_chat_completions


def named(agent: str) -> list[str]:
    """Where the shop is crashed: the SDK's model calls are named after the agent."""
    return [it.replace("step_end model", f"step_end {agent}") for it in suite.SAMPLE]


async def test_a_crashed_shop_of_openai_agents_ends_as_if_nothing_had_happened():
    await suite.crash(served, named("shop"))


async def test_a_shop_of_openai_agents_on_chat_completions_ends_as_if_nothing_had_happened():
    await suite.crash(served_by_chat_completions, ["before step_end chat", "after pause"])


async def test_a_shop_of_openai_agents_knows_what_was_said_before_on_its_branch():
    await suite.converse(served)
