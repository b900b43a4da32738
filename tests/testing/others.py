"""Agents that run other agents, for tests that crash them. Another process can import them."""

import asyncio
from typing import Any

from threadkeep.agents import Turn, agent
from threadkeep.client import Client
from threadkeep.testing import Reply, Say, ScriptedModel, UseTool
from threadkeep.testing.scripted_model import Recorded


async def find_order(text: str) -> int:
    """Which order a message is about."""
    return int(text.rpartition(" ")[2])


async def refund(order: int) -> str:
    """Pays the money back, really."""
    raise AssertionError(f"order {order} was refunded for real")


async def paid(order: int) -> str:
    """Pretends to."""
    return f"paid {order}"


@agent()
async def billing(turn: Turn) -> str:
    """Refunds an order, after its user has agreed."""
    order = await turn.step(find_order, turn.text, effect="read")
    await turn.say(f"Order {order}. ")
    if not await turn.approve("Refund it?"):
        return "Nothing was refunded."
    return await turn.step(refund, order)


@agent()
async def orders(turn: Turn) -> str:
    """Lets another agent refund an order."""
    await turn.say("One moment. ")
    reply = await turn.agent("billing").run(turn.text)
    return f"Billing says: {reply.text}"


@agent()
async def clerk(turn: Turn) -> str:
    """Lets an agent without code answer, by its name."""
    agents = turn.conversation.metadata["agents"]
    both = await asyncio.gather(*(turn.agent(it).run(turn.text) for it in agents))
    return " ".join(it.text for it in both)


def last_text(request: Recorded) -> str:
    """The text of the last message of a request in OpenAI's chat API."""
    content: Any = request.body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(it.get("text", "") for it in content)


def is_after_tools(request: Recorded) -> bool:
    """Whether a model is given the results of tools."""
    return request.body["messages"][-1]["role"] == "tool"


def system_of(request: Recorded) -> str:
    """The system prompt of a request."""
    return next((it["content"] for it in request.body["messages"] if it["role"] == "system"), "")


def asks_both(request: Recorded) -> Reply:
    """A model that asks two agents at once, and what these agents' models say."""
    if "You are north." in system_of(request):
        return [Say("It is cold.")]
    if "You are south." in system_of(request):
        return [Say("It is warm.")]
    if is_after_tools(request):
        return [Say("Cold and warm.")]
    return [UseTool("ask_north", {"text": "Weather?"}), UseTool("ask_south", {"text": "Weather?"})]


def compass() -> ScriptedModel:
    """A model for one run."""
    return ScriptedModel(otherwise=asks_both)


async def make_compass(client: Client) -> str:
    """Two agents, and one whose model can call them."""
    north = await client.create_agent("North", system_prompt="You are north.")
    south = await client.create_agent("South", system_prompt="You are south.")
    both = await client.create_agent(
        "Compass", system_prompt="You know both.", settings={"agents": [north.id, south.id]}
    )
    return both.id
