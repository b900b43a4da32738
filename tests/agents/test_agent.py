"""Functions that are agents: what they declare, and what is refused."""

import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest

from threadkeep.agents import LocalPrograms, Turn, agent, tool
from threadkeep.domain.agent import Code
from threadkeep.wire.programs import AgentDeclared


async def find_orders(turn: Turn) -> None:
    """Looks up orders."""


def print_twice(text: str) -> None: ...


def test_a_function_declares_itself_by_its_name():
    it = agent()(find_orders)
    assert it.declaration == AgentDeclared(
        key="find-orders", name="Find orders", timeout_s=300, max_steps=1000
    )
    assert (it.key, it.version, inspect.unwrap(it)) == ("find-orders", 1, find_orders)
    assert repr(it) == "<agent find-orders version 1>"


def test_everything_can_be_declared():
    @tool(effect="read")
    def find(number: int) -> str:
        """Finds an order."""
        return str(number)

    def other(text: str) -> None: ...

    it = agent(
        key="orders",
        name="Orders",
        description="Looks up orders.",
        version=3,
        visibility="public",
        model="m",
        tools=[find, other],
        timeout_s=60,
        max_steps=10,
        starters=["Where is it?"],
        icon="briefcase",
    )(find_orders)
    declared = it.declaration
    assert (declared.key, declared.name, declared.version, declared.icon) == (
        "orders",
        "Orders",
        3,
        "briefcase",
    )
    assert (declared.timeout_s, declared.max_steps, declared.starters) == (60, 10, ("Where is it?",))
    assert [(it.name, it.effect, it.description) for it in declared.tools] == [
        ("find", "read", "Finds an order."),
        ("other", "write", ""),
    ]
    programs = LocalPrograms([it])
    assert programs.codes == [Code("orders", 3)]
    assert programs.declarations == [declared]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"key": "Orders"}, "An agent's key is a small letter"),
        ({"key": ""}, "An agent's key"),
        ({"key": "a" * 65}, "An agent's key"),
        ({"key": "a\n"}, "An agent's key"),
        ({"version": 0}, "`version` is a whole number from 1"),
        ({"version": True}, "`version`"),
        ({"version": 1.5}, "`version`"),
        ({"max_steps": 0}, "`max_steps`"),
        ({"timeout_s": 0}, "`timeout_s` is more than 0"),
        ({"timeout_s": float("nan")}, "`timeout_s`"),
        ({"name": " "}, "An agent's name"),
        ({"name": "x" * 101}, "An agent's name"),
        ({"name": "Or\nders"}, "in one line; not 'Or\\nders'"),
        ({"description": "x" * 2_001}, "An agent's description"),
        ({"visibility": "secret"}, "`visibility` is one of private, public"),
        ({"icon": "unicorn"}, "`icon` is one of letter"),
        ({"starters": ["a"] * 7}, "at most 6 starters"),
        ({"starters": [""]}, "A starter has 1 to 200"),
        pytest.param(
            {"tools": [print_twice, print_twice]}, "are named 'print_twice'", id="two tools of one name"
        ),
    ],
    ids=str,
)
def test_a_wrong_declaration_is_refused_with_a_sentence(options: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=r"\S") as caught:
        agent(**options)(find_orders)
    assert sentence in str(caught.value)


def test_what_cannot_run_a_turn_is_refused():
    async def yields(turn: Turn) -> AsyncIterator[str]:
        yield "x"

    async def takes_nothing() -> None: ...

    async def takes_two(turn: Turn, other: int) -> None: ...

    for fn in (yields, takes_nothing, takes_two, print, 5):
        with pytest.raises(TypeError):
            agent()(fn)  # type: ignore[arg-type]


def test_the_decorator_needs_no_parentheses():
    @agent
    async def find_orders(turn: Turn) -> None: ...

    assert (find_orders.key, find_orders.version) == ("find-orders", 1)
    with pytest.raises(TypeError, match="not of 'Orders'"):
        agent("Orders")  # type: ignore[call-overload]


def test_a_key_that_a_name_does_not_give_is_asked_for():
    async def _private(turn: Turn) -> None: ...

    with pytest.raises(ValueError, match='Give it one: `@agent\\(key="orders"\\)`'):
        agent()(_private)


def test_two_agents_with_one_key_are_refused():
    with pytest.raises(ValueError, match="Two agents have the key"):
        LocalPrograms([agent(key="a")(find_orders), agent(key="a")(find_orders)])
