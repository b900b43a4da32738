"""Agents that run other agents inside their turns: against a real server."""

import asyncio
from typing import Any

from tests.testing.others import billing, last_text, orders, paid, system_of
from threadkeep.agents import AgentError, AgentUnusable, BlockingTurn, Reply, Turn, agent, tool
from threadkeep.client import Client
from threadkeep.testing import Say, ScriptedModel, ToolServer, UseTool, run_agent, running_app
from threadkeep.testing.scripted_model import Recorded


def running(*names: str, then: str = "") -> Any:
    """An agent that runs others with its text, one after the other, and returns what they say."""

    @agent(key="runs")
    async def it(turn: Turn) -> str:
        replies = [await turn.agent(name).run(turn.text) for name in names]
        return " ".join(it.text for it in replies) + then

    return it


async def test_agent_runs_another_one_whose_text_is_not_the_replys():
    run = await run_agent(orders, "Refund order 7", answers=["yes"], steps={"refund": paid}, agents=[billing])
    assert run.text == "One moment. Billing says: Order 7. paid 7"
    assert run.questions == ["Billing: Refund it?"]
    steps = {it["name"]: it for it in run.parts if it["type"] == "step"}
    assert (steps["billing"]["agent"], steps["billing"]["status"]) == ("Billing", "ok")
    assert "parentId" not in steps["billing"]
    assert steps["refund"]["parentId"] == steps["find_order"]["parentId"] == steps["billing"]["stepId"]


async def test_handoff_lets_another_agent_reply():
    @agent()
    async def desk(turn: Turn) -> Reply:
        return await turn.handoff("billing")

    run = await run_agent(desk, "Refund order 7", answers=["yes"], steps={"refund": paid}, agents=[billing])
    assert run.text == "Order 7. paid 7"


async def test_agent_knows_only_what_it_was_asked_and_keeps_no_state():
    @agent()
    async def asked(turn: Turn) -> str:
        assert not turn.is_shown
        assert await turn.history() == []
        assert await turn.steering() == []
        assert turn.client_tools == ()
        turn.state["mine"] = turn.state.get("mine", 0) + 1
        (message,) = await turn.history(as_context=True)
        return f"{message.content} {turn.state['mine']}"

    @agent()
    async def asking(turn: Turn) -> str:
        turn.state["own"] = "kept"
        both = await asyncio.gather(*(turn.agent("asked").run(it) for it in ("one", "two", "two")))
        assert turn.state == {"own": "kept"}
        return ", ".join(it.text for it in both)

    run = await run_agent(asking, "Go", agents=[asked])
    assert run.text == "one 1, two 1, two 1"


async def test_functions_in_threads_run_each_other():
    @agent()
    def inner(turn: BlockingTurn) -> str:
        return f"inner {turn.text}"

    @agent()
    def middle(turn: BlockingTurn) -> str:
        return turn.agent("inner").run(turn.text).text

    @agent()
    def outer(turn: BlockingTurn) -> None:
        turn.handoff("middle", "hello")

    run = await run_agent(outer, "Go", agents=[inner, middle])
    assert run.text == "inner hello"


async def test_what_an_agent_raises_is_raised_where_it_was_run():
    @agent()
    async def strict(turn: Turn) -> str:
        raise AgentError(f"{turn.text} doesn't exist.")

    @agent()
    async def careful(turn: Turn) -> str:
        try:
            await turn.agent("strict").run("Order 8")
        except AgentError as exc:
            return f"It says: {exc}"
        return "?"

    run = await run_agent(careful, "Go", agents=[strict])
    assert run.text == "It says: Order 8 doesn't exist."
    assert [it["status"] for it in run.parts if it["type"] == "step"] == ["error"]
    failed = await run_agent(running("strict"), "Order 9", agents=[strict])
    assert failed.error is not None
    assert (failed.error.code, failed.error.message) == ("AGENT_FAILED", "Order 9 doesn't exist.")


async def test_agents_that_run_each_other_end_at_the_deepest():
    @agent()
    async def ping(turn: Turn) -> str:
        return (await turn.agent("pong").run(turn.text)).text

    @agent()
    async def pong(turn: Turn) -> str:
        return (await turn.agent("ping").run(turn.text)).text

    run = await run_agent(ping, "Go", agents=[pong])
    assert isinstance(run.exception, AgentUnusable)
    assert str(run.exception).startswith("Agents can call each other 5 deep; this would be one more: ")
    assert len([it for it in run.parts if it["type"] == "step"]) == 5
    assert run.error is not None
    assert (run.error.code, run.error.message) == ("AGENT_FAILED", str(run.exception))


async def test_agent_that_its_user_may_not_use_does_not_exist():
    @agent(visibility="public")
    async def asks(turn: Turn) -> str:
        told: list[str] = []
        for name in turn.text.split():
            try:
                told.append((await turn.agent(name).run("Hi")).text)
            except AgentUnusable as exc:
                told.append(str(exc).replace(name, "X"))
        return "\n".join(told)

    @agent(key="hidden")
    async def hidden(turn: Turn) -> str:
        return "Hidden."

    async with running_app(agents=[asks, hidden]) as app:
        asked = [it.id async for it in app.client.agents() if it.engine.key == "asks"]
        secret = await app.client.create_agent("Secret", system_prompt="Secret.")
        ada = app.as_user("ada")
        conversation = await ada.create_conversation(asked[0])
        reply = await ada.ask(conversation.id, f"hidden nothing {secret.id}")
        assert len(set(str(reply.content).split("\n"))) == 1
        assert "There is no agent `X`." in str(reply.content)


async def test_agent_without_code_replies_with_its_own_prompt_and_tools_under_its_own_rules():
    def cancel(order: int) -> str:
        """Cancels an order."""
        return f"order {order} is cancelled"

    @tool(effect="read")
    async def look(order: int) -> str:
        """Looks an order up."""
        return "open"

    def replies(request: Recorded) -> list[Any]:
        assert "You cancel orders." in system_of(request)
        offered = {it["function"]["name"] for it in request.body["tools"]}
        assert "shop__cancel" in offered
        assert "look" not in offered
        assert request.body["temperature"] == 0.5
        if request.body["messages"][-1]["role"] == "tool":
            return [Say(f"I have it: {last_text(request)}")]
        assert last_text(request) == "Cancel order 7"
        return [UseTool("shop__cancel", {"order": 7})]

    found: list[str] = []

    @agent(tools=[look])
    async def asks(turn: Turn) -> str:
        return (await turn.agent(found[0]).run(turn.text)).text

    with ToolServer(cancel) as shop:

        async def make(client: Client) -> None:
            settings = {
                "mcpServers": {"shop": shop.settings},
                "tools": {"shop.cancel": {"access": "ask"}},
                "temperature": 0.5,
            }
            made = await client.create_agent("Shop", system_prompt="You cancel orders.", settings=settings)
            found.append(made.id)

        run = await run_agent(
            asks, "Cancel order 7", answers=["allow"], model=ScriptedModel(otherwise=replies), prepare=make
        )
        assert [it.arguments for it in shop.uses] == [{"order": 7}]
    assert "order 7 is cancelled" in run.text
    assert run.questions == ["Shop: Call cancel on shop?"]
    called, step = (next(it for it in run.parts if it["type"] == kind) for kind in ("tool_call", "step"))
    assert called["parentId"] == step["stepId"]
    assert (step["name"], step["agent"]) == ("Shop", "Shop")
