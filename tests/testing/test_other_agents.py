"""Agents that run other agents, crashed at the commits of their turns."""

from tests.testing.others import billing, compass, is_after_tools, make_compass, orders, paid
from threadkeep.agents import Turn, agent
from threadkeep.client import Client
from threadkeep.testing import Reply, Say, ScriptedModel, ToolServer, UseTool, crash_everywhere
from threadkeep.testing.scripted_model import Recorded


async def test_agent_that_another_one_runs_survives_crashes():
    report = await crash_everywhere(
        orders,
        "Refund order 7",
        answers=["yes"],
        steps={"refund": paid},
        agents=[billing],
        only=[
            "after step_end billing",
            "before pause",
            "after answer",
            "after step refund",
            "before step_end billing/the end",
            "after step_end billing/the end",
        ],
    )
    report.check()
    assert report.whole.text == "One moment. Billing says: Order 7. paid 7"
    outcomes = {str(it.position): it.outcome for it in report.crashes}
    assert outcomes.pop("after step refund") == "unknown"
    assert set(outcomes.values()) == {"alike"}
    assert len(outcomes) == 5


async def test_agent_without_code_whose_tool_asks_survives_crashes():
    def cancel(order: int) -> str:
        """Cancels an order."""
        return f"order {order} is cancelled"

    def replies(request: Recorded) -> Reply:
        if is_after_tools(request):
            return [Say("It is cancelled.")]
        return [UseTool("shop__cancel", {"order": 7})]

    found: list[str] = []

    @agent()
    async def asks(turn: Turn) -> str:
        return (await turn.agent(found[-1]).run(turn.text)).text

    with ToolServer(cancel) as shop:

        async def make(client: Client) -> None:
            settings = {"mcpServers": {"shop": shop.settings}, "tools": {"*": {"access": "ask"}}}
            found.append((await client.create_agent("Shop", settings=settings)).id)

        report = await crash_everywhere(
            asks,
            "Cancel order 7",
            answers=["allow"],
            model=lambda: ScriptedModel(otherwise=replies),
            prepare=make,
            only=["after approval_request", "before pause", "after approval_response", "after dispatched"],
        )
    report.check()
    assert report.whole.text == "It is cancelled."
    assert report.whole.questions == ["Shop: Call cancel on shop?"]
    outcomes = {str(it.position): it.outcome for it in report.crashes}
    assert outcomes.pop("after dispatched") == "unknown"
    assert set(outcomes.values()) == {"alike"}


async def test_agent_whose_model_asks_two_others_at_once_survives_crashes():
    report = await crash_everywhere(
        orders,
        "How is the weather?",
        model=compass,
        agents=[billing],
        prepare=make_compass,
        only=[
            "after step_end model",
            "before step agents (3)",
            "before step model (3)",
            "before step model (4)",
        ],
    )
    report.check()
    assert report.whole.text == "Cold and warm."
    assert [it["agent"] for it in report.whole.parts if it["type"] == "step"] == ["North", "South"]
    assert len(report.crashes) == 4
